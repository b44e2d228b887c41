//! The operations: each writes its response.

pub(crate) mod archive;
mod bench;
mod change;
pub(crate) mod condition;
mod control;
mod copy;
mod decode;
pub(crate) mod index;
mod list;
mod live;
#[cfg(feature = "webdav")]
mod lock;
pub(crate) mod permission;
#[cfg(feature = "webdav")]
mod propfind;
mod read;
mod replay;
mod slice;
mod state;
mod upload;
