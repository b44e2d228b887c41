//! Writing: single blocks, and a stream that stays open across calls.

use crate::card::{Begun, Card, State};
use crate::error::{Error, WriteError};
use crate::limits::RETRIES;
use crate::line::{Failure, START, START_OF_MANY};
use crate::{Block, SetClock};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// A write of consecutive blocks. Over its life the card may be stopped and asked to go on.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    start: u32,
    /// The block that comes next.
    next: u32,
    /// Blocks from the start that are durable.
    kept: u32,
    /// Blocks that are told to the card as to come.
    hint: u32,
    /// First block since CMD25, if the end of that is not known yet.
    opened: Option<u32>,
    /// What the card said of it; asked for once, since the card forgets it.
    status: u8,
    /// Whether it belongs to `write`, so that nobody else goes on with it.
    is_inner: bool,
}

type WriteFailure<Bus, Pin> = WriteError<Failure<Bus, Pin>>;

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Card<Bus, Pin, Delay, Clock>
{
    /// Writes blocks; they are durable when it returns. One goes by CMD24, more by a stream.
    ///
    /// # Errors
    /// [`Error::StreamOpen`], [`Error::OutOfRange`], [`Error::WriteProtected`], [`Error::NotReady`],
    /// [`Error::Busy`], [`Error::Status`], or what went wrong again and again.
    pub async fn write(
        &mut self,
        start: u32,
        blocks: &[Block],
    ) -> Result<(), WriteFailure<Bus, Pin>> {
        if let [block] = blocks {
            let written = self.write_one(start, block).await;
            return written.map_err(|cause| WriteError {
                cause,
                kept_blocks: 0,
            });
        }
        if blocks.is_empty() {
            return Ok(());
        }
        self.open(start, blocks.len(), true).await?;
        for block in blocks {
            if let Err(cause) = self.push_any(block).await {
                return Err(self.give_up(cause));
            }
        }
        self.end_any().await
    }

    async fn write_one(&mut self, start: u32, block: &Block) -> Result<(), Failure<Bus, Pin>> {
        self.check_write(start, 1)?;
        let mut retries = RETRIES;
        while let Err(error) = self.try_write_one(start, block).await {
            self.may_retry(error, &mut retries)?;
        }
        Ok(())
    }

    async fn try_write_one(&mut self, start: u32, block: &Block) -> Result<(), Failure<Bus, Pin>> {
        self.settle().await?;
        self.state = State::Unsettled(Begun::Write);
        self.line.select()?;
        self.line.clear(24, self.place(start)).await?;
        self.line.wait().await?;
        self.line.transmit(START, block).await?;
        self.line.wait().await?;
        let status = self.line.status().await?;
        self.line.release().await?;
        self.state = State::Idle;
        match status {
            0 => Ok(()),
            status => Err(Error::Status(status)),
        }
    }

    /// Opens a stream of consecutive blocks. `hint` is how many will come, as far as known: the card may
    /// erase so many ahead (ACMD23), and what of them is not written is undefined afterwards. Less than
    /// two is no hint.
    ///
    /// # Errors
    /// Those of [`write`](Card::write).
    pub async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteFailure<Bus, Pin>> {
        let hint = hint.clamp(1, self.blocks().saturating_sub(start).max(1));
        self.open(start, hint as usize, false).await
    }

    /// Writes the next block of the stream. Returns once the card has taken it, which is before it is
    /// durable; the busy time after it is waited for by who comes next.
    ///
    /// # Errors
    /// [`Error::NoStream`], or those of [`write`](Card::write). The stream stays: the same block may be
    /// tried again, but for [`Error::Status`] and [`Error::BlocksMissing`], which come for ever.
    pub async fn push(&mut self, block: &Block) -> Result<(), WriteFailure<Bus, Pin>> {
        let pushed = match self.stream {
            Some(Stream {
                is_inner: false, ..
            }) => self.push_any(block).await,
            _ => Err(Error::NoStream),
        };
        pushed.map_err(|cause| self.kept(cause))
    }

    /// Ends the stream. All its blocks are durable when it returns: the stop token was sent, busy has
    /// ended, CMD13 is clean, and the card counts as many blocks as it was sent.
    ///
    /// # Errors
    /// [`Error::NoStream`], or those of [`write`](Card::write). After [`Error::Busy`] it may be tried
    /// again; else the stream is gone.
    pub async fn end(&mut self) -> Result<(), WriteFailure<Bus, Pin>> {
        match self.stream {
            Some(Stream {
                is_inner: false, ..
            }) => self.end_any().await,
            _ => Err(self.kept(Error::NoStream)),
        }
    }

    /// Whether a stream is open.
    pub fn is_streaming(&self) -> bool {
        self.stream.is_some_and(|stream| !stream.is_inner)
    }

    fn kept(&self, cause: Failure<Bus, Pin>) -> WriteFailure<Bus, Pin> {
        WriteError {
            cause,
            kept_blocks: self.stream.map_or(0, |stream| stream.kept),
        }
    }

    fn give_up(&mut self, cause: Failure<Bus, Pin>) -> WriteFailure<Bus, Pin> {
        let error = self.kept(cause);
        self.stream = None;
        error
    }

    fn check_write(&mut self, start: u32, blocks: usize) -> Result<(), Failure<Bus, Pin>> {
        if self.state == State::Absent {
            return Err(Error::NotReady);
        }
        if self.is_streaming() {
            return Err(Error::StreamOpen);
        }
        // What a dropped write left behind.
        self.stream = None;
        if !self.check(start, blocks) {
            return Err(Error::OutOfRange);
        }
        match self.csd.is_write_protected {
            true => Err(Error::WriteProtected),
            false => Ok(()),
        }
    }

    async fn open(
        &mut self,
        start: u32,
        blocks: usize,
        is_inner: bool,
    ) -> Result<(), WriteFailure<Bus, Pin>> {
        if let Err(cause) = self.check_write(start, blocks) {
            return Err(WriteError {
                cause,
                kept_blocks: 0,
            });
        }
        self.stream = None;
        let stream = Stream {
            start,
            next: start,
            kept: 0,
            hint: blocks as u32,
            opened: None,
            status: 0,
            is_inner,
        };
        let mut retries = RETRIES;
        while let Err(error) = self.try_open(stream).await {
            if let Err(cause) = self.may_retry(error, &mut retries) {
                return Err(self.give_up(cause));
            }
        }
        Ok(())
    }

    /// ACMD23 and CMD25. The stream is there once the card has taken them.
    async fn try_open(&mut self, stream: Stream) -> Result<(), Failure<Bus, Pin>> {
        self.settle().await?;
        self.state = State::Unsettled(Begun::Write);
        self.line.select()?;
        let left = (stream.start.saturating_add(stream.hint)).saturating_sub(stream.next);
        if left > 1 {
            self.line.clear(55, 0).await?;
            // The count has 23 bits (table 7-4).
            self.line.clear(23, left.min((1 << 23) - 1)).await?;
        }
        self.line.clear(25, self.place(stream.next)).await?;
        self.stream = Some(Stream {
            opened: Some(stream.next),
            ..stream
        });
        self.state = State::Streaming;
        Ok(())
    }

    async fn push_any(&mut self, block: &Block) -> Result<(), Failure<Bus, Pin>> {
        let mut retries = RETRIES;
        while let Err(error) = self.try_push(block).await {
            self.may_retry(error, &mut retries)?;
        }
        Ok(())
    }

    async fn try_push(&mut self, block: &Block) -> Result<(), Failure<Bus, Pin>> {
        let stream = self.stream.ok_or(Error::NoStream)?;
        if !self.check(stream.next, 1) {
            return Err(Error::OutOfRange);
        }
        if self.state != State::Streaming {
            self.settle().await?;
            let stream = self.stream.ok_or(Error::NoStream)?;
            self.try_open(stream).await?;
        }
        // Nothing is begun by looking: a future dropped here costs nothing.
        self.line.wait().await?;
        self.state = State::Unsettled(Begun::Write);
        self.line.transmit(START_OF_MANY, block).await?;
        self.state = State::Streaming;
        if let Some(stream) = &mut self.stream {
            stream.next += 1;
        }
        Ok(())
    }

    async fn end_any(&mut self) -> Result<(), WriteFailure<Bus, Pin>> {
        let mut retries = RETRIES;
        while let Err(error) = self.close().await {
            match self.may_retry(error, &mut retries) {
                Ok(()) => (),
                Err(Error::Busy) => return Err(self.kept(Error::Busy)),
                Err(cause) => return Err(self.give_up(cause)),
            }
        }
        self.stream = None;
        Ok(())
    }

    /// Stops the stream's CMD25, if one is open, and finds out what the card has kept.
    pub(crate) async fn close(&mut self) -> Result<(), Failure<Bus, Pin>> {
        let status = match self.state {
            State::Absent => return Err(Error::NotReady),
            State::Idle => 0,
            State::Streaming => self.stop().await?,
            State::Unsettled(begun) => self.recover(begun).await?,
        };
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let Some(opened) = stream.opened else {
            return Ok(());
        };
        stream.status |= status;
        let (status, before, sent) = (stream.status, opened - stream.start, stream.next - opened);
        let written = self.count_written().await?.min(sent);
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        stream.kept = before + written;
        if status != 0 {
            return Err(Error::Status(status));
        }
        if written < sent {
            return Err(Error::BlocksMissing);
        }
        stream.opened = None;
        Ok(())
    }

    /// The stop token; returns the second byte of R2.
    async fn stop(&mut self) -> Result<u8, Failure<Bus, Pin>> {
        self.line.wait().await?;
        self.state = State::Unsettled(Begun::Write);
        self.line.stop_token().await?;
        self.line.wait().await?;
        let status = self.line.status().await?;
        if let Some(stream) = &mut self.stream {
            stream.status |= status;
        }
        Ok(status)
    }

    /// ACMD22. A card that did not hear the stop token is clean in CMD13, but refuses this.
    async fn count_written(&mut self) -> Result<u32, Failure<Bus, Pin>> {
        self.state = State::Unsettled(Begun::Write);
        self.line.select()?;
        let written = self.line.blocks_written().await?;
        self.line.release().await?;
        self.state = State::Idle;
        Ok(written)
    }
}
