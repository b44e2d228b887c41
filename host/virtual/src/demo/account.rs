//! Counts the recorder's samples across power cuts: written, lost or gone with the power.

use crate::magnetometer::RATE_HZ;
use cardiograph_recorder::{Event, Gap};
use std::collections::VecDeque;

/// Number of sentences that the page shows.
const SENTENCES_MAX: usize = 8;

/// Samples of the recorder since the start of the demo, and the events since then as sentences.
#[derive(Default)]
pub(super) struct Account {
    /// Samples of the runs that have ended.
    samples: u64,
    lost: u64,
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
    pub(super) fn with_run(&self, samples: u64, lost: u64, write_us_max: u32) -> (u64, u64, u32) {
        (
            self.samples + samples,
            self.lost + lost,
            self.write_us_max.max(write_us_max),
        )
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
                        self.lost = self.lost.saturating_sub(more);
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
                let cause = cause.word();
                self.tell(format!(
                    "A gap of {count} samples from sample {first} on: {cause}."
                ));
            }
            Event::CardLost => self.tell("The card does not respond.".into()),
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

    fn record(samples: u64) -> FileRecord {
        FileRecord {
            samples,
            ..FileRecord::of_length(ID, 0)
        }
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
            (50, (1007, 21, 7000))
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
        account.end_run(1000, 100, 0, true);
        account.note(&Event::Recovered {
            record: record(590),
        });
        account.note(&Event::Recovered { record: record(14) });
        account.balance();
        assert_eq!(
            (account.gone(), account.with_run(0, 0, 0)),
            (0, (1000, 96, 0))
        );
    }
}
