//! Reports on traces, for people and for programs.
//!
//! ```text
//!   Trace, Recording or Aggregate ──> Report ──> table::text      on the terminal
//!   power of a scope ─> EnergyMeter ──┘ │   ├──> table::markdown
//!                                       │   ├──> distribution::text on the terminal
//!                                       │   └──> page::html       one file that works offline
//!                                       └──> Summary              JSON with a fixed schema
//! ```

mod delays;
pub mod distribution;
mod energy;
mod envelope;
mod headline;
mod measured_energy;
mod open_loop;
pub mod page;
mod phases;
mod report;
mod runs;
mod stability;
mod statistics;
mod summary;
pub mod table;
mod trust;
pub mod units;
pub mod values;
mod writes;

pub use delays::{Delay, Delays, SlowOperations, Suspect, slow_operations};
pub use energy::{Energy, EnergyMeter};
pub use envelope::json;
pub use open_loop::{ClosedLoop, OpenLoop, open_loop};
pub use report::{BUFFER_SIZES_BYTES, Report, figures_at_rate, figures_of};
pub use stability::{INCREASE_MAX, Stability, WorstCases};
pub use summary::{
    CadenceSummary, DiskFact, DiskFailure, DiskSummary, EnergyPower, EnergyShare, EnergySummary,
    Input, Latency, RunSummary, SequenceSummary, StallLatency, StallSpacing, Stalls, Summary,
    SustainedRate, Throughput,
};
pub use trust::{Computer, EndedBy, SuspectSummary, Trust, UntilStable, Witnessed};
pub use writes::Writes;
