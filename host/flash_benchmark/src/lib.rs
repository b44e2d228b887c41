//! Study 2, Flash Benchmark, on a real disk or directory.
//!
//! ```text
//!   experiments ──> SetUp (raw, or a file system) ──> Case ──> repetitions ──> Statistics ─┐
//!                     │ Scratch formats and mounts                                          ├──> Row ──> report
//!                     v                                      studies/flash-benchmark-…toml ─┘
//!                   Place: a raw region, or a folder
//! ```
//!
//! The study wrote with `dd` and then called `sync`; both are inside the measured time. Sizes and numbers of repetitions
//! are those of the workloads of the same names. A run on a directory leaves out what needs formatting or mounting.

mod cache_zone;
mod case;
mod experiment;
mod place;
mod published;
mod report;
mod runner;
mod scenario;
mod statistics;

pub use case::{Case, Unit, Work};
pub use experiment::{Experiment, Medium, SetUp};
pub use published::{Published, published};
pub use report::{Availability, Cause, Figures, Outcome, Row, html, markdown, text};
pub use runner::{Ended, Limits, Target, run, smallest_bytes};
pub use scenario::{End, SCENARIOS, Scenario, SyncAfterEach};
pub use statistics::Statistics;
