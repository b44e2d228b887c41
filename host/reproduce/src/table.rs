//! Outcomes as text and JSON.

use crate::outcome::Outcome;
use crate::row::{Role, Row, SetAside};
use serde::Serialize;
use std::fmt::Write;

/// Maximum deviation, as a factor, at which a result is called close.
const CLOSE: f64 = 1.25;
/// Maximum deviation, as a factor, at which a result is called near.
const NEAR: f64 = 2.0;
/// Largest factor that counts as within 50 %.
const HALF: f64 = 1.5;

/// A row of `--json`.
#[derive(Serialize)]
pub struct JsonRow<'a> {
    study: &'a str,
    figure: &'a str,
    quantity: &'a str,
    unit: &'a str,
    role: &'static str,
    set_aside: Option<&'static str>,
    published: Option<f64>,
    is_upper_bound: bool,
    published_range: Option<[f64; 2]>,
    simulated: Option<f64>,
    /// Lowest and highest result over the seeds.
    interval: Option<[f64; 2]>,
    /// Lowest and highest member of the card's ensemble; none for a single card.
    range: Option<[f64; 2]>,
    ratio: Option<f64>,
    driver_timeouts: u64,
}

impl Outcome {
    /// Returns the outcome as a row of `--json`.
    pub fn json_row(&self) -> JsonRow<'_> {
        JsonRow {
            study: self.row.study,
            figure: &self.row.figure,
            quantity: &self.row.quantity,
            unit: &self.row.unit,
            role: self.row.role.name(),
            set_aside: self.row.set_aside.map(SetAside::name),
            published: self.row.published,
            is_upper_bound: self.row.is_upper_bound,
            published_range: self.row.published_range,
            simulated: self.median().map(rounded),
            interval: self.interval().map(|interval| interval.map(rounded)),
            range: self.range().map(|range| range.map(rounded)),
            ratio: self.ratio().map(rounded),
            driver_timeouts: self.driver_timeouts,
        }
    }

    /// Returns a verdict on the ratio of simulated to published number.
    pub fn verdict(&self) -> &'static str {
        match self.factor() {
            _ if self.row.query.measure.runs_on_host() => "measured on this host",
            _ if self.row.query.trace.is_some() => "not a card",
            None if self.row.published.is_none() => "not published",
            None => "no result",
            Some(1.0) if self.row.is_upper_bound => "within the bound",
            Some(1.0) if self.row.published_range.is_some() => "within the published range",
            Some(factor) if factor <= CLOSE => "within 25 %",
            Some(factor) if factor <= NEAR => "within a factor of 2",
            Some(_) => "beyond a factor of 2",
        }
    }
}

impl Outcome {
    /// Returns true if the simulated number deviates by more than a factor of two.
    pub(crate) fn is_off(&self) -> bool {
        self.row.published.is_some() && self.factor().is_none_or(|factor| factor > NEAR)
    }
}

/// Rounds to four significant digits; further digits would be noise.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// Formats a study as a table for a terminal.
pub fn text(title: &str, outcomes: &[Outcome]) -> String {
    let mut out = format!("{title}\n");
    let widest = |of: &dyn Fn(&Outcome) -> usize| outcomes.iter().map(of).max().unwrap_or(0);
    let figure_width = widest(&|outcome| outcome.row.figure.chars().count());
    let quantity_width = widest(&|outcome| outcome.row.quantity.chars().count());
    let _ = writeln!(
        out,
        "  {:figure_width$}  {:quantity_width$}  {:>9}  {:>9}  {:<17} {:<5}  {:>5}  role        verdict, driver time-outs",
        "", "", "published", "simulated", "range", "", "ratio"
    );
    for outcome in outcomes {
        let row = &outcome.row;
        let unit = if row.unit == "1" { "" } else { &row.unit };
        let show = |value: Option<f64>| value.map_or("-".to_string(), number);
        let interval = shown_interval(outcome);
        let ratio = outcome
            .ratio()
            .map_or("-".to_string(), |r| format!("{r:.2}"));
        let _ = writeln!(
            out,
            "  {:figure_width$}  {:quantity_width$}  {:>9}  {:>9}  {interval:<17} {unit:<5}  {ratio:>5}  {:<10}  {}",
            row.figure,
            row.quantity,
            shown_published(row),
            show(outcome.median()),
            row.role.name(),
            verdict_and_timeouts(outcome),
        );
    }
    out
}

/// Summarises all outcomes in two lines.
pub fn summary(outcomes: &[Outcome]) -> String {
    let factors = |role| {
        let rows = outcomes
            .iter()
            .filter(|outcome| outcome.row.published.is_some())
            .filter(|outcome| outcome.row.query.needs_card());
        let rows = rows.filter(move |outcome| outcome.row.role == role);
        let mut factors: Vec<f64> = rows.map(|o| o.factor().unwrap_or(f64::INFINITY)).collect();
        factors.sort_by(f64::total_cmp);
        factors
    };
    let (fits, predictions) = (factors(Role::Fit), factors(Role::Prediction));
    let mut out = String::new();
    if let Some(worst) = fits.last() {
        let close = fits.iter().filter(|factor| **factor <= CLOSE).count();
        let near = fits.iter().filter(|factor| **factor <= NEAR).count();
        let _ = writeln!(
            out,
            "fits: {close} of {} within 25 %, {near} within a factor of 2, largest deviation a factor of {worst:.2}",
            fits.len()
        );
    }
    if let Some(median) = predictions.get(predictions.len() / 2) {
        let _ = writeln!(
            out,
            "predictions with a published figure: {}, median deviation a factor of {median:.2}",
            predictions.len()
        );
    }
    out + &counted(outcomes)
}

