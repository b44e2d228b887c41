//! Turns what waits in a ring into blocks of a file.
//!
//! ```text
//!              ┌──────────── header, gap, sample ────────────┐
//!              v                                             │
//!   start ── line ── block full ──> Full ── pushed: next ────┤
//!              │                                             │
//!              └── a mark is due, and no line is unfinished ─┘
//!                  pad, mark: Full
//! ```
//!
//! A line may go on in the next block; a mark has to wait for its end. In a block with a mark lines begin
//! only while the longest one still leaves room for it.

use super::binary::{self, BlockKind, Head, PAYLOAD_AT, PAYLOAD_BYTES};
use super::mark::is_mark_block;
use super::mark::{self, Mark};
use super::{Format, text};
use crate::crc32::crc32;
use crate::gap::Gap;
use crate::limits::{LINE_BYTES_MAX, MARK_TAIL_BYTES, SAMPLE_BYTES_MAX};
use crate::ring::Source;
use cardiograph_card::{BLOCK_BYTES, Block};

/// Makes the blocks of one stream.
pub(crate) struct Encoder {
    format: Format,
    epoch: u32,
    /// The recording's number: the mark of block 0 holds it.
    number: u32,
    /// The block's number in its file.
    index: u32,
    /// Blocks of the file that are durable.
    durable: u32,
    block: Block,
    /// Bytes of the block, or of its payload, that are filled.
    len: usize,
    /// Of the blocks since the last mark.
    crc: u32,
    line: Line,
    /// Bytes of the line, or of the sample, that are in blocks already.
    written: usize,
    /// The file's last block: no line may go on behind it.
    last_index: u32,
    /// Blocks from mark to mark, on top of those that there have to be.
    step: u32,
    /// The block waits to be pushed.
    is_full: bool,
    /// Bytes of the file up to the end of its last line that is not a mark.
    content_bytes: u64,
    /// Samples of gaps written down since the last time all was durable.
    lost: u64,
    /// A gap that is to be written down before anything else.
    gap: Option<Gap>,
    /// A gap from the ring that nobody was told of yet. The next one stays in the ring until then.
    news: Option<Gap>,
    /// Index of the first sample that is not in a block as a whole.
    next_sample: u64,
    /// Of a binary block: where the first sample begins, and which.
    first: Option<(u16, u64)>,
    /// A mark's line was begun, and goes on in this block.
    is_marking: bool,
    /// The block before this one ends with a mark, or there is none.
    is_marked: bool,
}

/// The line that is being written, or will be next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Header,
    Gap,
    Sample,
}

/// What a block was filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// It is full.
    Full,
    /// There is nothing more to put into it.
    Dry,
}

impl Encoder {
    pub(crate) fn new(format: Format) -> Encoder {
        Encoder {
            format,
            epoch: 0,
            number: 0,
            index: 0,
            durable: 0,
            block: [0; BLOCK_BYTES],
            len: 0,
            crc: 0,
            line: Line::Header,
            written: 0,
            last_index: u32::MAX,
            step: 0,
            is_full: false,
            content_bytes: 0,
            lost: 0,
            gap: None,
            news: None,
            next_sample: 0,
            first: None,
            is_marking: false,
            is_marked: true,
        }
    }

    /// Begins a file of so many blocks, for the recording of this number.
    pub(crate) fn start(&mut self, epoch: u32, blocks: u32, number: u32) {
        *self = Encoder {
            epoch,
            number,
            last_index: blocks - 1,
            lost: self.lost,
            gap: self.gap,
            news: self.news.take(),
            next_sample: self.next_sample,
            ..Encoder::new(self.format)
        };
    }

    /// The block that is full.
    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    /// Number in its file of the block that is being filled.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Blocks of the file that are known to be durable.
    pub(crate) fn durable(&self) -> u32 {
        self.durable
    }

    pub(crate) fn set_durable(&mut self) {
        self.durable = self.index;
    }

