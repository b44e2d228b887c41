//! The registers of a card (SD Physical Layer Simplified Specification, 4.10.2 and 5).

use super::crc::crc7;
use super::options::{Kind, Options};
use std::ops::RangeInclusive;

/// OCR bits for every voltage from 2.7 to 3.6 V (5.1).
const OCR_VOLTAGES: u32 = 0x00FF_8000;
const OCR_HIGH_CAPACITY: u32 = 1 << 30;
const OCR_POWERED_UP: u32 = 1 << 31;

/// Supported command classes (table 4-21): 0 basic, 2 block read, 4 block write, 5 erase, 8 application
/// specific, 10 switch.
const COMMAND_CLASSES: u128 = 0x535;

/// Number of blocks per unit of C_SIZE in a version 2 CSD.
const CSD2_STEP_BLOCKS: u64 = 1024;
/// Maximum of C_SIZE + 1 in a version 1 CSD, where C_SIZE has 12 bits.
const CSD1_STEPS_MAX: u64 = 4096;

/// Registers of a card whose contents are constant.
pub(in crate::wire) struct Registers {
    pub(in crate::wire) csd: [u8; 16],
    pub(in crate::wire) cid: [u8; 16],
    pub(in crate::wire) scr: [u8; 8],
    pub(in crate::wire) sd_status: [u8; 64],
    /// Capacity in blocks according to the CSD; blocks past this capacity are inaccessible.
    pub(in crate::wire) blocks: u64,
}

/// A 128-bit register, assembled field by field.
struct Fields(u128);

impl Fields {
    fn put(&mut self, bits: RangeInclusive<u32>, value: u128) {
        debug_assert!(value < 1 << (bits.end() - bits.start() + 1));
        self.0 |= value << bits.start();
    }

    /// Appends the checksum and the end bit.
    fn finish(self) -> [u8; 16] {
        let mut bytes = self.0.to_be_bytes();
        bytes[15] = crc7(&bytes[..15]) << 1 | 1;
        bytes
    }
}

impl Registers {
    pub(in crate::wire) fn new(options: &Options, blocks: u64) -> Registers {
        let (csd, blocks) = match options.kind {
            Kind::High => csd2(options, blocks),
            Kind::Standard | Kind::Version1 => csd1(options, blocks),
        };
        Registers {
            csd,
            cid: cid(options),
            scr: scr(options),
            sd_status: sd_status(options),
            blocks,
        }
    }
}

/// Returns the OCR (5.1); it shows the capacity only once the card is ready.
pub(in crate::wire) fn ocr(kind: Kind, ready: bool) -> [u8; 4] {
    let state = match (ready, kind) {
        (false, _) => 0,
        (true, Kind::High) => OCR_POWERED_UP | OCR_HIGH_CAPACITY,
        (true, _) => OCR_POWERED_UP,
    };
    (OCR_VOLTAGES | state).to_be_bytes()
}

/// Returns the CSD with TRAN_SPEED for the speed that CMD6 selected (5.3.2).
pub(in crate::wire) fn csd_at_speed(csd: [u8; 16], high_speed: bool) -> [u8; 16] {
    if !high_speed {
        return csd;
    }
    let mut csd = Fields(u128::from_be_bytes(csd) & !0xFF);
    // 50 MHz instead of 25 MHz.
    csd.0 ^= (0x32 ^ 0x5A) << 96;
    csd.finish()
}

/// Fields that both versions of the CSD share (5.3.2, 5.3.3).
fn csd_common(options: &Options, block_length: u128) -> Fields {
    let mut csd = Fields(0);
    // TRAN_SPEED: 25 MHz.
    csd.put(96..=103, 0x32);
    csd.put(84..=95, COMMAND_CLASSES);
    csd.put(80..=83, block_length);
    // ERASE_BLK_EN: single blocks can be erased.
    csd.put(46..=46, 1);
    // SECTOR_SIZE: 128 blocks.
    csd.put(39..=45, 0x7F);
    // R2W_FACTOR: writing takes four times as long as reading.
    csd.put(26..=28, 2);
    csd.put(22..=25, block_length);
    // PERM_WRITE_PROTECT.
    csd.put(13..=13, options.write_protected.into());
    csd
}

