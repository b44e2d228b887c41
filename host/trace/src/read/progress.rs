//! Progress reports while a file is read.

use std::io::{self, Read};

/// A reader that reports the number of bytes taken from it.
pub(super) struct Counted<'a, R> {
    reader: R,
    bytes: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<'a, R> Counted<'a, R> {
    pub(super) fn new(reader: R, progress: &'a mut dyn FnMut(u64)) -> Counted<'a, R> {
        Counted {
            reader,
            bytes: 0,
            progress,
        }
    }
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bytes += count as u64;
        (self.progress)(self.bytes);
        Ok(count)
    }
}
