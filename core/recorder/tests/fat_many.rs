//! Many recordings: the cost of an operation must not depend on their number.

use crate::fat_rig;

use cardiograph_recorder::{FileRecord, Request, ShortText};
use fat_rig::*;
use std::collections::VecDeque;

/// A 16 GB card as formatted by the SD Association's tool.
const CARD: Spec = Spec {
    blocks: 31_116_288 - 8192,
    fat_bits: 32,
    fats: 2,
    cluster_blocks: 64,
    has_table: true,
    has_files: false,
};
const RECORDINGS: u32 = 10_000;
/// Maximum number of blocks that a mount reads. Reading them takes about 1.5 s at 4 MHz, where cards read 0.35 MB/s.
const MOUNT_READS_MAX: u64 = 1_000;

const SESSION: &str = "a-session_with-a-long-name_32byt";

/// Returns the numbers of blocks that `work` reads and writes.
fn cost(rig: &mut Rig, work: impl FnOnce(&mut Rig)) -> (u64, u64) {
    let before = (rig.disk.reads, rig.disk.writes);
    work(rig);
    (rig.disk.reads - before.0, rig.disk.writes - before.1)
}

fn record(rig: &mut Rig) -> [(u64, u64); 3] {
    let id = rig.next(REQUEST);
    let mut slot = 0;
    let reserve = cost(rig, |rig| {
        slot = rig
            .reserve(Request {
                blocks: 128,
                ..REQUEST
            })
            .unwrap()
            .slot;
    });
    let name = cost(rig, |rig| rig.name(slot, id, SESSION).unwrap());
    let record = FileRecord {
        session: ShortText::new(SESSION).unwrap(),
        ..FileRecord::of_length(id, 40_000)
    };
    let close = cost(rig, |rig| rig.close(slot, record).unwrap());
    [reserve, name, close]
}

fn mount(rig: &mut Rig) -> u64 {
    rig.disk.reads = 0;
    rig.remount();
    rig.disk.reads
}

#[test]
fn ten_thousand_recordings_cost_no_more_than_ten() {
    let image = CARD.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for _ in 0..10 {
        record(&mut rig);
    }
    let early = record(&mut rig);
    while rig.next(REQUEST).number < RECORDINGS - 12 {
        record(&mut rig);
    }
    let mount_reads = mount(&mut rig);
    // The first recording looks for its folder.
    record(&mut rig);
    let late = record(&mut rig);
    println!("reserve, name, close: {early:?} early, {late:?} late; mount {mount_reads}");
    for (early, late) in early.into_iter().zip(late) {
        assert!(late.0 <= early.0 + 1 && late.1 <= early.1);
    }
    assert!(mount_reads < 100, "{mount_reads}");
    let removal = cost(&mut rig, |rig| {
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1)));
    });
    println!("removal {removal:?}");
    assert!(removal.0 < 40, "{removal:?}");

    while rig.next(REQUEST).number <= RECORDINGS {
        record(&mut rig);
    }
    // A computer may have written to the card, which left no count of free clusters: the mount determines
    // numbers from the last folder.
    let mut fs_info = *rig.disk.block(image.start + 1);
    fs_info[488..492].fill(0xFF);
    rig.disk.put(image.start + 1, fs_info);
    let mount_reads = mount(&mut rig);
    println!("mount after a change {mount_reads}");
    assert!(mount_reads < MOUNT_READS_MAX, "{mount_reads}");
    assert_eq!(rig.next(REQUEST), rec(RECORDINGS + 1));

    // The journal is deleted.
    let root = check(&rig.disk, image.start).unwrap().root_blocks;
    for block in root {
        let mut data = *rig.disk.block(block);
        for entry in data.as_chunks_mut::<32>().0 {
            if entry.starts_with(b"CARDIOGRJNL") {
                entry[0] = 0xE5;
            }
        }
        rig.disk.put(block, data);
    }
    let mount_reads = mount(&mut rig);
    println!("mount without a journal {mount_reads}");
    assert!(mount_reads < MOUNT_READS_MAX, "{mount_reads}");
    assert_eq!(rig.next(REQUEST), rec(RECORDINGS + 1));
    assert_eq!(rig.list(9).len(), 1000);
    assert_eq!(rig.list(9)[999].record.session.as_str(), SESSION);
}

/// Setup: files of 64 MiB, of which the recorder leaves each after 100 kB. When it has used the whole card once, no free
/// run is as long as a file any more.
#[test]
fn files_left_early_need_no_search_of_the_whole_table() {
    let mut rig = Rig::mounted(CARD.make().disk);
    let request = Request {
        blocks: (64 << 20) / 512,
        ..REQUEST
    };
    let mut reads_max = 0;
    let mut blocks_min = u32::MAX;
    let mut prepared = VecDeque::new();
    for _ in 0..600 {
        let (reads, _) = cost(&mut rig, |rig| {
            prepared.push_back(rig.reserve(request).unwrap());
        });
        reads_max = reads_max.max(reads);
        blocks_min = blocks_min.min(prepared[0].extent.blocks);
        if prepared.len() == 7 {
            let slot = prepared.pop_front().unwrap().slot;
            let id = rig.next(REQUEST);
            let record = FileRecord::of_length(id, 100_000);
            rig.close(slot, record).unwrap();
        }
    }
    println!("at most {reads_max} reads, at least {blocks_min} blocks");
    // Its table has 3,800 blocks, of which one file takes 16.
    assert!(reads_max < 100, "{reads_max} reads");
    assert!(blocks_min < request.blocks && blocks_min >= request.blocks / 2);
}
