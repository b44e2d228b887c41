//! The operations: each writes its answer.

pub(crate) mod archive;
mod change;
mod control;
pub(crate) mod index;
mod list;
mod live;
mod read;
mod state;
mod upload;
