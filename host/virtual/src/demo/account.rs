//! Counts the recorder's samples across power cuts: written, lost or gone with the power.

use crate::magnetometer::RATE_HZ;
use cardiograph_recorder::{Cause, Event, Gap};
use std::collections::VecDeque;

/// Number of sentences that the page shows.
const SENTENCES_MAX: usize = 8;

/// Samples lost while there was power, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The buffer was full because the card was slow.
    pub(super) buffer: u64,
    /// The card was pulled, failed or full, or not yet ready again.
    pub(super) card: u64,
}

impl Losses {
    pub(super) fn sum(self) -> u64 {
        self.buffer + self.card
    }

    /// Takes back losses that turned out to be none, first those of the card.
    fn take_back(&mut self, count: u64) {
        let of_card = count.min(self.card);
        self.card -= of_card;
        self.buffer = self.buffer.saturating_sub(count - of_card);
    }
}

/// Samples of the recorder since the start of the demo, and the events since then as sentences.
#[derive(Default)]
pub(super) struct Account {
    /// Samples of the runs that have ended.
    samples: u64,
    lost: Losses,
    /// Losses of the current run that its gaps explain.
    explained: Losses,
    /// The card was lost in the current run. Losses that no gap explains yet count as those of the card then.
    was_card_lost: bool,
    /// Longest write of these runs, in us.
    write_us_max: u32,
    /// Samples that were only in memory when the power was cut.
    gone: u64,
    /// Samples of the current run in files that have been closed or recovered.
    closed: u64,
    /// Samples of the run before the last power cut that are not in a file, until recovery finds them.
    missing: Option<u64>,
    /// Sentences for the page, the newest first.
    story: VecDeque<String>,
}

impl Account {
    /// Returns the samples, the lost ones, and the longest write in us, of the current run and the earlier ones.
    pub(super) fn with_run(
        &self,
        samples: u64,
        lost: u64,
        write_us_max: u32,
    ) -> (u64, Losses, u32) {
        let unexplained = lost.saturating_sub(self.explained.sum());
        let (buffer, card) = match self.was_card_lost {
            true => (0, unexplained),
            false => (unexplained, 0),
        };
        let lost = Losses {
            buffer: self.lost.buffer + self.explained.buffer + buffer,
            card: self.lost.card + self.explained.card + card,
        };
        let us = self.write_us_max.max(write_us_max);
        (self.samples + samples, lost, us)
    }

    /// Returns the number of samples that are gone after power cuts.
    pub(super) fn gone(&self) -> u64 {
        self.gone
    }

    /// Returns a sentence of the story.
    pub(super) fn sentence(&self, number: usize) -> Option<&str> {
        self.story.get(number).map(String::as_str)
    }

    fn tell(&mut self, sentence: String) {
        self.story.push_front(sentence);
        self.story.truncate(SENTENCES_MAX);
    }

