//! What a card stores, and how long it is busy storing it.
//!
//! ```text
//!   accepted ──> in flight ──────── busy ends ──> durable
//!                    │
//!                    └── power fails before the page is programmed ──> as it was before
//! ```
//!
//! That is a card that keeps its word. [`Defects`] are the ways in which cards do not; the data that a
//! card without them would hold is kept apart, so that a checker can tell ([`Card::promised`]).

mod in_flight;

use crate::defects::{BitErrors, Counterfeit, Defects, TornPage};
use crate::medium::Medium;
use crate::{BLOCK_BYTES, Busy, Controller, Profile};
use cardiograph_sim_world::{Random, Seed};
use in_flight::{InFlight, Torn};
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

/// The bytes of one block.
pub type Block = [u8; BLOCK_BYTES];

/// How often a page is read until its wrong bits can be corrected.
const READS_TO_CORRECT: u32 = 8;

/// Why a card did not do what it was told. It stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardError {
    /// A block past the end of the card.
    OutOfRange {
        /// The block asked for.
        block: u64,
        /// Blocks there are.
        blocks: u64,
    },
    /// The page holds more wrong bits than the controller can correct.
    Unreadable {
        /// The block asked for.
        block: u64,
    },
    /// No block of flash is left to write to: the card is worn out, and can only be read.
    WornOut,
}

impl std::error::Error for CardError {}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CardError::OutOfRange { block, blocks } => {
                write!(f, "block {block} is past the card's {blocks} blocks")
            }
            CardError::Unreadable { block } => {
                write!(
                    f,
                    "block {block} holds more wrong bits than can be corrected"
                )
            }
            CardError::WornOut => f.write_str("the card is worn out and can only be read"),
        }
    }
}

/// A simulated card at the level of blocks.
///
/// Times are of one clock, in ns, and never go back. Who drives the card starts nothing before the
/// busy time of what came before is over. A clone is another card that goes on from the same state.
#[derive(Clone)]
pub struct Card {
    /// What the card holds.
    medium: Medium,
    /// What a card without defects would hold; kept only where there are any, or damage was done.
    promised: Option<Medium>,
    unreadable: HashSet<u64>,
    defects: Defects,
    random: Random,
    controller: Controller,
    blocks: u64,
    stream: Option<Stream>,
    in_flight: InFlight,
}

/// A write of consecutive blocks that is under way, its length not yet known.
#[derive(Clone, Default)]
struct Stream {
    /// The first block that is not in flash yet.
    first: u64,
    /// Blocks of one page, in the controller's RAM: lost if the stream is not ended.
    pending: Vec<Block>,
}

impl Card {
    /// A card of this profile, filled once and then cleaned up: every page holds data, the log is
    /// as used as the profile says. `seed` decides the spread of its times.
    pub fn new(profile: &Profile, seed: Seed) -> Card {
        Card::with_defects(profile, Defects::default(), seed)
    }

    /// A card that does not keep its word.
    pub fn with_defects(profile: &Profile, defects: Defects, seed: Seed) -> Card {
        Card {
            medium: Medium::default(),
            promised: (!defects.is_none()).then(Medium::default),
            unreadable: HashSet::new(),
            in_flight: InFlight::new(defects.volatile_blocks),
            defects,
            random: seed.stream("defects"),
            controller: Controller::new(profile, seed),
            blocks: profile.capacity_bytes / BLOCK_BYTES as u64,
            stream: None,
        }
    }

    /// Number of blocks, as the card tells it.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads one block of consecutive ones; returns how long the host waits, in ns. A page is fetched
    /// once, the `first` block of a command after the command's own time.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`] and [`CardError::Unreadable`].
    pub fn read(
        &mut self,
        now_ns: u64,
        block: u64,
        first: bool,
        data: &mut Block,
    ) -> Result<u64, CardError> {
        self.check(block, 1)?;
        let place = self.place(block);
        if self.unreadable.contains(&place) {
            return Err(CardError::Unreadable { block });
        }
        self.hold(block, data);
        let command_ns = match first {
            true => self.controller.command(now_ns),
            false => 0,
        };
        if first || block.is_multiple_of(self.controller.blocks_per_page()) {
            return Ok(command_ns + self.fetch(now_ns + command_ns, block, data)?);
        }
        Ok(0)
    }

    /// Fetches the page of a block, with what bit errors do to it; returns how long that takes.
    fn fetch(&mut self, now_ns: u64, block: u64, data: &mut Block) -> Result<u64, CardError> {
        let mut fetch_ns = self.controller.read(now_ns, block, 1);
        let errors = self.defects.bit_errors;
        if errors == BitErrors::default() {
            return Ok(fetch_ns);
        }
        if self.random.chance_ppm(errors.unreadable_ppm) {
            return Err(CardError::Unreadable { block });
        }
        if self.random.chance_ppm(errors.silent_ppm) {
            let bit = self.random.below(8 * BLOCK_BYTES as u64) as usize;
            data[bit / 8] ^= 1 << (bit % 8);
        }
        if self.random.chance_ppm(errors.corrected_ppm) {
            for _ in 1..READS_TO_CORRECT {
                fetch_ns += self.controller.read(now_ns + fetch_ns, block, 1);
            }
        }
        Ok(fetch_ns)
    }

