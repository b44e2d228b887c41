//! Decodes binary recordings, with memory for only one value of a sample.
//!
//! A row is written to the output buffer value by value. A sample that continues in the next block leaves the
//! beginning of its row there; if that block is missing, the row is dropped.

use super::live::lost;
use super::slice::first_block;
use crate::recording::binary::{BlockHead, Content, Found, Gap, Joiner};
use crate::recording::header::{Columns, value};
use crate::recording::{BLOCK_BYTES, Block};
use crate::status::{Closed, Fault};
use crate::wire::{Line, Wire};
use crate::{Error, Instrument, Server, Storage, Timer};
use core::fmt::Write as _;
use embedded_io_async::{Read, Write};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Samples in one event.
pub(crate) const BATCH_ROWS: u8 = 64;

/// Purpose of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// CSV with names and notes.
    Csv,
    /// Events with the samples from this number on.
    Events { next: u64 },
}

/// Key of a search in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Age of the file in ms.
    Age(u32),
    /// Number of a sample.
    Sample(u64),
}

impl Key {
    fn is_of(self, head: &BlockHead, stream: u8) -> bool {
        matches!(self, Key::Age(_)) || head.stream == stream
    }

    fn is_before(self, head: &BlockHead) -> bool {
        match self {
            Key::Age(ms) => head.age_ms < ms,
            Key::Sample(number) => head.sample <= number,
        }
    }
}

/// Decoder of one stream of a binary recording.
pub(crate) struct Decoder {
    pub(crate) output: Output,
    stream: u8,
    epoch: u32,
    columns: Columns,
    /// First block of the header.
    header_at: u32,
    joiner: Joiner,
    /// First and last of the damaged blocks that have not been reported.
    damaged: Option<(u32, u32)>,
    /// Age at which the rows end, in ms.
    to_ms: u32,
    /// Row or line of a header that continues in the next block.
    line: Option<Line>,
    /// Rows in the current event.
    rows: u8,
}

/// Content of a block for a decoder.
enum Step {
    /// Nothing.
    Skip,
    /// Samples or a gap of another stream.
    Foreign,
    /// The slice ends before this block.
    End,
    /// A part of the header.
    Header,
    /// Samples; the first value is at this offset of the payload.
    Samples(usize),
    Gap(Gap),
}

impl Decoder {
    pub(crate) fn new(stream: u8, epoch: u32, to_ms: u32, output: Output) -> Decoder {
        Decoder {
            output,
            stream,
            epoch,
            columns: Columns::default(),
            header_at: 0,
            joiner: Joiner::default(),
            damaged: None,
            to_ms,
            line: None,
            rows: 0,
        }
    }

    fn omit(&mut self, index: u64) -> Step {
        let index = index as u32;
        let first = self.damaged.map_or(index, |(first, _)| first);
        self.damaged = Some((first, index));
        self.joiner.interrupt();
        if self.columns.is_begun() {
            self.columns = Columns::default();
        }
        Step::Skip
    }

