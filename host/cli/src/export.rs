//! `cardiograph export`: a binary recording as CSV.

use crate::failure::{Failure, print, print_error};
use crate::outputs::{check_files, is_standard_output};
use cardiograph_record::{ExportError, Exported, export_csv};
use cardiograph_trace::{NewFile, WriteError};
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Damaged places that are told one by one.
const TOLD_MAX: usize = 20;

/// Turn a binary recording into CSV.
#[derive(clap::Args)]
#[command(after_help = "\
The text is what the recorder would have written, without its marks. Damaged blocks are left out, and
a note says so in their place; the exit code is 2 then.

Examples:
  cardiograph export REC00001.BIN > recording.csv
  cardiograph export REC00001.BIN --csv recording.csv")]
pub struct Export {
    /// A recording in the binary format, as a recorder made it
    #[arg(value_name = "FILE.BIN")]
    pub file: PathBuf,

    /// Write the rows here [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Exports, then says what is damaged.
pub fn run(args: &Export) -> Result<(), Failure> {
    check_files(&args.csv)?;
    let name = args.file.display();
    let input = File::open(&args.file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::new(format!("{name}: there is no such file; check its name"))
        }
        _ => Failure::new(format!("{name}: {error}; give a file that can be read")),
    })?;
    let mut damaged = Vec::new();
    let exported = match &args.csv {
        Some(path) if !is_standard_output(path) => to_file(args, input, path, &mut damaged)?,
        _ => {
            let out = BufWriter::new(std::io::stdout().lock());
            export(args, "standard output", input, out, &mut damaged)?
        }
    };
    tell(args, &exported)?;
    match exported.damaged_blocks {
        0 => Ok(()),
        count => {
            let are = if count == 1 {
                "block of 512 B is"
            } else {
                "blocks of 512 B are"
            };
            Err(Failure::new(format!(
                "{name}: {count} {are} damaged, {}; all else was exported",
                list(&damaged)
            )))
        }
    }
}

fn to_file(
    args: &Export,
    input: File,
    path: &Path,
    damaged: &mut Vec<RangeInclusive<u64>>,
) -> Result<Exported, Failure> {
    let mut file = NewFile::create(path).map_err(Failure::new)?;
    let out = BufWriter::new(&mut file);
    let exported = export(args, &path.display().to_string(), input, out, damaged)?;
    file.commit().map_err(Failure::new)?;
    Ok(exported)
}

fn export(
    args: &Export,
    output: &str,
    input: File,
    out: impl Write,
    damaged: &mut Vec<RangeInclusive<u64>>,
) -> Result<Exported, Failure> {
    let note = |range| {
        // The numbers of more would be read by nobody; how many there are is counted.
        if damaged.len() <= TOLD_MAX {
            damaged.push(range);
        }
    };
    export_csv(BufReader::new(input), out, note).map_err(|error| match error {
        ExportError::Write(error) if error.kind() == ErrorKind::BrokenPipe => Failure::OutputClosed,
        ExportError::Write(error) => Failure::new(WriteError::new(Path::new(output), error)),
        error => Failure::new(format!("{}: {error}", args.file.display())),
    })
}

fn tell(args: &Export, exported: &Exported) -> Result<(), Failure> {
    let text = format!(
        "{} samples; {} missing, as the recording says itself\n",
        exported.samples, exported.lost
    );
    match &args.csv {
        Some(path) if !is_standard_output(path) => print(&text),
        _ => {
            print_error(&text);
            Ok(())
        }
    }
}

/// `block 7, blocks 9 to 12 and more`.
fn list(damaged: &[RangeInclusive<u64>]) -> String {
    let told = damaged
        .iter()
        .take(TOLD_MAX)
        .map(|range| match range.start() == range.end() {
            true => format!("block {}", range.start()),
            false => format!("blocks {} to {}", range.start(), range.end()),
        });
    let told: Vec<_> = told.collect();
    match damaged.len() > TOLD_MAX {
        true => format!("{} and more", told.join(", ")),
        false => told.join(", "),
    }
}
