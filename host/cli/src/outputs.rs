//! Where the result goes.

use crate::args::Reporting;
use crate::failure::{Failure, print};
use cardiograph_report::{Report, page, table};
use cardiograph_trace::{NewFile, Trace, WriteError, write_csv, write_csv_to, write_parquet};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Standard output, where a file is asked for.
const STANDARD_OUTPUT: &str = "-";

/// Where the result goes, checked before anything is measured.
pub struct Outputs<'a> {
    reporting: &'a Reporting,
}

impl<'a> Outputs<'a> {
    /// Checks that every file asked for can be made, so that no measurement is in vain.
    pub fn prepare(reporting: &'a Reporting) -> Result<Outputs<'a>, Failure> {
        let Reporting {
            json,
            html,
            markdown,
            trace,
            csv,
            ..
        } = reporting;
        let paths: Vec<&PathBuf> = [json, html, markdown, trace, csv]
            .into_iter()
            .flatten()
            .collect();
        let to_standard_output = paths.iter().filter(|path| is_standard_output(path)).count();
        if to_standard_output > 1 {
            return Err(Failure::new(
                "only one result can go to standard output; give the other a file",
            ));
        }
        for (i, path) in paths.iter().enumerate() {
            if paths[..i].contains(path) {
                return Err(Failure::new(format!(
                    "{}: asked for twice; give each result a file of its own",
                    path.display()
                )));
            }
            for binary in [html, trace].into_iter().flatten() {
                if is_standard_output(binary) {
                    return Err(Failure::new(
                        "--html and --trace need a file, not standard output",
                    ));
                }
            }
            if !is_standard_output(path) {
                // Dropped at once: this only finds out whether it can be made.
                NewFile::create(path).map_err(Failure::new)?;
            }
        }
        Ok(Outputs { reporting })
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
        if let Some(path) = json {
            put(path, &json_text(reports)?)?;
        }
        if let Some(path) = markdown {
            let sections: Vec<_> = reports.iter().map(table::markdown).collect();
            put(path, &sections.join("\n"))?;
        }
        if let Some(path) = html {
            put(path, &page::html(reports).map_err(Failure::new)?)?;
            self.tell(&format!("Report: {}\n", path.display()))?;
        }
        let traces: Vec<&Trace> = reports.iter().filter_map(Report::trace).collect();
        if traces.is_empty() && (trace.is_some() || csv.is_some()) {
            return Err(Failure::new(
                "these files hold no single operations; leave --trace and --csv away",
            ));
        }
        for (i, operations) in traces.iter().enumerate() {
            let number = (traces.len() > 1).then_some(i + 1);
            if let Some(path) = trace {
                write_parquet(operations, &numbered(path, number)).map_err(Failure::new)?;
            }
            match csv {
                Some(path) if is_standard_output(path) => csv_to_standard_output(operations)?,
                Some(path) => {
                    write_csv(operations, &numbered(path, number)).map_err(Failure::new)?
                }
                None => {}
            }
        }
        Ok(())
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
            eprint!("{text}");
            return Ok(());
        }
        print(text)
    }
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

fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

fn json_text(reports: &[Report]) -> Result<String, Failure> {
    let summaries: Vec<_> = reports.iter().map(|report| &report.summary).collect();
    let text = match summaries.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        many => serde_json::to_string_pretty(many),
    };
    text.map(|text| text + "\n").map_err(Failure::new)
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
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

/// `card.parquet` as `card-2.parquet`, where there are several.
fn numbered(path: &Path, number: Option<usize>) -> PathBuf {
    let Some(number) = number else {
        return path.to_path_buf();
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    path.with_file_name(name)
}
