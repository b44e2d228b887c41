//! Signs that a text of numbers does not mean what it seems to mean.

use super::columns::{cells, is_number, unquoted};
use super::error::{Fault, Problem, shown};
use super::guess::span;
use super::lines::Line;
use super::numeral::Points;
use super::recording::{SAMPLE_ROWS, is_note, rows_in};
use crate::trace::Trace;
use std::collections::BTreeSet;

/// Refuses lists of latencies whose decimal commas look like separators of two columns, such as `0,812`.
pub(super) fn refuse_decimal_commas(head: &[u8]) -> Result<(), Fault> {
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let mut widths = Vec::new();
    let mut whole = Vec::new();
    let mut is_padded = false;
    let rows = rows_in(head).filter(|row| !is_note(row));
    for row in rows.take(SAMPLE_ROWS) {
        let mut texts = row.split(|&byte| byte == b',');
        let (Some(before), Some(after), None) = (texts.next(), texts.next(), texts.next()) else {
            return Ok(());
        };
        if !is_digits(before) || !is_digits(after) {
            return Ok(());
        }
        // Such zeros occur neither in a group of three digits nor in a second column.
        is_padded |= after.len() > 1 && after[0] == b'0' && after.len() != 3 || before == b"0";
        widths.push(after.len());
        whole.push((before.len(), before));
    }
    let are_alike = widths.windows(2).all(|pair| pair[0] == pair[1]);
    // Times and indices increase.
    let increases = whole.windows(2).all(|pair| pair[0] < pair[1]);
    match rows_in(head).find(|row| !is_note(row)) {
        Some(row) if !increases && is_padded => {
            let text = shown(row);
            Err(Problem::DecimalComma { text }.in_file())
        }
        Some(row) if !increases && are_alike => {
            let text = shown(row);
            Err(Problem::Comma { text }.in_file())
        }
        _ => Ok(()),
    }
}

/// Returns true for a latency just below 2^32 us or ms: the difference of two readings of a 32-bit counter, of which
/// the second was less than the first.
pub(super) fn is_underflow(latency_ns: u64) -> bool {
    const TICKS_NS: [u64; 2] = [1_000, 1_000_000];
    // Rounding to s or ms may increase the difference slightly above the range of the counter.
    TICKS_NS.iter().any(|tick_ns| {
        let wrap_ns = tick_ns << 32;
        (wrap_ns - wrap_ns / 256..=wrap_ns + wrap_ns / 8192).contains(&latency_ns)
    })
}

/// Refuses a column if the point or comma of a number was read as a decimal mark, but separates thousands.
pub(super) fn refuse_misread(points: Points) -> Result<(), Fault> {
    match points.misread() {
        Some((mark, text, line)) => {
            let mark = char::from(mark);
            Err(Problem::Thousands { mark, text }.at_line(line))
        }
        None => Ok(()),
    }
}

/// Finds columns of latencies that only increase: running totals, times, or the bins of a histogram.
#[derive(Default)]
pub(super) struct Rise {
    rows: u64,
    equal: u64,
    falls: u64,
    rises: u64,
    last_ns: u64,
    /// Sum and maximum of all rows but the last.
    sum_ns: u64,
    max_ns: u64,
    first_ns: u64,
    /// Every `stride`th latency, for the shape of the curve.
    some_ns: Vec<u64>,
    stride: u64,
}

/// Meaning of the order of the latencies in a column.
pub(super) enum Order {
    Usual,
    /// Every row is greater than the previous one.
    Rising,
    /// No row is less than the previous one, or none is greater.
    Sorted,
    /// The last row is the sum of all others.
    Total,
    /// The last row is the mean of all others.
    Mean,
    /// Every row of a short table is greater than the previous one.
    Short,
    /// Nearly every row is at least the previous one, and most are greater, as readings of a clock.
    Clock,
}

