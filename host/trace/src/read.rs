//! Trace readers. The format is detected from the content, never from the file name.

mod biosnoop;
mod blinky;
mod blkparse;
mod blocks;
mod board;
mod calendar;
mod columns;
mod detect;
mod doubt;
mod error;
mod fio;
mod foreign;
mod guard;
mod guess;
mod hdr_log;
mod histogram;
mod integers;
mod ioping;
mod lines;
mod number;
mod numeral;
mod operation;
mod order;
mod own_csv;
mod parquet;
mod parquet_about;
mod parquet_pages;
mod parquet_table;
mod parquet_units;
mod progress;
mod prose;
mod qiita;
mod recording;
mod remedy;
mod role;
mod scale;
mod scope;
mod scope_header;
mod sequence;
mod series;
mod split;
mod summary;
mod thesis;
mod thrift;
mod ulog;
mod unknown;
mod wrap;
mod writes;

use crate::histogram::Histogram;
use crate::run::{Run, RunOrder};
use crate::trace::{About, Trace};
use ::parquet::file::reader::ChunkReader;
use bytes::Bytes;
use cardiograph_workload::OperationKind;
use detect::{Detected, Format};
use error::{Fault, Problem};
use lines::Lines;
use progress::Counted;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

pub use board::{BoardLine, board_command, board_line};
pub use calendar::DateOrder;
pub use columns::Unit as TimeUnit;
pub use error::ReadError;
pub(crate) use own_csv::COLUMNS;
pub(crate) use qiita::COLUMNS as LIBRARY_COLUMNS;
pub use scope::{Scope, read_scope, read_scope_from};

/// Information that a trace file itself may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Payload of each write in bytes, for formats without lengths.
    pub block_bytes: u64,
    /// Unit of times that the file does not name.
    pub time_unit: Option<TimeUnit>,
    /// Column of the times, by its name or its number from 1.
    pub time_column: Option<String>,
    /// Column of the latencies, likewise.
    pub latency_column: Option<String>,
    /// Order of day, month and year in dates such as 01/02/26.
    pub date_order: Option<DateOrder>,
    /// Column whose texts name the sources of the samples of a recording.
    pub group_column: Option<String>,
    /// Column that counts the samples of a recording.
    pub sequence_column: Option<String>,
}

impl ReadOptions {
    /// Creates options without units and columns.
    pub fn with_block_bytes(block_bytes: u64) -> ReadOptions {
        ReadOptions {
            block_bytes,
            time_unit: None,
            time_column: None,
            latency_column: None,
            date_order: None,
            group_column: None,
            sequence_column: None,
        }
    }

    fn names_columns(&self) -> bool {
        self.time_column.is_some() || self.latency_column.is_some()
    }

    /// Returns the command line's name of an option that formats with fixed columns and units would ignore.
    fn first_set(&self) -> Option<&'static str> {
        let unit = self.time_unit.map(|_| "--time-unit");
        let time = self.time_column.as_ref().map(|_| "--time-column");
        let latency = self.latency_column.as_ref().map(|_| "--latency-column");
        unit.or(time).or(latency).or(self.first_of_recordings())
    }

    /// Returns the command line's name of an option that only recordings have.
    fn first_of_recordings(&self) -> Option<&'static str> {
        let group = self.group_column.as_ref().map(|_| "--group-by");
        let sequence = self.sequence_column.as_ref().map(|_| "--sequence-column");
        group.or(sequence)
    }
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions::with_block_bytes(512)
    }
}

/// Contents of a file.
pub enum Loaded {
    /// Individual operations.
    Trace(Trace),
    /// A recording with a time column.
    Recording(Recording),
    /// Latencies of writes without their order.
    Histogram(Histogram),
    /// Statistics of whole files, without individual operations.
    Aggregate(Aggregate),
}

impl Loaded {
    fn about_mut(&mut self) -> &mut About {
        match self {
            Loaded::Trace(trace) => &mut trace.about,
            Loaded::Recording(recording) => &mut recording.trace.about,
            Loaded::Histogram(histogram) => &mut histogram.about,
            Loaded::Aggregate(aggregate) => &mut aggregate.about,
        }
    }
}

/// A recording: samples, each with its time, written by any recorder.
pub struct Recording {
    /// One operation for each interval between two samples. The length of the operation is that of the later
    /// sample's line, and its offset is the start of that line.
    pub trace: Trace,
    /// Number of samples: in each run, one more than the number of operations.
    pub samples: u64,
    /// Runs of the clock, and of each source if there are several. The file of an operation is the number of its run.
    pub runs: Vec<RecordingRun>,
    /// Loss according to the column that counts the samples.
    pub sequence: Option<SequenceLoss>,
    /// Name of the time column.
    pub time_column: String,
    /// Abbreviated unit of the time column: `s`, `ms`, `us` or `ns`, or `calendar` for dates and times of day.
    pub time_unit: &'static str,
}

