//! Recordings, as docs/formats.md describes them: binary blocks, and marks in text.

pub(crate) mod binary;
pub(crate) mod header;
pub(crate) mod mark;
pub(crate) mod values;

/// Size of a block in bytes.
pub(crate) const BLOCK_BYTES: usize = 512;
pub(crate) type Block = [u8; BLOCK_BYTES];

/// Returns the CRC-32 of IEEE 802.3. Four bits at a time: a table for eight would take 1 KiB.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut at = 0;
        while at < 16 {
            let mut crc = at as u32;
            let mut bit = 0;
            while bit < 4 {
                crc = crc >> 1 ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 };
                bit += 1;
            }
            table[at] = crc;
            at += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let crc = crc ^ u32::from(*byte);
        let crc = crc >> 4 ^ TABLE[(crc & 15) as usize];
        crc >> 4 ^ TABLE[(crc & 15) as usize]
    })
}
