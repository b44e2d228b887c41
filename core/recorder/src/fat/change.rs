//! Changes by guests: removals, and new directories. moves.rs implements renames, upload.rs uploads.

use super::entry::{DirEntry, Node};
use super::guest_record::{FirstRun, NamePlace, Target, WholeChain};
use super::oldest::Listed;
use super::place::{Resolved, cluster_of};
use super::record::Intent;
use super::{Error, FatVolume, Refusal};
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, Name};
use cardiograph_card::Block;
use hadris_fat_raw::{ATTR_DIRECTORY, ENTRY_SIZE, Slot};

const DOT: Name = *b".          ";
const DOT_DOT: Name = *b"..         ";

impl FatVolume {
    /// Removes a file, or an empty directory.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NameInvalid`], [`Error::NotEmpty`],
    /// [`Error::Forbidden`], [`Error::DamagedChain`], [`Error::DamagedDirectory`], [`Error::NotMounted`], or
    /// a card error.
    pub async fn remove<B: Blocks>(
        &mut self,
        card: &mut B,
        path: &str,
    ) -> Result<(), Error<B::Error>> {
        let Resolved { parent, found, .. } = self.resolve(card, path, None).await?;
        let entry = found.ok_or(Error::NotFound)?;
        self.check_may_change(&entry)?;
        if entry.is_directory() {
            return self.remove_directory(card, &entry).await;
        }
        let id = self.recording_of(card, &parent, &entry).await?;
        if let Some(id) = id {
            let listed = self
                .next_indexed(card, id.prefix, id.number..id.number + 1)
                .await?;
            let listed = listed.map(|record| Listed::of(&record));
            let file = match &listed {
                Some(listed) => self.listed_file(card, listed).await?,
                None => None,
            };
            // Another program may have given it a name that extends over several blocks.
            let is_whole = entry.before == [0; 2];
            if let Some(file) = file.filter(|file| is_whole && file.place == entry.place) {
                return self.remove_recording(card, file).await;
            }
        }
        let chain = self.survey(card, entry.first).await?;
        let name = NamePlace::of(&entry);
        self.free_chain(card, name, 0, chain).await?;
        self.unlist_changed(card, id, entry.first).await
    }

