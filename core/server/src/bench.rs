//! A test of the storage's writes, and the lines of its trace.
//!
//! ```text
//!   Begin ── line B ──> Writing ── line W per group of writes ──> Ended ── line E or X ──> Over
//! ```
//!
//! The test writes files under the name of an upload and never commits them, so that it changes nothing that a client
//! can see, and a power cut leaves nothing that the next start does not remove. The lines are those that
//! `docs/formats.md` specifies, so that `cardiograph` reads the trace of a board's server like that of a sketch.

use crate::path::Query;
use crate::status::Refused;
use crate::{Error, Storage};
use core::fmt::{self, Write};

/// Path whose folder has the files of the test. No file ever gets this name.
const PATH: &str = "/BENCH.BIN";
/// Writes of a test without arguments: those of the streams in study 5, 1 MiB in total.
const BYTES: u64 = 512;
const WRITES: u64 = 2048;
/// Maximum length of a write, in bytes.
const WRITE_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of writes: the index in a line has 32 bits.
const WRITES_MAX: u64 = u32::MAX as u64;
/// Maximum length of a file, in bytes: that of FAT.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;
/// Maximum pause between two writes, in ms.
const DELAY_MS_MAX: u64 = 60_000;
/// Payload: printable, as in study 1.
const PAYLOAD: [u8; 512] = [b'~'; 512];
/// Length of a line of [`Payload::Lines`], in bytes.
const LINE_BYTES: u32 = 100;
/// Values in such a line after the latency, of five characters each.
const LINE_VALUES: usize = 16;

const BAD: Refused = Refused::bad(
    "a test has bytes (1 to 65536) per write, writes per file, files and, after each write, delay (up to 60000 ms)",
);
const NO_LINES: Refused =
    Refused::bad("lines that state the latency of the previous write have bytes=100");

/// Writes in a line.
const GROUP: usize = 16;
/// Maximum length of a line, in bytes: the numbers of a full group have ten digits each.
pub const BENCH_LINE_BYTES_MAX: usize = 512;
const _: () = assert!(64 + GROUP * 22 <= BENCH_LINE_BYTES_MAX);

/// Contents of the writes of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// `~` throughout.
    #[default]
    Tildes,
    /// Lines of 100 B as in the simulated recorder of study 1, which contain the latency of the previous write, in ms.
    Lines,
}

/// Writes of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTest {
    bytes: u32,
    writes: u32,
    files: u32,
    delay_ms: u32,
    payload: Payload,
}

impl WriteTest {
    /// Describes a test: `files` files after each other, of `writes` writes of `bytes` bytes each, with a pause of
    /// `delay_ms` after each write. `None` if a number is 0 (except for the pause) or too large.
    pub fn new(bytes: u64, writes: u64, files: u64, delay_ms: u64) -> Option<WriteTest> {
        let fits = (1..=WRITE_BYTES_MAX).contains(&bytes)
            && (1..=FILE_BYTES_MAX / bytes).contains(&writes)
            && (1..=WRITES_MAX / writes).contains(&files)
            && delay_ms <= DELAY_MS_MAX;
        fits.then_some(WriteTest {
            bytes: bytes as u32,
            writes: writes as u32,
            files: files as u32,
            delay_ms: delay_ms as u32,
            payload: Payload::Tildes,
        })
    }

    /// Describes the same test with another payload. `None` if the writes do not have its length.
    pub fn with(self, payload: Payload) -> Option<WriteTest> {
        let fits = payload == Payload::Tildes || self.bytes == LINE_BYTES;
        fits.then_some(WriteTest { payload, ..self })
    }

    /// Reads the arguments of a request.
    pub(crate) fn of(arguments: Query) -> Result<WriteTest, Refused> {
        let number = |name, default| {
            let number = arguments.number(name);
            number.map(|number| number.unwrap_or(default))
        };
        let (bytes, writes) = (number("bytes", BYTES)?, number("writes", WRITES)?);
        let (files, delay_ms) = (number("files", 1)?, number("delay", 0)?);
        let Some(test) = WriteTest::new(bytes, writes, files, delay_ms) else {
            let is_large =
                bytes <= WRITE_BYTES_MAX && bytes.saturating_mul(writes) > FILE_BYTES_MAX;
            return Err(if is_large {
                Error::TooLarge.into()
            } else {
                BAD
            });
        };
        match arguments.has("lines") {
            true => test.with(Payload::Lines).ok_or(NO_LINES),
            false => Ok(test),
        }
    }
}

