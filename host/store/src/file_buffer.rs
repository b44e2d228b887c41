//! Buffer between a program's calls and the file library: SD.h's sector buffer, SdFat's cache block, FatFs's
//! sector buffer per file, or the C library's stdio buffer.

/// Unbuffered access to a file.
pub(crate) trait Backing {
    /// Error of a read or write.
    type Error;

    /// Writes all of `data` at offset `at` of the file.
    fn write_at(&mut self, at: u64, data: &[u8]) -> Result<(), Self::Error>;

    /// Reads from offset `at` until `data` is full or the file ends; returns the number of bytes read.
    fn read_at(&mut self, at: u64, data: &mut [u8]) -> Result<usize, Self::Error>;
}

/// A buffer that holds either data not yet written to the file, or the most recently read data.
pub(crate) struct FileBuffer {
    /// Size of the buffer in bytes, and alignment of its contents in the file; 0 for no buffer.
    bytes: usize,
    held: Held,
    /// File offset of the first byte in the buffer.
    at: u64,
    data: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Written,
    Read,
}

impl FileBuffer {
    /// Creates an empty buffer of `bytes` bytes.
    pub(crate) fn new(bytes: u32) -> FileBuffer {
        FileBuffer {
            bytes: bytes as usize,
            held: Held::Nothing,
            at: 0,
            data: Vec::new(),
        }
    }

    /// Gathers data in the buffer and writes the buffer when it is full; data that fills a whole buffer is written to
    /// the file directly.
    pub(crate) fn write<B: Backing>(
        &mut self,
        file: &mut B,
        at: u64,
        data: &[u8],
    ) -> Result<(), B::Error> {
        if self.bytes == 0 {
            return file.write_at(at, data);
        }
        if self.held == Held::Read || self.at + self.data.len() as u64 != at {
            self.write_back(file)?;
        }
        let (mut at, mut rest) = (at, data);
        while !rest.is_empty() {
            let within = (at % self.bytes as u64) as usize;
            let taken = if within == 0 && rest.len() >= self.bytes {
                let whole = rest.len() / self.bytes * self.bytes;
                file.write_at(at, &rest[..whole])?;
                whole
            } else {
                self.gather(file, at, within, rest)?
            };
            at += taken as u64;
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Copies as much of `rest` as fits into the buffer; returns the number of bytes copied.
    fn gather<B: Backing>(
        &mut self,
        file: &mut B,
        at: u64,
        within: usize,
        rest: &[u8],
    ) -> Result<usize, B::Error> {
        if self.held == Held::Nothing {
            (self.held, self.at) = (Held::Written, at);
        }
        let taken = rest.len().min(self.bytes - within);
        self.data.extend_from_slice(&rest[..taken]);
        if within + taken == self.bytes {
            self.write_back(file)?;
        }
        Ok(taken)
    }

    /// Reads data through the buffer, except data that would fill a whole buffer, which is read directly from the file;
    /// returns the number of bytes read.
    pub(crate) fn read<B: Backing>(
        &mut self,
        file: &mut B,
        at: u64,
        data: &mut [u8],
    ) -> Result<usize, B::Error> {
        if self.held == Held::Written {
            self.write_back(file)?;
        }
        let mut read = 0;
        while read < data.len() {
            let (at, rest) = (at + read as u64, &mut data[read..]);
            let more = match self.bytes {
                0 => file.read_at(at, rest)?,
                bytes if at.is_multiple_of(bytes as u64) && rest.len() >= bytes => {
                    let whole = rest.len() / bytes * bytes;
                    file.read_at(at, &mut rest[..whole])?
                }
                _ => self.read_within(file, at, rest)?,
            };
            if more == 0 {
                break;
            }
            read += more;
        }
        Ok(read)
    }

    fn read_within<B: Backing>(
        &mut self,
        file: &mut B,
        at: u64,
        data: &mut [u8],
    ) -> Result<usize, B::Error> {
        let within = (at % self.bytes as u64) as usize;
        let start = at - within as u64;
        if self.held != Held::Read || self.at != start {
            self.held = Held::Nothing;
            self.data.resize(self.bytes, 0);
            let length = file.read_at(start, &mut self.data);
            self.data.truncate(*length.as_ref().unwrap_or(&0));
            length?;
            (self.held, self.at) = (Held::Read, start);
        }
        let rest = self.data.get(within..).unwrap_or_default();
        let length = rest.len().min(data.len());
        data[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Writes gathered data to the file; discards buffered data that was read.
    pub(crate) fn write_back<B: Backing>(&mut self, file: &mut B) -> Result<(), B::Error> {
        if self.held == Held::Written {
            file.write_at(self.at, &self.data)?;
        }
        self.held = Held::Nothing;
        self.data.clear();
        Ok(())
    }
}
