//! Resolves paths that guests change: the directory, the name, and room for its entries.
//!
//! All entries of a new name are in one block, so that writing it is one step: after a power cut, either all
//! of them exist or none. This limits new names to 195 units of UTF-16. Names of other programs may extend
//! over three blocks; chains.rs deletes them.

use super::entry::{DirEntry, Node, is_name, is_shown_as};
use super::names::number_of;
use super::record::{ENTRIES_OF_BLOCK, Intent, Place};
use super::root::ROOT;
use super::series::in_folder;
use super::{Error, FatVolume, Refusal};
use crate::protected::is_protected;
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, Name};
use hadris_fat_raw::{
    ATTR_READ_ONLY, ENTRY_FREE, ENTRY_SIZE, LongEntry, MAX_DIR_ENTRIES, ShortEntry, Slot,
    fold_unicode, lfn::Encoded, lfn_checksum, short_name,
};

/// Short names that are tried in one pass over a directory.
const CANDIDATES: usize = 4;
/// Numbers of the first candidates: `~1`, and three with different hashes of the long name.
const SUFFIXES: [u8; CANDIDATES] = [1, 5, 14, 23];
/// Maximum number of passes over a directory in search of a free short name.
const PASSES_MAX: u8 = 100;

/// A path whose last name need not exist.
pub(super) struct Resolved<'p> {
    pub(super) parent: Node,
    pub(super) name: &'p str,
    pub(super) found: Option<DirEntry>,
}

/// A name that is about to be written.
pub(super) struct NewName<'p> {
    name: &'p str,
    short: Name,
    /// The case bits of a name without a long one.
    nt_case: u8,
    /// Entries of the long name.
    long_entries: usize,
}

impl NewName<'_> {
    pub(super) fn sum(&self) -> u8 {
        lfn_checksum(&self.short)
    }
}

/// Room for a name.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Position of its first entry.
    begin: Place,
    /// No entry follows: the rest of the block is zeros.
    is_end: bool,
}

impl Room {
    /// Returns the position of the short entry.
    pub(super) fn short(&self, name: &NewName) -> Place {
        Place {
            index: self.begin.index + name.long_entries as u8,
            ..self.begin
        }
    }
}

/// Result of a search for room.
enum Search {
    Found(Room),
    /// The directory ends at this entry, and the rest of its block is too short for the name, which goes to
    /// the next block.
    Ends(Place),
    /// No block has room. The value is the directory's last cluster, or 0.
    Full(u32),
}

