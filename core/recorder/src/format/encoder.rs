//! Turns what waits in a ring into blocks of a file.
//!
//! ```text
//!              ┌──── header, gap, sample ────┐
//!              v                             │
//!   start ── Open ── block full, or mark ──> Full ── block: sealed ── advance: pushed
//!                                             ^                          │
//!                                             └────────── Open <─────────┘
//! ```
//!
//! An encoder makes the blocks of one stream and does no I/O. The file's position belongs to whoever pushes
//! blocks: binary streams share a file, so a block gets its index and its checksum just before the push.
//!
//! A line or a binary sample may go on in the next block. Its bytes stay in the ring until its end is in a
//! block: a card that fails takes blocks only, and a sample never goes on in another file.

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

/// Makes the blocks of one stream.
pub(crate) struct Encoder {
    pub(super) format: Format,
    pub(super) prefix: [u8; 3],
    pub(super) stream: u8,
    pub(super) session: Option<Session>,
    pub(super) account: Account,
    pub(super) block: Block,
    /// Bytes of the block, or of its payload, that are filled.
    pub(super) len: usize,
    /// Content that is being written, or comes next.
    pub(super) item: Item,
    /// Bytes of that content that are in blocks already.
    pub(super) written: usize,
    pub(super) state: State,
    /// Text: CRC-32 of the blocks since the last mark.
    crc: u32,
    /// The block before this one ends with a mark, or there is none.
    pub(super) is_marked: bool,
    /// Text: bytes of the file, which has less than 4 GiB, up to the end of its last line that is not a mark.
    pub(super) content_bytes: u32,
    /// Binary: where in the block the first sample begins.
    pub(super) first_at: Option<u16>,
    /// Binary: index of that sample.
    pub(super) first: u64,
    /// Binary: index of the block with the last header.
    pub(super) header_index: u32,
}

/// What a call takes out of the ring.
pub(super) struct Intake {
    /// Bytes of samples that it may still take.
    pub(super) left_bytes: usize,
    /// The gap that it took. The next one stays in the ring.
    pub(super) gap: Option<Gap>,
}

impl Intake {
    /// Takes the rest of a line or sample that was begun.
    pub(super) const REST: Intake = Intake {
        left_bytes: usize::MAX,
        gap: None,
    };
}

/// Content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Text: the names of the columns. Binary: the header.
    Header,
    /// Text: number and session of the file.
    About,
    Gap,
    Sample,
    /// Text: a mark whose line began in the block before.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is room in the block.
    Open,
    /// The block waits to be pushed.
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
    /// The block waits to be pushed.
    Full,
    /// There is nothing more to put into it.
    Dry,
    /// What comes next belongs in another file: a session begins, or this file has no room left for the
    /// stream. An unfinished block has to be marked first.
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

    /// Begins a file: its header is due. Without a new session the one before goes on. Nothing of the stream
    /// may be unfinished; a gap that is pending goes to the new file.
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

    /// Seals the block that is full.
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

    /// Notes that the block was pushed at this position: the next one begins.
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

    /// Format of the samples.
    pub(crate) fn format(&self) -> &Format {
        &self.format
    }

    /// Prefix of the file's name.
    pub(crate) fn prefix(&self) -> [u8; 3] {
        self.prefix
    }

    /// Session of the file.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Samples and gaps of the stream.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Notes that all pushed blocks are durable.
    pub(crate) fn commit(&mut self) {
        self.account.commit();
    }

    /// Returns true if everything that was taken is in pushed blocks, and the last of them ends with a mark.
    pub(crate) fn is_marked(&self) -> bool {
        self.len == 0 && self.is_marked && self.written == 0
    }

    /// Blocks that a checkpoint here would write: one that waits or is unfinished, and one for the rest of what
    /// does not end in a block that is full.
    pub(crate) fn unfinished_blocks(&self) -> u32 {
        match self.is_full() {
            true => 1 + u32::from(self.written > 0),
            false => u32::from(!self.is_marked()),
        }
    }

    /// Returns true if the block waits to be pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.state != State::Open
    }

    /// Blocks that a file must have left for the stream to begin one: a header needs a second block, for
    /// samples or for its rest.
    pub(crate) fn blocks_to_begin(&self) -> u32 {
        match self.format {
            Format::Binary(_) if self.item == Item::Header => encode_binary::BLOCKS_OF_HEADER_MAX,
            _ => 1,
        }
    }

    /// Bytes of the file that hold content: all pushed blocks if binary, and else up to the end of the last
    /// line that is not a mark.
    pub(crate) fn content_bytes(&self, position: &FilePosition) -> u64 {
        match self.format {
            Format::Binary(_) => u64::from(position.index) * BLOCK_BYTES as u64,
            _ => self.content_bytes.into(),
        }
    }

    /// Gives up everything that is not durable, the card having failed. Returns the gap, if it has grown.
    pub(crate) fn lose_blocks(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        self.reset();
        self.account.lose_blocks(now_us, cause)
    }

    /// Gives up the pending gap and the `count` samples after it: they are lost, and in no file. Returns them.
    pub(crate) fn give_up(&mut self, count: u64, now_us: u64, cause: Cause) -> Option<Gap> {
        self.account.give_up(count, now_us, cause)
    }

    /// Fills the block with what waits in the ring, at most `limit_bytes` of it: those of whole samples.
    /// Returns the gap that it took, one at most: gaps are reported as they come.
    pub(crate) fn fill(
        &mut self,
        position: &FilePosition,
        source: &mut Consumer,
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
            Format::Binary(_) => self.fill_binary(position, source, &mut intake),
            _ => self.fill_text(position, source, &mut intake),
        };
        (filled, intake.gap)
    }

    /// Ends the block with a mark, and the line or sample that is unfinished before. Full: the block has to
    /// be pushed, and this called again. Dry: all is marked.
    pub(crate) fn mark(&mut self, position: &FilePosition, source: &mut Consumer) -> Filled {
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
            Format::Binary(_) => self.mark_binary(position, source),
            _ => self.mark_text(position, source),
        }
        Filled::Full
    }

    /// The schema of the file; none for lines.
    pub(crate) fn schema(&self) -> Option<&'static Schema> {
        let place = self.session.map_or(0, |session| session.schema());
        self.format.schema(place)
    }

    /// Bytes that a mark takes at least.
    pub(super) fn mark_line_bytes(&self) -> usize {
        text::indent(self.schema()) + 1 + MARK_TAIL_BYTES
    }

    /// The result where nothing more can be taken from the ring now.
    pub(super) fn dry(&self, source: &Consumer) -> Filled {
        let is_session = self.account.gap().is_none() && source.next() == Next::Session;
        match is_session {
            true => Filled::Boundary,
            false => Filled::Dry,
        }
    }

    /// Returns true if there is a gap or a sample to write down.
    pub(super) fn is_wanted(&self, source: &Consumer, intake: &Intake) -> bool {
        match source.next() {
            _ if self.account.gap().is_some() => true,
            Next::Samples(_) => intake.left_bytes > 0,
            Next::Gap(_) => intake.gap.is_none(),
            Next::Session | Next::Empty => false,
        }
    }

    /// Decides between lines or samples what comes next.
    pub(super) fn choose(&mut self, source: &mut Consumer, intake: &mut Intake) {
        if self.account.gap().is_none()
            && intake.gap.is_none()
            && let Some(gap) = source.take_gap()
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
