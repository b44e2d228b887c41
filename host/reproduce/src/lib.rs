//! Compares published figures with simulated ones.
//!
//! ```text
//!   studies/*.toml ── Row: a number, its role, the experiment behind it           (row.rs)
//!                       │
//!   Experiment: a workload on a card on a board ── run for each seed ──> writes   (experiment.rs)
//!                       │ or recorded writes of a file system ───────> writes   (recorded_writes.rs)
//!                       │ or with a web server at the same time ───> downloads   (web/mod.rs)
//!                       │
//!   Measure: mean, worst case, stall spacing ... ── a number for each seed        (measure.rs)
//!                       │
//!   Outcome: published, simulated with its interval, ratio               (outcome.rs, table.rs)
//! ```
//!
//! Rows that share an experiment share its runs. The results depend only on the studies' files, the profiles
//! and the seeds, not on the number of threads.

pub mod bounds;
mod breakdown;
mod experiment;
pub mod figures;
mod fit;
pub mod fitting;
mod floor;
mod hosts;
mod known;
mod measure;
mod outcome;
pub mod own_server;
pub mod page;
pub mod plot;
mod raw_writes;
mod recorded_writes;
mod recording;
mod row;
mod stand_in;
mod steps;
pub mod table;
mod two_cores;
mod web;

pub use breakdown::Breakdown;
pub use experiment::{Experiment, ExperimentError, NO_WORKLOAD, Operations};
pub use fit::{Fit, Host, WRITES_MAX, fit, fit_known};
pub use known::Known;
pub use measure::{Measure, evaluate};
pub use outcome::{MEMBERS, Outcome, in_unit, reproduce};
pub use recording::Recording;
pub use row::{Query, Role, Row, STUDIES, SetAside, Study, study};
pub use web::{Place, WebServer};
