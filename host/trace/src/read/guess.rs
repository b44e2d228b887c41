//! Units that a file does not name, inferred from the magnitude of the values.
//!
//! A unit is assumed only if no other one fits; the reason becomes a note. Otherwise, the caller has to name it.

use super::columns::{MICROSECOND, MILLISECOND, NANOSECOND, SECOND, Unit};
use super::error::{Fault, Problem};

const UNITS: [Unit; 4] = [SECOND, MILLISECOND, MICROSECOND, NANOSECOND];

/// Plausible times since 1970, in s: from 2001 to 2039.
const EPOCH_S: std::ops::Range<f64> = 1.0e9..2.2e9;

/// Limit of times in ms, because boards count milliseconds in 32 bits.
const BOARD_MS_MAX: f64 = 4_294_967_296.0;

/// Numbers of one column from the beginning of a file.
#[derive(Default)]
pub(super) struct Numbers {
    values: Vec<f64>,
    /// True if a number has decimals: counters of microseconds have none.
    decimals: bool,
}

impl Numbers {
    /// Adds the number in `text`. Ignores any other text: the reader of the row reports it as an error.
    pub(super) fn push(&mut self, text: &[u8]) {
        let number = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok());
        if let Some(number) = number.filter(|number: &f64| number.is_finite()) {
            // Some programs print every number with `.0`.
            self.decimals |= number.fract() != 0.0;
            self.values.push(number);
        }
    }

    /// Returns the median; for an even number of values, the higher of the two middle ones.
    fn median(mut values: Vec<f64>) -> Option<f64> {
        values.sort_by(f64::total_cmp);
        values.get(values.len().saturating_sub(1) / 2).copied()
    }

    fn median_step(&self) -> Option<f64> {
        let steps = self.values.windows(2).map(|pair| pair[1] - pair[0]);
        Numbers::median(steps.filter(|&step| step > 0.0).collect())
    }

    /// Returns the differences from the numbers of another column.
    pub(super) fn minus(&self, other: &Numbers) -> Numbers {
        let pairs = self.values.iter().zip(&other.values);
        Numbers {
            values: pairs.map(|(end, start)| end - start).collect(),
            decimals: self.decimals || other.decimals,
        }
    }

    pub(super) fn sum(&self) -> f64 {
        self.values.iter().sum()
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Difference between the last and the first number.
    pub(super) fn span(&self) -> f64 {
        match (self.values.first(), self.values.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0.0,
        }
    }

    fn may_be(&self, unit: Unit) -> bool {
        !self.decimals || unit == SECOND || unit == MILLISECOND
    }
}

/// A unit, and the reason for it as a sentence.
#[derive(Debug)]
pub(super) struct Guess {
    pub unit: Unit,
    pub reason: String,
}

/// Infers the unit of the latencies of writes from their median. `what` names the latencies in messages.
pub(super) fn of_latencies(what: &str, numbers: &Numbers) -> Result<Guess, Fault> {
    let Some(median) = Numbers::median(numbers.values.clone()).filter(|&median| median > 0.0)
    else {
        return Ok(Guess {
            unit: MILLISECOND,
            reason: format!("{what} have no unit and are 0; they are read as ms."),
        });
    };
    let fits = |unit: Unit| {
        // Few cards have a median of more than 0.25 s, but slow programs may. If such values have decimals, their unit
        // may be us.
        let is_short = unit == SECOND || numbers.decimals;
        let longest_s = if is_short { 0.25 } else { 2.0 };
        numbers.may_be(unit) && (1e-5..=longest_s).contains(&(median * seconds(unit)))
    };
    let reading = |unit: Unit| {
        format!(
            "read as {}, the median write takes {}",
            unit.name,
            span(median * seconds(unit))
        )
    };
    decided(what, fits, reading)
}

