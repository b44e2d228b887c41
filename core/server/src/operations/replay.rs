//! Samples that are no longer in memory, from the file that contains them.

use super::decode::{BATCH_ROWS, Decoder, Key, Output, end_event};
use super::live::lost;
use super::slice::{first_block, is_about, note_of};
use crate::recording::BLOCK_BYTES;
use crate::recording::binary::BlockHead;
use crate::recording::header::is_header;
use crate::recording::mark::{MARK_BLOCKS, Unmarker};
use crate::status::{Closed, Fault};
use crate::wire::{Line, Wire};
use crate::{Instrument, Server, Storage, Timer};
use embedded_io_async::{Read, Write};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Events from a recording of text.
struct Rows {
    /// Number of the row that is being read.
    number: u64,
    /// Number of the first sample to send.
    next: u64,
    /// The line about the file was read; the lines before it are not samples.
    is_headed: bool,
    /// Line that is being read.
    line: Option<Line>,
    /// Rows in the current event.
    rows: u8,
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends the durable samples of a file, from number `next` on. Returns the number of the sample after them.
    pub(crate) async fn replay<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        path: &str,
        (stream, first): (u8, u64),
        next: u64,
    ) -> Result<u64, Fault> {
        let file = self.storage.open(path).await?;
        let epoch = self.block(&file, 0).await?.and_then(|piece| {
            let block = first_block(&piece)?;
            let head = BlockHead::of(block, 0)?;
            is_header(head.payload(block)).then_some(head.epoch)
        });
        let Some(epoch) = epoch else {
            return self.replay_text(wire, &file, first, next).await;
        };
        let output = Output::Events { next };
        let mut decoder = Decoder::new(stream, epoch, u32::MAX, output);
        self.decode(wire, &file, &mut decoder, Key::Sample(next))
            .await?;
        Ok(match decoder.output {
            Output::Events { next } => next,
            Output::Csv => next,
        })
    }

    async fn replay_text<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        first: u64,
        next: u64,
    ) -> Result<u64, Fault> {
        let bytes = self.storage.stat(file).bytes;
        let (start, number) = self.row_start(file, first, next, bytes / BLOCK).await?;
        let (mut index, mut rows) = (start, Rows::new(number, next, start > 0));
        let mut unmarker = Unmarker::default();
        while index * BLOCK < bytes {
            let piece = self.storage.read(file, index * BLOCK, usize::MAX).await?;
            let (blocks, rest) = piece.as_chunks::<BLOCK_BYTES>();
            for block in blocks {
                let unmarked = unmarker.take(block, index);
                index += 1;
                for part in unmarked.before.parts() {
                    rows.take(wire, part).await?;
                }
                rows.take(wire, unmarked.text).await?;
            }
            if blocks.is_empty() || index * BLOCK + rest.len() as u64 >= bytes {
                for part in unmarker.end().parts() {
                    rows.take(wire, part).await?;
                }
                rows.take(wire, rest).await?;
                break;
            }
        }
        rows.end(wire).await?;
        Ok(rows.next)
    }

    /// Returns a block that begins with a row whose number is `next` or less, and that number.
    async fn row_start(
        &self,
        file: &S::File,
        first: u64,
        next: u64,
        blocks: u64,
    ) -> Result<(u64, u64), Fault> {
        let (mut low, mut high, mut number) = (0, blocks / MARK_BLOCKS, first);
        while low < high {
            let middle = low + (high - low) / 2;
            let mark = self.mark(file, (middle + 1) * MARK_BLOCKS - 1).await?;
            let after = mark
                .map(|mark| first.saturating_add(u64::from(mark.samples) + u64::from(mark.lost)));
            match after {
                Some(after) if after <= next => (low, number) = (middle + 1, after),
                _ => high = middle,
            }
        }
        Ok((low * MARK_BLOCKS, number))
    }
}

impl Rows {
    fn new(number: u64, next: u64, is_headed: bool) -> Rows {
        Rows {
            number,
            next,
            is_headed,
            line: None,
            rows: 0,
        }
    }

    /// Takes text, and sends the rows that are complete.
    async fn take<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
        mut text: &[u8],
    ) -> Result<(), Closed> {
        while !text.is_empty() {
            let line = match self.line.take() {
                Some(line) => line,
                None => {
                    wire.begin_line(format_args!("data: {},", self.number))
                        .await?
                }
            };
            let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
                wire.extend_line(text);
                self.line = Some(line);
                return Ok(());
            };
            wire.extend_line(&text[..end]);
            text = &text[end + 1..];
            self.end_line(wire, line).await?;
        }
        Ok(())
    }

    async fn end_line<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
        line: Line,
    ) -> Result<(), Closed> {
        let text = wire.line_text(&line);
        let bytes = text.len() - usize::from(text.ends_with(b"\r"));
        let note = note_of(text);
        let (is_about, gap) = (is_about(text), note.and_then(gap_of));
        let is_row = self.is_headed && note.is_none();
        self.is_headed |= is_about;
        let is_sent = is_row && self.number >= self.next;
        match is_sent {
            true => {
                wire.truncate_line(&line, bytes);
                wire.bytes(b"\n").await?;
            }
            false => wire.drop_line(&line),
        }
        if is_row {
            self.number = self.number.saturating_add(1);
        }
        if is_sent {
            (self.next, self.rows) = (self.number, self.rows + 1);
        }
        if self.rows >= BATCH_ROWS {
            self.end(wire).await?;
        }
        if let Some((first, count)) = gap {
            self.end(wire).await?;
            self.number = first.saturating_add(count);
            if self.number > self.next {
                lost(wire, first.max(self.next), self.number, "gap").await?;
                self.next = self.number;
            }
        }
        Ok(())
    }

    /// Ends an event, and drops a line that is not complete.
    async fn end<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<(), Closed> {
        if let Some(line) = self.line.take() {
            wire.drop_line(&line);
        }
        end_event(wire, self.next, &mut self.rows).await
    }
}

/// Returns first sample and number of samples of a gap.
fn gap_of(note: &[u8]) -> Option<(u64, u64)> {
    let fields = str::from_utf8(note).ok()?.strip_prefix("#gap ")?;
    let number = |name: &str| {
        let field = fields.split(' ').find_map(|field| field.strip_prefix(name));
        field?.parse().ok()
    };
    Some((number("first=")?, number("count=")?))
}
