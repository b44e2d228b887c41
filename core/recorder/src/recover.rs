//! Finds the end and the totals of an interrupted recording.
//!
//! ```text
//!   1  block 0 ends with a mark of this recording?       no: the file is empty
//!   2  the last block that has its mandatory mark        by binary search, one read per step
//!   3  go back to the block up to which that mark records durability
//!   4  from there block by block, while every mark's checksum matches the data since the previous mark
//!   5  read the totals: text, from the last mark; binary, from each stream's last block and last header
//! ```
//!
//! Blocks of older recordings have another epoch. After the last durable block, a card may have kept some blocks and
//! not others: step 3 goes back from any such block that step 2 finds, and step 4 stops at the first missing one. So
//! the end is never before the last checkpoint, and the file has no holes.
//!
//! Files of version 0.1 have marks without totals; block 0 identifies the version.

use crate::crc32::crc32;
use crate::error::StartError;
use crate::event::Event;
use crate::format::Format;
use crate::format::binary::{self, BlockKind, Head};
use crate::format::header::{self, Summary};
use crate::format::mark::{self, Mark, mark_block};
use crate::format::text;
use crate::limits::{HEADER_BLOCKS, MARK_BLOCKS, MARK_TAIL_BYTES, STREAMS_MAX};
use crate::session::SessionName;
use crate::volume::{
    Blocks, ErrorKind, FileId, FileRecord, RESERVED_MAX, Reserved, ShortText, Volume,
};
use cardiograph_card::{BLOCK_BYTES, Block};
use core::ops::Deref;
use core::slice::from_mut;

/// Mounts a volume and trims every interrupted recording to its actual length. A recorder does this before it
/// begins, and any other program can do it too. `report` receives an [`Event::Recovered`] for each recording,
/// and an [`Event::Removed`] for a removal that was interrupted. If another file has taken a recording's
/// name, the recording gets the next free number, which the event reports.
///
/// # Errors
/// [`StartError`] if the card fails, or its file system cannot be used.
pub async fn recover<B: Blocks, V: Volume<B>>(
    volume: &mut V,
    card: &mut B,
    mut report: impl FnMut(&mut B, Event),
) -> Result<(), StartError<B::Error, V::Error>> {
    volume.mount(card).await.map_err(StartError::Volume)?;
    if let Some(id) = volume.take_removed() {
        report(card, Event::Removed { id });
    }
    for slot in 0..RESERVED_MAX as u8 {
        let Some(file) = volume.reserved(slot) else {
            continue;
        };
        let found = find_end(card, &file).await.map_err(StartError::Card)?;
        let mut record = found.record(&file);
        let closed = close_or_discard(volume, card, slot, record.as_mut()).await;
        closed.map_err(StartError::Volume)?;
        if let Some(record) = record {
            report(card, Event::Recovered { record });
        }
    }
    Ok(())
}

/// Trims the interrupted recording in a slot to its actual length, or discards it if nothing in it is
/// durable. If another file has taken its name, the recording gets the next free number.
pub(crate) async fn close_or_discard<B: Blocks, V: Volume<B>>(
    volume: &mut V,
    card: &mut B,
    slot: u8,
    record: Option<&mut FileRecord>,
) -> Result<(), V::Error> {
    let Some(record) = record else {
        return volume.discard(card, slot).await;
    };
    loop {
        let Err(error) = volume.close(card, slot, record).await else {
            return Ok(());
        };
        let id = &mut record.id;
        let next = volume.next_number(id.prefix, id.extension);
        let is_taken = V::error_kind(&error) == ErrorKind::NameTaken;
        if !is_taken || next <= id.number {
            return Err(error);
        }
        id.number = next;
    }
}

/// Contents of an interrupted file. Files of version 0.1 store no number, session, totals or times: these
/// fields are then `None` and 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Actual length in bytes; 0 if the file is empty.
    pub bytes: u64,
    /// Number of the recording.
    pub number: Option<u32>,
    /// Name of the session.
    pub session: Option<SessionName>,
    /// Complete samples of all streams.
    pub samples: u64,
    /// Gaps of all streams.
    pub gaps: u32,
    /// Samples in gaps.
    pub lost: u64,
    /// Time at which the file began.
    pub first_us: u64,
    /// Time of its last mark.
    pub last_us: u64,
}

