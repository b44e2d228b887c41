//! Cards recorded by version 0.1, constructed by hand according to its docs/formats.md.

use crate::fat_rig;

use cardiograph_recorder::{Event, FileId, recover};
use fat_rig::*;

const FAT16: Spec = Spec {
    has_files: false,
    ..fat_rig::FAT16
};
const EPOCH: u32 = 0x5F3A_9C01;
const FILE_BLOCKS: u32 = 200;
/// Blocks with lines, each ending with a mark.
const USED_BLOCKS: u32 = 3;
const LINE: &[u8] = b"0,1,2\r\n";

/// An interrupted operation: its code in the journal, and the field after the sequence number.
struct Under {
    kind: u8,
    first: u32,
    has_file: bool,
}

const NOTHING: Under = Under {
    kind: 0,
    first: 0,
    has_file: false,
};

/// CRC-32 (IEEE 802.3), a bit at a time.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 }
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// Returns a block of lines that ends with a mark of version 0.1.
fn block_of(index: u32) -> [u8; 512] {
    let mut block = [b' '; 512];
    let lines = LINE.repeat(20);
    block[..lines.len()].copy_from_slice(&lines);
    block[lines.len()..][..3].copy_from_slice(b",,#");
    let tail = format!("@{EPOCH:08X} {index:08X} {index:08X} ");
    block[474..502].copy_from_slice(tail.as_bytes());
    let crc = format!("{:08X}\r\n", crc32(&block[..502]));
    block[502..].copy_from_slice(crc.as_bytes());
    block
}

/// Returns a card on which version 0.1 has finished REC00040.CSV and left REC00042.CSV unfinished; a photo
/// has number 41.
fn card(under: &Under) -> Image {
    let mut image = FAT16.make();
    let mut disk = Rig::mounted(image.disk.clone()).disk.powered_up();
    // Occupies the clusters that are free before the journal.
    let finished = vec![b'x'; 15 * 512];
    disk = with_file(&disk, 0, "REC00040.CSV", &finished);
    let mut bytes = Vec::new();
    (0..USED_BLOCKS).for_each(|index| bytes.extend(block_of(index)));
    // Stale blocks of another recording.
    bytes.resize(FILE_BLOCKS as usize * 512, b'o');
    disk = with_file(&disk, 0, "REC00042.CSV", &bytes);
    let listing = check(&disk, 0).unwrap();
    let blocks = &listing.files["REC00042CSV"].blocks;
    assert!(
        blocks.is_sorted_by(|one, next| one + 1 == *next),
        "{blocks:?}"
    );
    let data = listing.root_blocks.last().unwrap() + 1;
    // Version 0.1 wrote no long names.
    let mut place = None;
    for block in &listing.root_blocks {
        let mut entries = *disk.block(*block);
        let (all, _) = entries.as_chunks_mut::<32>();
        for at in 0..16 {
            if all[at].starts_with(b"REC0004") {
                if &all[at][..11] == b"REC00042CSV" {
                    all[at][11] = 0x24;
                    place = Some((*block, at as u8));
                }
                assert_eq!(all[at - 1][11], 0x0F);
                all[at - 1] = [0; 32];
                all[at - 1][0] = 0xE5;
            }
        }
        disk.put(*block, entries);
    }
    let (block, index) = place.unwrap();
    let journal = &listing.files["CARDIOGRJNL"].blocks;
    let mut file = [0; 32];
    file[..11].copy_from_slice(b"REC00042CSV");
    file[11] = index;
    for (at, value) in [
        (12, block),
        (16, blocks[0] - data + 2),
        (20, FILE_BLOCKS),
        (24, EPOCH),
        (28, 0),
    ] {
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let mut record = [0; 512];
    record[..8].copy_from_slice(b"CARDIOJ1");
    record[8] = under.kind;
    for (at, value) in [
        (12, 1000),
        (20, 0xCA4D_1064),
        (24, journal[0] - data + 2),
        (28, under.first),
        (36, 1),
        (40, 43),
        (44, 77),
        (48, u32::MAX),
        (52, 2),
    ] {
        record[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    if under.has_file {
        record[64..96].copy_from_slice(&file);
    } else {
        record[96..128].copy_from_slice(&file);
    }
    let crc = crc32(&record);
    record[16..20].copy_from_slice(&crc.to_le_bytes());
    disk.put(journal[0], record);
    disk.put(journal[64], [0; 512]);
    image.files.insert("REC00040.CSV".into(), finished);
    image.disk = disk;
    image
}

fn old(number: u32) -> FileId {
    FileId {
        number,
        ..rec(number)
    }
}

fn assert_sound(rig: &Rig, image: &Image) -> Listing {
    fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    image.as_fatfs_sees(&rig.disk);
    check(&rig.disk, image.start).unwrap()
}

#[test]
fn an_unfinished_file_is_closed_under_its_old_name() {
    let image = card(&NOTHING);
    let mut rig = Rig::mounted(image.disk.clone());
    let [file] = rig.reserved()[..] else {
        panic!("{:?}", rig.reserved())
    };
    assert!(file.is_version_0_1);
    assert_eq!((file.id, file.epoch, file.note), (Some(old(42)), EPOCH, 0));
    let mut events = Vec::new();
    let report = |_: &mut Disk, event| events.push(event);
    done(recover(&mut rig.volume, &mut rig.disk, report)).unwrap();
    let bytes = u64::from(USED_BLOCKS - 1) * 512 + 20 * LINE.len() as u64;
    let is_it = |event: &Event| matches!(event, Event::Recovered { record } if record.id == old(42) && record.bytes == bytes);
    assert!(events.len() == 1 && is_it(&events[0]), "{events:?}");
    let listing = assert_sound(&rig, &image);
    let entry = &listing.files["REC00042CSV"];
    assert_eq!((u64::from(entry.size), entry.attributes), (bytes, 0x20));
    // Recordings of version 0.1 are neither counted nor removed.
    assert_eq!(rig.record(10, 100), rec(1));
    assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1)));
    assert_eq!(rig.remove_oldest().unwrap(), None);
    let listing = assert_sound(&rig, &image);
    assert!(listing.files.contains_key("REC00040CSV"));
    assert!(listing.files.contains_key("REC00042CSV"));
    rig.remount();
    assert_eq!(rig.reserved(), []);
}

