//! Folders, sessions and days as tar: the length is known beforehand, and a download can continue at any byte.

use super::read::{attachment, start_range};
use crate::head::Head;
use crate::path::{Path, append, name};
use crate::range::{Selection, Tag, evaluate, select, tag_of};
use crate::status::{Closed, Fault, Refused, Status};
use crate::storage::EMPTY_NAME;
use crate::tar::{BLOCK_BYTES, END_BLOCKS, Member};
use crate::wire::{Length, Wire};
use crate::{Day, Error, Instrument, Kind, Position, Server, Stat, Storage, Timer, Version};
use cardiograph_recorder::{RESERVED_MAX, is_protected};
use core::fmt::Write as _;
use core::ops::Range;
use embedded_io_async::{Read, Write};

/// Files of an archive.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The files of a folder, without its subfolders. The path of the folder has this many bytes.
    Folder(usize),
    /// The recordings of a session.
    Session(&'a str),
    /// The recordings of a day.
    Day(Option<Day>),
}

/// Position in the files of an archive.
enum Cursor<L> {
    Folder(L),
    Index(Position),
}

/// Maximum number of unfinished files in an archive, equal to that of a recorder.
const GROWING_MAX: usize = RESERVED_MAX;
// The text of the refusal names the number.
const _: () = assert!(GROWING_MAX == 8);

/// Epoch and length of an unfinished file, without padding.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Growing {
    epoch: u32,
    bytes: u64,
}

/// An archive, and the result of the first pass over its files.
struct Archive<'a> {
    source: Source<'a>,
    /// Day; empty for other sources.
    title: Title,
    bytes: u64,
    hash: u64,
    /// Epochs and lengths of unfinished files: the second pass sends exactly these lengths, even if the files
    /// have grown.
    growing: heapless::Vec<Growing, GROWING_MAX>,
    /// Bytes of the archive to send.
    range: Range<u64>,
}

const TOO_MANY_GROW: Refused = Refused::new(
    Status::Conflict,
    "more than 8 files are still being recorded: download the files one by one, or wait until they are finished",
);

const PATH_TOO_LONG: Refused = Refused::new(
    Status::Conflict,
    "the folder contains a file whose path is longer than 255 bytes: shorten its name where the card is mounted, or download the other files one by one",
);

const NOT_UTF8: Refused = Refused::new(
    Status::Conflict,
    "the folder contains a file whose name is not UTF-8: rename it where the card is mounted, or download the other files one by one",
);
/// Start of an FNV-1a hash.
const HASH_START: u64 = 0xCBF2_9CE4_8422_2325;

