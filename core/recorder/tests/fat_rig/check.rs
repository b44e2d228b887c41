//! An independent checker of FAT volumes: it shares no code with the implementation under test.

use super::Disk;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

/// A file according to its entry and its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub attributes: u8,
    pub size: u32,
    /// Block addresses on the card, in order.
    pub blocks: Vec<u32>,
    /// Long name; empty if there is none.
    pub long_name: String,
}

/// Contents of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Files by short name without a dot, such as `LOG00000/LOG00001CSV`. Includes folders.
    pub files: BTreeMap<String, Entry>,
    pub root_blocks: Vec<u32>,
    pub free_clusters: u32,
    pub cluster_blocks: u32,
}

struct Fat {
    entries: Vec<u32>,
    is_32: bool,
    owner: Vec<bool>,
    data: u32,
    cluster_blocks: u32,
}

impl Fat {
    fn end(&self) -> u32 {
        if self.is_32 { 0x0FFF_FFF8 } else { 0xFFF8 }
    }

    /// Returns the clusters of a chain, none of which may belong to another.
    fn chain(&mut self, first: u32, whose: &str) -> Result<Vec<u32>, String> {
        let mut chain = Vec::new();
        let mut at = first;
        loop {
            let owner = self.owner.get_mut(at as usize).filter(|_| at >= 2);
            let owner = owner.ok_or(format!("{whose} has cluster {at}"))?;
            if std::mem::replace(owner, true) {
                return Err(format!("{whose} shares cluster {at}"));
            }
            chain.push(at);
            at = self.entries[at as usize];
            if at >= self.end() {
                return Ok(chain);
            }
        }
    }

    fn blocks(&self, chain: &[u32]) -> Vec<u32> {
        let start = |cluster: &u32| self.data + (cluster - 2) * self.cluster_blocks;
        let blocks = self.cluster_blocks;
        chain
            .iter()
            .flat_map(|cluster| start(cluster)..start(cluster) + blocks)
            .collect()
    }
}

fn get16(bytes: &[u8], at: usize) -> u32 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    get16(bytes, at) | get16(bytes, at + 2) << 16
}

/// Returns the contents of the volume that begins with block `start`, or a description of the damage.
pub fn check(disk: &Disk, start: u32) -> Result<Listing, String> {
    let boot = disk.block(start);
    let (reserved, fats, roots) = (get16(boot, 14), u32::from(boot[16]), get16(boot, 17));
    let is_32 = get16(boot, 22) == 0;
    let fat_blocks = if is_32 {
        get32(boot, 36)
    } else {
        get16(boot, 22)
    };
    let blocks = if get16(boot, 19) == 0 {
        get32(boot, 32)
    } else {
        get16(boot, 19)
    };
    let before_data = reserved + fats * fat_blocks + roots / 16;
    let cluster_blocks = u32::from(boot[13]);
    let clusters = (blocks - before_data) / cluster_blocks;
    let fat_of = |copy: u32| -> Vec<u8> {
        let first = start + reserved + copy * fat_blocks;
        disk.bytes(first..first + fat_blocks)
    };
    let bytes = fat_of(0);
    if fats == 2 && fat_of(1) != bytes {
        return Err("the FATs differ".into());
    }
    let entry = |cluster: u32| match is_32 {
        true => get32(&bytes, cluster as usize * 4) & 0x0FFF_FFFF,
        false => get16(&bytes, cluster as usize * 2),
    };
    let mut fat = Fat {
        entries: (0..clusters + 2).map(entry).collect(),
        is_32,
        owner: vec![false; clusters as usize + 2],
        data: start + before_data,
        cluster_blocks,
    };
    let root_blocks = if is_32 {
        let chain = fat.chain(get32(boot, 44), "the root directory")?;
        fat.blocks(&chain)
    } else {
        let first = start + reserved + fats * fat_blocks;
        (first..first + roots / 16).collect()
    };
    let files = files_of(disk, &root_blocks, &mut fat, "")?;
    let used = |cluster: &u32| fat.entries[*cluster as usize] != 0;
    if let Some(lost) = (2..clusters + 2).find(|it| used(it) && !fat.owner[*it as usize]) {
        return Err(format!("cluster {lost} is lost"));
    }
    let free_clusters = (2..clusters + 2).filter(|it| !used(it)).count() as u32;
    if is_32 {
        let free = get32(disk.block(start + get16(boot, 48)), 488);
        if free != free_clusters && free != u32::MAX {
            return Err(format!(
                "FSInfo has {free} free clusters, expected {free_clusters}"
            ));
        }
    }
    Ok(Listing {
        files,
        root_blocks,
        free_clusters,
        cluster_blocks,
    })
}

