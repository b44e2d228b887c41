//! What a trace says, for people and for programs.
//!
//! ```text
//!   Trace, Recording or Aggregate ──> Report ──> table::text      on the terminal
//!   power of a scope ─> EnergyMeter ──┘ │   ├──> table::markdown
//!                                       │   └──> page::html       one file that works offline
//!                                       └──> Summary              JSON, its schema fixed
//! ```

mod energy;
mod headline;
pub mod page;
mod parts;
mod report;
mod summary;
pub mod table;
pub mod units;
mod writes;

pub use energy::{Energy, EnergyMeter};
pub use report::{RAM_BYTES, Report, figures_of};
pub use summary::{
    CadenceSummary, EnergyPower, EnergyShare, EnergySummary, FrontierPoint, PeakHeight,
    PeakSpacing, Peaks, Summary, Throughput, WriteTime,
};
pub use writes::Writes;
