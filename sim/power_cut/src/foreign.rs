//! A card as its owner inserts it: a file system with foreign files.

use crate::disk::{BlockStream, Disk, Image};
use cardiograph_sim_world::{Random, Seed};
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// Layout of a FAT volume on a card.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    /// Capacity of the card, in bytes.
    pub card_bytes: u64,
    /// First block of the volume; 0 without a partition table.
    pub start: u64,
    /// Length of the volume in bytes; the card may be larger.
    pub bytes: u64,
    /// Size of a cluster, in bytes.
    pub cluster_bytes: u32,
    /// Space in bytes that a foreign file leaves free; `None` if no foreign file fills the volume.
    pub free_bytes: Option<u64>,
}

/// Contents of files, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

const NAMES: [&str; 5] = [
    "a long name of somebody.txt",
    "HOLES.BIN",
    "DSC00041.JPG",
    "Photos of May/second.jpg",
    "LOG.CSV",
];

impl Volume {
    /// Returns the blocks of the volume.
    pub fn blocks(&self) -> Range<u64> {
        let end = (self.start + self.bytes / 512).min(self.card_bytes / 512);
        self.start..end
    }

    /// Formats a card, and writes fragmented files to it, with free space between the fragments.
    ///
    /// # Errors
    /// Errors of the crate fatfs, if the volume cannot be created.
    pub fn make(&self, seed: Seed) -> io::Result<(Image, Files)> {
        let mut image = Image::default();
        let blocks = self.blocks();
        let options = FormatVolumeOptions::new()
            .total_sectors((blocks.end - blocks.start) as u32)
            .bytes_per_cluster(self.cluster_bytes)
            .volume_id(seed.stream("serial").next_u64() as u32);
        fatfs::format_volume(BlockStream::new(&mut image, blocks.clone()), options)?;
        let is_32 = image.block(self.start)[22..24] == [0, 0];
        if self.start > 0 {
            let mut table = [0; 512];
            table[450] = if is_32 { 0x0C } else { 0x0E };
            table[454..458].copy_from_slice(&(self.start as u32).to_le_bytes());
            table[458..462].copy_from_slice(&((blocks.end - blocks.start) as u32).to_le_bytes());
            table[510..].copy_from_slice(&[0x55, 0xAA]);
            image.put(0, &table);
        }
        let mut files = put_files(&mut image, blocks.clone(), &mut seed.stream("files"))?;
        if let Some(free_bytes) = self.free_bytes {
            let filler = fill(&mut image, blocks, free_bytes)?;
            files.insert("FILLER.BIN".into(), filler);
        }
        Ok((image, files))
    }

    /// Reads all files with the crate fatfs.
    ///
    /// # Errors
    /// Errors of the crate fatfs.
    pub fn read(&self, disk: &mut impl Disk) -> io::Result<Files> {
        let file_system = FileSystem::new(BlockStream::new(disk, self.blocks()), FsOptions::new())?;
        let mut files = Files::new();
        read_folder(&file_system.root_dir(), "", &mut files)?;
        Ok(files)
    }
}

fn put_files(image: &mut Image, blocks: Range<u64>, random: &mut Random) -> io::Result<Files> {
    let file_system = FileSystem::new(BlockStream::new(image, blocks), FsOptions::new())?;
    let root = file_system.root_dir();
    root.create_dir("Photos of May")?;
    let mut files = Files::new();
    for _ in 0..random.below(6) {
        for name in NAMES {
            let mut bytes = vec![0; random.below(9000) as usize];
            bytes.fill_with(|| random.next_u64() as u8);
            let mut file = root.create_file(name)?;
            file.seek(SeekFrom::End(0))?;
            file.write_all(&bytes)?;
            files.entry(name.to_string()).or_default().extend(bytes);
        }
    }
    if files.remove("HOLES.BIN").is_some() {
        root.remove("HOLES.BIN")?;
    }
    drop(root);
    // Counting the free clusters updates FSInfo.
    file_system.stats()?;
    file_system.unmount()?;
    image.change_each(fix_dot_entries);
    Ok(files)
}

/// Fills all free space except for `free_bytes` with one file, and returns the contents of the file.
fn fill(image: &mut Image, blocks: Range<u64>, free_bytes: u64) -> io::Result<Vec<u8>> {
    let file_system = FileSystem::new(BlockStream::new(image, blocks), FsOptions::new())?;
    let stats = file_system.stats()?;
    let cluster_bytes = u64::from(stats.cluster_size());
    let clusters = u64::from(stats.free_clusters()).saturating_sub(free_bytes / cluster_bytes);
    let filler = vec![b'F'; (clusters * cluster_bytes) as usize];
    file_system
        .root_dir()
        .create_file("FILLER.BIN")?
        .write_all(&filler)?;
    file_system.unmount()?;
    Ok(filler)
}

/// Removes the long names of `.` and `..`, and sets the cluster of `..` to 0. The crate fatfs writes long
/// names and the cluster of the root directory, and fsck.fat rejects both.
fn fix_dot_entries(block: &mut [u8; 512]) {
    let (entries, _) = block.as_chunks::<32>();
    let is_dots = |at: usize| entries[at][11] == 0x10 && entries[at].starts_with(b".");
    if entries[0][11] != 0x0F || !is_dots(1) || !is_dots(3) {
        return;
    }
    let kept = [&entries[1], &entries[3]].into_iter().chain(&entries[4..]);
    let kept: Vec<u8> = kept.flatten().copied().collect();
    block.fill(0);
    block[..kept.len()].copy_from_slice(&kept);
    block[32 + 20..32 + 22].fill(0);
    block[32 + 26..32 + 28].fill(0);
}

type Folder<'a, 'b, D> = fatfs::Dir<'a, BlockStream<'b, D>>;

fn read_folder<D: Disk>(folder: &Folder<D>, path: &str, files: &mut Files) -> io::Result<()> {
    for entry in folder.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if entry.is_dir() {
            if !name.starts_with('.') {
                read_folder(&entry.to_dir(), &format!("{path}{name}/"), files)?;
            }
            continue;
        }
        let mut bytes = Vec::new();
        entry.to_file().read_to_end(&mut bytes)?;
        files.insert(format!("{path}{name}"), bytes);
    }
    Ok(())
}
