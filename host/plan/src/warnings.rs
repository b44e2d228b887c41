//! Warnings about the validity of a plan.

use crate::figures::Plan;
use crate::risk::PEAKS_MIN;
use cardiograph_report::units;
use cardiograph_trace::{OperationKind, Trace};

/// Factor by which to lengthen a measurement whose statistics are inconclusive.
const MORE: f64 = 10.0;

/// Returns the warnings for a plan.
pub(crate) fn of(plan: &Plan, trace: &Trace) -> Vec<String> {
    let mut warnings = Vec::new();
    if !plan.is_sustained() {
        warnings.push(format!(
            "{} exceeds the mean throughput of {}, so no buffer suffices; lower the rate, or use a \
             faster card or bus",
            units::rate(plan.rate_bytes_per_s),
            units::rate(plan.measured.mean_throughput_bytes_per_s),
        ));
    } else if plan.tail.is_none() {
        warnings.push(no_forecast(plan));
    }
    if trace
        .runs()
        .iter()
        .any(|run| run.kind == OperationKind::Read)
    {
        warnings.push(
            "the trace contains reads between its writes; the time that the reads took is not counted".to_string(),
        );
    }
    warnings
}

/// Explains why there is no prediction, and how long a measurement has to be for one.
fn no_forecast(plan: &Plan) -> String {
    let measured = &plan.measured;
    let (why, factor) = match measured.busy_periods {
        few if few < PEAKS_MIN as u64 => (
            format!(
                "the measurement is too short to predict longer runs: it contains {} of the {} busy periods needed (in a busy \
                 period, a backlog builds up and drains)",
                units::count(few),
                PEAKS_MIN
            ),
            PEAKS_MIN as f64 / few.max(1) as f64,
        ),
        _ => (
            "longer runs cannot be predicted: no single distribution fits the largest backlogs, because they are all \
             equal, or have several causes"
                .to_string(),
            MORE,
        ),
    };
    format!(
        "{why}; measure at least {}. This \
         measurement shows only this, with 95 % confidence: a kind of stall that was not seen in {} of logging occurs \
         fewer than three times, on average, in a run of the same length",
        units::bytes(measured.risk_payload_bytes as f64 * factor),
        crate::text::duration(measured.run_s),
    )
}
