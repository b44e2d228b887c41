//! What must be known before a plan is trusted.

use crate::figures::Plan;
use crate::risk::HEIGHTS_MIN;
use cardiograph_report::units;
use cardiograph_trace::{OperationKind, Trace};

/// Measure so many times as much, where what there is does not tell.
const MORE: f64 = 10.0;

/// What must be said of this plan.
pub(crate) fn of(plan: &Plan, trace: &Trace) -> Vec<String> {
    let mut warnings = Vec::new();
    if !plan.is_carried() {
        warnings.push(format!(
            "{} is above the average of {}: no RAM is enough; lower the rate, or take a faster card or bus",
            units::rate(plan.rate_Bps),
            units::rate(plan.measured.average_Bps),
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
            "the trace has reads between its writes; the time they took is not counted".to_string(),
        );
    }
    warnings
}

/// Why nothing is forecast, and how much would have to be measured.
fn no_forecast(plan: &Plan) -> String {
    let measured = &plan.measured;
    let (why, factor) = match measured.busy_periods {
        few if few < HEIGHTS_MIN as u64 => (
            format!(
                "too short to say how a longer run goes: it holds {} busy periods, and a forecast takes {}",
                units::count(few),
                HEIGHTS_MIN
            ),
            HEIGHTS_MIN as f64 / few.max(1) as f64,
        ),
        _ => (
            "no forecast of a longer run: its greatest backlogs are all alike or of several kinds, and \
             follow no one law"
                .to_string(),
            MORE,
        ),
    };
    format!(
        "{why}; measure at least {}. Until then the risk is only bounded: what did not occur in {} of logging \
         occurs, with 95 % confidence, less than three times in as long",
        units::bytes(measured.backlog_bytes as f64 * factor),
        crate::text::duration(measured.run_s),
    )
}
