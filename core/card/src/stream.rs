//! Writing: single blocks, and a stream that stays open across calls.

use crate::card::{Card, Operation, State};
use crate::error::{Error, WriteError};
use crate::limits::RETRIES;
use crate::transport::{START_BLOCK, START_MULTIPLE_WRITE, TransportError};
use crate::{Block, SetClock};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// A write of consecutive blocks. A stream may be stopped and reopened on the card any number of times.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    start: u32,
    /// Address of the next block.
    next: u32,
    /// Number of blocks from the start that are durable.
    durable_blocks: u32,
    /// Number of blocks announced to the card (ACMD23).
    hint: u32,
    /// First block of the open CMD25, until its outcome is known.
    command_start: Option<u32>,
    /// Status bits that the card has reported for the stream. Accumulated here, because reading the status
    /// clears it in the card.
    status: u8,
    /// The stream belongs to a call of `write`; `push` and `end` must not continue it.
    belongs_to_write: bool,
}

type WriteFailure<Bus, Pin> = WriteError<TransportError<Bus, Pin>>;

impl<Bus: SpiBus, Pin: OutputPin, Delay: DelayNs, Clock: SetClock<Bus>>
    Card<Bus, Pin, Delay, Clock>
{
    /// Writes consecutive blocks; they are durable when the call returns. Uses CMD24 for a single block and a
    /// stream for more.
    ///
    /// # Errors
    /// [`Error::StreamOpen`], [`Error::OutOfRange`], [`Error::WriteProtected`],
    /// [`Error::NotReady`], [`Error::Busy`], [`Error::Status`], or the last error once all retries have
    /// failed.
    pub async fn write(
        &mut self,
        start: u32,
        blocks: &[Block],
    ) -> Result<(), WriteFailure<Bus, Pin>> {
        if let [block] = blocks {
            let written = self.write_one(start, block).await;
            return written.map_err(|cause| WriteError {
                cause,
                durable_blocks: 0,
            });
        }
        if blocks.is_empty() {
            return Ok(());
        }
        self.open(start, blocks.len(), true).await?;
        for block in blocks {
            if let Err(cause) = self.push_block(block).await {
                return Err(self.give_up(cause));
            }
        }
        self.end_stream().await
    }

    async fn write_one(
        &mut self,
        start: u32,
        block: &Block,
    ) -> Result<(), TransportError<Bus, Pin>> {
        self.check_write(start, 1)?;
        let mut retries = RETRIES;
        while let Err(error) = self.try_write_one(start, block).await {
            self.consume_retry(error, &mut retries)?;
        }
        Ok(())
    }

    async fn try_write_one(
        &mut self,
        start: u32,
        block: &Block,
    ) -> Result<(), TransportError<Bus, Pin>> {
        self.resynchronise().await?;
        self.state = State::Unknown(Operation::Write);
        self.transport.select()?;
        self.transport
            .command_ok(24, self.block_address(start))
            .await?;
        self.transport.wait_ready().await?;
        self.transport.send_block(START_BLOCK, block).await?;
        self.transport.wait_ready().await?;
        let status = self.transport.status().await?;
        self.transport.deselect().await?;
        self.state = State::Idle;
        match status {
            0 => Ok(()),
            status => Err(Error::Status(status)),
        }
    }

    /// Opens a stream of consecutive blocks. `hint` is the number of blocks expected: the card may erase
    /// that many ahead (ACMD23), and those that are never written hold undefined data afterwards. A hint
    /// below two is not sent.
    ///
    /// # Errors
    /// Those of [`write`](Card::write).
    pub async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteFailure<Bus, Pin>> {
        let hint = hint.clamp(1, self.blocks().saturating_sub(start).max(1));
        self.open(start, hint as usize, false).await
    }

    /// Writes the next block of the stream. Returns once the card has accepted it, before it is durable;
    /// the next call waits for the busy time that follows.
    ///
    /// # Errors
    /// [`Error::NoStream`], or those of [`write`](Card::write). The stream stays open and the same
    /// block may be retried, except after [`Error::Status`] and [`Error::BlocksMissing`], which are
    /// permanent.
    pub async fn push(&mut self, block: &Block) -> Result<(), WriteFailure<Bus, Pin>> {
        let pushed = match self.stream {
            Some(Stream {
                belongs_to_write: false,
                ..
            }) => self.push_block(block).await,
            _ => Err(Error::NoStream),
        };
        pushed.map_err(|cause| self.write_error(cause))
    }

    /// Ends the stream. All its blocks are durable when the call returns: the stop token has been sent, busy has ended,
    /// CMD13 reports no error, and the card's count of written blocks equals the number sent.
    ///
    /// # Errors
    /// [`Error::NoStream`], or those of [`write`](Card::write). After [`Error::Busy`] the call may
    /// be repeated; after any other error the stream is gone.
    pub async fn end(&mut self) -> Result<(), WriteFailure<Bus, Pin>> {
        match self.stream {
            Some(Stream {
                belongs_to_write: false,
                ..
            }) => self.end_stream().await,
            _ => Err(self.write_error(Error::NoStream)),
        }
    }

    /// Returns true while a stream is open.
    pub fn is_streaming(&self) -> bool {
        self.stream.is_some_and(|stream| !stream.belongs_to_write)
    }

    fn write_error(&self, cause: TransportError<Bus, Pin>) -> WriteFailure<Bus, Pin> {
        WriteError {
            cause,
            durable_blocks: self.stream.map_or(0, |stream| stream.durable_blocks),
        }
    }

    fn give_up(&mut self, cause: TransportError<Bus, Pin>) -> WriteFailure<Bus, Pin> {
        let error = self.write_error(cause);
        self.stream = None;
        error
    }

    fn check_write(&mut self, start: u32, blocks: usize) -> Result<(), TransportError<Bus, Pin>> {
        if self.state == State::Absent {
            return Err(Error::NotReady);
        }
        if self.is_streaming() {
            return Err(Error::StreamOpen);
        }
        // Discard the stream of a `write` whose future was dropped.
        self.stream = None;
        if !self.is_in_range(start, blocks) {
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
        belongs_to_write: bool,
    ) -> Result<(), WriteFailure<Bus, Pin>> {
        if let Err(cause) = self.check_write(start, blocks) {
            return Err(WriteError {
                cause,
                durable_blocks: 0,
            });
        }
        self.stream = None;
        let stream = Stream {
            start,
            next: start,
            durable_blocks: 0,
            hint: blocks as u32,
            command_start: None,
            status: 0,
            belongs_to_write,
        };
        let mut retries = RETRIES;
        while let Err(error) = self.try_open(stream).await {
            if let Err(cause) = self.consume_retry(error, &mut retries) {
                return Err(self.give_up(cause));
            }
        }
        Ok(())
    }

    /// Sends ACMD23 and CMD25. The stream exists once the card has accepted both.
    async fn try_open(&mut self, stream: Stream) -> Result<(), TransportError<Bus, Pin>> {
        self.resynchronise().await?;
        self.state = State::Unknown(Operation::Write);
        self.transport.select()?;
        let left = (stream.start.saturating_add(stream.hint)).saturating_sub(stream.next);
        if left > 1 {
            self.transport.command_ok(55, 0).await?;
            // The count has 23 bits (table 7-4).
            self.transport
                .command_ok(23, left.min((1 << 23) - 1))
                .await?;
        }
        self.transport
            .command_ok(25, self.block_address(stream.next))
            .await?;
        self.stream = Some(Stream {
            command_start: Some(stream.next),
            ..stream
        });
        self.state = State::Streaming;
        Ok(())
    }

    async fn push_block(&mut self, block: &Block) -> Result<(), TransportError<Bus, Pin>> {
        let mut retries = RETRIES;
        while let Err(error) = self.try_push(block).await {
            self.consume_retry(error, &mut retries)?;
        }
        Ok(())
    }

    async fn try_push(&mut self, block: &Block) -> Result<(), TransportError<Bus, Pin>> {
        let stream = self.stream.ok_or(Error::NoStream)?;
        if !self.is_in_range(stream.next, 1) {
            return Err(Error::OutOfRange);
        }
        if self.state != State::Streaming {
            self.resynchronise().await?;
            let stream = self.stream.ok_or(Error::NoStream)?;
            self.try_open(stream).await?;
        }
        // Polling starts no transaction: dropping the future here costs nothing.
        self.transport.wait_ready().await?;
        self.state = State::Unknown(Operation::Write);
        self.transport
            .send_block(START_MULTIPLE_WRITE, block)
            .await?;
        self.state = State::Streaming;
        if let Some(stream) = &mut self.stream {
            stream.next += 1;
        }
        Ok(())
    }

    async fn end_stream(&mut self) -> Result<(), WriteFailure<Bus, Pin>> {
        let mut retries = RETRIES;
        while let Err(error) = self.close().await {
            match self.consume_retry(error, &mut retries) {
                Ok(()) => (),
                Err(Error::Busy) => return Err(self.write_error(Error::Busy)),
                Err(cause) => return Err(self.give_up(cause)),
            }
        }
        self.stream = None;
        Ok(())
    }

    /// Stops the open CMD25, if any, and determines how many blocks are durable.
    pub(crate) async fn close(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        match self.state {
            State::Absent => return Err(Error::NotReady),
            State::Idle => (),
            State::Streaming => self.stop().await?,
            State::Unknown(operation) => self.recover(operation).await?,
        }
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        let Some(command_start) = stream.command_start else {
            return Ok(());
        };
        let (status, before, sent) = (
            stream.status,
            command_start - stream.start,
            stream.next - command_start,
        );
        let written = self.count_written().await?.min(sent);
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        stream.durable_blocks = before + written;
        if status != 0 {
            return Err(Error::Status(status));
        }
        if written < sent {
            return Err(Error::BlocksMissing);
        }
        stream.command_start = None;
        Ok(())
    }

    /// Sends the stop token, and notes the status of the stream.
    async fn stop(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        self.transport.wait_ready().await?;
        self.state = State::Unknown(Operation::Write);
        self.transport.stop_token().await?;
        self.transport.wait_ready().await?;
        self.note_status().await
    }

    /// Sends CMD13, and adds the status to that of the open CMD25: no later call reads it again.
    pub(crate) async fn note_status(&mut self) -> Result<(), TransportError<Bus, Pin>> {
        let status = self.transport.status().await?;
        if let Some(stream) = &mut self.stream
            && stream.command_start.is_some()
        {
            stream.status |= status;
        }
        Ok(())
    }

    /// Reads the number of written blocks (ACMD22). A card that missed the stop token reports no error in
    /// CMD13, but rejects this command.
    async fn count_written(&mut self) -> Result<u32, TransportError<Bus, Pin>> {
        self.state = State::Unknown(Operation::Write);
        self.transport.select()?;
        let written = self.transport.blocks_written().await?;
        self.transport.deselect().await?;
        self.state = State::Idle;
        Ok(written)
    }
}
