//! Between the driver and QEMU's card: makes good where QEMU 7.2 strays from the specification, and
//! has the card stall.
//!
//! QEMU (`hw/sd/ssi-sd.c`, `hw/sd/sd.c`)
//!
//! - looks at no checksum, CMD59 or not: a command with a wrong one is kept from it and refused here;
//! - answers CMD58 with R1 = 0x01 when the card is long initialised: the bit is taken away;
//! - tells of an illegal command once more in the R1 after it, as on the SD bus: that is taken away;
//! - sends the count of ACMD22 with its lowest byte first: it is turned round, its checksum with it;
//! - is never busy: the card is held busy for it here, in virtual time, so that interrupts go on.
//!
//! The last is for the test; real wires need nothing of this file.

use crate::time::now_us;
use core::convert::Infallible;
use embedded_hal_async::spi::{self, SpiBus};

const SILENCE: u8 = 0xFF;
const STOP_TOKEN: u8 = 0xFD;
const BUSY: u8 = 0;
/// R1: not initialised.
const IDLE: u8 = 1;
/// R1: not a command for now.
const ILLEGAL: u8 = 1 << 2;
/// R1: the checksum is wrong.
const CRC_ERROR: u8 = 1 << 3;
/// Bits that say how a block was taken, and what they say if it was.
const TAKEN_MASK: u8 = 0x1F;
const TAKEN: u8 = 5;

/// A stall comes after so many blocks.
pub const STALL_BLOCKS: u32 = 128;
/// So long it lasts, in ms.
pub const STALL_MS: u32 = 100;
/// So long a card is busy after each stop token, in ms.
pub const STOP_MS: u32 = 4;

/// What is to be made good in what comes next.
enum Next {
    Nothing,
    /// The command was not passed on.
    Refusal,
    /// The R1 of this command.
    Answer(u8),
    /// The count of ACMD22.
    Count,
    /// The checksum of its count.
    Sum([u8; 2]),
}

/// A bus with QEMU's card on it.
pub struct QemuBus<Bus> {
    bus: Bus,
    next: Next,
    was_illegal: bool,
    blocks: u32,
    busy_until_us: u64,
}

impl<Bus> QemuBus<Bus> {
    /// Around the true bus.
    pub fn new(bus: Bus) -> Self {
        QemuBus {
            bus,
            next: Next::Nothing,
            was_illegal: false,
            blocks: 0,
            busy_until_us: 0,
        }
    }

    /// The true bus.
    pub fn bus(&mut self) -> &mut Bus {
        &mut self.bus
    }

    fn end_of_block(&mut self, answer: u8) {
        if answer & TAKEN_MASK == TAKEN {
            self.blocks += 1;
            if self.blocks.is_multiple_of(STALL_BLOCKS) {
                self.busy_until_us = now_us() + 1000 * u64::from(STALL_MS);
            }
        }
    }

    fn mended_r1(&mut self, index: u8, mut r1: u8) -> u8 {
        if index == 58 {
            r1 &= !IDLE;
        }
        if self.was_illegal {
            r1 &= !ILLEGAL;
        }
        self.was_illegal = r1 & ILLEGAL != 0;
        r1
    }

    /// Makes good what the card said.
    fn mend(&mut self, bytes: &mut [u8]) {
        self.next = match (&self.next, bytes) {
            (Next::Answer(index), [r1]) if *r1 & 0x80 == 0 => {
                let index = *index;
                *r1 = self.mended_r1(index, *r1);
                if index == 22 {
                    Next::Count
                } else {
                    Next::Nothing
                }
            }
            (Next::Count, count @ [_, _, _, _]) => {
                count.reverse();
                Next::Sum(crc16(count).to_be_bytes())
            }
            (Next::Sum(sum), bytes @ [_, _]) => {
                bytes.copy_from_slice(sum);
                Next::Nothing
            }
            (_, [_, _, answer]) => {
                let answer = *answer;
                self.end_of_block(answer);
                return;
            }
            _ => return,
        };
    }
}

impl<Bus: SpiBus<Error = Infallible>> spi::ErrorType for QemuBus<Bus> {
    type Error = Infallible;
}

impl<Bus: SpiBus<Error = Infallible>> SpiBus for QemuBus<Bus> {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(SILENCE);
        self.transfer_in_place(bytes).await
    }

    /// The driver sends a command as seven bytes of silence and frame, and nothing else is as long.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        if let [SILENCE, frame @ .., end] = bytes
            && frame.len() == 5
        {
            self.next = match crc7_and_end(frame) == *end {
                true => Next::Answer(frame[0] & 0x3F),
                false => Next::Refusal,
            };
            if let Next::Refusal = self.next {
                return Ok(());
            }
        }
        self.bus.write(bytes).await?;
        if let [STOP_TOKEN, _] = bytes {
            self.busy_until_us = now_us() + 1000 * u64::from(STOP_MS);
        }
        Ok(())
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        self.bus.transfer(read, write).await
    }

    async fn transfer_in_place(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        if let Next::Refusal = self.next {
            bytes.fill(IDLE | CRC_ERROR);
            self.next = Next::Nothing;
            return Ok(());
        }
        if now_us() < self.busy_until_us {
            bytes.fill(BUSY);
            return Ok(());
        }
        self.bus.transfer_in_place(bytes).await?;
        self.mend(bytes);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        self.bus.flush().await
    }
}

/// A command's checksum and its end bit.
fn crc7_and_end(frame: &[u8]) -> u8 {
    frame.iter().fold(0, |crc: u8, byte| {
        // The polynomial x^7 + x^3 + 1, one bit up.
        (0..8).fold(crc ^ byte, |crc, _| (crc << 1) ^ ((crc >> 7) * (0x09 << 1)))
    }) | 1
}

/// A block's checksum.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        // The polynomial x^16 + x^12 + x^5 + 1.
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ ((crc >> 15) * 0x1021)
        })
    })
}
