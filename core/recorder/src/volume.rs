//! The file system, as the recorder sees it: files of consecutive blocks.

use cardiograph_card::Block;

/// Blocks of a card, as a file system wants them. What stands behind it may write samples first.
// Executors are of one thread here: whether futures can be sent is the implementation's.
#[allow(async_fn_in_trait)]
pub trait Blocks {
    /// Why something was not done.
    type Error;

    /// Blocks there are.
    fn blocks(&self) -> u32;
    /// Reads consecutive blocks.
    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Self::Error>;
    /// Writes `count` consecutive blocks, with one command; they are durable when it returns. `make` is
    /// asked for each in turn, from 0, and may be asked again for one that has to be repeated.
    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), Self::Error>;
}

/// Consecutive blocks of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first block.
    pub start: u32,
    /// How many.
    pub blocks: u32,
}

/// A short name as it stands in a directory: eight and three characters, padded with blanks.
pub type Name = [u8; 11];

/// A file that is reserved for a recording, and not closed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Which of the unfinished files it is.
    pub slot: u8,
    /// Its name.
    pub name: Name,
    /// Where its blocks are.
    pub extent: Extent,
    /// A number that no other recording on the card has, so that what was there before is not taken for
    /// part of this one.
    pub epoch: u32,
    /// What the recorder noted about it when it was reserved.
    pub note: u32,
}

/// What a file is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The letters that the name begins with.
    pub prefix: [u8; 3],
    /// What the name ends with.
    pub extension: [u8; 3],
    /// Blocks that are wanted. The file may be shorter if no free run is as long.
    pub blocks: u32,
    /// Least blocks that make sense.
    pub blocks_min: u32,
    /// Kept with the file until it is closed.
    pub note: u32,
}

/// What kind of trouble an error of a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room for another file.
    NoSpace,
    /// The card failed, or is gone.
    Card,
    /// The file system cannot be used as it is.
    Volume,
}

/// Most files that can be unfinished at once: one being written and one prepared for each stream.
pub const RESERVED_MAX: usize = 8;

/// A file system on blocks. An operation that is cut off by a power failure is finished or undone by the
/// next [`mount`](Volume::mount).
#[allow(async_fn_in_trait)]
pub trait Volume<B: Blocks> {
    /// Why something was not done.
    type Error;

    /// What kind of trouble an error is.
    fn trouble(error: &Self::Error) -> Trouble;
    /// Finds the file system and brings it in order. Files that were reserved and not closed are in
    /// [`reserved`](Volume::reserved) afterwards.
    async fn mount(&mut self, card: &mut B) -> Result<(), Self::Error>;
    /// The unfinished file in this slot, of [`RESERVED_MAX`].
    fn reserved(&self, slot: u8) -> Option<Reserved>;
    /// Makes a file of consecutive blocks, with what is in them. It is in its directory in its full
    /// length.
    async fn reserve(&mut self, card: &mut B, request: Request) -> Result<Reserved, Self::Error>;
    /// Gives a file its true length; blocks beyond are free again.
    async fn close(&mut self, card: &mut B, slot: u8, bytes: u64) -> Result<(), Self::Error>;
    /// Removes an unfinished file.
    async fn discard(&mut self, card: &mut B, slot: u8) -> Result<(), Self::Error>;
    /// Removes the finished recording with the lowest number, to make room; returns its name.
    async fn remove_oldest(&mut self, card: &mut B) -> Result<Option<Name>, Self::Error>;
}
