//! Output of results: tables on the terminal, and files.

use crate::failure::{DOUBTFUL, Failure, print, print_error};
use crate::json;
use crate::shared::{self, Shared};
use cardiograph_report::values::{buffer_bytes, duration};
use cardiograph_report::{Report, distribution, page, table};
use cardiograph_trace::{
    NewFile, Results, ResultsOf, Trace, WriteError, quoted, write_csv_to, write_parquet_to,
};
use console::Term;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Output options.
#[derive(clap::Args, Default)]
pub struct Reporting {
    /// Writes slower than this belong to a stall [default: derived from the trace]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stall_threshold: Option<Duration>,

    /// Buffer for which the first line states the sustained rate [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = buffer_bytes)]
    pub buffer: Option<u64>,

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a report as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the figures as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write every operation as Parquet
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Write every operation as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Layout of --csv: Cardiograph's, or that of a study's results
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "cardiograph",
        requires = "csv"
    )]
    pub csv_format: CsvFormat,

    #[command(flatten)]
    pub shared: Shared,
}

impl Reporting {
    /// Makes a report answer for the buffer that the command line names.
    pub fn answer(&self, report: &mut Report) {
        if let Some(bytes) = self.buffer {
            report.answer_buffer_bytes = bytes;
        }
    }
}

/// Layout of a CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CsvFormat {
    /// A row per operation: all that a trace contains
    #[default]
    Cardiograph,
    /// Results of the MagOD2 thesis: start and end of every write in us, two columns per file
    Magod2,
    /// Results of the library comparison: a row of statistics per file
    LibraryComparison,
}

/// Width of the bars if standard output is not a terminal.
const COLUMNS: u16 = 80;

/// File name that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// Requested outputs, checked before anything is measured.
pub struct Outputs<'a> {
    reporting: &'a Reporting,
    /// Name of the command, for the JSON.
    command: &'static str,
    /// Number of runs or files; with several, each has its own trace file.
    runs: usize,
}

impl<'a> Outputs<'a> {
    /// Checks that every requested file can be created, so that no measurement is wasted.
    pub fn prepare(
        reporting: &'a Reporting,
        command: &'static str,
        runs: usize,
    ) -> Result<Outputs<'a>, Failure> {
        let outputs = Outputs {
            reporting,
            command,
            runs,
        };
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
                "only one result can go to standard output; write the others to files",
            ));
        }
        if is_used_by(html) || is_used_by(trace) {
            return Err(Failure::new(
                "--html and --trace need a file, not standard output",
            ));
        }
        if is_used_by(csv) && self.runs > 1 {
            return Err(Failure::new(
                "standard output can carry the CSV of a single run only; pass a file name to --csv, \
                 and each run gets its own file",
            ));
        }
        Ok(())
    }

    /// All requested paths.
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

    /// All files that will be created.
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

    /// Output path for one of several runs: `card.parquet` becomes `card-2.parquet` for the second run.
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

    /// Requested stall threshold in ns.
    pub fn threshold_ns(&self) -> Option<u64> {
        self.reporting
            .stall_threshold
            .map(|time| time.as_nanos() as u64)
    }

    /// Prints the tables and writes the requested files.
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
            return Err(Failure::new(match trace {
                Some(_) => "the input contains no individual operations; remove --trace",
                None => "the input contains no individual operations; remove --csv",
            }));
        }
        // Refuse a trace that does not fit the study's layout before any file is written.
        let results = reports.iter().map(|report| self.results_of(report));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        let summaries: Vec<_> = reports.iter().map(Report::summary_with_warnings).collect();
        let summaries: Vec<_> = summaries.iter().collect();
        // If one output fails, the others are still written.
        let mut done = vec![json::write(json.as_deref(), self.command, &summaries)];
        if let Some(path) = markdown {
            let sections: Vec<_> = reports.iter().map(table::markdown).collect();
            done.push(write_text(path, &sections.join("\n")));
        }
        if let Some(path) = html {
            done.push(self.write_html(path, reports));
        }
        for ((report, results), run) in reports.iter().zip(&results).zip(1..) {
            if let Some(operations) = report.trace() {
                done.push(self.write_trace(operations, run));
                done.push(self.write_csv(operations, results.as_ref(), run));
            }
        }
        Failure::join(done)
    }

    fn write_html(&self, path: &Path, reports: &[Report]) -> Result<(), Failure> {
        write_text(path, &html_page(reports, None)?)?;
        match shared::is_quiet() {
            true => Ok(()),
            false => self.show(&format!("Report: {}\n", path.display())),
        }
    }

    /// Arranges a report's trace for a study's results; returns `None` for Cardiograph's own layout.
    fn results_of(&self, report: &Report) -> Result<Option<Results>, Failure> {
        let study = match self.reporting.csv_format {
            CsvFormat::Cardiograph => return Ok(None),
            CsvFormat::Magod2 => ResultsOf::Magod2,
            CsvFormat::LibraryComparison => ResultsOf::LibraryComparison,
        };
        let target = &report.summary.target;
        let Some(trace) = report.trace().filter(|_| report.has_writes()) else {
            return Err(Failure::new(format!(
                "{target}: contains no individual writes, which --csv-format needs; omit it, or pass a trace"
            )));
        };
        let results = Results::of(trace, study);
        let results = results.map_err(|error| Failure::new(format!("{target}: {error}")))?;
        Ok(Some(results))
    }

    fn write_trace(&self, operations: &Trace, run: usize) -> Result<(), Failure> {
        let Some(path) = &self.reporting.trace else {
            return Ok(());
        };
        let path = self.of_run(path, run);
        let mut file = create(&path)?;
        let written = write_parquet_to(operations, &mut file);
        written.map_err(|error| Failure::new(WriteError::new(&path, error)))?;
        match operations.spill_error() {
            Some(error) => Err(unreadable_times(error)),
            None => file.commit().map_err(Failure::new),
        }
    }

    fn write_csv(
        &self,
        operations: &Trace,
        results: Option<&Results>,
        run: usize,
    ) -> Result<(), Failure> {
        let Some(path) = &self.reporting.csv else {
            return Ok(());
        };
        let write = |out: &mut dyn Write| match results {
            Some(results) => results.write(out),
            None => write_csv_to(operations, out),
        };
        match is_standard_output(path) {
            true => to_standard_output(write),
            false => write_file(&self.of_run(path, run), write),
        }
    }

    /// Prints the tables without writing files.
    pub fn print_tables(&self, reports: &[Report]) -> Result<(), Failure> {
        let columns = usize::from(Term::stdout().size_checked().map_or(COLUMNS, |size| size.1));
        let of_stalls = |text: &str| format!("{DOUBTFUL}{text}{DOUBTFUL:#}");
        for report in reports {
            self.show(&table::figures(report))?;
            self.show(&distribution::text(report, columns, of_stalls))?;
            self.show(&table::notes(report))?;
        }
        Ok(())
    }

    /// Shows text to the user: on standard error if standard output carries a result.
    fn show(&self, text: &str) -> Result<(), Failure> {
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
            // The reader of standard output has gone, but the requested files must still be written.
            Err(Failure::OutputClosed) => Ok(()),
            printed => printed,
        }
    }
}