#[test]
fn interrupted_operations_of_version_0_1_are_completed_or_undone() {
    let under = |kind, first, has_file| Under {
        kind,
        first,
        has_file,
    };
    for (under, size) in [
        (under(1, 0, true), None),
        (under(2, 5000, false), Some(5000)),
        (under(3, 0, false), None),
        (under(4, 0, true), None),
    ] {
        let image = card(&under);
        let mut rig = Rig::mounted(image.disk.clone());
        let listing = assert_sound(&rig, &image);
        let entry = listing.files.get("REC00042CSV");
        assert_eq!(entry.map(|entry| entry.size), size);
        assert_eq!(rig.reserved(), []);
        let removed = (under.kind == 4).then_some(old(42));
        assert_eq!(rig.take_removed(), removed);
        rig.remount();
        assert_eq!(rig.record(10, 100), rec(1));
        assert_sound(&rig, &image);
    }
}

#[test]
fn every_cut_while_an_old_file_is_closed_can_be_recovered() {
    let image = card(&NOTHING);
    for after in 0.. {
        let mut rig = Rig::new(image.disk.cut_after(after, Torn::Prefix));
        let done_before = done(recover(&mut rig.volume, &mut rig.disk, |_, _| ())).is_ok();
        let mut rig = Rig::new(rig.disk.powered_up());
        done(recover(&mut rig.volume, &mut rig.disk, |_, _| ())).unwrap();
        let listing = assert_sound(&rig, &image);
        assert_eq!(listing.files["REC00042CSV"].size, 2 * 512 + 140);
        if done_before {
            assert!(after > 3);
            break;
        }
    }
}
