//! The plan as a table for a terminal.

use crate::figures::{Plan, Risk, Size};
use cardiograph_report::units;
use std::fmt::Write;

/// Columns of the names.
const NAME_WIDTH: usize = 18;

/// Longest busy after a write in s: 250 ms, and 500 ms for some cards (SD Physical Layer Simplified
/// Specification 9.00, 4.6.2.2).
const BUSY_S_MAX: f64 = 0.5;

/// The plan, with the answer for the RAM asked for at its end.
pub fn text(plan: &Plan, ram_bytes: u64) -> String {
    let mut out = format!(
        "plan · {} · {} samples/s of {} B = {} for {}\n",
        plan.target,
        plan.rate_hz,
        plan.line_bytes,
        units::rate(plan.rate_Bps),
        duration(plan.run_s),
    );
    for warning in &plan.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    section(&mut out, "Measured", &measured(plan));
    section(&mut out, "Logger", &logger(plan));
    let _ = writeln!(
        out,
        "\n  {:<12}{:<16}{:<16}runs of {} that lose samples (95 % confidence)",
        "RAM",
        "lossless rate",
        "bears a stall",
        duration(plan.run_s)
    );
    for size in &plan.sizes {
        let _ = writeln!(
            out,
            "    {:<10}{:<16}{:<16}{}",
            units::ram(size.ram_bytes),
            lossless(size),
            size.stall_s
                .map_or_else(|| "-".to_string(), |s| format!("of {}", duration(s))),
            share(&size.risk)
        );
    }
    if plan.is_carried() {
        let _ = writeln!(out, "\n  note: {}", extrapolation(plan));
    }
    let _ = writeln!(out, "\n{}", answer(plan, ram_bytes));
    out
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
            "{}, which the logger fills in {}",
            units::bytes(bytes as f64),
            duration(bytes as f64 / plan.rate_Bps)
        )
    };
    let mut rows = vec![
        ("writes", units::count(measured.writes)),
        ("longest write", duration(measured.longest_write_s)),
        (
            "average",
            format!(
                "{}, of which the logger takes {}",
                units::rate(measured.average_Bps),
                units::percent(measured.utilisation)
            ),
        ),
        ("payload", filled(measured.bytes)),
    ];
    if measured.backlog_bytes > measured.bytes {
        rows.push(("and for the risk", filled(measured.backlog_bytes)));
    }
    rows
}

fn logger(plan: &Plan) -> Vec<(&'static str, String)> {
    let not_told = || "cannot be told from a trace".to_string();
    let mut rows = vec![("policy", plan.policy.clone())];
    if let Some(bytes) = plan.ram_needed_bytes {
        rows.push((
            "greatest backlog",
            format!("{}, in what was measured", units::bytes(bytes)),
        ));
    }
    if plan.is_carried() {
        let advised = match plan.ram_advised_bytes {
            Some(bytes) => format!(
                "{}: less than 1 run in 1000 loses a sample",
                units::ram(bytes)
            ),
            None => not_known(plan),
        };
        rows.push(("RAM advised", advised));
        let energy = plan.energy_J_per_day.map_or_else(not_told, |joules| {
            let mean_mw = joules / 86.4;
            format!(
                "{} a day, {} on average",
                units::energy(joules * 1e6),
                units::power(mean_mw)
            )
        });
        rows.push(("energy", energy));
        let wear = plan.wear.map_or_else(not_told, |wear| {
            format!(
                "{:.0} erases a day; worn out in {}, if all blocks wear alike",
                wear.erases_per_day,
                years(wear.years)
            )
        });
        rows.push(("wear", wear));
    }
    rows
}

/// Without statistics there is what the specification promises.
fn not_known(plan: &Plan) -> String {
    let bears = |size: &&Size| size.stall_s.is_some_and(|s| s >= BUSY_S_MAX);
    match plan.sizes.iter().find(bears) {
        Some(size) => format!(
            "not known; {} bears the longest stall that the specification allows, {}",
            units::ram(size.ram_bytes),
            duration(BUSY_S_MAX)
        ),
        None => "not known".to_string(),
    }
}

fn lossless(size: &Size) -> String {
    match size.lossless_Bps {
        0.0 => "not one write".to_string(),
        rate => units::rate(rate),
    }
}

fn extrapolation(plan: &Plan) -> String {
    let basis = plan.tail.map_or_else(
        || "no law was fitted".to_string(),
        |tail| {
            format!(
                "a generalized Pareto law fits the {} greatest backlogs (shape {:.2})",
                tail.exceedances, tail.shape
            )
        },
    );
    let times = match plan.times_as_long() {
        times if times > 1.05 => format!("{} times as long as", three_digits(times)),
        _ => "no longer than".to_string(),
    };
    format!(
        "{basis}; a run is {times} what was measured. That no stall of another kind comes is taken for granted."
    )
}

/// The answer for this RAM, in plain words.
pub fn answer(plan: &Plan, ram_bytes: u64) -> String {
    let ram = units::ram(ram_bytes);
    let run = duration(plan.run_s);
    if !plan.is_carried() {
        return format!("{ram}: every long run loses samples, as with any RAM.");
    }
    let Some(size) = plan.size(ram_bytes) else {
        return String::new();
    };
    let Risk { likely, low, high } = size.risk;
    if low > 0.99 {
        return format!("{ram}: every run of {run} loses samples.");
    }
    if let Some(one_in) = one_in_below(high) {
        return format!(
            "{ram}: less than 1 run of {run} in {} loses a sample.",
            units::count(one_in)
        );
    }
    match likely {
        None if high > 0.5 => {
            format!("{ram}: enough for what was measured; that is too short to say for {run}.")
        }
        None => format!(
            "{ram}: enough for what was measured; at most {} of the runs of {run} lose samples.",
            units::percent(high)
        ),
        Some(_) => format!(
            "{ram}: {} to {} of the runs of {run} lose samples.",
            units::percent(low),
            units::percent(high)
        ),
    }
}

/// The same, in a column.
fn share(risk: &Risk) -> String {
    let Risk { likely, low, high } = *risk;
    match (one_in_below(high), likely) {
        _ if low > 0.99 => "all".to_string(),
        (Some(one_in), _) => format!("less than 1 in {}", units::count(one_in)),
        (None, None) if high > 0.5 => "not known".to_string(),
        (None, None) => format!("not known, at most {}", units::percent(high)),
        (None, Some(_)) => format!("{} to {}", units::percent(low), units::percent(high)),
    }
}

/// The greatest power of ten that a risk is less than one in. Up to 10 000: what is rarer depends on more
/// than on what was measured.
fn one_in_below(risk: f64) -> Option<u64> {
    (1..=4)
        .rev()
        .map(|digits| 10u64.pow(digits))
        .find(|&one_in| risk < 1.0 / one_in as f64)
}

/// A time in s, in the largest of the units that people plan in.
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
