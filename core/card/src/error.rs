//! Errors of the driver.

use core::fmt;

/// Driver error. `Bus` and `Pin` are the errors of the SPI bus and of chip select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error<Bus, Pin> {
    /// The SPI bus failed.
    Bus(Bus),
    /// Driving chip select failed.
    Pin(Pin),
    /// No response: there is no card, or it has lost power. Call [`acquire`](crate::Card::acquire) again.
    NoCard,
    /// No card has been initialised, or the card has been removed since.
    NotReady,
    /// The driver cannot use the card: wrong supply voltage, unknown CSD version, or no support for checksums.
    Unsupported,
    /// The blocks are past the end of the card.
    OutOfRange,
    /// The CSD write-protects the card.
    WriteProtected,
    /// A stream is open: end it first.
    StreamOpen,
    /// No stream is open.
    NoStream,
    /// The card stayed busy for longer than [`BUSY_NS_MAX`](crate::BUSY_NS_MAX).
    Busy,
    /// No data arrived within [`READ_NS_MAX`](crate::READ_NS_MAX).
    NoData,
    /// The card rejected a command; the value is its R1 (7.3.2.1).
    Refused(u8),
    /// A checksum, a token or a response was wrong on every attempt.
    Garbled,
    /// The card could not write a block (7.3.3.1).
    WriteFailed,
    /// The card sent this error token instead of a block (7.3.3.3).
    ReadFailed(u8),
    /// The card reported an error after a write; the value is the second byte of R2 (7.3.2.3).
    Status(u8),
    /// The card wrote fewer blocks of a stream than it had accepted.
    BlocksMissing,
}

impl<Bus, Pin> Error<Bus, Pin> {
    /// Returns true if a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
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
            Error::Bus(error) => write!(f, "the SPI bus failed: {error:?}"),
            Error::Pin(error) => write!(f, "driving chip select failed: {error:?}"),
            Error::NoCard => f.write_str("no card responds"),
            Error::NotReady => f.write_str("no card is initialised"),
            Error::Unsupported => f.write_str("this driver does not support the card"),
            Error::OutOfRange => f.write_str("the blocks are past the end of the card"),
            Error::WriteProtected => f.write_str("the card is write-protected"),
            Error::StreamOpen => f.write_str("a stream is open; end it first"),
            Error::NoStream => f.write_str("no stream is open"),
            Error::Busy => f.write_str("the card stayed busy for too long"),
            Error::NoData => f.write_str("the card sent no data in time"),
            Error::Refused(r1) => write!(f, "the card rejected a command: R1 is {r1:#04x}"),
            Error::Garbled => f.write_str("transfers on the bus are corrupted"),
            Error::WriteFailed => f.write_str("the card could not write a block"),
            Error::ReadFailed(token) => {
                write!(
                    f,
                    "the card could not read a block: error token {token:#04x}"
                )
            }
            Error::Status(status) => {
                write!(f, "the card reports a failed write: status {status:#04x}")
            }
            Error::BlocksMissing => f.write_str("the card wrote fewer blocks than it accepted"),
        }
    }
}

impl<Bus: fmt::Debug, Pin: fmt::Debug> core::error::Error for Error<Bus, Pin> {}

/// Error of a write of several blocks, with the number of blocks that are durable nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WriteError<E> {
    /// Error of the device.
    pub cause: E,
    /// Minimum number of blocks, counted from the start, that are durable.
    pub durable_blocks: u32,
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{}; {} blocks are durable",
            self.cause, self.durable_blocks
        )
    }
}

impl<E: core::error::Error> core::error::Error for WriteError<E> {}
