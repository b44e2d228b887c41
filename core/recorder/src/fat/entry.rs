//! Entries of a directory as other programs see them, and their names.

use super::DosTime;
use super::layout::{Layout, Root};
use super::record::Place;
use crate::protected::{NameJudge, is_same_name};
use crate::volume::Name;
use core::ops::Range;
use hadris_fat_raw::{
    ATTR_DIRECTORY, ATTR_HIDDEN, ATTR_SYSTEM, LFN_LAST_ENTRY, LFN_SEQUENCE_MASK,
    LFN_UNITS_PER_ENTRY, LongEntry, ShortEntry, fold_unicode, lfn, name::eq_folded, short_name,
};

/// Longest name of an entry, in bytes of UTF-8.
pub const ENTRY_NAME_BYTES_MAX: usize = 3 * lfn::MAX_UNITS;
/// Number of blocks before the one with the short entry that a long name may occupy.
pub(super) const BLOCKS_BEFORE_MAX: usize = 2;
/// Attributes of everything that guests neither see nor change. A file with [`ATTR_SYSTEM`] alone may be a recording in
/// progress, which guests see; see [`DirEntry::is_unfinished`].
const HIDDEN: u8 = ATTR_HIDDEN | ATTR_SYSTEM;

/// A file or directory according to its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Attributes as stored.
    pub attributes: u8,
    /// Length in bytes; 0 for a directory.
    pub bytes: u32,
    /// Time of the last change.
    pub modified: DosTime,
    /// True if the entry, or a directory above it, is for the recorder or the operating system only: its attributes, its
    /// long name or its short name say so, whichever name it was found by.
    pub is_hidden: bool,
    /// First cluster; 0 if there is none.
    pub(crate) first: u32,
    pub(super) short: Name,
    /// Position of the short entry.
    pub(super) place: Place,
    /// Number of entries of the long name.
    pub(super) long_entries: u8,
    /// Blocks before `place.block` that contain entries of the long name, the nearest first; 0 for none.
    pub(super) before: [u32; BLOCKS_BEFORE_MAX],
}

impl DirEntry {
    pub(super) fn new(layout: &Layout, entry: &ShortEntry, place: Place, span: Span) -> DirEntry {
        let (date, time) = entry.modified();
        let attributes = entry.attributes();
        let is_unfinished = attributes & (HIDDEN | ATTR_DIRECTORY) == ATTR_SYSTEM;
        DirEntry {
            attributes,
            bytes: entry.size(),
            modified: DosTime { date, time },
            is_hidden: attributes & HIDDEN != 0 && !is_unfinished
                || span.is_protected
                || is_protected_short(&entry.name()),
            first: entry.first_cluster(layout.kind),
            short: entry.name(),
            place,
            long_entries: span.entries,
            before: span.before,
        }
    }

    /// Returns true for a directory.
    pub fn is_directory(&self) -> bool {
        self.attributes & ATTR_DIRECTORY != 0
    }

    /// Returns true for a recording that is still being written, or was interrupted: its length is that of
    /// its preallocated space.
    pub fn is_unfinished(&self) -> bool {
        !self.is_directory() && self.attributes & HIDDEN == ATTR_SYSTEM
    }

    /// Returns the beginning of the file's contents, for [`FatVolume::extent_at`](super::FatVolume::extent_at).
    pub fn contents(&self) -> ChainPosition {
        ChainPosition::of(self.first)
    }
}

/// Target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// The root directory, which has no entry.
    Root,
    /// A file or another directory.
    Entry(DirEntry),
}

/// Position in a directory, between two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirCursor {
    /// The current cluster; 0 in a root directory with a fixed location.
    pub(super) cluster: u32,
    /// The current block.
    pub(super) block: u32,
    /// Number of blocks after the current one in this cluster, or in the root directory.
    pub(super) blocks_left: u32,
    pub(super) index: u8,
    /// Number of entries passed, including free ones.
    pub(super) passed: u32,
}

impl DirCursor {
    /// Returns the beginning of the root directory.
    pub(super) fn root(layout: &Layout) -> Option<DirCursor> {
        match layout.root {
            Root::Cluster(first) => DirCursor::of(layout, first),
            Root::Fixed { start, blocks } => Some(DirCursor {
                cluster: 0,
                block: start,
                blocks_left: blocks.checked_sub(1)?,
                index: 0,
                passed: 0,
            }),
        }
    }

