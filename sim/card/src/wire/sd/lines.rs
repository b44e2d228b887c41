//! What goes over the DAT lines: how a block lies on them, and what guards it.

use crate::wire::crc::crc16;

/// Checksums of a block, that of DAT0 first. With one line the others do not count.
pub type LineSums = [u16; 4];

/// Start bit, CRC16 and end bit, on each line at once (3.6.1).
const AROUND_CLOCKS: u64 = 1 + 16 + 1;

/// DAT lines that carry data (3.6.1, ACMD6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// DAT0, as after power-up.
    #[default]
    One,
    /// DAT0 to DAT3.
    Four,
}

impl Width {
    /// Clocks of a block: start bit, data, CRC16 and end bit of one line.
    pub fn block_clocks(self, bytes: usize) -> u64 {
        AROUND_CLOCKS + 8 * bytes as u64 / self.lines()
    }

    /// The checksums that belong to a block (4.5): each line has one of its own.
    pub fn sums(self, data: &[u8]) -> LineSums {
        match self {
            Width::One => [crc16(data), 0, 0, 0],
            Width::Four => four_sums(data),
        }
    }

    /// Whether a block came as it was sent.
    pub fn sums_hold(self, data: &[u8], sums: &LineSums) -> bool {
        let lines = self.lines() as usize;
        self.sums(data)[..lines] == sums[..lines]
    }

    fn lines(self) -> u64 {
        match self {
            Width::One => 1,
            Width::Four => 4,
        }
    }
}

/// Bytes that one step of [`four_sums`] takes together.
const LANES: usize = 8;

/// Table `n` holds what a byte does to the four sums when `n` bytes follow it.
const FOUR_SUMS_TABLES: [[u64; 256]; LANES] = {
    let mut tables = [[0; 256]; LANES];
    let mut byte = 0;
    while byte < 256 {
        let mut woven = after(0, byte as u8);
        let mut lane = 0;
        while lane < LANES {
            tables[lane][byte] = woven;
            woven = after(woven, 0);
            lane += 1;
        }
        byte += 1;
    }
    tables
};

/// A byte is two clocks: bits 7 to 4 on DAT3 to DAT0, then bits 3 to 0 (3.6.1). The four sums grow
/// side by side, four bits for each bit of one.
const fn after(woven: u64, byte: u8) -> u64 {
    // x^16 + x^12 + x^5 + 1; no bit comes back within two clocks.
    let out = woven >> 56 ^ byte as u64;
    woven << 8 ^ out << (4 * 12) ^ out << (4 * 5) ^ out
}

fn four_sums(data: &[u8]) -> LineSums {
    let (lanes, rest) = data.as_chunks::<LANES>();
    // Zeros in front change nothing.
    let begin = lanes.iter().position(|lane| *lane != [0; LANES]);
    let lanes = &lanes[begin.unwrap_or(lanes.len())..];
    let woven = lanes.iter().fold(0u64, |woven, lane| {
        let mixed = woven ^ u64::from_be_bytes(*lane);
        let tables = FOUR_SUMS_TABLES.iter().rev().zip(mixed.to_be_bytes());
        tables.fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)])
    });
    let woven = rest.iter().fold(woven, |woven, byte| after(woven, *byte));
    std::array::from_fn(|line| every_fourth_bit(woven >> line))
}

/// Bits 0, 4, 8 and so on, moved together.
fn every_fourth_bit(woven: u64) -> u16 {
    let mut bits = woven & 0x1111_1111_1111_1111;
    bits = (bits | bits >> 3) & 0x0303_0303_0303_0303;
    bits = (bits | bits >> 6) & 0x000F_000F_000F_000F;
    bits = (bits | bits >> 12) & 0x0000_00FF_0000_00FF;
    (bits | bits >> 24) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit into a sum.
    fn shift(sum: u16, bit: u8) -> u16 {
        let carry = (sum >> 15) as u8 ^ bit;
        sum << 1 ^ if carry == 1 { 0x1021 } else { 0 }
    }

    #[test]
    fn each_line_has_the_sum_of_its_own_bits() {
        let data: Vec<u8> = (0..518u32).map(|i| (i * i * 7 + i / 3) as u8).collect();
        for length in [1, 2, 3, 4, 8, 64, 511, 512, 518] {
            let sums = Width::Four.sums(&data[..length]);
            for (line, sum) in sums.iter().enumerate() {
                let slow = data[..length].iter().fold(0, |sum, byte| {
                    shift(shift(sum, byte >> (4 + line) & 1), byte >> line & 1)
                });
                assert_eq!(*sum, slow, "{length} bytes, DAT{line}");
            }
        }
    }

    #[test]
    fn the_example_of_the_specification_on_four_lines() {
        // 4.5: 512 bytes of ones. A line of four carries a quarter of them.
        assert_eq!(Width::One.sums(&[0xFF; 512])[0], 0x7FA1);
        assert_eq!(Width::Four.sums(&[0xFF; 512]), [crc16(&[0xFF; 128]); 4]);
    }

    #[test]
    fn with_one_line_the_other_sums_do_not_count() {
        let data = [7; 512];
        let [sum, ..] = Width::One.sums(&data);
        assert!(Width::One.sums_hold(&data, &[sum, 1, 2, 3]));
        assert!(!Width::Four.sums_hold(&data, &[sum, 1, 2, 3]));
    }
}
