//! Plan from the contents of a file.

use crate::{Logger, Plan, Source, plan};
use cardiograph_trace::Loaded;
use cardiograph_workload::{Span, workload};

/// Beginning of the targets that were simulated.
const SIMULATED: &str = "sim:";

/// Plans from what a file contains; returns true with the plan if a simulated card was measured.
///
/// # Errors
/// One sentence that begins with the file's name, if the file contains no trace from which a plan can be made.
pub fn plan_file(file: &str, loaded: &Loaded, logger: &Logger) -> Result<(Plan, bool), String> {
    let Loaded::Trace(trace) = loaded else {
        return Err(format!(
            "{file}: contains no individual writes; use a trace of writes, such as one from \
             `cardiograph bench --trace`"
        ));
    };
    let plan = plan(trace, Source::Trace, logger);
    let mut plan = plan.map_err(|error| format!("{file}: {error}"))?;
    let is_simulated = plan.target.starts_with(SIMULATED);
    plan.target = file.to_string();
    if opens_and_closes(&trace.about.workload) {
        plan.warnings.push(format!(
            "every write of {} opens and closes its file; a logger that keeps its file open needs a \
             smaller buffer, so measure a file that is kept open",
            trace.about.workload
        ));
    }
    Ok((plan, is_simulated))
}

/// Returns true if a built-in workload opens and closes its file for each write.
fn opens_and_closes(name: &str) -> bool {
    let spans = |span| span == Span::OpenToClose;
    workload(name).is_some_and(|known| known.phases.iter().any(|phase| spans(phase.span)))
}
