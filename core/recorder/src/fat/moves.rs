//! Renaming, moving and replacing files.
//!
//! "move" writes the entry in its new place, which is one block: from then on, a mount completes the operation.
//! It then deletes the old name, and frees the clusters of a replaced file.

use super::entry::{DirEntry, Node};
use super::guest_record::{NamePlace, SAME_PARENT, Target, WholeChain};
use super::place::{NewName, Resolved, Room, cluster_of};
use super::record::{Intent, Place};
use super::{Error, FatVolume};
use crate::volume::{Blocks, Name};
use hadris_fat_raw::{ATTR_HIDDEN, ATTR_SYSTEM, ShortEntry, Slot, lfn_checksum};

const DOT_DOT: Name = *b"..         ";

/// Destination of an entry.
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
            Goal::New { name, room, .. } => Target::new(room.short(name), name.sum()),
            Goal::Existing { entry, .. } => Target::new(entry.place, lfn_checksum(&entry.short)),
        }
    }

    fn parent(&self) -> &Node {
        match self {
            Goal::New { parent, .. } | Goal::Existing { parent, .. } => parent,
        }
    }
}

impl FatVolume {
    /// Renames a file or a directory, or moves it to another directory. If `replaces` is true, a file replaces
    /// an existing file.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NameInvalid`], [`Error::Exists`],
    /// [`Error::IsDirectory`], [`Error::Forbidden`], [`Error::DirectoryFull`], [`Error::NoSpace`],
    /// [`Error::DamagedChain`], [`Error::DamagedDirectory`], [`Error::NotMounted`], or a card error.
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
        let goal = self.goal(card, to, Some(&old), replaces).await?;
        let id = self.recording_of(card, &parent, &old).await?;
        let Slot::Short(mut entry) = self.slot(card, old.place).await? else {
            return Err(Error::DamagedDirectory);
        };
        // The name and its case bits are those of the new place.
        entry.set_nt_case(0);
        let is_moved = cluster_of(&parent) != cluster_of(goal.parent());
        let above = cluster_of(goal.parent());
        let above = if old.is_directory() && is_moved {
            above
        } else {
            SAME_PARENT
        };
        self.move_entry(card, NamePlace::of(&old), &goal, &entry, above)
            .await?;
        self.unlist_changed(card, id, old.first).await
    }

    /// Returns the place for an entry with this path. `old` is the entry that is renamed: its name may change in
    /// case only.
    pub(super) async fn goal<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        path: &'p str,
        old: Option<&DirEntry>,
        replaces: bool,
    ) -> Result<Goal<'p>, Error<B::Error>> {
        let old_directory = old.filter(|old| old.is_directory());
        let Resolved {
            parent,
            name,
            found,
        } = self
            .resolve(card, path, old_directory.map(|old| old.place))
            .await?;
        let is_other = |entry: &DirEntry| old.is_none_or(|old| entry.place != old.place);
        // Only the case of the name changes.
        let same = found.as_ref().filter(|entry| !is_other(entry));
        let taken = same.map(|entry| entry.short);
        match found.filter(is_other) {
            Some(entry) if old_directory.is_some() || old.is_some() && entry.is_directory() => {
                Err(Error::Exists)
            }
            Some(entry) => self.replaced(card, parent, entry, replaces).await,
            None => {
                let (name, room) = self.room_for(card, &parent, name, taken.as_ref()).await?;
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

    /// Writes an entry in its new place, deletes the old one, and frees the clusters of the file that it
    /// replaces.
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
            Goal::Existing { .. } => self.replace_entry(card, to.place(), entry).await?,
        }
        self.leave(card, from, first, parent).await?;
        if old.clusters > 0 {
            self.free_chain(card, None, 0, old).await?;
        } else {
            self.done_unchanged(card).await?;
        }
        self.unlist_changed(card, replaced, old.first).await
    }

    /// Replaces the contents of an existing entry.
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

    /// Completes a move if its new entry exists. Returns the chain to be freed in that case.
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

    pub(super) async fn is_target_written<B: Blocks>(
        &mut self,
        card: &mut B,
        to: Target,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        let slot = self.slot(card, to.place()).await?;
        let kind = self.layout.kind;
        Ok(matches!(slot, Slot::Short(entry)
            if entry.lfn_checksum() == to.sum && entry.first_cluster(kind) == first))
    }

    /// Restores the new entry if a repair tool has truncated it, which may happen because both entries had the
    /// same clusters. Returns false if there is nothing to restore.
    async fn repeat_move<B: Blocks>(
        &mut self,
        card: &mut B,
        from: Option<NamePlace>,
        to: Target,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        let is_emptied = matches!(self.slot(card, to.place()).await?,
            Slot::Short(entry) if self.is_entry_of(&entry, to.sum, first));
        let Some(from) = from.filter(|_| is_emptied) else {
            return Ok(false);
        };
        let Slot::Short(mut entry) = self.slot(card, from.place()).await? else {
            return Ok(false);
        };
        let is_whole =
            entry.lfn_checksum() == from.sum && entry.first_cluster(self.layout.kind) == first;
        if is_whole {
            // The entry of an upload is hidden.
            entry.set_attributes(entry.attributes() & !(ATTR_HIDDEN | ATTR_SYSTEM));
            self.replace_entry(card, to.place(), &entry).await?;
        }
        Ok(is_whole)
    }
}
