//! Locates a FAT volume on a card.

use super::Error;
use super::folder::DIRECTORY_BLOCKS;
use super::index::INDEX_BLOCKS;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::num::NonZeroU32;
use hadris_fat_raw::{
    BOOT_SECTOR_LEN, BOOT_SIGNATURE, BootError, FIRST_DATA_CLUSTER, FatKind, Geometry,
    RootLocation, parse_boot,
};

const _: () = assert!(BOOT_SECTOR_LEN == BLOCK_BYTES);

/// Offsets in a master boot record (UEFI 2.10, 5.2.1).
const PARTITIONS_AT: usize = 446;
const PARTITION_BYTES: usize = 16;
const SIGNATURE_AT: usize = 510;
/// Partition types with FAT: 01 FAT12; 04, 06 and 0E FAT16; 0B and 0C FAT32.
const FAT_TYPES: [u8; 6] = [0x01, 0x04, 0x06, 0x0B, 0x0C, 0x0E];
const GPT_TYPE: u8 = 0xEE;
/// Partition type of both NTFS and exFAT.
const NTFS_TYPE: u8 = 0x07;
/// Offset of the file system's name in a boot sector.
const OEM_AT: usize = 3;
const EXFAT: &[u8] = b"EXFAT   ";
const NTFS: &[u8] = b"NTFS    ";

/// Location of the root directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The given number of blocks from `start` on.
    Fixed { start: u32, blocks: u32 },
    /// A chain that begins at this cluster.
    Cluster(u32),
}

/// Locations of the parts of a volume, in blocks of the card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(super) kind: FatKind,
    /// The boot sector.
    pub(super) start: u32,
    /// First block of the active FAT, which is the one that is read.
    pub(super) fat: u32,
    /// First block of the other FAT, if it is mirrored.
    pub(super) mirror: Option<NonZeroU32>,
    pub(super) root: Root,
    /// First block of the first cluster.
    pub(super) data: u32,
    pub(super) cluster_blocks: u32,
    /// Highest cluster number plus one.
    pub(super) clusters_end: u32,
    /// The FSInfo block. Only FAT32 has one.
    pub(super) fs_info: Option<u32>,
    pub(super) serial: u32,
}

impl Layout {
    /// Layout of an empty volume without clusters.
    pub(super) const NONE: Layout = Layout {
        kind: FatKind::Fat16,
        start: 0,
        fat: 0,
        mirror: None,
        root: Root::Fixed {
            start: 0,
            blocks: 0,
        },
        data: 0,
        cluster_blocks: 1,
        clusters_end: FIRST_DATA_CLUSTER,
        fs_info: None,
        serial: 0,
    };

    /// Returns the layout of the volume whose boot sector is block `start` of a card.
    pub(super) fn of<E>(boot: &Block, start: u32, card_blocks: u32) -> Result<Layout, Error<E>> {
        let geometry = geometry_of(boot)?;
        let in_blocks = |bytes: u64| bytes / BLOCK_BYTES as u64;
        let end = u64::from(start) + in_blocks(geometry.data_end());
        if end > u64::from(card_blocks) {
            return Err(Error::LargerThanCard { end, card_blocks });
        }
        // All offsets below are before the end.
        let at = |bytes: u64| start + in_blocks(bytes) as u32;
        // With mirroring, the first FAT is the active one.
        let is_mirrored = geometry.mirrored() && geometry.fat_count() == 2;
        let mirror = is_mirrored.then(|| at(geometry.fat_copy(1)));
        Ok(Layout {
            kind: geometry.kind(),
            start,
            fat: at(geometry.fat_copy(geometry.active_fat())),
            mirror: mirror.and_then(NonZeroU32::new),
            root: match geometry.root() {
                RootLocation::Fixed { start, size } => Root::Fixed {
                    start: at(start),
                    blocks: in_blocks(size) as u32,
                },
                RootLocation::Cluster(cluster) => Root::Cluster(cluster),
            },
            data: at(geometry.data_start()),
            cluster_blocks: geometry.cluster_size() / BLOCK_BYTES as u32,
            clusters_end: geometry.max_cluster() + 1,
            fs_info: geometry
                .fs_info_sector()
                .map(|sector| start + u32::from(sector)),
            serial: geometry.volume_serial().unwrap_or(0),
        })
    }

    /// Returns the first blocks of the FATs to be written, the active one last: once it is correct the other is too.
    pub(super) fn fats(&self) -> impl Iterator<Item = u32> + use<> {
        let mirror = self.mirror.map(NonZeroU32::get);
        mirror.into_iter().chain([self.fat])
    }

    /// Returns the size of a cluster in bytes.
    pub(super) fn cluster_bytes(&self) -> u32 {
        self.cluster_blocks * BLOCK_BYTES as u32
    }

    /// Returns the first block of a cluster.
    pub(super) fn block_of(&self, cluster: u32) -> u32 {
        self.data + (cluster - FIRST_DATA_CLUSTER) * self.cluster_blocks
    }

    /// Returns true if all of these clusters exist.
    pub(super) fn has(&self, first: u32, clusters: u32) -> bool {
        first >= FIRST_DATA_CLUSTER
            && first
                .checked_add(clusters)
                .is_some_and(|end| end <= self.clusters_end)
    }

