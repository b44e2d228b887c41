//! The state of a recording for other tasks: figures, gaps, and the first samples of its files.

use crate::event::Event;
use crate::fault::CardFault;
use crate::gap::Gap;
use crate::volume::FileId;

/// Number of gaps that are remembered.
const GAPS_MAX: usize = 8;
/// Number of files, counted once per stream, whose first samples are remembered.
const FILES_MAX: usize = 16;
/// Interval between two updates of the figures, in us.
pub(crate) const FIGURES_US: u64 = 50_000;
/// Buckets of write latencies, four for each power of two: 496 B. The histogram of cardiograph-timing, which is more
/// exact, needs 4 KB to reach 4 s.
const BUCKETS: usize = 4 * 31;

/// State of a recording, at most 50 ms old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Figures {
    /// Samples are being recorded.
    pub is_recording: bool,
    /// Number of streams.
    pub streams: u8,
    /// Bytes in the ring that is closest to overflowing.
    pub ring_bytes: u32,
    /// Capacity of that ring, in bytes.
    pub ring_capacity_bytes: u32,
    /// Highest level of that ring so far, in bytes.
    pub ring_bytes_max: u32,
    /// Samples of all streams that were taken from the rings, lost ones included.
    pub samples: u64,
    /// Lost samples of all streams.
    pub lost: u64,
    /// Gaps reported.
    pub gaps: u64,
    /// Arrival rate of all streams, in bytes per second.
    pub rate_bytes_per_s: u32,
    /// Blocks written.
    pub blocks: u64,
    /// Number of measured operations: writes of one block, and ends of a write (the stop of a CMD25).
    pub writes: u64,
    /// Median latency of a write, in us. This and the next percentile are up to a quarter too high.
    pub write_us_median: u32,
    /// 99th percentile of the write latency, in us.
    pub write_us_p99: u32,
    /// Longest write latency, in us.
    pub write_us_max: u32,
    /// Shortest durability window of all streams, in us.
    pub window_us: u64,
    /// Number of times that a window was exceeded.
    pub windows_exceeded: u64,
    /// Age of the oldest sample that is not durable, in us.
    pub unsaved_us: u64,
    /// Reason why samples cannot be written now.
    pub fault: Option<CardFault>,
}

/// First sample of a stream in a file.
#[derive(Clone, Copy)]
struct FileStart {
    stream: u8,
    first: u64,
    id: FileId,
}

pub(crate) struct Watched {
    pub(crate) figures: Figures,
    /// Time of the next update of the figures.
    pub(crate) due_us: u64,
    is_card_lost: bool,
    is_card_full: bool,
    latencies: [u32; BUCKETS],
    /// The newest gaps, by number modulo [`GAPS_MAX`].
    gaps: [Option<(u8, Gap)>; GAPS_MAX],
    gap_count: u64,
    files: [Option<FileStart>; FILES_MAX],
    file_count: usize,
}

impl Watched {
    pub(crate) const fn new() -> Watched {
        Watched {
            figures: Figures {
                is_recording: false,
                streams: 0,
                ring_bytes: 0,
                ring_capacity_bytes: 0,
                ring_bytes_max: 0,
                samples: 0,
                lost: 0,
                gaps: 0,
                rate_bytes_per_s: 0,
                blocks: 0,
                writes: 0,
                write_us_median: 0,
                write_us_p99: 0,
                write_us_max: 0,
                window_us: 0,
                windows_exceeded: 0,
                unsaved_us: 0,
                fault: None,
            },
            is_card_lost: false,
            is_card_full: false,
            due_us: 0,
            latencies: [0; BUCKETS],
            gaps: [None; GAPS_MAX],
            gap_count: 0,
            files: [None; FILES_MAX],
            file_count: 0,
        }
    }

    pub(crate) fn note_event(&mut self, event: &Event) {
        match event {
            Event::CardLost => self.is_card_lost = true,
            Event::CardBack => self.is_card_lost = false,
            Event::Full { .. } => self.is_card_full = true,
            Event::Opened { .. } => self.is_card_full = false,
            Event::Lost { stream, gap } => {
                self.gaps[self.gap_count as usize % GAPS_MAX] = Some((*stream, *gap));
                self.gap_count += 1;
            }
            Event::Removed { id } => {
                let is_removed = |file: &FileStart| file.id == *id;
                for file in &mut self.files {
                    file.take_if(|file| is_removed(file));
                }
            }
            _ => (),
        }
        self.update_fault();
    }

