//! `cardiograph analyze`: figures of existing traces and recordings.

use crate::conditions::{self, Condition};
use crate::failure::Failure;
use crate::outputs::{Outputs, Reporting, is_standard_output};
use crate::progress::Progress;
use cardiograph_report::values::{duration, whole};
use cardiograph_report::{Report, figures_at_rate};
use cardiograph_trace::{
    DateOrder, ReadOptions, TimeUnit, read_from, read_scope, read_with_progress,
};
use std::path::{Path, PathBuf};

/// Analyse traces and recordings, including those of other tools.
#[derive(clap::Args)]
#[command(after_help = "\
The format is detected automatically: Cardiograph's Parquet and CSV, the results of the MagOD2 thesis,
the CSV of the Qiita article, fio's --write_lat_log, ioping, traces of boards, biosnoop, blkparse, CSV with the
header `index,start_us,end_us`, any table with a column of latencies (latency_us) or of starts and ends, one latency per line, and recordings
with a time column or as ULog. Histograms (fio's json+, HdrHistogram's .hgrm and
interval logs, tables of counts) give latencies and their distribution, but no stalls, throughput or sustained rates.
Summaries (SdFat's bench, PX4's sd_bench, ESP-IDF, fio, CrystalDiskMark) give the buffer that their longest write needs.
A unit that the file does not name is inferred from the magnitude of the values, and a note says so. If that is ambiguous, pass --time-unit.

Examples:
  cardiograph analyze card.parquet --html card.html
  cardiograph analyze job_lat.1.log --stall-threshold 50ms
  cardiograph analyze times-1.csv times-2.csv --block-bytes 2048 --json figures.json
  cardiograph analyze log.csv --latency-column 2 --time-unit us
  cardiograph analyze recording.csv                          late and missing samples
  cardiograph analyze sensors.csv --group-by sensor          the same, for each sensor alone
  cardiograph analyze card.csv --scope scope.csv             with energy from the voltages at a shunt")]
pub struct Args {
    /// Traces or recordings; - is standard input
    #[arg(required_unless_present = "scope", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Calculate the energy of each write from an oscilloscope CSV with time, V1 and V2: the voltages before and after a shunt in the card's supply
    #[arg(long, value_name = "FILE")]
    pub scope: Option<PathBuf>,

    /// Resistance of the shunt
    #[arg(long, value_name = "RESISTANCE", default_value = "1ohm", requires = "scope", value_parser = ohm)]
    pub shunt: f64,

    /// Position of the scope's time zero relative to the start of the trace; negative if the scope started earlier [default: 0s]
    #[arg(long, value_name = "TIME", requires = "scope", allow_hyphen_values = true, value_parser = signed_ns)]
    pub scope_offset: Option<i64>,

    /// Bytes per write, for trace formats that do not state it
    #[arg(long = "block-bytes", value_name = "BYTES", default_value_t = 512, value_parser = whole::<u64>(1..=1 << 30))]
    pub block: u64,

    /// Unit of the times, for files that do not state it: s, ms, us or ns [default: from the magnitude, with a note]
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub time_unit: Option<TimeUnit>,

    /// Column with the time of each row: its name, or its number from 1; for ULog, a topic [default: found by its name; for ULog, the topic with the most samples]
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,

    /// Column with the latency of each write: its name, or its number from 1 [default: found by its name]
    #[arg(long, value_name = "COLUMN")]
    pub latency_column: Option<String>,

    /// Samples per second of a recording, if you know it [default: fitted to the times]
    #[arg(long, value_name = "HZ", value_parser = rate)]
    pub rate: Option<f64>,

    /// Order of day, month and year in dates such as 01/02/26: dmy, mdy or ymd [default: from the dates, if only one order fits]
    #[arg(long, value_name = "ORDER", value_parser = date_order)]
    pub date_order: Option<DateOrder>,

    /// Column whose texts name the sources of a recording's samples, such as sensors; each source is counted alone [default: none]
    #[arg(long = "group-by", value_name = "COLUMN")]
    pub group_column: Option<String>,

    /// Column that counts the samples of a recording; missing numbers are missing samples, also across a wrap at 8, 16 or 32 bits [default: none]
    #[arg(long, value_name = "COLUMN")]
    pub sequence_column: Option<String>,

    /// Exit with code 5 if a condition holds, such as 'p99 > 20ms' or, for a recording, 'late > 0'; may be repeated
    #[arg(long, value_name = "CONDITION", long_help = conditions::HELP_OF_INPUT, value_parser = conditions::of_input)]
    pub fail_if: Vec<Condition>,

