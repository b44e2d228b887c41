//! What is written and when.
//!
//! An experiment is data: a [`Workload`] is a list of [`Phase`]s, each so many files of so many calls
//! of so many bytes, opened, timed and synced in a stated way. [`WORKLOADS`] holds every published
//! experiment that writes or reads files, by its name.
//!
//! One [`run`] carries any of them out against a [`Store`] (a directory, a FAT library on a card)
//! and a [`Clock`] (a real one, or virtual time), and hands every timed [`Operation`] to an
//! [`Observer`]. It reads everything back and compares, and removes what it made.
//!
//! ```text
//!   Workload ──> run ──> Store            what the medium is asked to do
//!                 │ └──> Clock            read just before and just after what is timed
//!                 └────> Observer         keeps the trace, says when to stop
//! ```
//!
//! No allocator, no hardware: the same runner measures a card from firmware.
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
pub use store::{Clock, Doing, Flush, Observer, Store};
pub use studies::{DEFAULT, WORKLOADS, workload};