/// A date, or `unknown`.
type Title = heapless::String<12>;

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends an archive.
    pub(crate) async fn archive<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        source: Source<'_>,
        path: &mut Path,
    ) -> Result<(), Fault> {
        let mut archive = Archive::new(source);
        self.survey(&mut archive, path).await?;
        if start_archive(wire, head, &mut archive, path).await? {
            self.send_archive(wire, &archive, path).await?;
        }
        Ok(wire.finish().await?)
    }

    /// Determines length and members of an archive.
    async fn survey(&self, archive: &mut Archive<'_>, path: &mut Path) -> Result<(), Fault> {
        let source = archive.source;
        let mut cursor = self.cursor(source, path).await?;
        let mut files = 0_u32;
        while let Some(stat) = self.next_file(source, &mut cursor, path).await? {
            archive.add(path, &stat)?;
            files += 1;
        }
        match (source, files) {
            (Source::Session(_) | Source::Day(_), 0) => Err(Error::NotFound.into()),
            _ => Ok(()),
        }
    }

    /// Sends the range of an archive.
    async fn send_archive<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        archive: &Archive<'_>,
        path: &mut Path,
    ) -> Result<(), Fault> {
        let mut cursor = self.cursor(archive.source, path).await?;
        let (mut at, mut hash) = (0_u64, HASH_START);
        let end_at = archive.bytes - END_BLOCKS * BLOCK_BYTES as u64;
        while let Some(mut stat) = self.next_file(archive.source, &mut cursor, path).await? {
            stat.bytes = archive.length_of(&stat);
            hash = hash_member(hash, path, &stat);
            let next_at = at + archive_bytes(&archive.member(path, &stat));
            if next_at > end_at {
                return Err(Fault::Closed);
            }
            if next_at > archive.range.start && at < archive.range.end {
                self.send_member(wire, archive, path, &stat, at).await?;
            }
            at = next_at;
        }
        // A file was added, removed or changed since the first pass: interrupt the response, so that the client
        // does not take it for complete.
        if (at, hash) != (end_at, archive.hash) {
            return Err(Fault::Closed);
        }
        for block_at in [at, at + BLOCK_BYTES as u64] {
            wire.block(archive.part(block_at), |block| block.fill(0))
                .await?;
        }
        Ok(())
    }

    /// Sends the parts of a file that are in the range; its head is at `at`.
    async fn send_member<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        archive: &Archive<'_>,
        path: &str,
        stat: &Stat,
        mut at: u64,
    ) -> Result<(), Fault> {
        for index in 0..archive.member(path, stat).head_blocks() {
            wire.block(archive.part(at), |block| {
                archive.member(path, stat).head_block(index, block);
            })
            .await?;
            at += BLOCK_BYTES as u64;
        }
        let inside = |at_most: u64| {
            let Range { start, end } = archive.range;
            start.saturating_sub(at).min(at_most)..end.saturating_sub(at).min(at_most)
        };
        let data = inside(stat.bytes);
        let padded = inside(stat.bytes.next_multiple_of(BLOCK_BYTES as u64));
        let zeros = (padded.end - padded.start) - (data.end - data.start);
        if !data.is_empty() {
            let file = self.storage.open(path).await?;
            if !is_same_file(stat, &self.storage.stat(&file)) {
                return Err(Error::Changed.into());
            }
            self.send(wire, &file, data.start, data.end).await?;
        }
        wire.block(0..zeros as usize, |block| block.fill(0)).await?;
        Ok(())
    }

    async fn cursor(
        &self,
        source: Source<'_>,
        path: &mut Path,
    ) -> Result<Cursor<S::Listing>, Error> {
        Ok(match source {
            Source::Folder(bytes) => {
                path.truncate(bytes);
                Cursor::Folder(self.storage.list(path).await?)
            }
            _ => Cursor::Index(Position::default()),
        })
    }

    /// Returns the next file of an archive, and its path.
    async fn next_file(
        &self,
        source: Source<'_>,
        cursor: &mut Cursor<S::Listing>,
        path: &mut Path,
    ) -> Result<Option<Stat>, Fault> {
        loop {
            match cursor {
                Cursor::Folder(listing) => {
                    let mut name = EMPTY_NAME;
                    let Some(entry) = self.storage.next(listing, &mut name).await? else {
                        return Ok(None);
                    };
                    let Source::Folder(bytes) = source else {
                        return Ok(None);
                    };
                    path.truncate(bytes);
                    if entry.stat.kind == Kind::File && !is_protected(entry.name) {
                        if entry.is_approximate {
                            return Err(NOT_UTF8.into());
                        }
                        append(path, entry.name).map_err(|_| PATH_TOO_LONG)?;
                        return Ok(Some(entry.stat));
                    }
                }
                Cursor::Index(position) => {
                    let Some(recording) = self.storage.record(position).await? else {
                        return Ok(None);
                    };
                    let is_member = match source {
                        Source::Folder(_) => false,
                        Source::Session(name) => recording.session == name,
                        Source::Day(day) => recording.day == day,
                    };
                    if is_member {
                        path.clear();
                        path.push_str(&recording.path).map_err(|_| Error::TooLong)?;
                        return Ok(Some(recording.stat));
                    }
                }
            }
        }
    }
}

/// Returns true if an opened file is the one that was listed.
fn is_same_file(listed: &Stat, opened: &Stat) -> bool {
    let is_version = match (listed.version, opened.version) {
        // A card lists recordings without their epochs, each of which would cost a read.
        (Version::Whole { .. }, Version::Appended { .. }) => {
            (listed.bytes, listed.modified_s) == (opened.bytes, opened.modified_s)
        }
        (listed, opened) => listed == opened,
    };
    is_version && opened.bytes >= listed.bytes
}