    /// Notes an event of the recorder.
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::Closed { record, .. } => self.closed += record.samples,
            Event::Recovered { record } => {
                match &mut self.missing {
                    Some(missing) => {
                        // Samples counted as lost on a failing card can turn out to be on it.
                        let more = record.samples.saturating_sub(*missing);
                        self.lost.take_back(more);
                        *missing = missing.saturating_sub(record.samples);
                    }
                    // A pulled card has been inserted again.
                    None => self.closed += record.samples,
                }
                self.tell(format!(
                    "Recovered {}: {} samples.",
                    record.id, record.samples
                ));
            }
            // The first file of a run follows recovery.
            Event::Opened { .. } => self.balance(),
            Event::Lost { gap, .. } => {
                let Gap {
                    first,
                    count,
                    cause,
                    ..
                } = gap;
                match cause {
                    Cause::Busy | Cause::Read => self.explained.buffer += count,
                    _ => self.explained.card += count,
                }
                let cause = cause.word();
                self.tell(format!(
                    "A gap of {count} samples from sample {first} on: {cause}."
                ));
            }
            Event::CardLost => {
                self.was_card_lost = true;
                self.tell("The card does not respond.".into());
            }
            Event::CardBack => self.tell("The card is back; recording continues.".into()),
            Event::Full { .. } => self.tell("The card is full.".into()),
            _ => (),
        }
    }

    /// Counts the samples that recovery did not find.
    fn balance(&mut self) {
        if let Some(missing) = self.missing.take() {
            self.gone += missing;
            let ms = missing * 1000 / u64::from(RATE_HZ);
            self.tell(format!(
                "The power is back. All samples are there but the last {missing} ({ms} ms), which were not durable yet."
            ));
        }
    }

    /// Notes the end of a run.
    pub(super) fn end_run(&mut self, pushed: u64, lost: u64, write_us_max: u32, is_cut: bool) {
        (self.samples, self.lost, self.write_us_max) = self.with_run(pushed, lost, write_us_max);
        (self.explained, self.was_card_lost) = (Losses::default(), false);
        let closed = std::mem::take(&mut self.closed);
        if is_cut {
            // A run may end before it has recovered the files of the run before.
            let before = self.missing.unwrap_or(0);
            self.missing = Some(before + pushed.saturating_sub(lost + closed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_recorder::{FileId, FileRecord};

    const ID: FileId = FileId {
        prefix: *b"REC",
        extension: *b"CSV",
        number: 1,
    };

    const GAP: Gap = Gap {
        first: 0,
        count: 0,
        at_us: 0,
        last_us: 0,
        cause: Cause::Busy,
    };

    fn record(samples: u64) -> FileRecord {
        FileRecord {
            samples,
            ..FileRecord::of_length(ID, 0)
        }
    }

    fn losses(buffer: u64, card: u64) -> Losses {
        Losses { buffer, card }
    }

    #[test]
    fn losses_have_the_causes_of_their_gaps() {
        let mut account = Account::default();
        assert_eq!(account.with_run(10, 3, 0).1, losses(3, 0));
        account.note(&Event::CardLost);
        assert_eq!(account.with_run(10, 3, 0).1, losses(0, 3));
        for (cause, count) in [
            (Cause::Busy, 3),
            (Cause::NoCard, 40),
            (Cause::FileNotReady, 5),
        ] {
            let gap = Gap {
                count,
                cause,
                ..GAP
            };
            account.note(&Event::Lost { stream: 0, gap });
        }
        assert_eq!(account.with_run(100, 50, 0).1, losses(3, 47));
        account.end_run(100, 50, 0, false);
        assert_eq!(account.with_run(10, 1, 0).1, losses(4, 47));
    }

    #[test]
    fn samples_that_recovery_does_not_find_are_gone() {
        let mut account = Account::default();
        account.note(&Event::Closed {
            track: 0,
            record: record(500),
        });
        account.end_run(1000, 20, 7000, true);
        account.note(&Event::Recovered {
            record: record(430),
        });
        account.note(&Event::Opened {
            track: 0,
            id: ID,
            bytes_max: 0,
        });
        assert_eq!(
            (account.gone(), account.with_run(7, 1, 30)),
            (50, (1007, losses(21, 0), 7000))
        );
        assert!(account.sentence(0).unwrap().contains("58 ms"));
        assert_eq!(account.sentence(2), None);
    }

    #[test]
    fn a_power_cut_before_recovery_forgets_nothing() {
        let mut account = Account::default();
        account.end_run(1000, 0, 0, true);
        account.end_run(30, 0, 0, true);
        account.note(&Event::Recovered {
            record: record(970),
        });
        account.balance();
        assert_eq!((account.gone(), account.with_run(0, 0, 0).0), (60, 1030));
    }

    #[test]
    fn a_file_on_a_pulled_card_counts_once_the_card_is_back() {
        let mut account = Account::default();
        account.note(&Event::Recovered {
            record: record(300),
        });
        assert!(account.sentence(0).unwrap().starts_with("Recovered"));
        account.note(&Event::CardLost);
        account.end_run(1000, 100, 0, true);
        account.note(&Event::Recovered {
            record: record(590),
        });
        account.note(&Event::Recovered { record: record(14) });
        account.balance();
        assert_eq!(
            (account.gone(), account.with_run(0, 0, 0)),
            (0, (1000, losses(0, 96), 0))
        );
    }
}
