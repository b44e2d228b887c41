//! Cards in memory, and the slot that holds one of them.

use super::watch::OPEN;
use crate::Blocks;
use cardiograph_card::{Block, BlockDevice, WriteError};
use cardiograph_sim_world::Random;
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::future::poll_fn;
use core::ops::Range;
use core::task::Poll;
use embedded_hal_async::delay::DelayNs;
use std::sync::Arc;
use std::vec::Vec;

/// Number of blocks of a card: the minimum for FAT16.
pub(super) const CARD_BLOCKS: u32 = 4_300;

/// Durations of operations on a healthy card, in us.
const ACQUIRE_US: u64 = 2_000;
const READ_US: u64 = 100;
const BEGIN_US: u64 = 60;
const PUSH_US: u64 = 80;
const END_US: u64 = 300;

/// Maximum number of clock readings without any operation that takes time.
const LOOKS_MAX: u32 = 20_000;

/// Contents of a card: the initial blocks, and those written.
#[derive(Clone)]
pub(crate) struct Disk {
    first: Arc<Vec<Block>>,
    /// Index in `changed` plus one; 0 if the block was not written.
    place: Vec<u16>,
    changed: Vec<Block>,
}

impl Disk {
    pub(super) fn new(first: Vec<Block>) -> Disk {
        Disk {
            place: std::vec![0; first.len()],
            first: Arc::new(first),
            changed: Vec::new(),
        }
    }

    pub(super) fn block(&self, block: u32) -> &Block {
        match self.place[block as usize] {
            0 => &self.first[block as usize],
            place => &self.changed[usize::from(place) - 1],
        }
    }

    pub(super) fn bytes(&self, blocks: Range<u32>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(blocks.len() * 512);
        blocks.for_each(|block| bytes.extend_from_slice(self.block(block)));
        bytes
    }

    fn put(&mut self, block: u32, data: Block) {
        let place = &mut self.place[block as usize];
        if *place == 0 {
            self.changed.push(data);
            *place = self.changed.len() as u16;
        } else {
            self.changed[usize::from(*place) - 1] = data;
        }
    }
}

/// Access for recovery without a recorder.
impl Blocks for Disk {
    type Error = Infallible;

    fn blocks(&self) -> u32 {
        CARD_BLOCKS
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Infallible> {
        for (at, block) in (start..).zip(blocks) {
            *block = *self.block(at);
        }
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), Infallible> {
        for index in 0..count {
            let mut block = [0xA5; 512];
            make(index, &mut block);
            self.put(start + index, block);
        }
        Ok(())
    }
}

/// Error of a card that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

/// The card slot, and the virtual time.
pub(super) struct Slot {
    pub(super) now_us: Cell<u64>,
    looks: Cell<u32>,
    pub(super) cards: [RefCell<Disk>; 2],
    /// True for each card that was ever in the slot.
    pub(super) was_in: [Cell<bool>; 2],
    card: Cell<Option<usize>>,
    /// The card was acquired and has not failed since.
    pub(super) is_up: Cell<bool>,
    /// True if the next operation is to fail.
    fails: Cell<bool>,
    /// Number of slow operations left, and their extra time in us.
    slow: Cell<(u32, u64)>,
    /// Block address of the next block of the open write.
    next: Cell<Option<u32>>,
    /// Blocks of the open write, which are not durable.
    volatile: RefCell<Vec<(u32, Block)>>,
    /// True if a failing card may keep the beginning of the blocks that were not durable.
    keeps_some: bool,
    random: RefCell<Random>,
    /// True while something else uses up the volume.
    pub(super) is_taken: Cell<bool>,
}

impl Slot {
    pub(super) fn new(cards: [Disk; 2], keeps_some: bool, random: Random) -> Slot {
        Slot {
            now_us: Cell::new(0),
            looks: Cell::new(0),
            cards: cards.map(RefCell::new),
            was_in: [Cell::new(true), Cell::new(false)],
            card: Cell::new(Some(0)),
            is_up: Cell::new(false),
            fails: Cell::new(false),
            slow: Cell::new((0, 0)),
            next: Cell::new(None),
            volatile: RefCell::new(Vec::new()),
            keeps_some,
            random: RefCell::new(random),
            is_taken: Cell::new(false),
        }
    }

    pub(super) fn card(&self) -> Option<usize> {
        self.card.get()
    }

    pub(super) fn is_open(&self) -> bool {
        self.next.get().is_some()
    }

