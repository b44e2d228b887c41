//! Bookkeeping of one stream: which samples are in blocks, durable or lost.
//!
//! ```text
//!   samples   0 ─────────── durable ───────── pushed ───────── encoded ── pending gap ── ring
//!                 on the card     in pushed blocks    in the block
//!                                                     being filled
//! ```
//!
//! Every sample before `encoded` is either completely in a block or in a gap that is in a block. A pending gap begins
//! at `encoded`. Pure data: shared by the encoder and the planner's model checker.

use crate::gap::{Cause, Gap};

/// Samples and gaps up to a point of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tally {
    /// Index of the next sample, lost ones included.
    pub(crate) next: u64,
    /// Samples in gaps.
    pub(crate) lost: u64,
    pub(crate) gaps: u64,
}

impl Tally {
    /// Returns the number of samples that are not in gaps.
    pub(crate) fn written(&self) -> u64 {
        self.next.saturating_sub(self.lost)
    }

    fn since(&self, start: &Tally) -> FileTotals {
        FileTotals {
            samples: self.written().saturating_sub(start.written()),
            gaps: self.gaps.saturating_sub(start.gaps),
            lost: self.lost.saturating_sub(start.lost),
        }
    }
}

/// Totals of a stream in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileTotals {
    pub(crate) samples: u64,
    pub(crate) gaps: u64,
    pub(crate) lost: u64,
}

/// Progress of one stream: samples encoded, pushed, durable and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    encoded: Tally,
    pushed: Tally,
    durable: Tally,
    /// Tally at the beginning of the file.
    file: Tally,
    gap: Option<Gap>,
}

impl Account {
    /// Returns the tally of everything in blocks, including the block being filled.
    pub(crate) fn encoded(&self) -> Tally {
        self.encoded
    }

    /// Returns the tally of everything durable.
    pub(crate) fn durable(&self) -> Tally {
        self.durable
    }

    /// Returns the index of the first sample in the file, lost ones included.
    pub(crate) fn first_in_file(&self) -> u64 {
        self.file.next
    }

    /// Returns the totals of the file so far.
    pub(crate) fn in_file(&self) -> FileTotals {
        self.encoded.since(&self.file)
    }

    /// Returns the gap that has to be encoded before any further sample.
    pub(crate) fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Returns true if anything that is in blocks or in the pending gap is not durable.
    pub(crate) fn has_unsaved(&self) -> bool {
        self.gap.is_some() || self.durable != self.encoded
    }

    /// Notes that a sample is completely in a block.
    pub(crate) fn pass_sample(&mut self) {
        self.encoded.next += 1;
    }

    /// Notes that the pending gap is in a block.
    pub(crate) fn pass_gap(&mut self) {
        if let Some(gap) = self.gap.take() {
            self.encoded.next = end_of(&gap);
            self.encoded.lost = self.encoded.lost.saturating_add(gap.count);
            self.encoded.gaps += 1;
        }
    }

    /// Adds a gap, merging it with the pending one.
    pub(crate) fn note_gap(&mut self, gap: Gap) {
        self.gap = Some(match self.gap {
            None => gap,
            Some(pending) => join(&pending, &gap),
        });
    }

    /// Notes that the block being filled was pushed.
    pub(crate) fn push(&mut self) {
        self.pushed = self.encoded;
    }

    /// Notes that all pushed blocks are durable.
    pub(crate) fn commit(&mut self) {
        self.durable = self.pushed;
    }

    /// Begins a file, which receives the pending gap. Requires that all blocks of its predecessor have been pushed.
    pub(crate) fn begin_file(&mut self) {
        self.file = self.encoded;
    }

    /// Moves all samples in blocks that are not durable to the pending gap. Returns the pending gap if it grew.
    pub(crate) fn lose_blocks(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        let pending = self.gap;
        let blocks = Gap {
            first: self.durable.next,
            count: self.encoded.next.saturating_sub(self.durable.next),
            at_us: now_us,
            last_us: now_us,
            cause,
        };
        (self.encoded, self.pushed) = (self.durable, self.durable);
        if blocks.count == 0 {
            return None;
        }
        self.gap = Some(match pending {
            None => blocks,
            Some(pending) => Gap {
                cause,
                ..join(&blocks, &pending)
            },
        });
        self.gap
    }

