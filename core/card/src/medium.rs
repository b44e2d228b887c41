//! The seam for hosts that speak to a card in another way.

use crate::line::Failure;
use crate::{Block, Card, SetClock, WriteError};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// What a card is to those above: blocks, and one stream of writes. [`Card`] is one over SPI; a native
/// SD host is another.
///
/// The same rules hold for all: a stream's blocks are durable when [`end`](Medium::end) returns, a
/// future may be dropped anywhere, and a call after that finds a card that can be used.
// Executors are of one thread here: whether futures can be sent is the implementation's.
#[allow(async_fn_in_trait)]
pub trait Medium {
    /// Why something was not done.
    type Error;

    /// Initialises the card that is there; see [`Card::acquire`].
    async fn acquire(&mut self) -> Result<(), Self::Error>;
    /// Blocks of the card that was acquired last.
    fn blocks(&self) -> u32;
    /// Reads blocks; see [`Card::read`].
    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Self::Error>;
    /// Writes blocks and makes them durable; see [`Card::write`].
    async fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<Self::Error>>;
    /// Opens a stream; see [`Card::begin`].
    async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteError<Self::Error>>;
    /// Writes the stream's next block; see [`Card::push`].
    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Self::Error>>;
    /// Ends the stream and makes it durable; see [`Card::end`].
    async fn end(&mut self) -> Result<(), WriteError<Self::Error>>;
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>> Medium
    for Card<Bus, Pin, Delay, Clock>
{
    type Error = Failure<Bus, Pin>;

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
