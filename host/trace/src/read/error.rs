//! Read errors and their locations.

mod message;

use super::remedy::{ANALYZE, with_path};
use std::fmt;
use std::io;

/// A file could not be read.
///
/// `Display` is one sentence: the file, the line (or row of a Parquet file), what is wrong, and how to fix it.
#[derive(Debug)]
pub struct ReadError {
    file: String,
    /// Boxed to keep results small, because errors are rare.
    fault: Box<Fault>,
}

impl ReadError {
    pub(super) fn new(file: &str, fault: Fault) -> ReadError {
        ReadError {
            file: file.to_owned(),
            fault: Box::new(fault),
        }
    }

    /// Returns the message for a command that has no options for columns and units.
    pub fn without_options(&self) -> String {
        let message = self.to_string();
        let is_of_options = ["--time-unit", "--latency-column", "--time-column"]
            .iter()
            .any(|option| message.contains(option));
        match is_of_options {
            true => format!(
                "{message}; then convert the file with cardiograph analyze and --trace t.parquet, and pass t.parquet to this command"
            ),
            false => message,
        }
    }

    /// Returns true if the problem is the format of the whole file, as opposed to a single row or access to the file.
    pub fn is_of_format(&self) -> bool {
        matches!(self.fault.location, Location::File)
            && !matches!(
                self.fault.problem,
                Problem::Open(_)
                    | Problem::Read(_)
                    | Problem::Directory
                    | Problem::Empty
                    | Problem::NoRows
                    | Problem::OneSample
                    | Problem::CoresOnly { .. }
            )
    }
}

/// A problem and its location.
#[derive(Debug)]
pub(super) struct Fault {
    location: Location,
    problem: Problem,
}

#[derive(Debug)]
enum Location {
    File,
    Line(u64),
    Row(u64),
    Byte(u64),
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
    /// A table in which no column has a known name.
    UnknownTable {
        /// Columns with an example each, as a list for a sentence.
        columns: String,
        /// Name or number of the column that may contain times, quoted for a shell; `latency` is the same for
        /// latencies.
        time: Option<String>,
        latency: Option<String>,
    },
    NotText,
    /// Text in an encoding other than UTF-8; `name` is iconv's name for it.
    Encoding {
        name: &'static str,
    },
    Nul {
        bytes_before: u64,
    },
    LongLine,
    Fields {
        expected: usize,
        found: usize,
    },
    Truncated {
        expected: usize,
        found: usize,
    },
    NotANumber {
        column: String,
        text: String,
    },
    Negative {
        column: String,
        text: String,
    },
    NegativeLatency {
        column: String,
        text: String,
    },
    NegativeTime {
        column: String,
        text: String,
        cause: &'static str,
        command: String,
    },
    /// The column of groups has a different text in most rows.
    ManySources {
        column: String,
    },
    /// Too many rows of a recording that are no samples.
    OddRows {
        rows: u64,
        reason: String,
    },
    /// The header again, among the rows.
    HeaderAgain {
        column: String,
        rows: u64,
    },
    /// A length with decimals, but without a unit.
    Length {
        text: String,
    },
    /// Text in a column of numbers.
    Label {
        text: String,
    },
    LastIsTotal,
    /// Latencies that only increase.
    Rising {
        column: String,
        difference: String,
    },
    /// Counts of a histogram that only increase.
    RisingCounts {
        column: String,
        difference: String,
    },
    /// As [`Problem::Rising`], for a list without columns.
    RisingList {
        difference: String,
        /// False if some numbers are equal to the previous one, or a few less.
        is_strict: bool,
    },
    /// A unit whose length is unknown.
    ForeignUnit {
        column: String,
        convert: String,
    },
    UnknownOperations {
        column: String,
        names: String,
        keep: String,
        rename: String,
    },
    /// Shares of all writes instead of their number.
    Shares {
        column: String,
        scale: String,
    },
    CountUnknown {
        column: String,
        rename: String,
    },
    /// A file whose table has to be extracted with another program.
    Container {
        what: &'static str,
        remedy: &'static str,
    },
    /// Throughputs instead of latencies.
    Rates {
        column: String,
    },
    /// Times that decrease in many rows.
    Disorder {
        name: String,
        falls: usize,
        rows: usize,
        may_be_latency: bool,
        sort: String,
    },
    /// A write that starts before the previous one has ended.
    Overlap {
        start: String,
        end: String,
        difference: String,
    },
    /// Text that a command converts to a supported table.
    Prose {
        what: &'static str,
        command: String,
    },
    NotAboveZero {
        column: String,
        text: String,
    },
    MinAboveMax,
    TakesTooLong,
    TooLarge {
        column: String,
        text: String,
    },
    Above32Bits {
        column: String,
        text: String,
    },
    /// A date whose day, month and year could be in another order.
    AmbiguousDate {
        column: String,
        text: String,
    },
    Operation {
        text: String,
    },
    Backward {
        time: String,
        before: String,
    },
    /// As [`Problem::Backward`], with times that were converted to ns.
    BackwardNs {
        time: String,
        before: String,
    },
    EndBeforeStart {
        start: String,
        end: String,
    },
    TotalTooLarge,
    SizesTooLarge,
    Averages,
    NoResults,
    ResultsHeader,
    FilesDiffer {
        declared: u64,
        found: u64,
    },
    LinesMissing {
        declared: u64,
        found: u64,
    },
    LinesBeyond {
        declared: u64,
    },
    ParquetTruncated,
    ParquetDamaged(String),
    ParquetColumns {
        found: String,
        /// True if most columns have the names of a trace's columns.
        is_trace: bool,
    },
    /// A problem of a Parquet file's table whose message contains a command for text files.
    ParquetTable {
        text: String,
    },
    ParquetCompressed {
        name: String,
    },
    ParquetEncoded {
        name: String,
    },
    /// Operations or file numbers stored as 64-bit numbers or as text.
    ParquetTypes,
    ParquetNull {
        column: &'static str,
    },
    ParquetRows {
        rows: u64,
        bytes: u64,
    },
    LargeInMemory,
    NoSamples,
    ScopeColumns {
        found: String,
    },
    SameTime {
        time: String,
    },
    TimeTooFar {
        time: String,
    },
    UnitUnknown {
        what: String,
        readings: String,
        options: String,
    },
    UnitNamed {
        names: String,
    },
    NoColumn {
        wanted: String,
        found: String,
    },
    /// All lines of a board's trace are damaged.
    BoardDamaged,
    /// The board stopped a test before the first write.
    Stopped {
        reason: String,
        /// Note on the times of a load on two cores that the board measured before.
        cores: Option<String>,
    },
    /// The board measured a load on two cores, but not its card.
    CoresOnly {
        cores: String,
    },
    NoTopic {
        wanted: String,
        found: String,
    },
    SeveralColumns {
        names: String,
        option: &'static str,
    },
    Statistics {
        column: String,
    },
    FixedFormat {
        format: &'static str,
        option: &'static str,
    },
    /// An option for recordings, with a trace of writes.
    OfRecordings {
        option: &'static str,
    },
    Summary {
        tool: &'static str,
        remedy: &'static str,
    },
    NotLatencies {
        kind: &'static str,
    },
    JsonDamaged,
    /// The sum of fio's bins differs from the number of writes that fio states.
    BinsDiffer {
        stated: u64,
        found: u64,
    },
    /// fio's JSON has reads only.
    NoWrites,
    /// The total of a histogram is missing or differs.
    HistogramCut,
    /// A cumulative count decreases.
    CountBackward {
        count: String,
        before: String,
    },
    /// An interval of HdrHistogram cannot be decoded.
    HdrDamaged,
    /// Intervals of HdrHistogram with different tags.
    SeveralTags,
    /// Operations of more than one block device.
    SeveralDevices {
        names: String,
        first: String,
    },
    /// The commas of a list are decimal commas.
    DecimalComma {
        text: String,
    },
    /// The commas of a list separate decimals or thousands.
    Comma {
        text: String,
    },
    /// A point or comma separates thousands.
    Thousands {
        mark: char,
        text: String,
    },
    /// A difference of 32-bit counter readings fell below 0.
    Underflow {
        text: String,
    },
    /// Most samples have the same time as the previous sample.
    Coarse {
        samples: u64,
        times: u64,
    },
    /// Rows that look like those of fio, in one of two units.
    FioUnit {
        ns: String,
        us: String,
    },
    /// Rows of four numbers without the spaces that fio writes.
    FioOrTable,
    NoVoltage {
        column: String,
        text: String,
    },
}

