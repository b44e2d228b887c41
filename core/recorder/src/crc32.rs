//! The checksum of marks, blocks and journal records.

/// Continues a CRC-32 (IEEE 802.3) over more bytes; the initial value is 0.
pub(crate) fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, byte| {
        crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize]
    })
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Check value from the catalogue of CRC algorithms, CRC-32/ISO-HDLC.
    #[test]
    fn crc32_gives_the_published_check_value() {
        assert_eq!(crc32(0, b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xCBF4_3926);
    }
}