    /// Creates an empty directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotFound`] or [`Error::NotDirectory`] for the parent directory,
    /// [`Error::NameInvalid`], [`Error::Forbidden`], [`Error::DirectoryFull`], [`Error::NoSpace`],
    /// [`Error::NotMounted`], or a card error.
    pub async fn make_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        path: &str,
    ) -> Result<(), Error<B::Error>> {
        let Resolved {
            parent,
            name,
            found,
        } = self.resolve(card, path, None).await?;
        if found.is_some() {
            return Err(Error::Exists);
        }
        let (name, room) = self.room_for(card, &parent, name, None).await?;
        let (first, found) = self.free_run(card, 1, 1).await?;
        if found == 0 {
            return Err(Error::NoSpace { longest_blocks: 0 });
        }
        let above = cluster_of(&parent);
        self.fill_directory(card, first, above).await?;
        let to = Target::new(room.short(&name), name.sum());
        self.begin(card, Intent::MakeDirectory { to, first })
            .await?;
        self.link(card, first, None).await?;
        let mut entry = self.new_entry(DOT, ATTR_DIRECTORY);
        entry.set_first_cluster(self.layout.kind, first);
        self.write_new_name(card, room, &name, &entry).await?;
        self.record.hint = first + 1;
        let free = self.record.free.map(|free| free.saturating_sub(1));
        self.done(card, free).await
    }

    /// Keeps a directory whose entry exists, because a computer may have put something into it; otherwise
    /// frees its cluster. Returns true if it was undone, and `None` if another program has changed it.
    pub(super) async fn finish_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        to: Target,
        first: u32,
    ) -> Result<Option<bool>, Error<B::Error>> {
        if self.is_target_written(card, to, first).await? {
            return Ok(Some(false));
        }
        let rest = WholeChain::NONE;
        let clusters = 1;
        let run = FirstRun {
            first,
            clusters,
            rest,
        };
        let is_undone = self.finish_run(card, None, 0, run).await?;
        Ok(is_undone.then_some(true))
    }

    async fn remove_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        entry: &DirEntry,
    ) -> Result<(), Error<B::Error>> {
        if let Some(id) = self.check_folder(card, entry).await? {
            return match self.remove_folder(card, id).await? {
                true => Ok(()),
                false => Err(Error::NotEmpty),
            };
        }
        let mut walk = self.walk(card);
        let mut cursor = walk.open(&Node::Entry(*entry))?;
        while let Some((_, slot)) = walk.next_slot(&mut cursor).await? {
            match slot {
                Slot::End => break,
                Slot::Short(entry) if !entry.is_dot() => return Err(Error::NotEmpty),
                _ => (),
            }
        }
        let chain = self.survey(card, entry.first).await?;
        let name = NamePlace::of(entry);
        self.free_chain(card, name, 0, chain).await
    }

    /// Fails if the recorder uses a directory. Returns its identity if it is one of the recorder's folders.
    pub(super) async fn check_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        entry: &DirEntry,
    ) -> Result<Option<FileId>, Error<B::Error>> {
        let own = self.own_folder(card, &Node::Entry(*entry)).await?;
        if let Some(id) = own {
            if self.is_folder_used(id.prefix, id.number / FOLDER_RECORDINGS_MAX) {
                return Err(Error::Forbidden(Refusal::Recordings));
            }
            if let Some(series) = self.series_mut(id.prefix) {
                series.has_folder = false;
            }
        }
        Ok(own)
    }

    /// Returns the identity of the recording at an entry, according to the entry's position and name.
    pub(super) async fn recording_of<B: Blocks>(
        &mut self,
        card: &mut B,
        parent: &Node,
        entry: &DirEntry,
    ) -> Result<Option<FileId>, Error<B::Error>> {
        let Some(folder) = self.own_folder(card, parent).await? else {
            return Ok(None);
        };
        let number = super::names::number_of(&entry.short).unwrap_or(0);
        let [.., a, b, c] = entry.short;
        let id = FileId {
            prefix: folder.prefix,
            extension: [a, b, c],
            number: folder.number + number % FOLDER_RECORDINGS_MAX,
        };
        Ok((id.short_name() == entry.short).then_some(id))
    }

    /// Removes a recording from the index after its file was changed, if the index lists that file.
    pub(super) async fn unlist_changed<B: Blocks>(
        &mut self,
        card: &mut B,
        id: Option<FileId>,
        first: u32,
    ) -> Result<(), Error<B::Error>> {
        let Some(id) = id else {
            return Ok(());
        };
        let listed = self
            .next_indexed(card, id.prefix, id.number..id.number + 1)
            .await?;
        let is_its = listed.is_some_and(|listed| listed.first == first && listed.record.id == id);
        match is_its {
            true => self.write_index(card, id, None).await,
            false => Ok(()),
        }
    }

    /// Writes an empty directory to a free cluster.
    async fn fill_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        above: u32,
    ) -> Result<(), Error<B::Error>> {
        self.write_directory(card, first, None).await?;
        let kind = self.layout.kind;
        let mut dot = self.new_entry(DOT, ATTR_DIRECTORY);
        dot.set_first_cluster(kind, first);
        let mut dot_dot = self.new_entry(DOT_DOT, ATTR_DIRECTORY);
        dot_dot.set_first_cluster(kind, above);
        let mut make = |_, out: &mut Block| {
            out.fill(0);
            out[..ENTRY_SIZE].copy_from_slice(&dot.encode());
            out[ENTRY_SIZE..2 * ENTRY_SIZE].copy_from_slice(&dot_dot.encode());
        };
        let start = self.layout.block_of(first);
        card.write(start, 1, &mut make).await.map_err(Error::Card)
    }
}