/// Returns a note if the latencies of writes are implausible in the unit that their column names.
pub(super) fn note_of_magnitude(name: &str, unit: Unit, numbers: &Numbers) -> Option<String> {
    let median_s = Numbers::median(numbers.values.clone())? * seconds(unit);
    let is_usual = median_s <= 0.0 || (1e-5..=0.25).contains(&median_s);
    (!is_usual).then(|| {
        format!(
            "The column \"{name}\" names the unit {}, so the median write takes {}, which is unusual; if this unit is \
             wrong, correct the name.",
            unit.name,
            span(median_s)
        )
    })
}

/// Returns the unit of times since 1970; `None` if the times may count from another start.
pub(super) fn since_1970(name: &str, numbers: &Numbers) -> Option<Guess> {
    let first = numbers.values.first().copied()?;
    let step = numbers.median_step()?;
    let is_epoch = |unit: &Unit| {
        let step_s = step * seconds(*unit);
        // After 17 minutes, the readings of a microsecond counter could be seconds since 1970, but their steps are too
        // large for seconds.
        let longest_s = if *unit == SECOND { 60.0 } else { 3600.0 };
        EPOCH_S.contains(&(first * seconds(*unit))) && step_s <= longest_s
    };
    let unit = UNITS.into_iter().find(is_epoch)?;
    let year = 1970.0 + first * seconds(unit) / 31_556_952.0;
    Some(Guess {
        unit,
        reason: format!(
            "The times in column \"{name}\" have no unit; they are read as {} since 1970 and begin in {}.",
            unit.name,
            year.floor()
        ),
    })
}

/// Infers the unit of the times of samples from the first time and the median interval.
pub(super) fn of_times(name: &str, numbers: &Numbers, is_ulog: bool) -> Result<Guess, Fault> {
    let what = format!("the times in column \"{name}\"");
    let first = numbers.values.first().copied().unwrap_or(0.0);
    let Some(step) = numbers.median_step() else {
        return Ok(Guess {
            unit: MILLISECOND,
            reason: format!(
                "{} have no unit and do not change; they are read as ms.",
                capital(&what)
            ),
        });
    };
    if let Some(guess) = since_1970(name, numbers) {
        return Ok(guess);
    }
    if is_ulog {
        return Ok(Guess {
            unit: MICROSECOND,
            reason: format!(
                "{} have no unit; they are read as us, because the other columns are those of a \
                 ULog export.",
                capital(&what)
            ),
        });
    }
    let fits = |unit: Unit| {
        let longest_s = if unit == SECOND { 1.0 } else { 3600.0 };
        let is_on_board = unit != MILLISECOND || first < BOARD_MS_MAX;
        is_on_board && numbers.may_be(unit) && (5e-5..=longest_s).contains(&(step * seconds(unit)))
    };
    let reading = |unit: Unit| {
        format!(
            "read as {}, there is a sample every {}",
            unit.name,
            span(step * seconds(unit))
        )
    };
    decided(&what, fits, reading)
}

/// Returns the only unit that fits, or the error that asks for it.
fn decided(
    what: &str,
    fits: impl Fn(Unit) -> bool,
    reading: impl Fn(Unit) -> String,
) -> Result<Guess, Fault> {
    let fitting: Vec<Unit> = UNITS.into_iter().filter(|unit| fits(*unit)).collect();
    if let [unit] = fitting[..] {
        // Shows the other units as well, because the user may have expected one of them.
        let others = [MILLISECOND, MICROSECOND, SECOND];
        let others = others.into_iter().filter(|other| *other != unit);
        let other: String = others
            .map(|other| format!("; {}", reading(other)))
            .collect();
        return Ok(Guess {
            unit,
            reason: format!(
                "{} have no unit: {}{other}. They are read as {}; --time-unit sets another unit.",
                capital(what),
                reading(unit),
                unit.name
            ),
        });
    }
    let candidates = match fitting.is_empty() {
        true => vec![MILLISECOND, MICROSECOND],
        false => fitting,
    };
    let readings: Vec<String> = candidates.iter().map(|unit| reading(*unit)).collect();
    let options: Vec<String> = candidates
        .iter()
        .map(|unit| format!("--time-unit {}", unit.name))
        .collect();
    Err(Problem::UnitUnknown {
        what: what.to_owned(),
        readings: readings.join("; "),
        options: options.join(" or "),
    }
    .in_file())
}

