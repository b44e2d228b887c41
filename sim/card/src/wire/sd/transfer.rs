//! Data blocks in both directions (SD Physical Layer Simplified Specification, 4.3.3, 4.3.4, 4.12.2,
//! 4.12.3).

use super::card::SdBusCard;
use super::lines::{CrcStatus, LineSums};
use super::status::{Sending, State, Write, bits};
use crate::{BLOCK_BYTES, Block, CardError};

impl SdBusCard {
    /// Executes CMD17 or CMD18; returns error bits for the response.
    pub(super) fn begin_read(&mut self, argument: u32, is_multiple: bool) -> u32 {
        let address = self.options.kind.address_of(argument);
        if !self.is_in_range(address) {
            bits::OUT_OF_RANGE
        } else if self.straddles(address) {
            bits::ADDRESS_ERROR
        } else {
            self.send_block(address, is_multiple, true);
            0
        }
    }

    /// Executes CMD24 or CMD25; returns error bits for the response.
    pub(super) fn begin_write(&mut self, argument: u32, is_multiple: bool) -> u32 {
        let address = self.options.kind.address_of(argument);
        if !self.is_in_range(address) {
            bits::OUT_OF_RANGE
        } else if !address.is_multiple_of(BLOCK_BYTES as u64) {
            bits::ADDRESS_ERROR
        } else if self.session.block_bytes != BLOCK_BYTES as u64 {
            // WRITE_BL_PARTIAL is 0, so only whole blocks can be written.
            bits::BLOCK_LEN_ERROR
        } else {
            self.session.blocks_written = 0;
            self.state = State::Rcv(Write {
                is_multiple,
                block: address / BLOCK_BYTES as u64,
                failed: false,
            });
            0
        }
    }

    /// Starts sending a register or a status.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        self.send(Some(bytes.len()), 0, None);
    }

    /// Starts sending the next block or ends the read, after a block was transferred.
    pub(super) fn next_block(&mut self) {
        let State::Data(sending) = self.state else {
            return;
        };
        match sending.next {
            Some(address) => self.send_block(address, true, false),
            None => self.state = State::Tran,
        }
    }

    /// Starts sending the block at a byte address. On failure, sets an error bit of the status and stays in
    /// the state `data` (4.3.3): the host times out and sends CMD12.
    fn send_block(&mut self, address: u64, is_multiple: bool, first: bool) {
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
                    let next = is_multiple.then_some(address + length as u64);
                    return self.send(Some(length), wait_ns, next);
                }
                Err(CardError::OutOfRange { .. }) => bits::OUT_OF_RANGE,
                Err(CardError::Unreadable { .. }) => bits::CARD_ECC_FAILED,
                Err(CardError::WornOut) => bits::ERROR,
            }
        };
        self.status.set_error(error);
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

    /// Receives a block of a write; returns the CRC status.
    pub(super) fn receive_block(
        &mut self,
        mut write: Write,
        data: &Block,
        sums: &LineSums,
    ) -> CrcStatus {
        let stored = match self.session.width.sums_match(data, sums) {
            true => self.store(&write, data),
            false => Err(CrcStatus::Negative),
        };
        let status = match stored {
            Ok(busy_ns) => {
                write.block += 1;
                self.session.blocks_written += 1;
                self.start_busy(busy_ns);
                CrcStatus::Positive
            }
            Err(status) => {
                write.failed = true;
                status
            }
        };
        self.state = match (write.is_multiple, write.failed) {
            (true, _) => State::Rcv(write),
            (false, false) => State::Prg,
            (false, true) => State::Tran,
        };
        status
    }

    /// Stores a block; returns how long the card is busy, in ns, or the CRC status that rejects it.
    fn store(&mut self, write: &Write, data: &Block) -> Result<u64, CrcStatus> {
        let error = if self.options.write_protected {
            bits::WP_VIOLATION
        } else if write.block >= self.registers.blocks {
            bits::OUT_OF_RANGE
        } else {
            let now_ns = self.pace.now_ns();
            let stored = match write.is_multiple {
                true => self.card.stream_write(now_ns, write.block, data),
                false => self.card.write(now_ns, write.block, data),
            };
            match stored {
                Ok(busy_ns) => return Ok(busy_ns),
                Err(CardError::OutOfRange { .. }) => bits::OUT_OF_RANGE,
                Err(CardError::Unreadable { .. } | CardError::WornOut) => bits::ERROR,
            }
        };
        self.status.set_error(error);
        Err(CrcStatus::Failed)
    }

    /// Ends a write: accepted blocks are durable once the busy time is over.
    pub(super) fn end_write(&mut self) {
        // CMD12 may arrive while the card is still busy with the previous block.
        let start_ns = self.pace.now_ns().max(self.busy_until_ns);
        self.busy_until_ns = start_ns + self.card.stream_end(start_ns);
        self.state = State::Prg;
    }

    pub(super) fn start_busy(&mut self, busy_ns: u64) {
        self.busy_until_ns = self.pace.now_ns() + busy_ns;
    }

    pub(super) fn is_in_range(&self, address: u64) -> bool {
        address / (BLOCK_BYTES as u64) < self.registers.blocks
    }

    /// Returns true if the requested block would cross a block boundary of the card, which READ_BLK_MISALIGN
    /// = 0 forbids.
    fn straddles(&self, address: u64) -> bool {
        address % BLOCK_BYTES as u64 + self.session.block_bytes > BLOCK_BYTES as u64
    }
}
