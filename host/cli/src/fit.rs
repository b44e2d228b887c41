//! `cardiograph fit`: fits a card profile to a measured trace.

use crate::args::Fit as Args;
use crate::failure::{Failure, print, print_error};
use crate::outputs::{self, is_standard_output};
use cardiograph_report::{Report, figures_of, page, units};
use cardiograph_reproduce::{Fit, Host, WRITES_MAX, fit};
use cardiograph_sim_card::Profile;
use cardiograph_trace::{About, Loaded, ReadOptions, Trace, read};
use cardiograph_workload::{Operation, OperationKind};
use std::path::Path;

/// Reads the trace, fits a profile and shows measured and simulated figures.
pub fn run(args: &Args) -> Result<(), Failure> {
    outputs::check_files([&args.profile, &args.html].into_iter().flatten())?;
    if args.html.as_deref().is_some_and(is_standard_output) {
        return Err(Failure::new("--html needs a file name, not `-`"));
    }
    let start = Profile::named(&args.like).map_err(Failure::new)?;
    let file = args.trace.display().to_string();
    let options = ReadOptions {
        block_bytes: args.block,
    };
    let Loaded::Trace(trace) = read(&args.trace, &options).map_err(Failure::new)? else {
        return Err(Failure::new(format!(
            "{file}: no latencies of single writes; use a trace of writes, such as one from `cardiograph bench --trace`"
        )));
    };
    let writes: Vec<Operation> = trace
        .operations()
        .filter(|operation| operation.kind == OperationKind::Write)
        .take(WRITES_MAX)
        .collect();
    let fitted = fit(&writes, &start, args.trials).ok_or_else(|| {
        Failure::new(format!(
            "{file}: no writes, or the first write exceeds 200 MB; use a trace of small writes"
        ))
    })?;
    let measured = report(&file, &writes, None, Vec::new())?;
    let threshold_ns = measured
        .summary
        .peaks
        .threshold_us
        .map(|us| (us * 1e3) as u64);
    let refit = report(
        &format!("{file}, simulated"),
        &fitted.refit,
        threshold_ns,
        vec![host(&fitted)],
    )?;
    let toml = profile_toml(&fitted, &file)?;
    let to_standard_output = args.profile.as_deref().is_some_and(is_standard_output);
    print_results(to_standard_output, &text(&measured, &refit, &fitted))?;
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
                "{target}: writes overlap in time; use a trace of one card"
            ))
        })?;
    }
    Ok(figures_of(Loaded::Trace(trace), threshold_ns))
}

/// Describes the host model of the fit.
fn host(fitted: &Fit) -> String {
    let habit = match fitted.host {
        Host::KeepsOpen => "keeps the file open",
        Host::OpensAndCloses => "opens and closes the file for each write",
    };
    let added = units::time(fitted.host_ns as f64 / 1e3);
    format!("Model of the host: it {habit} and adds {added} to each write.")
}

/// Formats the compared figures side by side.
fn text(measured: &Report, refit: &Report, fitted: &Fit) -> String {
    let mut out = format!("{}\n\n", host(fitted));
    let line = |name: &str, of: &dyn Fn(&Report) -> Option<String>| {
        let show = |report| of(report).unwrap_or_else(|| "-".to_string());
        format!("  {name:<16} {:>12} {:>12}\n", show(measured), show(refit))
    };
    out += &format!("  {:<16} {:>12} {:>12}\n", "", "measured", "simulated");
    out += &line("median", &|r| r.summary.write_time_us.p50.map(units::time));
    out += &line("p99.9", &|r| r.summary.write_time_us.p99_9.map(units::time));
    out += &line("worst case", &|r| {
        r.summary.write_time_us.max.map(units::time)
    });
    out += &line("stalls", &|r| Some(units::count(r.summary.peaks.count)));
    out += &line("stall latency", &|r| {
        r.summary.peaks.height_us.median.map(units::time)
    });
    out += &line("stall spacing", &|r| {
        r.summary
            .peaks
            .spacing_bytes
            .median
            .map(|bytes| units::bytes(bytes as f64))
    });
    out + "\n"
}

fn profile_toml(fitted: &Fit, file: &str) -> Result<String, Failure> {
    let mut profile = fitted.profile.clone();
    profile.about = format!("fitted to {file}");
    let toml = profile.to_toml().map_err(Failure::new)?;
    Ok(format!(
        "# Fitted to write latencies: one of many profiles that match them, behind a host that adds a constant\n\
         # time to each write. Latencies do not show capacity, kind of cells, endurance, spares or power; these\n\
         # values are those of the initial profile.\n\n{toml}"
    ))
}

fn write_page(path: &Path, reports: &[Report]) -> Result<(), Failure> {
    outputs::put(path, &page::html(reports).map_err(Failure::new)?)
}

/// Prints to the user: to standard error if standard output carries the profile.
fn print_results(to_error: bool, text: &str) -> Result<(), Failure> {
    if to_error {
        print_error(text);
        return Ok(());
    }
    print(text)
}