    /// Inserts a card, or removes it.
    pub(super) fn insert(&self, card: Option<usize>) {
        self.fail();
        self.card.set(card);
        if let Some(card) = card {
            self.was_in[card].set(true);
        }
    }

    /// Cuts the power.
    pub(super) fn cut(&self) {
        self.fail();
        self.fails.set(false);
        self.slow.set((0, 0));
    }

    pub(super) fn fail_next(&self) {
        self.fails.set(true);
    }

    pub(super) fn slow_down(&self, operations: u32, us: u64) {
        self.slow.set((operations, us));
    }

    fn fail(&self) {
        self.is_up.set(false);
        self.set_next(None);
        let mut volatile = self.volatile.borrow_mut();
        if self.keeps_some
            && let Some(card) = self.card.get()
        {
            let count = volatile.len() as u64 + 1;
            let kept = self.random.borrow_mut().below(count) as usize;
            let mut disk = self.cards[card].borrow_mut();
            for (block, data) in &volatile[..kept] {
                disk.put(*block, *data);
            }
        }
        volatile.clear();
    }

    fn set_next(&self, next: Option<u32>) {
        self.next.set(next);
        OPEN.set(self.is_up.get().then_some(next.is_some()));
    }

    fn settle(&self) {
        if let Some(card) = self.card.get() {
            let mut disk = self.cards[card].borrow_mut();
            for (block, data) in self.volatile.borrow_mut().drain(..) {
                disk.put(block, data);
            }
        }
    }

    pub(super) fn look_us(&self) -> u64 {
        self.looks.set(self.looks.get() + 1);
        assert!(
            self.looks.get() < LOOKS_MAX,
            "the recorder polls without time passing"
        );
        self.now_us.get()
    }

    fn pass(&self, us: u64) {
        self.now_us.set(self.now_us.get() + us);
        self.looks.set(0);
    }

    /// Advances the time by that of an operation, and makes the operation fail if requested.
    async fn operate(&self, us: u64) -> Result<(), Refused> {
        step_aside().await;
        let (operations, more_us) = self.slow.get();
        self.slow.set((operations.saturating_sub(1), more_us));
        self.pass(us + if operations > 0 { more_us } else { 0 });
        if self.fails.take() {
            self.fail();
        }
        if self.is_up.get() {
            Ok(())
        } else {
            Err(Refused)
        }
    }
}

fn refused(cause: Refused) -> WriteError<Refused> {
    WriteError {
        cause,
        durable_blocks: 0,
    }
}

/// The recorder's driver of the slot.
pub(super) struct Driver<'w>(pub(super) &'w Slot);

impl BlockDevice for Driver<'_> {
    type Error = Refused;

    async fn acquire(&mut self) -> Result<(), Refused> {
        assert!(!self.0.is_open(), "acquired during an open write");
        step_aside().await;
        self.0.pass(ACQUIRE_US);
        let is_there = self.0.card().is_some() && !self.0.fails.take();
        self.0.is_up.set(is_there);
        self.0.set_next(None);
        if is_there { Ok(()) } else { Err(Refused) }
    }

    fn blocks(&self) -> u32 {
        CARD_BLOCKS
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Refused> {
        assert!(!self.0.is_open(), "a read during an open write");
        self.0.operate(READ_US).await?;
        let disk = self.0.cards[self.0.card().ok_or(Refused)?].borrow();
        for (at, block) in (start..CARD_BLOCKS).zip(blocks) {
            *block = *disk.block(at);
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
        assert!(!self.0.is_open(), "a write during an open write");
        self.0.operate(BEGIN_US).await.map_err(refused)?;
        self.0.set_next(Some(start));
        Ok(())
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Refused>> {
        self.0.operate(PUSH_US).await.map_err(refused)?;
        let next = self.0.next.get().expect("a write is open");
        self.0.volatile.borrow_mut().push((next, *block));
        self.0.set_next(Some(next + 1));
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<Refused>> {
        self.0.operate(END_US).await.map_err(refused)?;
        assert!(self.0.is_open(), "no write is open");
        self.0.settle();
        self.0.set_next(None);
        Ok(())
    }
}

pub(super) struct Sleep<'w>(pub(super) &'w Slot);

impl DelayNs for Sleep<'_> {
    async fn delay_ns(&mut self, ns: u32) {
        step_aside().await;
        self.0.pass(u64::from(ns.div_ceil(1000)));
    }
}

/// Yields once, so that events can happen.
async fn step_aside() {
    let mut is_second = false;
    poll_fn(|_| {
        if core::mem::replace(&mut is_second, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