impl FatVolume {
    /// Resolves a path whose last name need not exist.
    ///
    /// # Errors
    /// Those of [`lookup`](FatVolume::lookup), and [`Error::Forbidden`] for the root directory, for anything
    /// hidden, and for a path through `avoid`.
    pub(super) async fn resolve<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        path: &'p str,
        avoid: Option<Place>,
    ) -> Result<Resolved<'p>, Error<B::Error>> {
        self.check_ready()?;
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Err(Error::Forbidden(Refusal::Root));
        }
        let (above, name) = path
            .rsplit_once('/')
            .map_or((None, path), |(it, name)| (Some(it), name));
        let mut walk = self.walk(card);
        let mut parent = Node::Root;
        for part in above.into_iter().flat_map(|above| above.split('/')) {
            let found = walk.find_in(&parent, part).await?;
            let found = found.ok_or(Error::NotFound)?;
            if avoid == Some(found.place) {
                return Err(Error::Forbidden(Refusal::IntoItself));
            }
            parent = Node::Entry(found);
        }
        let found = walk.find_in(&parent, name).await?;
        let is_hidden = |entry: &DirEntry| entry.is_hidden;
        let is_parent_hidden = matches!(&parent, Node::Entry(entry) if is_hidden(entry));
        if is_parent_hidden || found.as_ref().is_some_and(is_hidden) {
            return Err(Error::Forbidden(Refusal::Hidden));
        }
        Ok(Resolved {
            parent,
            name,
            found,
        })
    }

    /// Fails if a guest may not change this entry.
    pub(super) fn check_may_change<E>(&self, entry: &DirEntry) -> Result<(), Error<E>> {
        let mut unfinished = self.record.reserved.iter().flatten();
        if entry.is_hidden {
            return Err(Error::Forbidden(Refusal::Hidden));
        }
        if unfinished.any(|file| file.place == entry.place) {
            return Err(Error::Forbidden(Refusal::Unfinished));
        }
        // Guests do not see such an entry: it may be a file of another system.
        if entry.is_unfinished() {
            return Err(Error::Forbidden(Refusal::Hidden));
        }
        if entry.attributes & ATTR_READ_ONLY != 0 {
            return Err(Error::Forbidden(Refusal::ReadOnly));
        }
        Ok(())
    }

    /// Returns the prefix and number of a directory that is a folder of this recorder.
    pub(super) async fn own_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        node: &Node,
    ) -> Result<Option<FileId>, Error<B::Error>> {
        let Node::Entry(entry) = node else {
            return Ok(None);
        };
        let [a, b, c, ..] = entry.short;
        let number = number_of(&entry.short).filter(|_| entry.short.ends_with(b"   "));
        // A directory elsewhere may have the same name; the recorder's folders are in the root directory.
        let (Some(number), true) = (number, entry.is_directory()) else {
            return Ok(None);
        };
        let is_own = self.is_own_folder(card, entry.first).await?
            && self.root_entry(card, &entry.short).await?.map(|it| it.0) == Some(entry.place);
        Ok(is_own.then_some(in_folder([a, b, c], number)))
    }

    /// Finds room for a new name in a directory, which grows if necessary, and chooses its short name: not `taken`, that of
    /// an entry that is renamed in the same directory. After a power cut, fsck would rename one of two entries with one
    /// short name.
    ///
    /// # Errors
    /// [`Error::NameInvalid`], [`Error::DirectoryFull`], [`Error::NoSpace`], and [`Error::Forbidden`] for a
    /// name that the recorder may need.
    pub(super) async fn room_for<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        parent: &Node,
        name: &'p str,
        taken: Option<&Name>,
    ) -> Result<(NewName<'p>, Room), Error<B::Error>> {
        let name = self.new_name(card, parent, name, taken).await?;
        let folder = self.own_folder(card, parent).await?;
        self.check_name_is_free(parent, folder, &name)?;
        let blocks_max = folder.map_or(u32::MAX, |id| self.blocks_for_guests(id));
        let entries = name.long_entries + 1;
        let room = match self.search(card, parent, entries, blocks_max).await? {
            Search::Found(room) => room,
            Search::Ends(place) => self.end_block(card, parent, place).await?,
            Search::Full(_) if folder.is_some() => return Err(full(parent)),
            Search::Full(last) => self.extend_directory(card, parent, last).await?,
        };
        Ok((name, room))
    }

    /// Fails for names that the recorder may need for its own files and folders.
    fn check_name_is_free<E>(
        &self,
        parent: &Node,
        folder: Option<FileId>,
        name: &NewName,
    ) -> Result<(), Error<E>> {
        // Names of recordings with a session have the same beginning.
        let head = head_of(name.name);
        let Some(digits) = number_of(&head) else {
            return Ok(());
        };
        let [a, b, c, ..] = head;
        let next = self.series([a, b, c]).map(|series| series.next);
        let is_folder_name = *parent == Node::Root && name.short.ends_with(b"   ");
        let is_needed = match folder {
            Some(id) => {
                let number = id.number + digits % FOLDER_RECORDINGS_MAX;
                id.prefix == [a, b, c] && number >= next.unwrap_or(0)
            }
            None => {
                is_folder_name && next.is_some_and(|next| digits >= next / FOLDER_RECORDINGS_MAX)
            }
        };
        match is_needed {
            true => Err(Error::Forbidden(Refusal::Recordings)),
            false => Ok(()),
        }
    }

    /// Returns the number of blocks of a folder in which no future recording has its position.
    fn blocks_for_guests(&self, folder: FileId) -> u32 {
        let next = self.series(folder.prefix).map_or(0, |series| series.next);
        let begin = folder.number;
        match next.checked_sub(begin) {
            None => 1,
            Some(used) if used >= FOLDER_RECORDINGS_MAX => u32::MAX,
            Some(used) => 1 + used / super::folder::NAMES_OF_BLOCK,
        }
    }

    /// Chooses a short name that no entry of the directory has.
    async fn new_name<'p, B: Blocks>(
        &mut self,
        card: &mut B,
        parent: &Node,
        name: &'p str,
        taken: Option<&Name>,
    ) -> Result<NewName<'p>, Error<B::Error>> {
        let encoded = Encoded::new(name).filter(|_| is_name(name));
        let long_entries = encoded.ok_or(Error::NameInvalid)?.entries();
        if long_entries >= ENTRIES_OF_BLOCK {
            return Err(Error::NameInvalid);
        }
        if is_protected(name) {
            return Err(Error::Forbidden(Refusal::Hidden));
        }
        let generate = |suffix| short_name::generate(name, suffix, |_| None);
        // A name that differs from a short one in case only gets that short one. With another one, the recorder could
        // later create the same name a second time, because it looks for its names among the short ones.
        let plain = generate(0).filter(|short| is_shown_as(short, name) && taken != Some(short));
        if let Some(short) = plain {
            let (nt_case, long_entries) = match short_name::case_bits(name) {
                Some(nt_case) => (nt_case, 0),
                None => (0, long_entries),
            };
            return Ok(NewName {
                name,
                short,
                nt_case,
                long_entries,
            });
        }
        for pass in 0..PASSES_MAX {
            // With a number, there is a short name even if no character is valid.
            let candidates = SUFFIXES.map(|it| generate(pass + it));
            let mut is_taken = [false; CANDIDATES];
            let mut walk = self.walk(card);
            let mut cursor = walk.open(parent)?;
            while let Some((_, slot)) = walk.next_slot(&mut cursor).await? {
                match slot {
                    Slot::End => break,
                    Slot::Short(entry) => {
                        let short = Some(entry.name());
                        (is_taken.iter_mut().zip(&candidates))
                            .for_each(|(is_taken, it)| *is_taken |= *it == short);
                    }
                    _ => (),
                }
            }
            let free = is_taken.iter().position(|is_taken| !is_taken);
            if let Some(short) = free.and_then(|at| candidates[at]) {
                let nt_case = 0;
                return Ok(NewName {
                    name,
                    short,
                    nt_case,
                    long_entries,
                });
            }
        }
        Err(full(parent))
    }

    /// Searches the first `blocks_max` blocks of a directory for consecutive free entries in one block.
    async fn search<B: Blocks>(
        &mut self,
        card: &mut B,
        parent: &Node,
        entries: usize,
        blocks_max: u32,
    ) -> Result<Search, Error<B::Error>> {
        let mut walk = self.walk(card);
        let mut cursor = walk.open(parent)?;
        let mut free = 0;
        while let Some((place, slot)) = walk.next_slot(&mut cursor).await? {
            if cursor.passed / ENTRIES_OF_BLOCK as u32 >= blocks_max {
                break;
            }
            if place.index == 0 {
                free = 0;
            }
            let index = usize::from(place.index);
            let begin = |free: usize| Place {
                index: (index - free) as u8,
                ..place
            };
            match slot {
                Slot::End if free + ENTRIES_OF_BLOCK - index >= entries => {
                    let begin = begin(free);
                    return Ok(Search::Found(Room {
                        begin,
                        is_end: true,
                    }));
                }
                Slot::End => return Ok(Search::Ends(place)),
                Slot::Free => free += 1,
                Slot::Long(_) | Slot::Short(_) => free = 0,
            }
            if free == entries {
                let begin = begin(free - 1);
                return Ok(Search::Found(Room {
                    begin,
                    is_end: false,
                }));
            }
        }
        let is_longest = cursor.passed + ENTRIES_OF_BLOCK as u32 >= MAX_DIR_ENTRIES;
        match is_longest {
            true => Err(full(parent)),
            false => Ok(Search::Full(cursor.cluster)),
        }
    }

    /// Marks the entries from the end mark to the end of its block as free, and returns the beginning of the
    /// next block.
    async fn end_block<B: Blocks>(
        &mut self,
        card: &mut B,
        parent: &Node,
        end: Place,
    ) -> Result<Room, Error<B::Error>> {
        let mut walk = self.walk(card);
        let mut cursor = walk.open(parent)?;
        let mut is_passed = false;
        let mut next = None;
        while let Some((place, slot)) = walk.next_slot(&mut cursor).await? {
            if is_passed && place.index == 0 {
                next = Some((place, slot));
                break;
            }
            is_passed |= place == end;
        }
        let last = cursor.cluster;
        // Without the end mark, stale entries after it would be valid.
        if next.is_some_and(|(_, slot)| slot != Slot::End) {
            return Err(Error::DamagedDirectory);
        }
        self.slot(card, end).await?;
        let (entries, _) = self.block.as_chunks_mut::<ENTRY_SIZE>();
        for entry in &mut entries[usize::from(end.index)..] {
            *entry = [0; ENTRY_SIZE];
            entry[0] = ENTRY_FREE;
        }
        self.write_back(card, end.block).await?;
        match next {
            Some((begin, _)) => Ok(Room {
                begin,
                is_end: true,
            }),
            None => self.extend_directory(card, parent, last).await,
        }
    }

    /// Appends a cluster to a directory that ends with cluster `last`.
    async fn extend_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        parent: &Node,
        last: u32,
    ) -> Result<Room, Error<B::Error>> {
        if last == 0 {
            return Err(full(parent));
        }
        let begin = self.append_to_directory(card, last).await?;
        Ok(Room {
            begin,
            is_end: true,
        })
    }

    /// Appends an empty cluster to a directory, and returns its first entry.
    pub(super) async fn append_to_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        last: u32,
    ) -> Result<Place, Error<B::Error>> {
        let (new, found) = self.free_run(card, 1, 1).await?;
        if found == 0 {
            return Err(Error::NoSpace { longest_blocks: 0 });
        }
        self.begin(card, Intent::ExtendDirectory { last, new })
            .await?;
        self.write_directory(card, new, None).await?;
        self.link(card, new, None).await?;
        self.link(card, last, Some(new)).await?;
        self.record.hint = new + 1;
        let free = self.record.free.map(|free| free.saturating_sub(1));
        self.done(card, free).await?;
        Ok(Place {
            block: self.layout.block_of(new),
            index: 0,
        })
    }

    /// Writes all entries of a new name. The short entry has the given contents.
    pub(super) async fn write_new_name<B: Blocks>(
        &mut self,
        card: &mut B,
        room: Room,
        name: &NewName<'_>,
        entry: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let mut entry = *entry;
        entry.set_name(name.short);
        entry.set_nt_case(name.nt_case);
        self.read(card, room.begin.block).await?;
        let (entries, _) = self.block.as_chunks_mut::<ENTRY_SIZE>();
        let begin = usize::from(room.begin.index);
        let (here, behind) = entries[begin..].split_at_mut(name.long_entries + 1);
        if let Some(encoded) = Encoded::new(name.name) {
            for (at, raw) in here[..name.long_entries].iter_mut().enumerate() {
                let (sequence, units) = encoded.entry(at);
                *raw = LongEntry::new(sequence, name.sum(), &units).encode();
            }
        }
        here[name.long_entries] = entry.encode();
        if room.is_end {
            behind.fill([0; ENTRY_SIZE]);
        }
        self.write_back(card, room.begin.block).await
    }
}

/// Returns the first cluster of a directory as its subdirectories store it: 0 for the root directory.
pub(super) fn cluster_of(directory: &Node) -> u32 {
    match directory {
        Node::Entry(entry) => entry.first,
        Node::Root => 0,
    }
}

/// Returns the first eight letters of a name as FAT compares them; 0 for those outside ASCII.
fn head_of(name: &str) -> Name {
    let mut head = [b' '; 11];
    let units = name.encode_utf16().map(fold_unicode);
    for (byte, unit) in head[..8].iter_mut().zip(units) {
        *byte = u8::try_from(unit).unwrap_or(0);
    }
    head
}

/// Returns the error for a directory without room.
fn full<E>(parent: &Node) -> Error<E> {
    Error::DirectoryFull(match parent {
        Node::Root => ROOT,
        Node::Entry(entry) => entry.short,
    })
}
