//! Changes by guests: names that move, files that are replaced, directories, and removals.
//!
//! "move" writes the entry in its new place, one block: from then on the operation is done. It then deletes
//! the name in the old place, and frees what the new name had before.

use super::entry::{DirEntry, Node};
use super::guest_record::{FirstRun, NamePlace, SAME_PARENT, Target, WholeChain};
use super::oldest::Listed;
use super::place::{NewName, Resolved, Room, cluster_of};
use super::record::{Intent, Place};
use super::{Error, FatVolume, Refusal};
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, Name};
use cardiograph_card::Block;
use hadris_fat_raw::{ATTR_DIRECTORY, ATTR_HIDDEN, ATTR_SYSTEM, ENTRY_SIZE, ShortEntry, Slot};

const DOT: Name = *b".          ";
const DOT_DOT: Name = *b"..         ";

/// The place that an entry gets.
pub(super) enum Goal<'p> {
    New {
        parent: Node,
        name: NewName<'p>,
        room: Room,
    },
    /// Replaces this file, whose clusters are freed.
    Existing {
        parent: Node,
        entry: DirEntry,
        old: WholeChain,
    },
}

impl Goal<'_> {
    fn target(&self) -> Target {
        match self {
            Goal::New { name, room, .. } => Target {
                place: room.short(name),
                sum: name.sum(),
            },
            Goal::Existing { entry, .. } => Target {
                place: entry.place,
                sum: NamePlace::of(entry).sum,
            },
        }
    }

    fn parent(&self) -> &Node {
        match self {
            Goal::New { parent, .. } | Goal::Existing { parent, .. } => parent,
        }
    }
}

