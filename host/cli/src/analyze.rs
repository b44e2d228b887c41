//! `cardiograph analyze`: reads traces and recordings made by anyone.

use crate::args::Analyze;
use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::progress::Progress;
use cardiograph_report::figures_of;
use cardiograph_trace::{ReadOptions, read_with_progress};

/// Reads all files, then reports.
pub fn run(args: &Analyze) -> Result<(), Failure> {
    let outputs = Outputs::prepare(&args.reporting, args.files.len())?;
    let options = ReadOptions {
        block_bytes: args.block,
    };
    let mut reports = Vec::new();
    for file in &args.files {
        let length = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        let mut progress = Progress::over(length);
        let loaded = read_with_progress(file, &options, &mut |bytes| progress.show(bytes));
        progress.clear();
        let loaded = loaded.map_err(Failure::new)?;
        reports.push(figures_of(loaded, outputs.threshold_ns()));
    }
    outputs.write(&reports)
}