    /// Index of the first sample that is not in a block as a whole.
    pub(crate) fn next_sample(&self) -> u64 {
        self.next_sample
    }

    /// Whether all that was taken is in blocks before this one, and the last of them ends with a mark.
    pub(crate) fn is_marked(&self) -> bool {
        self.len == 0 && self.is_marked && self.is_between_lines()
    }

    fn is_between_lines(&self) -> bool {
        self.written == 0 && !self.is_marking
    }

    /// Whether the block waits to be pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Bytes of the file up to the end of its last line that is not a mark, or of its blocks if binary.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Takes the number of samples whose gaps were written down since it was asked last.
    pub(crate) fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }

    /// The gap that is not written down yet.
    pub(crate) fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// A gap from the ring, each once.
    pub(crate) fn take_news(&mut self) -> Option<Gap> {
        self.news.take()
    }

    /// The next line will say that these samples are missing.
    pub(crate) fn note_gap(&mut self, gap: Gap) {
        self.gap = Some(gap);
    }

    /// Fills the block with what waits in the ring, at most `limit` bytes of it: those of whole samples.
    pub(crate) fn fill(&mut self, source: &mut Source, mut limit: usize) -> Filled {
        if self.is_full {
            return Filled::Full;
        }
        match self.format {
            Format::Binary(_) => self.fill_binary(source, &mut limit),
            _ => self.fill_text(source, &mut limit),
        }
    }

    /// Ends the block with a mark, and the line that is unfinished before. Full: there is a block to be
    /// pushed, and this to be called again. Dry: all is marked.
    pub(crate) fn mark(&mut self, source: &mut Source) -> Filled {
        if self.is_full {
            return Filled::Full;
        }
        if self.is_marked() {
            return Filled::Dry;
        }
        let mut limit = usize::MAX;
        if let Format::Binary(schema) = self.format {
            // What the ring holds of it only in part will not come.
            while self.written > 0
                && self.len < PAYLOAD_BYTES
                && self.write_sample(source, schema.sample_bytes(), &mut limit)
            {}
            self.seal_binary(BlockKind::Samples);
            return Filled::Full;
        }
        while self.written > 0 && !self.is_marking {
            match self.write_line(source, &mut limit) {
                Wrote::BlockFull => return Filled::Full,
                // A sample without a line's end gets one.
                Wrote::Nothing => {
                    self.block[self.len] = b'\n';
                    self.len += 1;
                    self.end_line();
                    if self.wrote() == Wrote::BlockFull {
                        return Filled::Full;
                    }
                }
                Wrote::Line | Wrote::NoRoom => (),
            }
        }
        self.write_mark();
        Filled::Full
    }

    /// The block was pushed: the next one begins.
    pub(crate) fn advance(&mut self) {
        if let Format::Binary(_) = self.format {
            self.is_marked = true;
        } else if self.is_marked {
            self.crc = 0;
        } else {
            self.crc = crc32(self.crc, &self.block);
        }
        self.index += 1;
        self.len = 0;
        self.is_full = false;
        self.first = None;
    }

    /// Leaves out the rest of the sample that is written in part; returns the index of the one after it.
    pub(crate) fn abandon(&mut self, source: &mut Source) -> u64 {
        if self.written > 0 && !self.is_marking && self.line == Line::Sample {
            let mut sample = [0; LINE_BYTES_MAX];
            let rest = match self.format {
                Format::Lines { .. } => line_end(source, 0, &mut sample),
                Format::Csv(schema) => schema.sample_bytes(),
                Format::Binary(schema) => schema.sample_bytes() - self.written,
            };
            source.release(rest);
            self.next_sample += 1;
        }
        self.written = 0;
        self.is_marking = false;
        self.is_full = false;
        self.len = 0;
        self.line = Line::Header;
        self.lost = 0;
        self.next_sample
    }

    fn fill_text(&mut self, source: &mut Source, limit: &mut usize) -> Filled {
        loop {
            if self.is_marking {
                self.write_mark();
                return Filled::Full;
            }
            match self.write_line(source, limit) {
                Wrote::Line => (),
                Wrote::BlockFull => return Filled::Full,
                Wrote::Nothing => return Filled::Dry,
                Wrote::NoRoom => self.write_mark(),
            }
            if self.is_full {
                return Filled::Full;
            }
        }
    }

    /// Whether this block has to end with a mark, so that no line goes on behind it.
    fn is_mark_block(&self) -> bool {
        is_mark_block(self.index)
            || self.index == self.last_index
            || (self.step > 0 && (self.index + 1).is_multiple_of(self.step))
    }

    /// Every so many blocks one ends with a mark, a power of two; 0 for no more than there have to be.
    pub(crate) fn set_step(&mut self, blocks: u32) {
        self.step = blocks;
    }

    /// Whether the block before this one ends with a mark, and all samples that are in blocks as a whole
    /// are in those before.
    pub(crate) fn is_behind_mark(&self) -> bool {
        let is_split = matches!(self.format, Format::Binary(_));
        let is_between = is_split || self.written == 0;
        self.len == 0 && self.is_marked && !self.is_marking && is_between && self.gap.is_none()
    }

    fn mark_line_bytes(&self) -> usize {
        text::indent(&self.format) + 1 + MARK_TAIL_BYTES
    }

    /// The line with the mark, or as much of it as the block holds.
    fn write_mark(&mut self) {
        let indent = text::indent(&self.format);
        // A line that began in the block before goes on with blanks: `written` counts its first bytes.
        let begun = if self.is_marking { self.written } else { 0 };
        let room = &mut self.block[self.len..];
        for (at, byte) in (begun..).zip(room.iter_mut()) {
            *byte = match at.cmp(&indent) {
                core::cmp::Ordering::Less => b',',
                core::cmp::Ordering::Equal => b'#',
                core::cmp::Ordering::Greater => b' ',
            };
        }
        let count = room.len();
        self.len = BLOCK_BYTES;
        self.is_full = true;
        self.is_marked = begun + count >= indent + 1 + MARK_TAIL_BYTES && count >= MARK_TAIL_BYTES;
        self.is_marking = !self.is_marked;
        self.written = if self.is_marked { 0 } else { begun + count };
        if self.is_marked {
            let mark = self.mark_of_block();
            mark::write(&mut self.block, mark, self.crc);
        }
    }

    fn mark_of_block(&self) -> Mark {
        Mark {
            epoch: self.epoch,
            index: self.index,
            durable: match self.index {
                0 => self.number,
                _ => self.durable,
            },
        }
    }

    /// Writes the line that is due, or goes on with the one that was begun.
    fn write_line(&mut self, source: &mut Source, limit: &mut usize) -> Wrote {
        if self.is_bulk() && self.copy_lines(source, limit) {
            return self.wrote();
        }
        let mut line = [0; LINE_BYTES_MAX];
        let Some((len, sample)) = self.line_of(source, *limit, &mut line) else {
            return Wrote::Nothing;
        };
        let content_max = BLOCK_BYTES - self.mark_line_bytes();
        if self.is_mark_block() && self.written == 0 && self.len > 0 && self.len + len > content_max
        {
            return Wrote::NoRoom;
        }
        let left = &line[self.written_in(len)..len];
        let room = &mut self.block[self.len..];
        let count = left.len().min(room.len());
        room[..count].copy_from_slice(&left[..count]);
        self.len += count;
        self.is_marked = false;
        self.written += count;
        if let (Line::Sample, Format::Lines { .. }) = (self.line, self.format) {
            source.release(count);
            *limit = limit.saturating_sub(count);
        }
        // What was left of a line is all of it, unless the limit is within it.
        let is_raw = matches!(self.format, Format::Lines { .. }) && self.line == Line::Sample;
        let is_whole = !is_raw || left.ends_with(b"\n");
        if count == left.len() && is_whole {
            if let (Line::Sample, Format::Csv(_)) = (self.line, self.format) {
                source.release(sample);
                *limit = limit.saturating_sub(sample);
            }
            self.end_line();
        }
        self.wrote()
    }

    fn wrote(&mut self) -> Wrote {
        self.is_full = self.len == BLOCK_BYTES;
        match self.is_full {
            true => Wrote::BlockFull,
            false => Wrote::Line,
        }
    }

    /// Whether lines may be copied as they lie in the ring, many at once.
    fn is_bulk(&self) -> bool {
        matches!(self.format, Format::Lines { .. })
            && self.line == Line::Sample
            && self.gap.is_none()
            && !self.is_mark_block()
    }

    /// Fills the block with whole lines and the beginning of one; whether there were any.
    fn copy_lines(&mut self, source: &mut Source, limit: &mut usize) -> bool {
        let room = &mut self.block[self.len..];
        let count = source.next().0.min(*limit).min(room.len());
        if count == 0 {
            return false;
        }
        let lines = &mut room[..count];
        source.peek(0, lines);
        source.release(count);
        *limit -= count;
        for (byte, at) in lines.iter().zip(self.len + 1..) {
            self.written += 1;
            if *byte == b'\n' {
                self.next_sample += 1;
                self.written = 0;
                self.content_bytes = self.index as u64 * BLOCK_BYTES as u64 + at as u64;
            }
        }
        self.len += count;
        self.is_marked = false;
        true
    }

    /// Where in a line that was made anew the rest begins. Lines of text leave the ring as they are
    /// written, so that what is there is the rest.
    fn written_in(&self, len: usize) -> usize {
        match (self.line, self.format) {
            (Line::Sample, Format::Lines { .. }) => 0,
            _ => self.written.min(len),
        }
    }

    /// Makes the line that is due: its length, and the bytes of its sample in the ring. `None` if nothing
    /// waits.
    fn line_of(
        &mut self,
        source: &mut Source,
        limit: usize,
        line: &mut [u8; LINE_BYTES_MAX],
    ) -> Option<(usize, usize)> {
        if self.line == Line::Header {
            // A file that nothing comes to stays empty.
            if !self.is_wanted(source, limit) {
                return None;
            }
            match text::header(&self.format, line) {
                0 => self.line = Line::Sample,
                len => return Some((len, 0)),
            }
        }
        if self.written == 0 {
            self.choose(source);
        }
        if let (Line::Gap, Some(gap)) = (self.line, self.gap) {
            return Some((text::gap(&self.format, gap, line), 0));
        }
        let (waiting, _) = source.next();
        let waiting = waiting.min(limit);
        match self.format {
            Format::Csv(schema) if waiting >= schema.sample_bytes() => {
                let bytes = schema.sample_bytes();
                let mut sample = [0; SAMPLE_BYTES_MAX];
                source.peek(0, &mut sample[..bytes]);
                let mut text = super::decimal::Text::new(line);
                schema.write_row(&sample[..bytes], &mut text);
                Some((text.len(), bytes))
            }
            Format::Lines { .. } if waiting > 0 => Some((line_end(source, waiting, line), 0)),
            _ => None,
        }
    }

    /// Whether there is a gap or a sample to write down.
    fn is_wanted(&self, source: &Source, limit: usize) -> bool {
        let (waiting, gap) = source.next();
        waiting.min(limit) > 0 || gap.is_some() || self.gap.is_some()
    }

    /// Decides between lines what comes next.
    fn choose(&mut self, source: &mut Source) {
        if self.gap.is_none()
            && self.news.is_none()
            && let (0, Some(gap)) = source.next()
        {
            source.take_gap();
            self.gap = Some(gap);
            self.news = Some(gap);
        }
        self.line = match self.gap {
            Some(_) => Line::Gap,
            None => Line::Sample,
        };
    }

    fn end_line(&mut self) {
        self.written = 0;
        self.content_bytes = u64::from(self.index) * BLOCK_BYTES as u64 + self.len as u64;
        match self.line {
            Line::Header => (),
            Line::Gap => self.pass_gap(),
            Line::Sample => self.next_sample += 1,
        }
        self.line = Line::Sample;
    }

    fn pass_gap(&mut self) {
        if let Some(gap) = self.gap.take() {
            self.lost += gap.count;
            self.next_sample = gap.first + gap.count;
        }
    }

    fn fill_binary(&mut self, source: &mut Source, limit: &mut usize) -> Filled {
        let Format::Binary(schema) = self.format else {
            return Filled::Dry;
        };
        if self.line == Line::Header {
            if !self.is_wanted(source, *limit) {
                return Filled::Dry;
            }
            let mut text =
                super::decimal::Text::new(&mut self.block[PAYLOAD_AT..][..PAYLOAD_BYTES]);
            schema.describe(&mut text);
            self.len = text.len();
            self.line = Line::Sample;
            self.seal_binary(BlockKind::Header);
            return Filled::Full;
        }
        while self.len < PAYLOAD_BYTES {
            if self.written == 0 {
                self.choose(source);
            }
            if let (Line::Gap, Some(gap)) = (self.line, self.gap) {
                // Samples before it have a block of their own.
                if self.len > 0 {
                    break;
                }
                self.first = Some((0, gap.first));
                self.len = binary::write_gap(&mut self.block[PAYLOAD_AT..], gap);
                self.pass_gap();
                self.line = Line::Sample;
                self.seal_binary(BlockKind::Gap);
                return Filled::Full;
            }
            // No sample goes on in the next file.
            let is_last = self.index == self.last_index && self.written == 0;
            if is_last && schema.sample_bytes() > PAYLOAD_BYTES - self.len {
                break;
            }
            if !self.write_sample(source, schema.sample_bytes(), limit) {
                return Filled::Dry;
            }
        }
        self.seal_binary(BlockKind::Samples);
        Filled::Full
    }

    /// As much of a sample as there is room for; whether there was any.
    fn write_sample(&mut self, source: &mut Source, bytes: usize, limit: &mut usize) -> bool {
        let waiting = source.next().0.min(*limit);
        let count = (bytes - self.written).min(PAYLOAD_BYTES - self.len);
        if waiting < count {
            return false;
        }
        if self.written == 0 && self.first.is_none() {
            self.first = Some((self.len as u16, self.next_sample));
        }
        source.peek(0, &mut self.block[PAYLOAD_AT + self.len..][..count]);
        source.release(count);
        *limit -= count;
        self.len += count;
        self.is_marked = false;
        self.written += count;
        if self.written == bytes {
            self.end_line();
        }
        true
    }

    fn seal_binary(&mut self, kind: BlockKind) {
        let (first, sample) = self.first.unwrap_or((u16::MAX, 0));
        let head = Head {
            mark: self.mark_of_block(),
            kind,
            used: self.len as u16,
            first,
            sample,
        };
        binary::seal(&mut self.block, &head);
        self.len = PAYLOAD_BYTES;
        self.is_full = true;
        self.content_bytes = (u64::from(self.index) + 1) * BLOCK_BYTES as u64;
    }
}

/// What became of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrote {
    /// It was written, and there is room for more.
    Line,
    /// The block is full; the line may be unfinished.
    BlockFull,
    /// There was none.
    Nothing,
    /// It would leave no room for the mark of this block.
    NoRoom,
}

/// Copies the line that is next in the ring, or what is left of it; returns its length.
fn line_end(source: &Source, waiting: usize, line: &mut [u8; LINE_BYTES_MAX]) -> usize {
    let waiting = if waiting == 0 {
        source.next().0
    } else {
        waiting
    };
    let count = waiting.min(line.len());
    // A line has at most so many bytes, or it would not have been taken into the ring.
    source.peek(0, &mut line[..count]);
    match line[..count].iter().position(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None => count,
    }
}
