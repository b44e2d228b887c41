//! The CSD register: capacity, addressing and write protection (5.3).

/// The CSD fields that the driver uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Csd {
    pub(crate) blocks: u32,
    /// Command arguments count blocks instead of bytes.
    pub(crate) has_high_capacity: bool,
    pub(crate) is_write_protected: bool,
}

/// Parses a CSD of version 1 or 2; returns `None` for any other version.
pub(crate) fn parse(csd: &[u8; 16]) -> Option<Csd> {
    let csd = u128::from_be_bytes(*csd);
    let bits = |high: u32, low: u32| (csd >> low) as u32 & ((1 << (high - low + 1)) - 1);
    let (blocks, has_high_capacity) = match bits(127, 126) {
        // C_SIZE, C_SIZE_MULT and READ_BL_LEN; READ_BL_LEN is 9 to 11.
        0 => {
            let step_bits = bits(49, 47) + 2 + bits(83, 80).checked_sub(9)?;
            ((bits(73, 62) + 1).checked_shl(step_bits)?, false)
        }
        // C_SIZE in units of 512 KiB. A 2 TiB card has one block more than a u32 can count.
        1 => ((bits(69, 48) + 1).saturating_mul(1024), true),
        _ => return None,
    };
    Some(Csd {
        blocks,
        has_high_capacity,
        // PERM_WRITE_PROTECT and TMP_WRITE_PROTECT.
        is_write_protected: bits(13, 12) != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_a_product_in_version_1_and_in_units_of_512_kib_in_version_2() {
        // READ_BL_LEN 10, C_SIZE 4095, C_SIZE_MULT 7: 2 GiB.
        let csd = 10 << 80 | 4095 << 62 | 7 << 47 | 1 << 12;
        let one = parse(&u128::to_be_bytes(csd)).unwrap();
        assert_eq!((one.blocks, one.has_high_capacity), (4 << 20, false));
        assert!(one.is_write_protected);
        let two = parse(&u128::to_be_bytes(1 << 126 | 31 << 48)).unwrap();
        assert_eq!((two.blocks, two.has_high_capacity), (32 * 1024, true));
        assert!(!two.is_write_protected);
        assert_eq!(parse(&u128::to_be_bytes(2 << 126)), None);
        assert_eq!(parse(&[0; 16]), None);
    }
}