/// Samples of one source, from the start of its clock to the next restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRun {
    /// Name of the source, and number of the run if there are several; empty for the only run of a file.
    pub label: String,
    /// Number of samples.
    pub samples: u64,
}

/// Loss according to a column that counts the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceLoss {
    /// Name of the column.
    pub column: String,
    /// Samples whose number is missing.
    pub lost: u64,
    /// Samples with the number of the sample before.
    pub repeated: u64,
}

/// Statistics of whole files.
pub struct Aggregate {
    /// Description of the run that the figures come from.
    pub about: About,
    /// One row for each file written; empty if the summary does not state them.
    pub rows: Vec<AggregateRow>,
    /// The longest write of a summary without such rows; `None` if it does not state it.
    pub longest: Option<LongestWrite>,
}

/// The longest write that a summary states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestWrite {
    /// Its latency in ns.
    pub latency_ns: u64,
    /// Number of writes of which it is the longest, if stated.
    pub writes: Option<u64>,
}

/// Statistics of one file. The published kB and MB are 1024 and 1024^2 bytes and are converted to bytes here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AggregateRow {
    /// Number of the repetition in which the file was written.
    pub iteration: u64,
    /// Size of the file in bytes.
    pub file_size_bytes: u64,
    /// Payload of each write in bytes.
    pub block_bytes: u64,
    /// Throughput in bytes per second.
    pub throughput_bytes_per_s: f64,
    /// Mean latency in ns.
    pub latency_ns_mean: u64,
    /// Minimum latency in ns.
    pub latency_ns_min: u64,
    /// Worst-case latency in ns.
    pub latency_ns_max: u64,
    /// Writes per second.
    pub iops: f64,
}

/// Reads a file.
///
/// # Errors
/// One sentence that names the file, the line and the remedy.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Loaded, ReadError> {
    read_with_progress(path, options, &mut |_| {})
}

/// Reads a file and reports the number of bytes read so far to `progress` from time to time.
///
/// # Errors
/// As [`read`].
pub fn read_with_progress(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Loaded, ReadError> {
    let name = path.display().to_string();
    let open = || {
        let file = File::open(path).map_err(|error| Problem::Open(error).in_file())?;
        let metadata = file
            .metadata()
            .map_err(|error| Problem::Open(error).in_file())?;
        if metadata.is_dir() {
            return Err(Problem::Directory.in_file());
        }
        let is_parquet = metadata.is_file() && starts_as_parquet(&file)?;
        Ok((file, is_parquet))
    };
    match open() {
        // A Parquet file is read from its end; from a pipe, the whole file has to be held in memory.
        Ok((file, true)) => read_parquet(&name, file, options, progress),
        Ok((file, false)) => return read_from(&name, Counted::new(file, progress), options),
        Err(fault) => Err(fault),
    }
    .and_then(complete)
    .map_err(|fault| ReadError::new(&name, fault))
}

/// Reads from any source, such as a pipe; `name` replaces the file name in notes and errors.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    name: &str,
    reader: impl Read,
    options: &ReadOptions,
) -> Result<Loaded, ReadError> {
    read_any(name, reader, options)
        .and_then(complete)
        .map_err(|fault| ReadError::new(name, fault))
}

