//! `cardiograph compare`: determines whether one card is faster than another.
//!
//! ```text
//!   args ──> sides: files ──> read ────────┬──> Report of each ──> plan::comparison ──> table, JSON, Markdown, HTML
//!                   cards ──> as `bench` ──┘
//! ```

mod args;

pub use args::Args;

use crate::bench::{self, Bench};
use crate::conditions;
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{Reporting, check_files, html_page, is_standard_output, write_text};
use crate::progress::Progress;
use crate::shared;
use crate::target;
use crate::trust::TrustArgs;
use cardiograph_plan::comparison::{self, Comparison, Need, compare};
use cardiograph_report::{Report, figures_of, page};
use cardiograph_trace::{ReadOptions, read_with_progress};
use std::path::{Path, PathBuf};

/// A side before it is read or measured.
enum Side {
    Trace(PathBuf),
    Card(Box<(bench::Args, Bench)>),
}

/// Reads all files and opens all cards before it measures the first one.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply(&args.sides);
    check_outputs(args)?;
    let sides = args.sides.iter().map(|name| side(name, args));
    let sides = sides.collect::<Result<Vec<_>, _>>()?;
    if args.io.is_some() && !args.sides.iter().any(|name| Path::new(name).is_dir()) {
        return Err(Failure::new(
            "--io applies to directories only; remove it, or measure a directory",
        ));
    }
    let interrupt = Interrupt::catch()?;
    let mut reports = Vec::new();
    for side in sides {
        reports.push(report(side, args, &interrupt)?);
        if let Some(code) = interrupt.exit_code() {
            return Err(Failure::AlreadyPrinted(code));
        }
    }
    let need = Need {
        buffer_bytes: args.buffer,
        rate_bytes_per_s: args
            .rate
            .map(|hz| hz * args.sample_bytes.unwrap_or(1) as f64),
    };
    let found = compare(&reports, &need).map_err(Failure::new)?;
    // The page and the conditions use the percentiles of the comparison, which are exact.
    for (report, side) in reports.iter_mut().zip(&found.sides) {
        let latency = &mut report.summary.latency_us;
        latency.median = Some(side.latency_us.median.value);
        latency.p99 = side.latency_us.p99.map(|p99| p99.value);
    }
    let done = write(args, &found, &reports);
    conditions::check(&args.fail_if, &reports[1..], done)
}

fn check_outputs(args: &Args) -> Result<(), Failure> {
    let paths = [&args.json, &args.html, &args.markdown];
    let paths = paths.into_iter().flatten();
    if args.html.as_deref().is_some_and(is_standard_output) {
        return Err(Failure::new("--html needs a file, not standard output"));
    }
    if paths
        .clone()
        .filter(|path| is_standard_output(path))
        .count()
        > 1
    {
        return Err(Failure::new(
            "only one result can go to standard output; write the others to files",
        ));
    }
    check_files(paths)
}

fn side(name: &str, args: &Args) -> Result<Side, Failure> {
    let is_simulated = target::simulated_set_up(name)?.is_some();
    let path = Path::new(name);
    if !is_simulated && !path.is_dir() {
        return Ok(Side::Trace(path.to_path_buf()));
    }
    let bench_args = bench::Args {
        target: name.to_string(),
        workload: args.workload.clone(),
        baud: None,
        auth: None,
        io: args.io.filter(|_| !is_simulated),
        destroy: None,
        rate: None,
        stop_after: args.stop_after,
        trust: TrustArgs::default(),
        seed: None,
        repeat: 1,
        fail_if: Vec::new(),
        reporting: Reporting::default(),
    };
    let bench = Bench::of(&bench_args)?;
    Ok(Side::Card(Box::new((bench_args, bench))))
}

fn report(side: Side, args: &Args, interrupt: &Interrupt) -> Result<Report, Failure> {
    let threshold_ns = args.stall_threshold.map(|time| time.as_nanos() as u64);
    match side {
        Side::Card(card) => {
            let (bench_args, mut bench) = *card;
            bench.report(&bench_args, threshold_ns, interrupt)
        }
        Side::Trace(path) => {
            let options = ReadOptions {
                block_bytes: args.block,
                time_unit: args.time_unit,
                time_column: args.time_column.clone(),
                latency_column: args.latency_column.clone(),
                ..ReadOptions::default()
            };
            let mut progress = Progress::over_file(&path);
            let loaded = read_with_progress(&path, &options, &mut |bytes| progress.show(bytes));
            progress.clear();
            let mut report = figures_of(loaded.map_err(Failure::new)?, threshold_ns);
            // A trace names the card that it was measured on; two traces of one card need different names.
            report.summary.target = path.display().to_string();
            Ok(report)
        }
    }
}

fn write(args: &Args, found: &Comparison, reports: &[Report]) -> Result<(), Failure> {
    show(args, &text(found, reports))?;
    json::write(args.json.as_deref(), "compare", &[found])?;
    if let Some(path) = &args.markdown {
        write_text(path, &found.markdown())?;
    }
    if let Some(path) = &args.html {
        let overview = page::Comparison {
            heads: comparison::heads(found),
            rows: comparison::rows(found),
            sentences: std::iter::once(found.decision.answer.clone())
                .chain(comparison::sentences(found))
                .collect(),
            notes: found.notes.clone(),
        };
        let html = html_page(reports, Some(&overview))?;
        write_text(path, &html)?;
        if !shared::is_quiet() {
            show(args, &format!("Report: {}\n", path.display()))?;
        }
    }
    Ok(())
}

/// Returns the decision, the warnings, and the table with its notes.
fn text(found: &Comparison, reports: &[Report]) -> String {
    let mut out = comparison::decided(found);
    out.push('\n');
    for (side, report) in found.sides.iter().zip(reports) {
        for warning in &report.warnings {
            out += &format!("warning: {}: {warning}\n", side.name);
        }
    }
    out + &comparison::text(found)
}

/// Shows text to the user: on standard error if standard output carries a result.
fn show(args: &Args, text: &str) -> Result<(), Failure> {
    let results = [&args.json, &args.markdown].into_iter().flatten();
    if results.into_iter().any(|path| is_standard_output(path)) {
        print_error(text);
        return Ok(());
    }
    match print(text) {
        // The requested files must be written even if nobody reads standard output.
        Err(Failure::OutputClosed) => Ok(()),
        printed => printed,
    }
}
