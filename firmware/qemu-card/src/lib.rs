//! Bus wrapper between the driver and QEMU's card. It corrects deviations of QEMU 7.2 from the specification
//! and simulates stalls.
//!
//! QEMU (`hw/sd/ssi-sd.c`, `hw/sd/sd.c`)
//!
//! - checks no CRC, even after CMD59: the wrapper rejects commands with a wrong CRC itself;
//! - responds to CMD58 with R1 = 0x01 although the card is initialised: the wrapper clears the bit;
//! - reports an illegal command again in the next R1, as on the SD bus: the wrapper clears the bit;
//! - sends the count of ACMD22 with the lowest byte first: the wrapper reverses it and replaces the CRC;
//! - is never busy: the wrapper keeps the card busy, in virtual time, so that interrupts continue;
//! - is never write-protected: on request, the wrapper sets the bit in the CSD, and replaces the CRC.
//!
//! The last two points serve tests. A real card needs no wrapper.
#![no_std]

use core::convert::Infallible;
use embedded_hal_async::spi::{self, SpiBus};

const SILENCE: u8 = 0xFF;
const STOP_TOKEN: u8 = 0xFD;
const BUSY: u8 = 0;
/// R1 bit: not initialised.
const IDLE: u8 = 1;
/// R1 bit: illegal command.
const ILLEGAL: u8 = 1 << 2;
/// R1 bit: wrong CRC.
const CRC_ERROR: u8 = 1 << 3;
/// Bits of the data response token.
const DATA_RESPONSE_MASK: u8 = 0x1F;
/// Data response: block accepted.
const ACCEPTED: u8 = 5;

/// Length of the CSD, in bytes.
const CSD_BYTES: usize = 16;
/// Byte and bit of temporary write protection in the CSD.
const CSD_PROTECTION_BYTE: usize = 14;
const CSD_PROTECTION: u8 = 1 << 4;

/// Busy time after each stop token, in ms.
pub const STOP_MS: u32 = 4;

/// Behaviour that QEMU's card does not have.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Returns the time in us.
    pub now_us: fn() -> u64,
    /// Blocks between stalls; 0 for none.
    pub stall_blocks: u32,
    /// Duration of a stall, in ms.
    pub stall_ms: u32,
    /// True if the card is write-protected.
    pub is_write_protected: bool,
}

/// Correction of the next bytes from the card.
enum Next {
    Nothing,
    /// An error response to a command that was not passed on.
    Rejection,
    /// R1 of this command.
    R1(u8),
    /// Count of ACMD22.
    Count,
    /// Contents of the CSD.
    Csd,
    /// CRC of one of these.
    Crc([u8; 2]),
}

/// A bus with QEMU's card.
pub struct QemuBus<Bus> {
    bus: Bus,
    behaviour: &'static Behaviour,
    next: Next,
    was_illegal: bool,
    blocks: u32,
    busy_until_us: u64,
}

impl<Bus> QemuBus<Bus> {
    /// Wraps a bus.
    pub fn new(bus: Bus, behaviour: &'static Behaviour) -> Self {
        QemuBus {
            bus,
            behaviour,
            next: Next::Nothing,
            was_illegal: false,
            blocks: 0,
            busy_until_us: 0,
        }
    }

    /// Returns the wrapped bus.
    pub fn bus(&mut self) -> &mut Bus {
        &mut self.bus
    }

    fn data_response(&mut self, response: u8) {
        if response & DATA_RESPONSE_MASK == ACCEPTED {
            self.blocks += 1;
            // A multiple of zero is only zero.
            if self.blocks.is_multiple_of(self.behaviour.stall_blocks) {
                self.busy_until_us =
                    (self.behaviour.now_us)() + 1000 * u64::from(self.behaviour.stall_ms);
            }
        }
    }

    fn corrected_r1(&mut self, index: u8, mut r1: u8) -> u8 {
        if index == 58 {
            r1 &= !IDLE;
        }
        if self.was_illegal {
            r1 &= !ILLEGAL;
        }
        self.was_illegal = r1 & ILLEGAL != 0;
        r1
    }

    /// Corrects bytes from the card.
    fn correct(&mut self, bytes: &mut [u8]) {
        self.next = match (&self.next, bytes) {
            (Next::R1(index), [r1]) if *r1 & 0x80 == 0 => {
                let index = *index;
                *r1 = self.corrected_r1(index, *r1);
                match index {
                    9 if self.behaviour.is_write_protected => Next::Csd,
                    22 => Next::Count,
                    _ => Next::Nothing,
                }
            }
            (Next::Count, count @ [_, _, _, _]) => {
                count.reverse();
                Next::Crc(crc16(count).to_be_bytes())
            }
            (Next::Csd, csd) if csd.len() == CSD_BYTES => {
                csd[CSD_PROTECTION_BYTE] |= CSD_PROTECTION;
                Next::Crc(crc16(csd).to_be_bytes())
            }
            (Next::Crc(crc), bytes @ [_, _]) => {
                bytes.copy_from_slice(crc);
                Next::Nothing
            }
            (_, [_, _, response]) => {
                let response = *response;
                self.data_response(response);
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

    /// Detects commands by their length: one byte of silence and the frame of six. Nothing else that the
    /// driver writes has seven bytes.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        if let [SILENCE, frame @ .., end] = bytes
            && frame.len() == 5
        {
            self.next = match crc7_and_end(frame) == *end {
                true => Next::R1(frame[0] & 0x3F),
                false => Next::Rejection,
            };
            if let Next::Rejection = self.next {
                return Ok(());
            }
        }
        self.bus.write(bytes).await?;
        if let [STOP_TOKEN, _] = bytes {
            self.busy_until_us = (self.behaviour.now_us)() + 1000 * u64::from(STOP_MS);
        }
        Ok(())
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        self.bus.transfer(read, write).await
    }

    async fn transfer_in_place(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        if let Next::Rejection = self.next {
            bytes.fill(IDLE | CRC_ERROR);
            self.next = Next::Nothing;
            return Ok(());
        }
        if (self.behaviour.now_us)() < self.busy_until_us {
            bytes.fill(BUSY);
            return Ok(());
        }
        self.bus.transfer_in_place(bytes).await?;
        self.correct(bytes);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        self.bus.flush().await
    }
}

/// Returns a command's CRC7 with its end bit.
fn crc7_and_end(frame: &[u8]) -> u8 {
    frame.iter().fold(0, |crc: u8, byte| {
        // Polynomial x^7 + x^3 + 1, shifted left by one bit.
        (0..8).fold(crc ^ byte, |crc, _| (crc << 1) ^ ((crc >> 7) * (0x09 << 1)))
    }) | 1
}

/// Returns the CRC16 of data.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        // Polynomial x^16 + x^12 + x^5 + 1.
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ ((crc >> 15) * 0x1021)
        })
    })
}
