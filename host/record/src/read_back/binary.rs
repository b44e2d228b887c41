//! Compares binary files, which all streams share, with the samples.

use super::{Mismatch, ReadBack};
use crate::export::decode::{Gap, Sink, decode};
use crate::export::{ExportError, header::Header};
use crate::{Feed, Reported};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::LINE_BYTES_MAX;
use std::cell::Cell;
use std::io::{self, Read};
use std::ops::RangeInclusive;

/// Reads the next file of all `streams`, each of which recorded the samples of `feed`, and compares it with
/// them.
///
/// # Errors
/// Returns read errors in the outer result, a difference in the inner one.
pub fn file(
    file: &mut dyn Read,
    streams: &mut [Reported],
    feed: &dyn Feed,
) -> io::Result<Result<(), Mismatch>> {
    let bytes = Cell::new(0);
    let input = Counted {
        file,
        bytes: &bytes,
    };
    let mut compared = Compared {
        streams,
        feed,
        bytes: &bytes,
        mismatch: None,
    };
    match decode(
        io::BufReader::with_capacity(BLOCK_BYTES, input),
        &mut compared,
    ) {
        Ok(_) => Ok(compared.mismatch.map_or(Ok(()), Err)),
        Err(ExportError::Read(error)) => Err(error),
        Err(_) => Ok(Err(Mismatch {
            offset_bytes: 0,
            due: streams.first().map_or(0, |first| first.back.next),
        })),
    }
}

struct Counted<'a> {
    file: &'a mut dyn Read,
    bytes: &'a Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

struct Compared<'a> {
    streams: &'a mut [Reported],
    feed: &'a dyn Feed,
    /// Bytes of the file read so far.
    bytes: &'a Cell<u64>,
    /// The first difference.
    mismatch: Option<Mismatch>,
}

impl Compared<'_> {
    /// Records a difference in the block read last.
    fn differs(&mut self, due: u64) {
        let offset_bytes =
            self.bytes.get().saturating_sub(1) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        self.mismatch.get_or_insert(Mismatch { offset_bytes, due });
    }

    fn with(&mut self, stream: u8, compare: impl FnOnce(&mut ReadBack, &dyn Feed) -> bool) {
        let Some(report) = self.streams.get_mut(usize::from(stream)) else {
            return self.differs(0);
        };
        let is_right = compare(&mut report.back, self.feed);
        let due = report.back.next;
        if !is_right {
            self.differs(due);
        }
    }
}

impl Sink for Compared<'_> {
    fn stream(&mut self, stream: u8, header: &Header) -> Result<(), ExportError> {
        let format = self.feed.format();
        let sample_bytes = format.schemas().first().map(|schema| schema.sample_bytes());
        self.with(stream, |_, _| sample_bytes == Some(header.sample_bytes()));
        Ok(())
    }

    fn samples(&mut self, stream: u8, samples: &[Vec<u8>], _: u32) -> Result<(), ExportError> {
        self.with(stream, |back, feed| {
            samples.iter().all(|sample| back.sample(sample, feed))
        });
        Ok(())
    }

    fn gap(&mut self, stream: u8, gap: &Gap) -> Result<(), ExportError> {
        let range = gap.first..gap.first.saturating_add(gap.count);
        self.with(stream, |back, _| back.gap(range));
        Ok(())
    }

    fn damaged(&mut self, _: RangeInclusive<u64>) -> Result<(), ExportError> {
        let due = self.streams.first().map_or(0, |first| first.back.next);
        self.differs(due);
        Ok(())
    }
}

impl ReadBack {
    fn sample(&mut self, sample: &[u8], feed: &dyn Feed) -> bool {
        let mut due = [0; LINE_BYTES_MAX];
        let is_due = self.next < feed.lines() && {
            let len = feed.make(self.next, &mut due);
            sample == &due[..len]
        };
        self.next += 1;
        self.found += 1;
        self.line_bytes += sample.len() as u64;
        is_due
    }
}
