//! Traces that a board prints over its serial port (docs/formats.md). Each line has an index and a checksum, so that lost
//! and damaged lines are noticed, and the reader continues at the next good line. A line C, with the times of a load on two
//! cores, may come before the end of the run.
//!
//! ```text
//!   before ── B ──> running ── E or X ──> ended ── B of another run: only the first one is read
//!      │               │ B: the board was restarted; the interrupted run is dropped
//!      └── W ──────────┘ the line with the settings is lost
//! ```

use super::ReadOptions;
use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::NUMBER_MAX;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::cell::Cell;
use std::io::Read;

/// Begins every line.
const MARK: &[u8] = b"CG1 ";
/// Longest write that a line may contain, in bytes.
const WRITE_BYTES_MAX: u64 = 1 << 20;
/// Number of ranges of missing writes that a note lists.
const RANGES_SHOWN: usize = 3;

/// Returns true if the text contains an undamaged line of a board.
pub(super) fn is_trace(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| body(line).is_some())
}

/// Returns true if the text contains lines of a board, all of which are damaged.
pub(super) fn is_damaged(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| line.windows(MARK.len()).any(|bytes| bytes == MARK))
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    about: About,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    lines.accept_nul();
    let mut run = Run::new(about, options.block_bytes);
    let damaged = Cell::new(0);
    let is_other = |line: &[u8]| {
        let is_message = body(line).and_then(Message::parse).is_some();
        if !is_message && line.windows(MARK.len()).any(|bytes| bytes == MARK) {
            damaged.set(damaged.get() + 1);
        }
        !is_message
    };
    while let Some(line) = lines.next_row_but(is_other)? {
        match body(line.text).and_then(Message::parse) {
            None => (),
            Some(Message::Begin(_)) if run.phase == Phase::Ended => {
                run.note(format!(
                    "Another run begins in line {}; only the first one is read. To read the other, split the file there.",
                    line.number
                ));
                break;
            }
            Some(_) if run.phase == Phase::Ended => (),
            Some(Message::Begin(settings)) => run = run.begin(settings),
            Some(Message::Cores(times)) => run.cores = Some(times),
            Some(Message::Writes(writes)) => run.writes(&writes, &line)?,
            Some(Message::End { writes: 0, reason })
                if run.trace.is_empty() && !reason.is_empty() =>
            {
                let reason = shown(reason.as_bytes());
                let cores = run.cores.map(|cores| cores.note());
                return Err(Problem::Stopped { reason, cores }.at_line(line.number));
            }
            Some(Message::End { writes, reason }) => run.end(writes, reason, line.number),
        }
    }
    run.damaged += damaged.get();
    match run.cores {
        Some(cores) if run.trace.is_empty() => {
            let cores = cores.note();
            Err(Problem::CoresOnly { cores }.in_file())
        }
        _ => Ok(run.finish()),
    }
}

/// Returns the part of a line that its checksum protects, without the mark; `None` if there is none, or if it is damaged.
/// A serial monitor may put the time before it.
fn body(line: &[u8]) -> Option<&str> {
    let at = line.windows(MARK.len()).position(|bytes| bytes == MARK)?;
    let text = line[at..].trim_ascii_end();
    let (protected, checksum) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let checksum = str::from_utf8(checksum.strip_prefix(b" *")?).ok()?;
    let is_right = u16::from_str_radix(checksum, 16) == Ok(crc16(protected));
    // Without any fields, the space before the checksum is the one that ends the mark.
    let body = str::from_utf8(protected.get(MARK.len()..)?).ok()?;
    is_right.then_some(body)
}

/// Kind of an undamaged line of a board's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardLine {
    /// A run begins: bytes per write and total number of writes, if the line states them.
    Begin {
        /// Bytes per write.
        bytes: Option<u64>,
        /// Total number of writes.
        writes: Option<u64>,
    },
    /// This many writes.
    Writes(u64),
    /// Times of a load on two cores.
    Cores,
    /// The run ended, or was stopped.
    End,
}

