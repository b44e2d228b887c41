//! Turns the contents of a ring into blocks of a file.
//!
//! ```text
//!              ┌──── header, gap, sample ────┐
//!              v                             │
//!   start ── Open ── block full, or mark ──> Full ── block: sealed ── advance: pushed
//!                                             ^                          │
//!                                             └────────── Open <─────────┘
//! ```
//!
//! An encoder produces the blocks of one stream and does no I/O. The caller that pushes blocks owns the file
//! position: binary streams share a file, so a block gets its index and checksum just before the push.
//!
//! A line or a binary sample may continue in the next block. Its bytes stay in the ring until its end is in a block. A
//! card failure therefore loses only data in blocks, and no sample continues in another file.

use super::binary::BlockKind;
use super::mark::{self, Mark};
use super::position::FilePosition;
use super::schema::Schema;
use super::{Format, encode_binary, text};
use crate::account::Account;
use crate::crc32::crc32;
use crate::gap::{Cause, Gap};
use crate::limits::MARK_TAIL_BYTES;
use crate::ring::{Consumer, Next};
use crate::session::Session;
use cardiograph_card::{BLOCK_BYTES, Block};

/// Encoder of one stream.
pub(crate) struct Encoder {
    pub(super) format: Format,
    pub(super) prefix: [u8; 3],
    pub(super) stream: u8,
    pub(super) session: Option<Session>,
    pub(super) account: Account,
    pub(super) block: Block,
    /// Number of bytes filled in the block, or in its payload.
    pub(super) len: usize,
    /// Item that is being written, or comes next.
    pub(super) item: Item,
    /// Number of bytes of that item that are already in blocks.
    pub(super) written: usize,
    pub(super) state: State,
    /// Text: CRC-32 of the blocks since the last mark.
    crc: u32,
    /// True if the previous block ends with a mark, or there is no previous block.
    pub(super) is_marked: bool,
    /// Text: file offset of the end of the last line that is not a mark; files are smaller than 4 GiB.
    pub(super) content_bytes: u32,
    /// Binary: offset of the first sample that begins in the block.
    pub(super) first_at: Option<u16>,
    /// Binary: index of that sample.
    pub(super) first: u64,
    /// Binary: index of the block with the last header.
    pub(super) header_index: u32,
}

/// Limits and result of taking data from the ring.
pub(super) struct Intake {
    /// Number of sample bytes that may still be taken.
    pub(super) left_bytes: usize,
    /// The gap that was taken. A second one stays in the ring.
    pub(super) gap: Option<Gap>,
}

impl Intake {
    /// For the rest of an unfinished line or sample.
    pub(super) const REST: Intake = Intake {
        left_bytes: usize::MAX,
        gap: None,
    };
}

/// Items of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Text: the column names. Binary: the header.
    Header,
    /// Text: number and session of the file.
    About,
    Gap,
    Sample,
    /// Text: a mark whose line began in the previous block.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The block has room.
    Open,
    /// The block is ready to be pushed.
    Full(Seal),
}

/// Fields of a full block that are written just before the push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    Plain,
    Mark,
    Binary(BlockKind),
}

/// Result of filling a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The block is ready to be pushed.
    Full,
    /// There is nothing more to put into the block.
    Dry,
    /// The next data belongs in another file: a session begins, or this file has no room left for the stream. The
    /// caller has to mark a partial block first.
    Boundary,
}

impl Encoder {
    pub(crate) fn new(format: Format, prefix: [u8; 3], stream: u8) -> Encoder {
        Encoder {
            format,
            prefix,
            stream,
            session: None,
            account: Account::default(),
            block: [0; BLOCK_BYTES],
            len: 0,
            item: Item::Header,
            written: 0,
            state: State::Open,
            crc: 0,
            is_marked: true,
            content_bytes: 0,
            first_at: None,
            first: 0,
            header_index: 0,
        }
    }

    /// Begins a file, starting with its header. Without a new session, the previous one continues. Nothing of
    /// the stream may be unfinished; a pending gap goes to the new file.
    pub(crate) fn start(&mut self, session: Option<Session>) {
        self.session = session.or(self.session);
        self.reset();
        self.account.begin_file();
    }

    fn reset(&mut self) {
        (self.len, self.written) = (0, 0);
        (self.item, self.state) = (Item::Header, State::Open);
        (self.crc, self.is_marked) = (0, true);
        (self.content_bytes, self.header_index) = (0, 0);
        self.first_at = None;
    }

    /// Seals the full block and returns it.
    pub(crate) fn block(&mut self, position: &FilePosition) -> &Block {
        match self.state {
            State::Full(Seal::Mark) => {
                let mark = self.mark_at(position);
                mark::write(&mut self.block, &mark, self.crc);
            }
            State::Full(Seal::Binary(kind)) => self.seal_binary(kind, position),
            State::Full(Seal::Plain) | State::Open => (),
        }
        &self.block
    }

    /// Notes that the block was pushed at this position, and begins the next one.
    pub(crate) fn advance(&mut self, position: &FilePosition) {
        match self.state {
            State::Full(Seal::Binary(kind)) => {
                self.is_marked = true;
                if kind == BlockKind::Header {
                    self.header_index = position.index;
                }
            }
            State::Full(Seal::Mark) => self.crc = 0,
            State::Full(Seal::Plain) | State::Open => self.crc = crc32(self.crc, &self.block),
        }
        self.account.push();
        self.len = 0;
        self.state = State::Open;
        self.first_at = None;
    }

