//! Data stored on a card, and the busy time of each command.
//!
//! ```text
//!   accepted ──> in flight ──────── busy ends ──> durable
//!                    │
//!                    └── power fails before the page is programmed ──> old data
//! ```
//!
//! The diagram shows a card that meets the specification. [`Defects`] describe cards that do not. A card
//! with defects also stores the data that it would hold without them, so that a test can compare the two
//! ([`Card::load_ideal`]).

mod in_flight;

use crate::defects::{BitErrors, Counterfeit, Defects, TornPage};
use crate::state::{Reader, Writer};
use crate::storage::{BlockSet, Storage};
use crate::{BLOCK_BYTES, Busy, Controller, Profile, StateError};
use cardiograph_sim_world::{Random, Seed};
use in_flight::{InFlight, Torn};
use std::fmt;
use std::ops::Range;

/// The bytes of one block.
pub type Block = [u8; BLOCK_BYTES];

/// Number of times that a page must be read before its bit errors can be corrected.
const READS_TO_CORRECT: u32 = 8;

/// Error of a card operation. The card is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardError {
    /// A block is past the end of the card.
    OutOfRange {
        /// Number of the requested block.
        block: u64,
        /// Capacity of the card in blocks.
        blocks: u64,
    },
    /// A page has more bit errors than the controller can correct.
    Unreadable {
        /// Number of the requested block.
        block: u64,
    },
    /// No flash block is left to write to: the card is worn out and can only be read.
    WornOut,
}

impl std::error::Error for CardError {}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CardError::OutOfRange { block, blocks } => {
                write!(
                    f,
                    "block {block} is past the end of the card, which has {blocks} blocks"
                )
            }
            CardError::Unreadable { block } => {
                write!(
                    f,
                    "block {block} has more bit errors than the card can correct"
                )
            }
            CardError::WornOut => f.write_str("the card is worn out and can only be read"),
        }
    }
}

/// A simulated card, addressed by blocks.
///
/// All times are in ns of one clock and must not decrease. The caller must not start a command before the
/// busy time of the previous one is over.
#[derive(Clone)]
pub struct Card {
    /// Current contents.
    storage: Storage,
    /// Contents that a card without defects would have. Stored only for a card that has defects or has been
    /// damaged.
    ideal: Option<Storage>,
    unreadable: BlockSet,
    defects: Defects,
    random: Random,
    controller: Controller,
    blocks: u64,
    stream: Option<Stream>,
    in_flight: InFlight,
}

/// A write of consecutive blocks in progress; its length is not yet known.
#[derive(Clone, Default)]
struct Stream {
    /// Number of the first block of the stream that is not in flash yet.
    first: u64,
    /// Blocks of one page in the controller's RAM: lost unless the stream is ended.
    pending: Vec<Block>,
}

impl Card {
    /// Creates a card that has been filled once and then garbage collected: every page holds data, and the
    /// log is as full as the profile specifies. `seed` determines the random spread of operation times.
    pub fn new(profile: &Profile, seed: Seed) -> Card {
        Card::with_defects(profile, Defects::default(), seed)
    }

    /// Creates a card with defects.
    pub fn with_defects(profile: &Profile, defects: Defects, seed: Seed) -> Card {
        let controller = Controller::new(profile, seed);
        Card {
            storage: Storage::default(),
            ideal: (!defects.is_none()).then(Storage::default),
            unreadable: BlockSet::default(),
            in_flight: InFlight::new(defects.volatile_blocks, controller.receives_ahead()),
            defects,
            random: seed.stream("defects"),
            controller,
            blocks: profile.capacity_bytes / BLOCK_BYTES as u64,
            stream: None,
        }
    }

    /// Writes the state of a card without power.
    pub(crate) fn write_state(&self, to: &mut Writer) -> Result<(), StateError> {
        if self.ideal.is_some() {
            return Err(StateError::Defects);
        }
        self.storage.write_state(to);
        let mut unreadable: Vec<u64> = self.unreadable.iter().copied().collect();
        unreadable.sort_unstable();
        to.u32(unreadable.len() as u32);
        unreadable.into_iter().for_each(|block| to.u64(block));
        self.controller.write_state(to);
        Ok(())
    }

    /// Creates a card in a saved state, switched on at time 0.
    pub(crate) fn read_state(profile: &Profile, from: &mut Reader) -> Result<Card, StateError> {
        // The state replaces everything that the seed determines.
        let mut card = Card::new(profile, Seed::new(0));
        card.storage = Storage::read_state(from, card.blocks)?;
        for _ in 0..from.u32()? {
            card.unreadable.insert(from.u64()?);
        }
        card.controller.read_state(from)?;
        Ok(card)
    }

