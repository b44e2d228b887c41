//! The card driver: known card state, initialisation, reading and recovery.

use crate::csd::Csd;
use crate::error::Error;
use crate::limits::{RECOVERY_ATTEMPTS, RETRIES};
use crate::report::report;
use crate::stream::Stream;
use crate::transport::{R1_ILLEGAL_COMMAND, Transport, TransportError};
use crate::{Block, SetClock};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// State of the card as far as the driver knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Unknown: not initialised yet, or removed.
    Absent,
    /// The card is waiting for a command.
    Idle,
    /// CMD25 is open and the card is selected.
    Streaming,
    /// A transaction was started and its end was not observed.
    Unknown(Operation),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Write,
}

/// SD card driver over SPI. Needs the bus to itself.
///
/// Owns the bus, the chip select, the delay and the hook that sets the clock. All state is in this struct,
/// so a future may be dropped at any point: the next call recovers the card first. After a dropped write,
/// each of its blocks holds either the old or the new data.
pub struct Card<Bus, Pin, Delay, Clock> {
    pub(crate) transport: Transport<Bus, Pin, Delay, Clock>,
    pub(crate) state: State,
    pub(crate) csd: Csd,
    pub(crate) stream: Option<Stream>,
    clock_hz: u32,
}

impl<Bus, Pin, Delay, Clock> Card<Bus, Pin, Delay, Clock> {
    /// Creates a driver. `clock_hz` is the bus clock after initialisation; 25 MHz
    /// ([`CLOCK_HZ`](crate::CLOCK_HZ)) is the highest that every card supports.
    pub fn new(bus: Bus, pin: Pin, delay: Delay, clock: Clock, clock_hz: u32) -> Self {
        Card {
            transport: Transport::new(bus, pin, delay, clock),
            state: State::Absent,
            csd: Csd {
                blocks: 0,
                has_high_capacity: false,
                is_write_protected: false,
            },
            stream: None,
            clock_hz,
        }
    }

    /// Returns the capacity in blocks of the most recently initialised card.
    pub fn blocks(&self) -> u32 {
        self.csd.blocks
    }

    /// Returns the bus, pin, delay and clock. An open stream is left open on the card.
    pub fn into_parts(self) -> (Bus, Pin, Delay, Clock) {
        self.transport.into_parts()
    }

    pub(crate) fn is_in_range(&self, start: u32, blocks: usize) -> bool {
        let left = self.csd.blocks.saturating_sub(start);
        u32::try_from(blocks).is_ok_and(|blocks| blocks <= left)
    }