    /// Writes one block by a command of its own; returns how long the card is busy, in ns. It is
    /// durable when that is over.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`] and [`CardError::WornOut`].
    pub fn write(&mut self, now_ns: u64, block: u64, data: &Block) -> Result<u64, CardError> {
        self.check(block, 1)?;
        self.check_worn_out()?;
        let busy = self.controller.write_by_command(now_ns, block, 1);
        self.keep(now_ns, busy, block, std::slice::from_ref(data));
        Ok(busy.total_ns)
    }

    /// Writes the next block of a stream, or the first of a new one; returns how long the card is
    /// busy, in ns. It is durable only once the stream has ended and that busy is over: blocks are
    /// gathered in RAM until their page is whole.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`] and [`CardError::WornOut`].
    pub fn stream_write(
        &mut self,
        now_ns: u64,
        block: u64,
        data: &Block,
    ) -> Result<u64, CardError> {
        self.check(block, 1)?;
        self.check_worn_out()?;
        let (mut stream, mut busy_ns) = match self.stream.take() {
            Some(stream) => (stream, 0),
            None => (Stream::default(), self.controller.command(now_ns)),
        };
        if block != stream.first + stream.pending.len() as u64 {
            busy_ns += self.flush(now_ns.saturating_add(busy_ns), &mut stream);
            stream.first = block;
        }
        stream.pending.push(*data);
        if (block + 1).is_multiple_of(self.controller.blocks_per_page()) {
            busy_ns += self.flush(now_ns.saturating_add(busy_ns), &mut stream);
        }
        self.stream = Some(stream);
        Ok(busy_ns)
    }

    /// Ends a stream of writes; returns how long the card is busy, in ns.
    pub fn stream_end(&mut self, now_ns: u64) -> u64 {
        match self.stream.take() {
            Some(mut stream) => self.flush(now_ns, &mut stream),
            None => 0,
        }
    }

    /// Forgets a stream of writes with what is in RAM only, as a reset in its midst does.
    pub fn stream_abandon(&mut self) {
        self.stream = None;
    }

    /// Erases consecutive blocks, which read as zeros from now on; returns how long the card is busy,
    /// in ns.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`]; nothing is erased.
    pub fn erase(&mut self, now_ns: u64, start: u64, count: u64) -> Result<u64, CardError> {
        self.check(start, count)?;
        self.in_flight.settle();
        for places in self.places(start, count) {
            self.unreadable.retain(|place| !places.contains(place));
            self.medium.erase(places);
        }
        if let Some(promised) = &mut self.promised {
            promised.erase(start..start + count);
        }
        let command_ns = self.controller.command(now_ns);
        Ok(command_ns + self.controller.forget(now_ns + command_ns, start, count))
    }

    /// Takes the power away. What is in RAM only is lost, and what is in flight is as it was before;
    /// see [`Defects`] for cards that lose more.
    pub fn power_cut(&mut self, now_ns: u64) {
        self.stream = None;
        self.controller.power_cut(now_ns);
        let torn = self.in_flight.undo(
            now_ns,
            &mut self.medium,
            &mut self.unreadable,
            self.promised.as_mut(),
        );
        if let Some(torn) = torn {
            self.tear(torn);
        }
    }

    /// Gives the power back.
    pub fn power_on(&mut self, now_ns: u64) {
        self.controller.power_on(now_ns);
    }

    /// Lets the busy time under way last longer: what is in flight stays there.
    pub(crate) fn stall(&mut self, now_ns: u64, extra_ns: u64) {
        self.in_flight.stall(now_ns, extra_ns);
    }

    /// Blocks as the card holds them, past the controller and outside time.
    pub fn load(&self, start: u64, data: &mut [Block]) {
        for (block, data) in (start..).zip(data) {
            self.hold(block, data);
        }
    }

    /// What the card holds for a block; zeros where it has no place.
    fn hold(&self, block: u64, data: &mut Block) {
        match self.place(block) {
            place if place < self.blocks => self.medium.read(place, data),
            _ => data.fill(0),
        }
    }

    /// Blocks as a card without defects would hold them.
    pub fn promised(&self, start: u64, data: &mut [Block]) {
        let medium = self.promised.as_ref().unwrap_or(&self.medium);
        for (block, data) in (start..).zip(data) {
            medium.read(block, data);
        }
    }

    /// Returns true if another card holds the same; fast if it is a clone.
    pub fn holds_same(&self, other: &Card) -> bool {
        self.unreadable == other.unreadable && self.medium.is_same(&other.medium)
    }

    /// Stores blocks past the controller and outside time, as a card comes formatted from its maker.
    pub fn store(&mut self, start: u64, data: &[Block]) {
        for (block, data) in (start..).zip(data) {
            self.put(block, data);
        }
    }