    /// Notes that a run has ended: no samples wait for room any more.
    pub(crate) fn note_end(&mut self) {
        self.is_card_full = false;
        self.update_fault();
    }

    fn update_fault(&mut self) {
        self.figures.fault = CardFault::of(self.is_card_lost, self.is_card_full);
    }

    pub(crate) fn note_file(&mut self, stream: u8, first: u64, id: FileId) {
        self.files[self.file_count % FILES_MAX] = Some(FileStart { stream, first, id });
        self.file_count += 1;
    }

    /// Notes the latency of a write of `blocks` blocks.
    pub(crate) fn note_write(&mut self, us: u32, blocks: u32) {
        self.figures.blocks += u64::from(blocks);
        self.figures.writes += 1;
        self.figures.write_us_max = self.figures.write_us_max.max(us);
        let count = &mut self.latencies[bucket_of(us)];
        *count = count.saturating_add(1);
    }

    /// Updates the figures from those of the rings and those noted here.
    pub(crate) fn update(&mut self, rings: Figures) {
        self.figures = Figures {
            gaps: self.gap_count,
            blocks: self.figures.blocks,
            writes: self.figures.writes,
            write_us_median: self.percentile(500),
            write_us_p99: self.percentile(990),
            write_us_max: self.figures.write_us_max,
            fault: self.figures.fault,
            ..rings
        };
    }

    /// Returns the gap with this number, or the oldest known one if that is newer.
    pub(crate) fn gap(&self, number: u64) -> Option<(u64, u8, Gap)> {
        let oldest = self.gap_count.saturating_sub(GAPS_MAX as u64);
        let number = number.max(oldest);
        if number >= self.gap_count {
            return None;
        }
        let (stream, gap) = self.gaps[number as usize % GAPS_MAX]?;
        Some((number, stream, gap))
    }

    /// Returns a remembered gap that contains a sample.
    pub(crate) fn gap_of(&self, stream: u8, number: u64) -> Option<Gap> {
        let gaps = self.gaps.iter().flatten();
        let mut gaps =
            gaps.filter(|(of, gap)| *of == stream && (gap.first..gap.end()).contains(&number));
        gaps.next().map(|(_, gap)| *gap)
    }

    /// Returns the file that contains a sample or will contain it, and the number of its first sample. If no such file
    /// is known, returns the oldest known one, whose first sample is later.
    pub(crate) fn file_of(&self, stream: u8, number: u64) -> Option<(FileId, u64)> {
        let files = || {
            self.files
                .iter()
                .flatten()
                .filter(|file| file.stream == stream)
        };
        // Of several files with the same first sample, only the newest contains samples.
        let before = files().filter(|file| file.first <= number);
        let found = before.max_by_key(|file| (file.first, file.id.number));
        let found = found.or_else(|| files().min_by_key(|file| file.first));
        found.map(|file| (file.id, file.first))
    }

    /// Returns a latency that is not exceeded by `share` thousandths of the writes, in us.
    fn percentile(&self, share: u64) -> u32 {
        let count = self
            .latencies
            .iter()
            .map(|count| u64::from(*count))
            .sum::<u64>();
        let mut left = (count * share).div_ceil(1000);
        for (at, count) in self.latencies.iter().enumerate() {
            left = left.saturating_sub(u64::from(*count));
            if left == 0 {
                return end_of_bucket(at).min(self.figures.write_us_max);
            }
        }
        0
    }
}

fn bucket_of(us: u32) -> usize {
    match us {
        0..4 => us as usize,
        _ => {
            let octave = us.ilog2() - 2;
            4 * (octave as usize + 1) + (us >> octave & 3) as usize
        }
    }
}

