//! Clients of a server on a computer: trusted proxies, and sockets to which the system sends files.

use core::any::Any;
use core::task::{Context, Poll};

/// The other end of a connection.
#[derive(Clone, Copy, Default)]
pub struct Peer<'c> {
    /// The client is a trusted proxy: `X-Forwarded-Host` and `X-Forwarded-Proto`, or `Forwarded`, say which address its
    /// client used.
    pub is_proxy: bool,
    /// The same socket, if it sends files without copying them.
    pub direct: Option<&'c dyn Direct>,
}

/// Result of sending a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// This many bytes, at least 1.
    Bytes(u64),
    /// Nothing, because the client has to receive more first.
    Blocked,
    /// Nothing. These bytes have to be read, for example because they are not in memory.
    Unsupported,
}

/// A socket that sends parts of files without copying them.
pub trait Direct {
    /// Sends a part of a file that [`Storage::as_any`](crate::Storage::as_any) returned, at most `bytes` bytes. Does not wait.
    fn send_file(&self, file: &dyn Any, offset: u64, bytes: u64) -> Sent;

    /// Waits until the client has received more.
    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()>;
}
