//! Blocks of binary samples.

use super::binary::{self, BlockKind, Head, NO_SAMPLE, PAYLOAD_AT, PAYLOAD_BYTES};
use super::decimal::Text;
use super::encoder::{Encoder, Filled, Intake, Item, Seal, State};
use super::header::Header;
use super::position::FilePosition;
use super::schema::Schema;
use crate::limits::HEADER_BLOCKS;
use crate::ring::Consumer;

/// Maximum number of blocks of a header.
pub(super) const BLOCKS_OF_HEADER_MAX: u32 = 2;

impl Encoder {
    pub(super) fn fill_binary(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        intake: &mut Intake,
    ) -> Filled {
        let Some(schema) = self.schema() else {
            return Filled::Dry;
        };
        if self.len == 0 && self.written == 0 {
            if let Some(filled) = self.begin_header(position, consumer, intake) {
                return filled;
            }
            if self.item != Item::Header && !position.may_begin(1) {
                return Filled::Boundary;
            }
        }
        if self.item == Item::Header {
            self.write_header(position, schema);
            return Filled::Full;
        }
        // A sample that continues in the next block would carry a checkpoint past the end of the page.
        let may_continue = position.step <= 1 || !position.ends_step();
        while self.len < PAYLOAD_BYTES {
            if self.written == 0 {
                self.choose_item(consumer, intake);
            }
            if self.item == Item::Gap {
                // The samples before it stay in a block of their own.
                if self.len > 0 {
                    break;
                }
                self.write_gap();
                return Filled::Full;
            }
            if self.written == 0
                && !may_continue
                && self.len + schema.sample_bytes() > PAYLOAD_BYTES
            {
                break;
            }
            if !self.write_sample(consumer, schema.sample_bytes(), intake) {
                return self.dry(consumer);
            }
        }
        self.state = State::Full(Seal::Binary(BlockKind::Samples));
        Filled::Full
    }

    /// Decides whether a header comes next: at the beginning of the file, and at fixed intervals, so that
    /// recovery finds one near the end. Returns a result if nothing can be written.
    fn begin_header(
        &mut self,
        position: &FilePosition,
        consumer: &Consumer,
        intake: &Intake,
    ) -> Option<Filled> {
        // A header without a second block, or without samples after it, is useless.
        let may_begin = position.may_begin(BLOCKS_OF_HEADER_MAX);
        if self.item == Item::Header {
            // A file without data stays empty.
            if !self.is_wanted(consumer, intake) {
                return Some(self.dry(consumer));
            }
            return (!may_begin).then_some(Filled::Boundary);
        }
        if may_begin && position.index.saturating_sub(self.header_index) >= HEADER_BLOCKS {
            self.item = Item::Header;
        }
        None
    }

    /// Writes the header, or the part of it that did not fit into the previous block.
    fn write_header(&mut self, position: &FilePosition, schema: &'static Schema) {
        let header = Header {
            prefix: self.prefix,
            number: position.number,
            streams: position.streams,
            first: self.account.first_in_file(),
            at_us: position.begun_us,
            session: self.session.as_ref(),
            schema,
        };
        let payload = &mut self.block[PAYLOAD_AT..][..PAYLOAD_BYTES];
        let mut text = Text::behind(payload, self.written);
        header.write(&mut text);
        let (len, total) = (text.len(), text.pushed());
        self.set_first(self.written, self.account.encoded().next);
        self.len = len;
        self.written += len;
        if self.written >= total {
            self.written = 0;
            self.item = Item::Sample;
        }
        self.is_marked = false;
        self.state = State::Full(Seal::Binary(BlockKind::Header));
    }

    /// Sets the offset at which the sample or gap with this index begins.
    fn set_first(&mut self, at: usize, index: u64) {
        (self.first_at, self.first) = (Some(at as u16), index);
    }

    fn write_gap(&mut self) {
        let Some(gap) = self.account.gap() else {
            return;
        };
        self.set_first(0, gap.first);
        self.len = binary::write_gap(&mut self.block[PAYLOAD_AT..], &gap);
        self.account.pass_gap();
        self.item = Item::Sample;
        self.is_marked = false;
        self.state = State::Full(Seal::Binary(BlockKind::Gap));
    }

    /// Writes as much of a sample as fits; returns false if no whole sample is available.
    fn write_sample(&mut self, consumer: &mut Consumer, bytes: usize, intake: &mut Intake) -> bool {
        if consumer.waiting_bytes().min(intake.left_bytes) < bytes {
            return false;
        }
        let count = (bytes - self.written).min(PAYLOAD_BYTES - self.len);
        if self.written == 0 && self.first_at.is_none() {
            self.set_first(self.len, self.account.encoded().next);
        }
        consumer.peek(
            self.written,
            &mut self.block[PAYLOAD_AT + self.len..][..count],
        );
        self.len += count;
        self.is_marked = false;
        self.written += count;
        if self.written == bytes {
            consumer.release(bytes);
            intake.left_bytes -= bytes;
            self.written = 0;
            self.account.pass_sample();
        }
        true
    }

    /// Completes the unfinished sample and marks the partial block as full.
    pub(super) fn mark_binary(&mut self, position: &FilePosition, consumer: &mut Consumer) {
        let Some(schema) = self.schema() else {
            return;
        };
        if self.item == Item::Header {
            self.write_header(position, schema);
            return;
        }
        // The whole sample is still in the ring, and its rest fits into the block.
        if self.written > 0 {
            let mut intake = Intake::REST;
            self.write_sample(consumer, schema.sample_bytes(), &mut intake);
        }
        self.state = State::Full(Seal::Binary(BlockKind::Samples));
    }

    pub(super) fn seal_binary(&mut self, kind: BlockKind, position: &FilePosition) {
        if kind == BlockKind::Samples && !position.may_split() {
            self.cut_sample();
        }
        // Without a beginning, the block ends with the rest of a sample.
        let (first, sample) = match self.first_at {
            Some(at) => (at, self.first),
            None => (NO_SAMPLE, self.account.encoded().next),
        };
        let totals = self.account.in_file();
        let head = Head {
            epoch: position.epoch,
            index: position.index,
            durable: position.durable_or_number(),
            kind: kind as u8,
            stream: self.stream,
            used: self.len as u16,
            first,
            gaps: u16::try_from(totals.gaps).unwrap_or(u16::MAX),
            sample,
            lost: u32::try_from(totals.lost).unwrap_or(u32::MAX),
            age_ms: position.age_ms,
        };
        binary::seal(&mut self.block, &head);
    }

    /// Removes the beginning of a sample that has no block to continue in; the ring still holds the sample.
    fn cut_sample(&mut self) {
        let part = self.written.min(self.len);
        self.len -= part;
        self.written -= part;
        self.first_at = self.first_at.filter(|at| usize::from(*at) < self.len);
    }
}