/// Returns the error of times that were measured and could not be read back from their temporary file.
pub fn unreadable_times(error: &io::Error) -> Failure {
    Failure::new(format!(
        "the temporary file next to the trace cannot be read ({error}), so the measured times are lost; choose another \
         disk for --trace, and measure again"
    ))
}

/// Checks that each of the given files can be created, and that no two are the same.
pub fn check_files<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    let paths = paths.into_iter().filter(|path| !is_standard_output(path));
    Failure::join(paths.map(|path| match seen.insert(normalised(path)) {
        // The new file is dropped at once: this only tests whether it can be created.
        true => create(path).map(drop),
        false => Err(Failure::new(format!(
            "{}: requested twice, by two options; write each result to its own file",
            path.display()
        ))),
    }))
}

/// Begins a new file; with --force, it replaces an existing one once it is complete.
pub fn create(path: &Path) -> Result<NewFile, Failure> {
    if let Some(used) = shared::use_of(path) {
        return Err(Failure::new(format!(
            "{}: {used}; choose another name for the output",
            path.display()
        )));
    }
    NewFile::create_with(path, shared::existing()).map_err(Failure::new)
}

/// Returns an unused name for a report.
pub fn free_report_name() -> PathBuf {
    let names = (2..).map(|n| PathBuf::from(format!("cardiograph-report-{n}.html")));
    let first = PathBuf::from("cardiograph-report.html");
    let mut names = std::iter::once(first).chain(names);
    names
        .find(|name| name.symlink_metadata().is_err())
        .unwrap_or_else(|| PathBuf::from("cardiograph-report.html"))
}

/// Normalises equivalent spellings of a path, such as `a` and `./a`.
fn normalised(path: &Path) -> PathBuf {
    let directory = path.parent().filter(|name| !name.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let directory = directory.canonicalize().unwrap_or(directory.to_path_buf());
    directory.join(path.file_name().unwrap_or_default())
}

/// Returns true if the path stands for standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

/// Returns a page with the command line of this process.
pub fn html_page(
    reports: &[Report],
    comparison: Option<&page::Comparison>,
) -> Result<String, Failure> {
    page::html(reports, comparison, Some(&command_line())).map_err(Failure::new)
}

/// Returns the command line of this process, quoted for a shell.
pub fn command_line() -> String {
    let args = std::env::args_os().skip(1);
    let words = std::iter::once("cardiograph".to_string()).chain(args.map(|arg| quoted(&arg)));
    words.collect::<Vec<_>>().join(" ")
}

/// Writes text to a new file or to standard output.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    if is_standard_output(path) {
        return print(text);
    }
    write_file(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a new file, which appears under its name once it is complete.
fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut file = create(path)?;
    write(&mut file).map_err(|error| Failure::new(WriteError::new(path, error)))?;
    file.commit().map_err(Failure::new)
}

fn to_standard_output(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!("standard output: {error}; redirect it elsewhere")),
    })
}
