//! The memory of a desk. A free buffer keeps the blocks of its last short read, so that a directory is not read again
//! for each of its entries.
//!
//! ```text
//!   free ── take ──> read or write under way, lent ── give_back ──> free
//!     └──── take_holding (blocks that it still holds) ───> lent ──────┘
//! ```

use cardiograph_card::Block;

/// Maximum number of buffers of a desk.
pub const READ_BUFFERS_MAX: usize = 4;

/// A buffer of a desk.
pub(crate) struct Buffer<'a> {
    number: u8,
    pub(crate) blocks: &'a mut [Block],
}

/// Consecutive blocks of the card that a buffer holds.
#[derive(Clone, Copy)]
struct Held {
    start: u32,
    count: u32,
}

/// All buffers of a desk.
pub(crate) struct Buffers<'a> {
    free: [Option<Buffer<'a>>; READ_BUFFERS_MAX],
    /// Number of buffers, including those in use.
    count: usize,
    /// Number of blocks in a buffer.
    blocks: usize,
    /// Blocks that each buffer holds, free or not, if they are those on the card.
    held: [Option<Held>; READ_BUFFERS_MAX],
    /// The buffer that was given back last.
    last: u8,
}

impl<'a> Buffers<'a> {
    /// Splits memory into up to [`READ_BUFFERS_MAX`] buffers of equal size.
    pub(crate) fn new(blocks: &'a mut [Block], buffers: usize) -> Self {
        let count = buffers.clamp(1, READ_BUFFERS_MAX);
        let size = blocks.len() / count;
        let mut rest = blocks;
        let free = core::array::from_fn(|at| {
            if at >= count || size == 0 {
                return None;
            }
            let (blocks, others) = core::mem::take(&mut rest).split_at_mut(size);
            rest = others;
            let number = at as u8;
            Some(Buffer { number, blocks })
        });
        Buffers {
            free,
            count: if size == 0 { 0 } else { count },
            blocks: size,
            held: [None; READ_BUFFERS_MAX],
            last: 0,
        }
    }

    /// Returns the number of buffers, including those in use.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of blocks in a buffer.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the number of free buffers.
    pub(crate) fn free(&self) -> usize {
        self.free.iter().flatten().count()
    }

    /// Takes a free buffer: one that holds nothing, or else preferably not the one given back last.
    pub(crate) fn take(&mut self) -> Option<Buffer<'a>> {
        let free = self.free.iter().flatten();
        let number = free.map(|buffer| buffer.number).min_by_key(|number| {
            (
                self.held[usize::from(*number)].is_some(),
                *number == self.last,
            )
        })?;
        self.held[usize::from(number)] = None;
        self.free[usize::from(number)].take()
    }

    /// Takes a free buffer that holds a block; returns it, the position of the block in it, and the number of blocks
    /// from there on.
    pub(crate) fn take_holding(&mut self, block: u32) -> Option<(Buffer<'a>, usize, usize)> {
        for (buffer, held) in self.free.iter_mut().zip(&self.held) {
            if let Some(held) = held
                && let Some(at) = block.checked_sub(held.start)
                && at < held.count
                && let Some(buffer) = buffer.take()
            {
                return Some((buffer, at as usize, (held.count - at) as usize));
            }
        }
        None
    }

    /// Notes the blocks that were read into a buffer.
    pub(crate) fn hold(&mut self, buffer: &Buffer, start: u32, count: usize) {
        let count = count as u32;
        self.held[usize::from(buffer.number)] = Some(Held { start, count });
    }

    /// Notes that blocks of the card are written: no buffer holds them any more.
    pub(crate) fn forget(&mut self, start: u32, count: u32) {
        for held in &mut self.held {
            held.take_if(|held| start < held.start + held.count && held.start < start + count);
        }
    }

    /// Notes that the card may have changed.
    pub(crate) fn forget_all(&mut self) {
        self.held = [None; READ_BUFFERS_MAX];
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give_back(&mut self, buffer: Buffer<'a>) {
        self.last = buffer.number;
        let number = usize::from(buffer.number);
        self.free[number] = Some(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(buffer: Option<Buffer>) -> Option<u8> {
        buffer.map(|buffer| buffer.number)
    }

    /// Returns two free buffers of 8 blocks: the first holds blocks 100 to 107, the second 200 to 203.
    fn holding<'a>(blocks: &'a mut [Block; 16]) -> Buffers<'a> {
        let mut buffers = Buffers::new(blocks, 2);
        let (second, first) = (buffers.take().unwrap(), buffers.take().unwrap());
        buffers.hold(&first, 100, 8);
        buffers.hold(&second, 200, 4);
        buffers.give_back(first);
        buffers.give_back(second);
        buffers
    }

    #[test]
    fn a_free_buffer_lends_the_blocks_that_it_holds() {
        let mut blocks = [[0; 512]; 16];
        let mut buffers = holding(&mut blocks);
        for outside in [99, 108, 199, 204] {
            assert!(buffers.take_holding(outside).is_none(), "block {outside}");
        }
        let (buffer, at, rest) = buffers.take_holding(107).unwrap();
        assert_eq!((buffer.number, at, rest), (0, 7, 1));
        assert!(buffers.take_holding(100).is_none(), "the buffer is in use");
        buffers.give_back(buffer);
        let (buffer, at, rest) = buffers.take_holding(201).unwrap();
        assert_eq!((buffer.number, at, rest), (1, 1, 3));
    }

    #[test]
    fn written_blocks_are_forgotten() {
        for (start, count, is_held) in [
            (92, 8, true),
            (92, 9, false),
            (107, 1, false),
            (108, 8, true),
            (0, 1000, false),
        ] {
            let mut blocks = [[0; 512]; 16];
            let mut buffers = holding(&mut blocks);
            buffers.forget(start, count);
            let found = buffers.take_holding(100).is_some();
            assert_eq!(found, is_held, "{count} blocks from {start}");
        }
        let mut blocks = [[0; 512]; 16];
        let mut buffers = holding(&mut blocks);
        let (buffer, ..) = buffers.take_holding(100).unwrap();
        buffers.forget(104, 1);
        buffers.give_back(buffer);
        assert!(buffers.take_holding(100).is_none(), "written while in use");
        buffers.forget_all();
        assert!(buffers.take_holding(200).is_none());
    }

    #[test]
    fn a_buffer_that_holds_nothing_is_used_first() {
        let mut blocks = [[0; 512]; 16];
        let mut buffers = holding(&mut blocks);
        // The second was given back last.
        assert_eq!(number(buffers.take()), Some(0));
        let mut blocks = [[0; 512]; 16];
        let mut buffers = holding(&mut blocks);
        buffers.forget(200, 1);
        let taken = buffers.take().unwrap();
        assert_eq!(taken.number, 1);
        buffers.give_back(taken);
        assert_eq!(number(buffers.take()), Some(1), "it holds nothing");
        assert_eq!((buffers.count(), buffers.free()), (2, 1));
    }
}
