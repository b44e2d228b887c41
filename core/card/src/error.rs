//! What can go wrong.

use core::fmt;

/// Why something was not done. `Bus` and `Pin` are the errors of the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<Bus, Pin> {
    /// The bus failed.
    Bus(Bus),
    /// Chip select failed.
    Pin(Pin),
    /// Nothing answers: no card, or one that lost power. [`acquire`](crate::Card::acquire) again.
    NoCard,
    /// There is no card that was acquired, or it went away since.
    NotReady,
    /// A card answers that this driver cannot use: its voltage, its capacity or its checksums.
    Unusable,
    /// The blocks are not on the card.
    OutOfRange,
    /// The card's CSD forbids writing.
    WriteProtected,
    /// A stream is open: end it first.
    StreamOpen,
    /// No stream is open.
    NoStream,
    /// The card is busy for longer than any good card.
    Busy,
    /// No data came for longer than any good card needs.
    NoData,
    /// The R1 that a command got (7.3.2.1).
    Refused(u8),
    /// A checksum, a token or an answer was wrong, again and again.
    Garbled,
    /// The card could not write a block (7.3.3.1).
    WriteFailed,
    /// The error token in place of a block (7.3.3.3).
    ReadFailed(u8),
    /// What the second byte of R2 says after a write (7.3.2.3).
    Status(u8),
    /// The card kept fewer blocks of a stream than it took.
    BlocksMissing,
}

impl<Bus, Pin> Error<Bus, Pin> {
    /// Whether another attempt may do better.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Error::NoCard
                | Error::NoData
                | Error::Refused(_)
                | Error::Garbled
                | Error::WriteFailed
                | Error::ReadFailed(_)
        )
    }
}

impl<Bus: fmt::Debug, Pin: fmt::Debug> fmt::Display for Error<Bus, Pin> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Bus(error) => write!(f, "the bus failed: {error:?}"),
            Error::Pin(error) => write!(f, "chip select failed: {error:?}"),
            Error::NoCard => f.write_str("no card answers"),
            Error::NotReady => f.write_str("no card is acquired"),
            Error::Unusable => f.write_str("the card cannot be used over SPI by this driver"),
            Error::OutOfRange => f.write_str("the blocks are not on the card"),
            Error::WriteProtected => f.write_str("the card is write-protected"),
            Error::StreamOpen => f.write_str("a stream is open"),
            Error::NoStream => f.write_str("no stream is open"),
            Error::Busy => f.write_str("the card is busy for too long"),
            Error::NoData => f.write_str("the card sends no data"),
            Error::Refused(r1) => write!(f, "the card refused a command: R1 is {r1:#04x}"),
            Error::Garbled => f.write_str("what comes over the wire is garbled"),
            Error::WriteFailed => f.write_str("the card could not write a block"),
            Error::ReadFailed(token) => write!(f, "the card could not read: {token:#04x}"),
            Error::Status(status) => write!(f, "the card reports a failed write: {status:#04x}"),
            Error::BlocksMissing => f.write_str("the card kept fewer blocks than it took"),
        }
    }
}

impl<Bus: fmt::Debug, Pin: fmt::Debug> core::error::Error for Error<Bus, Pin> {}

/// Why a write of several blocks was not done, and how much of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteError<E> {
    /// What went wrong.
    pub cause: E,
    /// So many blocks from the start are durable, at least.
    pub kept_blocks: u32,
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; {} blocks are durable", self.cause, self.kept_blocks)
    }
}

impl<E: core::error::Error> core::error::Error for WriteError<E> {}