impl Recovered {
    /// Returns the record of the file, or `None` if it is empty.
    pub(crate) fn record(&self, file: &Reserved) -> Option<FileRecord> {
        // An earlier recovery may have given it another number, because its own was taken.
        let number = file.id.map(|id| id.number).or(self.number)?;
        let name = self.session.and_then(|name| ShortText::new(name.as_str()));
        (self.bytes > 0).then_some(FileRecord {
            id: FileId {
                prefix: file.prefix,
                extension: file.extension,
                number,
            },
            session: name.unwrap_or(ShortText::EMPTY),
            bytes: self.bytes,
            first_us: self.first_us,
            last_us: self.last_us,
            samples: self.samples,
            gaps: self.gaps,
            lost: self.lost,
            is_recovered: true,
        })
    }
}

/// Returns the end and the totals of an interrupted file.
///
/// # Errors
/// Those of the card.
pub async fn find_end<B: Blocks>(card: &mut B, file: &Reserved) -> Result<Recovered, B::Error> {
    let block = [0; BLOCK_BYTES];
    scan(Buffered { card, block }, file).await
}

/// Reads one block at a time.
#[allow(async_fn_in_trait)]
pub(crate) trait Reader {
    type Error;

    async fn read(&mut self, block: u32) -> Result<(), Self::Error>;
    /// Reads a block; the `blocks` blocks that begin with it will probably be read next.
    async fn read_ahead(&mut self, block: u32, _blocks: u32) -> Result<(), Self::Error> {
        self.read(block).await
    }
    /// Returns the block that was read last.
    fn block(&self) -> impl Deref<Target = Block>;
}

/// A card with a buffer for the block that was read last.
struct Buffered<'a, B> {
    card: &'a mut B,
    block: Block,
}

impl<B: Blocks> Reader for Buffered<'_, B> {
    type Error = B::Error;

    async fn read(&mut self, block: u32) -> Result<(), B::Error> {
        self.card.read(block, from_mut(&mut self.block)).await
    }

    fn block(&self) -> impl Deref<Target = Block> {
        &self.block
    }
}

/// Finds the end and the totals of an interrupted file.
pub(crate) async fn scan<R: Reader>(reader: R, file: &Reserved) -> Result<Recovered, R::Error> {
    let mut scan = Scan {
        reader,
        file,
        kind: Kind::TextV2,
    };
    if file.extent.blocks == 0 {
        return Ok(Recovered::default());
    }
    scan.read(0).await?;
    let Some(kind) = kind_of(&scan.reader.block(), Format::is_binary(file.note)) else {
        return Ok(Recovered::default());
    };
    scan.kind = kind;
    match kind {
        Kind::TextV1 | Kind::TextV2 => scan.text().await,
        Kind::BinaryV1 | Kind::BinaryV2 => scan.binary().await,
    }
}

/// Format and version of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    TextV1,
    TextV2,
    BinaryV1,
    BinaryV2,
}

/// Determines format and version of a file from its block 0.
fn kind_of(block: &Block, is_binary: bool) -> Option<Kind> {
    if !is_binary {
        let is_v2 = mark::read(block).map(|_| Kind::TextV2);
        return is_v2.or_else(|| mark::read_v1(block).map(|_| Kind::TextV1));
    }
    binary::read(block)?;
    let is_v2 = header::read(&block[binary::PAYLOAD_AT..]).is_some();
    Some(match is_v2 {
        true => Kind::BinaryV2,
        false => Kind::BinaryV1,
    })
}

struct Scan<'a, R> {
    reader: R,
    file: &'a Reserved,
    kind: Kind,
}

