//! A card in memory: a stream's blocks are durable once it has ended, and gone if the card fails before.

use super::{World, step_aside};
use cardiograph_card::{Block, Medium, WriteError};

/// To initialise a card, in us.
const ACQUIRE_US: u64 = 5_000;

/// Why the card did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has failed, and was not acquired again.
    Failed,
    /// There are no such blocks.
    NotThere,
}

/// What operations take.
#[derive(Clone, Copy)]
pub struct Costs {
    pub read_us: u64,
    pub begin_us: u64,
    /// Each block of a stream.
    pub push_us: u64,
    pub end_us: u64,
}

pub struct Memory<'a, 'w> {
    world: &'a World<'w>,
    costs: Costs,
    failures: Vec<u64>,
    has_failed: bool,
    /// Where the next block of the open stream goes.
    next: Option<u32>,
    /// Blocks that are not durable.
    pending: Vec<(u32, Block)>,
}

impl<'a, 'w> Memory<'a, 'w> {
    pub fn new(world: &'a World<'w>, costs: Costs, failures: Vec<u64>) -> Self {
        Memory {
            world,
            costs,
            failures,
            has_failed: false,
            next: None,
            pending: Vec::new(),
        }
    }

    async fn pass(&mut self, us: u64) -> Result<(), Refused> {
        step_aside().await;
        self.world.advance(us);
        let operation = self.world.operations.get();
        self.world.operations.set(operation + 1);
        self.has_failed |= self.failures.contains(&operation);
        if self.has_failed {
            self.forget();
            return Err(Refused::Failed);
        }
        Ok(())
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
            kept_blocks: 0,
        }
    }
}

impl Medium for Memory<'_, '_> {
    type Error = Refused;

    async fn acquire(&mut self) -> Result<(), Refused> {
        step_aside().await;
        self.world.advance(ACQUIRE_US);
        self.forget();
        self.has_failed = false;
        Ok(())
    }

    fn blocks(&self) -> u32 {
        self.world.disk.borrow().count()
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Refused> {
        self.pass(self.costs.read_us).await?;
        // A stream that is open is stopped for it, and its next block opens it again.
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

    async fn begin(&mut self, start: u32, _: u32) -> Result<(), WriteError<Refused>> {
        assert!(self.next.is_none(), "a stream is open");
        self.pass(self.costs.begin_us)
            .await
            .map_err(Self::refused)?;
        self.next = Some(start);
        Ok(())
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Refused>> {
        let next = self.next.expect("a stream is open");
        self.pass(self.costs.push_us).await.map_err(Self::refused)?;
        self.pending.push((next, *block));
        self.next = Some(next + 1);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<Refused>> {
        assert!(self.next.is_some(), "no stream is open");
        self.pass(self.costs.end_us).await.map_err(Self::refused)?;
        self.settle();
        self.next = None;
        Ok(())
    }
}
