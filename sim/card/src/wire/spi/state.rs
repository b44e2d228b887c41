//! The state of a data transfer.

use crate::BLOCK_BYTES;

/// Token, data and checksum.
pub(super) const BUFFER_BYTES: usize = 1 + BLOCK_BYTES + 2;

/// State of the data transfer.
#[derive(Clone, Copy)]
pub(super) enum Transfer {
    /// No transfer.
    None,
    /// Sending the buffer.
    Sending(Sending),
    /// An error token was sent instead of a block; waiting for CMD12.
    AwaitStop,
    /// Waiting for a token from the host.
    AwaitToken(Write),
    /// Receiving a block; `at` bytes have arrived.
    Receive { write: Write, at: usize },
}

impl Transfer {
    /// Data and checksum.
    pub(super) const RECEIVED_BYTES: usize = BLOCK_BYTES + 2;
}

/// A block being sent to the host.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    /// Earliest time of the token, in ns.
    pub(super) ready_ns: u64,
    /// Number of filler bytes still to be sent before the token.
    pub(super) gap_bytes: u8,
    /// Next byte of the buffer.
    pub(super) at: usize,
    /// End of the block in the buffer.
    pub(super) end: usize,
    pub(super) next: Next,
}

/// Continuation after a block was sent.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Nothing,
    /// Send the block at this byte address.
    Block(u64),
    AwaitStop,
}

/// A write command in progress.
#[derive(Clone, Copy)]
pub(super) struct Write {
    /// The command is CMD25.
    pub(super) is_multiple: bool,
    /// Next block.
    pub(super) block: u64,
    /// A block was rejected, and so are all that follow.
    pub(super) failed: bool,
}
