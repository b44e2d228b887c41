//! `cardiograph analyze`: reads traces and recordings made by anyone.

use crate::args::Analyze;
use crate::failure::Failure;
use crate::outputs::Outputs;
use cardiograph_report::figures_of;
use cardiograph_trace::{ReadOptions, read};

/// Reads all files, then reports.
pub fn run(args: &Analyze) -> Result<(), Failure> {
    let outputs = Outputs::prepare(&args.reporting, args.files.len())?;
    let options = ReadOptions {
        block_bytes: args.block,
    };
    let mut reports = Vec::new();
    for file in &args.files {
        let loaded = read(file, &options).map_err(Failure::new)?;
        reports.push(figures_of(loaded, outputs.threshold_ns()));
    }
    outputs.write(&reports)
}
