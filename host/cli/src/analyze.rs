//! `cardiograph analyze`: reads traces and recordings made by anyone.

use crate::args::Analyze;
use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::progress::Progress;
use cardiograph_report::{EnergyMeter, Report, figures_of};
use cardiograph_trace::{ReadOptions, read_scope, read_with_progress};
use std::path::Path;

/// Reads all files, then reports.
pub fn run(args: &Analyze) -> Result<(), Failure> {
    if args.scope.is_some() && args.files.len() > 1 {
        return Err(Failure::new("--scope belongs to one trace; name one file"));
    }
    let outputs = Outputs::prepare(&args.reporting, args.files.len().max(1))?;
    let options = ReadOptions {
        block_bytes: args.block,
    };
    let mut reports = Vec::new();
    for file in &args.files {
        let mut progress = Progress::over_file(file);
        let loaded = read_with_progress(file, &options, &mut |bytes| progress.show(bytes));
        progress.clear();
        let loaded = loaded.map_err(Failure::new)?;
        reports.push(figures_of(loaded, outputs.threshold_ns()));
    }
    if let Some(scope) = &args.scope {
        let report = match reports.pop() {
            Some(report) if report.has_writes() => report,
            Some(report) => {
                return Err(Failure::new(format!(
                    "{}: holds no single writes to lay energy under; name their trace, or \
                     --scope alone",
                    report.about.target
                )));
            }
            None => Report::of_energy(&scope.display().to_string()),
        };
        reports.push(with_energy(report, scope, args)?);
    }
    outputs.write(&reports)
}

fn with_energy(mut report: Report, scope: &Path, args: &Analyze) -> Result<Report, Failure> {
    let mut progress = Progress::over_file(scope);
    let mut meter = EnergyMeter::over(&report, args.scope_offset.unwrap_or(0));
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
        report.lay_under(energy, &read, args.scope_offset);
    }
    Ok(report)
}
