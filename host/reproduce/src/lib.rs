//! Published figures beside simulated ones.
//!
//! ```text
//!   studies/*.toml ── Row: a number, its role, the experiment behind it     (row.rs)
//!                       │
//!   Experiment: a workload on a card on a board ── run for each seed ──> writes   (experiment.rs)
//!                       │
//!   Measure: mean, longest, spacing of peaks ... ── a number for each seed        (measure.rs)
//!                       │
//!   Outcome: published, simulated with its interval, ratio             (outcome.rs, table.rs)
//! ```
//!
//! Rows that share an experiment share its runs. The numbers follow from the studies' files, the profiles
//! and the seeds alone, on however many threads.

mod breakdown;
mod experiment;
pub mod figures;
mod fit;
mod measure;
mod outcome;
pub mod page;
pub mod plot;
mod recording;
mod row;
pub mod search;
pub mod table;
mod two_cores;

pub use breakdown::Breakdown;
pub use experiment::{Experiment, ExperimentError, Operations};
pub use fit::{Fit, Host, WRITES_MAX, fit};
pub use measure::{Measure, take};
pub use outcome::{Outcome, in_unit, reproduce};
pub use recording::Recording;
pub use row::{Role, Row, STUDIES, Study, Take, study};
