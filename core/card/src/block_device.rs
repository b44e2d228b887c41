//! The block device interface. Hosts that access a card other than over SPI implement it themselves.

use crate::transport::TransportError;
use crate::{Block, Card, SetClock, WriteError};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// A block device with one stream of writes. [`Card`] implements it over SPI; a native SD host is another
/// implementation.
///
/// All implementations follow the same rules: the blocks of a stream are durable when
/// [`end`](BlockDevice::end) returns; a future may be dropped at any point, and the next call finds a
/// usable card.
// No `Send` bound on the futures: the executors are single-threaded, and each implementation decides.
#[allow(async_fn_in_trait)]
pub trait BlockDevice {
    /// Error of the device.
    type Error;

    /// Initialises the card; see [`Card::acquire`].
    async fn acquire(&mut self) -> Result<(), Self::Error>;
    /// Returns the capacity in blocks of the most recently initialised card.
    fn blocks(&self) -> u32;
    /// Reads consecutive blocks; see [`Card::read`].
    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Self::Error>;
    /// Writes consecutive blocks and makes them durable; see [`Card::write`].
    async fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<Self::Error>>;
    /// Opens a stream; see [`Card::begin`].
    async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteError<Self::Error>>;
    /// Writes the next block of the stream; see [`Card::push`].
    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Self::Error>>;
    /// Ends the stream and makes its blocks durable; see [`Card::end`].
    async fn end(&mut self) -> Result<(), WriteError<Self::Error>>;
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>> BlockDevice
    for Card<Bus, Pin, Delay, Clock>
{
    type Error = TransportError<Bus, Pin>;

    async fn acquire(&mut self) -> Result<(), Self::Error> {
        Card::acquire(self).await
    }

    fn blocks(&self) -> u32 {
        Card::blocks(self)
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Self::Error> {
        Card::read(self, start, blocks).await
    }

    async fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<Self::Error>> {
        Card::write(self, start, blocks).await
    }

    async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteError<Self::Error>> {
        Card::begin(self, start, hint).await
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Self::Error>> {
        Card::push(self, block).await
    }

    async fn end(&mut self) -> Result<(), WriteError<Self::Error>> {
        Card::end(self).await
    }
}
