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

/// A byte is two clocks: bits 7 to 4 on DAT3 to DAT0, then bits 3 to 0 (3.6.1). The four sums grow
/// side by side, four bits for each bit of one.
fn four_sums(data: &[u8]) -> LineSums {
    let woven = data.iter().fold(0u64, |sums, byte| {
        // x^16 + x^12 + x^5 + 1; no bit comes back within two clocks.
        let out = sums >> 56 ^ u64::from(*byte);
        sums << 8 ^ out << (4 * 12) ^ out << (4 * 5) ^ out
    });
    let mut sums = [0; 4];
    for (line, sum) in sums.iter_mut().enumerate() {
        *sum = (0..16).rev().fold(0, |sum, bit| {
            sum << 1 | (woven >> (4 * bit + line) & 1) as u16
        });
    }
    sums
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
