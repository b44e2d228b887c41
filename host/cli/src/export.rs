//! `cardiograph export`: converts a binary recording to CSV or ULog.

use crate::failure::{Failure, print, print_error};
use crate::outputs::{check_files, create, is_standard_output};
use crate::progress::Watched;
use crate::shared::{self, Shared};
use cardiograph_record::{ExportError, Exported, export_csv, export_ulog};
use cardiograph_trace::{NewFile, WriteError};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Maximum number of damaged ranges in the error message.
const REPORTED_MAX: usize = 20;

/// Convert a binary recording to CSV or ULog.
#[derive(clap::Args)]
#[command(after_help = "\
The CSV contains the lines that `record --format csv` would have written, in one file per stream. A
single stream goes to FILE; for several streams, OUT.csv becomes OUT-0.csv for
stream 1, OUT-1.csv for stream 2 and so on. A ULog file has a topic per stream and a topic that lists the gaps; each gap is also a ULog dropout.
PlotJuggler, Foxglove and pyulog open it. Timestamps come from a column time_us or time_ms, or else from the block headers.

Damaged blocks are skipped, and the exit code is 2; in CSV a comment line marks each damaged range.

Examples:
  cardiograph export REC00001.BIN > recording.csv
  cardiograph export REC00001.BIN --csv recording.csv
  cardiograph export REC00001.BIN --ulog recording.ulg")]
pub struct Export {
    /// A binary recording
    #[arg(value_name = "FILE.BIN")]
    pub file: PathBuf,

    /// Write CSV to this file [default: standard output]
    #[arg(long, value_name = "FILE", conflicts_with = "ulog")]
    pub csv: Option<PathBuf>,

    /// Write a ULog file instead of CSV
    #[arg(long, value_name = "FILE")]
    pub ulog: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// Exports, then reports damaged blocks.
pub fn run(args: &Export) -> Result<(), Failure> {
    args.shared.apply([&args.file]);
    check_files(args.csv.iter().chain(&args.ulog))?;
    let name = args.file.display();
    let input = File::open(&args.file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::new(format!("{name}: no such file; check the name")),
        _ => Failure::new(format!("{name}: {error}; use a readable file")),
    })?;
    if input.metadata().is_ok_and(|about| about.is_dir()) {
        return Err(Failure::new(format!(
            "{name} is a directory; name a recording in it"
        )));
    }
    // A ULog file begins with the definitions of its topics, so the recording is read twice.
    let input = Watched::new(input, if args.ulog.is_some() { 2 } else { 1 });
    let mut damaged = Vec::new();
    let note = |range| {
        // Keeps one range more than the error message lists, so that the message can say that there are
        // more; the total is counted separately.
        if damaged.len() <= REPORTED_MAX {
            damaged.push(range);
        }
    };
    let exported = match (&args.ulog, &args.csv) {
        (Some(path), _) => to_ulog(args, input, path, note)?,
        (None, Some(path)) if !is_standard_output(path) => to_files(args, input, path, note)?,
        _ => to_standard_output(args, input, note)?,
    };
    if !shared::is_quiet() {
        print_summary(args, &exported)?;
    }
    match exported.damaged_blocks {
        0 => Ok(()),
        count => {
            let are = if count == 1 {
                "block of 512 B is"
            } else {
                "blocks of 512 B are"
            };
            Err(Failure::new(format!(
                "{name}: {count} {are} damaged ({}); everything else was exported; check the storage device that the \
                 recording was made on",
                list(&damaged)
            )))
        }
    }
}

fn to_ulog(
    args: &Export,
    input: Watched,
    path: &Path,
    note: impl FnMut(RangeInclusive<u64>),
) -> Result<Exported, Failure> {
    if is_standard_output(path) {
        let out = BufWriter::new(io::stdout().lock());
        return export_ulog(input, out, note).map_err(|error| failed(args, path, error));
    }
    let mut file = create(path)?;
    let exported = export_ulog(input, BufWriter::new(&mut file), note);
    let exported = exported.map_err(|error| failed(args, path, error))?;
    file.commit().map_err(Failure::new)?;
    Ok(exported)
}

