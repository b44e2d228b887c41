//! Uploads: files that guests write under a hidden entry, and that get their name once they are complete.
//!
//! ```text
//!   begin ── CARDIOGR.U00, hidden ──> data ──> commit ──> its name, in its folder
//!                 │                    │
//!                 └── grow: another run
//!                 └────── discard, or a mount ──────────> nothing
//! ```

use super::entry::ChainPosition;
use super::guest_record::{FirstRun, NamePlace, SAME_PARENT, WholeChain};
use super::names::upload_name;
use super::record::{File, Intent, Kind, Place};
use super::table::Chain;
use super::{DosTime, Error, FatVolume};
use crate::volume::{Blocks, Extent, Request};
use hadris_fat_raw::{ATTR_ARCHIVE, ATTR_HIDDEN, ATTR_SYSTEM, ShortEntry, Slot};

/// Maximum number of uploads at once.
pub const UPLOADS_MAX: usize = 2;
const HIDDEN: u8 = ATTR_HIDDEN | ATTR_SYSTEM;

/// A file that a guest is writing.
#[derive(Debug, PartialEq, Eq)]
pub struct Upload {
    number: u8,
    /// The volume's generation when the upload began.
    generation: u32,
    place: Place,
    last: u32,
    clusters: u32,
    position: ChainPosition,
}

impl Upload {
    /// Returns the number of the upload, below [`UPLOADS_MAX`].
    pub fn number(&self) -> u8 {
        self.number
    }
}

