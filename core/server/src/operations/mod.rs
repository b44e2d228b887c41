//! The operations: each writes its answer.

mod list;
mod read;
