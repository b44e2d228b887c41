//! Where the result goes.

use crate::args::Reporting;
use crate::failure::{Failure, print, print_error};
use cardiograph_report::{Report, page, table};
use cardiograph_trace::{NewFile, Trace, WriteError, write_csv, write_csv_to, write_parquet};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Standard output, where a file is asked for.
const STANDARD_OUTPUT: &str = "-";

/// Where the result goes, checked before anything is measured.
pub struct Outputs<'a> {
    reporting: &'a Reporting,
    /// Runs or files asked for; with several, each has a trace of its own.
    runs: usize,
}

impl<'a> Outputs<'a> {
    /// Checks that every file asked for can be made, so that no measurement is in vain.
    pub fn prepare(reporting: &'a Reporting, runs: usize) -> Result<Outputs<'a>, Failure> {
        let outputs = Outputs { reporting, runs };
        outputs.check_standard_output()?;
        check_files(&outputs.files())?;
        Ok(outputs)
    }

    fn check_standard_output(&self) -> Result<(), Failure> {
        let Reporting {
            html, trace, csv, ..
        } = self.reporting;
        let is_used_by = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_standard_output);
        if self.paths().filter(|path| is_standard_output(path)).count() > 1 {
            return Err(Failure::new(
                "only one result can go to standard output; give the other a file",
            ));
        }
        if is_used_by(html) || is_used_by(trace) {
            return Err(Failure::new(
                "--html and --trace need a file, not standard output",
            ));
        }
        if is_used_by(csv) && self.runs > 1 {
            return Err(Failure::new(
                "the operations of several runs do not fit in one CSV; give --csv a file, and each \
                 run gets one of its own",
            ));
        }
        Ok(())
    }

    /// Every path asked for.
    fn paths(&self) -> impl Iterator<Item = &'a PathBuf> {
        let Reporting {
            json,
            html,
            markdown,
            trace,
            csv,
            ..
        } = self.reporting;
        [json, html, markdown, trace, csv].into_iter().flatten()
    }

    /// Every file that will be made.
    fn files(&self) -> Vec<PathBuf> {
        let Reporting {
            json,
            html,
            markdown,
            trace,
            csv,
            ..
        } = self.reporting;
        let one_each = [json, html, markdown].into_iter().flatten().cloned();
        let one_a_run = [trace, csv].into_iter().flatten();
        let one_a_run =
            one_a_run.flat_map(|path| (1..=self.runs).map(|run| self.of_run(path, run)));
        let all = one_each.chain(one_a_run);
        all.filter(|path| !is_standard_output(path)).collect()
    }

    /// `card.parquet` as `card-2.parquet` for the second run, where there are several.
    fn of_run(&self, path: &Path, run: usize) -> PathBuf {
        if self.runs == 1 || is_standard_output(path) {
            return path.to_path_buf();
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = match path.extension() {
            Some(extension) => format!("{stem}-{run}.{}", extension.to_string_lossy()),
            None => format!("{stem}-{run}"),
        };
        path.with_file_name(name)
    }

    /// The threshold asked for, in ns.
    pub fn threshold_ns(&self) -> Option<u64> {
        self.reporting
            .peak_threshold
            .map(|time| time.as_nanos() as u64)
    }

    /// Prints the tables and writes what was asked for.
    pub fn write(&self, reports: &[Report]) -> Result<(), Failure> {
        self.print_tables(reports)?;
        let Reporting {
            json,
            html,
            markdown,
            trace,
            csv,
            ..
        } = self.reporting;
        if (trace.is_some() || csv.is_some()) && reports.iter().all(|r| r.trace().is_none()) {
            return Err(Failure::new(
                "these files hold no single operations; leave --trace and --csv away",
            ));
        }
        if let Some(path) = json {
            put(path, &self.json_text(reports)?)?;
        }
        if let Some(path) = markdown {
            let sections: Vec<_> = reports.iter().map(table::markdown).collect();
            put(path, &sections.join("\n"))?;
        }
        if let Some(path) = html {
            put(path, &page::html(reports).map_err(Failure::new)?)?;
            self.tell(&format!("Report: {}\n", path.display()))?;
        }
        for (report, run) in reports.iter().zip(1..) {
            if let Some(operations) = report.trace() {
                self.write_operations(operations, run)?;
            }
        }
        Ok(())
    }

    fn write_operations(&self, operations: &Trace, run: usize) -> Result<(), Failure> {
        if let Some(path) = &self.reporting.trace {
            write_parquet(operations, &self.of_run(path, run)).map_err(Failure::new)?;
        }
        match &self.reporting.csv {
            Some(path) if is_standard_output(path) => csv_to_standard_output(operations),
            Some(path) => write_csv(operations, &self.of_run(path, run)).map_err(Failure::new),
            None => Ok(()),
        }
    }

    /// An object for one run; an array where several were asked for, even if Ctrl-C left one.
    fn json_text(&self, reports: &[Report]) -> Result<String, Failure> {
        let summaries: Vec<_> = reports.iter().map(|report| &report.summary).collect();
        let text = match summaries.as_slice() {
            [one] if self.runs == 1 => serde_json::to_string_pretty(one),
            many => serde_json::to_string_pretty(many),
        };
        text.map(|text| text + "\n").map_err(Failure::new)
    }

    /// Prints the tables alone.
    pub fn print_tables(&self, reports: &[Report]) -> Result<(), Failure> {
        for report in reports {
            self.tell(&table::text(report))?;
        }
        Ok(())
    }

    /// Speaks to the person: on standard error where standard output is for a program.
    fn tell(&self, text: &str) -> Result<(), Failure> {
        let Reporting {
            json,
            markdown,
            csv,
            ..
        } = self.reporting;
        if [json, markdown, csv]
            .into_iter()
            .flatten()
            .any(|path| is_standard_output(path))
        {
            print_error(text);
            return Ok(());
        }
        match print(text) {
            // The files asked for are still to be written.
            Err(Failure::OutputClosed) => Ok(()),
            printed => printed,
        }
    }
}