/// Sends the head of a response with an archive. Returns true if a body follows.
async fn start_archive<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    head: &Head<'_>,
    archive: &mut Archive<'_>,
    path: &str,
) -> Result<bool, Fault> {
    let (bytes, hash) = (archive.bytes, archive.hash);
    let mut tag = Tag::new();
    write!(tag, "\"t{hash:016x}-{bytes}\"").map_err(|_| Closed)?;
    let is_same = head.fields.if_range.is_none_or(|given| given == tag);
    let selection = match head.fields.range {
        Some(range) if is_same => select(range, bytes),
        _ => Selection::Whole,
    };
    let condition = evaluate(head, Some(&tag), None)?;
    let started = start_range(wire, condition, &tag, selection, bytes).await?;
    let Some(range) = started else {
        return Ok(false);
    };
    archive.range = range;
    wire.text(format_args!(
        "Content-Type: application/x-tar\r\nCache-Control: no-cache\r\n"
    ))
    .await?;
    attachment(wire, archive.folder(path), ".tar").await?;
    let bytes = archive.range.end - archive.range.start;
    wire.body(Length::Known(bytes)).await?;
    Ok(!wire.is_head())
}

impl Archive<'_> {
    fn new(source: Source<'_>) -> Archive<'_> {
        let mut title = Title::new();
        if let Source::Day(day) = source {
            // The longest date fits.
            let _ = write_day(&mut title, day);
        }
        Archive {
            source,
            title,
            bytes: END_BLOCKS * BLOCK_BYTES as u64,
            hash: HASH_START,
            growing: heapless::Vec::new(),
            range: 0..0,
        }
    }

    /// Adds a file in the first pass.
    fn add(&mut self, path: &str, stat: &Stat) -> Result<(), Refused> {
        if let (true, Version::Appended { epoch }) = (stat.is_growing, stat.version) {
            self.growing
                .push(Growing {
                    epoch,
                    bytes: stat.bytes,
                })
                .map_err(|_| TOO_MANY_GROW)?;
        }
        self.bytes += archive_bytes(&self.member(path, stat));
        self.hash = hash_member(self.hash, path, stat);
        Ok(())
    }

    /// Returns the length that a file had in the first pass.
    fn length_of(&self, stat: &Stat) -> u64 {
        let mut growing = self.growing.iter();
        let known = growing.find(|file| stat.version == Version::Appended { epoch: file.epoch });
        known.map_or(stat.bytes, |file| file.bytes)
    }

    fn folder<'a>(&'a self, path: &'a str) -> &'a str {
        match self.source {
            Source::Folder(1) => "card",
            Source::Folder(bytes) => name(path.get(..bytes).unwrap_or(path)),
            Source::Session(name) => name,
            Source::Day(_) => &self.title,
        }
    }

    fn member<'a>(&'a self, path: &'a str, stat: &Stat) -> Member<'a> {
        Member {
            folder: self.folder(path),
            name: name(path),
            bytes: stat.bytes,
            modified_s: stat.modified_s.unwrap_or(0),
        }
    }

    /// Returns the bytes of the block at `at` that are in the range.
    fn part(&self, at: u64) -> Range<usize> {
        let limit = BLOCK_BYTES as u64;
        let inside = |to: u64| to.saturating_sub(at).min(limit) as usize;
        inside(self.range.start)..inside(self.range.end)
    }
}

fn archive_bytes(member: &Member) -> u64 {
    (member.head_blocks() + member.data_blocks()) * BLOCK_BYTES as u64
}

/// Continues a hash with a file.
fn hash_member(hash: u64, path: &str, stat: &Stat) -> u64 {
    fnv(fnv(hash, path.as_bytes()), tag_of(stat).as_bytes())
}

/// Continues an FNV-1a hash; lengths are part of the tag, so no separator is needed.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Writes a date, or `unknown`.
pub(crate) fn write_day(out: &mut impl core::fmt::Write, day: Option<Day>) -> core::fmt::Result {
    match day {
        Some(Day { year, month, day }) => write!(out, "{year:04}-{month:02}-{day:02}"),
        None => out.write_str("unknown"),
    }
}
