//! The real volume with its room used up by something else, and the initial cards.

use super::card::{CARD_BLOCKS, Disk, Slot};
use crate::changes::ChangeTask;
use crate::fat::Error;
use crate::guest::{self, FileError};
use crate::volume::{Blocks, ErrorKind, FileId, FileRecord, Removed, Request, Reserved, Volume};
use crate::{DosTime, FatVolume};
use cardiograph_card::Block;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use std::io::{Cursor, Write};
use std::vec::Vec;

/// The volume of a recorder.
pub(super) struct Rooms<'w> {
    volume: FatVolume,
    slot: &'w Slot,
}

impl<'w> Rooms<'w> {
    pub(super) fn new(slot: &'w Slot) -> Rooms<'w> {
        Rooms {
            volume: volume(),
            slot,
        }
    }
}

/// Returns an unmounted volume.
pub(super) fn volume() -> FatVolume {
    FatVolume::new(|| DosTime::NO_CLOCK, 7)
}

impl<B: Blocks> Volume<B> for Rooms<'_> {
    type Error = Error<B::Error>;

    fn error_kind(error: &Self::Error) -> ErrorKind {
        <FatVolume as Volume<B>>::error_kind(error)
    }

    async fn mount(&mut self, card: &mut B) -> Result<(), Self::Error> {
        self.volume.mount(card).await
    }

    fn reserved(&self, slot: u8) -> Option<Reserved> {
        Volume::<B>::reserved(&self.volume, slot)
    }

    async fn change(&mut self, card: &mut B, task: &mut ChangeTask<'_>) -> Result<(), Self::Error> {
        self.volume.change(card, task).await
    }

    fn refusal(&self, error: &Self::Error) -> Option<FileError> {
        Volume::<B>::refusal(&self.volume, error)
    }

    fn file_system(&self) -> Option<guest::FileSystem> {
        Volume::<B>::file_system(&self.volume)
    }

    fn next_number(&self, prefix: [u8; 3], extension: [u8; 3]) -> u32 {
        Volume::<B>::next_number(&self.volume, prefix, extension)
    }

    async fn reserve(&mut self, card: &mut B, request: Request) -> Result<Reserved, Self::Error> {
        // Models a search that finds nothing.
        let mut block = [[0; 512]];
        card.read(0, &mut block).await.map_err(Error::Card)?;
        if self.slot.is_taken.get() {
            return Err(Error::NoSpace { longest_blocks: 0 });
        }
        self.volume.reserve(card, request).await
    }

    async fn name(
        &mut self,
        card: &mut B,
        slot: u8,
        id: FileId,
        session: &str,
    ) -> Result<(), Self::Error> {
        self.volume.name(card, slot, id, session).await
    }

    async fn close(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), Self::Error> {
        self.volume.close(card, slot, record).await
    }

    async fn discard(&mut self, card: &mut B, slot: u8) -> Result<(), Self::Error> {
        self.volume.discard(card, slot).await
    }

    async fn remove_oldest(&mut self, card: &mut B) -> Result<Option<Removed>, Self::Error> {
        let removed = self.volume.remove_oldest(card).await?;
        if removed.is_some() {
            self.slot.is_taken.set(false);
        }
        Ok(removed)
    }

    fn take_removed(&mut self) -> Option<FileId> {
        Volume::<B>::take_removed(&mut self.volume)
    }
}

/// Returns a FAT16 card with this number of free one-block clusters, or with all of them.
pub(super) fn formatted(free: Option<u32>) -> Disk {
    let mut bytes = std::vec![0; CARD_BLOCKS as usize * 512];
    let options = FormatVolumeOptions::new()
        .fat_type(FatType::Fat16)
        .bytes_per_cluster(512)
        .total_sectors(CARD_BLOCKS);
    fatfs::format_volume(Cursor::new(&mut bytes[..]), options).unwrap();
    if let Some(free) = free {
        let system = FileSystem::new(Cursor::new(&mut bytes[..]), FsOptions::new()).unwrap();
        let all = system.stats().unwrap().free_clusters();
        let root = system.root_dir();
        let mut file = root.create_file("OTHER.BIN").unwrap();
        let other = std::vec![0x11; (all - free) as usize * 512];
        file.write_all(&other).unwrap();
    }
    let blocks: Vec<Block> = bytes.as_chunks::<512>().0.to_vec();
    Disk::new(blocks)
}

/// Returns the initial cards: an empty one, and others with little room.
pub(super) fn cards() -> Vec<Disk> {
    let mut cards = Vec::new();
    cards.push(formatted(None));
    for free in [200, 120, 80, 3] {
        cards.push(formatted(Some(free)));
    }
    cards
}

/// Returns the file system of an empty card, and its size in bytes as fatfs reports it.
pub(crate) fn mounted() -> (guest::FileSystem, u64) {
    let mut disk = formatted(None);
    let mut volume = volume();
    {
        let mount = pin!(volume.mount(&mut disk));
        let mounted = mount.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(mounted, Poll::Ready(Ok(()))));
    }
    let bytes = Cursor::new(disk.bytes(0..CARD_BLOCKS));
    let system = FileSystem::new(bytes, FsOptions::new()).unwrap();
    let stats = system.stats().unwrap();
    let total = u64::from(stats.total_clusters()) * u64::from(stats.cluster_size());
    (Volume::<Disk>::file_system(&volume).unwrap(), total)
}