fn seconds(unit: Unit) -> f64 {
    10_f64.powi(unit.power - 9)
}

/// Formats a time in s with three digits and a unit.
pub(super) fn span(seconds: f64) -> String {
    let (number, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    let decimals = match number {
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{number:.decimals$}");
    let text = match decimals {
        0 => &text,
        _ => text.trim_end_matches('0').trim_end_matches('.'),
    };
    format!("{text} {unit}")
}

fn capital(what: &str) -> String {
    let mut letters = what.chars();
    let first = letters.next().map(|letter| letter.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(texts: &[&str]) -> Numbers {
        let mut numbers = Numbers::default();
        texts.iter().for_each(|text| numbers.push(text.as_bytes()));
        numbers
    }

    #[test]
    fn units_of_latencies() {
        let cases: &[(&[&str], Option<Unit>)] = &[
            (&["812", "790", "85012", "801"], None),
            (&["0.5", "130", "12.25"], Some(MILLISECOND)),
            (&["2", "1", "2", "70"], Some(MILLISECOND)),
            (&["0.0012", "0.0013", "0.07"], Some(SECOND)),
            (&["0.12", "0.13", "70.1"], None),
            (&["25", "27", "24"], None),
            (&["812.0", "790.0", "85012.0"], None),
            (&["812.4", "790.1", "85012.8"], None),
            (&["5400", "5300", "85000"], Some(MICROSECOND)),
            (&["2713000", "2700000", "85000000"], Some(NANOSECOND)),
            (&["500000", "510000"], None),
            (&["0", "0", "0"], Some(MILLISECOND)),
            (&["900000000000"], None),
        ];
        for (texts, expected) in cases {
            let found = of_latencies("the latencies", &numbers(texts));
            assert_eq!(found.ok().map(|guess| guess.unit), *expected, "{texts:?}");
        }
    }

    #[test]
    fn units_of_times() {
        let cases: &[(&[&str], bool, Option<Unit>)] = &[
            (&["10", "20", "30"], false, Some(MILLISECOND)),
            (&["0.01", "0.02", "0.03"], false, Some(SECOND)),
            (&["1000", "2000", "3000"], false, None),
            (&["0", "1", "2"], false, None),
            (&["0", "4000", "8000"], false, None),
            (&["0", "4000", "8000"], true, Some(MICROSECOND)),
            (&["1732280000", "1732280001"], false, Some(SECOND)),
            (&["1732280000.25", "1732280000.50"], false, Some(SECOND)),
            (
                &["1732280000000", "1732280000010"],
                false,
                Some(MILLISECOND),
            ),
            (
                &["1732280000000000", "1732280000004000"],
                false,
                Some(MICROSECOND),
            ),
            (
                &["1732280000000000000", "1732280000004000000"],
                true,
                Some(NANOSECOND),
            ),
            // Twenty minutes after the start of a flight controller.
            (
                &["1200000000", "1200004000", "1200008000"],
                true,
                Some(MICROSECOND),
            ),
            // More than the 49 days that a counter of milliseconds lasts.
            (&["5000000000", "5000004000"], false, Some(MICROSECOND)),
            (&["7", "7"], false, Some(MILLISECOND)),
        ];
        for (texts, is_ulog, expected) in cases {
            let found = of_times("t", &numbers(texts), *is_ulog);
            assert_eq!(found.ok().map(|guess| guess.unit), *expected, "{texts:?}");
        }
    }

    #[test]
    fn spans_have_three_digits() {
        assert_eq!(span(0.812), "812 ms");
        assert_eq!(span(4.0), "4 s");
        assert_eq!(span(0.1), "100 ms");
        assert_eq!(span(1.25e-5), "12.5 us");
        assert_eq!(span(600.0), "10 min");
    }
}
