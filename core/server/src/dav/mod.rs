//! WebDAV (RFC 4918), classes 1 and 2, as far as it is independent of storage and sockets.
//!
//! ```text
//!   bodies ────── XML ──> elements ──> requested properties, locks   (xml.rs, bodies.rs)
//!   If ────────── state tokens and entity tags                       (condition.rs)
//!   locks ─────── a bounded table in memory                          (locks.rs)
//! ```
//!
//! `operations/propfind.rs`, `operations/lock.rs`, `operations/permission.rs` and `operations/copy.rs` use them. A server has no properties other
//! than those of RFC 4918 that a file system knows, and forgets its locks when it restarts.

#[cfg(feature = "webdav")]
pub(crate) mod bodies;
pub(crate) mod condition;
#[cfg_attr(
    not(feature = "webdav"),
    expect(dead_code, reason = "without WebDAV, the table stays empty")
)]
pub(crate) mod locks;
#[cfg(feature = "webdav")]
pub(crate) mod xml;

use crate::head::Head;
use crate::status::Refused;

/// Value of `Depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The path itself.
    Zero,
    /// The path and its members.
    One,
    /// The path and everything below it.
    Infinity,
}

impl Depth {
    /// Returns the depth of a request; infinity by default.
    pub(crate) fn of(head: &Head) -> Result<Depth, Refused> {
        match head.field("Depth")? {
            Some("0") => Ok(Depth::Zero),
            Some("1") => Ok(Depth::One),
            None => Ok(Depth::Infinity),
            Some(word) if word.eq_ignore_ascii_case("infinity") => Ok(Depth::Infinity),
            Some(_) => Err(Refused::bad("Depth is 0, 1 or infinity")),
        }
    }
}
