//! Volumes made by mkfs.fat, with files written by the crate fatfs.
//!
//! With `CARDIOGRAPH_PROGRAMS=0`, as `cargo xtask test` sets it, the volumes are recorded ones, and fsck.fat judges none:
//! the layer with programs runs these tests again. `CARDIOGRAPH_RECORD_VOLUMES=1` records volumes that are missing in
//! `tests/data/volumes`: the addresses, little endian, and contents of their blocks that are not zero.

use super::{Disk, check};
use cardiograph_card::Block;
use cardiograph_sim_world::Seed;
use fatfs::{FileSystem, FsOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// First block of a partition.
const PARTITION_START: u32 = 63;
/// No formatting program writes beyond this offset.
const READ_BYTES_MAX: u64 = 40 << 20;

/// Parameters of a volume.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub blocks: u32,
    pub fat_bits: u32,
    pub fats: u32,
    pub cluster_blocks: u32,
    pub has_table: bool,
    /// Contains fragmented files of other programs. The crate fatfs accepts FAT32 only with many clusters.
    pub has_files: bool,
}

/// A small volume without a partition table.
pub const FAT16: Spec = Spec {
    blocks: 6000,
    fat_bits: 16,
    fats: 2,
    cluster_blocks: 1,
    has_table: false,
    has_files: true,
};
/// A small volume with a partition table.
pub const FAT32: Spec = Spec {
    blocks: 70_000,
    fat_bits: 32,
    has_table: true,
    ..FAT16
};

/// A card with a volume.
#[derive(Clone)]
pub struct Image {
    pub disk: Disk,
    /// The volume's first block.
    pub start: u32,
    /// True if the crate fatfs can read the volume.
    pub is_for_fatfs: bool,
    /// Contents of the other programs' files.
    pub files: BTreeMap<String, Vec<u8>>,
}

fn temporary() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "fat-{}-{}.img",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn command(program: &str) -> Command {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

fn has_programs() -> bool {
    !std::env::var("CARDIOGRAPH_PROGRAMS").is_ok_and(|value| value == "0")
}

/// Returns an empty card after formatting it with a program, or the recorded one.
pub fn made_by(program: &str, args: &[&str], blocks: u32) -> Vec<u8> {
    let name = format!("{program}{}-{blocks}.blocks", args.concat());
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/volumes")
        .join(name);
    if !has_programs() {
        return replayed(&recorded, blocks);
    }
    let bytes = formatted(program, args, blocks);
    if std::env::var_os("CARDIOGRAPH_RECORD_VOLUMES").is_some() && !recorded.exists() {
        record(&recorded, &bytes);
    }
    let path = recorded.display();
    assert!(
        recorded.exists(),
        "{path} is missing; record it with CARDIOGRAPH_RECORD_VOLUMES=1"
    );
    bytes
}

fn formatted(program: &str, args: &[&str], blocks: u32) -> Vec<u8> {
    let path = temporary();
    let file = File::create(&path).unwrap();
    file.set_len(u64::from(blocks) * 512).unwrap();
    let output = command(program).args(args).arg(&path).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{program}: {error}; without it: cargo xtask test, or CARDIOGRAPH_PROGRAMS=0")
    });
    assert!(output.status.success(), "{output:?}");
    let mut bytes = Vec::new();
    let file = File::open(&path).unwrap();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes
}

fn record(path: &Path, bytes: &[u8]) {
    let mut recorded = Vec::new();
    for (number, block) in (0_u32..).zip(bytes.as_chunks::<512>().0) {
        if *block != [0; 512] {
            recorded.extend(number.to_le_bytes());
            recorded.extend(block);
        }
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Other tests may read or record the same volume at this moment.
    let own = temporary();
    std::fs::write(&own, recorded).unwrap();
    std::fs::rename(own, path).unwrap();
}

fn replayed(path: &Path, blocks: u32) -> Vec<u8> {
    let recorded = std::fs::read(path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; record it with CARDIOGRAPH_RECORD_VOLUMES=1 and programs",
            path.display()
        )
    });
    let bytes = (u64::from(blocks) * 512).min(READ_BYTES_MAX);
    let mut volume = vec![0; bytes as usize];
    for block in recorded.as_chunks::<516>().0 {
        let (number, data) = block.split_first_chunk().unwrap();
        let at = u32::from_le_bytes(*number) as usize * 512;
        volume[at..at + 512].copy_from_slice(data);
    }
    volume
}

