//! Rows of recordings: a binary recording as CSV, text without marks, and slices of time.

use super::decode::{Decoder, Key, Output};
use super::read::{attachment, media_fields};
use crate::path::name;
use crate::recording::binary::BlockHead;
use crate::recording::header::{is_header, value};
use crate::recording::mark::{self, MARK_BLOCKS, Unmarker};
use crate::recording::{BLOCK_BYTES, Block};
use crate::route::{Reading, Slice};
use crate::status::{Fault, Refused, Status};
use crate::wire::{Length, Wire};
use crate::{Error, Instrument, Server, Storage, Timer};
use embedded_io_async::{Read, Write};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Default durability window of a recorder, for files whose recorder is not this one.
const WINDOW_MS: u32 = 1000;
/// Time by which a stall may delay a checkpoint.
const STALL_MS: u32 = 1000;

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends rows of a recording.
    pub(crate) async fn slice<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        path: &str,
        reading: &Reading,
        slice: &Slice,
    ) -> Result<(), Fault> {
        let bytes = self.storage.stat(file).bytes;
        let (mut binary, mut has_zeros) = (None, false);
        if let Some(piece) = self.block(file, 0).await? {
            binary = header_of(&piece);
            has_zeros = piece.contains(&0);
        }
        // Blocks of version 1, and other binary files, contain zeros; text does not.
        if binary.is_none() && has_zeros {
            return Err(NO_ROWS.into());
        }
        let streams = binary.map_or(1, |(_, streams)| streams);
        if slice.stream >= streams {
            return Err(Refused::new(Status::NotFound, "there is no such stream").into());
        }
        let lag_ms = self.lag_ms();
        let to_ms = slice.to_ms.map(|to_ms| to_ms.saturating_add(lag_ms));
        let has_times = slice.from_ms.is_some() || slice.to_ms.is_some();
        let start = match (binary, slice.from_ms) {
            (None, _) if has_times && bytes <= BLOCK => {
                if bytes > 0 && !self.begins_recording(file).await? {
                    return Err(NO_TIMES.into());
                }
                0
            }
            (None, from_ms) if has_times => {
                if self.mark(file, 0).await?.is_none() {
                    return Err(NO_TIMES.into());
                }
                self.text_start(file, from_ms.unwrap_or(0), bytes / BLOCK)
                    .await?
            }
            _ => 0,
        };
        wire.closes |= wire.is_old();
        wire.start(Status::Ok).await?;
        media_fields(wire, "text/csv; charset=utf-8").await?;
        if reading.is_download {
            attachment(wire, name(path), if binary.is_some() { ".csv" } else { "" }).await?;
        }
        wire.body(Length::Unknown).await?;
        if !wire.is_head() {
            match binary {
                Some((epoch, _)) => {
                    let to_ms = to_ms.unwrap_or(u32::MAX);
                    let mut decoder = Decoder::new(slice.stream, epoch, to_ms, Output::Csv);
                    let from_ms = slice.from_ms.unwrap_or(0);
                    self.decode(wire, file, &mut decoder, Key::Age(from_ms))
                        .await?;
                }
                None => {
                    if start > 0 {
                        self.first_lines(wire, file).await?;
                    }
                    self.text(wire, file, start, to_ms).await?;
                }
            }
        }
        Ok(wire.finish().await?)
    }

    /// Returns the time after which a sample is certainly in the file, in ms, unless a durability window was exceeded.
    ///
    /// Marks and blocks have the time when they were written, and rows after them may be older.
    fn lag_ms(&self) -> u32 {
        let window_ms = self
            .instrument
            .status()
            .map_or(0, |status| status.window_ms);
        window_ms.max(WINDOW_MS).saturating_add(STALL_MS)
    }

    /// Sends text without its marks, from a block to the first mark whose age is at least `to_ms`, or to the end.
    async fn text<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        mut index: u64,
        to_ms: Option<u32>,
    ) -> Result<(), Fault> {
        let bytes = self.storage.stat(file).bytes;
        let mut unmarker = Unmarker::default();
        while index * BLOCK < bytes {
            let piece = self.storage.read(file, index * BLOCK, usize::MAX).await?;
            let (blocks, rest) = piece.as_chunks::<BLOCK_BYTES>();
            for block in blocks {
                let unmarked = unmarker.take(block, index);
                index += 1;
                for part in unmarked.before.parts() {
                    wire.bytes(part).await?;
                }
                wire.bytes(unmarked.text).await?;
                let mark = unmarked.mark.filter(|_| to_ms.is_some());
                if mark.is_some_and(|mark| mark.age_ms >= to_ms.unwrap_or(u32::MAX)) {
                    return Ok(());
                }
            }
            if (index * BLOCK).saturating_add(rest.len() as u64) >= bytes {
                for part in unmarker.end().parts() {
                    wire.bytes(part).await?;
                }
                wire.bytes(rest).await?;
                return Ok(());
            }
            if blocks.is_empty() {
                return Err(Error::Changed.into());
            }
        }
        Ok(())
    }

    /// Sends the names of the columns and the line about the file.
    async fn first_lines<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
    ) -> Result<(), Fault> {
        let Some(piece) = self.block(file, 0).await? else {
            return Ok(());
        };
        let lines = piece.split_inclusive(|byte| *byte == b'\n').take(2);
        for line in lines {
            wire.bytes(line).await?;
            if is_about(line) {
                break;
            }
        }
        Ok(())
    }

    /// Returns true if a text begins with the line about a recording. A short one has no marks.
    async fn begins_recording(&self, file: &S::File) -> Result<bool, Error> {
        let piece = self.block(file, 0).await?;
        Ok(piece.is_some_and(|piece| {
            let mut lines = piece.split(|byte| *byte == b'\n').take(2);
            lines.any(is_about)
        }))
    }

    /// Returns the block after the last mark whose age is below `from_ms`.
    async fn text_start(&self, file: &S::File, from_ms: u32, blocks: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, blocks / MARK_BLOCKS);
        while low < high {
            let middle = low + (high - low) / 2;
            let mark = self.mark(file, (middle + 1) * MARK_BLOCKS - 1).await?;
            match mark {
                Some(mark) if mark.age_ms < from_ms => low = middle + 1,
                _ => high = middle,
            }
        }
        let mut start = low * MARK_BLOCKS;
        for index in start..blocks.min(start + MARK_BLOCKS) {
            match self.mark(file, index).await? {
                Some(mark) if mark.age_ms < from_ms => start = index + 1,
                Some(_) => break,
                None => (),
            }
        }
        Ok(start)
    }

    /// Returns the mark at the end of a block.
    pub(crate) async fn mark(
        &self,
        file: &S::File,
        index: u64,
    ) -> Result<Option<mark::Mark>, Error> {
        let piece = self.block(file, index).await?;
        Ok(piece.and_then(|piece| mark::read(first_block(&piece)?, index)))
    }

    /// Reads a block; `None` at the end of the file.
    pub(crate) async fn block(
        &self,
        file: &S::File,
        index: u64,
    ) -> Result<Option<S::Bytes<'_>>, Error> {
        let piece = self.storage.read(file, index * BLOCK, BLOCK_BYTES).await?;
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