/// Returns a version 2 CSD (5.3.3) and the capacity that it states, in blocks.
fn csd2(options: &Options, blocks: u64) -> ([u8; 16], u64) {
    let steps = (blocks / CSD2_STEP_BLOCKS).min(1 << 22);
    let mut csd = csd_common(options, 9);
    csd.put(126..=127, 1);
    // TAAC: 1 ms, a fixed value in CSD version 2.
    csd.put(112..=119, 0x0E);
    csd.put(48..=69, u128::from(steps - 1));
    (csd.finish(), steps * CSD2_STEP_BLOCKS)
}

/// Returns a version 1 CSD (5.3.2) and the capacity that it states, in blocks.
fn csd1(options: &Options, blocks: u64) -> ([u8; 16], u64) {
    // C_SIZE_MULT 7 means 512 times READ_BL_LEN per unit of C_SIZE. Above 1 GiB, READ_BL_LEN is 1024 bytes.
    let step_blocks = if blocks <= CSD1_STEPS_MAX * 512 {
        512
    } else {
        1024
    };
    let steps = (blocks / step_blocks).min(CSD1_STEPS_MAX);
    let mut csd = csd_common(options, if step_blocks == 512 { 9 } else { 10 });
    // TAAC: 1.5 ms.
    csd.put(112..=119, 0x26);
    // READ_BL_PARTIAL: always set in CSD version 1.
    csd.put(79..=79, 1);
    csd.put(62..=73, u128::from(steps - 1));
    csd.put(47..=49, 7);
    (csd.finish(), steps * step_blocks)
}

/// Returns the CID (5.2): a fictitious manufacturer, January 2026.
fn cid(options: &Options) -> [u8; 16] {
    let mut cid = Fields(0);
    cid.put(104..=119, u16::from_be_bytes(*b"CG").into());
    cid.put(64..=103, u64::from_be_bytes(*b"\0\0\0CARDI").into());
    // Product revision: 1.0.
    cid.put(56..=63, 0x10);
    cid.put(24..=55, options.serial.into());
    // Date of manufacture: years since 2000, and month.
    cid.put(12..=19, 26);
    cid.put(8..=11, 1);
    cid.finish()
}

/// Returns the SCR (5.6): erased blocks read as zeros, and the bus may be 1 or 4 bits wide.
fn scr(options: &Options) -> [u8; 8] {
    let (version, security) = match options.kind {
        Kind::Version1 => (1, 2),
        Kind::Standard => (2, 2),
        Kind::High => (2, 3),
    };
    [version, security << 4 | 0b0101, 0, 0, 0, 0, 0, 0]
}

/// Returns the SD status register (4.10.2).
fn sd_status(options: &Options) -> [u8; 64] {
    let mut status = [0; 64];
    status[8] = match options.speed_class {
        10 => 4,
        class => class / 2,
    };
    // AU_SIZE: 1 is 16 KiB, and each code up to 0xA doubles the size; higher codes include sizes that are
    // not powers of two.
    let doublings = (options.au_bytes >> 14).trailing_zeros() as u8;
    status[10] = match doublings {
        0..=9 => doublings + 1,
        10 => 0xC,
        11 => 0xE,
        _ => 0xF,
    } << 4;
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(kind: Kind, blocks: u64) -> Registers {
        let options = Options {
            kind,
            ..Options::default()
        };
        Registers::new(&options, blocks)
    }

    #[test]
    fn the_capacity_is_rounded_down_to_a_value_the_csd_can_represent() {
        let bytes = |kind, bytes: u64| registers(kind, bytes / 512).blocks * 512;
        assert_eq!(bytes(Kind::High, 16_013_852_672), 16_013_852_672);
        assert_eq!(bytes(Kind::High, (64 << 20) + 4096), 64 << 20);
        assert_eq!(bytes(Kind::Standard, 1 << 30), 1 << 30);
        assert_eq!(bytes(Kind::Standard, 2 << 30), 2 << 30);
        assert_eq!(bytes(Kind::Standard, (1 << 30) + 512), 1 << 30);
    }

    #[test]
    fn au_sizes_and_speed_classes_use_the_codes_of_the_specification() {
        let code = |speed_class, au_bytes| {
            let status = sd_status(&Options {
                speed_class,
                au_bytes,
                ..Options::default()
            });
            (status[8], status[10] >> 4)
        };
        assert_eq!(code(10, 4 << 20), (4, 9));
        assert_eq!(code(2, 16 << 10), (1, 1));
        assert_eq!(code(6, 8 << 20), (3, 0xA));
        assert_eq!(code(4, 16 << 20), (2, 0xC));
        assert_eq!(code(0, 64 << 20), (0, 0xF));
    }
}
