//! Data blocks in both directions (SD Physical Layer Simplified Specification, 7.2.3, 7.2.4, 7.3.3).

use super::card::{RELEASED, SpiCard};
use super::command::{Answer, r2};
use crate::wire::crc::crc16;
use crate::{BLOCK_BYTES, CardError};

/// Token before a block, except the blocks of CMD25 (7.3.3.2).
const START_BLOCK: u8 = 0xFE;
/// Token before a block of CMD25.
const START_BLOCK_OF_MANY: u8 = 0xFC;
/// Token after the last block of CMD25.
const STOP: u8 = 0xFD;
/// Data error token (7.3.3.3): out of range.
const ERROR_OUT_OF_RANGE: u8 = 1 << 3;
/// Data error token: more wrong bits than can be corrected.
const ERROR_CARD_ECC_FAILED: u8 = 1 << 2;
/// Data error token: an error of no other kind.
const ERROR: u8 = 1;

/// Answers to a block (7.3.3.1); the upper three bits are not defined.
const ACCEPTED: u8 = 0xE5;
const CRC_ERROR: u8 = 0xEB;
const WRITE_ERROR: u8 = 0xED;

/// Token, data and checksum.
pub(super) const BUFFER_BYTES: usize = 1 + BLOCK_BYTES + 2;

/// What the card does with data.
#[derive(Clone, Copy)]
pub(super) enum Task {
    /// Nothing.
    None,
    /// Sends the buffer.
    Send(Send),
    /// Sent an error token where a block was due; waits for CMD12.
    Stalled,
    /// Waits for a token from the host.
    Await(Write),
    /// Takes a block; `at` bytes of it are there.
    Receive { write: Write, at: usize },
}

impl Task {
    /// Data and checksum.
    pub(super) const RECEIVED_BYTES: usize = BLOCK_BYTES + 2;
}

/// A block on its way to the host.
#[derive(Clone, Copy)]
pub(super) struct Send {
    /// The token comes no earlier than this, ...
    ready_ns: u64,
    /// ... and after so many bytes more.
    gap_bytes: u8,
    /// Next byte of the buffer.
    pub(super) at: usize,
    /// Where it ends.
    pub(super) end: usize,
    then: Then,
}

/// What follows a block sent.
#[derive(Clone, Copy)]
enum Then {
    Nothing,
    /// The block at this byte.
    Block(u64),
    Stall,
}

/// A write under way.
#[derive(Clone, Copy)]
pub(super) struct Write {
    /// Whether it is CMD25.
    pub(super) many: bool,
    /// Block that comes next.
    pub(super) block: u64,
    /// A block was refused: so are all after it.
    pub(super) failed: bool,
}

impl SpiCard {
    /// What the card puts on the wire beside answers and busy.
    pub(super) fn drive(&mut self, start_ns: u64) -> u8 {
        let Task::Send(mut send) = self.task else {
            return RELEASED;
        };
        if send.gap_bytes > 0 || start_ns < send.ready_ns {
            send.gap_bytes = send.gap_bytes.saturating_sub(1);
            self.task = Task::Send(send);
            return RELEASED;
        }
        let byte = self.buffer[send.at];
        send.at += 1;
        self.task = Task::Send(send);
        if send.at == send.end {
            match send.then {
                Then::Nothing => self.task = Task::None,
                Then::Block(address) => self.send_block(address, true, false),
                Then::Stall => self.task = Task::Stalled,
            }
        }
        byte
    }

    /// Sends a register.
    pub(super) fn send_register(&mut self, bytes: &[u8]) {
        self.fill_buffer(bytes);
        self.send_buffer(bytes.len() + 3, 0, Then::Nothing);
    }

    /// Sends the block at this byte of the card, or an error token if that cannot be.
    pub(super) fn send_block(&mut self, address: u64, many: bool, first: bool) {
        let length = self.session.block_bytes;
        match self.fetch(address, length, first) {
            Ok(wait_ns) => {
                let then = match many {
                    true => Then::Block(address + length),
                    false => Then::Nothing,
                };
                self.send_buffer(length as usize + 3, wait_ns, then);
            }
            Err((status, token)) => {
                self.session.status |= status;
                self.buffer[0] = token;
                self.send_buffer(1, 0, if many { Then::Stall } else { Then::Nothing });
            }
        }
    }

