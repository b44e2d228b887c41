//! Places of files and names: the whole card is used, and large clusters and partition tables of all kinds are
//! understood.

use super::*;

/// Larger clusters than those of the other tests.
const LARGE_CLUSTERS: Spec = Spec {
    blocks: 40_000,
    cluster_blocks: 8,
    has_files: false,
    ..FAT16
};

#[test]
fn every_cluster_can_be_used() {
    for spec in [FAT16, FAT32, LARGE_CLUSTERS] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        let all = Request {
            blocks: u32::MAX,
            ..REQUEST
        };
        let error = loop {
            match rig.reserve(all) {
                Ok(file) => {
                    let bytes = u64::from(file.extent.blocks) * 512;
                    let record = FileRecord::of_length(rig.next(REQUEST), bytes);
                    rig.close(file.slot, record).unwrap();
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::NoSpace { longest_blocks: 0 });
        assert_eq!(judge(&rig, &image).free_clusters, 0, "{spec:?}");
    }
}

#[test]
fn recordings_follow_each_other_before_free_space_is_used_again() {
    let image = LARGE_CLUSTERS.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let extent = |rig: &mut Rig| {
        let file = rig.reserve(REQUEST).unwrap();
        let record = FileRecord::of_length(rig.next(REQUEST), 200 * 512);
        rig.close(file.slot, record).unwrap();
        file.extent
    };
    let files: Vec<Extent> = (0..4).map(|_| extent(&mut rig)).collect();
    for pair in files.windows(2) {
        assert_eq!(pair[1].start, pair[0].start + pair[0].blocks);
    }
    assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1)));
    let next = extent(&mut rig);
    assert_eq!(next.start, files[3].start + files[3].blocks);
    judge(&rig, &image);
}

/// On many cards, a unit that is not written from its beginning costs a merge later. Alignments are calculated from the rule:
/// powers of two up to 4 MiB, of which the largest is taken that wastes at most an eighth of the length.
#[test]
fn files_begin_at_units_of_the_card_unless_that_wastes_space() {
    for (blocks, alignment) in [
        (8, 8),
        (1000, 1024),
        (8192, 8192),
        (16_384, 8192),
        (18_432, 4096),
        (20_000, 4096),
        (57_400, 4096),
    ] {
        let spec = Spec {
            blocks: 2_200_000,
            has_files: false,
            ..FAT32
        };
        let mut rig = Rig::mounted(spec.make().disk.clone());
        let mut end = 0;
        for number in 0..2 {
            let request = Request { blocks, ..REQUEST };
            let file = rig.reserve(request).unwrap();
            assert_eq!(file.extent.blocks, blocks);
            assert_eq!(file.extent.start % alignment, 0, "{blocks} blocks");
            let unused = file.extent.start - end;
            assert!(number == 0 || unused <= blocks / 8, "{unused} of {blocks}");
            end = file.extent.start + file.extent.blocks;
            let bytes = u64::from(blocks) * 512;
            let record = FileRecord::of_length(rig.next(REQUEST), bytes);
            rig.close(file.slot, record).unwrap();
        }
    }
}

#[test]
fn recordings_are_removed_in_their_order_with_large_clusters() {
    let image = LARGE_CLUSTERS.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for number in 1..=50 {
        assert_eq!(rig.record(1, 100), rec(number));
    }
    let free = judge(&rig, &image).free_clusters;
    rig.remount();
    for number in 1..=50 {
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(number)));
    }
    assert_eq!(judge(&rig, &image).free_clusters, free + 50);
}

/// Boot code begins with a jump, as a boot sector does.
#[test]
fn a_partition_table_may_contain_boot_code() {
    let mut image = FAT32.make();
    let mut table = *image.disk.block(0);
    // The first bytes of GRUB 2's boot.img.
    table[..4].copy_from_slice(&[0xEB, 0x63, 0x90, 0x10]);
    table[0x60..0x80].copy_from_slice(b"GRUB Geom Hard Disk Read  Error ");
    image.disk.put(0, table);
    let mut rig = Rig::mounted(image.disk.clone());
    assert_eq!(rig.record(10, 100), rec(1));
    judge(&rig, &image);
}

#[test]
fn a_card_without_room_for_the_journal_says_what_is_free() {
    let image = LARGE_CLUSTERS.make();
    let free = check(&image.disk, 0).unwrap().free_clusters;
    let bytes = vec![7; (free as usize - 3) * 8 * 512];
    let disk = with_file(&image.disk, 0, "LARGE.BIN", &bytes);
    let error = Rig::new(disk).mount().unwrap_err();
    assert_eq!(error, Error::NoSpace { longest_blocks: 24 });
}

#[test]
fn numbers_used_by_a_computer_are_skipped_in_every_folder() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for number in [999, 1000] {
        let file = rig
            .reserve(Request {
                blocks: 10,
                ..REQUEST
            })
            .unwrap();
        rig.close(file.slot, FileRecord::of_length(rec(number), 100))
            .unwrap();
    }
    rig.disk = with_file(&rig.disk, image.start, "REC00001/REC01007.CSV", b"moved");
    rig.remount();
    assert_eq!(rig.record(10, 100), rec(1008));
    judge(&rig, &image);
}

/// Each recording has a place of its own in its folder, so that no search is needed.
#[test]
fn a_name_takes_as_many_reads_in_a_long_folder_as_in_a_short_one() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let mut reads_of = |number: u32| {
        let file = rig
            .reserve(Request {
                blocks: 1,
                ..REQUEST
            })
            .unwrap();
        let before = rig.disk.reads;
        rig.name(file.slot, rec(number), "").unwrap();
        let reads = rig.disk.reads - before;
        rig.close(file.slot, FileRecord::of_length(rec(number), 100))
            .unwrap();
        reads
    };
    let reads: Vec<u64> = (1..120).map(&mut reads_of).collect();
    let first = reads[1];
    assert!(
        reads[1..].iter().all(|reads| *reads <= first + 1),
        "{reads:?}"
    );
}
