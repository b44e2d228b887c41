//! The recorder's promises in every state, tested from outside: only through cards, files, events and
//! summaries.
//!
//! Only `promise.rs` and the rigs depend on names of the API.

#[path = "../fat_rig/mod.rs"]
mod fat_rig;
#[path = "../logger_rig/mod.rs"]
mod logger_rig;

mod bad_input;
mod failing_card;
mod figures;
mod flush;
mod full_at_start;
mod full_card;
mod gaps;
mod naming;
mod numbers;
mod old_version;
mod promise;
mod rolling;
mod second_run;
mod sessions;
mod several_streams;
mod stalls;
mod stopping;
mod window;
