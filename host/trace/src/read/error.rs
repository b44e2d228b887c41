//! Why a file could not be read: every sentence a user may meet, in one place.

use super::lines::LINE_BYTES_MAX;
use std::fmt;
use std::io;

/// A file that could not be read.
///
/// Its `Display` is one sentence: the file, the line (or row of a Parquet file), what is wrong, and
/// what to do about it.
#[derive(Debug)]
pub struct ReadError {
    file: String,
    fault: Fault,
}

impl ReadError {
    pub(super) fn new(file: &str, fault: Fault) -> ReadError {
        ReadError {
            file: file.to_owned(),
            fault,
        }
    }
}

/// A problem and where it lies.
#[derive(Debug)]
pub(super) struct Fault {
    place: Place,
    problem: Problem,
}

#[derive(Debug)]
enum Place {
    File,
    Line(u64),
    Row(u64),
}

#[derive(Debug)]
pub(super) enum Problem {
    Open(io::Error),
    Read(io::Error),
    Directory,
    Empty,
    NoRows,
    OneSample,
    Unknown,
    NotText,
    Utf16,
    Nul,
    LongLine,
    Fields { due: usize, found: usize },
    CutOff { due: usize, found: usize },
    NotANumber { column: String, text: String },
    Negative { column: String, text: String },
    NotAboveZero { column: String, text: String },
    MinAboveMax,
    TakesTooLong,
    TooLarge { column: String, text: String },
    Above32Bits { column: String, text: String },
    Operation { text: String },
    Backward { time: String, before: String },
    EndBeforeStart { start: String, end: String },
    TotalTooLarge,
    SizesTooLarge,
    Averages,
    NoResults,
    ResultsHeader,
    FilesDiffer { declared: u64, found: u64 },
    LinesMissing { declared: u64, found: u64 },
    LinesBeyond { declared: u64 },
    ParquetCutOff,
    ParquetDamaged(String),
    ParquetColumns { found: String },
    ParquetCompressed,
    ParquetRows { rows: u64, bytes: u64 },
    ParquetPipe,
    NoSamples,
    ScopeColumns { found: String },
    SameTime { time: String },
    TimeTooFar { time: String },
    NoVoltage { column: String, text: String },
}

impl Problem {
    /// The problem, without a place inside the file.
    pub(super) fn in_file(self) -> Fault {
        Fault {
            place: Place::File,
            problem: self,
        }
    }

    /// The problem in a line, counted from 1.
    pub(super) fn at_line(self, number: u64) -> Fault {
        Fault {
            place: Place::Line(number),
            problem: self,
        }
    }

    /// The problem in a row of a Parquet file, counted from 1.
    pub(super) fn at_row(self, number: u64) -> Fault {
        Fault {
            place: Place::Row(number),
            problem: self,
        }
    }
}

