//! Folders, sessions and days as tar: the length is known beforehand, and a download can continue at any byte.

use super::read::{attachment, not_satisfiable};
use crate::head::Head;
use crate::path::{Path, is_hidden, join, name};
use crate::range::{Selection, is_unchanged, select, tag_of};
use crate::status::{Closed, Fault, Status};
use crate::tar::{BLOCK_BYTES, END_BLOCKS, Member};
use crate::wire::{Length, Wire};
use crate::{Day, Error, Instrument, Kind, Position, Server, Stat, Storage, Timer, Version};
use core::fmt::Write as _;
use core::ops::Range;
use embedded_io_async::{Read, Write};

/// Files of an archive.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The files of a folder, without its subfolders.
    Folder(&'a str),
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

/// Maximum number of unfinished files in an archive; others are omitted.
const GROWING_MAX: usize = 4;

/// Result of the first pass.
struct Survey {
    bytes: u64,
    hash: u64,
    /// Epochs and lengths of unfinished files: the second pass sends as much of them, even if they have grown.
    growing: heapless::Vec<(u32, u64), GROWING_MAX>,
}

type Title = heapless::String<40>;

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends an archive.
    pub(crate) async fn archive<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        source: Source<'_>,
    ) -> Result<(), Fault> {
        let mut title = Title::new();
        let survey = self.survey(source, &mut title).await?;
        let (bytes, hash) = (survey.bytes, survey.hash);
        let mut tag = heapless::String::<48>::new();
        write!(tag, "\"t{hash:016x}-{bytes}\"").map_err(|_| Closed)?;
        if is_unchanged(&head.fields, &tag) {
            wire.start(Status::NotModified).await?;
            wire.text(format_args!("ETag: {tag}\r\n")).await?;
            wire.body(Length::None).await?;
            return Ok(wire.finish().await?);
        }
        let is_same = head.fields.if_range.is_none_or(|given| given == tag);
        let range = match head.fields.range {
            Some(range) if is_same => select(range, bytes),
            _ => Selection::Whole,
        };
        let (start, end) = match range {
            Selection::Nothing => return not_satisfiable(wire, bytes).await,
            Selection::Whole => {
                wire.start(Status::Ok).await?;
                (0, bytes)
            }
            Selection::Part(start, end) => {
                wire.start(Status::PartialContent).await?;
                let last = end - 1;
                wire.text(format_args!(
                    "Content-Range: bytes {start}-{last}/{bytes}\r\n"
                ))
                .await?;
                (start, end)
            }
        };
        wire.text(format_args!(
            "Content-Type: application/x-tar\r\nAccept-Ranges: bytes\r\nETag: {tag}\r\nCache-Control: no-cache\r\n"
        ))
        .await?;
        attachment(wire, folder_of(source, &title), ".tar").await?;
        wire.body(Length::Known(end - start)).await?;
        if !wire.is_head() {
            self.send_archive(wire, source, &title, &survey, start..end)
                .await?;
        }
        Ok(wire.finish().await?)
    }

    /// Determines length and members of an archive.
    async fn survey(&self, source: Source<'_>, title: &mut Title) -> Result<Survey, Fault> {
        if let Source::Day(day) = source {
            write_day(title, day).map_err(|_| Closed)?;
        }
        let mut survey = Survey {
            bytes: END_BLOCKS * BLOCK_BYTES as u64,
            hash: 0xCBF2_9CE4_8422_2325,
            growing: heapless::Vec::new(),
        };
        let mut cursor = self.cursor(source).await?;
        let (mut path, mut files) = (Path::new(), 0_u32);
        while let Some(stat) = self.next_file(source, &mut cursor, &mut path).await? {
            if stat.is_growing {
                let Version::Appended { epoch } = stat.version else {
                    continue;
                };
                if survey.growing.push((epoch, stat.bytes)).is_err() {
                    continue;
                }
            }
            let member = member(source, title, &path, &stat);
            survey.bytes += archive_bytes(&member);
            survey.hash = hash(survey.hash, path.as_bytes());
            survey.hash = hash(survey.hash, tag_of(&stat).as_bytes());
            files += 1;
        }
        match (source, files) {
            (Source::Session(_) | Source::Day(_), 0) => Err(Error::NotFound.into()),
            _ => Ok(survey),
        }
    }

    /// Sends a range of an archive.
    async fn send_archive<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        source: Source<'_>,
        title: &Title,
        survey: &Survey,
        range: Range<u64>,
    ) -> Result<(), Fault> {
        let mut cursor = self.cursor(source).await?;
        let (mut path, mut at) = (Path::new(), 0_u64);
        let end_at = survey.bytes - END_BLOCKS * BLOCK_BYTES as u64;
        while let Some(mut stat) = self.next_file(source, &mut cursor, &mut path).await? {
            let known = survey
                .growing
                .iter()
                .find(|(epoch, _)| stat.version == Version::Appended { epoch: *epoch });
            match known {
                Some((_, bytes)) => stat.bytes = *bytes,
                None if stat.is_growing => continue,
                None => (),
            }
            let member = member(source, title, &path, &stat);
            let next_at = at + archive_bytes(&member);
            // A file was added, removed or replaced since the first pass: only an interrupted answer is honest.
            if next_at > end_at {
                return Err(Fault::Closed);
            }
            if next_at > range.start && at < range.end {
                self.send_member(wire, &path, &member, &stat, at, &range)
                    .await?;
            }
            at = next_at;
        }
        if at != end_at {
            return Err(Fault::Closed);
        }
        for index in 0..END_BLOCKS {
            let block_at = at + index * BLOCK_BYTES as u64;
            wire.block(part(block_at, &range), |block| block.fill(0))
                .await?;
        }
        Ok(())
    }

    async fn send_member<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        path: &str,
        member: &Member<'_>,
        stat: &Stat,
        at: u64,
        range: &Range<u64>,
    ) -> Result<(), Fault> {
        for index in 0..member.head_blocks() {
            let block_at = at + index * BLOCK_BYTES as u64;
            wire.block(part(block_at, range), |block| {
                member.head_block(index, block);
            })
            .await?;
        }
        let data_at = at + member.head_blocks() * BLOCK_BYTES as u64;
        let start = range.start.saturating_sub(data_at).min(member.bytes);
        let end = range.end.saturating_sub(data_at).min(member.bytes);
        if start < end {
            let file = self.storage.open(path).await?;
            let now = self.storage.stat(&file);
            if now.version != stat.version || now.bytes < member.bytes {
                return Err(Error::Changed.into());
            }
            self.send(wire, &file, start, end).await?;
        }
        let padded_at = data_at + member.bytes;
        let end_at = data_at + member.data_blocks() * BLOCK_BYTES as u64;
        let zeros = range.end.clamp(padded_at, end_at) - range.start.clamp(padded_at, end_at);
        wire.block(0..zeros as usize, |block| block.fill(0)).await?;
        Ok(())
    }

    async fn cursor(&self, source: Source<'_>) -> Result<Cursor<S::Listing>, Error> {
        Ok(match source {
            Source::Folder(folder) => Cursor::Folder(self.storage.list(folder).await?),
            _ => Cursor::Index(Position::default()),
        })
    }

    /// Returns the next file of an archive, and its path.
    async fn next_file(
        &self,
        source: Source<'_>,
        cursor: &mut Cursor<S::Listing>,
        path: &mut Path,
    ) -> Result<Option<Stat>, Error> {
        loop {
            match cursor {
                Cursor::Folder(listing) => {
                    let Some(entry) = self.storage.next(listing).await? else {
                        return Ok(None);
                    };
                    let Source::Folder(folder) = source else {
                        return Ok(None);
                    };
                    if entry.stat.kind == Kind::File
                        && !is_hidden(entry.name)
                        && let Some(joined) = join(folder, entry.name)
                    {
                        *path = joined;
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

/// Returns the folder in an archive.
fn folder_of<'a>(source: Source<'a>, title: &'a Title) -> &'a str {
    match source {
        Source::Folder("/") => "card",
        Source::Folder(folder) => name(folder),
        Source::Session(name) => name,
        Source::Day(_) => title,
    }
}

fn member<'a>(source: Source<'a>, title: &'a Title, path: &'a str, stat: &Stat) -> Member<'a> {
    Member {
        folder: folder_of(source, title),
        name: name(path),
        bytes: stat.bytes,
        modified_s: stat.modified_s.unwrap_or(0),
    }
}

/// Returns the bytes of a member in an archive.
fn archive_bytes(member: &Member) -> u64 {
    (member.head_blocks() + member.data_blocks()) * BLOCK_BYTES as u64
}

/// Returns the bytes of the block at `at` that are in a range.
fn part(at: u64, range: &Range<u64>) -> Range<usize> {
    let limit = BLOCK_BYTES as u64;
    let inside = |to: u64| to.saturating_sub(at).min(limit) as usize;
    inside(range.start)..inside(range.end)
}

/// Continues an FNV-1a hash; lengths are part of the tag, so that no separator is needed.
fn hash(hash: u64, bytes: &[u8]) -> u64 {
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