fn read_any(name: &str, reader: impl Read, options: &ReadOptions) -> Result<Loaded, Fault> {
    let mut lines = Lines::new(reader)?;
    if lines.in_memory().starts_with(PARQUET_MAGIC) {
        return read_parquet(name, in_memory(lines.into_rest())?, options, &mut |_| {});
    }
    if lines.in_memory().starts_with(ulog::MAGIC) {
        let bytes = in_memory(lines.into_rest())?;
        return ulog::read(&bytes, about(name, "ULog"), options).map(Loaded::Recording);
    }
    if histogram::is_fio_json(lines.in_memory()) {
        if let Some(option) = options.first_set() {
            let format = "fio JSON+ histogram";
            return Err(Problem::FixedFormat { format, option }.in_file());
        }
        let about = about(name, "fio histogram");
        return histogram::read_fio_json(lines.into_rest(), about).map(Loaded::Histogram);
    }
    let lines = &mut lines;
    if board::is_trace(lines.in_memory()) {
        if let Some(option) = options.first_set() {
            let format = "board's trace";
            return Err(Problem::FixedFormat { format, option }.in_file());
        }
        return board::read(lines, about(name, "board"), options).map(Loaded::Trace);
    }
    fio::refuse_by_name(name)?;
    let block_bytes = options.block_bytes;
    let about_blocks = |format| {
        let mut about = about(name, format);
        about.notes.push(block_note(block_bytes));
        about
    };
    if let Some(stated) = summary::stated(lines.in_memory()) {
        if let Some(option) = options.first_set() {
            let format = "summary without individual writes";
            return Err(Problem::FixedFormat { format, option }.in_file());
        }
        let mut about = about(name, stated.tool);
        about.notes.push(format!(
            "This is the summary of {}, which lists no individual writes. To see stalls and sustained rates, {}.",
            stated.tool, stated.remedy
        ));
        return Ok(Loaded::Aggregate(Aggregate {
            about,
            rows: Vec::new(),
            longest: stated.longest,
        }));
    }
    let detected = detect::detect(lines.in_memory(), options);
    if detected.is_err() && board::is_damaged(lines.in_memory()) {
        return Err(Problem::BoardDamaged.in_file());
    }
    let Detected { format, preamble } = detected?;
    lines.skip(preamble)?;
    let trace = |trace: Result<Trace, Fault>| trace.map(Loaded::Trace);
    let is_measured = matches!(
        format,
        Format::Integers | Format::Blinky | Format::Writes(_) | Format::Fio
    );
    let states_size = matches!(format, Format::Thesis);
    let mut loaded = match format {
        Format::OwnCsv => trace(own_csv::read(lines, about(name, "Cardiograph CSV"))),
        Format::Integers => {
            let about = about_blocks("index,start_us,end_us");
            trace(integers::read(lines, about, block_bytes))
        }
        Format::Thesis => trace(thesis::read(lines, about(name, "magod2"), block_bytes)),
        Format::Blinky => trace(blinky::read(lines, about_blocks("latencies"), options)),
        Format::Biosnoop => trace(biosnoop::read(lines, about(name, "biosnoop"))),
        Format::Blkparse => trace(blkparse::read(lines, about(name, "blkparse"))),
        Format::Ioping => trace(ioping::read(lines, about(name, "ioping"))),
        Format::Hgrm => {
            let about = about(name, "HdrHistogram percentiles");
            histogram::read_hgrm(lines, about, options).map(Loaded::Histogram)
        }
        Format::HdrLog => {
            let about = about(name, "HdrHistogram interval log");
            hdr_log::read(lines, about, options).map(Loaded::Histogram)
        }
        Format::Writes(header) if header.is_histogram(lines.in_memory())? => {
            let about = about(name, "table of latencies and counts");
            writes::read_counts(lines, about, *header, options).map(Loaded::Histogram)
        }
        Format::Writes(header) => {
            let about = about(name, "table of writes");
            trace(writes::read(lines, about, *header, options))
        }
        Format::Fio => trace(fio::read(lines, about(name, "fio latency log"), options)),
        Format::Qiita => {
            qiita::read(lines, about(name, "library-comparison")).map(Loaded::Aggregate)
        }
        Format::Recording(header) => {
            let about = about(name, "recording");
            recording::read(lines, about, header, options).map(Loaded::Recording)
        }
    }?;
    if let (Loaded::Trace(trace), true) = (&mut loaded, is_measured) {
        let note = doubt::note_of_resolution(trace);
        trace.about.notes.extend(note);
    }
    if let Loaded::Trace(trace) = &mut loaded {
        let reads = trace.operations().all(|o| o.kind == OperationKind::Read);
        if reads && !trace.is_empty() {
            trace.about.notes.push(format!(
                "The file contains no writes; all figures describe its {} reads.",
                trace.len()
            ));
        }
    }
    let is_noted = |note: &String| note.starts_with("The file ends within line");
    if lines.end_open() && !states_size && !loaded.about_mut().notes.iter().any(is_noted) {
        loaded.about_mut().notes.push(
            "No line end follows the last row; if the file was cut, or is still being written, its last number may be \
             incomplete."
                .to_owned(),
        );
    }
    if preamble > 0 {
        loaded.about_mut().notes.push(format!(
            "Skipped the text before the header in line {}.",
            preamble + 1
        ));
    }
    Ok(loaded)
}

