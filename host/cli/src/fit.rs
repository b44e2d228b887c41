//! `cardiograph fit`: a profile from a measured trace.

use crate::args::Fit as Args;
use crate::failure::{Failure, print, print_error};
use crate::outputs::{self, is_standard_output};
use cardiograph_report::{Report, figures_of, page, units};
use cardiograph_reproduce::{Fit, Host, WRITES_MAX, fit};
use cardiograph_sim_card::Profile;
use cardiograph_trace::{About, Loaded, ReadOptions, Trace, read};
use cardiograph_workload::{Operation, OperationKind};
use std::path::Path;

/// Reads the trace, searches, and shows trace and refit.
pub fn run(args: &Args) -> Result<(), Failure> {
    outputs::check_files([&args.profile, &args.html].into_iter().flatten())?;
    if args.html.as_deref().is_some_and(is_standard_output) {
        return Err(Failure::new("--html needs a file, not standard output"));
    }
    let start = Profile::named(&args.like).map_err(Failure::new)?;
    let file = args.trace.display().to_string();
    let options = ReadOptions {
        block_bytes: args.block,
    };
    let Loaded::Trace(trace) = read(&args.trace, &options).map_err(Failure::new)? else {
        return Err(Failure::new(format!(
            "{file}: no single write times; give a trace of writes, as `cardiograph bench --trace` makes one"
        )));
    };
    let writes: Vec<Operation> = trace
        .operations()
        .filter(|operation| operation.kind == OperationKind::Write)
        .take(WRITES_MAX)
        .collect();
    let found = fit(&writes, &start, args.trials).ok_or_else(|| {
        Failure::new(format!(
            "{file}: no writes to begin with, or one over 200 MB; give a trace of small writes"
        ))
    })?;
    let measured = report(&file, &writes, None, Vec::new())?;
    let threshold_ns = measured
        .summary
        .peaks
        .threshold_us
        .map(|us| (us * 1e3) as u64);
    let refit = report(
        &format!("{file}, refitted"),
        &found.refit,
        threshold_ns,
        vec![host(&found)],
    )?;
    let toml = profile_toml(&found, &file)?;
    let to_standard_output = args.profile.as_deref().is_some_and(is_standard_output);
    tell(to_standard_output, &text(&measured, &refit, &found))?;
    match &args.profile {
        Some(path) => outputs::put(path, &toml)?,
        None => print(&toml)?,
    }
    if let Some(path) = &args.html {
        write_page(path, &[measured, refit])?;
    }
    Ok(())
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
                "{target}: writes that overlap; give a trace of one card"
            ))
        })?;
    }
    Ok(figures_of(Loaded::Trace(trace), threshold_ns))
}

/// What was found beside the card.
fn host(found: &Fit) -> String {
    let habit = match found.host {
        Host::KeepsOpen => "keeps the file open",
        Host::OpensAndCloses => "opens and closes the file for each write",
    };
    let besides = units::time(found.host_ns as f64 / 1e3);
    format!("Fitted with a host that {habit} and takes {besides} for each write besides the card.")
}

/// The figures that were compared, side by side.
fn text(measured: &Report, refit: &Report, found: &Fit) -> String {
    let mut out = format!("{}\n\n", host(found));
    let line = |name: &str, of: &dyn Fn(&Report) -> Option<String>| {
        let show = |report| of(report).unwrap_or_else(|| "-".to_string());
        format!("  {name:<16} {:>12} {:>12}\n", show(measured), show(refit))
    };
    out += &format!("  {:<16} {:>12} {:>12}\n", "", "measured", "refitted");
    out += &line("median", &|r| r.summary.write_time_us.p50.map(units::time));
    out += &line("99.9 %", &|r| {
        r.summary.write_time_us.p99_9.map(units::time)
    });
    out += &line("longest", &|r| r.summary.write_time_us.max.map(units::time));
    out += &line("peaks", &|r| Some(units::count(r.summary.peaks.count)));
    out += &line("median height", &|r| {
        r.summary.peaks.height_us.median.map(units::time)
    });
    out += &line("median spacing", &|r| {
        r.summary
            .peaks
            .spacing_bytes
            .median
            .map(|bytes| units::bytes(bytes as f64))
    });
    out + "\n"
}

fn profile_toml(found: &Fit, file: &str) -> Result<String, Failure> {
    let mut profile = found.profile.clone();
    profile.about = format!("fitted to {file}");
    let toml = profile.to_toml().map_err(Failure::new)?;
    Ok(format!(
        "# Found from write times: one of many cards that would show them, behind a host that costs the same\n\
         # for each write. They do not show capacity, kind of cells, endurance, spares or power: these are\n\
         # as in the profile it began with.\n\n{toml}"
    ))
}

fn write_page(path: &Path, reports: &[Report]) -> Result<(), Failure> {
    outputs::put(path, &page::html(reports).map_err(Failure::new)?)
}

/// Speaks to the person: on standard error where standard output is for a program.
fn tell(to_error: bool, text: &str) -> Result<(), Failure> {
    if to_error {
        print_error(text);
        return Ok(());
    }
    print(text)
}