    /// Returns the capacity in blocks that the card reports.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads one of several consecutive blocks; returns how long the host waits, in ns. Each page is fetched
    /// from flash once; with the `first` block of a command, the wait includes the command time.
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
        self.check_range(block, 1)?;
        let physical_block = self.physical_block(block);
        if self.unreadable.contains(&physical_block) {
            return Err(CardError::Unreadable { block });
        }
        self.read_stored(block, data);
        let command_ns = match first {
            true => self.controller.command(now_ns),
            false => 0,
        };
        if first || block.is_multiple_of(self.controller.blocks_per_page()) {
            return Ok(command_ns + self.fetch(now_ns + command_ns, block, data)?);
        }
        Ok(0)
    }

    /// Fetches the page that contains a block and applies bit errors; returns how long this takes, in ns.
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

    /// Writes one block with a command of its own; returns how long the card is busy, in ns. The block is
    /// durable once the busy time is over.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`] and [`CardError::WornOut`].
    pub fn write(&mut self, now_ns: u64, block: u64, data: &Block) -> Result<u64, CardError> {
        self.check_range(block, 1)?;
        self.check_not_worn_out()?;
        let busy = self.controller.write_by_command(now_ns, block, 1);
        self.program(now_ns, busy, block, std::slice::from_ref(data));
        Ok(busy.total_ns)
    }

    /// Writes the next block of a stream, or the first block of a new stream; returns how long the card is
    /// busy, in ns. The host can rely on the block being durable only once the stream has ended and the busy
    /// time after its end is over: the card collects blocks in RAM until a page is complete.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`] and [`CardError::WornOut`].
    pub fn stream_write(
        &mut self,
        now_ns: u64,
        block: u64,
        data: &Block,
    ) -> Result<u64, CardError> {
        self.check_range(block, 1)?;
        self.check_not_worn_out()?;
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
            Some(mut stream) => {
                let busy_ns = self.flush(now_ns, &mut stream);
                busy_ns + self.controller.settle(now_ns.saturating_add(busy_ns))
            }
            None => 0,
        }
    }

    /// Discards a stream of writes with the data still in RAM, as a reset in mid-stream does.
    pub fn stream_abandon(&mut self) {
        self.stream = None;
    }

    /// Erases consecutive blocks, which read as zeros from now on; returns how long the card is busy, in
    /// ns.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`]; nothing is erased.
    pub fn erase(&mut self, now_ns: u64, start: u64, count: u64) -> Result<u64, CardError> {
        self.check_range(start, count)?;
        self.in_flight.complete();
        for physical_ranges in self.physical_ranges(start, count) {
            self.unreadable
                .retain(|physical_block| !physical_ranges.contains(physical_block));
            self.storage.erase(physical_ranges);
        }
        if let Some(ideal) = &mut self.ideal {
            ideal.erase(start..start + count);
        }
        let command_ns = self.controller.command(now_ns);
        Ok(command_ns + self.controller.discard(now_ns + command_ns, start, count))
    }

    /// Cuts the power. Data in RAM is lost, and blocks in flight keep their old contents; see [`Defects`] for cards
    /// that lose more.
    pub fn power_cut(&mut self, now_ns: u64) {
        self.stream = None;
        self.controller.power_cut(now_ns);
        let torn = self.in_flight.roll_back(
            now_ns,
            &mut self.storage,
            &mut self.unreadable,
            self.ideal.as_mut(),
        );
        if let Some(torn) = torn {
            self.tear_page(torn);
        }
    }

    /// Restores the card's power.
    pub fn power_on(&mut self, now_ns: u64) {
        self.controller.power_on(now_ns);
    }

    /// Extends the current busy time: blocks in flight stay in flight.
    pub(crate) fn extend_busy(&mut self, now_ns: u64, extra_ns: u64) {
        self.in_flight.extend_busy(now_ns, extra_ns);
    }

    /// Reads stored blocks directly, bypassing the controller and without taking time.
    pub fn load(&self, start: u64, data: &mut [Block]) {
        for (block, data) in (start..).zip(data) {
            self.read_stored(block, data);
        }
    }

    /// Reads the stored contents of a block; zeros if no storage backs it.
    fn read_stored(&self, block: u64, data: &mut Block) {
        match self.physical_block(block) {
            physical_block if physical_block < self.blocks => {
                self.storage.read(physical_block, data)
            }
            _ => data.fill(0),
        }
    }

    /// Reads the blocks that a card without defects would hold.
    pub fn load_ideal(&self, start: u64, data: &mut [Block]) {
        let storage = self.ideal.as_ref().unwrap_or(&self.storage);
        for (block, data) in (start..).zip(data) {
            storage.read(block, data);
        }
    }

    /// Returns true if another card holds the same data; fast if one card is a clone of the other.
    pub fn holds_same(&self, other: &Card) -> bool {
        self.unreadable == other.unreadable && self.storage.is_same(&other.storage)
    }

    /// Stores blocks directly, bypassing the controller and without taking time, like the factory format of
    /// a card.
    pub fn store(&mut self, start: u64, data: &[Block]) {
        for (block, data) in (start..).zip(data) {
            self.store_block(block, data);
        }
    }

    /// Releases the host memory that the simulation uses for consecutive blocks, which read as zeros from
    /// now on. The card's timing is unchanged.
    pub fn release_memory(&mut self, start: u64, count: u64) {
        for physical_ranges in self.physical_ranges(start, count) {
            self.storage.erase(physical_ranges);
        }
        if let Some(ideal) = &mut self.ideal {
            ideal.erase(start..start + count);
        }
    }

    /// Returns the controller: timing and energy.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the controller mutably, to record a trace of its operations.
    pub fn controller_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    fn flush(&mut self, now_ns: u64, stream: &mut Stream) -> u64 {
        let count = stream.pending.len() as u64;
        if count == 0 {
            return 0;
        }
        let busy = self.controller.write(now_ns, stream.first, count);
        self.program(now_ns, busy, stream.first, &stream.pending);
        stream.pending.clear();
        stream.first += count;
        busy.total_ns
    }

    /// Programs blocks of one page, which become durable at the end of the busy time.
    fn program(&mut self, now_ns: u64, busy: Busy, start: u64, data: &[Block]) {
        let end_ns = now_ns.saturating_add(busy.total_ns + busy.behind_ns);
        self.in_flight
            .begin(now_ns, end_ns - busy.program_ns..end_ns);
        for (block, data) in (start..).zip(data) {
            let physical_block = self.physical_block(block);
            self.in_flight.save_old(
                block,
                physical_block,
                &self.storage,
                &self.unreadable,
                self.ideal.as_ref(),
            );
            self.store_block(block, data);
        }
    }

    fn store_block(&mut self, block: u64, data: &Block) {
        let physical_block = self.physical_block(block);
        if physical_block < self.blocks {
            self.storage.write(physical_block, data);
            self.unreadable.remove(&physical_block);
        }
        if let Some(ideal) = &mut self.ideal {
            ideal.write(block, data);
        }
    }

    /// Flips a stored bit without the card noticing, like charge leaking from a cell.
    pub fn flip_bit(&mut self, block: u64, bit: usize) {
        self.ideal.get_or_insert_with(|| self.storage.clone());
        let physical_block = self.physical_block(block);
        let mut data = [0; BLOCK_BYTES];
        self.read_stored(block, &mut data);
        data[bit / 8 % BLOCK_BYTES] ^= 1 << (bit % 8);
        if physical_block < self.blocks {
            self.storage.write(physical_block, &data);
        }
    }

    /// Makes reads of a block fail until it is rewritten.
    pub fn make_unreadable(&mut self, block: u64) {
        self.unreadable.insert(self.physical_block(block));
    }

    /// Damages a page whose programming was interrupted by a power failure, according to the card's
    /// defects.
    fn tear_page(&mut self, torn: Torn) {
        // Blocks without backing storage are not on any page.
        let is_somewhere = |(physical_block, _): &&(u64, Block)| *physical_block < self.blocks;
        let Some(&(some, _)) = torn.blocks.iter().find(is_somewhere) else {
            return;
        };
        let per_page = self.controller.blocks_per_page();
        let first = some - some % per_page;
        let new_bytes = (per_page * BLOCK_BYTES as u64 * torn.done) >> 16;
        for physical_block in first..first + per_page {
            let mut data = [0; BLOCK_BYTES];
            match self.defects.torn_page {
                TornPage::Old => return,
                TornPage::Unreadable => {
                    self.unreadable.insert(physical_block);
                    continue;
                }
                TornPage::Garbage => {
                    let words = data.as_chunks_mut::<8>().0;
                    words.fill_with(|| self.random.next_u64().to_le_bytes());
                }
                TornPage::Mixed => {
                    match torn.new_data(physical_block) {
                        Some(new) => data = *new,
                        None => self.storage.read(physical_block, &mut data),
                    }
                    let new =
                        new_bytes.saturating_sub((physical_block - first) * BLOCK_BYTES as u64);
                    data[(new as usize).min(BLOCK_BYTES)..].fill(0xFF);
                }
            }
            self.storage.write(physical_block, &data);
        }
    }

    /// Returns the physical block that backs a block; past the end if none does.
    fn physical_block(&self, block: u64) -> u64 {
        match self.defects.counterfeit {
            Some(Counterfeit::Wraps { real_blocks }) => block % real_blocks,
            Some(Counterfeit::Vanishes { real_blocks }) if block >= real_blocks.get() => u64::MAX,
            _ => block,
        }
    }

    /// Returns the physical ranges that back consecutive blocks.
    fn physical_ranges(&self, start: u64, count: u64) -> [Range<u64>; 2] {
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

    fn check_not_worn_out(&self) -> Result<(), CardError> {
        match self.controller.is_worn_out() {
            true => Err(CardError::WornOut),
            false => Ok(()),
        }
    }

    fn check_range(&self, start: u64, count: u64) -> Result<(), CardError> {
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
