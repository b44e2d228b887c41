//! Reads beside a recording: asked for by anyone, done by the recorder when its rings can bear it.

use cardiograph_card::Block;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// Where readers leave their wishes; for tasks of the recorder's own thread. One wish at a time is seen to.
///
/// The memory is the desk's: a read that was begun is finished, even if nobody waits for it any more.
pub struct ReadDesk<'a> {
    inner: RefCell<Inner<'a>>,
}

/// Readers that may wait for their turn, besides the one whose read is under way.
const READERS_WAITING_MAX: usize = 4;

struct Inner<'a> {
    blocks: Option<&'a mut [Block]>,
    stage: Stage,
    /// Nobody reads any more.
    is_closed: bool,
    /// Who waits for what was asked.
    reader: Option<Waker>,
    /// Who wait until the desk is free.
    next: [Option<Waker>; READERS_WAITING_MAX],
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
                is_closed: false,
                reader: None,
                next: [const { None }; READERS_WAITING_MAX],
                is_put_off: false,
                tally: ReadTally::default(),
            }),
        }
    }

    /// Reads blocks of the card into `out`, in as many pieces as the memory makes necessary. Waits until
    /// the recorder can bear it.
    ///
    /// # Errors
    /// [`ReadFailed`] if the card could not, or is gone; if the recording has ended; if the desk has no
    /// memory, or too many are waiting.
    pub async fn read(&self, start: u32, out: &mut [Block]) -> Result<(), ReadFailed> {
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let count = self.ask(start, out.len()).await?;
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
    async fn ask(&self, start: u32, wanted: usize) -> Result<u32, ReadFailed> {
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
                    inner.stage = Stage::Asked(ReadRequest { start, count });
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
        let reader = inner.reader.take();
        drop(inner);
        reader.into_iter().for_each(Waker::wake);
        self.wake_next();
    }

    /// There is no card: whoever waits is told.
    pub(crate) fn refuse(&self) {
        let mut inner = self.inner.borrow_mut();
        if let Stage::Asked(_) = inner.stage {
            inner.stage = Stage::Done(Err(ReadFailed));
            let waker = inner.reader.take();
            drop(inner);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// The recording has ended, and nobody does reads any more.
    pub(crate) fn close(&self) {
        self.refuse();
        let mut inner = self.inner.borrow_mut();
        inner.is_closed = true;
        drop(inner);
        self.wake_next();
    }

    /// Those who wait look whether it is their turn.
    fn wake_next(&self) {
        let next = core::mem::take(&mut self.inner.borrow_mut().next);
        next.into_iter().flatten().for_each(Waker::wake);
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
        drop(inner);
        self.0.wake_next();
    }
}