/// Summarises the predictions by which the cards are judged.
fn counted(outcomes: &[Outcome]) -> String {
    let counted: Vec<&Outcome> = outcomes.iter().filter(|o| o.row.is_counted()).collect();
    if counted.is_empty() {
        return String::new();
    }
    let within = |factor_most: f64| {
        let factors = counted.iter().filter_map(|outcome| outcome.factor());
        factors.filter(|factor| *factor <= factor_most).count()
    };
    let ranges: Vec<[f64; 2]> = counted.iter().filter_map(|o| o.range()).collect();
    let mut out = format!(
        "counted predictions: {} of {} within 25 %, {} within 50 %, {} within a factor of 2 (repeats and effects near 1 do \
         not count)\n",
        within(CLOSE),
        counted.len(),
        within(HALF),
        within(NEAR)
    );
    if !ranges.is_empty() {
        let inside = counted.iter().filter(|o| o.is_in_range()).count();
        let mut widths: Vec<f64> = ranges.iter().map(|[low, high]| high / low).collect();
        widths.sort_by(f64::total_cmp);
        let _ = writeln!(
            out,
            "  {} of them on an ensemble: {inside} inside its range, whose median width is a factor of {:.2}",
            ranges.len(),
            widths[widths.len() / 2]
        );
    }
    out
}

/// Formats the verdict and, if the driver timed out, how often.
fn verdict_and_timeouts(outcome: &Outcome) -> String {
    let verdict = outcome.verdict();
    match outcome.driver_timeouts {
        0 => verdict.to_string(),
        1 => format!("{verdict}, 1 time-out"),
        timeouts => format!("{verdict}, {timeouts} time-outs"),
    }
}

/// Formats the published number of a row.
pub(crate) fn shown_published(row: &Row) -> String {
    if let Some([least, most]) = row.published_range.map(|range| range.map(number)) {
        return format!("{least}–{most}");
    }
    let sign = if row.is_upper_bound { "≤ " } else { "" };
    row.published
        .map_or("-".to_string(), |value| format!("{sign}{}", number(value)))
}

/// Formats the lowest and highest member of an ensemble, or the lowest and highest result over the seeds, if they
/// differ.
pub(crate) fn shown_interval(outcome: &Outcome) -> String {
    match outcome
        .range()
        .or(outcome.interval())
        .map(|interval| interval.map(number))
    {
        Some([least, greatest]) if least != greatest => format!("{least} to {greatest}"),
        _ => String::new(),
    }
}

/// Formats a number with about three digits.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        below if below >= 100.0 => 0,
        below if below >= 10.0 => 1,
        below if below >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{STUDIES, study};

    #[test]
    fn a_row_states_how_often_the_driver_timed_out() {
        let row = study("blinky").unwrap().rows.remove(0);
        let outcome = |driver_timeouts| Outcome {
            row: row.clone(),
            simulated: vec![130.0],
            members: vec![130.0],
            driver_timeouts,
        };
        let end = |timeouts| text("", &[outcome(timeouts)]).trim_end().to_string();
        assert!(end(0).ends_with("within 25 %"));
        assert!(end(1).ends_with("within 25 %, 1 time-out"));
        assert!(end(4321).ends_with("within 25 %, 4321 time-outs"));
        assert_eq!(outcome(4321).json_row().driver_timeouts, 4321);
    }

    #[test]
    fn a_number_below_an_upper_bound_is_shown_as_such() {
        let rows = study("library-comparison").unwrap().rows;
        let row = rows.into_iter().find(|row| row.is_upper_bound).unwrap();
        let outcome = Outcome {
            row,
            simulated: vec![0.015],
            members: vec![0.015],
            driver_timeouts: 0,
        };
        let text = text("", &[outcome]);
        assert!(text.contains("≤ 0.050      0.015"), "{text}");
        assert!(text.trim_end().ends_with("within the bound"), "{text}");
    }

    #[test]
    fn the_summary_counts_only_the_predictions_by_which_cards_are_judged() {
        let rows = STUDIES.iter().flat_map(|name| study(name).unwrap().rows);
        let mut counted = 0;
        let outcomes: Vec<Outcome> = rows
            .filter(|row| row.published.is_some())
            .map(|row| {
                // Rows that do not count are exact; of the others, eleven each deviate by 20 %, 40 % and a factor of 1.9.
                let factor = match row.is_counted() {
                    true => [1.2, 1.4, 1.9][counted % 3],
                    false => 1.0,
                };
                counted += usize::from(row.is_counted());
                let published = row.published.unwrap_or_default();
                let members = vec![
                    published * 0.5 * factor,
                    published * factor,
                    published * 2.0 * factor,
                ];
                Outcome {
                    row,
                    simulated: members.clone(),
                    driver_timeouts: 0,
                    members,
                }
            })
            .collect();
        let summary = summary(&outcomes);
        let expected = "11 of 33 within 25 %, 22 within 50 %, 33 within a factor of 2 (repeats and effects near 1 do not \
                        count)\n  33 of them on an ensemble: 33 \
                        inside its range, whose median width is a factor of 4.00\n";
        assert!(summary.ends_with(expected), "{summary}");
    }
}
