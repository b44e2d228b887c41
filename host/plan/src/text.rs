//! The plan as a table for a terminal.

use crate::figures::{Ensemble, EnsembleRow, Plan, Risk, Spread};
use crate::plan::Source;
use cardiograph_report::units;
use std::fmt::Write;

/// Width of the name column in characters.
const NAME_WIDTH: usize = 18;

/// Returns the answer for the given buffer size, and below it the table.
pub fn text(plan: &Plan, buffer_bytes: u64) -> String {
    let mut out = format!(
        "{}\n\nplan · {} · {} samples/s of {} B = {} for {}\n",
        answer(plan, buffer_bytes),
        plan.target,
        plan.sample_rate_hz,
        plan.sample_bytes,
        units::rate(plan.rate_bytes_per_s),
        duration(plan.run_s),
    );
    for warning in &plan.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    let all = plan.ensemble.as_ref();
    let heading = |name: &str| match all {
        Some(_) => format!("{name}, first member of the ensemble"),
        None => name.to_string(),
    };
    section(&mut out, &heading("Measured"), &measured(plan));
    section(&mut out, &heading("Logger"), &logger(plan));
    if let Some(all) = all {
        let heading = format!("Median and range of all {} members", all.members);
        section(&mut out, &heading, &members(all));
    }
    let lossy = match plan.is_beyond_prediction() {
        true => String::new(),
        false => format!(
            "runs of {} that lose samples (95 % confidence)",
            duration(plan.run_s)
        ),
    };
    let heads = format!(
        "{:<12}{:<16}{:<16}{lossy}",
        "buffer", "sustained rate", "absorbs stalls"
    );
    let _ = writeln!(out, "\n  {}", heads.trim_end());
    for size in &plan.buffers {
        let of_members = all.and_then(|all| all.buffer(size.buffer_bytes));
        let risk = match plan.is_beyond_prediction() && is_any_sustained(plan) {
            true => String::new(),
            false => of_members.map_or_else(|| share(&size.risk), share_of_members),
        };
        let line = format!(
            "    {:<10}{:<16}{:<16}{risk}",
            units::binary_bytes(size.buffer_bytes),
            sustained(of_members.map_or(size.sustained_bytes_per_s, |row| {
                row.sustained_bytes_per_s.median
            })),
            size.longest_stall_us.map_or_else(
                || "-".to_string(),
                |us| format!("up to {}", duration(us / 1e6))
            ),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "\n  note: {}", way_of_writing(plan));
    if plan.is_sustained() && !plan.is_beyond_prediction() {
        let _ = writeln!(out, "\n  note: {}", extrapolation(plan));
    }
    out
}

/// States for which way of writing the plan holds, and how to plan for another.
fn way_of_writing(plan: &Plan) -> String {
    match plan.writing {
        Source::Stream => format!(
            "This holds for Cardiograph's recorder, which keeps one stream of blocks open. A sketch that writes with SD.h or \
             SdFat sustains less: for it, pass the trace of `cardiograph bench {} --trace t.parquet` to `plan`.",
            plan.target
        ),
        Source::Trace => String::from(
            "This holds for writes like those of the trace: same library, size and way to sync. Cardiograph's recorder usually \
             sustains more.",
        ),
    }
}

fn section(out: &mut String, heading: &str, rows: &[(&str, String)]) {
    let _ = writeln!(out, "\n  {heading}");
    for (name, value) in rows {
        let _ = writeln!(out, "    {name:<NAME_WIDTH$}  {value}");
    }
}

fn measured(plan: &Plan) -> Vec<(&'static str, String)> {
    let measured = &plan.measured;
    let filled = |bytes: u64| {
        format!(
            "{}, which the logger produces in {}",
            units::bytes(bytes as f64),
            duration(bytes as f64 / plan.rate_bytes_per_s)
        )
    };
    let mut rows = vec![
        ("writes", units::count(measured.writes)),
        (
            "worst-case latency",
            units::time(measured.worst_case_latency_us),
        ),
        (
            "mean throughput",
            format!(
                "{}; the logger needs {} of it",
                units::rate(measured.mean_throughput_bytes_per_s),
                units::percent(measured.utilisation_ratio)
            ),
        ),
        ("payload", filled(measured.payload_bytes)),
    ];
    if measured.risk_payload_bytes > measured.payload_bytes {
        rows.push(("simulated for risk", filled(measured.risk_payload_bytes)));
    }
    rows
}

fn logger(plan: &Plan) -> Vec<(&'static str, String)> {
    let unavailable = || "not available from a trace".to_string();
    let mut rows = vec![("way of writing", plan.policy.clone())];
    if let Some(bytes) = plan.peak_backlog_bytes {
        rows.push((
            "peak backlog",
            format!("{} in the measured writes", units::bytes(bytes)),
        ));
    }
    if plan.is_sustained() {
        if let (Some(bytes), None) = (plan.recommended_buffer_bytes, &plan.ensemble) {
            let buffer = units::binary_bytes(bytes);
            rows.push((
                "buffer by risk",
                format!("{buffer}: fewer than 1 in 1000 runs lose samples"),
            ));
        }
        let energy = plan.energy_j_per_day.map_or_else(unavailable, |joules| {
            let mean_mw = joules / 86.4;
            format!(
                "{} per day, {} on average",
                units::energy(joules * 1e6),
                units::power(mean_mw)
            )
        });
        rows.push(("energy", energy));
        let wear = plan.wear.map_or_else(unavailable, |wear| {
            format!(
                "{:.0} erases per day; worn out in {} if wear is even",
                wear.erases_per_day,
                years(wear.lifetime_years)
            )
        });
        rows.push(("wear", wear));
    }
    rows
}

fn members(all: &Ensemble) -> Vec<(&'static str, String)> {
    let of = |spread: &Spread, unit: fn(f64) -> String| {
        let [median, low, high] = [spread.median, spread.low, spread.high].map(unit);
        match low == high {
            true => median,
            false => format!("{median} ({low} to {high})"),
        }
    };
    let mut rows = vec![
        (
            "worst-case latency",
            of(&all.worst_case_latency_us, units::time),
        ),
        (
            "mean throughput",
            of(&all.mean_throughput_bytes_per_s, units::rate),
        ),
    ];
    if let Some(bytes) = &all.peak_backlog_bytes {
        rows.push(("peak backlog", of(bytes, units::bytes)));
    }
    if let Some(bytes) = all.largest_recommended_buffer_bytes {
        rows.push((
            "buffer by risk",
            format!(
                "{}: fewer than 1 in 1000 runs lose samples, with the worst member",
                units::binary_bytes(bytes)
            ),
        ));
    }
    if let Some(joules) = &all.energy_j_per_day {
        let unit = |joules: f64| units::energy(joules * 1e6);
        rows.push(("energy per day", of(joules, unit)));
    }
    if let Some(lifetime) = &all.lifetime_years {
        rows.push(("worn out in", of(lifetime, years)));
    }
    rows
}

fn sustained(rate_bytes_per_s: f64) -> String {
    match rate_bytes_per_s {
        0.0 => "none".to_string(),
        rate => units::rate(rate),
    }
}

fn extrapolation(plan: &Plan) -> String {
    let basis = plan.tail.map_or_else(
        || "no distribution could be fitted".to_string(),
        |tail| {
            format!(
                "a generalised Pareto distribution fits the {} greatest backlogs (shape {:.2})",
                tail.exceedances, tail.shape
            )
        },
    );
    let times = match plan.times_as_long() {
        times if times > 1.05 => format!("{} times as long as", three_digits(times)),
        times if times < 0.95 => "shorter than".to_string(),
        _ => "about as long as".to_string(),
    };
    let assumption = match plan.tail {
        Some(_) => " The prediction assumes that no new kind of stall appears.",
        None => "",
    };
    format!("{basis}; a run is {times} the measurement.{assumption}")
}

/// Returns true if the rate is below the mean throughput, of an ensemble that of at least one member.
pub(crate) fn is_any_sustained(plan: &Plan) -> bool {
    let of_members = plan
        .ensemble
        .as_ref()
        .map(|all| all.mean_throughput_bytes_per_s.high);
    of_members.map_or(plan.is_sustained(), |high| plan.rate_bytes_per_s < high)
}

/// Returns the answer for a buffer size as a sentence.
pub fn answer(plan: &Plan, buffer_bytes: u64) -> String {
    let (buffer, rate) = (
        units::binary_bytes(buffer_bytes),
        units::rate(plan.rate_bytes_per_s),
    );
    let way = match plan.writing {
        Source::Stream => "Cardiograph's recorder",
        Source::Trace => "the trace's way of writing",
    };
    let card = match &plan.ensemble {
        Some(all) => format!("the worst of {} members", all.members),
        None => String::from("the card"),
    };
    let Some(needed_bytes) = plan.worst_backlog_bytes() else {
        let all = plan.ensemble.as_ref();
        let mean = all.map_or(plan.measured.mean_throughput_bytes_per_s, |all| {
            all.mean_throughput_bytes_per_s.low
        });
        return format!(
            "No buffer is enough for {rate} with {way}: {card} sustains {} on average.",
            units::rate(mean)
        );
    };
    let (verdict, joined) = match () {
        () if needed_bytes > buffer_bytes as f64 => ("is too small for", ";"),
        () if plan.specification.sdxc_buffer_bytes <= buffer_bytes => {
            ("holds what was measured and what is specified at", ", and")
        }
        () => ("holds what was measured at", ", but"),
    };
    format!(
        "{buffer} {verdict} {rate} with {way}: {card} needed {} in {} of logging{joined} the SD specification allows a stall \
         that needs {}.",
        units::bytes(needed_bytes),
        duration(plan.measured.run_s),
        plan.specification.words()
    )
}

/// Formats a risk for the table column.
pub(crate) fn share(risk: &Risk) -> String {
    let Risk { likely, low, high } = *risk;
    match (one_in_below(high), likely) {
        _ if low > 0.99 => "all".to_string(),
        _ if low < 0.01 && high > 0.99 => "unknown".to_string(),
        (Some(one_in), _) => format!("fewer than 1 in {}", units::count(one_in)),
        (None, None) if high > 0.5 => "unknown".to_string(),
        (None, None) => format!("unknown, at most {}", units::percent(high)),
        (None, Some(_)) => format!("{} to {}", units::percent(low), units::percent(high)),
    }
}

/// Formats the upper limits of an ensemble's risk: the median and, if it reads differently, the greatest.
pub(crate) fn share_of_members(row: &EnsembleRow) -> String {
    let limit = |high: f64| match one_in_below(high) {
        Some(one_in) => format!("fewer than 1 in {}", units::count(one_in)),
        None if high > 0.99 => "up to all".to_string(),
        None => format!("up to {}", units::percent(high)),
    };
    let (median, high) = (limit(row.risk_high.median), limit(row.risk_high.high));
    match median == high {
        true => median,
        false => format!("{median}; {high} for the worst member"),
    }
}

/// Returns true if [`share`] calls the risk unknown.
pub(crate) fn is_unknown(risk: &Risk) -> bool {
    let is_wide = risk.low < 0.01 && risk.high > 0.99;
    is_wide || risk.low <= 0.99 && risk.likely.is_none() && one_in_below(risk.high).is_none()
}

/// Returns the greatest power of ten n for which the risk is below 1 in n, up to 10,000: the measured writes cannot
/// show how likely rarer events are.
fn one_in_below(risk: f64) -> Option<u64> {
    (1..=4)
        .rev()
        .map(|digits| 10u64.pow(digits))
        .find(|&one_in| risk < 1.0 / one_in as f64)
}

/// Formats a time in s in a unit suitable for planning.
pub(crate) fn duration(s: f64) -> String {
    match s {
        s if s < 100.0 => units::time(s * 1e6),
        s if s < 6000.0 => format!("{} min", three_digits(s / 60.0)),
        s if s < 172_800.0 => format!("{} h", three_digits(s / 3600.0)),
        s => format!("{} days", three_digits(s / 86_400.0)),
    }
}

fn years(years: f64) -> String {
    match years {
        years if years >= 1000.0 => "more than 1000 years".to_string(),
        years => format!("{} years", three_digits(years)),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.95 => format!("{v:.1}").trim_end_matches(".0").to_string(),
        v => units::count(v.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_nearly_everything_is_unknown() {
        let risk = |likely, low, high| Risk { likely, low, high };
        for (risk, shown) in [
            (risk(Some(0.3), 0.001, 0.999), "unknown"),
            (risk(None, 0.0, 0.9), "unknown"),
            (risk(None, 0.0, 0.4), "unknown, at most 40 %"),
            (risk(Some(0.3), 0.2, 0.9), "20 % to 90 %"),
            (risk(None, 0.0, 0.0009), "fewer than 1 in 1,000"),
            (risk(None, 0.999, 1.0), "all"),
        ] {
            assert_eq!(share(&risk), shown);
            assert_eq!(is_unknown(&risk), shown.starts_with("unknown"));
        }
    }
}
