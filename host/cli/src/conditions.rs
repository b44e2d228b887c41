//! `--fail-if`: conditions on figures that make a command fail.

use crate::failure::{BAD, Failure, print_error};
use cardiograph_plan::Plan;
use cardiograph_report::values::{bytes, duration};
use cardiograph_report::{CadenceSummary, Report, units};

/// Exit code if a condition holds, or cannot be decided.
const CONDITION_HOLDS: u8 = 5;

/// Relative error of the percentiles in a report, which come from a histogram.
const PERCENTILE_ERROR: f64 = 1.0 / 128.0;

/// Help on conditions, from the second sentence on.
macro_rules! help {
    ($first:literal, $more:literal) => {
        concat!(
            $first,
            "; may be repeated.\n\nFigures: median, p90, p99, p99.9, p99.99, min, mean, max (or as in the JSON: \
             latency_us.p99, latency_us.worst_case), stalls, throughput, and sustained(SIZE) for any buffer size",
            $more,
            ". Operators: >, >=, <, <=.\n\nA condition that cannot be decided, such as one on p99.9 of 100 writes, \
             also gives exit code 5. An error of the command itself has precedence over code 5."
        )
    };
}

/// Help for `bench`.
pub const HELP: &str = help!(
    "Exit with code 5 if a condition holds, such as 'p99 > 20ms'",
    ""
);
/// Help for `analyze`.
pub const HELP_OF_INPUT: &str = help!(
    "Exit with code 5 if a condition holds, such as 'p99 > 20ms'",
    "; of a recording: late, missing"
);
/// Help for `compare`.
pub const HELP_OF_COMPARE: &str = help!(
    "Exit with code 5 if a condition, such as 'p99 > 20ms', holds for any card after the first",
    ""
);

/// A figure and a limit, such as `p99 > 20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    figure: Figure,
    operator: Operator,
    /// In us, bytes per second, or a number.
    limit: f64,
}

/// Figures that conditions may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Shortest latency.
    Min,
    /// Mean latency.
    Mean,
    /// Median latency.
    Median,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P99_9,
    /// 99.99th percentile.
    P99_99,
    /// Longest latency.
    Max,
    /// Number of stalls.
    Stalls,
    /// Mean throughput.
    Throughput,
    /// Sustained rate of a buffer of this many bytes.
    Sustained(u64),
    /// Lost samples.
    Lost,
    /// Late samples of a recording.
    Late,
    /// Missing samples of a recording.
    Missing,
    /// Buffer that a plan needs.
    Needed,
    /// Share of runs that lose samples.
    Risk,
    /// Sustained rate with the buffer of a plan.
    SustainedInPlan,
}

/// Kind of a value, and of the limits that it can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Time,
    Rate,
    Number,
    Size,
    Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Greater,
    AtLeast,
    Less,
    AtMost,
}

impl Operator {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::Greater => value > limit,
            Operator::AtLeast => value >= limit,
            Operator::Less => value < limit,
            Operator::AtMost => value <= limit,
        }
    }
}

impl Figure {
    fn named(name: &str) -> Result<Figure, String> {
        if let Some(rest) = name
            .strip_prefix("sustained")
            .filter(|rest| !rest.is_empty())
        {
            let size = rest
                .trim()
                .strip_prefix('(')
                .and_then(|rest| rest.strip_suffix(')'));
            let size = size.ok_or("sustained needs a buffer size, as in sustained(64KiB)")?;
            return bytes(size).map(Figure::Sustained);
        }
        let figure = match name {
            "min" | "latency_us.min" => Figure::Min,
            "mean" | "latency_us.mean" => Figure::Mean,
            "median" | "p50" | "latency_us.median" => Figure::Median,
            "p90" | "latency_us.p90" => Figure::P90,
            "p99" | "latency_us.p99" => Figure::P99,
            "p99.9" | "latency_us.p99_9" => Figure::P99_9,
            "p99.99" | "latency_us.p99_99" => Figure::P99_99,
            "max" | "worst_case" | "latency_us.worst_case" => Figure::Max,
            "stalls" | "stalls.count" => Figure::Stalls,
            "throughput" | "throughput_bytes_per_s.mean" => Figure::Throughput,
            "lost" | "samples_lost" => Figure::Lost,
            "late" | "cadence.late_samples" => Figure::Late,
            "missing" | "cadence.missing_samples" => Figure::Missing,
            "sustained" => Figure::SustainedInPlan,
            "needed" => Figure::Needed,
            "risk" => Figure::Risk,
            _ => return Err(format!("{name:?} is not a figure; --help lists them")),
        };
        Ok(figure)
    }

