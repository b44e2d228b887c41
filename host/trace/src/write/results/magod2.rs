//! The results file of study 1. Its copies differ in their spaces; this module writes those of the study's program.

use super::Unsuitable;
use cardiograph_workload::{Operation, Span, workload};
use std::collections::HashSet;
use std::io::{self, Write};

/// Maximum length of the header, as of any line.
const HEADER_BYTES_MAX: usize = 1 << 18;
/// Limit on latencies and pauses: a longer one would hide a wrap of the 32-bit counter from readers.
const PAUSE_NS_MAX: u64 = (1 << 31) * 1000;

pub(super) struct Results {
    files: Vec<Vec<Operation>>,
    bytes_per_line: u64,
    /// Shortest pause between two writes, in whole ms.
    pause_ms: u64,
    /// True if each write opens and closes its file; `None` if the trace does not say so.
    reopens: Option<bool>,
}

impl Results {
    pub(super) fn of(files: Vec<Vec<Operation>>, name: &str) -> Result<Results, Unsuitable> {
        let unsuitable = |why: &str| {
            Unsuitable(format!(
                "{why}; use --csv-format cardiograph, which has no such limits"
            ))
        };
        let numbers: HashSet<u32> = files.iter().map(|file| file[0].file).collect();
        if numbers.len() < files.len() {
            return Err(unsuitable(
                "the results of MagOD2 contain one file after another, but this trace returns to a file",
            ));
        }
        let (lines, bytes_per_line) = (files[0].len(), files[0][0].length_bytes);
        if files.iter().any(|file| file.len() != lines) {
            return Err(unsuitable(
                "the results of MagOD2 need the same number of writes in every file",
            ));
        }
        let mut writes = files.iter().flatten();
        if writes.any(|write| write.length_bytes != bytes_per_line) {
            return Err(unsuitable(
                "the results of MagOD2 need writes of one length",
            ));
        }
        if header(files.len()).len() > HEADER_BYTES_MAX {
            return Err(unsuitable(
                "the results of MagOD2 have two columns per file, too many for one line",
            ));
        }
        let all = || files.iter().flatten();
        let pauses_ns = || {
            all()
                .zip(all().skip(1))
                .map(|(before, write)| write.start_ns - before.end_ns)
        };
        let longest_ns = all().map(|write| write.end_ns - write.start_ns);
        if longest_ns.chain(pauses_ns()).any(|ns| ns >= PAUSE_NS_MAX) {
            return Err(unsuitable(
                "the 32-bit times of the results of MagOD2 allow no pause of 35 minutes",
            ));
        }
        Ok(Results {
            bytes_per_line,
            pause_ms: pauses_ns().min().unwrap_or(0) / 1_000_000,
            reopens: reopens(name),
            files,
        })
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (first, last) = (&self.files[0], &self.files[self.files.len() - 1]);
        writeln!(out, "Test information:")?;
        writeln!(out, "Bytes per line,{}", self.bytes_per_line)?;
        writeln!(out, "Lines per file,{}", first.len())?;
        writeln!(out, "Amount of files,{}", self.files.len())?;
        writeln!(out, "Delay between writes,{}", self.pause_ms)?;
        if let Some(reopens) = self.reopens {
            let reopens = u8::from(reopens);
            writeln!(out, "Open and close file between writes [0/1],{reopens}")?;
        }
        writeln!(
            out,
            "Test start time (us),{}",
            counter_us(first[0].start_ns)
        )?;
        let end_ns = last[last.len() - 1].end_ns;
        writeln!(out, "Test end time (us),{}", counter_us(end_ns))?;
        writeln!(out, ",\nTest results (us):")?;
        writeln!(out, "{}", header(self.files.len()))?;
        for line in 0..first.len() {
            for file in &self.files {
                let (start_ns, end_ns) = (file[line].start_ns, file[line].end_ns);
                write!(out, "{},{},", counter_us(start_ns), counter_us(end_ns))?;
            }
            writeln!(out, " ")?;
        }
        Ok(())
    }
}

fn header(files: usize) -> String {
    let columns = (0..files).map(|file| format!("File {file}  start,File {file}  end,"));
    columns.collect::<String>() + " "
}

/// Returns the reading of the study's 32-bit counter of microseconds.
fn counter_us(ns: u64) -> u32 {
    (ns / 1000) as u32
}

/// Returns true if a built-in workload opens and closes its files for each write, `None` for other workloads.
fn reopens(name: &str) -> Option<bool> {
    let phases = workload(name)?.phases;
    let spans = |span| phases.iter().all(|phase| phase.span == span);
    match (spans(Span::OpenToClose), spans(Span::Call)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}
