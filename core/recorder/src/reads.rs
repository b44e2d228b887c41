//! Reads during a recording: other tasks request them, and the recorder carries them out when its rings can
//! absorb them.

use cardiograph_card::Block;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// A queue for reads during a recording, shared with tasks on the recorder's own thread. The recorder serves
/// one request at a time.
///
/// The desk owns the memory, so a read that has begun completes even if its reader was dropped.
pub struct ReadDesk<'a> {
    inner: RefCell<Inner<'a>>,
}

/// Maximum number of readers that wait for their turn, not counting the one being served.
const READERS_WAITING_MAX: usize = 4;

struct Inner<'a> {
    blocks: Option<&'a mut [Block]>,
    stage: Stage,
    /// The recording has ended; no more reads are carried out.
    is_closed: bool,
    /// Waker of the reader whose request is being served.
    reader: Option<Waker>,
    /// Wakers of queued readers.
    next: [Option<Waker>; READERS_WAITING_MAX],
    /// The current request was postponed before, and counted.
    is_postponed: bool,
    tally: ReadTally,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Requested(ReadRequest),
    UnderWay,
    /// The reader of the read in progress was dropped.
    Orphaned,
    Done(Result<u32, ReadFailed>),
}

/// Consecutive blocks of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) start: u32,
    pub(crate) count: u32,
}

/// Cost of the reads so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTally {
    /// Completed reads.
    pub reads: u32,
    /// Blocks read.
    pub blocks: u64,
    /// Total time that reads kept the card from writing samples, in us.
    pub card_us: u64,
    /// Longest of those times, in us.
    pub card_us_max: u32,
    /// Reads that were postponed because a ring could not absorb them at once.
    pub put_off: u32,
}

/// The card could not read the blocks, or no read was possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFailed;

impl<'a> ReadDesk<'a> {
    /// Creates a desk that reads up to `blocks.len()` blocks at once. Each read interrupts the open write, so
    /// a few large reads cost less than many small ones: use 16 blocks or more.
    pub fn new(blocks: &'a mut [Block]) -> Self {
        ReadDesk {
            inner: RefCell::new(Inner {
                blocks: Some(blocks),
                stage: Stage::Free,
                is_closed: false,
                reader: None,
                next: [const { None }; READERS_WAITING_MAX],
                is_postponed: false,
                tally: ReadTally::default(),
            }),
        }
    }

    /// Reads blocks of the card into `out`, in pieces as large as the desk's memory. Waits until the rings
    /// can absorb each read.
    ///
    /// # Errors
    /// [`ReadFailed`] if the card is gone or cannot read the blocks, if the recording has ended, if the desk
    /// has no memory, or if too many readers are waiting.
    pub async fn read(&self, start: u32, out: &mut [Block]) -> Result<(), ReadFailed> {
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let count = self.place_request(start, out.len()).await?;
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

    /// Returns the cost of the reads so far.
    pub fn tally(&self) -> ReadTally {
        self.inner.borrow().tally
    }

    /// Places a request once the desk is free; returns the number of blocks requested.
    async fn place_request(&self, start: u32, wanted: usize) -> Result<u32, ReadFailed> {
        poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            if inner.is_closed {
                return Poll::Ready(Err(ReadFailed));
            }
            match (inner.stage, &inner.blocks) {
                (Stage::Free, Some(blocks)) => {
                    let count = wanted.min(blocks.len()) as u32;
                    if count == 0 {
                        return Poll::Ready(Err(ReadFailed));
                    }
                    inner.stage = Stage::Requested(ReadRequest { start, count });
                    Poll::Ready(Ok(count))
                }
                _ => {
                    let is_noted = inner.next.iter_mut().any(|place| {
                        let is_free = place
                            .as_ref()
                            .is_none_or(|waker| waker.will_wake(context.waker()));
                        if is_free {
                            *place = Some(context.waker().clone());
                        }
                        is_free
                    });
                    if !is_noted {
                        return Poll::Ready(Err(ReadFailed));
                    }
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
                    inner.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns the pending request.
    pub(crate) fn pending(&self) -> Option<ReadRequest> {
        match self.inner.borrow().stage {
            Stage::Requested(request) => Some(request),
            _ => None,
        }
    }

    pub(crate) fn postpone(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.tally.put_off += u32::from(!inner.is_postponed);
        inner.is_postponed = true;
    }

    /// Takes the memory for a read that begins now.
    pub(crate) fn begin(&self) -> Option<&'a mut [Block]> {
        let mut inner = self.inner.borrow_mut();
        inner.stage = Stage::UnderWay;
        inner.is_postponed = false;
        inner.blocks.take()
    }

    /// Returns the memory and hands the result to the reader.
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
        let reader = inner.reader.take();
        drop(inner);
        reader.into_iter().for_each(Waker::wake);
        self.wake_next();
    }

    /// Fails the pending request, because there is no card.
    pub(crate) fn refuse(&self) {
        let mut inner = self.inner.borrow_mut();
        if let Stage::Requested(_) = inner.stage {
            inner.stage = Stage::Done(Err(ReadFailed));
            let waker = inner.reader.take();
            drop(inner);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Ends all reads, because the recording has ended.
    pub(crate) fn close(&self) {
        self.refuse();
        let mut inner = self.inner.borrow_mut();
        inner.is_closed = true;
        drop(inner);
        self.wake_next();
    }

    /// Wakes all queued readers, which then check whether it is their turn.
    fn wake_next(&self) {
        let next = core::mem::take(&mut self.inner.borrow_mut().next);
        next.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Frees the desk however a read ends.
struct Leave<'a, 'b>(&'b ReadDesk<'a>);

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.borrow_mut();
        inner.stage = match inner.stage {
            Stage::UnderWay | Stage::Orphaned => Stage::Orphaned,
            _ => Stage::Free,
        };
        drop(inner);
        self.0.wake_next();
    }
}