    fn mark_at(&self, position: &FilePosition) -> Mark {
        let totals = self.account.in_file();
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Mark {
            epoch: position.epoch,
            index: position.index,
            durable: position.durable_or_number(),
            samples: short(totals.samples),
            gaps: short(totals.gaps),
            lost: short(totals.lost),
            age_ms: position.age_ms,
        }
    }

    /// Returns the format of the samples.
    pub(crate) fn format(&self) -> &Format {
        &self.format
    }

    /// Returns the prefix of the file names.
    pub(crate) fn prefix(&self) -> [u8; 3] {
        self.prefix
    }

    /// Returns the session of the file.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Returns the bookkeeping of the stream's samples and gaps.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Notes that all pushed blocks are durable.
    pub(crate) fn commit(&mut self) {
        self.account.commit();
    }

    /// Returns true if all data taken is in pushed blocks, and the last of these ends with a mark.
    pub(crate) fn is_marked(&self) -> bool {
        self.len == 0 && self.is_marked && self.written == 0
    }

    /// Returns the number of blocks that a checkpoint would write now: the full or partial block, and one
    /// more for an item that continues after a full block.
    pub(crate) fn unfinished_blocks(&self) -> u32 {
        match self.is_full() {
            true => 1 + u32::from(self.written > 0),
            false => u32::from(!self.is_marked()),
        }
    }

    /// Returns true if the block is ready to be pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.state != State::Open
    }

    /// Returns the number of blocks that a file must have left before the stream may begin one: a header
    /// needs a second block, for samples or for its own rest.
    pub(crate) fn blocks_to_begin(&self) -> u32 {
        match self.format {
            Format::Binary(_) if self.item == Item::Header => encode_binary::BLOCKS_OF_HEADER_MAX,
            _ => 1,
        }
    }

    /// Returns the length of the file's content: all pushed blocks for binary, and the end of the last line
    /// that is not a mark for text.
    pub(crate) fn content_bytes(&self, position: &FilePosition) -> u64 {
        match self.format {
            Format::Binary(_) => u64::from(position.index) * BLOCK_BYTES as u64,
            _ => self.content_bytes.into(),
        }
    }

    /// Gives up everything that is not durable, because the card failed. Returns the pending gap if it grew.
    pub(crate) fn lose_blocks(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        self.reset();
        self.account.lose_blocks(now_us, cause)
    }

    /// Gives up the pending gap and the `count` samples after it: they count as lost, and no file contains the gap.
    /// Returns the gap.
    pub(crate) fn give_up(&mut self, count: u64, now_us: u64, cause: Cause) -> Option<Gap> {
        self.account.give_up(count, now_us, cause)
    }

    /// Fills the block with at most `limit_bytes` of samples from the ring; `limit_bytes` has to end at a
    /// sample boundary. Returns the gap that was taken, if any: at most one per call, so that gaps are
    /// reported in order.
    pub(crate) fn fill(
        &mut self,
        position: &FilePosition,
        consumer: &mut Consumer,
        limit_bytes: usize,
    ) -> (Filled, Option<Gap>) {
        if self.is_full() {
            return (Filled::Full, None);
        }
        let mut intake = Intake {
            left_bytes: limit_bytes,
            gap: None,
        };
        let filled = match self.format {
            Format::Binary(_) => self.fill_binary(position, consumer, &mut intake),
            _ => self.fill_text(position, consumer, &mut intake),
        };
        (filled, intake.gap)
    }

    /// Completes the unfinished line or sample and ends the block with a mark. `Full`: push the block and
    /// call this again. `Dry`: everything is marked.
    pub(crate) fn mark(&mut self, position: &FilePosition, consumer: &mut Consumer) -> Filled {
        if self.is_full() {
            return Filled::Full;
        }
        if self.is_marked() {
            return Filled::Dry;
        }
        if position.is_full() {
            return Filled::Boundary;
        }
        match self.format {
            Format::Binary(_) => self.mark_binary(position, consumer),
            _ => self.mark_text(position, consumer),
        }
        Filled::Full
    }

    /// Returns the schema of the file; `None` for lines.
    pub(crate) fn schema(&self) -> Option<&'static Schema> {
        let place = self.session.map_or(0, |session| session.schema());
        self.format.schema(place)
    }

    /// Returns the minimum length of a line with a mark.
    pub(super) fn mark_line_bytes(&self) -> usize {
        text::indent(self.schema()) + 1 + MARK_TAIL_BYTES
    }

    /// Returns the result if nothing more can be taken from the ring now.
    pub(super) fn dry(&self, consumer: &Consumer) -> Filled {
        let is_session = self.account.gap().is_none() && consumer.next() == Next::Session;
        match is_session {
            true => Filled::Boundary,
            false => Filled::Dry,
        }
    }

    /// Returns true if there is a gap or a sample to write.
    pub(super) fn is_wanted(&self, consumer: &Consumer, intake: &Intake) -> bool {
        match consumer.next() {
            _ if self.account.gap().is_some() => true,
            Next::Samples(_) => intake.left_bytes > 0,
            Next::Gap(_) => intake.gap.is_none(),
            Next::Session | Next::Empty => false,
        }
    }

    /// Chooses the next item after a complete line or sample: a gap or a sample.
    pub(super) fn choose_item(&mut self, consumer: &mut Consumer, intake: &mut Intake) {
        if self.account.gap().is_none()
            && intake.gap.is_none()
            && let Some(gap) = consumer.take_gap()
        {
            self.account.note_gap(gap);
            intake.gap = Some(gap);
        }
        self.item = match self.account.gap() {
            Some(_) => Item::Gap,
            None => Item::Sample,
        };
    }
}

const _: () = assert!(encode_binary::BLOCKS_OF_HEADER_MAX == 2);