    /// Returns the command argument that addresses a block.
    pub(crate) fn block_address(&self, block: u32) -> u32 {
        match self.csd.has_high_capacity {
            true => block,
            // Standard-capacity cards hold at most 2 GiB, so a byte address fits into 32 bits.
            false => block.wrapping_mul(crate::BLOCK_BYTES as u32),
        }
    }
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Card<Bus, Pin, Delay, Clock>
{
    /// Initialises the card from any state and switches to the full clock. Abandons an open stream: its
    /// last blocks may be lost.
    ///
    /// # Errors
    /// [`Error::NoCard`], [`Error::Unsupported`], [`Error::Busy`], or the last error once all retries
    /// have failed.
    pub async fn acquire(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        self.state = State::Absent;
        self.stream = None;
        let mut retries = RETRIES;
        self.csd = loop {
            match self.transport.initialise().await {
                Ok(csd) => break csd,
                Err(error @ (Error::Bus(_) | Error::Pin(_) | Error::Busy)) => return Err(error),
                Err(error) if retries == 0 => return Err(error),
                Err(_) => retries -= 1,
            }
        };
        self.transport.set_clock_hz(self.clock_hz);
        self.state = State::Idle;
        report!(info, "card of {} blocks ready", self.csd.blocks);
        Ok(())
    }

    /// Reads consecutive blocks. Stops an open stream first, which makes its blocks durable; the next
    /// [`push`](Card::push) reopens it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::NotReady`], [`Error::ReadFailed`], or the last error once
    /// all retries have failed. Blocks before the failed one have been read.
    pub async fn read(
        &mut self,
        start: u32,
        blocks: &mut [Block],
    ) -> Result<(), TransportError<Bus, Pin>> {
        if self.state == State::Absent {
            return Err(Error::NotReady);
        }
        if !self.is_in_range(start, blocks.len()) {
            return Err(Error::OutOfRange);
        }
        let (mut done, mut retries) = (0, RETRIES);
        while done < blocks.len() {
            let before = done;
            if let Err(error) = self.read_run(start, blocks, &mut done).await {
                retries = if done > before { RETRIES } else { retries };
                self.consume_retry(error, &mut retries)?;
            }
        }
        Ok(())
    }

    /// Sends one CMD17 or CMD18 for the blocks not read yet.
    async fn read_run(
        &mut self,
        start: u32,
        blocks: &mut [Block],
        done: &mut usize,
    ) -> Result<(), TransportError<Bus, Pin>> {
        self.resynchronise().await?;
        self.state = State::Unknown(Operation::Read);
        self.transport.select()?;
        let left = &mut blocks[*done..];
        let is_multiple = left.len() > 1;
        let address = self.block_address(start + *done as u32);
        self.transport
            .command_ok(if is_multiple { 18 } else { 17 }, address)
            .await?;
        for block in left {
            self.transport.receive_data(block).await?;
            *done += 1;
        }
        // The checksums of the blocks have been verified already. If stopping fails, the next call
        // resynchronises the card.
        let is_stopped = match is_multiple {
            true => {
                matches!(self.transport.stop_command().await, Ok(0))
                    && self.transport.wait_ready().await.is_ok()
            }
            false => true,
        };
        if is_stopped {
            self.transport.deselect().await?;
            self.state = State::Idle;
        }
        Ok(())
    }

    /// Consumes one retry; returns the error if no retry is left or a retry cannot help.
    pub(crate) fn consume_retry(
        &self,
        error: TransportError<Bus, Pin>,
        retries: &mut u32,
    ) -> Result<(), TransportError<Bus, Pin>> {
        if *retries == 0 || !error.is_transient() || self.state == State::Absent {
            return Err(error);
        }
        report!(warn, "{}; trying again", error);
        *retries -= 1;
        Ok(())
    }

    /// Brings the card into the idle state and makes the blocks of a stream durable.
    pub(crate) async fn resynchronise(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        if self.stream.is_some() {
            return self.close().await;
        }
        match self.state {
            State::Absent => Err(Error::NotReady),
            State::Idle => Ok(()),
            State::Streaming => self.recover(Operation::Write).await,
            State::Unknown(operation) => self.recover(operation).await,
        }
    }

    /// Recovers a card that may be doing anything, and notes the status of the open stream.
    ///
    /// The card counts as recovered if it answers CMD12 as a card inside or outside a transfer would, and
    /// then CMD13. A card that has lost power answers neither.
    pub(crate) async fn recover(
        &mut self,
        operation: Operation,
    ) -> Result<(), TransportError<Bus, Pin>> {
        self.state = State::Unknown(operation);
        for _ in 0..RECOVERY_ATTEMPTS {
            self.transport.deselect().await?;
            self.transport.select()?;
            if operation == Operation::Write {
                self.transport.drain().await?;
                self.transport.wait_ready().await?;
            }
            let stopped = self.transport.stop_command().await;
            self.transport.wait_ready().await?;
            let reported = self.note_status().await;
            if matches!(stopped, Ok(0 | R1_ILLEGAL_COMMAND)) && reported.is_ok() {
                self.transport.deselect().await?;
                self.state = State::Idle;
                return Ok(());
            }
        }
        self.state = State::Absent;
        report!(warn, "the card no longer responds");
        Err(Error::NoCard)
    }
}