impl Rise {
    pub(super) fn push(&mut self, latency_ns: u64) {
        self.sample(latency_ns);
        if self.rows > 0 {
            self.equal += u64::from(latency_ns == self.last_ns);
            self.falls += u64::from(latency_ns < self.last_ns);
            self.rises += u64::from(latency_ns > self.last_ns);
            self.sum_ns = self.sum_ns.saturating_add(self.last_ns);
            self.max_ns = self.max_ns.max(self.last_ns);
        }
        self.rows += 1;
        self.last_ns = latency_ns;
    }

    fn sample(&mut self, latency_ns: u64) {
        const SAMPLES_MAX: usize = 1024;
        if self.rows == 0 {
            (self.first_ns, self.stride) = (latency_ns, 1);
        }
        if self.rows.is_multiple_of(self.stride) {
            self.some_ns.push(latency_ns);
        }
        if self.some_ns.len() > SAMPLES_MAX {
            let mut is_kept = false;
            self.some_ns.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.stride *= 2;
        }
    }

    /// Returns true for readings of a clock: sorted latencies have many small values and few large ones, but a clock
    /// advances evenly. Coarse latencies fall as often as they rise.
    fn is_clock(&self) -> bool {
        const RISES_PER_FALL: u64 = 10;
        if self.falls > 0 {
            return self.rises >= RISES_PER_FALL * self.falls;
        }
        let span_ns = self.last_ns.saturating_sub(self.first_ns) as f64;
        let count = self.some_ns.len() as f64;
        let is_near = |(index, time_ns): (usize, &u64)| {
            let even_ns = self.first_ns as f64 + span_ns * index as f64 / count;
            (*time_ns as f64 - even_ns).abs() <= span_ns / 10.0
        };
        self.rises >= RISES_PER_FALL && self.some_ns.iter().enumerate().all(is_near)
    }

    pub(super) fn order(&self) -> Order {
        // Ten random latencies are in ascending order in one of 10! = 3.6 million files.
        const ROWS_MIN: u64 = 10;
        /// Tables with fewer rows are accepted in any order.
        const SHORT_MIN: u64 = 4;
        /// The last value may differ from the mean of the others by 1 / `MEAN_OFF` of it, because means are rounded.
        const MEAN_OFF: u64 = 5000;
        let is_constant = self.equal + 1 >= self.rows;
        let is_sum = self.last_ns == self.sum_ns && self.last_ns / 2 > self.max_ns;
        let mean_ns = self.sum_ns / self.rows.saturating_sub(1).max(1);
        let is_mean = self.last_ns.abs_diff(mean_ns) <= mean_ns / MEAN_OFF;
        if self.rows >= ROWS_MIN && is_sum {
            Order::Total
        } else if self.rows >= ROWS_MIN && is_mean && !is_constant {
            Order::Mean
        } else if (SHORT_MIN..ROWS_MIN).contains(&self.rows) && self.falls + self.equal == 0 {
            Order::Short
        } else if self.rows >= ROWS_MIN && self.equal + self.falls > 0 && self.is_clock() {
            Order::Clock
        } else if self.rows < ROWS_MIN || self.falls > 0 && self.rises > 0 || is_constant {
            Order::Usual
        } else if self.equal + self.falls == 0 {
            Order::Rising
        } else {
            Order::Sorted
        }
    }
}

impl Order {
    /// Returns the note about a doubtful order.
    pub(super) fn note(&self) -> Option<String> {
        let note = match self {
            Order::Sorted => {
                "The latencies are sorted, so their order is not that of the writes: stalls, backlog and sustained rates \
                 are wrong."
            }
            Order::Short => {
                "Every latency is greater than the previous one, as in running totals and tables of results; if it is one of \
                 these, the figures are not those of individual writes."
            }
            Order::Mean => {
                "The last latency is the mean of all others; if it is a row of statistics, remove it: sed '$d' FILE | \
                 cardiograph analyze -."
            }
            Order::Clock => {
                "Hardly any latency is less than the previous one, as in readings of a clock and running totals; if it is one \
                 of these, the figures are wrong."
            }
            Order::Usual | Order::Rising | Order::Total => return None,
        };
        Some(note.to_owned())
    }
}