impl<R: Reader> Scan<'_, R> {
    /// Reads a block of the file.
    async fn read(&mut self, index: u32) -> Result<(), R::Error> {
        let start = self.file.extent.start.saturating_add(index);
        self.reader.read(start).await
    }

    /// Returns the mark of the current block and its checksum, if it belongs to this file and this block
    /// index.
    fn mark(&self, index: u32) -> Option<(Mark, u32)> {
        let block = self.reader.block();
        let found = match self.kind {
            Kind::TextV1 => mark::read_v1(&block),
            Kind::TextV2 => mark::read(&block),
            Kind::BinaryV1 | Kind::BinaryV2 => binary::read(&block).map(|head| {
                let mark = Mark {
                    epoch: head.epoch,
                    index: head.index,
                    durable: head.durable,
                    ..Mark::default()
                };
                (mark, 0)
            }),
        };
        found.filter(|(mark, _)| mark.epoch == self.file.epoch && mark.index == index)
    }

    fn is_binary(&self) -> bool {
        matches!(self.kind, Kind::BinaryV1 | Kind::BinaryV2)
    }

    /// Steps 1 to 3: returns the number of the recording, and the number of blocks known to be durable.
    async fn durable(&mut self) -> Result<Option<(u32, u32)>, R::Error> {
        self.read(0).await?;
        let Some((mark, _)) = self.mark(0) else {
            return Ok(None);
        };
        let blocks = self.file.extent.blocks;
        let (mut low, mut high) = match self.is_binary() {
            true => (1, blocks),
            false => (1, blocks / MARK_BLOCKS + 1),
        };
        let mut durable = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            let index = match self.is_binary() {
                true => middle,
                false => mark_block(middle),
            };
            self.read(index).await?;
            match self.mark(index) {
                Some((mark, _)) => {
                    durable = mark.durable.min(index);
                    low = middle + 1;
                }
                None => high = middle,
            }
        }
        Ok(Some((mark.durable, durable)))
    }

    async fn text(&mut self) -> Result<Recovered, R::Error> {
        let Some((number, durable)) = self.durable().await? else {
            return Ok(Recovered::default());
        };
        // Durable content ends with a mark.
        let (mut end, mut crc) = (durable, 0);
        for index in durable..self.file.extent.blocks {
            self.read(index).await?;
            match self.mark(index) {
                Some((_, sum)) if sum == mark::checksum(crc, &self.reader.block()) => {
                    (end, crc) = (index + 1, 0);
                }
                _ if index - end > 2 * MARK_BLOCKS => break,
                _ => crc = crc32(crc, &*self.reader.block()),
            }
        }
        if end == 0 {
            return Ok(Recovered::default());
        }
        let mut recovered = Recovered::default();
        if self.kind == Kind::TextV2 {
            self.read(end - 1).await?;
            let mark = self.mark(end - 1).map_or(Mark::default(), |(mark, _)| mark);
            recovered = self.totals_of_text(number, end, &mark).await?;
        }
        recovered.bytes = self.without_mark(end).await?;
        Ok(recovered)
    }

    /// Returns totals from the last mark, and times and session from the line that describes the file, which
    /// is complete in block 0 or at the start of block 1.
    async fn totals_of_text(
        &mut self,
        number: u32,
        end: u32,
        mark: &Mark,
    ) -> Result<Recovered, R::Error> {
        let mut about = None;
        for index in 0..end.min(2) {
            if about.is_some() {
                break;
            }
            self.read(index).await?;
            let block = self.reader.block();
            let mut lines = block.split(|byte| *byte == b'\n');
            about = lines.find_map(text::read_about);
        }
        let first_us = about.map_or(0, |about| about.at_us);
        Ok(Recovered {
            bytes: 0,
            number: Some(number),
            session: about.and_then(|about| about.session),
            samples: mark.samples.into(),
            gaps: mark.gaps,
            lost: mark.lost.into(),
            first_us,
            last_us: time_of(first_us, mark.age_ms),
        })
    }

    /// Returns the length without the line of the last mark: scans back over spaces to its `#`, and over the commas
    /// before that.
    async fn without_mark(&mut self, end: u32) -> Result<u64, R::Error> {
        let tail_bytes = match self.kind {
            Kind::TextV1 => mark::TAIL_V1_BYTES,
            _ => MARK_TAIL_BYTES,
        };
        let (mut index, mut is_marked) = (end, false);
        while index > 0 {
            index -= 1;
            self.read(index).await?;
            let block = self.reader.block();
            let line = match index + 1 == end {
                true => &block[..BLOCK_BYTES - tail_bytes],
                false => &block[..],
            };
            for (at, byte) in line.iter().enumerate().rev() {
                match byte {
                    b' ' if !is_marked => (),
                    b'#' if !is_marked => is_marked = true,
                    b',' if is_marked => (),
                    _ => return Ok(u64::from(index) * BLOCK_BYTES as u64 + at as u64 + 1),
                }
            }
        }
        Ok(0)
    }

    async fn binary(&mut self) -> Result<Recovered, R::Error> {
        let Some((number, durable)) = self.durable().await? else {
            return Ok(Recovered::default());
        };
        let mut end = durable;
        while end < self.file.extent.blocks {
            self.read(end).await?;
            if self.mark(end).is_none() {
                break;
            }
            end += 1;
        }
        let mut recovered = Recovered::default();
        if self.kind == Kind::BinaryV2 {
            recovered = self.totals_of_binary(number, end).await?;
        }
        recovered.bytes = u64::from(end) * BLOCK_BYTES as u64;
        Ok(recovered)
    }

    /// Returns totals from the last block and the last header of each stream. Streams repeat their headers,
    /// so the search ends after a bounded number of blocks.
    async fn totals_of_binary(&mut self, number: u32, end: u32) -> Result<Recovered, R::Error> {
        let mut totals = Totals::default();
        self.read(0).await?;
        totals.note_first(&self.reader.block());
        let stop = end.saturating_sub(2 * HEADER_BLOCKS);
        for index in (stop..end).rev() {
            if totals.are_complete() {
                break;
            }
            self.read(index).await?;
            let block = self.reader.block();
            let own = |head: &Head| head.epoch == self.file.epoch && head.index == index;
            if let Some(head) = binary::read(&block).filter(own) {
                totals.note(&head, &block);
            }
        }
        let mut recovered = totals.sum();
        recovered.number = Some(number);
        Ok(recovered)
    }
}

