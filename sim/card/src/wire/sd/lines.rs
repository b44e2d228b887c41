//! The DAT lines: bus width, block length in clocks, and checksums.

use crate::wire::crc::crc16;

/// Checksums of a block, DAT0 first. With one data line, only the first checksum is used.
pub type LineSums = [u16; 4];

/// Number of clocks around the data of a block: start bit, CRC16 and end bit, on all lines at once (3.6.1).
const AROUND_CLOCKS: u64 = 1 + 16 + 1;

/// Bus width: DAT lines that carry data (3.6.1, ACMD6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Only DAT0, as after power-up.
    #[default]
    One,
    /// DAT0 to DAT3.
    Four,
}

impl Width {
    /// Returns the number of clocks that a block takes: start bit, data, CRC16 and end bit on each line.
    pub fn block_clocks(self, bytes: usize) -> u64 {
        AROUND_CLOCKS + 8 * bytes as u64 / self.lines()
    }

    /// Returns the checksums of a block (4.5): one per line.
    pub fn sums(self, data: &[u8]) -> LineSums {
        match self {
            Width::One => [crc16(data), 0, 0, 0],
            Width::Four => four_sums(data),
        }
    }

    /// Returns true if the checksums match the block.
    pub fn sums_match(self, data: &[u8], sums: &LineSums) -> bool {
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

/// CRC status that the card sends on DAT0 after a block (4.12.3): the three bits between start and end bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CrcStatus {
    /// The checksums match, and the block was accepted.
    Positive = 0b010,
    /// A checksum does not match.
    Negative = 0b101,
    /// The block could not be programmed; these three bits have the same meaning over SPI (7.3.3.1). The
    /// card status contains the reason.
    Failed = 0b110,
}

/// Number of bytes that [`four_sums`] processes per step: 16 bits per line, as many as a checksum has.
const STEP_BYTES: usize = 8;

/// Adds a byte to four interleaved checksums: bit n of all four takes the bits 4 n to 4 n + 3. A byte
/// takes two clocks: bits 7 to 4 on DAT3 to DAT0, then bits 3 to 0 (3.6.1).
fn after(woven: u64, byte: u8) -> u64 {
    // The polynomial is x^16 + x^12 + x^5 + 1; within two clocks, no bit that is fed back is shifted out
    // again.
    let out = woven >> 56 ^ u64::from(byte);
    woven << 8 ^ out << (4 * 12) ^ out << (4 * 5) ^ out
}

/// Multiplies four interleaved remainders by x^16, modulo the polynomial.
fn times_x16(woven: u64) -> u64 {
    // x^16 is x^12 + x^5 + 1. The product's terms from x^16 on are multiplied again, until there are none.
    let above = |factor: u64| factor >> (4 * 4) ^ factor >> (4 * 11);
    let first = above(woven);
    let second = above(first);
    let all = woven ^ first ^ second ^ above(second);
    all << (4 * 12) ^ all << (4 * 5) ^ all
}

fn four_sums(data: &[u8]) -> LineSums {
    let (steps, rest) = data.as_chunks::<STEP_BYTES>();
    // Leading zeros do not change the checksums.
    let start = steps.iter().position(|step| *step != [0; STEP_BYTES]);
    let steps = &steps[start.unwrap_or(steps.len())..];
    let add = |woven, step: &[u8; STEP_BYTES]| times_x16(woven ^ u64::from_be_bytes(*step));
    let woven = steps.iter().fold(0, add);
    let woven = rest.iter().fold(woven, |woven, byte| after(woven, *byte));
    std::array::from_fn(|line| every_fourth_bit(woven >> line))
}

/// Returns bits 0, 4, 8 and so on, packed.
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

    /// Adds one bit to a checksum.
    fn shift(sum: u16, bit: u8) -> u16 {
        let carry = (sum >> 15) as u8 ^ bit;
        sum << 1 ^ if carry == 1 { 0x1021 } else { 0 }
    }

    #[test]
    fn each_line_has_the_checksum_of_its_own_bits() {
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
    fn checksums_of_four_lines_match_the_example_of_the_specification() {
        // Example from 4.5: 512 bytes of 0xFF. With four lines, each line carries a quarter of the bytes.
        assert_eq!(Width::One.sums(&[0xFF; 512])[0], 0x7FA1);
        assert_eq!(Width::Four.sums(&[0xFF; 512]), [crc16(&[0xFF; 128]); 4]);
    }

    #[test]
    fn with_one_line_the_other_checksums_are_ignored() {
        let data = [7; 512];
        let [sum, ..] = Width::One.sums(&data);
        assert!(Width::One.sums_match(&data, &[sum, 1, 2, 3]));
        assert!(!Width::Four.sums_match(&data, &[sum, 1, 2, 3]));
    }
}