impl Fault {
    pub(super) fn is_of_unknown_format(&self) -> bool {
        matches!(self.problem, Problem::Unknown)
    }

    pub(super) fn is_of_other_columns(&self) -> bool {
        matches!(
            self.problem,
            Problem::ParquetColumns {
                is_trace: false,
                ..
            }
        )
    }

    /// Converts the location of a problem in a Parquet file's table from the line of the text to the row of the file.
    pub(super) fn in_parquet_table(self) -> Fault {
        let location = match self.location {
            Location::Line(number) if number > 1 => Location::Row(number - 1),
            Location::Line(_) | Location::File | Location::Row(_) | Location::Byte(_) => {
                Location::File
            }
        };
        let problem = match self.problem.to_string() {
            text if [ANALYZE, " > "].iter().any(|part| text.contains(part)) => {
                Problem::ParquetTable { text }
            }
            _ => self.problem,
        };
        Fault { location, problem }
    }
}

impl Problem {
    /// Locates the problem in the file as a whole.
    pub(super) fn in_file(self) -> Fault {
        Fault {
            location: Location::File,
            problem: self,
        }
    }

    /// Locates the problem in a line, counted from 1.
    pub(super) fn at_line(self, number: u64) -> Fault {
        Fault {
            location: Location::Line(number),
            problem: self,
        }
    }

    /// Locates the problem at a byte of a binary file, counted from 0.
    pub(super) fn at_byte(self, offset: u64) -> Fault {
        Fault {
            location: Location::Byte(offset),
            problem: self,
        }
    }

    /// Locates the problem in a row of a Parquet file, counted from 1.
    pub(super) fn at_row(self, number: u64) -> Fault {
        Fault {
            location: Location::Row(number),
            problem: self,
        }
    }
}

/// Escapes and shortens text from a file for use in a sentence.
pub(super) fn shown(text: &[u8]) -> String {
    const CHARS_MAX: usize = 40;
    // A character takes up to four bytes; one character more than shown is kept, to detect that the text was
    // shortened.
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
        match self.fault.location {
            Location::File => {}
            Location::Line(number) => write!(f, ", line {number}")?,
            Location::Row(number) => write!(f, ", row {number}")?,
            Location::Byte(offset) => write!(f, ", byte {offset}")?,
        }
        f.write_str(": ")?;
        f.write_str(&with_path(&self.fault.problem.to_string(), &self.file))
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
