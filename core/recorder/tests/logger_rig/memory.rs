//! A card in memory: blocks are durable once their write has ended, and lost if the card fails before.

use super::{World, step_aside};
use cardiograph_card::{Block, BlockDevice, WriteError};
use std::ops::Range;

/// Duration of initialising a card, in us.
const ACQUIRE_US: u64 = 5_000;

/// Maximum number of blocks in a write of the file system.
const SLICE_BLOCKS: u32 = 16;

/// Length of a flash page, in blocks.
const PAGE_BLOCKS: u32 = 64;

/// Faults of a card. Times are true times, not readings of the recorder's clock.
#[derive(Clone, Default)]
pub struct Faults {
    /// Time range in which the card is removed, in us.
    pub gone: Option<Range<u64>>,
    /// Time range in which the card refuses recordings but not the file system, in us.
    pub refuses_streams: Option<Range<u64>>,
    /// The first write that begins at or after this time takes this much longer, both in us.
    pub write_stall: Option<(u64, u64)>,
    /// The first write of the file system that begins at or after this time takes this much longer, both in us.
    pub step_stall: Option<(u64, u64)>,
    /// The first read that begins at or after this time takes this much longer, both in us.
    pub read_stall: Option<(u64, u64)>,
    /// Each write in this time range takes this much longer, in us.
    pub slow: Option<(Range<u64>, u64)>,
}

/// Reason why the card did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The card has failed and was not acquired again.
    Failed,
    /// The blocks do not exist.
    NotThere,
}

/// Durations of the operations.
#[derive(Clone, Copy)]
pub struct Costs {
    pub read_us: u64,
    pub begin_us: u64,
    /// Per block of a write.
    pub push_us: u64,
    pub end_us: u64,
}

pub struct Memory<'a, 'w> {
    world: &'a World<'w>,
    costs: Costs,
    failures: Vec<u64>,
    faults: Faults,
    has_failed: bool,
    /// Block address of the next block of the open write.
    next: Option<u32>,
    /// The open write belongs to a recording.
    is_recording: bool,
    /// Blocks that are not durable.
    pending: Vec<(u32, Block)>,
}

impl<'a, 'w> Memory<'a, 'w> {
    pub fn new(world: &'a World<'w>, costs: Costs, failures: Vec<u64>, faults: Faults) -> Self {
        Memory {
            world,
            costs,
            failures,
            faults,
            has_failed: false,
            next: None,
            is_recording: false,
            pending: Vec::new(),
        }
    }

    async fn pass(&mut self, us: u64) -> Result<(), Refused> {
        step_aside().await;
        self.world.advance(us);
        let operation = self.world.operations.get();
        self.world.operations.set(operation + 1);
        self.has_failed |= self.failures.contains(&operation) || self.is_in(&self.faults.gone);
        if self.has_failed {
            self.forget();
            return Err(Refused::Failed);
        }
        Ok(())
    }

    fn is_in(&self, time: &Option<Range<u64>>) -> bool {
        let now_us = self.world.now_us.get();
        time.as_ref().is_some_and(|time| time.contains(&now_us))
    }

    /// Returns the duration of a write including its stalls, in us.
    fn write_us(&mut self, us: u64) -> u64 {
        let now_us = self.world.now_us.get();
        let slow = self
            .faults
            .slow
            .iter()
            .filter(|(time, _)| time.contains(&now_us));
        let slow_us: u64 = slow.map(|(_, us)| us).sum();
        us + slow_us + stall_us(&mut self.faults.write_stall, now_us)
    }

    fn forget(&mut self) {
        self.pending.clear();
        self.next = None;
    }

    fn settle(&mut self) {
        let mut disk = self.world.disk.borrow_mut();
        for (block, data) in self.pending.drain(..) {
            disk.put(block, data);
        }
    }

    fn refused(cause: Refused) -> WriteError<Refused> {
        WriteError {
            cause,
            durable_blocks: 0,
        }
    }
}

/// Takes the stall if it is due.
fn stall_us(stall: &mut Option<(u64, u64)>, now_us: u64) -> u64 {
    let due = stall.take_if(|(from_us, _)| now_us >= *from_us);
    due.map_or(0, |(_, us)| us)
}

impl BlockDevice for Memory<'_, '_> {
    type Error = Refused;

    async fn acquire(&mut self) -> Result<(), Refused> {
        step_aside().await;
        self.world.advance(ACQUIRE_US);
        self.world.acquired.set(self.world.acquired.get() + 1);
        self.forget();
        self.has_failed = self.is_in(&self.faults.gone);
        match self.has_failed {
            true => Err(Refused::Failed),
            false => Ok(()),
        }
    }

    fn blocks(&self) -> u32 {
        self.world.disk.borrow().count()
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Refused> {
        let stall_us = stall_us(&mut self.faults.read_stall, self.world.now_us.get());
        self.pass(self.costs.read_us + stall_us).await?;
        // A read ends the open write, and the next block opens it again.
        self.settle();
        let disk = self.world.disk.borrow();
        if u64::from(start) + blocks.len() as u64 > u64::from(disk.count()) {
            return Err(Refused::NotThere);
        }
        for (block, data) in (start..).zip(blocks) {
            *data = *disk.block(block);
        }
        Ok(())
    }

    async fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<Refused>> {
        self.begin(start, blocks.len() as u32).await?;
        for block in blocks {
            self.push(block).await?;
        }
        self.end().await
    }

    async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteError<Refused>> {
        assert!(self.next.is_none(), "a write is already open");
        let mut us = self.costs.begin_us;
        if hint <= SLICE_BLOCKS {
            us += stall_us(&mut self.faults.step_stall, self.world.now_us.get());
        }
        self.pass(us).await.map_err(Self::refused)?;
        if hint > SLICE_BLOCKS && self.is_in(&self.faults.refuses_streams) {
            self.has_failed = true;
            return Err(Self::refused(Refused::Failed));
        }
        self.next = Some(start);
        self.is_recording = hint > SLICE_BLOCKS;
        Ok(())
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Refused>> {
        let next = self.next.expect("a write is open");
        let us = self.write_us(self.costs.push_us);
        self.pass(us).await.map_err(Self::refused)?;
        self.pending.push((next, *block));
        self.next = Some(next + 1);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<Refused>> {
        let next = self.next.expect("a write is open");
        if self.is_recording && !next.is_multiple_of(PAGE_BLOCKS) {
            self.world.torn.set(self.world.torn.get() + 1);
        }
        let us = self.write_us(self.costs.end_us);
        self.pass(us).await.map_err(Self::refused)?;
        self.settle();
        self.next = None;
        Ok(())
    }
}
