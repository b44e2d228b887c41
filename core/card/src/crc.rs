//! The two checksums of the SPI bus protocol (4.5).

/// x^7 + x^3 + 1, shifted left by one bit so that the checksum fills a byte.
const CRC7_POLYNOMIAL: u8 = 0x09 << 1;
/// x^16 + x^12 + x^5 + 1.
const CRC16_POLYNOMIAL: u16 = 0x1021;

/// CRC16 of each byte value. The table takes 512 bytes of flash and processes a block byte by byte instead
/// of bit by bit.
const CRC16_TABLE: [u16; 256] = crc16_table();

/// Returns the last byte of a command: CRC7 and the end bit.
pub(crate) fn crc7_and_end(bytes: &[u8]) -> u8 {
    let mut sum = 0;
    for byte in bytes {
        sum ^= byte;
        for _ in 0..8 {
            let carry = sum & 0x80 != 0;
            sum <<= 1;
            if carry {
                sum ^= CRC7_POLYNOMIAL;
            }
        }
    }
    sum | 1
}

/// Returns the checksum of a data block.
pub(crate) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum: u16, byte| {
        sum << 8 ^ CRC16_TABLE[usize::from(*byte ^ (sum >> 8) as u8)]
    })
}

const fn crc16_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = sum & 0x8000 != 0;
            sum <<= 1;
            if carry {
                sum ^= CRC16_POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_the_examples_of_the_specification() {
        // Examples from 4.5: CMD0, CMD17, the response to CMD17; a block of 0xFF.
        assert_eq!(crc7_and_end(&[0x40, 0, 0, 0, 0]), 0b1001010 << 1 | 1);
        assert_eq!(crc7_and_end(&[0x51, 0, 0, 0, 0]), 0b0101010 << 1 | 1);
        assert_eq!(crc7_and_end(&[0x11, 0, 0, 9, 0]), 0b0110011 << 1 | 1);
        assert_eq!(crc16(&[0xFF; 512]), 0x7FA1);
    }
}