/// Reads a Parquet file: a trace, or any other table.
fn read_parquet<C: ChunkReader + 'static>(
    name: &str,
    file: C,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Loaded, Fault> {
    let file = Arc::new(file);
    let about = about(name, "Cardiograph Parquet");
    let fault = match parquet::read(&file, about, options, progress) {
        Err(fault) if fault.is_of_other_columns() => fault,
        read => return read.map(Loaded::Trace),
    };
    let Some(mut table) = parquet_table::Table::open(file)? else {
        return Err(fault);
    };
    let mut loaded = read_any(name, &mut table, options);
    if let Ok(loaded) = &mut loaded {
        loaded.about_mut().notes.extend(table.note());
    }
    match table.into_fault() {
        Some(fault) => Err(fault),
        None => loaded.map_err(Fault::in_parquet_table),
    }
}

/// Checks properties of the whole trace, which no single row can violate.
fn complete(mut loaded: Loaded) -> Result<Loaded, Fault> {
    let about = loaded.about_mut();
    for note in &mut about.notes {
        *note = remedy::with_path(note, &about.target);
    }
    let trace = match &loaded {
        Loaded::Trace(trace) | Loaded::Recording(Recording { trace, .. }) => trace,
        Loaded::Aggregate(_) | Loaded::Histogram(_) => return Ok(loaded),
    };
    if trace.is_empty() {
        return Err(Problem::NoRows.in_file());
    }
    // Limits on the lengths guarantee that neither their sum nor the end of an operation overflows later.
    let mut total_bytes = 0_u64;
    let fits = trace.runs().iter().all(|run| {
        let length = run.count.checked_mul(run.length_bytes);
        let total = length.and_then(|length| total_bytes.checked_add(length));
        // The first file of a round-robin run has an operation in every round, so no other file extends
        // further.
        let rounds = run.count.div_ceil(u64::from(run.files));
        let in_file = rounds.checked_mul(run.length_bytes);
        let end = match run.order {
            RunOrder::Sequential => in_file.and_then(|length| run.offset_bytes.checked_add(length)),
            RunOrder::Scattered => Some(Run::SCATTERED_BYTES_MAX),
        };
        total_bytes = total.unwrap_or(u64::MAX);
        total_bytes <= number::NUMBER_MAX && end.is_some_and(|end| end <= number::NUMBER_MAX)
    });
    if fits {
        Ok(loaded)
    } else {
        Err(Problem::TotalTooLarge.in_file())
    }
}

const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Returns true if the file starts with the Parquet magic; the file position is reset to the start.
fn starts_as_parquet(file: &File) -> Result<bool, Fault> {
    use std::io::{Seek, SeekFrom};
    let mut magic = [0; PARQUET_MAGIC.len()];
    let mut reader = file;
    let found = match reader.read_exact(&mut magic) {
        Ok(()) => &magic == PARQUET_MAGIC,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
        Err(error) => return Err(Problem::Read(error).in_file()),
    };
    reader
        .seek(SeekFrom::Start(0))
        .map_err(|error| Problem::Read(error).in_file())?;
    Ok(found)
}

/// Reads all remaining data of a Parquet pipe or a ULog file into memory.
fn in_memory(rest: impl Read) -> Result<Bytes, Fault> {
    const MEMORY_BYTES_MAX: usize = 1 << 30;
    const PIECE_BYTES: usize = 1 << 16;
    let mut rest = rest.take(MEMORY_BYTES_MAX as u64 + 1);
    let mut bytes = Vec::new();
    loop {
        // Doubled, but never beyond the limit: a browser may lack the memory for the next double.
        let left = MEMORY_BYTES_MAX + 1 - bytes.len();
        let piece = bytes.len().max(PIECE_BYTES).min(left);
        let reserved = bytes.try_reserve_exact(piece);
        reserved.map_err(|_| Problem::Read(ErrorKind::OutOfMemory.into()).in_file())?;
        let read = rest.by_ref().take(piece as u64).read_to_end(&mut bytes);
        let read = read.map_err(|error| Problem::Read(error).in_file())?;
        if bytes.len() > MEMORY_BYTES_MAX {
            return Err(Problem::LargeInMemory.in_file());
        }
        if read < piece {
            return Ok(bytes.into());
        }
    }
}

fn about(name: &str, format: &str) -> About {
    About {
        target: name.to_owned(),
        workload: format.to_owned(),
        ..About::default()
    }
}

/// Returns the note on reads among writes.
fn left_out(reads: u64) -> String {
    let them = if reads == 1 { "read is" } else { "reads are" };
    format!("The figures cover writes only: {reads} {them} left out.")
}

pub(crate) fn block_note(block_bytes: u64) -> String {
    format!("The file contains no lengths; each write is assumed to be {block_bytes} B.")
}