fn time_of(begun_us: u64, age_ms: u32) -> u64 {
    begun_us.saturating_add(u64::from(age_ms) * 1000)
}

/// Totals of the streams of a binary file, collected from its end backwards.
#[derive(Default)]
struct Totals {
    /// Number of streams that share the file.
    streams: u8,
    session: Option<SessionName>,
    of: [OfStream; STREAMS_MAX],
}

#[derive(Clone, Copy, Default)]
struct OfStream {
    begin: Option<Begin>,
    last: Option<Last>,
}

/// Beginning of a stream in the file, from its header.
#[derive(Clone, Copy)]
struct Begin {
    /// Index of its first sample.
    first: u64,
    at_us: u64,
    sample_bytes: u16,
}

/// The last block of a stream.
#[derive(Clone, Copy)]
struct Last {
    /// Index of the sample that begins in this block, or of the first one after the gap that begins in it.
    sample: u64,
    /// Bytes of samples from there on.
    bytes: u16,
    gaps: u16,
    lost: u32,
    age_ms: u32,
}

impl Totals {
    /// Evaluates block 0, which has the header of a stream.
    fn note_first(&mut self, block: &Block) {
        let (Some(head), Some(header)) = (
            binary::read(block),
            header::read(&block[binary::PAYLOAD_AT..]),
        ) else {
            return;
        };
        self.streams = header.streams;
        self.session = header.session;
        if let Some(of) = self.of.get_mut(usize::from(head.stream)) {
            of.begin = Some(Begin::of(&header));
        }
    }

    /// Evaluates a block; later blocks come first.
    fn note(&mut self, head: &Head, block: &Block) {
        let Some(of) = self.of.get_mut(usize::from(head.stream)) else {
            return;
        };
        let payload = &block[binary::PAYLOAD_AT..];
        if head.kind == BlockKind::Header as u8 && of.begin.is_none() {
            of.begin = header::read(payload).map(|header| Begin::of(&header));
        }
        of.last.get_or_insert_with(|| Last::of(head, payload));
    }

    fn are_complete(&self) -> bool {
        let found = self.of.iter();
        let found = found.filter(|of| of.begin.is_some() && of.last.is_some());
        found.count() >= usize::from(self.streams)
    }

    fn sum(&self) -> Recovered {
        let mut sum = Recovered {
            session: self.session,
            first_us: u64::MAX,
            ..Recovered::default()
        };
        for of in &self.of {
            let Some(last) = of.last else {
                continue;
            };
            sum.gaps = sum.gaps.saturating_add(last.gaps.into());
            sum.lost = sum.lost.saturating_add(last.lost.into());
            let Some(begin) = of.begin else {
                continue;
            };
            sum.samples = sum.samples.saturating_add(last.samples(&begin));
            sum.first_us = sum.first_us.min(begin.at_us);
            sum.last_us = sum.last_us.max(time_of(begin.at_us, last.age_ms));
        }
        sum.first_us = sum.first_us.min(sum.last_us);
        sum
    }
}

impl Begin {
    fn of(header: &Summary) -> Begin {
        Begin {
            first: header.first,
            at_us: header.at_us,
            sample_bytes: header.sample_bytes,
        }
    }
}

impl Last {
    fn of(head: &Head, payload: &[u8]) -> Last {
        let is_samples = head.kind == BlockKind::Samples as u8 && head.first != binary::NO_SAMPLE;
        let mut skipped = [0; 8];
        if head.kind == BlockKind::Gap as u8 {
            skipped.copy_from_slice(&payload[8..16]);
        }
        Last {
            sample: head.sample.saturating_add(u64::from_le_bytes(skipped)),
            bytes: match is_samples {
                true => head.used.saturating_sub(head.first),
                false => 0,
            },
            gaps: head.gaps,
            lost: head.lost,
            age_ms: head.age_ms,
        }
    }

    /// Returns the number of complete samples of the stream in the file.
    fn samples(&self, begin: &Begin) -> u64 {
        let whole = self.bytes / begin.sample_bytes.max(1);
        let end = self.sample.saturating_add(whole.into());
        end.saturating_sub(begin.first)
            .saturating_sub(self.lost.into())
    }
}

#[cfg(test)]
mod tests;
