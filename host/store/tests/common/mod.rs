//! Helpers that the store tests share: image files of cards, and a check with fsck.fat.

use cardiograph_sim_card::{BLOCK_BYTES, Card};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the block range of the card's partition.
pub fn partition_of(card: &Card) -> Range<u64> {
    let mut table = [[0; BLOCK_BYTES]];
    card.load(0, &mut table);
    let u32_at =
        |at: usize| u64::from(u32::from_le_bytes(table[0][at..at + 4].try_into().unwrap()));
    u32_at(454)..u32_at(454) + u32_at(458)
}

/// Writes the partition to a sparse file.
pub fn image(card: &Card, name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = File::create(&path).unwrap();
    let partition = partition_of(card);
    file.set_len((partition.end - partition.start) * BLOCK_BYTES as u64)
        .unwrap();
    let mut data = [[0; BLOCK_BYTES]];
    for (i, block) in partition.enumerate() {
        card.load(block, &mut data);
        if data[0] != [0; BLOCK_BYTES] {
            file.seek(SeekFrom::Start((i * BLOCK_BYTES) as u64))
                .unwrap();
            file.write_all(&data[0]).unwrap();
        }
    }
    path
}

/// Asserts that fsck.fat finds no errors in a file system; returns its output.
pub fn fsck(image: &Path) -> String {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let output = Command::new("fsck.fat")
        .arg("-n")
        .arg(image)
        .env("PATH", path)
        .output();
    let output = output.expect("install fsck.fat (Debian package dosfstools)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text
}