/// Returns the longest latency in a bucket.
fn end_of_bucket(at: usize) -> u32 {
    match at {
        0..4 => at as u32,
        _ => {
            let octave = at as u32 / 4 - 1;
            let end = u64::from(4 + at as u32 % 4 + 1) << octave;
            u32::try_from(end - 1).unwrap_or(u32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gap::Cause;

    #[test]
    fn a_full_card_that_was_away_is_still_full() {
        let mut watched = Watched::new();
        let mut after = |event| {
            watched.note_event(&event);
            watched.update(Figures::default());
            watched.figures.fault
        };
        let id = FileId {
            prefix: *b"REC",
            extension: *b"CSV",
            number: 1,
        };
        let opened = Event::Opened {
            track: 0,
            id,
            bytes_max: 1,
        };
        assert_eq!(after(opened), None);
        assert_eq!(after(Event::Full { track: 0 }), Some(CardFault::Full));
        assert_eq!(after(Event::CardLost), Some(CardFault::NoResponse));
        assert_eq!(after(Event::CardBack), Some(CardFault::Full));
        assert_eq!(after(opened), None);
        assert_eq!(after(Event::CardLost), Some(CardFault::NoResponse));
        assert_eq!(after(Event::CardBack), None);
        // After the end of a recording, nothing waits for room.
        assert_eq!(after(Event::Full { track: 0 }), Some(CardFault::Full));
        watched.note_end();
        assert_eq!(watched.figures.fault, None);
    }

    #[test]
    fn every_latency_is_in_a_bucket_at_most_a_quarter_longer() {
        let mut last = 0;
        for us in (0..200_000)
            .chain((0..32).map(|bit| 1 << bit))
            .chain([u32::MAX])
        {
            let (at, end) = (bucket_of(us), end_of_bucket(bucket_of(us)));
            assert!(
                us <= end && u64::from(end) <= u64::from(us) * 5 / 4,
                "{us}: {end}"
            );
            assert!(at == 0 || us > end_of_bucket(at - 1), "{us}");
            last = last.max(at);
        }
        assert_eq!(last, BUCKETS - 1);
    }

    #[test]
    fn percentiles_of_latencies() {
        let mut watched = Watched::new();
        assert_eq!(watched.percentile(500), 0);
        for us in 1..=1000 {
            watched.note_write(us, 2);
        }
        watched.update(Figures::default());
        let Figures {
            write_us_median,
            write_us_p99,
            write_us_max,
            blocks,
            writes,
            ..
        } = watched.figures;
        assert!((500..=625).contains(&write_us_median), "{write_us_median}");
        assert!((990..=1000).contains(&write_us_p99), "{write_us_p99}");
        assert_eq!((write_us_max, blocks, writes), (1000, 2000, 1000));
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut watched = Watched::new();
        for first in 0..20 {
            let gap = Gap {
                first: first * 10,
                count: 2,
                at_us: 0,
                last_us: 0,
                cause: Cause::Busy,
            };
            watched.note_event(&Event::Lost { stream: 1, gap });
        }
        watched.update(Figures::default());
        assert_eq!(watched.figures.gaps, 20);
        assert_eq!(watched.gap(3).map(|it| it.0), Some(12));
        assert_eq!(watched.gap(19).map(|it| it.2.first), Some(190));
        assert_eq!(watched.gap(20), None);
        assert!(watched.gap_of(1, 191).is_some());
        assert!(watched.gap_of(0, 191).is_none() && watched.gap_of(1, 192).is_none());
    }

    #[test]
    fn samples_are_in_the_newest_file_that_begins_before_them() {
        let id = |number| FileId {
            prefix: *b"LOG",
            extension: *b"CSV",
            number,
        };
        let mut watched = Watched::new();
        assert_eq!(watched.file_of(0, 5), None);
        for (number, first) in [(1, 10), (2, 50), (3, 50), (4, 90)] {
            watched.note_file(0, first, id(number));
        }
        let number_of =
            |watched: &Watched, sample| watched.file_of(0, sample).map(|it| it.0.number);
        assert_eq!(number_of(&watched, 5), Some(1));
        assert_eq!(number_of(&watched, 49), Some(1));
        assert_eq!(number_of(&watched, 60), Some(3));
        assert_eq!(number_of(&watched, 1000), Some(4));
        assert_eq!(watched.file_of(1, 60), None);
        watched.note_event(&Event::Removed { id: id(1) });
        assert_eq!(number_of(&watched, 5), Some(2));
    }
}
