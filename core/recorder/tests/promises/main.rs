//! The recorder's promises in every state, seen from outside: cards, files, events and summaries alone.
//!
//! All that these tests know of names in the code is in `promise.rs` and in the rigs.

#[path = "../fat_rig/mod.rs"]
mod fat_rig;
#[path = "../logger_rig/mod.rs"]
mod logger_rig;

mod bad_input;
mod failing_card;
mod flush;
mod full_card;
mod numbers;
mod old_version;
mod promise;
mod rolling;
mod sessions;
mod several_streams;
mod stopping;
mod window;
