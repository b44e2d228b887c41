//! Warnings about the validity of a plan.

use crate::figures::{Plan, TIMES_MAX};
use crate::risk::PEAKS_MIN;
use crate::text::duration;
use cardiograph_report::units;
use cardiograph_trace::{OperationKind, Trace};

/// Factor by which to lengthen a measurement whose statistics are inconclusive.
const MORE: f64 = 10.0;

const S_PER_YEAR: f64 = 365.25 * 86_400.0;

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
    } else if plan.is_beyond_prediction() {
        warnings.push(beyond(plan));
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

/// Explains why a run is too long for a prediction, and states the length of a measurement that would allow one.
fn beyond(plan: &Plan) -> String {
    let needed_s = plan.run_s / TIMES_MAX;
    format!(
        "a run of {} is {} times as long as the measurement, and beyond {} times no probability is stated; measure {} of \
         logging ({}), or use the buffer of the specification, {}",
        duration(plan.run_s),
        units::count(plan.times_as_long().round() as u64),
        units::count(TIMES_MAX as u64),
        duration(needed_s),
        units::bytes(needed_s * plan.rate_bytes_per_s),
        plan.specification.words()
    )
}

/// Warns if a simulated card is full, or its worst member is worn out, before the run ends.
pub(crate) fn of_card(plan: &Plan) -> Vec<String> {
    let run = duration(plan.run_s);
    let full_s = plan.full_after_s.filter(|&s| s < plan.run_s);
    let full = full_s.map(|s| {
        format!(
            "the card is full after {}, before a run of {run} ends; use a larger card, or remove the oldest files",
            duration(s)
        )
    });
    let lifetime_years = match &plan.ensemble {
        Some(all) => all.lifetime_years.map(|years| years.low),
        None => plan.wear.map(|wear| wear.lifetime_years),
    };
    let worn_s = lifetime_years
        .map(|years| years * S_PER_YEAR)
        .filter(|&s| s < plan.run_s);
    let worn = worn_s.map(|s| {
        format!(
            "the card is worn out after {}, before a run of {run} ends; use a card of higher endurance, or change it",
            duration(s)
        )
    });
    full.into_iter().chain(worn).collect()
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
        duration(measured.run_s),
    )
}