    fn step(&mut self, head: Option<&BlockHead>, block: &Block, index: u64) -> Step {
        let Some(head) = head.filter(|head| head.epoch == self.epoch) else {
            return self.omit(index);
        };
        if head.age_ms > self.to_ms {
            return Step::End;
        }
        if head.stream != self.stream {
            return match head.content {
                Content::Header => Step::Skip,
                _ => Step::Foreign,
            };
        }
        match (head.content, self.columns.is_whole()) {
            (Content::Header, true) => Step::Skip,
            (Content::Header, false) => {
                if head.first == 0 {
                    self.columns = Columns::default();
                    self.header_at = index as u32;
                }
                Step::Header
            }
            (_, false) => self.omit(index),
            (Content::Samples, true) => {
                match self.joiner.begin(head, self.columns.sample_bytes.into()) {
                    Some(at) => Step::Samples(at),
                    None => self.omit(index),
                }
            }
            (Content::Gap, true) => match Gap::of(head.payload(block)) {
                Some(gap) => {
                    self.joiner.restart();
                    Step::Gap(gap)
                }
                None => self.omit(index),
            },
        }
    }
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Decodes a binary recording from its header on, and sends the samples from `key` on.
    pub(crate) async fn decode<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        decoder: &mut Decoder,
        key: Key,
    ) -> Result<(), Fault> {
        let blocks_max = self.storage.stat(file).bytes / BLOCK;
        let mut index = 0;
        while index < blocks_max && !decoder.columns.is_whole() {
            index = self.decode_piece(wire, file, decoder, index).await?;
        }
        if decoder.columns.is_whole() {
            decoder.joiner.restart();
            self.about(wire, file, decoder).await?;
        }
        if key != Key::Age(0) {
            let found = self.find(file, decoder, key, index, blocks_max).await?;
            if found > index {
                decoder.joiner.interrupt();
                decoder.damaged = None;
                index = found;
            }
        }
        while index < blocks_max {
            index = self.decode_piece(wire, file, decoder, index).await?;
        }
        if index == blocks_max && !self.storage.stat(file).bytes.is_multiple_of(BLOCK) {
            decoder.omit(index);
        }
        end_parts(wire, decoder).await?;
        report_damage(wire, decoder).await?;
        Ok(())
    }

    /// Decodes the blocks that the storage reads at once, or the header if it ends in them. Returns the next block.
    async fn decode_piece<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        decoder: &mut Decoder,
        mut index: u64,
    ) -> Result<u64, Fault> {
        let piece = self.storage.read(file, index * BLOCK, usize::MAX).await?;
        let (blocks, _) = piece.as_chunks::<BLOCK_BYTES>();
        if blocks.is_empty() {
            return Err(Error::Changed.into());
        }
        let had_columns = decoder.columns.is_whole();
        for block in blocks {
            let head = BlockHead::of(block, index);
            let step = decoder.step(head.as_ref(), block, index);
            if !decoder.joiner.is_begun() && !matches!(step, Step::Header) {
                drop_line(wire, decoder);
            }
            let payload = head.as_ref().map_or(&[][..], |head| head.payload(block));
            match step {
                Step::Skip => (),
                // A row that continues later is still in the buffer; damage before it was reported.
                Step::Foreign => report_damage(wire, decoder).await?,
                Step::End => {
                    report_damage(wire, decoder).await?;
                    return Ok(u64::MAX);
                }
                Step::Header => header(wire, decoder, payload).await?,
                Step::Samples(at) => {
                    report_damage(wire, decoder).await?;
                    report_missing(wire, decoder).await?;
                    samples(wire, decoder, payload, at).await?;
                }
                Step::Gap(gap) => {
                    report_damage(wire, decoder).await?;
                    self::gap(wire, decoder, &gap).await?;
                }
            }
            index += 1;
            if decoder.columns.is_whole() != had_columns {
                break;
            }
        }
        Ok(index)
    }

    /// Returns the first block from which on a search key is reached.
    async fn find(
        &self,
        file: &S::File,
        decoder: &Decoder,
        key: Key,
        mut low: u64,
        mut high: u64,
    ) -> Result<u64, Error> {
        while low < high {
            let middle = low + (high - low) / 2;
            // Damaged blocks, and those of other streams, have no key to compare.
            let mut probe = middle;
            let is_before = loop {
                if probe == high {
                    break false;
                }
                let piece = self.block(file, probe).await?;
                let head = piece.and_then(|piece| BlockHead::of(first_block(&piece)?, probe));
                match head.filter(|head| head.epoch == decoder.epoch) {
                    Some(head) if key.is_of(&head, decoder.stream) => break key.is_before(&head),
                    _ => probe += 1,
                }
            };
            match is_before {
                true => low = probe + 1,
                false => high = middle,
            }
        }
        // A sample begins in the last block whose first sample number does not exceed its own.
        Ok(match key {
            Key::Age(_) => low,
            Key::Sample(_) => low.saturating_sub(1),
        })
    }

    /// Writes the end of the line with the names, and the line about the file.
    async fn about<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        decoder: &Decoder,
    ) -> Result<(), Fault> {
        if decoder.output != Output::Csv {
            return Ok(());
        }
        let piece = self.block(file, decoder.header_at.into()).await?;
        let block = piece.as_ref().and_then(|piece| first_block(piece));
        let head = block.and_then(|block| BlockHead::of(block, decoder.header_at.into()));
        let (Some(block), Some(head)) = (block, head) else {
            return Err(Error::Changed.into());
        };
        let text = head.payload(block);
        wire.bytes(b"note\r\n").await?;
        commas(wire, decoder).await?;
        // A comma within a field needs quotes.
        let settings = value(text, "settings").unwrap_or("");
        let quote = if settings.contains(',') { "\"" } else { "" };
        for (prefix, key) in [
            ("#file number=", "number"),
            (" first=", "first"),
            (" at_us=", "at_us"),
            (" session=", "session"),
            (" settings=", "settings"),
        ] {
            let Some(value) = value(text, key).filter(|value| !value.is_empty()) else {
                continue;
            };
            let quote = if key == "number" { quote } else { "" };
            wire.text(format_args!("{quote}{prefix}{value}")).await?;
        }
        Ok(wire.text(format_args!("{quote}\r\n")).await?)
    }
}

