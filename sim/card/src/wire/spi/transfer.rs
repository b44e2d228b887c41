//! Data blocks in both directions (SD Physical Layer Simplified Specification, 7.2.3, 7.2.4, 7.3.3).

use super::card::SpiCard;
use super::command::{Response, r2};
use super::levels::RELEASED;
use super::state::{Next, Sending, Transfer, Write};
use crate::wire::crc::crc16;
use crate::{BLOCK_BYTES, CardError};

/// Start token of a block, except those of CMD25 (7.3.3.2).
const START_BLOCK: u8 = 0xFE;
/// Start token of a block of CMD25.
const START_MULTIPLE_WRITE: u8 = 0xFC;
/// Token after the last block of CMD25.
const STOP_TRANSMISSION: u8 = 0xFD;
/// Data error token (7.3.3.3): out of range.
const ERROR_OUT_OF_RANGE: u8 = 1 << 3;
/// Data error token: more bit errors than can be corrected.
const ERROR_CARD_ECC_FAILED: u8 = 1 << 2;
/// Data error token: any other error.
const ERROR: u8 = 1;

/// Data responses (7.3.3.1); the upper three bits are undefined.
const ACCEPTED: u8 = 0xE5;
const CRC_ERROR: u8 = 0xEB;
const WRITE_ERROR: u8 = 0xED;

impl SpiCard {
    /// Returns the next byte of the data transfer, which the card sends when it neither responds nor is
    /// busy.
    pub(super) fn next_data_byte(&mut self, start_ns: u64) -> u8 {
        let Transfer::Sending(mut send) = self.transfer else {
            return RELEASED;
        };
        if send.gap_bytes > 0 || start_ns < send.ready_ns {
            send.gap_bytes = send.gap_bytes.saturating_sub(1);
            self.transfer = Transfer::Sending(send);
            return RELEASED;
        }
        let byte = self.buffer[send.at];
        send.at += 1;
        self.transfer = Transfer::Sending(send);
        if send.at == send.end {
            match send.next {
                Next::Nothing => self.transfer = Transfer::None,
                Next::Block(address) => self.send_block(address, true, false),
                Next::AwaitStop => self.transfer = Transfer::AwaitStop,
            }
        }
        byte
    }

    /// Starts sending a register.
    pub(super) fn send_register(&mut self, bytes: &[u8]) {
        self.fill_buffer(bytes);
        self.send_buffer(bytes.len() + 3, 0, Next::Nothing);
    }

    /// Starts sending the block at a byte address, or an error token.
    pub(super) fn send_block(&mut self, address: u64, is_multiple: bool, first: bool) {
        let length = self.session.block_bytes;
        match self.fetch(address, length, first) {
            Ok(wait_ns) => {
                let next = match is_multiple {
                    true => Next::Block(address + length),
                    false => Next::Nothing,
                };
                self.send_buffer(length as usize + 3, wait_ns, next);
            }
            Err((status, token)) => {
                self.session.status |= status;
                self.buffer[0] = token;
                self.send_buffer(
                    1,
                    0,
                    if is_multiple {
                        Next::AwaitStop
                    } else {
                        Next::Nothing
                    },
                );
            }
        }
    }

    /// Reads a block into the buffer; returns how long this takes, in ns, or the R2 bits and the error token
    /// for the failure.
    fn fetch(&mut self, address: u64, length: u64, first: bool) -> Result<u64, (u8, u8)> {
        let (block, within) = (address / BLOCK_BYTES as u64, address % BLOCK_BYTES as u64);
        if block >= self.registers.blocks {
            return Err((r2::OUT_OF_RANGE, ERROR_OUT_OF_RANGE));
        }
        if within + length > BLOCK_BYTES as u64 {
            // READ_BLK_MISALIGN is 0: a requested block must not cross a block boundary of the card.
            return Err((r2::ERROR, ERROR));
        }
        let (now_ns, mut data) = (self.pace.now_ns(), [0; BLOCK_BYTES]);
        let read = self.card.read(now_ns, block, first, &mut data);
        let wait_ns = read.map_err(error_bits)?;
        self.fill_buffer(&data[within as usize..(within + length) as usize]);
        Ok(wait_ns)
    }

    fn fill_buffer(&mut self, data: &[u8]) {
        let (end, sum) = (1 + data.len(), crc16(data).to_be_bytes());
        self.buffer[0] = START_BLOCK;
        self.buffer[1..end].copy_from_slice(data);
        self.buffer[end..end + 2].copy_from_slice(&sum);
    }