/// State of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Writing,
    /// The test ended, for this reason unless it is complete.
    Ended(Option<&'static str>),
    Over,
}

/// Next step of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Calls [`Bench::advance`] again after this time, in ms.
    Wait(u32),
    /// Sends the line of [`Bench::line`], then calls [`Bench::advance`] again.
    Line,
    /// Nothing: the test is over.
    Over,
}

/// A test under way. Dropping it discards its file.
pub struct Bench<'s, S: Storage> {
    storage: &'s S,
    test: WriteTest,
    stage: Stage,
    upload: Option<S::Upload>,
    /// Number of the present file.
    file: u32,
    /// Number of writes to it.
    file_writes: u32,
    /// Number of writes before those of the present group.
    printed: u32,
    group: Group,
    /// Latency of the last write, in us.
    last_us: u32,
}

/// Writes that have not been printed yet, in us modulo 2^32.
#[derive(Default)]
struct Group {
    count: usize,
    start_us: u32,
    last_end_us: u32,
    /// Pause before each write, and its latency.
    spans: [(u32, u32); GROUP],
}

impl Group {
    fn add(&mut self, start_us: u32, end_us: u32) {
        if self.count == 0 {
            (self.start_us, self.last_end_us) = (start_us, start_us);
        }
        if let Some(span) = self.spans.get_mut(self.count) {
            *span = (
                start_us.wrapping_sub(self.last_end_us),
                end_us.wrapping_sub(start_us),
            );
            self.count += 1;
        }
        self.last_end_us = end_us;
    }
}

impl<'s, S: Storage> Bench<'s, S> {
    /// Prepares the first file.
    ///
    /// # Errors
    /// Those of [`Storage::create`].
    pub async fn begin(storage: &'s S, test: WriteTest) -> Result<Self, Error> {
        let mut bench = Bench {
            storage,
            test,
            stage: Stage::Begin,
            upload: None,
            file: 0,
            file_writes: 0,
            printed: 0,
            group: Group::default(),
            last_us: 0,
        };
        bench.create().await?;
        Ok(bench)
    }

    /// Begins the next file.
    async fn create(&mut self) -> Result<(), Error> {
        let bytes = u64::from(self.test.bytes) * u64::from(self.test.writes);
        self.upload = Some(self.storage.create(PATH, Some(bytes)).await?);
        self.file_writes = 0;
        Ok(())
    }

    /// Ends the test before it is complete.
    pub fn stop(&mut self, reason: &'static str) {
        if matches!(self.stage, Stage::Begin | Stage::Writing) {
            self.stage = Stage::Ended(Some(reason));
        }
    }

    /// Continues up to the next pause or line. Reads the clock `now_us`, in us, before and after each write.
    pub async fn advance(&mut self, now_us: impl Fn() -> u64) -> Next {
        loop {
            match self.stage {
                Stage::Begin => return Next::Line,
                Stage::Over => return Next::Over,
                Stage::Ended(_) => {
                    if let Some(upload) = self.upload.take() {
                        self.storage.discard(upload).await;
                    }
                    return Next::Line;
                }
                Stage::Writing => (),
            }
            let is_full = self.group.count == GROUP;
            if is_full || (self.group.count > 0 && self.file_writes == self.test.writes) {
                return Next::Line;
            }
            match self.write(&now_us).await {
                Err(error) => self.stop(error.reason()),
                Ok(()) if self.test.delay_ms > 0 => return Next::Wait(self.test.delay_ms),
                Ok(()) => (),
            }
        }
    }

    /// Writes once, to the next file if the present one is complete.
    async fn write(&mut self, now_us: &impl Fn() -> u64) -> Result<(), Error> {
        if self.file_writes == self.test.writes {
            if let Some(upload) = self.upload.take() {
                self.storage.discard(upload).await;
            }
            self.file += 1;
            if self.file == self.test.files {
                self.stage = Stage::Ended(None);
                return Ok(());
            }
            self.create().await?;
        }
        let line = match self.test.payload {
            Payload::Tildes => None,
            Payload::Lines => Some(line_of(self.last_us)),
        };
        let payload = line.as_ref().map_or(&PAYLOAD[..], |line| &line[..]);
        let upload = self.upload.as_mut().ok_or(Error::Changed)?;
        let start_us = now_us();
        let mut left = self.test.bytes as usize;
        while left > 0 {
            let part = left.min(payload.len());
            self.storage.append(upload, &payload[..part]).await?;
            left -= part;
        }
        let end_us = now_us();
        self.last_us = end_us.saturating_sub(start_us) as u32;
        self.group.add(start_us as u32, end_us as u32);
        self.file_writes += 1;
        Ok(())
    }

