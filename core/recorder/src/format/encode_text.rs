//! Blocks of text lines.
//!
//! A line may continue in the next block, but not past a mark. In a block with a mark, a new line begins only
//! while it leaves enough room for the mark.

use super::encoder::{Encoder, Filled, Intake, Item, Seal, State};
use super::mark::is_mark_block;
use super::position::FilePosition;
use super::text::{self, About};
use super::{Format, decimal};
use crate::limits::{LINE_BYTES_MAX, MARK_TAIL_BYTES, SAMPLE_BYTES_MAX};
use crate::ring::{Consumer, Next};
use cardiograph_card::BLOCK_BYTES;

/// Result of writing a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrote {
    /// Some or all of the line is in the block.
    Some,
    /// There was no line.
    Nothing,
    /// The line would leave no room for the mark of this block.
    NoRoom,
}

impl Encoder {
    pub(super) fn fill_text(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
    ) -> Filled {
        if position.is_full() {
            return Filled::Boundary;
        }
        while !self.is_full() {
            if self.item == Item::Mark {
                self.write_mark();
                break;
            }
            match self.write_line(position, consumer, intake) {
                Wrote::Some => (),
                Wrote::Nothing => return self.dry(consumer),
                Wrote::NoRoom => self.write_mark(),
            }
        }
        Filled::Full
    }

    pub(super) fn mark_text(&mut self, position: &FilePosition, consumer: &mut Consumer) {
        // The rest of the unfinished line is in the ring, and fits into the block.
        if self.written > 0 && self.item != Item::Mark {
            let mut intake = Intake::REST;
            self.write_one_line(position, consumer, &mut intake);
            if self.is_full() {
                return;
            }
        }
        self.write_mark();
    }

    /// Returns true if this block has to end with a mark. No line may continue past it.
    fn is_mark_block(position: &FilePosition) -> bool {
        is_mark_block(position.index) || position.left() == 1 || position.ends_step()
    }

    /// Writes the line with the mark, or as much of it as fits into the block. Sealing adds the fields.
    fn write_mark(&mut self) {
        let indent = text::indent(self.schema());
        // If the line began in the previous block, it continues with spaces; `written` counts its first bytes.
        let begun = match self.item {
            Item::Mark => self.written,
            _ => 0,
        };
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
        self.is_marked = begun + count >= indent + 1 + MARK_TAIL_BYTES && count >= MARK_TAIL_BYTES;
        if self.is_marked {
            self.state = State::Full(Seal::Mark);
            self.written = 0;
            self.item = match self.item {
                Item::Mark => Item::Sample,
                item => item,
            };
        } else {
            self.state = State::Full(Seal::Plain);
            self.written = begun + count;
            self.item = Item::Mark;
        }
    }

    /// Writes the next lines or line, or continues the unfinished one.
    fn write_line(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
    ) -> Wrote {
        if self.is_bulk(position) && self.copy_lines(position, consumer, intake) {
            return Wrote::Some;
        }
        self.write_one_line(position, consumer, intake)
    }

    fn write_one_line(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
    ) -> Wrote {
        let mut line = [0; LINE_BYTES_MAX];
        let Some(len) = self.make_line(position, consumer, intake, &mut line) else {
            return Wrote::Nothing;
        };
        let content_max = BLOCK_BYTES - self.mark_line_bytes();
        let is_new = self.written == 0;
        if Self::is_mark_block(position) && is_new && self.len + len > content_max {
            return Wrote::NoRoom;
        }
        let left = &line[self.written.min(len)..len];
        let room = &mut self.block[self.len..];
        let count = left.len().min(room.len());
        room[..count].copy_from_slice(&left[..count]);
        self.len += count;
        self.is_marked = false;
        self.written += count;
        if count == left.len() {
            self.end_line(position, consumer, intake, len);
        }
        self.note_full();
        Wrote::Some
    }

    fn note_full(&mut self) {
        if self.len == BLOCK_BYTES {
            self.state = State::Full(Seal::Plain);
        }
    }