    fn send_buffer(&mut self, bytes: usize, wait_ns: u64, next: Next) {
        self.transfer = Transfer::Sending(Sending {
            ready_ns: self.pace.now_ns().saturating_add(wait_ns),
            gap_bytes: self.options.nac_bytes,
            at: 0,
            end: bytes,
            next,
        });
    }

    /// Accepts a token of a write; returns `false` if the byte is not a token.
    pub(super) fn begin_block(&mut self, write: Write, token: u8) -> bool {
        match (token, write.is_multiple) {
            (START_BLOCK, false) | (START_MULTIPLE_WRITE, true) => {
                self.transfer = Transfer::Receive { write, at: 0 };
            }
            (STOP_TRANSMISSION, true) => {
                self.end_write();
                // The byte after the stop token is undefined: some cards do not show busy yet.
                self.response = Response::after(1, &[]);
            }
            _ => return false,
        }
        true
    }

    /// Ends a write: accepted blocks are durable once the busy time is over.
    pub(super) fn end_write(&mut self) {
        let busy_ns = self.card.stream_end(self.pace.now_ns());
        self.start_busy(busy_ns);
        self.transfer = Transfer::None;
    }

    pub(super) fn start_busy(&mut self, busy_ns: u64) {
        let (now_ns, extra_ns) = (self.pace.now_ns(), self.faults.take_extra_busy_ns());
        self.card.extend_busy(now_ns, extra_ns);
        self.busy_until_ns = now_ns.saturating_add(busy_ns).saturating_add(extra_ns);
    }

    /// Receives the next byte of a block from the host.
    pub(super) fn receive_data_byte(&mut self, mut write: Write, at: usize, byte: u8) {
        self.buffer[at] = byte;
        let at = at + 1;
        if at < Transfer::RECEIVED_BYTES {
            self.transfer = Transfer::Receive { write, at };
            return;
        }
        let response = match self.store_block(&write) {
            Ok(busy_ns) => {
                write.block += 1;
                self.session.blocks_written += 1;
                self.start_busy(busy_ns);
                ACCEPTED
            }
            Err(response) => {
                write.failed = true;
                response
            }
        };
        self.response = Response::after(0, &[response]);
        self.transfer = if write.is_multiple {
            Transfer::AwaitToken(write)
        } else {
            Transfer::None
        };
    }

    /// Stores the block in the buffer; returns how long the card is busy, in ns, or the data response that
    /// rejects it.
    fn store_block(&mut self, write: &Write) -> Result<u64, u8> {
        let (data, sum) = self.buffer[..Transfer::RECEIVED_BYTES].split_at(BLOCK_BYTES);
        if self.session.crc_on && crc16(data).to_be_bytes() != sum {
            return Err(CRC_ERROR);
        }
        if self.options.write_protected {
            self.session.status |= r2::WRITE_PROTECT_VIOLATION;
            return Err(WRITE_ERROR);
        }
        if write.block >= self.registers.blocks {
            self.session.status |= r2::OUT_OF_RANGE;
            return Err(WRITE_ERROR);
        }
        let Ok(data) = data.try_into() else {
            return Err(WRITE_ERROR);
        };
        if write.failed {
            return Err(WRITE_ERROR);
        }
        let now_ns = self.pace.now_ns();
        let stored = match write.is_multiple {
            true => self.card.stream_write(now_ns, write.block, data),
            false => self.card.write(now_ns, write.block, data),
        };
        stored.map_err(|error| {
            self.session.status |= error_bits(error).0;
            WRITE_ERROR
        })
    }
}

/// Returns the R2 bits and the error token for a failed read.
fn error_bits(error: CardError) -> (u8, u8) {
    match error {
        CardError::OutOfRange { .. } => (r2::OUT_OF_RANGE, ERROR_OUT_OF_RANGE),
        CardError::Unreadable { .. } => (r2::CARD_ECC_FAILED, ERROR_CARD_ECC_FAILED),
        CardError::WornOut => (r2::ERROR, ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_card_error_has_its_own_bits() {
        let (block, blocks) = (5, 5);
        // The expected bits of R2 and of the data error token are those of 7.3.2.3 and 7.3.3.3.
        assert_eq!(
            error_bits(CardError::OutOfRange { block, blocks }),
            (0x80, 8)
        );
        assert_eq!(error_bits(CardError::Unreadable { block }), (0x10, 4));
        assert_eq!(error_bits(CardError::WornOut), (0x04, 1));
    }
}