    /// Returns the beginning of the directory with this first cluster, if it exists.
    pub(super) fn of(layout: &Layout, first: u32) -> Option<DirCursor> {
        layout.has(first, 1).then(|| DirCursor {
            cluster: first,
            block: layout.block_of(first),
            blocks_left: layout.cluster_blocks - 1,
            index: 0,
            passed: 0,
        })
    }
}

/// Position in a chain of clusters: where the last search in it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    pub(super) first: u32,
    /// Number of `cluster` in the chain, from 0.
    pub(super) index: u32,
    pub(super) cluster: u32,
}

impl ChainPosition {
    pub(crate) const fn of(first: u32) -> ChainPosition {
        ChainPosition {
            first,
            index: 0,
            cluster: first,
        }
    }
}

/// Extent of a long name before its short entry.
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) entries: u8,
    /// True if guests neither see nor change an entry with this long name.
    pub(super) is_protected: bool,
    pub(super) before: [u32; BLOCKS_BEFORE_MAX],
}

/// Collects the entries of a long name, in the order in which they are stored: its end comes first.
#[derive(Default)]
pub(super) struct LongParts {
    /// Number of the part that has to come next; 0 if the name is complete or there is none.
    expected: u8,
    checksum: u8,
    /// Block of the last part.
    block: u32,
    span: Span,
    judge: NameJudge,
}

impl LongParts {
    /// Takes the next part, and passes its characters to `name`.
    pub(super) fn push(&mut self, part: &LongEntry, block: u32, name: &mut NameSink) {
        let (sequence, checksum) = (part.sequence(), part.checksum());
        let number = sequence & LFN_SEQUENCE_MASK;
        let is_last = sequence & LFN_LAST_ENTRY != 0;
        if is_last && (1..=lfn::MAX_ENTRIES as u8).contains(&number) {
            name.begin();
            *self = LongParts {
                expected: number,
                checksum,
                block,
                ..LongParts::default()
            };
        }
        if number == 0 || number != self.expected || checksum != self.checksum {
            *self = LongParts::default();
            return;
        }
        self.step(block);
        self.span.entries += 1;
        self.expected -= 1;
        let (units, len) = part.units();
        for unit in units[..len].iter().rev() {
            self.judge.push(*unit);
        }
        name.push(number, &units[..len], is_last);
    }

    /// Notes the block of the next entry.
    fn step(&mut self, block: u32) {
        if self.block != block {
            let [nearest, _] = self.span.before;
            self.span.before = [self.block, nearest];
            self.block = block;
        }
    }

    /// Ends the name at a short entry. Returns an empty span if the parts do not form the long name of this
    /// entry.
    pub(super) fn end(&mut self, short: &ShortEntry, block: u32) -> Span {
        let is_its = self.expected == 0 && self.checksum == short.lfn_checksum();
        self.step(block);
        let parts = core::mem::take(self);
        let is_protected = parts.judge.is_protected();
        match is_its {
            true => Span {
                is_protected,
                ..parts.span
            },
            false => Span::default(),
        }
    }
}

/// Receives the names of a directory's entries.
pub(super) enum NameSink<'n> {
    /// Writes them as text.
    Text(Text<'n>),
    /// Compares them with a name.
    Match { name: &'n str, is_same: bool },
}

impl NameSink<'_> {
    fn begin(&mut self) {
        match self {
            NameSink::Text(text) => text.clear(),
            NameSink::Match { is_same, .. } => *is_same = true,
        }
    }

    /// Takes part `number` of a long name, counted from 1 at its beginning.
    fn push(&mut self, number: u8, units: &[u16], is_last: bool) {
        match self {
            NameSink::Text(text) => units.iter().rev().for_each(|unit| text.prepend(*unit)),
            NameSink::Match { name, is_same } => {
                let before = usize::from(number - 1) * LFN_UNITS_PER_ENTRY;
                // The last part has to cover the rest of the name.
                let most = if is_last {
                    usize::MAX
                } else {
                    LFN_UNITS_PER_ENTRY
                };
                let due = name.encode_utf16().skip(before).take(most);
                *is_same &= eq_folded(due, units.iter().copied(), fold_unicode);
            }
        }
    }

    /// Ends a name at its short entry. Returns true if the name was accepted.
    pub(super) fn end(&mut self, short: &ShortEntry, span: Span) -> bool {
        let mut shown = [0; short_name::DISPLAY_MAX];
        let shown = show(&short.name(), short.nt_case(), &mut shown);
        match self {
            NameSink::Text(text) => {
                text.flush();
                if span.entries == 0 || !is_name(text.as_str()) {
                    text.set(shown);
                }
                true
            }
            NameSink::Match { name, is_same } => {
                is_same_name(name, shown) || span.entries > 0 && *is_same
            }
        }
    }
}