    /// Writes the next line of the trace, without its end, to `out`; returns its length in bytes.
    pub fn line(&mut self, out: &mut [u8; BENCH_LINE_BYTES_MAX]) -> usize {
        let mut line = Line { out, len: 0 };
        // A line always fits: see BENCH_LINE_BYTES_MAX.
        let _ = self.print(&mut line);
        line.finish()
    }

    fn print(&mut self, line: &mut Line) -> fmt::Result {
        let Group { count, .. } = self.group;
        match self.stage {
            Stage::Begin => {
                self.stage = Stage::Writing;
                let WriteTest {
                    bytes,
                    writes,
                    files,
                    payload,
                    ..
                } = self.test;
                let workload = match payload {
                    Payload::Tildes => "stream",
                    Payload::Lines => "self-timing",
                };
                let total = u64::from(writes) * u64::from(files);
                write!(
                    line,
                    "CG1 B library=cardiograph workload={workload} bytes={bytes} clock_us=1 writes={total}"
                )?;
                match self.storage.write_bytes() {
                    0 => Ok(()),
                    bytes => write!(line, " buffer_bytes={bytes}"),
                }
            }
            // The writes before an error come first.
            Stage::Writing | Stage::Ended(_) if count > 0 => {
                let (first, file, start_us) = (self.printed, self.file, self.group.start_us);
                write!(line, "CG1 W {first} {file} {start_us}")?;
                for (at, (pause_us, latency_us)) in self.group.spans[..count].iter().enumerate() {
                    match at {
                        0 => write!(line, " {latency_us}")?,
                        _ => write!(line, " {pause_us},{latency_us}")?,
                    }
                }
                self.printed += count as u32;
                self.group.count = 0;
                Ok(())
            }
            Stage::Ended(reason) => {
                self.stage = Stage::Over;
                match reason {
                    None => write!(line, "CG1 E {}", self.printed),
                    Some(reason) => write!(line, "CG1 X {} {reason}", self.printed),
                }
            }
            Stage::Writing | Stage::Over => Ok(()),
        }
    }
}

/// A line that is being written.
struct Line<'a> {
    out: &'a mut [u8; BENCH_LINE_BYTES_MAX],
    len: usize,
}

impl Line<'_> {
    /// Appends the checksum; returns the length in bytes.
    fn finish(&mut self) -> usize {
        let checksum = crc16(self.out.get(..self.len).unwrap_or_default());
        let _ = write!(self, " *{checksum:04X}");
        self.len
    }
}

impl Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.out.get_mut(self.len..).ok_or(fmt::Error)?;
        let room = room.get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// Writes the line of a test that did not begin, without its end, to `out`; returns its length in bytes.
pub fn bench_refusal(reason: &str, out: &mut [u8; BENCH_LINE_BYTES_MAX]) -> usize {
    let mut line = Line { out, len: 0 };
    // Reasons are short sentences.
    let _ = write!(line, "CG1 X 0 {reason}");
    line.finish()
}

/// Returns a line of [`Payload::Lines`]: the latency in two digits, as in the study, and 16 values.
fn line_of(latency_us: u32) -> [u8; LINE_BYTES as usize] {
    let mut line = [b'0'; LINE_BYTES as usize];
    let ms = (latency_us / 1000).min(99) as u8;
    (line[0], line[1]) = (b'0' + ms / 10, b'0' + ms % 10);
    for at in 0..LINE_VALUES {
        line[2 + 6 * at] = b',';
    }
    line[2 + 6 * LINE_VALUES..].copy_from_slice(b"\r\n");
    line
}

/// CRC-16/XMODEM.
pub(crate) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| {
            crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_latency_and_sixteen_values() {
        for (us, ms) in [(0, "00"), (7_999, "07"), (22_000, "22"), (123_000, "99")] {
            let line = line_of(us);
            let text = core::str::from_utf8(&line).unwrap();
            let mut values = text.strip_suffix("\r\n").unwrap().split(',');
            assert_eq!(values.next(), Some(ms));
            assert_eq!(values.clone().count(), 16);
            assert!(values.all(|value| value.len() == 5));
        }
    }
}
