//! Workloads: sequences of timed writes and reads, and the code that runs them.
//!
//! An experiment is data: a [`Workload`] is a list of [`Phase`]s. A phase gives the number of files, the
//! calls per file and the bytes per call, and states how files are opened, timed and synced. [`WORKLOADS`]
//! holds every published experiment that writes or reads files, by name.
//!
//! [`run`] runs a workload on a [`Store`] (a directory, or a FAT library on a card) with a [`Clock`] (a real
//! one, or virtual time) and passes every timed [`Operation`] to an [`Observer`]. Afterwards it reads all
//! files back, compares them with the data written, and removes them.
//!
//! ```text
//!   Workload ──> run ──> Store            file operations
//!                 │ └──> Clock            read just before and just after each timed operation
//!                 └────> Observer         records the trace, can stop the run
//! ```
//!
//! The crate needs neither an allocator nor an operating system, so the same code measures a card from
//! firmware.
#![no_std]

#[cfg(test)]
extern crate std;

mod operation;
mod path;
mod phase;
mod runner;
mod store;
mod studies;

pub use operation::{Operation, OperationKind};
pub use path::Path;
pub use phase::{Fill, Invalid, Order, Phase, Span, Sync, Workload};
pub use runner::{Outcome, RunError, run};
pub use store::{Activity, Clock, Flush, Observer, Store};
pub use studies::{DEFAULT, WORKLOADS, workload};