/// Recognises a line of a board's trace; `None` for any other or damaged line.
pub fn board_line(line: &[u8]) -> Option<BoardLine> {
    Some(match Message::parse(body(line)?)? {
        Message::Begin(settings) => {
            let number = |name| {
                let mut settings = named(settings);
                settings.find_map(|(found, value)| (found == name).then(|| value.parse().ok())?)
            };
            BoardLine::Begin {
                bytes: number("bytes"),
                writes: number("writes"),
            }
        }
        Message::Writes(writes) => BoardLine::Writes(writes.spans_us()?.len() as u64),
        Message::Cores(_) => BoardLine::Cores,
        Message::End { .. } => BoardLine::End,
    })
}

/// Returns the names and values of settings.
fn named(settings: &str) -> impl Iterator<Item = (&str, &str)> {
    settings.split(' ').filter_map(|word| word.split_once('='))
}

/// Returns a line with its checksum and its end, as a board expects commands: `body` is its kind and its fields.
pub fn board_command(body: &str) -> String {
    let protected = format!("CG1 {body}");
    let checksum = crc16(protected.as_bytes());
    format!("{protected} *{checksum:04X}\n")
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| {
            crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}

/// An undamaged line.
enum Message<'a> {
    /// Names and values of the settings.
    Begin(&'a str),
    Writes(Writes<'a>),
    Cores(CoreTimes),
    /// Total number of writes, and why the board stopped before the end of the test.
    End {
        writes: u64,
        reason: &'a str,
    },
}

/// Consecutive writes to a file.
struct Writes<'a> {
    /// Number of the first write.
    index: u64,
    file: u32,
    /// Start of the first write, in us modulo 2^32.
    start_us: u32,
    /// Latency of the first write, then pause and latency of each further one, in us.
    spans: &'a str,
}

impl<'a> Message<'a> {
    fn parse(body: &'a str) -> Option<Message<'a>> {
        let (kind, rest) = body.split_once(' ')?;
        let mut words = rest.splitn(4, ' ');
        let mut number = || words.next()?.parse::<u32>().ok();
        match kind {
            "B" => Some(Message::Begin(rest)),
            "W" => Some(Message::Writes(Writes {
                index: number()?.into(),
                file: number()?,
                start_us: number()?,
                spans: words.next()?,
            })),
            "C" => CoreTimes::parse(rest).map(Message::Cores),
            "E" => Some(Message::End {
                writes: rest.parse::<u32>().ok()?.into(),
                reason: "",
            }),
            "X" => {
                let (writes, reason) = rest.split_once(' ')?;
                let writes = writes.parse::<u32>().ok()?.into();
                Some(Message::End { writes, reason })
            }
            _ => None,
        }
    }
}

/// Times of a load like that of study 1, in us: once and twice on each core, and once on both cores at the same time.
#[derive(Clone, Copy)]
struct CoreTimes {
    alone: [u32; 2],
    twice: [u32; 2],
    both: u32,
}

impl CoreTimes {
    fn parse(settings: &str) -> Option<CoreTimes> {
        let value =
            |wanted| named(settings).find_map(|(name, value)| (name == wanted).then_some(value));
        let number = |text: &str| text.parse().ok().filter(|us| *us > 0);
        let pair = |name| {
            let (first, second) = value(name)?.split_once(',')?;
            Some([number(first)?, number(second)?])
        };
        Some(CoreTimes {
            alone: pair("alone_us")?,
            twice: pair("twice_us")?,
            both: number(value("both_us")?)?,
        })
    }

    fn note(&self) -> String {
        let [first, second] = self.alone;
        let ms = |us: u32| f64::from(us) / 1000.0;
        let ratio = |us: u32, alone: u32| f64::from(us) / f64::from(alone);
        format!(
            "A load takes {:.1} ms on core 0 and {:.1} ms on core 1. On both at once, it takes {:.1} ms ({:.2} times as \
             long; 1.18 times in study 1, with arithmetic of its own). Twice on core 0: {:.1} ms ({:.2} times). Twice on \
             core 1: {:.1} ms ({:.2} times).",
            ms(first),
            ms(second),
            ms(self.both),
            ratio(self.both, first.max(second)),
            ms(self.twice[0]),
            ratio(self.twice[0], first),
            ms(self.twice[1]),
            ratio(self.twice[1], second),
        )
    }
}

impl Writes<'_> {
    /// Returns the pause before each write, 0 for the first, and its latency, in us; `None` if a number is missing.
    fn spans_us(&self) -> Option<Vec<(u32, u32)>> {
        let mut numbers = Vec::new();
        for word in self.spans.split([' ', ',']) {
            numbers.push(word.parse::<u32>().ok()?);
        }
        numbers.insert(0, 0);
        let (pairs, rest) = numbers.as_chunks();
        rest.is_empty().then(|| {
            pairs
                .iter()
                .map(|[pause, latency]| (*pause, *latency))
                .collect()
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    Ended,
}

/// The run that is being read.
struct Run {
    trace: Trace,
    phase: Phase,
    /// Length of a write in bytes.
    bytes: u64,
    has_settings: bool,
    /// Number of the next write.
    next: u64,
    /// Time of the last start in ns, and the same in us modulo 2^32.
    last: Option<(u64, u32)>,
    /// File that is being written, and the next offset in it.
    file: (u32, u64),
    damaged: u64,
    missing: u64,
    /// Missing writes, and where they are missing: the first ranges.
    ranges: Vec<String>,
    /// Number of writes of interrupted runs.
    dropped: u64,
    cores: Option<CoreTimes>,
}

impl Run {
    fn new(about: About, bytes: u64) -> Run {
        Run {
            trace: Trace::new(about),
            phase: Phase::Before,
            bytes,
            has_settings: false,
            next: 0,
            last: None,
            file: (0, 0),
            damaged: 0,
            missing: 0,
            ranges: Vec::new(),
            dropped: 0,
            cores: None,
        }
    }

    fn note(&mut self, note: String) {
        self.trace.about.notes.push(note);
    }

    /// Begins a run; drops the writes before it, because opening a serial port restarts many boards.
    fn begin(self, settings: &str) -> Run {
        let dropped = self.dropped + self.trace.len() as u64;
        let mut run = Run::new(self.trace.about, self.bytes);
        run.cores = self.cores;
        (run.phase, run.has_settings) = (Phase::Running, true);
        (run.dropped, run.damaged) = (dropped, self.damaged);
        let (mut board, mut library) = ("a board", "an unknown library");
        let mut buffer_bytes = None;
        for (name, value) in named(settings) {
            match (name, value.parse::<u64>()) {
                ("bytes", Ok(bytes @ 1..=WRITE_BYTES_MAX)) => run.bytes = bytes,
                ("clock_us", Ok(us @ 1..=1_000_000)) => {
                    run.trace.about.clock_resolution_ns = Some(us * 1000);
                }
                ("buffer_bytes", Ok(bytes)) => buffer_bytes = Some(bytes),
                ("board", _) => board = value,
                ("library", _) => library = value,
                ("workload", _) => run.trace.about.workload = shown(value.as_bytes()),
                _ => (),
            }
        }
        run.trace.about.notes.clear();
        let (board, library) = (shown(board.as_bytes()), shown(library.as_bytes()));
        run.note(format!("Measured on {board} with {library}."));
        if let Some(bytes) = buffer_bytes {
            run.note(format!(
                "Writes pass through a buffer of {bytes} B: only a write that fills it waits for the card."
            ));
        }
        run
    }

    fn writes(&mut self, writes: &Writes, line: &Line<'_>) -> Result<(), Fault> {
        self.phase = Phase::Running;
        let spans = writes.spans_us().filter(|_| writes.index >= self.next);
        let Some(spans) = spans else {
            self.damaged += 1;
            return Ok(());
        };
        let skipped = self.skip_to(writes.index, line.number);
        // After a change of the file, the number of missing writes to each of them is unknown.
        self.file = match self.file.0 == writes.file {
            true => (writes.file, self.file.1 + skipped * self.bytes),
            false => (writes.file, 0),
        };
        let mut start_ns = match self.last {
            Some((ns, us)) => ns + u64::from(writes.start_us.wrapping_sub(us)) * 1000,
            None => 0,
        };
        // Rounding of the board's clock must not make writes overlap.
        start_ns = start_ns.max(self.trace.last_end_ns());
        self.last = Some((start_ns, writes.start_us));
        for (pause_us, latency_us) in spans {
            start_ns += u64::from(pause_us) * 1000;
            let end_ns = start_ns + u64::from(latency_us) * 1000;
            let operation = Operation {
                kind: OperationKind::Write,
                file: self.file.0,
                offset_bytes: self.file.1,
                length_bytes: self.bytes,
                start_ns,
                end_ns,
            };
            if end_ns > NUMBER_MAX || self.trace.push(&operation).is_err() {
                return Err(Problem::TotalTooLarge.at_line(line.number));
            }
            self.file.1 += self.bytes;
            self.next += 1;
            start_ns = end_ns;
        }
        Ok(())
    }

    /// Counts the writes before `index` that are missing, in the line with this number; returns their number.
    fn skip_to(&mut self, index: u64, line: u64) -> u64 {
        let skipped = index.saturating_sub(self.next);
        if skipped > 0 {
            if self.ranges.len() <= RANGES_SHOWN {
                let (first, last) = (self.next, index - 1);
                self.ranges
                    .push(format!("{first} to {last} before line {line}"));
            }
            self.missing += skipped;
            self.next = index;
        }
        skipped
    }

    fn end(&mut self, writes: u64, reason: &str, line: u64) {
        self.skip_to(writes, line);
        self.phase = Phase::Ended;
        if !reason.is_empty() {
            let reason = shown(reason.as_bytes());
            self.note(format!(
                "The board stopped the test after {writes} writes: {reason}."
            ));
        }
    }

    fn finish(mut self) -> Trace {
        if !self.has_settings && !self.trace.is_empty() {
            let bytes = self.bytes;
            self.note(format!(
                "The first line of the trace is missing; each write is assumed to be {bytes} B."
            ));
        }
        if let Some(cores) = self.cores {
            self.note(cores.note());
        }
        if self.dropped > 0 {
            let dropped = self.dropped;
            self.note(format!(
                "Skipped {dropped} writes of a run that the board did not finish before it began another one."
            ));
        }
        if self.missing > 0 {
            let shown = self.ranges.len().min(RANGES_SHOWN);
            let mut ranges = self.ranges[..shown].join(", ");
            if self.ranges.len() > RANGES_SHOWN {
                ranges += ", and others";
            }
            let (missing, total, damaged) = (self.missing, self.next, self.damaged);
            self.note(format!(
                "Missing: {missing} of {total} writes ({ranges}), because lines of the trace were lost or damaged \
                 (damaged or repeated: {damaged}); the figures describe the others."
            ));
        } else if self.damaged > 0 {
            let damaged = self.damaged;
            self.note(format!(
                "Skipped {damaged} damaged or repeated lines; no write is missing."
            ));
        }
        if self.phase == Phase::Running {
            let next = self.next;
            self.note(format!(
                "The trace has no last line, so writes from number {next} on may be missing."
            ));
        }
        self.trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the CRC's definition.
    #[test]
    fn the_checksum_is_that_of_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    #[test]
    fn a_mark_with_a_checksum_and_no_fields_is_no_line() {
        for protected in ["CG1", "CG1 ", "CG", ""] {
            let line = format!("{protected} *{:04X}", crc16(protected.as_bytes()));
            assert_eq!(board_line(line.as_bytes()), None, "{line}");
        }
    }
}