    fn unit(self) -> Unit {
        match self {
            Figure::Throughput | Figure::Sustained(_) | Figure::SustainedInPlan => Unit::Rate,
            Figure::Needed => Unit::Size,
            Figure::Risk => Unit::Share,
            Figure::Stalls | Figure::Lost | Figure::Late | Figure::Missing => Unit::Number,
            _ => Unit::Time,
        }
    }

    /// Returns true for the figures of writes, which `bench`, `analyze` and `compare` have.
    fn is_of_writes(self) -> bool {
        let is_other = matches!(self, Figure::Lost | Figure::Late | Figure::Missing);
        !is_other && !self.is_of_plan()
    }

    /// Returns true for the figures of `plan`.
    fn is_of_plan(self) -> bool {
        matches!(
            self,
            Figure::Needed | Figure::Risk | Figure::SustainedInPlan
        )
    }

    /// Returns the percentile in millionths.
    fn percentile_ppm(self) -> Option<u32> {
        Some(match self {
            Figure::Median => 500_000,
            Figure::P90 => 900_000,
            Figure::P99 => 990_000,
            Figure::P99_9 => 999_000,
            Figure::P99_99 => 999_900,
            _ => return None,
        })
    }

    /// Returns the figure of a report, or the reason for its absence. Percentiles are rounded, except near the limit.
    fn of(self, report: &Report, operator: Operator, limit: f64) -> Result<f64, String> {
        let summary = &report.summary;
        let is_recording = summary.cadence.is_some();
        if is_recording && self.is_of_writes() {
            return Err("a recording does not show how long writes took".to_string());
        }
        let latency = &summary.latency_us;
        let value = match self {
            Figure::Min => latency.min,
            Figure::Mean => latency.mean,
            Figure::Median => latency.median,
            Figure::P90 => latency.p90,
            Figure::P99 => latency.p99,
            Figure::P99_9 => latency.p99_9,
            Figure::P99_99 => latency.p99_99,
            Figure::Max => latency.worst_case,
            Figure::Stalls => summary
                .stalls
                .count
                .filter(|_| summary.stalls.threshold_us.is_some())
                .map(|count| count as f64),
            Figure::Throughput => summary.throughput_bytes_per_s.mean,
            Figure::Sustained(buffer_bytes) => report.sustained_bytes_per_s(buffer_bytes),
            Figure::Lost | Figure::Needed | Figure::Risk | Figure::SustainedInPlan => None,
            Figure::Late => summary
                .cadence
                .as_ref()
                .map(|audit| audit.late_samples as f64),
            Figure::Missing => match &summary.cadence {
                Some(audit) => return missing(audit, operator, limit),
                None => None,
            },
        };
        let value = match (value, self.percentile_ppm()) {
            (Some(rounded), Some(ppm)) if (rounded - limit).abs() <= limit * PERCENTILE_ERROR => {
                return report.exact_percentile_us(ppm).ok_or_else(|| {
                    format!("it is {}, known to within 0.8 % only", units::time(rounded))
                });
            }
            (value, _) => value,
        };
        value.ok_or_else(|| match self {
            Figure::Late | Figure::Missing => "this is not a recording".to_string(),
            Figure::P90 | Figure::P99 | Figure::P99_9 | Figure::P99_99 if report.has_writes() => {
                let s = if summary.writes == 1 { " is" } else { "s are" };
                format!("{} write{s} too few", units::count(summary.writes))
            }
            _ => "this input does not show it".to_string(),
        })
    }
}