    /// Gives up the pending gap and the `count` samples after it: they count as lost, and no file contains the gap.
    /// Requires that everything in blocks is durable. Returns the gap.
    pub(crate) fn give_up(&mut self, count: u64, now_us: u64, cause: Cause) -> Option<Gap> {
        let pending = self.gap.take();
        let gap = Gap {
            first: self.encoded.next,
            count: pending.map_or(0, |gap| gap.count) + count,
            at_us: pending.map_or(now_us, |gap| gap.at_us),
            last_us: now_us,
            cause,
        };
        if gap.count == 0 {
            return None;
        }
        self.encoded.next = end_of(&gap);
        self.encoded.lost = self.encoded.lost.saturating_add(gap.count);
        self.encoded.gaps += 1;
        (self.pushed, self.durable) = (self.encoded, self.encoded);
        Some(gap)
    }
}

fn end_of(gap: &Gap) -> u64 {
    gap.first.saturating_add(gap.count)
}

/// Returns the gap that spans both.
fn join(one: &Gap, other: &Gap) -> Gap {
    let first = one.first.min(other.first);
    Gap {
        first,
        count: end_of(one).max(end_of(other)) - first,
        at_us: one.at_us.min(other.at_us),
        last_us: one.last_us.max(other.last_us),
        cause: one.cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(first: u64, count: u64, at_us: u64) -> Gap {
        Gap {
            first,
            count,
            at_us,
            last_us: at_us + 1,
            cause: Cause::Busy,
        }
    }

    /// Setup: an overflow is pending, then the card fails with three samples that were not durable.
    #[test]
    fn a_card_failure_keeps_the_count_of_a_pending_gap() {
        let mut account = Account::default();
        (0..5).for_each(|_| account.pass_sample());
        account.push();
        account.commit();
        (0..2).for_each(|_| account.pass_sample());
        account.push();
        account.pass_sample();
        account.note_gap(gap(8, 4, 50));
        let lost = account.lose_blocks(90, Cause::NoCard).unwrap();
        assert_eq!((lost.first, lost.count), (5, 7));
        assert_eq!((lost.at_us, lost.last_us), (50, 90));
        assert_eq!(account.lose_blocks(99, Cause::NoCard), None);
        account.begin_file();
        assert_eq!(account.first_in_file(), 5);
        account.pass_gap();
        account.pass_sample();
        let totals = account.in_file();
        assert_eq!((totals.samples, totals.gaps, totals.lost), (1, 1, 7));
        assert_eq!(account.encoded().next, 13);
    }

    /// A gap that was written but not durable is lost with the card, and reported again as part of a larger
    /// one.
    #[test]
    fn lost_gaps_are_counted_once() {
        let mut account = Account::default();
        account.note_gap(gap(0, 3, 1));
        account.pass_gap();
        account.pass_sample();
        account.push();
        let lost = account.lose_blocks(9, Cause::CardFailed).unwrap();
        assert_eq!((lost.first, lost.count), (0, 4));
        account.pass_gap();
        account.push();
        account.commit();
        assert_eq!((account.durable().next, account.durable().lost), (4, 4));
        assert_eq!(account.durable().written(), 0);
        assert!(!account.has_unsaved());
    }

    /// Setup: a gap and samples are pending at the end. Giving up leaves nothing pending, and giving up again
    /// adds nothing.
    #[test]
    fn what_is_given_up_is_lost_once() {
        let mut account = Account::default();
        account.pass_sample();
        account.push();
        account.commit();
        account.note_gap(gap(1, 3, 5));
        let lost = account.give_up(2, 9, Cause::CardFull).unwrap();
        assert_eq!((lost.first, lost.count), (1, 5));
        assert_eq!((lost.at_us, lost.last_us), (5, 9));
        assert!(!account.has_unsaved());
        assert_eq!(account.durable().gaps, 1);
        assert_eq!(account.give_up(0, 9, Cause::CardFull), None);
        assert_eq!(
            (account.durable().written(), account.durable().lost),
            (1, 5)
        );
    }

    #[test]
    fn gaps_in_a_row_join() {
        let mut account = Account::default();
        account.note_gap(gap(0, 3, 5));
        account.note_gap(gap(3, 2, 9));
        let joined = account.gap().unwrap();
        assert_eq!((joined.first, joined.count), (0, 5));
        assert_eq!((joined.at_us, joined.last_us), (5, 10));
    }
}