impl Spec {
    pub fn make(self) -> Image {
        let start = if self.has_table { PARTITION_START } else { 0 };
        let number = |number: u32| number.to_string();
        let mut bytes = made_by(
            "mkfs.fat",
            &[
                "-F",
                &number(self.fat_bits),
                "-f",
                &number(self.fats),
                "-s",
                &number(self.cluster_blocks),
                "-h",
                &number(start),
                "-i",
                "CA4D1064",
                "-a",
            ],
            self.blocks,
        );
        let files = if self.has_files {
            put_files(&mut bytes)
        } else {
            BTreeMap::new()
        };
        let mut blocks = vec![[0; 512]; start as usize];
        if self.has_table {
            blocks[0] = table(start, self.blocks, if self.fat_bits == 16 { 6 } else { 12 });
        }
        blocks.extend_from_slice(bytes.as_chunks::<512>().0);
        Image {
            disk: Disk::new(blocks, start + self.blocks),
            start,
            is_for_fatfs: self.has_files,
            files,
        }
    }
}

/// Returns a partition table with one partition.
pub fn table(start: u32, blocks: u32, kind: u8) -> Block {
    let mut table = [0; 512];
    table[446 + 4] = kind;
    table[446 + 8..446 + 12].copy_from_slice(&start.to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&blocks.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    table
}

/// Writes fragmented files with long and short names, and holes between them.
fn put_files(bytes: &mut [u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let file_system = FileSystem::new(Cursor::new(bytes), FsOptions::new()).unwrap();
    let root = file_system.root_dir();
    let names = ["a long name of somebody.txt", "HOLES.BIN", "DSC00041.JPG"];
    let mut random = Seed::new(5).stream("files");
    for _ in 0..6 {
        for name in names {
            let mut part = vec![0; 3000 + random.below(3000) as usize];
            part.fill_with(|| random.next_u64() as u8);
            let mut file = root.create_file(name).unwrap();
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(&part).unwrap();
            let whole: &mut Vec<u8> = files.entry(name.to_string()).or_default();
            whole.extend_from_slice(&part);
        }
    }
    root.remove("HOLES.BIN").unwrap();
    files.remove("HOLES.BIN");
    drop(root);
    // Corrects FSInfo.
    file_system.stats().unwrap();
    file_system.unmount().unwrap();
    files
}

/// Adds entries of empty files to the root directory until only `free` entries are left in its blocks.
pub fn put_root_entries(image: &mut Image, free: usize) {
    let listing = check(&image.disk, image.start).unwrap();
    let mut count = 0;
    let blocks = listing.root_blocks;
    let room = blocks.len() * 16 - free;
    for block in blocks {
        let mut data = *image.disk.block(block);
        for entry in data.as_chunks_mut::<32>().0 {
            if matches!(entry[0], 0 | 0xE5) && count < room {
                entry.fill(0);
                entry[..11].copy_from_slice(format!("FILL{count:04}TXT").as_bytes());
                entry[11] = 0x20;
            }
            count += 1;
        }
        image.disk.put(block, data);
    }
}

impl Image {
    /// Fills free clusters with stale data, as deleted files would.
    pub fn add_stale_data(&mut self) {
        const BLOCKS: u32 = 4000;
        let listing = check(&self.disk, self.start).unwrap();
        let first = listing.root_blocks.last().unwrap() + 1;
        let is_taken = |block: &u32| {
            listing
                .files
                .values()
                .any(|file| file.blocks.contains(block))
        };
        for block in (first..first + BLOCKS).filter(|block| !is_taken(block)) {
            self.disk.put(block, [b'S'; 512]);
        }
        let blocks = (0..self.disk.used()).map(|block| *self.disk.block(block));
        self.disk = Disk::new(blocks.collect(), self.disk.count());
    }

    /// Returns the files that the crate fatfs finds: long names and sizes by short name without a dot. The
    /// other programs' files must be unchanged.
    pub fn as_fatfs_sees(&self, disk: &Disk) -> BTreeMap<String, (String, u64)> {
        let bytes = disk.bytes(self.start..disk.used());
        let file_system = FileSystem::new(Cursor::new(bytes), FsOptions::new()).unwrap();
        let mut files = BTreeMap::new();
        let mut theirs = 0;
        let mut todo = vec![(String::new(), file_system.root_dir())];
        while let Some((path, directory)) = todo.pop() {
            for file in directory.iter().map(Result::unwrap) {
                let (short, long) = (file.short_file_name(), file.file_name());
                if short.starts_with('.') {
                    continue;
                }
                let (base, extension) = short.split_once('.').unwrap_or((&short, ""));
                let name = match extension {
                    "" => format!("{path}{base}"),
                    _ => format!("{path}{base:<8}{extension}"),
                };
                if file.is_dir() {
                    todo.push((format!("{name}/"), file.to_dir()));
                } else if let Some(whole) = self.files.get(&long) {
                    let mut data = Vec::new();
                    file.to_file().read_to_end(&mut data).unwrap();
                    assert!(*whole == data, "{long} has changed");
                    theirs += 1;
                }
                files.insert(name, (long, file.len()));
            }
        }
        assert_eq!(
            theirs,
            self.files.len(),
            "a file of another program is missing"
        );
        files
    }
}

/// Returns an image of the volume alone, and a card on which it begins later; each with the volume's first block.
pub fn elsewhere(disk: &Disk, start: u32) -> [(Disk, u32); 2] {
    const FURTHER: u32 = 1_985;
    let blocks: Vec<Block> = (start..disk.used()).map(|it| *disk.block(it)).collect();
    let count = disk.count() - start;
    let to = start + FURTHER;
    let mut moved = vec![[0; 512]; to as usize];
    let is_16 = blocks[0][22..24] != [0; 2];
    moved[0] = table(to, count, if is_16 { 6 } else { 12 });
    moved.extend(&blocks);
    [
        (Disk::new(blocks, count), 0),
        (Disk::new(moved, to + count), to),
    ]
}

/// Writes a volume to a sparse file.
fn to_file(disk: &Disk, start: u32) -> PathBuf {
    let path = temporary();
    let mut file = File::create(&path).unwrap();
    file.set_len(u64::from(disk.count() - start) * 512).unwrap();
    for block in start..disk.used() {
        let data = disk.block(block);
        if *data != [0; 512] {
            file.seek(SeekFrom::Start(u64::from(block - start) * 512))
                .unwrap();
            file.write_all(data).unwrap();
        }
    }
    path
}

/// Returns the complaints of fsck.fat about a volume; none without programs.
pub fn fsck(disk: &Disk, start: u32) -> Result<(), String> {
    if !has_programs() {
        return Ok(());
    }
    let path = to_file(disk, start);
    let output = command("fsck.fat").arg("-n").arg(&path).output().unwrap();
    std::fs::remove_file(path).unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the volume after a computer has repaired it and written a file to it.
pub fn repaired(disk: &Disk, start: u32, name: &str, data: &[u8]) -> Disk {
    on_computer(disk, start, |path| {
        command("fsck.fat").arg("-a").arg(path).output().unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        let file_system = FileSystem::new(file, FsOptions::new()).unwrap();
        let mut file = file_system.root_dir().create_file(name).unwrap();
        file.write_all(data).unwrap();
        drop(file);
        file_system.unmount().unwrap();
    })
}

/// Returns the volume after a computer has written a file, and its folders.
pub fn with_file(disk: &Disk, start: u32, name: &str, data: &[u8]) -> Disk {
    on_computer(disk, start, |path| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let file_system = FileSystem::new(file, FsOptions::new()).unwrap();
        let root = file_system.root_dir();
        if let Some((folder, _)) = name.split_once('/') {
            root.create_dir(folder).unwrap();
        }
        root.create_file(name).unwrap().write_all(data).unwrap();
        drop(root);
        file_system.unmount().unwrap();
    })
}

/// Returns the volume after a computer has deleted a file.
pub fn without(disk: &Disk, start: u32, name: &str) -> Disk {
    on_computer(disk, start, |path| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let file_system = FileSystem::new(file, FsOptions::new()).unwrap();
        file_system.root_dir().remove(name).unwrap();
        file_system.unmount().unwrap();
    })
}

fn on_computer(disk: &Disk, start: u32, work: impl FnOnce(&Path)) -> Disk {
    let path = to_file(disk, start);
    work(&path);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let mut disk = disk.powered_up();
    for (block, data) in (start..).zip(bytes.as_chunks::<512>().0) {
        if disk.block(block) != data {
            disk.put(block, *data);
        }
    }
    disk
}

/// Returns the paths of all files of a volume by their long names, as read by the crate fatfs.
pub fn long_names(disk: &Disk) -> Vec<String> {
    let bytes = disk.bytes(0..disk.used());
    let file_system = FileSystem::new(Cursor::new(bytes), FsOptions::new()).unwrap();
    let (mut names, mut todo) = (Vec::new(), vec![(String::new(), file_system.root_dir())]);
    while let Some((path, directory)) = todo.pop() {
        for file in directory.iter().map(Result::unwrap) {
            let name = format!("{path}{}", file.file_name());
            match file.is_dir() {
                true if file.short_file_name().starts_with('.') => (),
                true => todo.push((format!("{name}/"), file.to_dir())),
                false => names.push(name),
            }
        }
    }
    names
}