/// Returns the number of missing samples, or one of the range if the condition is the same for all of it.
fn missing(audit: &CadenceSummary, operator: Operator, limit: f64) -> Result<f64, String> {
    let range = audit.missing_samples_min.zip(audit.missing_samples_max);
    let Some((least, most)) = range else {
        let room = units::count(audit.room_for_samples.unwrap_or(0));
        return Err(format!(
            "no sample period fits; late steps have room for {room} samples, which may never have been taken"
        ));
    };
    let (low, high) = (least as f64, most as f64);
    match operator.holds(low, limit) == operator.holds(high, limit) {
        true => Ok(low),
        false => Err(format!(
            "{} to {} samples are missing, depending on the period; if you know the rate, pass --rate",
            units::count(least),
            units::count(most)
        )),
    }
}

impl Unit {
    fn limit(self, text: &str) -> Result<f64, String> {
        match self {
            Unit::Time => duration(text).map(|time| time.as_nanos() as f64 / 1e3),
            Unit::Rate => match text.strip_suffix("/s") {
                Some(size) => bytes(size).map(|bytes| bytes as f64),
                None => Err("expected a rate, such as 500kB/s".to_string()),
            },
            Unit::Size => bytes(text).map(|bytes| bytes as f64),
            Unit::Share => {
                let number = text
                    .strip_suffix('%')
                    .map(|number| number.trim().parse::<f64>());
                match number {
                    Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
                    _ => Err("expected a share from 0% to 100%, such as 0.1%".to_string()),
                }
            }
            Unit::Number => match text.parse::<u64>() {
                Ok(number) => Ok(number as f64),
                Err(_) => Err("expected a whole number".to_string()),
            },
        }
    }

    /// Formats a value with all digits if it is near the limit.
    fn shown(self, value: f64, limit: f64) -> String {
        let is_near = (value - limit).abs() <= limit / 100.0;
        match self {
            Unit::Time if is_near => format!("{value} us"),
            Unit::Rate if is_near => format!("{value} B/s"),
            Unit::Size if is_near => format!("{value} B"),
            Unit::Share if is_near => format!("{} %", value * 100.0),
            Unit::Size => units::bytes(value),
            Unit::Share => units::percent(value),
            Unit::Time => units::time(value),
            Unit::Rate => units::rate(value),
            Unit::Number => units::count(value as u64),
        }
    }
}

/// Parses a condition on writes.
pub fn of_writes(text: &str) -> Result<Condition, String> {
    let why =
        "this command has no such figure; sustained needs a buffer size, as in sustained(64KiB)";
    parsed(text, Figure::is_of_writes, why)
}

/// Parses a condition on writes or on a recording.
pub fn of_input(text: &str) -> Result<Condition, String> {
    let is_known = |figure: Figure| figure != Figure::Lost && !figure.is_of_plan();
    parsed(
        text,
        is_known,
        "only `record` knows which samples were lost; use missing",
    )
}

/// Parses a condition on the result of `record`.
pub fn of_recorder(text: &str) -> Result<Condition, String> {
    let is_known = |figure: Figure| matches!(figure, Figure::Lost | Figure::Max);
    parsed(text, is_known, "record has the figures lost and max")
}

/// Parses a condition on a plan.
pub fn of_plan(text: &str) -> Result<Condition, String> {
    let why = "plan has the figures needed, risk and sustained";
    parsed(text, Figure::is_of_plan, why)
}

/// Parses a condition on a sweep.
pub fn of_sweep(text: &str) -> Result<Condition, String> {
    let is_known = |figure: Figure| figure == Figure::Risk;
    parsed(text, is_known, "sweep has the figure risk")
}

const EXPECTED: &str = "expected a figure, one of > >= < <=, and a limit, such as 'p99 > 20ms'";

