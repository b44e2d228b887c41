//! Self-addressed sectors: 512 B that state their own offset, and the run that wrote them.

/// Length of a sector in bytes.
pub(crate) const SECTOR_BYTES: usize = 512;

const MAGIC: &[u8; 8] = b"cardiogr";
const OFFSET_AT: usize = 8;
const RUN_AT: usize = 16;
const FILL_AT: usize = 24;

/// Content of a sector that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The sector that was written there.
    Right,
    /// The whole sector that this run wrote elsewhere.
    Elsewhere {
        /// Offset that the sector states.
        offset_bytes: u64,
    },
    /// Zeros only.
    Zeros,
    /// Anything else, including sectors with a few wrong bits and sectors of earlier runs.
    Other,
}

/// Fills `data`, which begins at `offset_bytes`.
pub(crate) fn fill(run: u64, offset_bytes: u64, data: &mut [u8]) {
    let offsets = (offset_bytes..).step_by(SECTOR_BYTES);
    for (sector, offset_bytes) in data.chunks_exact_mut(SECTOR_BYTES).zip(offsets) {
        write_sector(run, offset_bytes, sector);
    }
}

fn write_sector(run: u64, offset_bytes: u64, sector: &mut [u8]) {
    sector[..OFFSET_AT].copy_from_slice(MAGIC);
    sector[OFFSET_AT..RUN_AT].copy_from_slice(&offset_bytes.to_le_bytes());
    sector[RUN_AT..FILL_AT].copy_from_slice(&run.to_le_bytes());
    // Bytes without a pattern, so that a card cannot compress them.
    let mut random = run ^ offset_bytes.rotate_left(32);
    for word in sector[FILL_AT..].chunks_exact_mut(8) {
        random = splitmix64(random);
        word.copy_from_slice(&random.to_le_bytes());
    }
}

/// Compares a sector that was read back from `offset_bytes`.
pub(crate) fn content(run: u64, offset_bytes: u64, sector: &[u8]) -> Content {
    let mut expected = [0; SECTOR_BYTES];
    write_sector(run, offset_bytes, &mut expected);
    if sector == expected {
        return Content::Right;
    }
    if sector.iter().all(|&byte| byte == 0) {
        return Content::Zeros;
    }
    let mut stated = [0; 8];
    stated.copy_from_slice(&sector[OFFSET_AT..RUN_AT]);
    let stated_bytes = u64::from_le_bytes(stated);
    write_sector(run, stated_bytes, &mut expected);
    match sector == expected {
        true => Content::Elsewhere {
            offset_bytes: stated_bytes,
        },
        false => Content::Other,
    }
}

/// Returns the next number of the SplitMix64 sequence (Steele, Lea and Flood, 2014).
pub(crate) fn splitmix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_told_apart_by_offset_run_and_every_bit() {
        let mut data = [0; 2 * SECTOR_BYTES];
        fill(7, 1024, &mut data);
        let (first, second) = data.split_at(SECTOR_BYTES);
        assert_eq!(content(7, 1024, first), Content::Right);
        assert_eq!(content(7, 1536, second), Content::Right);
        let elsewhere = Content::Elsewhere { offset_bytes: 1536 };
        assert_eq!(content(7, 1024, second), elsewhere);
        assert_eq!(content(8, 1024, first), Content::Other);
        assert_eq!(content(7, 0, &[0; SECTOR_BYTES]), Content::Zeros);
        for bit in 0..SECTOR_BYTES * 8 {
            let mut wrong = first.to_vec();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(content(7, 1024, &wrong), Content::Other, "bit {bit}");
        }
    }
}
