//! The two checksums of the bus (SD Physical Layer Simplified Specification, 4.5).

/// Number of bytes that [`crc16`] processes per step.
const LANES: usize = 8;

const CRC16_TABLES: [[u16; 256]; LANES] = crc16_tables();

/// CRC7 of each byte value, shifted left by one bit so that the checksum fills a byte.
const CRC7_TABLE: [u8; 256] = crc7_table();

/// Returns the CRC7 of a command or register, x^7 + x^3 + 1, in the low seven bits.
pub fn crc7(bytes: &[u8]) -> u8 {
    let step = |crc: u8, byte: &u8| CRC7_TABLE[usize::from(crc ^ byte)];
    bytes.iter().fold(0, step) >> 1
}

const fn crc7_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x12
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Returns the CRC16 of a data block, x^16 + x^12 + x^5 + 1.
pub fn crc16(bytes: &[u8]) -> u16 {
    let (lanes, rest) = bytes.as_chunks::<LANES>();
    let crc = lanes.iter().fold(0, |crc: u16, lane| {
        let [high, low] = crc.to_be_bytes();
        let mixed = [lane[0] ^ high, lane[1] ^ low];
        let mut sum = 0;
        for (table, byte) in CRC16_TABLES
            .iter()
            .rev()
            .zip(mixed.iter().chain(&lane[2..]))
        {
            sum ^= table[usize::from(*byte)];
        }
        sum
    });
    rest.iter().fold(crc, |crc, byte| {
        crc << 8 ^ CRC16_TABLES[0][usize::from(*byte ^ (crc >> 8) as u8)]
    })
}

/// Table `n` holds the contribution of each byte value to the checksum when `n` bytes follow it.
const fn crc16_tables() -> [[u16; 256]; LANES] {
    let mut tables = [[0; 256]; LANES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut lane = 1;
    while lane < LANES {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[lane - 1][byte];
            tables[lane][byte] = crc << 8 ^ tables[0][(crc >> 8) as usize];
            byte += 1;
        }
        lane += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_the_examples_of_the_specification() {
        // Examples from 4.5: CMD0, CMD17 and the response to CMD17.
        assert_eq!(crc7(&[0x40, 0, 0, 0, 0]), 0b100_1010);
        assert_eq!(crc7(&[0x51, 0, 0, 0, 0]), 0b010_1010);
        assert_eq!(crc7(&[0x11, 0, 0, 0x09, 0]), 0b011_0011);
        assert_eq!(crc16(&[0xFF; 512]), 0x7FA1);
    }

    #[test]
    fn eight_bytes_per_step_give_the_same_checksum_as_one() {
        let bytes: Vec<u8> = (0..100u32).map(|i| (i * i * 7 + 3) as u8).collect();
        for length in 0..bytes.len() {
            let slow = bytes[..length].iter().fold(0u16, |crc, byte| {
                crc << 8 ^ CRC16_TABLES[0][usize::from(*byte ^ (crc >> 8) as u8)]
            });
            assert_eq!(crc16(&bytes[..length]), slow, "{length} bytes");
        }
    }
}