/// Returns the note about a clock that is coarse in comparison with the latencies.
pub(super) fn note_of_resolution(trace: &Trace) -> Option<String> {
    const FINE_NS: u64 = 1_000;
    let latencies = || trace.operations().map(|o| o.end_ns - o.start_ns);
    let first_ns = latencies().next()?;
    let mut step_ns = 0;
    for latency_ns in latencies() {
        step_ns = greatest_divisor(step_ns, latency_ns);
        if (1..=FINE_NS).contains(&step_ns) {
            return None;
        }
    }
    if step_ns == 0 {
        return Some("All latencies are 0; the clock was too coarse to measure them.".to_owned());
    }
    let are_equal = latencies().all(|latency_ns| latency_ns == first_ns);
    // With few different latencies, the greatest common divisor may exceed the resolution.
    const DIFFERENT_MIN: usize = 3;
    let mut different = BTreeSet::new();
    for latency_ns in latencies().filter(|latency_ns| *latency_ns > 0) {
        if different.len() < DIFFERENT_MIN {
            different.insert(latency_ns);
        }
    }
    if different.len() < DIFFERENT_MIN {
        let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
        let powers = powers.take_while(|power| step_ns % power == 0);
        step_ns = powers.last().unwrap_or(1);
    }
    let below = latencies()
        .filter(|latency_ns| *latency_ns < 10 * step_ns)
        .count();
    (!are_equal && below > trace.len() / 2).then(|| {
        let zeros = latencies().filter(|latency_ns| *latency_ns == 0).count();
        let median = match 2 * zeros > trace.len() {
            true => "; the median is below that",
            false => "",
        };
        format!(
            "All latencies are multiples of {}, which seems to be the resolution of the clock: each is uncertain by that \
             much{median}.",
            span(step_ns as f64 / 1e9)
        )
    })
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the label of a row with a total or a statistic of the rows above it, such as `Total,120,97440`.
pub(super) fn label_of_total(row: &[u8], separator: u8) -> Option<String> {
    const WORDS: &[&str] = &[
        "total",
        "totals",
        "sum",
        "avg",
        "average",
        "mean",
        "min",
        "minimum",
        "max",
        "maximum",
        "median",
        "stddev",
        "stdev",
        "std",
        "sd",
        "variance",
        "count",
        "p50",
        "p90",
        "p95",
        "p99",
        "p999",
        "percentile",
        "summe",
        "gesamt",
        "mittel",
        "mittelwert",
        "durchschnitt",
        "somme",
        "moyenne",
        "suma",
        "media",
        "totale",
    ];
    if !row
        .iter()
        .any(|byte| byte.is_ascii_alphabetic() || *byte == b'%')
    {
        return None;
    }
    let is_word = |cell: &[u8]| {
        let word = cell
            .split(|byte| !byte.is_ascii_alphanumeric())
            .find(|word| !word.is_empty());
        // Percentiles of pandas: `25%`.
        let is_share = |word: &[u8]| cell.ends_with(b"%") && word.iter().all(u8::is_ascii_digit);
        word.is_some_and(|word| {
            is_share(word)
                || WORDS
                    .iter()
                    .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        })
    };
    let mut named = cells(row, separator).filter(|cell| !cell.trim_ascii().is_empty());
    named.next().filter(|cell| is_word(cell)).map(shown)
}

/// Counts the rows that contain totals instead of writes, for a note.
#[derive(Default)]
pub(super) struct Totals {
    rows: u64,
    first: Option<(u64, String)>,
    /// True if the first column of the first row is a number; `None` before the first row.
    is_numbered: Option<bool>,
}

impl Totals {
    /// Returns true if the row is a total, and counts it.
    pub(super) fn take(&mut self, row: &[u8], line: u64, separator: u8) -> bool {
        let label = label_of_total(row, separator);
        let is_total = label.is_some();
        self.rows += u64::from(is_total);
        if let (Some(label), None) = (label, &self.first) {
            self.first = Some((line, label));
        }
        is_total
    }

    /// Refuses a row with text in the first column if the first row has a number there: the row may be a total.
    pub(super) fn check(&mut self, line: &Line<'_>, separator: u8) -> Result<(), Fault> {
        const MISSING: &[&str] = &["nan", "na", "n/a", "null", "none", "inf", "-inf", "-"];
        let cell = cells(line.text, separator).next().unwrap_or_default();
        let text = unquoted(cell);
        let is_numbered = *self.is_numbered.get_or_insert_with(|| is_number(text));
        if !is_numbered || is_number(text) {
            return Ok(());
        }
        let is_missing = |word: &&str| text.eq_ignore_ascii_case(word.as_bytes());
        // Text with digits may be a hexadecimal number or a name such as A7.
        let is_name = text.iter().any(u8::is_ascii_digit) && !text.ends_with(b"%");
        if is_name || MISSING.iter().any(is_missing) {
            return Ok(());
        }
        let text = shown(text);
        Err(Problem::Label { text }.at_line(line.number))
    }

    /// Returns the note about the rows.
    pub(super) fn note(self) -> Option<String> {
        let (line, label) = self.first?;
        let rows = if self.rows == 1 {
            "1 row"
        } else {
            &format!("{} rows", self.rows)
        };
        Some(format!(
            "Skipped {rows} with totals or statistics (line {line}: \"{label}\")."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_commas_are_distinguished_from_two_columns() {
        for (text, is_refused) in [
            ("0,812\n0,790\n85,012\n0,801\n", true),
            ("5,597\n1,002\n9,998\n", true),
            ("0,812\n0,790\n0,801\n", true),
            ("1,812\n2,790\n3,801\n", false),
            ("0,812\n812,790\n1602,85012\n", false),
            ("0,812,512\n0,790,512\n", false),
            ("5,812\n5,90\n5,85012\n", false),
        ] {
            assert_eq!(
                refuse_decimal_commas(text.as_bytes()).is_err(),
                is_refused,
                "{text}"
            );
        }
    }

    #[test]
    fn orders_of_latencies() {
        let order = |latencies: &[u64]| {
            let mut rise = Rise::default();
            latencies
                .iter()
                .for_each(|latency_ns| rise.push(*latency_ns));
            rise.order()
        };
        let rising: Vec<u64> = (1..20).map(|n| n * n).collect();
        let sorted: Vec<u64> = (1..20).map(|n| n / 3).collect();
        assert!(matches!(order(&rising), Order::Rising));
        assert!(matches!(order(&rising[..9]), Order::Short));
        assert!(matches!(order(&rising[..3]), Order::Usual));
        assert!(matches!(
            order(&[5, 7, 6, 9, 8, 6, 5, 7, 10, 7]),
            Order::Mean
        ));
        assert!(matches!(order(&sorted), Order::Sorted));
        assert!(matches!(order(&[5; 20]), Order::Usual));
        let total = [5, 7, 6, 9, 8, 6, 5, 7, 6, 59];
        assert!(matches!(order(&total), Order::Total));
        assert!(matches!(order(&total[..9]), Order::Usual));
    }

    #[test]
    fn differences_below_zero() {
        for (latency_ns, expected) in [
            (4_294_967_000_000, true),
            (4_295_000_000_000, true),
            (4_290_000_000_000, true),
            (4_200_000_000_000, false),
            ((1 << 32) * 1_000_000 - 5_000_000, true),
            (85_012_000, false),
        ] {
            assert_eq!(is_underflow(latency_ns), expected, "{latency_ns}");
        }
    }

    #[test]
    fn rows_of_totals() {
        for row in [
            "Total,120,97440",
            "avg 812",
            ",\"Average (us)\",3",
            "MAX: 85012",
            "Summe,5",
            "p99,5",
            "count,5",
        ] {
            assert!(label_of_total(row.as_bytes(), b',').is_some(), "{row}");
        }
        for row in ["1,812,512", "W,812", "0.8e3", "maxwell,5", "5,max speed"] {
            assert!(label_of_total(row.as_bytes(), b',').is_none(), "{row}");
        }
    }
}