/// Returns the entries of a directory and of its subdirectories.
fn files_of(
    disk: &Disk,
    blocks: &[u32],
    fat: &mut Fat,
    path: &str,
) -> Result<BTreeMap<String, Entry>, String> {
    let mut files = BTreeMap::new();
    let mut has_ended = false;
    let mut long = Vec::new();
    let entries = blocks
        .iter()
        .flat_map(|block| disk.block(*block).as_chunks::<32>().0);
    for entry in entries {
        has_ended |= entry[0] == 0;
        if has_ended && entry[0] != 0 {
            return Err("an entry is after the end mark".into());
        }
        let attributes = entry[11];
        let is_used = !matches!(entry[0], 0 | 0xE5);
        if is_used && attributes == 0x0F {
            long.push(*entry);
            continue;
        }
        let long_name = long_name(std::mem::take(&mut long), entry, is_used)?;
        if !is_used || attributes & 0x08 != 0 || entry[0] == b'.' {
            continue;
        }
        let is_folder = attributes & 0x10 != 0;
        let short = String::from_utf8_lossy(&entry[..11]).into_owned();
        let name = format!("{path}{}", short.trim_end());
        let (size, low, high) = (get32(entry, 28), get16(entry, 26), get16(entry, 20));
        let first = if fat.is_32 { low | high << 16 } else { low };
        let chain = match first {
            0 => Vec::new(),
            first => fat.chain(first, &name)?,
        };
        let due = size.div_ceil(fat.cluster_blocks * 512) as usize;
        if !is_folder && chain.len() != due {
            return Err(format!(
                "{name} has {} clusters, expected {due}",
                chain.len()
            ));
        }
        let blocks = fat.blocks(&chain);
        if is_folder {
            let is_dot = disk.block(blocks[0]).starts_with(b".  ");
            let inside = files_of(disk, &blocks, fat, &format!("{name}/"))?;
            if !is_dot {
                return Err(format!("{name} has no entry for itself"));
            }
            files.extend(inside);
        }
        let file = Entry {
            attributes,
            size,
            blocks,
            long_name,
        };
        if files.insert(name.clone(), file).is_some() {
            return Err(format!("{name} exists twice"));
        }
    }
    Ok(files)
}

/// Assembles a long name from its entries.
fn long_name(parts: Vec<[u8; 32]>, short: &[u8; 32], is_used: bool) -> Result<String, String> {
    let name = String::from_utf8_lossy(&short[..11]).into_owned();
    if !is_used && !parts.is_empty() {
        return Err("a long name has no short entry after it".into());
    }
    let sum = short[..11].iter().fold(0_u8, |sum, byte| {
        (sum << 7).wrapping_add(sum >> 1).wrapping_add(*byte)
    });
    let mut units = Vec::new();
    for (number, part) in (1..).zip(parts.iter().rev()) {
        let last = if number == parts.len() { 0x40 } else { 0 };
        if usize::from(part[0]) != number | last || part[13] != sum {
            return Err(format!("{name} has another's long name"));
        }
        for range in [1..11, 14..26, 28..32] {
            units.extend(
                part[range]
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|it| u16::from_le_bytes(*it)),
            );
        }
    }
    let end = units.iter().position(|unit| *unit == 0);
    units.truncate(end.unwrap_or(units.len()));
    Ok(String::from_utf16(&units).unwrap())
}
