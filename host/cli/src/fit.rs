//! `cardiograph fit`: a profile from a measured trace.

use crate::failure::{Failure, print, print_error};
use crate::outputs::{self, is_standard_output};
use crate::progress::Progress;
use crate::shared::Shared;
use cardiograph_report::values::whole;
use cardiograph_report::{Report, figures_of, units};
use cardiograph_reproduce::{Fit, Host, Known, WRITES_MAX, fit_known, fitting};
use cardiograph_sim_card::Profile;
use cardiograph_trace::{About, Loaded, ReadOptions, Trace, read_with_progress};
use cardiograph_workload::{Operation, OperationKind};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Fit a simulated card to a measured trace.
#[derive(clap::Args)]
#[command(after_help = "\
A trace shows latencies, and the latency and spacing of stalls. The search stays within the bounds of data
sheets; values that no trace shows (capacity, kind of cells, endurance, power) are those of the card named
with --like.

Examples:
  cardiograph fit card.parquet --profile my-card.toml --html fit.html
  cardiograph bench sim:my-card.toml@esp32 --workload magod2
  cardiograph fit card.parquet --probe probe.json --profile my-card.toml")]
pub struct Args {
    /// A trace of writes, in any format that `analyze` reads
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// Simulated card with the same kind of cells and the same capacity
    #[arg(long, value_name = "CARD", default_value = "generic-16g-class10")]
    pub like: String,

    /// Keep the values that `probe` found, from its JSON
    #[arg(long, value_name = "FILE")]
    pub probe: Option<PathBuf>,

    /// Number of trials of the search
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = whole::<u32>(2..=1_000_000))]
    pub trials: u32,

    /// Bytes per write, for trace formats that do not state it
    #[arg(long = "block-bytes", value_name = "BYTES", default_value_t = 512, value_parser = whole::<u64>(1..=1 << 30))]
    pub block: u64,

    /// Write the profile to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write the trace and the fitted card's trace as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// Reads the trace, searches for a profile, and shows both traces.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply(
        [Some(&args.trace), args.probe.as_ref()]
            .into_iter()
            .flatten(),
    );
    outputs::check_files([&args.profile, &args.html].into_iter().flatten())?;
    if args.html.as_deref().is_some_and(is_standard_output) {
        return Err(Failure::new("--html needs a file, not standard output"));
    }
    let like = Profile::named(&args.like).map_err(Failure::new)?;
    let known = match &args.probe {
        Some(path) => probed(path, &fitting::template(&like))?,
        None => Known::default(),
    };
    let file = args.trace.display().to_string();
    let options = ReadOptions::with_block_bytes(args.block);
    let mut progress = Progress::over_file(&args.trace);
    let loaded = read_with_progress(&args.trace, &options, &mut |bytes| progress.show(bytes));
    progress.clear();
    let Loaded::Trace(trace) = loaded.map_err(|error| Failure::new(error.without_options()))?
    else {
        return Err(Failure::new(format!(
            "{file}: contains no individual writes; use a trace of writes, such as one from \
             `cardiograph bench --trace`"
        )));
    };
    let writes: Vec<Operation> = trace
        .operations()
        .filter(|operation| operation.kind == OperationKind::Write)
        .take(WRITES_MAX)
        .collect();
    let mut progress = Progress::over_steps(u64::from(args.trials));
    let found = fit_known(&writes, &like, &known, args.trials, |trial| {
        progress.show(trial)
    });
    progress.clear();
    let found = found.ok_or_else(|| {
        Failure::new(format!(
            "{file}: contains no writes, or begins with one of more than 200 MB; use a trace of small writes"
        ))
    })?;
    let measured = report(&file, &writes, None, Vec::new())?;
    let threshold_ns = measured
        .summary
        .stalls
        .threshold_us
        .map(|us| (us * 1e3) as u64);
    let refit = report(
        &format!("{file}, fitted"),
        &found.refit,
        threshold_ns,
        vec![host(&found)],
    )?;
    let toml = profile_toml(&found, &measured, &file, &args.like)?;
    let to_standard_output = args.profile.as_deref().is_some_and(is_standard_output);
    show(to_standard_output, &text(&measured, &refit, &found))?;
    match &args.profile {
        Some(path) => outputs::write_text(path, &toml)?,
        None => print(&toml)?,
    }
    if let Some(path) = &args.html {
        write_page(path, &[measured, refit])?;
    }
    Ok(())
}

/// Largest JSON of `probe` that is read.
const PROBED_BYTES_MAX: u64 = 1 << 20;

/// JSON of `probe`, as far as a fit needs it.
#[derive(Deserialize)]
struct Probed {
    command: String,
    results: Vec<ProbedCard>,
}

#[derive(Deserialize)]
struct ProbedCard {
    page_bytes: ProbedValue<u64>,
    unit_bytes: ProbedValue<u64>,
    open_units: ProbedValue<u64>,
    log_bytes: ProbedValue<u64>,
    fat_zone_bytes: ProbedValue<u64>,
    collects_while_idle: ProbedValue<bool>,
}

#[derive(Deserialize)]
struct ProbedValue<T> {
    value: Option<T>,
}

