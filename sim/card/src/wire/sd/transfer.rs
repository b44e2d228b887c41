//! Blocks in both directions (SD Physical Layer Simplified Specification, 4.3.3, 4.3.4, 4.12.2, 4.12.3).

use super::card::SdBusCard;
use super::lines::LineSums;
use super::status::{State, bits};
use crate::{BLOCK_BYTES, Block, CardError};

/// What the card says of a block on DAT0 (4.12.3): the three bits between start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CrcStatus {
    /// It came as it was sent, and was taken.
    Positive = 0b010,
    /// A checksum does not hold.
    Negative = 0b101,
    /// It could not be programmed, as the bits say over SPI (7.3.3.1). The card status tells why.
    Failed = 0b110,
}

/// A block on its way to the host, or the lack of one.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    /// Length of the block in the buffer; none if the card failed, and waits for CMD12.
    pub(super) bytes: Option<usize>,
    /// It begins no earlier than this, ...
    pub(super) ready_ns: u64,
    /// ... and than this clock.
    pub(super) earliest: u64,
    /// Clock of its start bit, once that has passed.
    pub(super) began: Option<u64>,
    /// Byte of the card at which the next block is.
    next: Option<u64>,
}

/// A write under way.
#[derive(Clone, Copy)]
pub(super) struct Write {
    /// Whether it is CMD25.
    pub(super) many: bool,
    /// Block that comes next.
    pub(super) block: u64,
    /// A block was refused: those after it are left alone.
    pub(super) failed: bool,
}

impl SdBusCard {
    /// CMD17 and CMD18; returns errors for the response.
    pub(super) fn begin_read(&mut self, argument: u32, many: bool) -> u32 {
        let address = self.options.kind.address_of(argument);
        if !self.is_in_range(address) {
            bits::OUT_OF_RANGE
        } else if self.straddles(address) {
            bits::ADDRESS_ERROR
        } else {
            self.send_block(address, many, true);
            0
        }
    }

    /// CMD24 and CMD25; returns errors for the response.
    pub(super) fn begin_write(&mut self, argument: u32, many: bool) -> u32 {
        let address = self.options.kind.address_of(argument);
        if !self.is_in_range(address) {
            bits::OUT_OF_RANGE
        } else if !address.is_multiple_of(BLOCK_BYTES as u64) {
            bits::ADDRESS_ERROR
        } else if self.session.block_bytes != BLOCK_BYTES as u64 {
            // WRITE_BL_PARTIAL is 0.
            bits::BLOCK_LEN_ERROR
        } else {
            self.session.blocks_written = 0;
            self.state = State::Rcv(Write {
                many,
                block: address / BLOCK_BYTES as u64,
                failed: false,
            });
            0
        }
    }

    /// Sends a register or a status.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        self.send(Some(bytes.len()), 0, None);
    }

    /// The block was taken: the next one follows, or the card is done.
    pub(super) fn next_block(&mut self) {
        let State::Data(sending) = self.state else {
            return;
        };
        match sending.next {
            Some(address) => self.send_block(address, true, false),
            None => self.state = State::Tran,
        }
    }

    /// Sends the block at this byte of the card. If it cannot, it notes why and stays in `data`
    /// (4.3.3): the host's time runs out, and CMD12 ends it.
    fn send_block(&mut self, address: u64, many: bool, first: bool) {
        let (block, within) = (address / BLOCK_BYTES as u64, address % BLOCK_BYTES as u64);
        let error = if !self.is_in_range(address) {
            bits::OUT_OF_RANGE
        } else if self.straddles(address) {
            bits::ADDRESS_ERROR
        } else {
            let now_ns = self.pace.now_ns();
            match self.card.read(now_ns, block, first, &mut self.buffer) {
                Ok(wait_ns) => {
                    let (from, length) = (within as usize, self.session.block_bytes as usize);
                    self.buffer.copy_within(from..from + length, 0);
                    let next = many.then_some(address + length as u64);
                    return self.send(Some(length), wait_ns, next);
                }
                Err(CardError::OutOfRange { .. }) => bits::OUT_OF_RANGE,
                Err(CardError::Unreadable { .. }) => bits::CARD_ECC_FAILED,
                Err(CardError::WornOut) => bits::ERROR,
            }
        };
        self.status.note(error);
        self.send(None, 0, None);
    }

    fn send(&mut self, bytes: Option<usize>, wait_ns: u64, next: Option<u64>) {
        self.state = State::Data(Sending {
            bytes,
            ready_ns: self.pace.now_ns() + wait_ns,
            earliest: self.clocks + u64::from(self.options.nac_clocks),
            began: None,
            next,
        });
    }

    /// Takes a block of a write; returns what the CRC status says.
    pub(super) fn take_block(
        &mut self,
        mut write: Write,
        data: &Block,
        sums: &LineSums,
    ) -> CrcStatus {
        let stored = match self.session.width.sums_hold(data, sums) {
            true => self.store(&write, data),
            false => Err(CrcStatus::Negative),
        };
        let status = match stored {
            Ok(busy_ns) => {
                write.block += 1;
                self.session.blocks_written += 1;
                self.be_busy(busy_ns);
                CrcStatus::Positive
            }
            Err(status) => {
                write.failed = true;
                status
            }
        };
        self.state = match (write.many, write.failed) {
            (true, _) => State::Rcv(write),
            (false, false) => State::Prg,
            (false, true) => State::Tran,
        };
        status
    }

    /// Stores a block; returns how long the card is busy, in ns, or how it refuses.
    fn store(&mut self, write: &Write, data: &Block) -> Result<u64, CrcStatus> {
        let error = if self.options.write_protected {
            bits::WP_VIOLATION
        } else if write.block >= self.registers.blocks {
            bits::OUT_OF_RANGE
        } else {
            let now_ns = self.pace.now_ns();
            let stored = match write.many {
                true => self.card.stream_write(now_ns, write.block, data),
                false => self.card.write(now_ns, write.block, data),
            };
            match stored {
                Ok(busy_ns) => return Ok(busy_ns),
                Err(CardError::OutOfRange { .. }) => bits::OUT_OF_RANGE,
                Err(CardError::Unreadable { .. } | CardError::WornOut) => bits::ERROR,
            }
        };
        self.status.note(error);
        Err(CrcStatus::Failed)
    }

    /// Ends a write: what was accepted is durable once the card is no longer busy.
    pub(super) fn end_write(&mut self) {
        // CMD12 may come while the block before it keeps the card busy.
        let start_ns = self.pace.now_ns().max(self.busy_until_ns);
        self.busy_until_ns = start_ns + self.card.stream_end(start_ns);
        self.state = State::Prg;
    }

    pub(super) fn be_busy(&mut self, busy_ns: u64) {
        self.busy_until_ns = self.pace.now_ns() + busy_ns;
    }

    pub(super) fn is_in_range(&self, address: u64) -> bool {
        address / (BLOCK_BYTES as u64) < self.registers.blocks
    }

    /// READ_BLK_MISALIGN is 0: no block of the host lies in two of the card.
    fn straddles(&self, address: u64) -> bool {
        address % BLOCK_BYTES as u64 + self.session.block_bytes > BLOCK_BYTES as u64
    }
}
