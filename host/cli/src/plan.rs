//! `cardiograph plan`: what a data logger needs on a card.

use crate::args::Plan as Args;
use crate::failure::{Failure, print, print_error};
use crate::outputs::{self, is_standard_output};
use crate::progress::Progress;
use crate::target;
use cardiograph_plan::{Logger, Plan, Source, plan, plan_simulated, text};
use cardiograph_trace::{Loaded, ReadOptions, read_with_progress};
use cardiograph_workload::{Span, workload};
use std::path::Path;

/// Reads the trace or measures the simulated card, and says what a logger needs.
pub fn run(args: &Args) -> Result<(), Failure> {
    outputs::check_files(&args.json)?;
    let logger = Logger {
        rate_hz: args.rate,
        line_bytes: args.line,
        run_s: args.run.as_secs_f64(),
        ram_bytes: args.ram,
    };
    let plan = match target::simulated_set_up(&args.source)? {
        Some((profile, board)) => {
            let planned = plan_simulated(&args.source, (&profile, &board), &logger);
            planned.map_err(|error| Failure::new(format!("{}: {error}", args.source)))?
        }
        None => from_trace(args, &logger)?,
    };
    let table = text::text(&plan, args.ram);
    match args.json.as_deref() {
        Some(path) if is_standard_output(path) => print_error(&table),
        _ => print(&table)?,
    }
    match &args.json {
        Some(path) => outputs::put(path, &json(&plan)?),
        None => Ok(()),
    }
}

fn from_trace(args: &Args, logger: &Logger) -> Result<Plan, Failure> {
    let file = &args.source;
    let path = Path::new(file);
    let options = ReadOptions {
        block_bytes: args.block,
    };
    let mut progress = Progress::over_file(path);
    let loaded = read_with_progress(path, &options, &mut |bytes| progress.show(bytes));
    progress.clear();
    let Loaded::Trace(trace) = loaded.map_err(Failure::new)? else {
        return Err(Failure::new(format!(
            "{file}: no single write times; give a trace of writes, as `cardiograph bench --trace` makes one"
        )));
    };
    let plan = plan(&trace, Source::Trace, logger);
    let mut plan = plan.map_err(|why| Failure::new(format!("{file}: {why}")))?;
    plan.target = file.clone();
    if opens_and_closes(&trace.about.workload) {
        plan.warnings.push(format!(
            "the writes of {} each open and close their file; a file kept open needs less RAM, so measure that",
            trace.about.workload
        ));
    }
    Ok(plan)
}

/// Whether a workload that comes along opens and closes its file for each write.
fn opens_and_closes(name: &str) -> bool {
    let spans = |span| span == Span::OpenToClose;
    workload(name).is_some_and(|known| known.phases.iter().any(|phase| spans(phase.span)))
}

fn json(plan: &Plan) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(plan).map_err(Failure::new)?;
    Ok(text + "\n")
}
