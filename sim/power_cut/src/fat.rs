//! An independent checker of FAT volumes: it shares no code with the recorder.

use crate::changes::is_upload;
use crate::disk::Disk;
use cardiograph_sim_card::BLOCK_BYTES;
use std::collections::BTreeMap;

/// A file or folder, from its directory entry and its cluster chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Attributes in the directory entry.
    pub attributes: u8,
    /// Length of the file in bytes.
    pub bytes: u32,
    /// Blocks of the cluster chain in order, including blocks past the end of the file in its last cluster.
    pub blocks: Vec<u64>,
}

/// Files and folders by path: padded short names, separated by slashes.
pub type Listing = BTreeMap<String, Entry>;

const FOLDER: u8 = 0x10;
const LABEL: u8 = 0x08;

struct Fat {
    entries: Vec<u32>,
    has_owner: Vec<bool>,
    is_32: bool,
    data: u64,
    cluster_blocks: u64,
    state: State,
    /// First clusters of prepared files and of uploads.
    hidden: Vec<u32>,
    /// First clusters of files that are uploaded and renamed, with the blocks of each.
    uploads: BTreeMap<u32, Vec<u64>>,
    /// True if one of them has two entries.
    is_renaming: bool,
}

impl Fat {
    /// Returns the blocks of a cluster chain; fails if one of its clusters already belongs to another file.
    fn chain(&mut self, first: u32, whose: &str) -> Result<Vec<u64>, String> {
        let end = if self.is_32 { 0x0FFF_FFF8 } else { 0xFFF8 };
        let mut blocks = Vec::new();
        let mut at = first;
        while at < end {
            if at == 0 && self.state == State::PowerCut && whose == "CARDIOGRJNL" {
                // The recorder finds its journal by the directory entry. The journal's chain may not have
                // been written yet; the next mount writes it.
                return Ok(blocks);
            }
            let owner = self.has_owner.get_mut(at as usize).filter(|_| at >= 2);
            let owner = owner.ok_or(format!("{whose} has the invalid cluster {at}"))?;
            if std::mem::replace(owner, true) {
                return Err(format!("{whose} shares cluster {at} with another file"));
            }
            let start = self.data + u64::from(at - 2) * self.cluster_blocks;
            blocks.extend(start..start + self.cluster_blocks);
            at = self.entries[at as usize];
        }
        Ok(blocks)
    }
}

impl Fat {
    /// Returns the blocks of an uploaded file. While one is being renamed, it has two entries.
    fn upload(&mut self, first: u32, whose: &str) -> Result<Vec<u64>, String> {
        if let Some(blocks) = self.uploads.get(&first).filter(|_| !self.is_renaming) {
            self.is_renaming = true;
            return Ok(blocks.clone());
        }
        let blocks = self.chain(first, whose)?;
        self.uploads.insert(first, blocks.clone());
        Ok(blocks)
    }
}

fn get16(bytes: &[u8], at: usize) -> u32 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    get16(bytes, at) | get16(bytes, at + 2) << 16
}

/// Checks and lists the volume that begins with block `start`.
///
/// # Errors
/// The first inconsistency: different FATs, chains that are broken, shared, lost or do not match the length
/// of their file, duplicate names, a wrong count in FSInfo.
pub fn check(disk: &impl Disk, start: u64) -> Result<Listing, String> {
    check_in(disk, start, State::Mounted)
}

/// Checks and lists a volume after a power cut, before recovery. An interrupted operation of the recorder may
/// leave lost clusters, chains that are longer than their files, and different FATs.
///
/// # Errors
/// The first inconsistency: chains that are shared, broken or shorter than their files, or duplicate names.
pub fn check_unrecovered(disk: &impl Disk, start: u64) -> Result<Listing, String> {
    check_in(disk, start, State::PowerCut)
}

/// Most recent event of a volume.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Mounted,
    PowerCut,
}

/// Returns the length of the longest run of free clusters, in blocks.
///
/// # Errors
/// The FATs differ.
pub fn longest_free_run(disk: &impl Disk, start: u64) -> Result<u64, String> {
    let fat = load(disk, start, State::Mounted)?;
    let runs = fat.entries[2..].split(|entry| *entry != 0);
    let longest = runs.map(<[u32]>::len).max().unwrap_or(0);
    Ok(longest as u64 * fat.cluster_blocks)
}

/// Reads the FAT, without checking its chains.
fn load(disk: &impl Disk, start: u64, state: State) -> Result<Fat, String> {
    let boot = disk.block(start);
    let (reserved, fats, roots) = (get16(&boot, 14), u32::from(boot[16]), get16(&boot, 17));
    let is_32 = get16(&boot, 22) == 0;
    let either = |short, long| match get16(&boot, short) {
        0 => get32(&boot, long),
        number => number,
    };
    let (fat_blocks, blocks) = (either(22, 36), either(19, 32));
    let before_data = reserved + fats * fat_blocks + roots / 16;
    let clusters = (blocks - before_data) / u32::from(boot[13]);
    let bytes = of_blocks(disk, start + u64::from(reserved), fat_blocks);
    let second = start + u64::from(reserved + fat_blocks);
    if state == State::Mounted && fats == 2 && of_blocks(disk, second, fat_blocks) != bytes {
        return Err("the FATs differ".into());
    }
    let entry = |cluster: u32| match is_32 {
        true => get32(&bytes, cluster as usize * 4) & 0x0FFF_FFFF,
        false => get16(&bytes, cluster as usize * 2),
    };
    Ok(Fat {
        entries: (0..clusters + 2).map(entry).collect(),
        has_owner: vec![false; clusters as usize + 2],
        is_32,
        data: start + u64::from(before_data),
        cluster_blocks: boot[13].into(),
        state,
        hidden: Vec::new(),
        uploads: BTreeMap::new(),
        is_renaming: false,
    })
}