/// Writes a short name in its usual form, with a dot.
fn show<'s>(name: &Name, nt_case: u8, shown: &'s mut [u8; short_name::DISPLAY_MAX]) -> &'s str {
    let unknown = |_| char::REPLACEMENT_CHARACTER;
    let len = short_name::display(name, nt_case, unknown, shown);
    core::str::from_utf8(&shown[..len]).unwrap_or_default()
}

/// Returns true if FAT considers a short name and a name of any kind equal.
pub(super) fn is_shown_as(short: &Name, name: &str) -> bool {
    is_same_name(name, show(short, 0, &mut [0; short_name::DISPLAY_MAX]))
}

/// A text that grows at its front, in the caller's memory.
pub(super) struct Text<'t> {
    out: &'t mut [u8],
    /// Beginning of the text, which extends to the end of `out`.
    begin: usize,
    /// Second half of a surrogate pair whose first half is to come.
    low: Option<u16>,
    is_too_long: bool,
}

impl<'t> Text<'t> {
    pub(super) fn new(out: &'t mut [u8]) -> Text<'t> {
        let begin = out.len();
        Text {
            out,
            begin,
            low: None,
            is_too_long: false,
        }
    }

    fn clear(&mut self) {
        self.begin = self.out.len();
        self.low = None;
        self.is_too_long = false;
    }

    fn prepend(&mut self, unit: u16) {
        let low = self.low.take();
        match (unit, low) {
            (0xD800..=0xDBFF, Some(low)) => {
                let pair = char::decode_utf16([unit, low]).next();
                self.put(pair.and_then(Result::ok));
            }
            (0xDC00..=0xDFFF, _) => {
                if low.is_some() {
                    self.put(None);
                }
                self.low = Some(unit);
            }
            _ => {
                if low.is_some() {
                    self.put(None);
                }
                self.put(char::from_u32(unit.into()));
            }
        }
    }

    fn put(&mut self, character: Option<char>) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        let Some(begin) = self.begin.checked_sub(character.len_utf8()) else {
            self.is_too_long = true;
            return;
        };
        character.encode_utf8(&mut self.out[begin..self.begin]);
        self.begin = begin;
    }

    fn flush(&mut self) {
        if self.low.take().is_some() {
            self.put(None);
        }
        if self.is_too_long {
            self.clear();
        }
    }

    fn set(&mut self, text: &str) {
        self.clear();
        if let Some(begin) = self.begin.checked_sub(text.len()) {
            self.out[begin..].copy_from_slice(text.as_bytes());
            self.begin = begin;
        }
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.out[self.begin..]).unwrap_or_default()
    }

    /// Returns the position of the text in the caller's memory.
    pub(super) fn range(&self) -> Range<usize> {
        self.begin..self.out.len()
    }
}

/// Returns true if a name can be part of a path: it is valid, and no system would store it differently.
pub(super) fn is_name(name: &str) -> bool {
    short_name::is_valid_long_name(name) && !name.ends_with(['.', ' '])
}

/// Applies the rule for protected names to a short name.
fn is_protected_short(name: &Name) -> bool {
    let (base, extension) = name.split_at(8);
    let (base, extension) = (base.trim_ascii_end(), extension.trim_ascii_end());
    let mut judge = NameJudge::default();
    let dot: &[u8] = if extension.is_empty() { b"" } else { b"." };
    for byte in [extension, dot, base]
        .into_iter()
        .flat_map(|part| part.iter().rev())
    {
        judge.push((*byte).into());
    }
    judge.is_protected()
}

/// Returns true if a short name contains no control characters. Names in a damaged directory may contain some.
pub(super) fn is_short_name(name: &Name) -> bool {
    let is_printable = |byte: &u8| *byte >= b' ' && *byte != 0x7F;
    match name[0] {
        hadris_fat_raw::ENTRY_KANJI_E5 => name[1..].iter().all(is_printable),
        first => first != b' ' && name.iter().all(is_printable),
    }
}
