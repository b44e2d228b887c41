//! Cards on which a computer has used the name of an interrupted recording.

use crate::fat_rig;

use cardiograph_recorder::{Event, FileRecord, recover};
use fat_rig::*;

const VOLUMES: [Spec; 2] = [
    Spec {
        blocks: 6000,
        fat_bits: 16,
        fats: 2,
        cluster_blocks: 1,
        has_table: false,
        has_files: false,
    },
    Spec {
        blocks: 70_000,
        fat_bits: 32,
        fats: 2,
        cluster_blocks: 1,
        has_table: true,
        has_files: true,
    },
];
const LINES: &[u8] = b"1,2\r\n3,4\r\n5,6\r\n";
/// Blocks with lines, each ending with a mark.
const USED_BLOCKS: u32 = 3;
const BYTES: u32 = (USED_BLOCKS - 1) * 512 + LINES.len() as u32;
const FOREIGN: &[u8] = b"a file of a computer";

/// CRC-32 (IEEE 802.3), a bit at a time.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 }
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// Returns a block of lines that ends with a mark. Block 0 contains the number of the recording.
fn block_of(epoch: u32, index: u32, number: u32) -> [u8; 512] {
    let mut block = [b' '; 512];
    block[..LINES.len()].copy_from_slice(LINES);
    block[LINES.len()..][..2].copy_from_slice(b",#");
    let durable = if index == 0 { number } else { index };
    let samples = 3 * (index + 1);
    let fields = format!("@{epoch:08X} {index:08X} {durable:08X} {samples:08X} ");
    let tail = format!("{fields}{:08X} {:08X} {:08X} ", 0, 0, 0);
    block[438..502].copy_from_slice(tail.as_bytes());
    let crc = format!("{:08X}\r\n", crc32(&block[..502]));
    block[502..].copy_from_slice(crc.as_bytes());
    block
}

/// Returns a card whose power was cut while recording 2 was being written, before it was named. Recording 1
/// is finished.
fn interrupted(spec: Spec) -> Image {
    let mut image = spec.make();
    let mut rig = Rig::mounted(image.disk.clone());
    assert_eq!(rig.record(10, 100), rec(1));
    let file = rig.reserve(REQUEST).unwrap();
    for index in 0..USED_BLOCKS {
        let block = block_of(file.epoch, index, 2);
        rig.disk.put(file.extent.start + index, block);
    }
    image.disk = rig.disk.powered_up();
    image
}

fn recovered(rig: &mut Rig) -> Result<Vec<FileRecord>, String> {
    let mut records = Vec::new();
    let report = |_: &mut Disk, event| match event {
        Event::Recovered { record } => records.push(record),
        other => panic!("{other:?}"),
    };
    let result = done(recover(&mut rig.volume, &mut rig.disk, report));
    result.map_err(|error| error.to_string())?;
    Ok(records)
}

/// Checks that recording 2 exists under this number, and that the computer's file is unchanged.
fn judge(rig: &Rig, image: &Image, number: u32) {
    fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    image.as_fatfs_sees(&rig.disk);
    let listing = check(&rig.disk, image.start).unwrap();
    let file = &listing.files[&format!("REC00000/REC{number:05}CSV")];
    assert_eq!((file.size, file.attributes), (BYTES, 0x20));
    let start = file.blocks[0];
    let bytes = rig.disk.bytes(start..start + USED_BLOCKS);
    assert!(bytes.starts_with(LINES) && bytes[..BYTES as usize].ends_with(LINES));
}

#[test]
fn a_recording_whose_name_is_free_keeps_its_number() {
    for spec in VOLUMES {
        let image = interrupted(spec);
        let mut rig = Rig::new(image.disk.clone());
        let records = recovered(&mut rig).unwrap();
        assert_eq!((records.len(), records[0].id), (1, rec(2)));
        judge(&rig, &image, 2);
    }
}

/// The computer puts its file at the beginning of the folder, not at the recorder's position for it.
#[test]
fn a_recording_whose_name_was_taken_gets_the_next_number() {
    for spec in VOLUMES {
        let mut image = interrupted(spec);
        let start = image.start;
        for number in [2, 3, 7] {
            let name = format!("REC0000{number}.CSV");
            let path = format!("REC00000/{name}");
            image.disk = with_file(&image.disk, start, &path, FOREIGN);
            image.files.insert(name, FOREIGN.to_vec());
        }
        let mut rig = Rig::new(image.disk.clone());
        let records = recovered(&mut rig).unwrap();
        assert_eq!((records.len(), records[0].id), (1, rec(8)));
        assert_eq!((records[0].bytes, records[0].samples), (BYTES.into(), 9));
        judge(&rig, &image, 8);
        assert_eq!(
            rig.list(0).last().map(|listed| listed.record),
            Some(records[0])
        );
        // Numbering continues after it.
        rig.remount();
        assert_eq!((rig.reserved(), rig.record(10, 100)), (vec![], rec(9)));
        judge(&rig, &image, 8);
    }
}

#[test]
fn every_cut_in_recovery_ends_in_one_file() {
    let mut image = interrupted(VOLUMES[0]);
    image.disk = with_file(&image.disk, image.start, "REC00000/REC00002.CSV", FOREIGN);
    image.files.insert("REC00002.CSV".into(), FOREIGN.to_vec());
    for after in 0.. {
        let mut rig = Rig::new(image.disk.cut_after(after, Torn::Prefix));
        let is_done = recovered(&mut rig).is_ok();
        let mut rig = Rig::new(rig.disk.powered_up());
        let records = recovered(&mut rig).unwrap();
        assert!(records.iter().all(|record| record.id == rec(3)), "{after}");
        judge(&rig, &image, 3);
        let listing = check(&rig.disk, image.start).unwrap();
        let is_recording = |name: &&String| name.starts_with("REC00000/REC");
        assert_eq!(listing.files.keys().filter(is_recording).count(), 3);
        if is_done {
            assert!(after > 5);
            break;
        }
    }
}