fn check_in(disk: &impl Disk, start: u64, state: State) -> Result<Listing, String> {
    let boot = disk.block(start);
    let mut fat = load(disk, start, state)?;
    let root = match fat.is_32 {
        true => fat.chain(get32(&boot, 44), "the root directory")?,
        false => (fat.data - u64::from(get16(&boot, 17) / 16)..fat.data).collect(),
    };
    let mut listing = Listing::new();
    list(disk, &root, "", &mut fat, &mut listing)?;
    if state == State::PowerCut {
        check_hidden(&mut fat)?;
        return Ok(listing);
    }
    let used = |cluster: &usize| fat.entries[*cluster] != 0;
    if let Some(lost) = (2..fat.entries.len()).find(|it| used(it) && !fat.has_owner[*it]) {
        return Err(format!("cluster {lost} is lost"));
    }
    if fat.is_32 {
        let free = (2..fat.entries.len()).filter(|it| !used(it)).count();
        let recorded_free = get32(&disk.block(start + u64::from(get16(&boot, 48))), 488);
        if recorded_free != free as u32 {
            return Err(format!(
                "FSInfo counts {recorded_free} free clusters, but the FAT has {free}"
            ));
        }
    }
    Ok(listing)
}

/// Checks that each prepared file has a cluster chain of its own, or shares the chain of a file that is
/// being named.
fn check_hidden(fat: &mut Fat) -> Result<(), String> {
    for first in std::mem::take(&mut fat.hidden) {
        let is_named = fat.has_owner.get(first as usize) == Some(&true);
        if !is_named {
            fat.chain(first, "a prepared file")?;
        }
    }
    Ok(())
}

fn of_blocks(disk: &impl Disk, start: u64, count: u32) -> Vec<u8> {
    let blocks = start..start + u64::from(count);
    blocks.flat_map(|block| disk.block(block)).collect()
}

fn list(
    disk: &impl Disk,
    blocks: &[u64],
    folder: &str,
    fat: &mut Fat,
    listing: &mut Listing,
) -> Result<(), String> {
    let mut has_ended = false;
    for block in blocks {
        for entry in disk.block(*block).as_chunks::<32>().0 {
            has_ended |= entry[0] == 0;
            if has_ended && entry[0] != 0 {
                return Err(format!(
                    "an entry follows the end mark of directory {folder:?}"
                ));
            }
            let is_file = entry[11] & LABEL == 0 && !matches!(entry[0], 0 | 0xE5 | b'.');
            if is_file {
                list_one(disk, entry, folder, fat, listing)?;
            }
        }
    }
    Ok(())
}

fn list_one(
    disk: &impl Disk,
    entry: &[u8; 32],
    folder: &str,
    fat: &mut Fat,
    listing: &mut Listing,
) -> Result<(), String> {
    let path = format!("{folder}{}", String::from_utf8_lossy(&entry[..11]));
    let (bytes, low, high) = (get32(entry, 28), get16(entry, 26), get16(entry, 20));
    let first = if fat.is_32 { low | high << 16 } else { low };
    // While a file is being named, its hidden entry and its final one share the same chain.
    let is_hidden = path.starts_with("CARDIOGRR") || path.starts_with("CARDIOGRU");
    if fat.state == State::PowerCut && is_hidden {
        fat.hidden.push(first);
        return Ok(());
    }
    let blocks = match first {
        0 => Vec::new(),
        first if fat.state == State::PowerCut && is_upload(&path) => fat.upload(first, &path)?,
        first => fat.chain(first, &path)?,
    };
    let cluster_bytes = fat.cluster_blocks as u32 * BLOCK_BYTES as u32;
    let due = u64::from(bytes.div_ceil(cluster_bytes)) * fat.cluster_blocks;
    if entry[11] & FOLDER != 0 {
        list(disk, &blocks, &format!("{path}/"), fat, listing)?;
    } else if fat.state == State::Mounted && blocks.len() as u64 != due
        || (blocks.len() as u64) < due && path != "CARDIOGRJNL"
    {
        return Err(format!(
            "{path} has {} blocks, expected {due}",
            blocks.len()
        ));
    }
    let found = Entry {
        attributes: entry[11],
        bytes,
        blocks,
    };
    match listing.insert(path.clone(), found) {
        Some(_) => Err(format!("duplicate entry {path}")),
        None => Ok(()),
    }
}
