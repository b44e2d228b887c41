//! Reads beside a recording: asked for by anyone, done by the recorder when its rings can bear it.

use cardiograph_card::Block;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// Where a reader leaves its wishes, one at a time; for a task of the recorder's own thread.
///
/// The memory is the desk's: a read that was begun is finished, even if nobody waits for it any more.
pub struct ReadDesk<'a> {
    inner: RefCell<Inner<'a>>,
}

struct Inner<'a> {
    blocks: Option<&'a mut [Block]>,
    stage: Stage,
    waker: Option<Waker>,
    /// What is asked for has been put off already.
    is_put_off: bool,
    tally: ReadTally,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Asked(ReadRequest),
    UnderWay,
    /// Nobody waits for what is under way.
    Orphaned,
    Done(Result<u32, ReadFailed>),
}

/// Consecutive blocks of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) start: u32,
    pub(crate) count: u32,
}

/// What reads have cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTally {
    /// Reads that were done.
    pub reads: u32,
    /// Blocks that they gave.
    pub blocks: u64,
    /// Time that the card was away from the samples for them, in us.
    pub card_us: u64,
    /// The longest of those times, in us.
    pub card_us_max: u32,
    /// Reads that had to wait because a ring could not bear them at once.
    pub put_off: u32,
}

/// The card could not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFailed;

impl<'a> ReadDesk<'a> {
    /// A desk that reads up to as many blocks at once as there is memory. Each read stops the stream that
    /// is being written, so that few large ones cost less than many small ones: 16 blocks and more.
    pub fn new(blocks: &'a mut [Block]) -> Self {
        ReadDesk {
            inner: RefCell::new(Inner {
                blocks: Some(blocks),
                stage: Stage::Free,
                waker: None,
                is_put_off: false,
                tally: ReadTally::default(),
            }),
        }
    }

    /// Reads blocks of the card into `out`, in as many pieces as the memory makes necessary. Waits until
    /// the recorder can bear it.
    ///
    /// # Errors
    /// [`ReadFailed`] if the card could not, or is gone.
    pub async fn read(&self, start: u32, out: &mut [Block]) -> Result<(), ReadFailed> {
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let count = self.ask(start, out.len()).await;
            let _leave = Leave(self);
            self.done().await?;
            let (piece, rest) = out.split_at_mut(count as usize);
            let inner = self.inner.borrow();
            let blocks = inner.blocks.as_deref().ok_or(ReadFailed)?;
            piece.copy_from_slice(&blocks[..piece.len()]);
            start += count;
            out = rest;
        }
        Ok(())
    }

    /// What reads have cost so far.
    pub fn tally(&self) -> ReadTally {
        self.inner.borrow().tally
    }

    /// Asks once nothing else is under way; returns how many blocks it asked for.
    async fn ask(&self, start: u32, wanted: usize) -> u32 {
        poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            match (inner.stage, &inner.blocks) {
                (Stage::Free, Some(blocks)) => {
                    let count = wanted.min(blocks.len()) as u32;
                    inner.stage = Stage::Asked(ReadRequest { start, count });
                    Poll::Ready(count)
                }
                _ => {
                    inner.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    async fn done(&self) -> Result<u32, ReadFailed> {
        poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            match inner.stage {
                Stage::Done(result) => Poll::Ready(result),
                _ => {
                    inner.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The read that somebody waits for.
    pub(crate) fn asked(&self) -> Option<ReadRequest> {
        match self.inner.borrow().stage {
            Stage::Asked(request) => Some(request),
            _ => None,
        }
    }

    pub(crate) fn put_off(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.tally.put_off += u32::from(!inner.is_put_off);
        inner.is_put_off = true;
    }

    /// Takes the memory for a read that begins now.
    pub(crate) fn begin(&self) -> Option<&'a mut [Block]> {
        let mut inner = self.inner.borrow_mut();
        inner.stage = Stage::UnderWay;
        inner.is_put_off = false;
        inner.blocks.take()
    }

    /// Gives the memory back, and the reader what it asked for.
    pub(crate) fn end(
        &self,
        blocks: &'a mut [Block],
        result: Result<u32, ReadFailed>,
        card_us: u32,
    ) {
        let mut inner = self.inner.borrow_mut();
        inner.blocks = Some(blocks);
        inner.stage = match inner.stage {
            Stage::Orphaned => Stage::Free,
            _ => Stage::Done(result),
        };
        let tally = &mut inner.tally;
        tally.reads += 1;
        tally.blocks += u64::from(result.unwrap_or(0));
        tally.card_us += u64::from(card_us);
        tally.card_us_max = tally.card_us_max.max(card_us);
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// There is no card: whoever waits is told.
    pub(crate) fn refuse(&self) {
        let mut inner = self.inner.borrow_mut();
        if let Stage::Asked(_) = inner.stage {
            inner.stage = Stage::Done(Err(ReadFailed));
            let waker = inner.waker.take();
            drop(inner);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Leaves the desk free, however a read ends.
struct Leave<'a, 'b>(&'b ReadDesk<'a>);

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.borrow_mut();
        inner.stage = match inner.stage {
            Stage::UnderWay | Stage::Orphaned => Stage::Orphaned,
            _ => Stage::Free,
        };
    }
}
