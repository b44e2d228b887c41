//! Sweeps: thousands of simulated recordings over cards, boards, rates, buffers, policies and seeds.
//!
//! ```text
//!   SWEEP.toml ── Sweep ── tasks ──> card mode      the card's timing alone: days in seconds  ─┐
//!                            └─────> recorder mode  the whole device: minutes per day         ─┴─> rows
//!   rows ──> ResultFolder: sweep.json, results/card=NAME/part-NNNNN.parquet ──> Answer: table, page
//! ```
//!
//! A task is a pure function of the sweep and the task's number: it gives the same rows on every computer, however often
//! it runs. [`Sweep::run_part`] runs the tasks of one file and returns its bytes, so that a cluster can run parts; [`run()`]
//! runs all parts on the cores of this computer. A part that exists is never computed again.

mod answer;
mod card_mode;
mod card_stream;
mod check;
mod fields;
mod figures;
mod folder;
mod interval;
mod page;
mod parquet;
mod recorder_mode;
mod run;
mod spec;
mod sweep;
mod task;
mod text;

pub use answer::{Answer, Cell, MemberRisk};
pub use card_mode::{CardLoad, Set};
pub use card_stream::peak_backlog;
pub use check::{
    Checked, Disagreement, PlanDifference, check_sample, check_with_recorder, compare_with_plan,
};
pub use figures::Figures;
pub use folder::ResultFolder;
pub use interval::{CONFIDENCE, Proportion};
pub use page::html;
pub use run::{Finished, Progress, run};
pub use spec::{Mode, PolicyName, Spec};
pub use sweep::{PARTS_MAX, Source, Sweep, TASKS_MAX};
pub use task::{Row, Task};
pub use text::{duration, markdown, text};

/// Error of a sweep. `Display` is one sentence with the field or file, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepError(String);

impl SweepError {
    pub(crate) fn new(message: impl std::fmt::Display) -> SweepError {
        SweepError(message.to_string())
    }
}

impl std::error::Error for SweepError {}

impl std::fmt::Display for SweepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