/// Text from a file, fit to be shown in a sentence.
pub(super) fn shown(text: &[u8]) -> String {
    const CHARS_MAX: usize = 40;
    // A character takes up to four bytes; one more tells that something is left out.
    let head = text.get(..4 * (CHARS_MAX + 1)).unwrap_or(text);
    let head = String::from_utf8_lossy(head);
    let mut shown: String = head
        .chars()
        .take(CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if head.chars().count() > CHARS_MAX {
        shown.push_str("...");
    }
    shown
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.fault.place {
            Place::File => {}
            Place::Line(number) => write!(f, ", line {number}")?,
            Place::Row(number) => write!(f, ", row {number}")?,
        }
        write!(f, ": {}", self.fault.problem)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault.problem {
            Problem::Open(error) | Problem::Read(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Open(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "there is no such file; check the name and the folder")
            }
            Problem::Open(error) => {
                write!(f, "cannot be opened ({error}); check its permissions")
            }
            Problem::Read(error) => {
                write!(
                    f,
                    "cannot be read ({error}); copy it to another medium first"
                )
            }
            Problem::Directory => write!(f, "is a directory; name the files in it"),
            Problem::Empty => write!(f, "the file is empty; record it again"),
            Problem::NoRows => write!(f, "there is no operation in it; record it again"),
            Problem::OneSample => write!(
                f,
                "fewer than two samples, so there is no step between them; record for longer"
            ),
            Problem::Unknown => write!(f, "{UNDERSTOOD}"),
            Problem::NotText => write!(f, "neither text nor Parquet; {UNDERSTOOD}"),
            Problem::Utf16 => write!(f, "the text is UTF-16; save it as UTF-8"),
            Problem::Nul => write!(
                f,
                "NUL bytes, typical of a preallocated file cut by a power failure; delete them \
                 and what follows to read the rest"
            ),
            Problem::LongLine => write!(
                f,
                "longer than {LINE_BYTES_MAX} bytes, so no row of a trace; check that this is \
                 the right file"
            ),
            Problem::Fields { due, found } => write!(
                f,
                "{found} {} where {due} {} due; correct the row, or split the file here if two \
                 were joined",
                fields(*found),
                if *due == 1 { "is" } else { "are" },
            ),
            Problem::CutOff { due, found } => write!(
                f,
                "the last row is cut off ({found} of {due} fields); delete it to read the rest"
            ),
            Problem::NotANumber { column, text } => write!(
                f,
                "{column} is \"{text}\", not a number; correct the row, or split the file here \
                 if two were joined"
            ),
            Problem::Negative { column, text } => write!(
                f,
                "{column} is negative ({text}); correct the row, or add a constant to all times \
                 if the clock started below 0"
            ),
            Problem::NotAboveZero { column, text } => write!(
                f,
                "{column} is {text}, and nothing is written unless it is above 0; correct the \
                 row, or delete it if the write failed"
            ),
            Problem::MinAboveMax => f.write_str(
                "MinLatency(ms) is above MaxLatency(ms); correct the row, or delete it",
            ),
            Problem::TakesTooLong => f.write_str(
                "at this WriteSpeed(MB/s) the file takes over 292 years; correct the row, or delete \
                 it",
            ),
            Problem::Above32Bits { column, text } => write!(
                f,
                "{column} is {text}, which does not fit in 32 bits; correct the row"
            ),
            Problem::TooLarge { column, text } => write!(
                f,
                "{column} is {text}, which does not fit (no number may pass 2^63 - 1, times \
                 in ns); correct the row"
            ),
            Problem::Operation { text } => write!(
                f,
                "the operation is \"{text}\"; correct it to one of those in docs/formats.md"
            ),
            Problem::Backward { time, before } => write!(
                f,
                "the time {time} lies before the one above it ({before}); if the counter \
                 wrapped or two runs were joined, split the file there"
            ),
            Problem::EndBeforeStart { start, end } => write!(
                f,
                "the end {end} lies before the start {start} of the same operation; correct \
                 the row, or delete it if it was cut off"
            ),
            Problem::TotalTooLarge => write!(
                f,
                "its offsets and lengths add up to more than 2^63 - 1 bytes; correct them"
            ),
            Problem::SizesTooLarge => write!(
                f,
                "the file sizes down to this row add up to more than 2^63 - 1 bytes; correct the \
                 row"
            ),
            Problem::Averages => write!(
                f,
                "a block size of 0 marks an average over several operations; record again \
                 without log_avg_msec"
            ),
            Problem::NoResults => write!(
                f,
                "the test information is there but no results; run the test again"
            ),
            Problem::ResultsHeader => write!(
                f,
                "the header of the results is not \"File 0  start,File 0  end,...\"; copy the \
                 file again"
            ),
            Problem::FilesDiffer { declared, found } => write!(
                f,
                "{found} {} in the header where {declared} are declared above; copy the file \
                 again, or correct \"Amount of files\"",
                if *found == 1 { "file" } else { "files" },
            ),
            Problem::LinesMissing { declared, found } => write!(
                f,
                "the results are cut off after {found} of {declared} declared lines; copy the \
                 file again, or correct \"Lines per file\" to read what is there"
            ),
            Problem::LinesBeyond { declared } => write!(
                f,
                "more results than the {declared} declared lines; split the file here if two \
                 were joined, or correct \"Lines per file\""
            ),
            Problem::ParquetCutOff => write!(
                f,
                "the Parquet file is cut off (its footer is missing); copy it again"
            ),
            Problem::ParquetDamaged(why) => {
                write!(f, "the Parquet file is damaged ({why}); copy it again")
            }
            Problem::ParquetColumns { found } => write!(
                f,
                "its columns are {found}, and a trace has operation, file, offset, length, \
                 start_ns, end_ns, all required, as docs/formats.md says; convert it, or export \
                 it as CSV"
            ),
            Problem::ParquetCompressed => write!(
                f,
                "the Parquet file is compressed, and traces are not; write it uncompressed"
            ),
            Problem::ParquetRows { rows, bytes } => write!(
                f,
                "the Parquet file is damaged (its {bytes} bytes cannot hold {rows} rows); copy \
                 it again"
            ),
            Problem::ParquetPipe => write!(
                f,
                "more than 1 GiB of Parquet through a pipe; name the file instead"
            ),
            Problem::NoSamples => write!(
                f,
                "there are no rows of time, V1 and V2 in it; export the time and both channels of \
                 the scope as CSV"
            ),
            Problem::ScopeColumns { found } => write!(
                f,
                "in \"{found}\" it is not clear which columns are the time and the voltages before \
                 and behind the shunt; name them time,V1,V2"
            ),
            Problem::SameTime { time } => write!(
                f,
                "the time {time} is that of the sample above it; export the time with more digits"
            ),
            Problem::TimeTooFar { time } => write!(
                f,
                "the time is {time}, over 292 years from the scope's 0; correct the row"
            ),
            Problem::NoVoltage { column, text } => write!(
                f,
                "{column} is {text}, not within 1000 V, as scopes write where they saw nothing; \
                 record again with a larger range, or delete the rows"
            ),
        }
    }
}

fn fields(count: usize) -> &'static str {
    if count == 1 { "field" } else { "fields" }
}

const UNDERSTOOD: &str = "the format is not known; understood are Cardiograph's Parquet and CSV \
    (operation,file,offset,length,start_ns,end_ns), index,start_us,end_us, the MagOD2 results \
    file (Test information:), fio latency logs (--write_lat_log), one write time in ms a line, \
    the library comparison's CSV (Iteration,FileSize(KB),...) and recordings whose header names \
    a time column (Time[ms], time_us, timestamp, ...); convert it to one of them";
