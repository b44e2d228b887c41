//! The state of a data transfer.

use crate::BLOCK_BYTES;

/// Size of the transfer buffer: token, data and checksum.
pub(super) const BUFFER_BYTES: usize = 1 + BLOCK_BYTES + 2;

/// State of the data transfer.
#[derive(Clone, Copy)]
pub(super) enum Transfer {
    /// No data transfer is in progress.
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
    /// Number of bytes to receive after the start token: data and checksum.
    pub(super) const RECEIVED_BYTES: usize = BLOCK_BYTES + 2;
}

/// A block that the card is sending to the host.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    /// Earliest time at which the token may be sent, in ns.
    pub(super) ready_ns: u64,
    /// Number of filler bytes still to be sent before the token.
    pub(super) gap_bytes: u8,
    /// Index in the buffer of the next byte to send.
    pub(super) at: usize,
    /// End of the block, as an index in the buffer.
    pub(super) end: usize,
    pub(super) next: Next,
}

/// Continuation after a block was sent.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Nothing,
    /// Sends the block at the given byte address.
    Block(u64),
    AwaitStop,
}

/// A write command in progress.
#[derive(Clone, Copy)]
pub(super) struct Write {
    /// True if the command is CMD25.
    pub(super) is_multiple: bool,
    /// Number of the next block to write.
    pub(super) block: u64,
    /// True once a block was rejected; all later blocks are rejected too.
    pub(super) failed: bool,
}