fn parsed(text: &str, is_known: impl Fn(Figure) -> bool, why: &str) -> Result<Condition, String> {
    let Some(at) = text.find(['<', '>']) else {
        return Err(EXPECTED.to_string());
    };
    let (name, rest) = text.split_at(at);
    let (operator, limit) = match (rest.as_bytes()[0], rest[1..].strip_prefix('=')) {
        (b'>', Some(limit)) => (Operator::AtLeast, limit),
        (b'>', None) => (Operator::Greater, &rest[1..]),
        (_, Some(limit)) => (Operator::AtMost, limit),
        (_, None) => (Operator::Less, &rest[1..]),
    };
    if limit.starts_with(['<', '>', '=']) {
        return Err(EXPECTED.to_string());
    }
    let figure = Figure::named(name.trim())?;
    if !is_known(figure) {
        return Err(format!("{}: {why}", name.trim()));
    }
    Ok(Condition {
        text: text.trim().to_string(),
        figure,
        operator,
        limit: figure.unit().limit(limit.trim())?,
    })
}

impl Condition {
    /// Returns the reason why the command fails, or `None` if the condition does not hold.
    fn failure(&self, value: Result<f64, String>) -> Option<String> {
        match value {
            Ok(value) => self.operator.holds(value, self.limit).then(|| {
                let shown = self.figure.unit().shown(value, self.limit);
                format!("--fail-if '{}' holds: the figure is {shown}", self.text)
            }),
            Err(why) => Some(format!(
                "--fail-if '{}' cannot be decided: {why}",
                self.text
            )),
        }
    }
}

/// Checks the conditions on every report; prints those that fail. An error of the command itself comes first.
pub fn check<'a>(
    conditions: &[Condition],
    reports: impl IntoIterator<Item = &'a Report>,
    done: Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for report in reports {
        for condition in conditions {
            let failure = condition.failure(condition.figure.of(
                report,
                condition.operator,
                condition.limit,
            ));
            failures.extend(failure.map(|why| format!("{}: {why}", report.summary.target)));
        }
    }
    concluded(&failures, done)
}

/// Result of `record` with one policy.
pub struct Recorded {
    /// Target and policy.
    pub name: String,
    /// Number of lost samples.
    pub lost: u64,
    /// Longest write; 0 if writes do not block the program.
    pub worst_case_us: f64,
}

/// Checks the conditions on the results of `record`; prints those that fail.
pub fn check_recordings(
    conditions: &[Condition],
    results: impl IntoIterator<Item = Recorded>,
    done: Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for recorded in results {
        for condition in conditions {
            let value = match condition.figure {
                Figure::Lost => Ok(recorded.lost as f64),
                _ if recorded.worst_case_us > 0.0 => Ok(recorded.worst_case_us),
                _ => Err("writes do not block the program, so they have no latency".to_string()),
            };
            let failure = condition.failure(value);
            failures.extend(failure.map(|why| format!("{}: {why}", recorded.name)));
        }
    }
    concluded(&failures, done)
}

/// Plan of a card, or the answer for a card that was not measured.
pub struct Planned<'a> {
    /// Name of the card.
    pub name: String,
    /// Plan of a card.
    pub plan: Option<&'a Plan>,
    /// Buffer that the specification asks for, without a card.
    pub specified_bytes: Option<u64>,
    /// Buffer of the logger.
    pub buffer_bytes: u64,
}

impl Planned<'_> {
    fn value(&self, figure: Figure) -> Result<f64, String> {
        let buffer_bytes = self.buffer_bytes;
        let Some(plan) = self.plan else {
            let specified = self.specified_bytes.filter(|_| figure == Figure::Needed);
            let specified = specified.map(|bytes| bytes as f64);
            return specified.ok_or("no card was measured".to_string());
        };
        let value = match figure {
            Figure::Needed => plan.worst_backlog_bytes(),
            Figure::Risk if plan.is_beyond_prediction() && plan.worst_backlog_bytes().is_some() => {
                return Err("the measurement is too short for this run".to_string());
            }
            Figure::Risk => plan.worst_risk(buffer_bytes),
            _ => match &plan.ensemble {
                Some(all) => all
                    .buffer(buffer_bytes)
                    .map(|row| row.sustained_bytes_per_s.low),
                None => plan
                    .buffer(buffer_bytes)
                    .map(|row| row.sustained_bytes_per_s),
            },
        };
        value.ok_or("no buffer is enough for this rate".to_string())
    }
}

