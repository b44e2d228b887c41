//! What a trace says, for people and for programs.
//!
//! ```text
//!   Trace, Recording or Aggregate ──> Report ──> table::text      on the terminal
//!                                       │   ├──> table::markdown
//!                                       │   └──> page::html       one file that works offline
//!                                       └──> Summary              JSON, its schema fixed
//! ```

mod headline;
pub mod page;
mod parts;
mod report;
mod summary;
pub mod table;
pub mod units;
mod writes;

pub use report::{RAM_BYTES, Report, figures_of};
pub use summary::{
    CadenceSummary, FrontierPoint, PeakHeight, PeakSpacing, Peaks, Summary, Throughput, WriteTime,
};