impl FatVolume {
    /// Removes a file, or an empty directory.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NameInvalid`], [`Error::NotEmpty`],
    /// [`Error::Forbidden`], [`Error::DamagedChain`], [`Error::DamagedDirectory`], [`Error::NotMounted`], or
    /// that of the card.
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
            // Its name may have been extended by another program.
            let is_whole = entry.before == [0; 2];
            if let Some(file) = file.filter(|file| is_whole && file.place == entry.place) {
                return self.remove_recording(card, file).await;
            }
        }
        let chain = self.survey(card, entry.first).await?;
        let name = NamePlace::of(&entry);
        self.free_chain(card, Some(name), 0, chain).await?;
        self.unlist_changed(card, id, entry.first).await
    }

    /// Makes an empty directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotFound`] or [`Error::NotDirectory`] for the directory above,
    /// [`Error::NameInvalid`], [`Error::Forbidden`], [`Error::DirectoryFull`], [`Error::NoSpace`],
    /// [`Error::NotMounted`], or that of the card.
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
        let (name, room) = self.room_for(card, &parent, name).await?;
        let (first, found) = self.free_run(card, 1).await?;
        if found == 0 {
            return Err(Error::NoSpace { longest_blocks: 0 });
        }
        let above = cluster_of(&parent);
        self.fill_directory(card, first, above).await?;
        let to = Target {
            place: room.short(&name),
            sum: name.sum(),
        };
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

    /// Renames a file or a directory, or moves it to another directory. An existing file is replaced by a
    /// file if `replaces`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NameInvalid`], [`Error::Exists`],
    /// [`Error::IsDirectory`], [`Error::Forbidden`], [`Error::DirectoryFull`], [`Error::NoSpace`],
    /// [`Error::DamagedChain`], [`Error::DamagedDirectory`], [`Error::NotMounted`], or that of the card.
    pub async fn rename<B: Blocks>(
        &mut self,
        card: &mut B,
        from: &str,
        to: &str,
        replaces: bool,
    ) -> Result<(), Error<B::Error>> {
        let Resolved { parent, found, .. } = self.resolve(card, from, None).await?;
        let old = found.ok_or(Error::NotFound)?;
        self.check_may_change(&old)?;
        if old.is_directory() {
            self.check_folder(card, &old).await?;
        }
        let avoid = Some(old.place).filter(|_| old.is_directory());
        let goal = self.goal_of_rename(card, &old, to, avoid, replaces).await?;
        let id = self.recording_of(card, &parent, &old).await?;
        let Slot::Short(mut entry) = self.slot(card, old.place).await? else {
            return Err(Error::DamagedDirectory);
        };
        // Case bits and name are those of the new place.
        entry.set_nt_case(0);
        let is_moved = cluster_of(&parent) != cluster_of(goal.parent());
        let above = cluster_of(goal.parent());
        let above = if old.is_directory() && is_moved {
            above
        } else {
            SAME_PARENT
        };
        self.move_entry(card, Some(NamePlace::of(&old)), &goal, &entry, above)
            .await?;
        self.unlist_changed(card, id, old.first).await
    }

    /// Returns the place for an entry with this path.
    pub(super) async fn goal<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        path: &'p str,
        replaces: bool,
    ) -> Result<Goal<'p>, Error<B::Error>> {
        let Resolved {
            parent,
            name,
            found,
        } = self.resolve(card, path, None).await?;
        match found {
            Some(entry) => self.replaced(card, parent, entry, replaces).await,
            None => {
                let (name, room) = self.room_for(card, &parent, name).await?;
                Ok(Goal::New { parent, name, room })
            }
        }
    }

    async fn goal_of_rename<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        old: &DirEntry,
        path: &'p str,
        avoid: Option<Place>,
        replaces: bool,
    ) -> Result<Goal<'p>, Error<B::Error>> {
        let Resolved {
            parent,
            name,
            found,
        } = self.resolve(card, path, avoid).await?;
        // The name may change in case only.
        let other = found.filter(|it| it.place != old.place);
        match other {
            Some(entry) if old.is_directory() || entry.is_directory() => Err(Error::Exists),
            Some(entry) => self.replaced(card, parent, entry, replaces).await,
            None => {
                let (name, room) = self.room_for(card, &parent, name).await?;
                Ok(Goal::New { parent, name, room })
            }
        }
    }

    /// Returns the place of a file that is replaced.
    async fn replaced<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        parent: Node,
        entry: DirEntry,
        replaces: bool,
    ) -> Result<Goal<'p>, Error<B::Error>> {
        if entry.is_directory() {
            return Err(Error::IsDirectory);
        }
        self.check_may_change(&entry)?;
        if !replaces {
            return Err(Error::Exists);
        }
        let old = self.survey(card, entry.first).await?;
        Ok(Goal::Existing { parent, entry, old })
    }

    /// Writes an entry in its new place, deletes the old one, and frees what the new one had before.
    pub(super) async fn move_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        from: Option<NamePlace>,
        goal: &Goal<'_>,
        entry: &ShortEntry,
        parent: u32,
    ) -> Result<(), Error<B::Error>> {
        let to = goal.target();
        let first = entry.first_cluster(self.layout.kind);
        let replaced = match goal {
            Goal::Existing { parent, entry, .. } => self.recording_of(card, parent, entry).await?,
            Goal::New { .. } => None,
        };
        let old = match goal {
            Goal::Existing { old, .. } => *old,
            Goal::New { .. } => WholeChain::NONE,
        };
        self.begin(
            card,
            Intent::Move {
                from,
                to,
                first,
                parent,
                old,
            },
        )
        .await?;
        match goal {
            Goal::New { name, room, .. } => self.write_new_name(card, *room, name, entry).await?,
            Goal::Existing { .. } => self.replace_entry(card, to.place, entry).await?,
        }
        self.leave(card, from, first, parent).await?;
        if old.clusters > 0 {
            self.free_chain(card, None, 0, old).await?;
        } else {
            self.done_unchanged(card).await?;
        }
        self.unlist_changed(card, replaced, old.first).await
    }

    /// Gives an existing entry other contents.
    async fn replace_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
        new: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let Slot::Short(mut entry) = self.slot(card, place).await? else {
            return Err(Error::DamagedDirectory);
        };
        let kind = self.layout.kind;
        let (date, time) = new.modified();
        entry.set_attributes(new.attributes());
        entry.set_modified(date, time);
        entry.set_accessed_date(new.accessed_date());
        entry.set_first_cluster(kind, new.first_cluster(kind));
        entry.set_size(new.size());
        self.write_entry(card, place, &entry).await
    }

    /// Completes a move whose new entry exists: corrects the parent of a directory, and deletes the old name.
    async fn leave<B: Blocks>(
        &mut self,
        card: &mut B,
        from: Option<NamePlace>,
        first: u32,
        parent: u32,
    ) -> Result<(), Error<B::Error>> {
        if parent != SAME_PARENT && first != 0 {
            let place = Place {
                block: self.layout.block_of(first),
                index: 1,
            };
            if let Slot::Short(mut above) = self.slot(card, place).await?
                && above.name() == DOT_DOT
            {
                above.set_first_cluster(self.layout.kind, parent);
                self.write_entry(card, place, &above).await?;
            }
        }
        match from {
            Some(name) => self.delete_name(card, name, first).await,
            None => Ok(()),
        }
    }

    /// Completes a move if its new entry exists. Returns the chain that is to be freed then.
    pub(super) async fn finish_move<B: Blocks>(
        &mut self,
        card: &mut B,
        from: Option<NamePlace>,
        to: Target,
        first: u32,
        parent: u32,
        old: WholeChain,
    ) -> Result<WholeChain, Error<B::Error>> {
        let is_written = self.is_target_written(card, to, first).await?
            || self.repeat_move(card, from, to, first).await?;
        if !is_written {
            return Ok(WholeChain::NONE);
        }
        self.leave(card, from, first, parent).await?;
        let is_old = self.is_unchanged(card, old).await?;
        Ok(if is_old { old } else { WholeChain::NONE })
    }

    async fn is_target_written<B: Blocks>(
        &mut self,
        card: &mut B,
        to: Target,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        let slot = self.slot(card, to.place).await?;
        let kind = self.layout.kind;
        Ok(matches!(slot, Slot::Short(entry)
            if entry.lfn_checksum() == to.sum && entry.first_cluster(kind) == first))
    }

    /// Gives the new entry its contents again, if a repair tool has truncated it because both entries had the
    /// same clusters. Returns false if it has not.
    async fn repeat_move<B: Blocks>(
        &mut self,
        card: &mut B,
        from: Option<NamePlace>,
        to: Target,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        let is_emptied = matches!(self.slot(card, to.place).await?,
            Slot::Short(entry) if self.is_entry_of(&entry, to.sum, first));
        let Some(from) = from.filter(|_| is_emptied) else {
            return Ok(false);
        };
        let Slot::Short(mut entry) = self.slot(card, from.place).await? else {
            return Ok(false);
        };
        let is_whole =
            entry.lfn_checksum() == from.sum && entry.first_cluster(self.layout.kind) == first;
        if is_whole {
            // The entry of an upload is hidden.
            entry.set_attributes(entry.attributes() & !(ATTR_HIDDEN | ATTR_SYSTEM));
            self.replace_entry(card, to.place, &entry).await?;
        }
        Ok(is_whole)
    }

    /// Keeps a directory whose entry exists, because a computer may have put something into it; otherwise
    /// frees its cluster. Returns whether it was undone, or `None` if another program has changed it.
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
        self.free_chain(card, Some(name), 0, chain).await
    }

    /// Fails if the recorder uses a directory. Returns its identity if it is one of the recorder's folders.
    async fn check_folder<B: Blocks>(
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

    /// Returns the identity of the recording that an entry has by its place and name.
    async fn recording_of<B: Blocks>(
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

    /// Removes a recording from the index after its file was changed, if the index has that file.
    async fn unlist_changed<B: Blocks>(
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