/// Returns the epoch and the number of streams of a binary recording from its first block.
fn header_of(piece: &[u8]) -> Option<(u32, u8)> {
    let block = first_block(piece)?;
    let head = BlockHead::of(block, 0)?;
    let text = head.payload(block);
    let streams = value(text, "streams").and_then(|streams| streams.parse().ok());
    is_header(text).then_some((head.epoch, streams.unwrap_or(1)))
}

/// Returns true for the line about a file.
pub(crate) fn is_about(line: &[u8]) -> bool {
    note_of(line).is_some_and(|note| note.starts_with(b"#file number="))
}

/// Returns the text of a note, if the line is one.
pub(crate) fn note_of(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().position(|byte| *byte != b',')?;
    let note = &line[at..];
    let note = note.strip_prefix(b"\"").unwrap_or(note);
    note.starts_with(b"#").then_some(note)
}

/// Returns the block at the beginning of a piece.
pub(crate) fn first_block(piece: &[u8]) -> Option<&Block> {
    piece.first_chunk()
}

const NO_ROWS: Refused = Refused::new(
    Status::Conflict,
    "the file is neither text nor a binary recording of version 2; download it, and convert it with `cardiograph export`",
);

const NO_TIMES: Refused = Refused::new(
    Status::Conflict,
    "the file has no times; request it without from and to",
);