    #[command(flatten)]
    pub reporting: Reporting,
}

/// Parses the name of a unit of time.
pub fn unit(text: &str) -> Result<TimeUnit, String> {
    TimeUnit::named(text).ok_or_else(|| "expected s, ms, us or ns".to_string())
}

/// Parses a sampling rate in Hz.
fn rate(text: &str) -> Result<f64, String> {
    match text.trim_end_matches("Hz").trim_end().parse::<f64>() {
        Ok(hz) if (1e-9..=1e9).contains(&hz) => Ok(hz),
        Ok(_) => Err("out of range; use 1e-9 to 1e9".to_string()),
        Err(_) => Err("use samples per second, such as 860 or 0.1".to_string()),
    }
}

/// Parses the order of day, month and year.
pub fn date_order(text: &str) -> Result<DateOrder, String> {
    DateOrder::named(text).ok_or_else(|| "expected dmy, mdy or ymd".to_string())
}

/// Parses a duration that may be negative; returns ns.
fn signed_ns(text: &str) -> Result<i64, String> {
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let ns = duration(size)?.as_nanos();
    let ns = i64::try_from(ns).map_err(|_| "too long; use at most 292 years".to_string())?;
    Ok(sign * ns)
}

/// Parses a resistance such as `1ohm`, `50mohm` or `0.1`; returns ohms.
fn ohm(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 4] = [
        ("mohm", 1e-3),
        ("m\u{3a9}", 1e-3),
        ("ohm", 1.0),
        ("\u{3a9}", 1.0),
    ];
    // The ohm sign and the Greek letter look the same.
    let text = text.trim().replace('\u{2126}', "\u{3a9}");
    let found = UNITS
        .iter()
        .find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.unwrap_or((&text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(number) if (1e-6..=1e6).contains(&(number * factor)) => Ok(number * factor),
        Ok(_) => Err("out of range; use 0.001mohm to 1000000ohm".to_string()),
        Err(_) => Err("use a resistance, such as 1ohm or 50mohm".to_string()),
    }
}

/// Reads all files before it reports anything.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.reporting
        .shared
        .apply(args.files.iter().chain(&args.scope));
    if args.scope.is_some() && args.files.len() > 1 {
        return Err(Failure::new(
            "--scope applies to a single trace; pass one file",
        ));
    }
    let outputs = Outputs::prepare(&args.reporting, "analyze", args.files.len().max(1))?;
    let options = ReadOptions {
        block_bytes: args.block,
        time_unit: args.time_unit,
        time_column: args.time_column.clone(),
        latency_column: args.latency_column.clone(),
        date_order: args.date_order,
        group_column: args.group_column.clone(),
        sequence_column: args.sequence_column.clone(),
    };
    let mut reports = Vec::new();
    for file in &args.files {
        let loaded = if is_standard_output(file) {
            read_from("standard input", std::io::stdin().lock(), &options)
        } else {
            let mut progress = Progress::over_file(file);
            let loaded = read_with_progress(file, &options, &mut |bytes| progress.show(bytes));
            progress.clear();
            loaded
        };
        let loaded = loaded.map_err(Failure::new)?;
        let mut report = figures_at_rate(loaded, outputs.threshold_ns(), args.rate);
        if args.rate.is_some() && report.summary.cadence.is_none() {
            return Err(Failure::new(format!(
                "{}: is not a recording, so --rate does not apply; omit it",
                report.about.target
            )));
        }
        args.reporting.answer(&mut report);
        reports.push(report);
    }
    if let Some(scope) = &args.scope {
        let report = match reports.pop() {
            Some(report) if report.has_writes() => report,
            Some(report) => {
                return Err(Failure::new(format!(
                    "{}: contains no individual writes to assign energy to; pass a trace of \
                     writes, or --scope alone",
                    report.about.target
                )));
            }
            None => Report::of_energy(&scope.display().to_string()),
        };
        reports.push(with_energy(report, scope, args)?);
    }
    let done = outputs.write(&reports);
    conditions::check(&args.fail_if, &reports, done)
}

fn with_energy(mut report: Report, scope: &Path, args: &Args) -> Result<Report, Failure> {
    let mut progress = Progress::over_file(scope);
    let mut meter = report.energy_meter(args.scope_offset.unwrap_or(0));
    let read = read_scope(
        scope,
        args.shunt,
        &mut |bytes| progress.show(bytes),
        |step| meter.add(step),
    );
    let energy = meter.finish();
    progress.clear();
    let read = read.map_err(Failure::new)?;
    if let Some(energy) = energy {
        report.add_energy(energy, &read, args.scope_offset);
    }
    Ok(report)
}