/// Takes a part of a header, and writes the names of columns in it.
async fn header<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
    mut text: &[u8],
) -> Result<(), Fault> {
    while !text.is_empty() && !decoder.columns.is_whole() {
        let line = match decoder.line.take() {
            Some(line) => line,
            None => wire.begin_line(format_args!("")).await?,
        };
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
            wire.extend_line(text);
            decoder.line = Some(line);
            return Ok(());
        };
        wire.extend_line(&text[..end]);
        text = &text[end + 1..];
        let name = decoder.columns.take(wire.line_text(&line));
        match name.filter(|_| decoder.output == Output::Csv) {
            Some(bytes) => {
                wire.truncate_line(&line, bytes);
                wire.bytes(b",").await?;
            }
            None => wire.drop_line(&line),
        }
        if decoder.columns.is_bad() {
            return Err(Error::CardFailed.into());
        }
    }
    Ok(())
}

/// Writes the samples of a block.
async fn samples<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
    payload: &[u8],
    mut at: usize,
) -> Result<(), Closed> {
    while at < payload.len() {
        let number = decoder.joiner.number;
        let line = match decoder.line.take() {
            Some(line) => line,
            None if decoder.output == Output::Csv => wire.begin_line(format_args!("")).await?,
            None => wire.begin_line(format_args!("data: {number},")).await?,
        };
        while let Some(kind) = decoder
            .columns
            .kinds
            .get(usize::from(decoder.joiner.column))
            .copied()
        {
            let is_first = decoder.joiner.column == 0;
            match decoder.joiner.value(payload, &mut at, kind.bytes()) {
                Found::End => {
                    decoder.line = Some(line);
                    return Ok(());
                }
                Found::Value(bytes) => wire.extend_line_with(|room| {
                    if !is_first {
                        room.write_str(",")?;
                    }
                    kind.write(bytes, room)
                }),
            }
        }
        decoder.joiner.end_sample();
        end_row(wire, decoder, line, number).await?;
    }
    Ok(())
}

/// Sends an event about samples that are missing before those in a block.
async fn report_missing<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
) -> Result<(), Closed> {
    let number = decoder.joiner.number;
    match decoder.output {
        Output::Events { next } if number > next && decoder.line.is_none() => {
            end_event(wire, next, &mut decoder.rows).await?;
            decoder.output = Output::Events { next: number };
            lost(wire, next, number, "damaged").await
        }
        _ => Ok(()),
    }
}

async fn end_row<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
    line: Line,
    number: u64,
) -> Result<(), Closed> {
    match decoder.output {
        Output::Csv => wire.bytes(b"\r\n").await,
        Output::Events { next } if number < next => {
            wire.drop_line(&line);
            Ok(())
        }
        Output::Events { .. } => {
            wire.bytes(b"\n").await?;
            let next = number.saturating_add(1);
            decoder.output = Output::Events { next };
            decoder.rows += 1;
            match decoder.rows >= BATCH_ROWS {
                true => end_event(wire, next, &mut decoder.rows).await,
                false => Ok(()),
            }
        }
    }
}

/// Ends an event whose last row is the one before `next`.
pub(crate) async fn end_event<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    next: u64,
    rows: &mut u8,
) -> Result<(), Closed> {
    if *rows == 0 {
        return Ok(());
    }
    *rows = 0;
    wire.text(format_args!("id: {}\n\n", next - 1)).await
}

/// Drops a row that is not complete.
fn drop_line<C: Read + Write, T: Timer>(wire: &mut Wire<'_, C, T>, decoder: &mut Decoder) {
    if let Some(line) = decoder.line.take() {
        wire.drop_line(&line);
    }
}

/// Drops a row that is not complete, and ends an event.
async fn end_parts<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
) -> Result<(), Closed> {
    drop_line(wire, decoder);
    match decoder.output {
        Output::Events { next } => end_event(wire, next, &mut decoder.rows).await,
        Output::Csv => Ok(()),
    }
}

async fn gap<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
    gap: &Gap,
) -> Result<(), Closed> {
    let Gap {
        first,
        count,
        at_us,
        last_us,
        cause,
    } = gap;
    if let Output::Events { next } = decoder.output {
        let after = first.saturating_add(*count);
        if after > next {
            end_event(wire, next, &mut decoder.rows).await?;
            decoder.output = Output::Events { next: after };
            return lost(wire, next, after, cause).await;
        }
        return Ok(());
    }
    commas(wire, decoder).await?;
    wire.text(format_args!(
        "#gap first={first} count={count} at_us={at_us} last_us={last_us} cause={cause}\r\n"
    ))
    .await
}

/// Writes a note about damaged blocks.
async fn report_damage<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &mut Decoder,
) -> Result<(), Closed> {
    match decoder.damaged.take() {
        Some((first, last)) if decoder.output == Output::Csv && decoder.columns.is_whole() => {
            commas(wire, decoder).await?;
            wire.text(format_args!("#damaged blocks={first}..{last}\r\n"))
                .await
        }
        _ => Ok(()),
    }
}

/// Writes the commas ahead of a note.
async fn commas<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    decoder: &Decoder,
) -> Result<(), Closed> {
    const COMMAS: &[u8; 32] = &[b','; 32];
    wire.bytes(&COMMAS[..decoder.columns.kinds.len()]).await
}