/// Checks that each of these files can be made, and that none is asked for twice.
pub fn check_files<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let mut places = HashSet::new();
    for path in paths.into_iter().filter(|path| !is_standard_output(path)) {
        if !places.insert(place(path)) {
            return Err(Failure::new(format!(
                "{}: asked for twice; give each result a file of its own",
                path.display()
            )));
        }
        // Dropped at once: this only finds out whether it can be made.
        NewFile::create(path).map_err(Failure::new)?;
    }
    Ok(())
}

/// A name for a report that is not taken.
pub fn free_report_name() -> PathBuf {
    let names = (2..).map(|n| PathBuf::from(format!("cardiograph-report-{n}.html")));
    let first = PathBuf::from("cardiograph-report.html");
    let mut names = std::iter::once(first).chain(names);
    names
        .find(|name| name.symlink_metadata().is_err())
        .unwrap_or_else(|| PathBuf::from("cardiograph-report.html"))
}

/// The same for every way to write a path, as `a` and `./a`.
fn place(path: &Path) -> PathBuf {
    let directory = path.parent().filter(|name| !name.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let directory = directory.canonicalize().unwrap_or(directory.to_path_buf());
    directory.join(path.file_name().unwrap_or_default())
}

/// Whether standard output is meant.
pub fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

/// Writes a new file, or to standard output.
pub fn put(path: &Path, text: &str) -> Result<(), Failure> {
    if is_standard_output(path) {
        return print(text);
    }
    let mut file = NewFile::create(path).map_err(Failure::new)?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|error| Failure::new(WriteError::new(path, error)))?;
    file.commit().map_err(Failure::new)
}

fn csv_to_standard_output(trace: &Trace) -> Result<(), Failure> {
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    write_csv_to(trace, out).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!("standard output: {error}; redirect it elsewhere")),
    })
}
