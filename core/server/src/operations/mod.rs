//! The operations: each writes its response.

pub(crate) mod archive;
mod change;
pub(crate) mod condition;
mod control;
mod decode;
pub(crate) mod index;
mod list;
mod live;
mod read;
mod replay;
mod slice;
mod state;
mod upload;