    /// Reads a block into the buffer; returns how long that takes, in ns, or what R2 and an error token
    /// say of it.
    fn fetch(&mut self, address: u64, length: u64, first: bool) -> Result<u64, (u8, u8)> {
        let (block, within) = (address / BLOCK_BYTES as u64, address % BLOCK_BYTES as u64);
        if block >= self.registers.blocks {
            return Err((r2::OUT_OF_RANGE, ERROR_OUT_OF_RANGE));
        }
        if within + length > BLOCK_BYTES as u64 {
            // READ_BLK_MISALIGN is 0: no block of the host straddles two of the card.
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

    fn send_buffer(&mut self, bytes: usize, wait_ns: u64, then: Then) {
        self.task = Task::Send(Send {
            ready_ns: self.pace.now_ns().saturating_add(wait_ns),
            gap_bytes: self.options.nac_bytes,
            at: 0,
            end: bytes,
            then,
        });
    }

    /// Takes a token for a write; `false` if it is none.
    pub(super) fn begin_block(&mut self, write: Write, token: u8) -> bool {
        match (token, write.many) {
            (START_BLOCK, false) | (START_BLOCK_OF_MANY, true) => {
                self.task = Task::Receive { write, at: 0 };
            }
            (STOP, true) => {
                self.end_write();
                // The byte after the token is not defined: some cards do not show busy yet.
                self.answer = Answer::after(1, &[]);
            }
            _ => return false,
        }
        true
    }

    /// Ends a write: what was accepted is durable once the card is no longer busy.
    pub(super) fn end_write(&mut self) {
        let busy_ns = self.card.stream_end(self.pace.now_ns());
        self.be_busy(busy_ns);
        self.task = Task::None;
    }

    pub(super) fn be_busy(&mut self, busy_ns: u64) {
        let (now_ns, extra_ns) = (self.pace.now_ns(), self.faults.take_extra_busy_ns());
        self.card.stall(now_ns, extra_ns);
        self.busy_until_ns = now_ns.saturating_add(busy_ns).saturating_add(extra_ns);
    }

    /// Takes a byte of a block.
    pub(super) fn receive(&mut self, mut write: Write, at: usize, byte: u8) {
        self.buffer[at] = byte;
        let at = at + 1;
        if at < Task::RECEIVED_BYTES {
            self.task = Task::Receive { write, at };
            return;
        }
        let answer = match self.store_block(&write) {
            Ok(busy_ns) => {
                write.block += 1;
                self.session.blocks_written += 1;
                self.be_busy(busy_ns);
                ACCEPTED
            }
            Err(answer) => {
                write.failed = true;
                answer
            }
        };
        self.answer = Answer::after(0, &[answer]);
        self.task = if write.many {
            Task::Await(write)
        } else {
            Task::None
        };
    }

    /// Stores the block in the buffer; returns how long the card is busy, in ns, or how it refuses.
    fn store_block(&mut self, write: &Write) -> Result<u64, u8> {
        let (data, sum) = self.buffer[..Task::RECEIVED_BYTES].split_at(BLOCK_BYTES);
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
        let stored = match write.many {
            true => self.card.stream_write(now_ns, write.block, data),
            false => self.card.write(now_ns, write.block, data),
        };
        stored.map_err(|error| {
            self.session.status |= error_bits(error).0;
            WRITE_ERROR
        })
    }
}

/// What R2 says, and the error token where the block was to be read.
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
    fn each_error_of_a_card_has_bits_of_its_own() {
        let (block, blocks) = (5, 5);
        // R2 and data error token: 7.3.2.3 and 7.3.3.3.
        assert_eq!(
            error_bits(CardError::OutOfRange { block, blocks }),
            (0x80, 8)
        );
        assert_eq!(error_bits(CardError::Unreadable { block }), (0x10, 4));
        assert_eq!(error_bits(CardError::WornOut), (0x04, 1));
    }
}