    /// Gives back the memory of consecutive blocks, which are zeros from now on. Of the simulation only: the
    /// card does not notice, and takes no longer or shorter for it.
    pub fn forget_data(&mut self, start: u64, count: u64) {
        for places in self.places(start, count) {
            self.medium.erase(places);
        }
        if let Some(promised) = &mut self.promised {
            promised.erase(start..start + count);
        }
    }

    /// How long things take, and what they take of the supply.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The same, to be recorded.
    pub fn controller_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    fn flush(&mut self, now_ns: u64, stream: &mut Stream) -> u64 {
        let count = stream.pending.len() as u64;
        if count == 0 {
            return 0;
        }
        let busy = self.controller.write(now_ns, stream.first, count);
        self.keep(now_ns, busy, stream.first, &stream.pending);
        stream.pending.clear();
        stream.first += count;
        busy.total_ns
    }

    /// Stores blocks of one page that are durable once the busy time is over.
    fn keep(&mut self, now_ns: u64, busy: Busy, start: u64, data: &[Block]) {
        let end_ns = now_ns.saturating_add(busy.total_ns);
        self.in_flight.begin(end_ns - busy.program_ns..end_ns);
        for (block, data) in (start..).zip(data) {
            let place = self.place(block);
            self.in_flight.note(
                block,
                place,
                &self.medium,
                &self.unreadable,
                self.promised.as_ref(),
            );
            self.put(block, data);
        }
    }

    fn put(&mut self, block: u64, data: &Block) {
        let place = self.place(block);
        if place < self.blocks {
            self.medium.write(place, data);
            self.unreadable.remove(&place);
        }
        if let Some(promised) = &mut self.promised {
            promised.write(block, data);
        }
    }

    /// Flips a bit of what the card holds, as a charge that leaks away does: nobody notices.
    pub fn flip_bit(&mut self, block: u64, bit: usize) {
        self.promised.get_or_insert_with(|| self.medium.clone());
        let place = self.place(block);
        let mut data = [0; BLOCK_BYTES];
        self.hold(block, &mut data);
        data[bit / 8 % BLOCK_BYTES] ^= 1 << (bit % 8);
        if place < self.blocks {
            self.medium.write(place, &data);
        }
    }

    /// Lets a block fail to read until it is written anew.
    pub fn make_unreadable(&mut self, block: u64) {
        self.unreadable.insert(self.place(block));
    }

    /// What is left of a page that was being programmed when power failed.
    fn tear(&mut self, torn: Torn) {
        // What vanishes is on no page.
        let is_somewhere = |(place, _): &&(u64, Block)| *place < self.blocks;
        let Some(&(some, _)) = torn.blocks.iter().find(is_somewhere) else {
            return;
        };
        let per_page = self.controller.blocks_per_page();
        let first = some - some % per_page;
        let new_bytes = (per_page * BLOCK_BYTES as u64 * torn.done) >> 16;
        for place in first..first + per_page {
            let mut data = [0; BLOCK_BYTES];
            match self.defects.torn_page {
                TornPage::Old => return,
                TornPage::Unreadable => {
                    self.unreadable.insert(place);
                    continue;
                }
                TornPage::Garbage => {
                    let words = data.as_chunks_mut::<8>().0;
                    words.fill_with(|| self.random.next_u64().to_le_bytes());
                }
                TornPage::Mixed => {
                    match torn.new_data(place) {
                        Some(new) => data = *new,
                        None => self.medium.read(place, &mut data),
                    }
                    let new = new_bytes.saturating_sub((place - first) * BLOCK_BYTES as u64);
                    data[(new as usize).min(BLOCK_BYTES)..].fill(0xFF);
                }
            }
            self.medium.write(place, &data);
        }
    }

    /// Where a block is in truth; past the end if nowhere.
    fn place(&self, block: u64) -> u64 {
        match self.defects.counterfeit {
            Some(Counterfeit::Wraps { real_blocks }) => block % real_blocks,
            Some(Counterfeit::Vanishes { real_blocks }) if block >= real_blocks.get() => u64::MAX,
            _ => block,
        }
    }

    /// Where consecutive blocks are in truth.
    fn places(&self, start: u64, count: u64) -> [Range<u64>; 2] {
        match self.defects.counterfeit {
            None => [start..start + count, 0..0],
            Some(Counterfeit::Vanishes { real_blocks }) => {
                let real = real_blocks.get();
                [start.min(real)..(start + count).min(real), 0..0]
            }
            Some(Counterfeit::Wraps { real_blocks }) => {
                let (real, first) = (real_blocks.get(), start % real_blocks);
                let end = first + count.min(real);
                [first..end.min(real), 0..end.saturating_sub(real)]
            }
        }
    }

    fn check_worn_out(&self) -> Result<(), CardError> {
        match self.controller.is_worn_out() {
            true => Err(CardError::WornOut),
            false => Ok(()),
        }
    }

    fn check(&self, start: u64, count: u64) -> Result<(), CardError> {
        let end = start.saturating_add(count);
        if end > self.blocks {
            return Err(CardError::OutOfRange {
                block: end - 1,
                blocks: self.blocks,
            });
        }
        Ok(())
    }
}
