//! File-system operations, one step at a time.
//!
//! ```text
//!   operation (a future) ──> Port::read, Port::write ──> Steps: one pending step
//!        ^                                                   │
//!        │ polled again once its step is done                v
//!        └───────────────────────────────────────── shell: carries the step out
//!                                                     when the planner says Step
//! ```
//!
//! An operation never accesses the card: it puts its next step into the mailbox and waits. If the card fails,
//! the step is not answered and the operation is dropped; the next mount completes or undoes it.

use crate::recover::Reader;
use crate::volume::Blocks;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::future::poll_fn;
use core::ops::Deref;
use core::task::Poll;

/// The step that an operation waits for.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Read this block into the mailbox.
    Read { start: u32 },
    /// Write the mailbox's block as number `index` of `count` consecutive ones.
    Write { start: u32, count: u32, index: u32 },
}

/// Mailbox between the running operation and the shell (shell.rs), which drives the card.
pub(crate) struct Steps {
    pending: Cell<Option<Step>>,
    block: RefCell<Block>,
    /// Number of blocks of the card.
    blocks: Cell<u32>,
}

impl Steps {
    pub(crate) const fn new() -> Steps {
        Steps {
            pending: Cell::new(None),
            block: RefCell::new([0; BLOCK_BYTES]),
            blocks: Cell::new(0),
        }
    }

    /// Clears the step of an operation that was dropped, and stores the number of blocks of the card.
    pub(crate) fn reset(&self, blocks: u32) {
        self.pending.set(None);
        self.blocks.set(blocks);
    }

    pub(crate) fn pending(&self) -> Option<Step> {
        self.pending.get()
    }

    /// Borrows the block that is to be written, or to be filled by a read.
    pub(crate) fn block(&self) -> core::cell::RefMut<'_, Block> {
        self.block.borrow_mut()
    }

    /// Marks the step as done: the operation may continue.
    pub(crate) fn done(&self) {
        self.pending.set(None);
    }

    async fn carry_out(&self, step: Step) {
        self.pending.set(Some(step));
        poll_fn(|_| match self.pending.get() {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        })
        .await;
    }
}

/// The card as a file-system operation sees it.
pub struct Port<'s>(pub(crate) &'s Steps);

impl Blocks for Port<'_> {
    type Error = Infallible;

    fn blocks(&self) -> u32 {
        self.0.blocks.get()
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Infallible> {
        for (start, block) in (start..).zip(blocks) {
            self.0.carry_out(Step::Read { start }).await;
            block.copy_from_slice(&*self.0.block());
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
            make(index, &mut self.0.block());
            let step = Step::Write {
                start,
                count,
                index,
            };
            self.0.carry_out(step).await;
        }
        Ok(())
    }
}

/// The mailbox keeps the block read last until the next step.
impl Reader for Port<'_> {
    type Error = Infallible;

    async fn read(&mut self, start: u32) -> Result<(), Infallible> {
        self.0.carry_out(Step::Read { start }).await;
        Ok(())
    }

    fn block(&self) -> impl Deref<Target = Block> {
        self.0.block.borrow()
    }
}