/// Reads the values that `probe` found, and checks that a card can have them.
fn probed(path: &Path, template: &Profile) -> Result<Known, Failure> {
    let name = path.display();
    let wrong = |reason: &dyn std::fmt::Display| {
        Failure::new(format!(
            "{name}: {reason}; use a file written by `cardiograph probe --json`"
        ))
    };
    let metadata = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    if !metadata.is_file() || metadata.len() > PROBED_BYTES_MAX {
        return Err(wrong(&"not a file of at most 1 MiB"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let probed: Probed = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let card = match (probed.command.as_str(), &probed.results[..]) {
        ("probe", [card]) => card,
        _ => return Err(wrong(&"not the result of one probe")),
    };
    let known = Known {
        page_bytes: card.page_bytes.value,
        unit_bytes: card.unit_bytes.value,
        open_units: card.open_units.value,
        log_bytes: card.log_bytes.value,
        fat_zone_bytes: card.fat_zone_bytes.value,
        collects_while_idle: card.collects_while_idle.value,
    };
    let mut profile = template.clone();
    known.apply(&mut profile);
    profile
        .check(&name.to_string())
        .map_err(|error| wrong(&error))?;
    Ok(known)
}

fn report(
    target: &str,
    writes: &[Operation],
    threshold_ns: Option<u64>,
    notes: Vec<String>,
) -> Result<Report, Failure> {
    let mut trace = Trace::new(About {
        target: target.to_string(),
        workload: "writes".to_string(),
        notes,
        ..About::default()
    });
    for write in writes {
        let pushed = trace.push(write);
        pushed.map_err(|_| {
            Failure::new(format!(
                "{target}: contains overlapping writes; use a trace of a single card"
            ))
        })?;
    }
    Ok(figures_of(Loaded::Trace(trace), threshold_ns))
}

/// Describes the host that was fitted along with the card.
fn host(found: &Fit) -> String {
    let habit = match found.host {
        Host::KeepsOpen => "keeps the file open",
        Host::OpensAndCloses => "opens and closes the file for each write",
    };
    let overhead = units::time(found.host_ns as f64 / 1e3);
    format!("Fitted with a host that {habit} and adds {overhead} to each write.")
}

/// The figures of the measured and the fitted card in two columns.
fn text(measured: &Report, refit: &Report, found: &Fit) -> String {
    let mut out = weak(measured).map_or_else(String::new, |weak| format!("warning: {weak}\n\n"));
    out += &format!("{}\n\n", host(found));
    let line = |name: &str, of: &dyn Fn(&Report) -> Option<String>| {
        let show = |report| of(report).unwrap_or_else(|| "-".to_string());
        format!("  {name:<16} {:>12} {:>12}\n", show(measured), show(refit))
    };
    out += &format!("  {:<16} {:>12} {:>12}\n", "", "measured", "fitted");
    out += &line("median", &|r| r.summary.latency_us.median.map(units::time));
    out += &line("p99.9", &|r| r.summary.latency_us.p99_9.map(units::time));
    out += &line("worst case", &|r| {
        r.summary.latency_us.worst_case.map(units::time)
    });
    out += &line("stalls", &|r| r.summary.stalls.count.map(units::count));
    out += &line("stall latency", &|r| {
        r.summary.stalls.latency_us.median.map(units::time)
    });
    out += &line("stall spacing", &|r| {
        r.summary
            .stalls
            .spacing_bytes
            .median
            .map(|bytes| units::bytes(bytes as f64))
    });
    out + "\n"
}

/// Returns the reason why a trace does not determine a card.
fn weak(measured: &Report) -> Option<String> {
    const STALLS_MIN: u64 = 10;
    let (writes, stalls) = (
        measured.summary.writes,
        measured.summary.stalls.count.unwrap_or(0),
    );
    (stalls < STALLS_MIN).then(|| {
        let many = |count: u64, one: &str| {
            let s = if count == 1 { "" } else { "s" };
            format!("{} {one}{s}", units::count(count))
        };
        format!(
            "the trace has {} and {}, too few to determine a card (at least {STALLS_MIN} stalls); many \
             other profiles fit as well, so measure for longer",
            many(writes, "write"),
            many(stalls, "stall")
        )
    })
}

fn profile_toml(found: &Fit, measured: &Report, file: &str, like: &str) -> Result<String, Failure> {
    let mut profile = found.profile.clone();
    profile.about = format!("fitted to {file}");
    let toml = profile.to_toml().map_err(Failure::new)?;
    let warning =
        weak(measured).map_or_else(String::new, |weak| format!("# Warning: {weak}.\n#\n"));
    Ok(format!(
        "{warning}# Fitted to write latencies, assuming a host that adds a constant time to each write. Other cards may have\n\
         # the same latencies. Latencies do not show capacity, kind of cells, endurance or power: these values are\n\
         # those of {like}. Times of pages and units that were not fitted are those of data sheets.\n\n{toml}"
    ))
}

fn write_page(path: &Path, reports: &[Report]) -> Result<(), Failure> {
    outputs::write_text(path, &outputs::html_page(reports, None)?)
}

/// Shows text to the user: on standard error if standard output carries a result.
fn show(to_error: bool, text: &str) -> Result<(), Failure> {
    if to_error {
        print_error(text);
        return Ok(());
    }
    print(text)
}
