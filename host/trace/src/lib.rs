//! Traces: the timed operations of one run, in memory and on disk.
//!
//! [`read`] reads every format that the studies and other tools write, and detects the format from the content;
//! docs/formats.md describes the formats. [`write_parquet`] and [`write_csv`] write Cardiograph's own two formats,
//! [`Results`] those of two studies. [`read_scope`] reads the power that a card drew during a run; an [`EnergyTrace`]
//! adds this power up. All of Cardiograph's results are written through [`NewFile`]: complete, and never over an
//! existing file.

mod energy;
mod histogram;
mod publish;
mod read;
mod run;
mod shell;
mod spans;
mod spill;
mod stop;
mod trace;
mod values;
mod write;

pub use cardiograph_workload::{Operation, OperationKind};
pub use energy::{EnergyCounter, EnergyTrace, PowerStep};
pub use histogram::Histogram;
pub use publish::{Existing, NewFile, WriteError};
pub use read::{
    Aggregate, AggregateRow, BoardLine, DateOrder, Loaded, LongestWrite, ReadError, ReadOptions,
    Recording, RecordingRun, Scope, SequenceLoss, TimeUnit, board_command, board_line, read,
    read_from, read_scope, read_scope_from, read_with_progress,
};
pub use run::{Run, RunOrder};
pub use shell::{quoted, quoted_path};
pub use spans::Durations;
pub use stop::StopFlag;
pub use trace::{About, Backward, PhaseLabel, Trace};
pub use write::{
    Results, ResultsOf, Unsuitable, write_csv, write_csv_to, write_parquet, write_parquet_to,
};