impl FatVolume {
    /// Reserves space for a file of `bytes` bytes, in one run if one is long enough, and at least one cluster.
    /// If the length is unknown, begin with 0 and [`grow`](FatVolume::grow_upload) the upload.
    ///
    /// # Errors
    /// [`Error::TooManyUploads`], [`Error::NoSpace`], [`Error::DirectoryFull`] if the root directory is full,
    /// [`Error::TooLong`] from 4 GiB on, [`Error::NotMounted`], or a card error.
    pub async fn begin_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        bytes: u64,
    ) -> Result<Upload, Error<B::Error>> {
        self.check_ready()?;
        let number = self.free_upload(card).await?;
        let clusters = self.clusters_for_bytes(bytes)?;
        let place = self.place_for_entry(card).await?;
        let (first, clusters) = self.run_for_upload(card, clusters).await?;
        let file = self.upload_file(number as u32, place, first, clusters);
        self.begin(card, Intent::Reserve(file)).await?;
        self.write_chain(card, file.chain(&self.layout, clusters), 0)
            .await?;
        self.slot(card, place).await?;
        let mut entry = self.new_entry(file.name(), ATTR_ARCHIVE | HIDDEN);
        entry.set_first_cluster(self.layout.kind, first);
        entry.set_size(clusters * self.layout.cluster_bytes());
        self.write_entry(card, place, &entry).await?;
        self.record.hint = first + clusters;
        let free = self.record.free.map(|free| free.saturating_sub(clusters));
        self.done(card, free).await?;
        // 0 means that there is no upload.
        let generation = self.generation.max(1);
        self.uploads[number] = generation;
        let mut upload = Upload {
            number: number as u8,
            generation,
            place,
            last: first + clusters - 1,
            clusters,
            position: ChainPosition::of(first),
        };
        let grown = self.grow_upload(card, &mut upload, bytes).await;
        match grown {
            Err(Error::NoSpace { longest_blocks }) => {
                self.discard_upload(card, upload).await?;
                Err(Error::NoSpace { longest_blocks })
            }
            grown => grown.map(|()| upload),
        }
    }

    /// Reserves more space, so that an upload has room for `bytes` bytes. If this fails for lack of space,
    /// the upload keeps what it has.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`], [`Error::NoSpace`], [`Error::TooLong`] from 4 GiB on, [`Error::NotMounted`],
    /// or a card error.
    pub async fn grow_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &mut Upload,
        bytes: u64,
    ) -> Result<(), Error<B::Error>> {
        self.check_upload(upload)?;
        let wanted = self.clusters_for_bytes(bytes)?;
        while upload.clusters < wanted {
            let more = wanted - upload.clusters;
            let (first, clusters) = self.run_for_upload(card, more).await?;
            self.append_run(card, upload, first, clusters).await?;
        }
        Ok(())
    }

    /// Returns the consecutive blocks of the card for block `block` of an upload and those after it, at most
    /// `blocks_max`.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`], [`Error::DamagedChain`] if the upload is shorter, [`Error::NotMounted`], or
    /// a card error.
    pub async fn upload_extent<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &mut Upload,
        block: u32,
        blocks_max: u32,
    ) -> Result<Extent, Error<B::Error>> {
        self.check_upload(upload)?;
        let mut walk = self.walk(card);
        walk.extent_at(&mut upload.position, block, blocks_max)
            .await
    }

    /// Gives an upload its name and its actual length. After a power loss, either both are written or neither.
    /// If `replaces` is true, an existing file is replaced. On an error the upload remains and can be committed
    /// again or discarded.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`], [`Error::TooLong`] if it has less space, [`Error::Exists`],
    /// [`Error::IsDirectory`], [`Error::Forbidden`], [`Error::NameInvalid`], [`Error::NotFound`] or
    /// [`Error::NotDirectory`] for the folder, [`Error::DirectoryFull`], [`Error::NoSpace`],
    /// [`Error::NotMounted`], or a card error.
    pub async fn commit_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &mut Upload,
        path: &str,
        bytes: u32,
        time: DosTime,
        replaces: bool,
    ) -> Result<(), Error<B::Error>> {
        self.check_upload(upload)?;
        let kept = self.clusters_of(bytes.into());
        if kept > upload.clusters {
            return Err(Error::TooLong);
        }
        let goal = self.goal(card, path, None, replaces).await?;
        let name = Self::name_of_upload(upload);
        let Slot::Short(hidden) = self.slot(card, upload.place).await? else {
            return Err(Error::NoSuchUpload);
        };
        let mut entry = ShortEntry::new(hidden.name(), ATTR_ARCHIVE);
        let (date, at, tenths) = hidden.created();
        entry.set_created(date, at, tenths);
        entry.set_modified(time.date, time.time);
        entry.set_accessed_date(time.date);
        let from = if kept == 0 {
            // Without contents there is nothing to move.
            self.remove_upload(card, upload).await?;
            None
        } else {
            self.trim_upload(card, upload, kept).await?;
            entry.set_first_cluster(self.layout.kind, upload.position.first);
            entry.set_size(bytes);
            self.write_upload_entry(card, upload, bytes).await?;
            name
        };
        self.move_entry(card, from, &goal, &entry, SAME_PARENT)
            .await?;
        self.uploads[usize::from(upload.number)] = 0;
        Ok(())
    }

    /// Removes an upload and frees its space.
    ///
    /// # Errors
    /// [`Error::NoSuchUpload`], [`Error::NotMounted`], or a card error.
    pub async fn discard_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: Upload,
    ) -> Result<(), Error<B::Error>> {
        self.check_upload(&upload)?;
        self.remove_upload(card, &upload).await
    }

    /// Discards the uploads that were interrupted.
    pub(super) async fn discard_uploads<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<(), Error<B::Error>> {
        for number in 0..UPLOADS_MAX as u32 {
            let name = upload_name(number);
            let Some((place, entry)) = self.root_entry(card, &name).await? else {
                continue;
            };
            if entry.attributes() & HIDDEN != HIDDEN {
                continue;
            }
            let first = entry.first_cluster(self.layout.kind);
            let name = NamePlace::of_short(place, &name);
            let chain = match self.survey(card, first).await {
                // Another program has damaged it.
                Err(Error::DamagedChain) => WholeChain::NONE,
                chain => chain?,
            };
            if chain.clusters == 0 {
                self.slot(card, place).await?;
                self.delete_entry(card, place).await?;
            } else {
                self.free_chain(card, name, 0, chain).await?;
            }
        }
        Ok(())
    }

    /// Returns the number of an upload that is not in progress. Another program may have used its hidden name.
    async fn free_upload<B: Blocks>(&mut self, card: &mut B) -> Result<usize, Error<B::Error>> {
        for number in 0..UPLOADS_MAX {
            if self.uploads[number] == 0
                && self
                    .root_entry(card, &upload_name(number as u32))
                    .await?
                    .is_none()
            {
                return Ok(number);
            }
        }
        Err(Error::TooManyUploads)
    }

    fn check_upload<E>(&self, upload: &Upload) -> Result<(), Error<E>> {
        self.check_ready()?;
        let known = self.uploads[usize::from(upload.number)];
        match known == upload.generation {
            true => Ok(()),
            false => Err(Error::NoSuchUpload),
        }
    }

    /// Returns the clusters of an upload of this length: at least one.
    fn clusters_for_bytes<E>(&self, bytes: u64) -> Result<u32, Error<E>> {
        match u32::try_from(bytes) {
            Ok(_) => Ok(self.clusters_of(bytes).max(1)),
            Err(_) => Err(Error::TooLong),
        }
    }

    /// Finds a free run of this length, or the longest. Fails if the card is known to have less space.
    async fn run_for_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        clusters: u32,
    ) -> Result<(u32, u32), Error<B::Error>> {
        let blocks = self.layout.cluster_blocks;
        if let Some(free) = self.record.free.filter(|free| *free < clusters) {
            let longest_blocks = free.saturating_mul(blocks);
            return Err(Error::NoSpace { longest_blocks });
        }
        let request = Request {
            prefix: [0; 3],
            extension: [0; 3],
            blocks: clusters.saturating_mul(blocks),
            blocks_min: 1,
            shares: 1,
            note: 0,
        };
        self.run_for(card, &request).await
    }

    fn upload_file(&self, number: u32, place: Place, first: u32, clusters: u32) -> File {
        File {
            kind: Kind::Upload,
            prefix: [0; 3],
            extension: [0; 3],
            number,
            place,
            first,
            clusters,
            epoch: 0,
            note: 0,
        }
    }

    fn name_of_upload(upload: &Upload) -> Option<NamePlace> {
        NamePlace::of_short(upload.place, &upload_name(upload.number.into()))
    }

    /// Appends a free run to an upload.
    async fn append_run<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &mut Upload,
        first: u32,
        clusters: u32,
    ) -> Result<(), Error<B::Error>> {
        let last = upload.last;
        let run = Chain {
            first,
            clusters,
            kept: clusters,
            head: clusters,
        };
        self.begin(
            card,
            Intent::Grow {
                last,
                first,
                clusters,
            },
        )
        .await?;
        self.write_chain(card, run, 0).await?;
        self.link(card, last, Some(first)).await?;
        upload.last = first + clusters - 1;
        upload.clusters += clusters;
        let bytes = u64::from(upload.clusters) * u64::from(self.layout.cluster_bytes());
        self.write_upload_entry(card, upload, bytes.min(u32::MAX.into()) as u32)
            .await?;
        self.record.hint = first + clusters;
        let free = self.record.free.map(|free| free.saturating_sub(clusters));
        self.done(card, free).await
    }

    /// Sets the length in the hidden entry.
    async fn write_upload_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &Upload,
        bytes: u32,
    ) -> Result<(), Error<B::Error>> {
        let Slot::Short(mut entry) = self.slot(card, upload.place).await? else {
            return Err(Error::NoSuchUpload);
        };
        entry.set_size(bytes);
        self.write_entry(card, upload.place, &entry).await
    }

    /// Completes or undoes the growth of an upload. Returns the change of free clusters when complete, and true
    /// if it was undone; `None` if another program has changed the clusters.
    pub(super) async fn finish_growing<B: Blocks>(
        &mut self,
        card: &mut B,
        last: u32,
        first: u32,
        clusters: u32,
    ) -> Result<Option<(i32, bool)>, Error<B::Error>> {
        let whole = -(clusters as i32);
        if self.entry(card, last).await? & self.layout.kind.mask() == first {
            return Ok(Some((whole, false)));
        }
        let rest = WholeChain::NONE;
        let run = FirstRun {
            first,
            clusters,
            rest,
        };
        let is_undone = self.finish_run(card, None, 0, run).await?;
        Ok(is_undone.then_some((whole, true)))
    }

    /// Frees all clusters of an upload from number `kept` on.
    async fn trim_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &mut Upload,
        kept: u32,
    ) -> Result<(), Error<B::Error>> {
        if kept == upload.clusters {
            return Ok(());
        }
        let blocks = self.layout.cluster_blocks;
        let mut walk = self.walk(card);
        walk.extent_at(&mut upload.position, (kept - 1) * blocks, 1)
            .await?;
        let last = upload.position.cluster;
        let behind = walk.next_cluster(last).await?.unwrap_or(0);
        let chain = self.survey(card, behind).await?;
        self.free_chain(card, None, last, chain).await?;
        upload.last = last;
        upload.clusters = kept;
        Ok(())
    }

    async fn remove_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        upload: &Upload,
    ) -> Result<(), Error<B::Error>> {
        let name = Self::name_of_upload(upload);
        let chain = self.survey(card, upload.position.first).await?;
        self.free_chain(card, name, 0, chain).await?;
        self.uploads[usize::from(upload.number)] = 0;
        Ok(())
    }
}
