//! The card: what is known of it, acquiring it, reading, and bringing it back.

use crate::csd::Csd;
use crate::error::Error;
use crate::limits::{RECOVERIES, RETRIES};
use crate::line::{Failure, ILLEGAL, Line};
use crate::stream::Stream;
use crate::{Block, SetClock};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// What the card does just now, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is known: not acquired yet, or gone.
    Absent,
    /// It waits for a command.
    Idle,
    /// CMD25 is open, and the card selected.
    Streaming,
    /// A transaction was begun, and nobody saw its end.
    Unsettled(Begun),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    Read,
    Write,
}

/// An SD card over SPI. Nobody else may use its wires.
///
/// It owns bus, chip select, delay and the hook that sets the clock. Nothing of a call outlives it but
/// what is stored here, so a future may be dropped anywhere: the next call brings the card back first.
/// A block whose write was dropped is old or new, or was never taken.
pub struct Card<Bus, Pin, Delay, Clock> {
    pub(crate) line: Line<Bus, Pin, Delay, Clock>,
    pub(crate) state: State,
    pub(crate) csd: Csd,
    pub(crate) stream: Option<Stream>,
    clock_hz: u32,
}

impl<Bus, Pin, Delay, Clock> Card<Bus, Pin, Delay, Clock> {
    /// A driver on these wires. `clock_hz` is the clock of the bus once a card is acquired; 25 MHz
    /// ([`CLOCK_HZ`](crate::CLOCK_HZ)) is the most that every card takes.
    pub fn new(bus: Bus, pin: Pin, delay: Delay, clock: Clock, clock_hz: u32) -> Self {
        Card {
            line: Line::new(bus, pin, delay, clock),
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

    /// Blocks of the card that was acquired last.
    pub fn blocks(&self) -> u32 {
        self.csd.blocks
    }

    /// Gives the wires back. A stream that is open is left open.
    pub fn into_parts(self) -> (Bus, Pin, Delay, Clock) {
        self.line.into_parts()
    }

    pub(crate) fn check(&self, start: u32, blocks: usize) -> bool {
        let left = self.csd.blocks.saturating_sub(start);
        u32::try_from(blocks).is_ok_and(|blocks| blocks <= left)
    }

    /// What a command says to mean this block.
    pub(crate) fn place(&self, block: u32) -> u32 {
        match self.csd.has_high_capacity {
            true => block,
            // Such cards have at most 2 GiB.
            false => block.wrapping_mul(crate::BLOCK_BYTES as u32),
        }
    }
}

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Card<Bus, Pin, Delay, Clock>
{
    /// Initialises the card that is there, whatever went on before, and sets the full clock. A stream
    /// that was open is given up: its last blocks may be lost.
    ///
    /// # Errors
    /// [`Error::NoCard`], [`Error::Unusable`], [`Error::Busy`], or what went wrong again and again.
    pub async fn acquire(&mut self) -> Result<(), Failure<Bus, Pin>> {
        self.state = State::Absent;
        self.stream = None;
        let mut retries = RETRIES;
        self.csd = loop {
            match self.line.initialise().await {
                Ok(csd) => break csd,
                Err(error @ (Error::Bus(_) | Error::Pin(_) | Error::Busy)) => return Err(error),
                Err(error) if retries == 0 => return Err(error),
                Err(_) => retries -= 1,
            }
        };
        self.line.set_clock_hz(self.clock_hz);
        self.state = State::Idle;
        Ok(())
    }

    /// Reads blocks. A stream that is open is stopped for it, which makes its blocks durable; its next
    /// block opens it again.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::NotReady`], [`Error::ReadFailed`], or what went wrong again and
    /// again. Blocks before the one that failed have been read.
    pub async fn read(
        &mut self,
        start: u32,
        blocks: &mut [Block],
    ) -> Result<(), Failure<Bus, Pin>> {
        if self.state == State::Absent {
            return Err(Error::NotReady);
        }
        if !self.check(start, blocks.len()) {
            return Err(Error::OutOfRange);
        }
        let (mut done, mut retries) = (0, RETRIES);
        while done < blocks.len() {
            let before = done;
            if let Err(error) = self.read_run(start, blocks, &mut done).await {
                retries = if done > before { RETRIES } else { retries };
                self.may_retry(error, &mut retries)?;
            }
        }
        Ok(())
    }

    /// One CMD17 or CMD18, from the first block that is not there yet.
    async fn read_run(
        &mut self,
        start: u32,
        blocks: &mut [Block],
        done: &mut usize,
    ) -> Result<(), Failure<Bus, Pin>> {
        self.settle().await?;
        self.state = State::Unsettled(Begun::Read);
        self.line.select()?;
        let left = &mut blocks[*done..];
        let is_many = left.len() > 1;
        let place = self.place(start + *done as u32);
        self.line
            .clear(if is_many { 18 } else { 17 }, place)
            .await?;
        for block in left {
            self.line.receive(block).await?;
            *done += 1;
        }
        // The blocks are right, whatever becomes of this: who comes next settles it.
        let is_settled = match is_many {
            true => {
                matches!(self.line.stop_command().await, Ok(0)) && self.line.wait().await.is_ok()
            }
            false => true,
        };
        if is_settled {
            self.line.release().await?;
            self.state = State::Idle;
        }
        Ok(())
    }

    /// Takes one attempt off; the error if there is none left or no sense in it.
    pub(crate) fn may_retry(
        &self,
        error: Failure<Bus, Pin>,
        retries: &mut u32,
    ) -> Result<(), Failure<Bus, Pin>> {
        if *retries == 0 || !error.may_pass() || self.state == State::Absent {
            return Err(error);
        }
        *retries -= 1;
        Ok(())
    }

    /// Makes the card wait for a command, and a stream's blocks durable.
    pub(crate) async fn settle(&mut self) -> Result<(), Failure<Bus, Pin>> {
        if self.stream.is_some() {
            return self.close().await;
        }
        match self.state {
            State::Absent => Err(Error::NotReady),
            State::Idle => Ok(()),
            State::Streaming => self.recover(Begun::Write).await.map(|_| ()),
            State::Unsettled(begun) => self.recover(begun).await.map(|_| ()),
        }
    }

    /// Brings a card back of which nobody knows what it does; returns the second byte of R2.
    ///
    /// It is there again if it answers CMD12 as if it were in a transfer or in none, and CMD13. One
    /// that lost power answers neither.
    pub(crate) async fn recover(&mut self, begun: Begun) -> Result<u8, Failure<Bus, Pin>> {
        self.state = State::Unsettled(begun);
        let mut status = 0;
        for _ in 0..RECOVERIES {
            self.line.release().await?;
            self.line.select()?;
            if begun == Begun::Write {
                self.line.drain().await?;
                self.line.wait().await?;
            }
            let stopped = self.line.stop_command().await;
            self.line.wait().await?;
            let told = self.line.status().await;
            status |= *told.as_ref().unwrap_or(&0);
            if matches!(stopped, Ok(0 | ILLEGAL)) && told.is_ok() {
                self.line.release().await?;
                self.state = State::Idle;
                return Ok(status);
            }
        }
        self.state = State::Absent;
        Err(Error::NoCard)
    }
}
