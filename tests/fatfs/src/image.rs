//! The card's file system in a file, for judges that do not share code with FatFs or the card.

use cardiograph_sim_card::{BLOCK_BYTES, Card};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use tempfile::NamedTempFile;

/// Copies the blocks from `first_block` on, read without the bus.
pub fn write_partition(card: &mut Card, first_block: u64) -> NamedTempFile {
    let mut image = NamedTempFile::new().unwrap();
    for block in first_block..card.blocks() {
        let mut data = [[0; BLOCK_BYTES]];
        card.load(block, &mut data);
        match data == [[0; BLOCK_BYTES]] {
            true => drop(image.seek(SeekFrom::Current(BLOCK_BYTES as i64)).unwrap()),
            false => image.write_all(data.as_flattened()).unwrap(),
        }
    }
    let bytes = (card.blocks() - first_block) * BLOCK_BYTES as u64;
    image.as_file().set_len(bytes).unwrap();
    image
}

/// Fails if fsck.fat finds anything to repair.
pub fn check(image: &Path) {
    let output = Command::new("fsck.fat")
        .args(["-n", "-v"])
        .arg(image)
        .output();
    let output = output.expect("fsck.fat; install dosfstools");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}

/// Reads a file with another implementation of FAT.
pub fn content_of(image: &Path, path: &str) -> Vec<u8> {
    let file = File::options().read(true).write(true).open(image).unwrap();
    let volume = fatfs::FileSystem::new(file, fatfs::FsOptions::new()).unwrap();
    let mut content = Vec::new();
    let mut file = volume.root_dir().open_file(path).unwrap();
    file.read_to_end(&mut content).unwrap();
    content
}
