//! The card as a block device: what it stores, and how long it is busy.

use crate::Profile;
use crate::medium::Medium;
use crate::translation::Translation;
use std::fmt;

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;

/// The bytes of one block.
pub type Block = [u8; BLOCK_BYTES];

/// A block past the end of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The block asked for.
    pub block: u64,
    /// Blocks there are.
    pub blocks: u64,
}

impl std::error::Error for OutOfRange {}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "block {} is past the card's {} blocks",
            self.block, self.blocks
        )
    }
}

/// A simulated card at the level of blocks.
///
/// A write is durable when it is no longer busy: what is left in a RAM page is in the log as well.
pub struct Card {
    medium: Medium,
    translation: Translation,
    command_ns: u64,
    blocks: u64,
    stream: Option<Stream>,
}

/// A write of consecutive blocks that is under way, its length not yet known.
#[derive(Default)]
struct Stream {
    /// The first block that is not in flash yet.
    first: u64,
    /// Blocks of one page, in the controller's RAM: lost if the stream is not ended.
    pending: Vec<Block>,
}

impl Card {
    /// A card of this profile, filled once and then cleaned up: every page holds data, the log is
    /// empty. `seed` decides the spread of its times.
    pub fn new(profile: &Profile, seed: u64) -> Card {
        Card {
            medium: Medium::default(),
            translation: Translation::new(profile, seed),
            command_ns: u64::from(profile.controller.command_us) * 1000,
            blocks: profile.capacity_bytes / BLOCK_BYTES as u64,
            stream: None,
        }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads consecutive blocks by one command; returns how long the card keeps the host waiting, in
    /// ns.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is read.
    pub fn read(&mut self, start: u64, data: &mut [Block]) -> Result<u64, OutOfRange> {
        self.check(start, data.len())?;
        let busy_ns = self.translation.read_ns(start, data.len() as u64);
        self.load(start, data);
        Ok(self.command_ns + busy_ns)
    }

    /// Writes consecutive blocks by one command; returns how long the card is busy, in ns.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is written.
    pub fn write(&mut self, start: u64, data: &[Block]) -> Result<u64, OutOfRange> {
        self.check(start, data.len())?;
        let busy_ns = self.translation.write_ns(start, data.len() as u64);
        self.store(start, data);
        Ok(self.command_ns + busy_ns)
    }

    /// Reads one block of a stream of consecutive ones; returns how long the host waits, in ns. A page
    /// is fetched once, the first block of a stream after the command's own time.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is read.
    pub fn stream_read(
        &mut self,
        block: u64,
        first: bool,
        data: &mut Block,
    ) -> Result<u64, OutOfRange> {
        self.check(block, 1)?;
        self.medium.read(block, data);
        let command_ns = if first { self.command_ns } else { 0 };
        if first || block.is_multiple_of(self.translation.blocks_per_page()) {
            return Ok(command_ns + self.translation.read_ns(block, 1));
        }
        Ok(0)
    }

    /// Writes the next block of a stream, or the first of a new one; returns how long the card is
    /// busy, in ns. It is durable only once the stream has ended and that busy is over: blocks are
    /// gathered in RAM until their page is whole.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is written.
    pub fn stream_write(&mut self, block: u64, data: &Block) -> Result<u64, OutOfRange> {
        self.check(block, 1)?;
        let (mut stream, mut busy_ns) = match self.stream.take() {
            Some(stream) => (stream, 0),
            None => (Stream::default(), self.command_ns),
        };
        if block != stream.first + stream.pending.len() as u64 {
            busy_ns += self.flush(&mut stream);
            stream.first = block;
        }
        stream.pending.push(*data);
        if (block + 1).is_multiple_of(self.translation.blocks_per_page()) {
            busy_ns += self.flush(&mut stream);
        }
        self.stream = Some(stream);
        Ok(busy_ns)
    }

    /// Ends a stream of writes; returns how long the card is busy, in ns.
    pub fn stream_end(&mut self) -> u64 {
        match self.stream.take() {
            Some(mut stream) => self.flush(&mut stream),
            None => 0,
        }
    }

    /// Forgets a stream of writes with what is in RAM only, as a reset in its midst does.
    pub fn stream_abandon(&mut self) {
        self.stream = None;
    }

    fn flush(&mut self, stream: &mut Stream) -> u64 {
        let count = stream.pending.len() as u64;
        if count == 0 {
            return 0;
        }
        let busy_ns = self.translation.write_ns(stream.first, count);
        self.store(stream.first, &stream.pending);
        stream.pending.clear();
        stream.first += count;
        busy_ns
    }

    /// Erases consecutive blocks, which read as zeros from now on; returns how long the card is busy,
    /// in ns.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is erased.
    pub fn erase(&mut self, start: u64, count: u64) -> Result<u64, OutOfRange> {
        self.check(start, count as usize)?;
        self.medium.erase(start..start + count);
        Ok(self.command_ns + self.translation.forget_ns(start, count))
    }

    /// Blocks as they are stored, past the controller and outside time.
    pub fn load(&self, start: u64, data: &mut [Block]) {
        for (block, data) in (start..).zip(data) {
            self.medium.read(block, data);
        }
    }

    /// Stores blocks past the controller and outside time, as a card comes formatted from its maker.
    pub fn store(&mut self, start: u64, data: &[Block]) {
        for (block, data) in (start..).zip(data) {
            self.medium.write(block, data);
        }
    }

    /// Blocks of flash erased so far.
    pub fn erases(&self) -> u64 {
        self.translation.erases()
    }

    fn check(&self, start: u64, count: usize) -> Result<(), OutOfRange> {
        let end = start.saturating_add(count as u64);
        if end > self.blocks {
            return Err(OutOfRange {
                block: end - 1,
                blocks: self.blocks,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zero() {
        let mut card = Card::new(&Profile::named("class10-16g").unwrap(), 1);
        card.write(100, &[[7; 512], [8; 512]]).unwrap();
        let mut data = [[1; 512]; 4];
        card.read(99, &mut data).unwrap();
        assert_eq!(data, [[0; 512], [7; 512], [8; 512], [0; 512]]);
    }

    #[test]
    fn a_stream_costs_what_one_command_for_all_its_blocks_costs() {
        let profile = Profile::named("class10-16g").unwrap();
        let blocks: Vec<Block> = (0..21).map(|i| [i; 512]).collect();
        let mut whole = Card::new(&profile, 1);
        let whole_ns = whole.write(5, &blocks).unwrap();
        let mut stream = Card::new(&profile, 1);
        let accepted_ns: u64 = (5..)
            .zip(&blocks)
            .map(|(place, block)| stream.stream_write(place, block).unwrap())
            .sum();
        assert_eq!(accepted_ns + stream.stream_end(), whole_ns);
        let mut data = [[0; 512]; 21];
        stream.load(5, &mut data);
        assert_eq!(data[..], blocks);
    }

    #[test]
    fn a_stream_that_is_not_ended_leaves_the_page_under_way_as_it_was() {
        let mut card = Card::new(&Profile::named("class10-16g").unwrap(), 1);
        for block in 0..10 {
            card.stream_write(block, &[9; 512]).unwrap();
        }
        card.stream_abandon();
        let mut data = [[1; 512]; 10];
        card.load(0, &mut data);
        assert_eq!(data[7], [9; 512]);
        assert_eq!(data[8..], [[0; 512]; 2]);
    }

    #[test]
    fn erased_blocks_are_zero_and_their_neighbours_are_not() {
        let mut card = Card::new(&Profile::named("class10-16g").unwrap(), 1);
        card.write(0, &[[7; 512]; 40]).unwrap();
        card.erase(3, 30).unwrap();
        let mut data = [[1; 512]; 40];
        card.load(0, &mut data);
        for (block, data) in data.iter().enumerate() {
            let value = if (3..33).contains(&block) { 0 } else { 7 };
            assert_eq!(data, &[value; 512], "block {block}");
        }
    }

    #[test]
    fn blocks_past_the_end_are_refused() {
        let mut card = Card::new(&Profile::named("class10-16g").unwrap(), 1);
        let blocks = card.blocks();
        assert!(card.write(blocks - 1, &[[1; 512]; 2]).is_err());
        assert!(card.read(u64::MAX, &mut [[0; 512]]).is_err());
    }
}
