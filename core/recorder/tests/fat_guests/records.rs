//! Records of guests' operations with arbitrary values: a mount terminates, and accesses only blocks that
//! exist.

use super::*;
use proptest::prelude::*;

/// Far more than a mount of this card needs.
const READS_MAX: u64 = 200_000;

/// CRC-32 (IEEE 802.3), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 }
        })
    })
}

/// Returns a card with files, folders, a recording and an upload in progress, and the blocks of its journal.
fn card(spec: Spec) -> (Image, [u32; 2]) {
    let mut image = spec.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(40, 9000);
    rig.make_directory("a folder").unwrap();
    rig.put(
        "a folder/a file with a long name.txt",
        &data(1, 3000),
        false,
    )
    .unwrap();
    rig.reserve(REQUEST).unwrap();
    rig.begin(5000).unwrap();
    let listing = check(&rig.disk, image.start).unwrap();
    let journal = &listing.files["CARDIOGRJNL"].blocks;
    let copies = [journal[0], journal[64]];
    image.disk = rig.disk.powered_up();
    (image, copies)
}

/// A number that is likely to be valid: of a cluster or a block near the beginning of the volume.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0_u32..2000,
        1 => 5800_u32..6100,
        1 => Just(u32::MAX),
        1 => any::<u32>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]
    #[test]
    fn a_mount_ends(
        operation in 1_u8..=13,
        values in prop::collection::vec(number(), 13),
        small in prop::collection::vec(0_u8..18, 6),
        is_32: bool,
    ) {
        thread_local! {
            static CARDS: [(Image, [u32; 2]); 2] = [card(FAT16), card(FAT32)];
        }
        let (image, copies) = CARDS.with(|cards| cards[usize::from(is_32)].clone());
        let mut rig = Rig::new(image.disk.clone());
        for copy in copies {
            let mut block = *rig.disk.block(copy);
            block[8] = operation;
            for (at, value) in [64, 68, 72, 80, 88, 92, 28, 32, 480, 484, 488, 492, 496]
                .into_iter()
                .zip(&values)
            {
                block[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            for (at, value) in [76, 77, 78, 79, 84, 85].into_iter().zip(&small) {
                block[at] = *value;
            }
            block[16..20].fill(0);
            let crc = crc32(&block);
            block[16..20].copy_from_slice(&crc.to_le_bytes());
            rig.disk.put(copy, block);
        }
        // Whatever happens to the files, only blocks that exist are accessed.
        if rig.mount().is_ok() {
            let _ = rig.put("another", &data(2, 2000), true);
            let _ = rig.remove("a folder/a file with a long name.txt");
            let _ = rig.mount();
        }
        prop_assert!(rig.disk.reads < READS_MAX, "{} reads", rig.disk.reads);
    }
}
