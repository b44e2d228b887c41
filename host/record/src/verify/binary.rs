//! Compares binary files, which all streams share, with the samples.

use super::{FoundSamples, Mismatch};
use crate::export::decode::{Gap, Sink, decode};
use crate::export::{ExportError, header::Header};
use crate::{Feed, StreamReport};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::LINE_BYTES_MAX;
use std::cell::Cell;
use std::io::{self, Read};
use std::ops::RangeInclusive;

/// Reads the next file of all `streams`, each of which recorded the samples of `feed`, and compares the file
/// with these samples.
///
/// # Errors
/// Returns read errors in the outer result, a difference in the inner one.
pub fn file(
    file: &mut dyn Read,
    streams: &mut [StreamReport],
    feed: &dyn Feed,
) -> io::Result<Result<(), Mismatch>> {
    let bytes = Cell::new(0);
    let input = CountingReader {
        file,
        bytes: &bytes,
    };
    let mut verifier = Verifier {
        streams,
        feed,
        bytes: &bytes,
        mismatch: None,
    };
    match decode(
        io::BufReader::with_capacity(BLOCK_BYTES, input),
        &mut verifier,
    ) {
        Ok(_) => Ok(verifier.mismatch.map_or(Ok(()), Err)),
        Err(ExportError::Read(error)) => Err(error),
        Err(_) => Ok(Err(Mismatch {
            offset_bytes: 0,
            expected: streams.first().map_or(0, |first| first.found.next),
        })),
    }
}

struct CountingReader<'a> {
    file: &'a mut dyn Read,
    bytes: &'a Cell<u64>,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

struct Verifier<'a> {
    streams: &'a mut [StreamReport],
    feed: &'a dyn Feed,
    /// Number of bytes of the file read so far.
    bytes: &'a Cell<u64>,
    /// The first difference between the file and the samples.
    mismatch: Option<Mismatch>,
}

impl Verifier<'_> {
    /// Stores a difference in the most recently read block.
    fn differs(&mut self, expected: u64) {
        let offset_bytes =
            self.bytes.get().saturating_sub(1) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        self.mismatch.get_or_insert(Mismatch {
            offset_bytes,
            expected,
        });
    }

    fn with(&mut self, stream: u8, compare: impl FnOnce(&mut FoundSamples, &dyn Feed) -> bool) {
        let Some(report) = self.streams.get_mut(usize::from(stream)) else {
            return self.differs(0);
        };
        let is_equal = compare(&mut report.found, self.feed);
        let expected = report.found.next;
        if !is_equal {
            self.differs(expected);
        }
    }
}

impl Sink for Verifier<'_> {
    fn stream(&mut self, stream: u8, header: &Header) -> Result<(), ExportError> {
        let format = self.feed.format();
        let sample_bytes = format.schemas().first().map(|schema| schema.sample_bytes());
        self.with(stream, |_, _| sample_bytes == Some(header.sample_bytes()));
        Ok(())
    }

    fn samples(&mut self, stream: u8, samples: &[Vec<u8>], _: u32) -> Result<(), ExportError> {
        self.with(stream, |found, feed| {
            samples.iter().all(|sample| found.sample(sample, feed))
        });
        Ok(())
    }

    fn gap(&mut self, stream: u8, gap: &Gap) -> Result<(), ExportError> {
        let range = gap.first..gap.first.saturating_add(gap.count);
        self.with(stream, |found, _| found.gap(range));
        Ok(())
    }

    fn damaged(&mut self, _: RangeInclusive<u64>) -> Result<(), ExportError> {
        let expected = self.streams.first().map_or(0, |first| first.found.next);
        self.differs(expected);
        Ok(())
    }
}

impl FoundSamples {
    fn sample(&mut self, sample: &[u8], feed: &dyn Feed) -> bool {
        let mut expected = [0; LINE_BYTES_MAX];
        let is_expected = self.next < feed.count() && {
            let len = feed.make(self.next, &mut expected);
            sample == &expected[..len]
        };
        self.next += 1;
        self.count += 1;
        self.bytes += sample.len() as u64;
        is_expected
    }
}