    /// Returns true if this block can contain directory entries.
    pub(super) fn is_block(&self, block: u32) -> bool {
        let data_blocks = (self.clusters_end - FIRST_DATA_CLUSTER) * self.cluster_blocks;
        let is_root = match self.root {
            Root::Fixed { start, blocks } => block.wrapping_sub(start) < blocks,
            Root::Cluster(_) => false,
        };
        is_root || block.wrapping_sub(self.data) < data_blocks
    }

    /// Returns the address of a block relative to the boot sector, as records store it.
    pub(super) fn relative(&self, block: u32) -> u32 {
        block.wrapping_sub(self.start)
    }

    /// Returns the number of clusters that `blocks` blocks need.
    pub(super) fn clusters_for(&self, blocks: u32) -> u32 {
        blocks.div_ceil(self.cluster_blocks)
    }

    /// Returns the number of clusters of a folder's directory.
    pub(super) fn directory_clusters(&self) -> u32 {
        self.clusters_for(DIRECTORY_BLOCKS)
    }

    /// Returns the number of clusters of a folder: its directory and the index after it.
    pub(super) fn folder_clusters(&self) -> u32 {
        self.directory_clusters() + self.clusters_for(INDEX_BLOCKS)
    }

    /// Returns the number of FAT entries per block.
    pub(super) fn entries_of_block(&self) -> u32 {
        (BLOCK_BYTES / self.kind.entry_len()) as u32
    }
}

/// Contents of block 0 of a card.
pub(super) enum First {
    /// A boot sector.
    Boot,
    /// A partition table; the volume's boot sector is at this block.
    Partition(u32),
}

/// Distinguishes a boot sector from a partition table.
pub(super) fn identify_first<E>(block: &Block) -> Result<First, Error<E>> {
    let is_volume = has_jump(block) && (parse_boot(block).is_ok() || is_other_kind(block));
    let table = table_of(block).filter(|_| !is_volume);
    let Some(table) = table else {
        // For an unusable boot sector, `geometry_of` returns the specific error.
        return geometry_of(block).map(|_| First::Boot);
    };
    let is_kind = |kinds: &[u8]| {
        table
            .iter()
            .find(|(kind, start)| kinds.contains(kind) && *start != 0)
    };
    if is_kind(&[GPT_TYPE]).is_some() {
        return Err(Error::Gpt);
    }
    match is_kind(&FAT_TYPES).or_else(|| is_kind(&[NTFS_TYPE])) {
        Some((_, start)) => Ok(First::Partition(*start)),
        None => {
            let first = table.iter().find(|(kind, _)| *kind != 0);
            Err(first.map_or(Error::NoFileSystem, |(kind, _)| {
                Error::NoFatPartition(*kind)
            }))
        }
    }
}

/// Returns types and first blocks of the partitions, if the block is a partition table.
fn table_of(block: &Block) -> Option<[(u8, u32); 4]> {
    let partition = |index: usize| &block[PARTITIONS_AT + index * PARTITION_BYTES..];
    let is_table = is_signed(block)
        && (0..4).all(|index| partition(index)[0] & 0x7F == 0)
        && (0..4).any(|index| partition(index)[4] != 0);
    is_table.then(|| {
        core::array::from_fn(|index| {
            let entry = partition(index);
            let start = [entry[8], entry[9], entry[10], entry[11]];
            (entry[4], u32::from_le_bytes(start))
        })
    })
}

fn is_signed(block: &Block) -> bool {
    block[SIGNATURE_AT..] == BOOT_SIGNATURE.to_le_bytes()
}

fn is_other_kind(block: &Block) -> bool {
    [EXFAT, NTFS]
        .iter()
        .any(|name| block[OEM_AT..].starts_with(name))
}

fn has_jump(block: &Block) -> bool {
    matches!(block[0], 0xEB | 0xE9)
}

/// Returns the geometry of a usable volume from its boot sector.
fn geometry_of<E>(boot: &Block) -> Result<Geometry, Error<E>> {
    if boot[OEM_AT..].starts_with(EXFAT) {
        return Err(Error::ExFat);
    }
    if boot[OEM_AT..].starts_with(NTFS) {
        return Err(Error::Ntfs);
    }
    if !has_jump(boot) {
        return Err(Error::NoFileSystem);
    }
    let geometry = parse_boot(boot).map_err(|error| match error {
        BootError::NotFat(_) if !is_signed(boot) => Error::NoFileSystem,
        BootError::NotFat(what) | BootError::Corrupt(what) => Error::DamagedBootSector(what),
        BootError::RootCluster { .. } => Error::DamagedBootSector("BPB_RootClus"),
        _ => Error::DamagedBootSector("the signature 55 AA"),
    })?;
    match geometry.kind() {
        _ if geometry.sector_size() != BLOCK_BYTES as u32 => {
            Err(Error::SectorBytes(geometry.sector_size()))
        }
        FatKind::Fat12 => Err(Error::Fat12),
        _ => Ok(geometry),
    }
}
