//! Traces: the timed operations of one run, in memory and on disk.
//!
//! [`read`] takes every format that the studies and other tools write and tells them apart by their
//! content; docs/formats.md describes them. [`write_parquet`] and [`write_csv`] write our own two.
//! [`read_scope`] reads what a card drew from its supply meanwhile, into [`EnergyTrace`].
//! [`NewFile`] is how all of Cardiograph's results reach the disk: whole, and never over another
//! file.

mod energy;
mod publish;
mod read;
mod run;
mod spans;
mod trace;
mod write;

pub use cardiograph_workload::{Operation, OperationKind};
pub use energy::{EnergyCounter, EnergyTrace, PowerStep};
pub use publish::{NewFile, WriteError};
pub use read::{
    Aggregate, AggregateRow, Loaded, ReadError, ReadOptions, Recording, Scope, read, read_from,
    read_scope, read_scope_from, read_with_progress,
};
pub use run::Run;
pub use spans::Durations;
pub use trace::{About, Backward, Part, Trace};
pub use write::{write_csv, write_csv_to, write_parquet};