fn to_standard_output(
    args: &Export,
    input: Watched,
    note: impl FnMut(RangeInclusive<u64>),
) -> Result<Exported, Failure> {
    let mut several = None;
    let open = |_, streams| match streams {
        1 => Ok(BufWriter::new(io::stdout().lock())),
        _ => {
            several = Some(streams);
            Err(io::Error::from(ErrorKind::Unsupported))
        }
    };
    let exported = export_csv(BufReader::new(input), open, note);
    if let Some(streams) = several {
        return Err(Failure::new(format!(
            "{}: contains {streams} streams, which need one CSV file each; add --csv OUT.csv, or use --ulog",
            args.file.display()
        )));
    }
    exported.map_err(|error| failed(args, Path::new("standard output"), error))
}

/// A new file, shared by its writers, that appears under its name once everything is written.
#[derive(Clone)]
struct SharedFile(Rc<RefCell<NewFile>>);

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

fn to_files(
    args: &Export,
    input: Watched,
    path: &Path,
    note: impl FnMut(RangeInclusive<u64>),
) -> Result<Exported, Failure> {
    let mut files: Vec<SharedFile> = Vec::new();
    let mut refused = None;
    let open = |stream, streams| {
        let path = match streams {
            1 => path.to_path_buf(),
            _ => numbered(path, stream),
        };
        match create(&path) {
            Ok(file) => {
                let file = SharedFile(Rc::new(RefCell::new(file)));
                files.push(file.clone());
                Ok(BufWriter::new(file))
            }
            Err(error) => {
                refused = Some(error);
                Err(io::Error::from(ErrorKind::Other))
            }
        }
    };
    let exported = export_csv(BufReader::new(input), open, note);
    if let Some(error) = refused {
        return Err(error);
    }
    let exported = exported.map_err(|error| failed(args, path, error))?;
    for file in files {
        if let Ok(file) = Rc::try_unwrap(file.0) {
            file.into_inner().commit().map_err(Failure::new)?;
        }
    }
    Ok(exported)
}

/// Returns the path of a stream's file: `OUT-1.csv` for `OUT.csv`.
fn numbered(path: &Path, stream: u8) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{stream}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{stream}"),
    };
    path.with_file_name(name)
}

fn failed(args: &Export, output: &Path, error: ExportError) -> Failure {
    match error {
        ExportError::Write(error) if error.kind() == ErrorKind::BrokenPipe => Failure::OutputClosed,
        ExportError::Write(error) => Failure::new(WriteError::new(output, error)),
        error => Failure::new(format!("{}: {error}", args.file.display())),
    }
}

fn print_summary(args: &Export, exported: &Exported) -> Result<(), Failure> {
    let streams = match exported.streams {
        0 | 1 => String::new(),
        count => format!(" of {count} streams"),
    };
    let text = format!(
        "Exported {} samples{streams}. Lost samples, according to the gaps in the recording: {}.\n",
        exported.samples, exported.lost
    );
    match args.ulog.as_ref().or(args.csv.as_ref()) {
        Some(path) if !is_standard_output(path) => print(&text),
        _ => {
            print_error(&text);
            Ok(())
        }
    }
}

/// Formats ranges of damaged blocks: `block 7 at byte 3584, blocks 9 to 12 at byte 4608 and more`.
fn list(damaged: &[RangeInclusive<u64>]) -> String {
    let ranges =
        damaged
            .iter()
            .take(REPORTED_MAX)
            .map(|range| match range.start() == range.end() {
                true => format!("block {} at byte {}", range.start(), range.start() * 512),
                false => format!(
                    "blocks {} to {} at byte {}",
                    range.start(),
                    range.end(),
                    range.start() * 512
                ),
            });
    let ranges: Vec<_> = ranges.collect();
    match damaged.len() > REPORTED_MAX {
        true => format!("{} and more", ranges.join(", ")),
        false => ranges.join(", "),
    }
}
