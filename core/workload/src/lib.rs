//! What is written and when.
#![no_std]

mod operation;

pub use operation::{Operation, OperationKind};