/// Checks the conditions on every plan; prints those that fail.
pub fn check_plans<'a>(
    conditions: &[Condition],
    plans: impl IntoIterator<Item = Planned<'a>>,
    done: Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for planned in plans {
        for condition in conditions {
            let failure = condition.failure(planned.value(condition.figure));
            failures.extend(failure.map(|why| format!("{}: {why}", planned.name)));
        }
    }
    concluded(&failures, done)
}

/// Checks the conditions on named shares; prints those that fail.
pub fn check_shares(
    conditions: &[Condition],
    shares: impl IntoIterator<Item = (String, f64)>,
    done: Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (name, share) in shares {
        for condition in conditions {
            let failure = condition.failure(Ok(share));
            failures.extend(failure.map(|why| format!("{name}: {why}")));
        }
    }
    concluded(&failures, done)
}

/// Prints the failed conditions and determines the result of the command.
fn concluded(failures: &[String], done: Result<(), Failure>) -> Result<(), Failure> {
    for failure in failures {
        print_error(&format!("{BAD}{failure}{BAD:#}\n"));
    }
    match done {
        done if failures.is_empty() => done,
        // A signal is not an error: the user sent it.
        Err(Failure::AlreadyPrinted(code)) if code >= 128 => {
            Err(Failure::AlreadyPrinted(CONDITION_HOLDS))
        }
        Ok(()) | Err(Failure::OutputClosed) => Err(Failure::AlreadyPrinted(CONDITION_HOLDS)),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_a_figure_an_operator_and_a_limit_with_a_unit() {
        for (text, figure, operator, limit) in [
            ("p99 > 20ms", Figure::P99, Operator::Greater, 20_000.0),
            (
                "latency_us.p99_9>=1s",
                Figure::P99_9,
                Operator::AtLeast,
                1e6,
            ),
            ("max<500us", Figure::Max, Operator::Less, 500.0),
            ("stalls <= 3", Figure::Stalls, Operator::AtMost, 3.0),
            (
                "sustained(64KiB) < 500kB/s",
                Figure::Sustained(65_536),
                Operator::Less,
                5e5,
            ),
            (
                "throughput < 1MiB/s",
                Figure::Throughput,
                Operator::Less,
                1_048_576.0,
            ),
        ] {
            let found = of_writes(text).unwrap();
            assert_eq!(
                (found.figure, found.operator, found.limit),
                (figure, operator, limit)
            );
        }
    }

    #[test]
    fn other_conditions_are_refused() {
        for text in [
            "",
            "p99",
            "p99 > ",
            "p99 = 3ms",
            "p98 > 3ms",
            "p99 > 20",
            "p99 > 20kB",
            "stalls > 1.5",
            "stalls > 3ms",
            "sustained > 1kB/s",
            "sustained(64K) > 1kB/s",
            "sustained(64KiB) > 1kB",
            "lost > 0",
            "late > 0",
            "> 3ms",
            "needed > 1KiB",
            "risk > 1%",
            "p99 >> 3ms",
        ] {
            assert!(of_writes(text).is_err(), "{text}");
        }
        assert!(of_recorder("p99 > 3ms").is_err());
        assert!(of_recorder("lost > 0").is_ok());
        assert!(of_input("missing > 0").is_ok());
        assert!(of_input("lost > 0").is_err());
        assert!(of_input("risk > 1%").is_err());
        assert!(of_plan("risk > 0.1 %").is_ok() && of_plan("needed >= 32KiB").is_ok());
        assert!(of_plan("sustained < 500kB/s").is_ok());
        for text in ["risk > 1", "risk > 101%", "needed > 3ms", "p99 > 3ms"] {
            assert!(of_plan(text).is_err(), "{text}");
        }
        assert!(of_sweep("risk > 0%").is_ok() && of_sweep("needed > 1KiB").is_err());
    }
}