    /// Returns true if many lines may be copied from the ring at once, unchanged.
    fn is_bulk(&self, position: &FilePosition) -> bool {
        matches!(self.format, Format::Lines { .. })
            && self.item == Item::Sample
            && self.account.gap().is_none()
            && !Self::is_mark_block(position)
    }

    /// Fills the block with complete lines and the beginning of one; returns false if there were none.
    fn copy_lines(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
    ) -> bool {
        let room = &mut self.block[self.len..];
        let waiting = consumer.waiting_bytes().min(intake.left_bytes);
        let count = waiting.saturating_sub(self.written).min(room.len());
        if count == 0 {
            return false;
        }
        let lines = &mut room[..count];
        consumer.peek(self.written, lines);
        // Number of bytes of the ring whose lines are complete in the block.
        let mut whole = 0;
        let begun = self.written;
        for (byte, at) in lines.iter().zip(1..) {
            if *byte == b'\n' {
                self.account.pass_sample();
                whole = begun + at;
                let bytes = self.len + at;
                self.content_bytes = bytes_at(position) + bytes as u32;
            }
        }
        self.written = begun + count - whole;
        consumer.release(whole);
        intake.left_bytes -= whole;
        self.len += count;
        self.is_marked = false;
        self.note_full();
        true
    }

    /// Formats the next line and returns its length, or `None` if there is nothing to write.
    fn make_line(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
        line: &mut [u8; LINE_BYTES_MAX],
    ) -> Option<usize> {
        let schema = self.schema();
        if self.item == Item::Header {
            // A file without data stays empty.
            if self.written == 0 && !self.is_wanted(consumer, intake) {
                return None;
            }
            let place = self.session.map_or(0, |session| session.schema());
            match text::names(&self.format, place, line) {
                0 => self.item = Item::About,
                len => return Some(len),
            }
        }
        if self.item == Item::About {
            let about = About {
                number: position.number,
                first: self.account.first_in_file(),
                at_us: position.begun_us,
                session: self.session.as_ref(),
            };
            return Some(text::about(schema, &about, line));
        }
        if self.written == 0 {
            self.choose_item(consumer, intake);
        }
        if let (Item::Gap, Some(gap)) = (self.item, self.account.gap()) {
            return Some(text::gap(schema, &gap, line));
        }
        let Next::Samples(waiting) = consumer.next() else {
            return None;
        };
        sample_line(consumer, schema, waiting.min(intake.left_bytes), line)
    }

    fn end_line(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
        len: usize,
    ) {
        self.written = 0;
        self.content_bytes = bytes_at(position) + self.len as u32;
        self.item = match self.item {
            Item::Header => Item::About,
            Item::Gap => {
                self.account.pass_gap();
                Item::Sample
            }
            Item::Sample => {
                let bytes = self.schema().map_or(len, |schema| schema.sample_bytes());
                consumer.release(bytes);
                intake.left_bytes = intake.left_bytes.saturating_sub(bytes);
                self.account.pass_sample();
                Item::Sample
            }
            Item::About | Item::Mark => Item::Sample,
        };
    }
}

/// Returns the file offset of a block.
fn bytes_at(position: &FilePosition) -> u32 {
    position.index * BLOCK_BYTES as u32
}

/// Formats the next sample of the ring as a line and returns its length.
fn sample_line(
    consumer: &Consumer,
    schema: Option<&super::Schema>,
    waiting: usize,
    line: &mut [u8; LINE_BYTES_MAX],
) -> Option<usize> {
    if let Some(schema) = schema {
        let bytes = schema.sample_bytes();
        if waiting < bytes {
            return None;
        }
        let mut sample = [0; SAMPLE_BYTES_MAX];
        consumer.peek(0, &mut sample[..bytes]);
        let mut text = decimal::Text::new(line);
        schema.write_row(&sample[..bytes], &mut text);
        return Some(text.len());
    }
    // The ring accepts no longer lines.
    let count = waiting.min(line.len());
    consumer.peek(0, &mut line[..count]);
    let end = line[..count].iter().position(|byte| *byte == b'\n');
    end.map(|at| at + 1)
}
