//! CRC-32 of IEEE 802.3, bit by bit: an implementation independent of the recorder's.

/// Returns the CRC-32 of `bytes`.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 != 0 { 0xEDB8_8320 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check value of CRC-32/ISO-HDLC from the catalogue of CRC algorithms.
    #[test]
    fn crc32_gives_the_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
