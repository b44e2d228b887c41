//! Signs that a text of numbers means something else than it says.

use super::columns::cells;
use super::error::{Fault, Problem, shown};
use super::recording::{SAMPLE_ROWS, is_note, rows_in};

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
        is_padded |= after.len() > 1 && after[0] == b'0';
        widths.push(after.len());
        whole.push((before.len(), before));
    }
    let are_alike = widths.windows(2).all(|pair| pair[0] == pair[1]);
    // Times and indices increase.
    let increases = whole.windows(2).all(|pair| pair[0] < pair[1]);
    match rows_in(head).find(|row| !is_note(row)) {
        Some(row) if !increases && (is_padded || are_alike) => {
            let text = shown(row);
            Err(Problem::DecimalComma { text }.in_file())
        }
        _ => Ok(()),
    }
}

/// Returns true for the difference of two 32-bit counters of us or ms whose end was before its start.
pub(super) fn is_underflow(latency_ns: u64) -> bool {
    const TICKS_NS: [u64; 2] = [1_000, 1_000_000];
    // Rounding to s or ms may exceed the counter slightly.
    TICKS_NS.iter().any(|tick_ns| {
        let wrap_ns = tick_ns << 32;
        (wrap_ns - wrap_ns / 256..=wrap_ns + wrap_ns / 8192).contains(&latency_ns)
    })
}

/// Finds points that separate thousands: numbers below 1000 have none, all others have three digits after it.
#[derive(Default)]
pub(super) struct Points {
    has_small: bool,
    has_decimals: bool,
    grouped: Option<(String, u64)>,
}

impl Points {
    /// Examines the number in a line.
    pub(super) fn push(&mut self, text: &[u8], line: u64) {
        if self.has_decimals {
            return;
        }
        let is_point = |byte: &u8| matches!(byte, b'.' | b',');
        let Some(at) = text.iter().position(is_point) else {
            self.has_decimals |= text.len() > 3;
            self.has_small = true;
            return;
        };
        let is_grouped = (1..=3).contains(&at) && text[0] != b'0' && text.len() == at + 4;
        if is_grouped && text[at + 1..].iter().all(u8::is_ascii_digit) {
            self.grouped.get_or_insert_with(|| (shown(text), line));
        } else {
            self.has_decimals = true;
        }
    }

    /// Refuses the column if its points separate thousands.
    pub(super) fn finish(self) -> Result<(), Fault> {
        match self.grouped {
            Some((text, line)) if self.has_small && !self.has_decimals => {
                Err(Problem::Thousands { text }.at_line(line))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the label of a row with a total or a statistic of the rows above, such as `Total,120,97440`.
pub(super) fn label_of_total(row: &[u8], separator: u8) -> Option<String> {
    const WORDS: &[&str] = &[
        "total", "totals", "sum", "avg", "average", "mean", "min", "minimum", "max", "maximum",
        "median", "stddev", "std",
    ];
    if !row.iter().any(u8::is_ascii_alphabetic) {
        return None;
    }
    let is_word = |cell: &[u8]| {
        let word = cell
            .split(|byte| !byte.is_ascii_alphabetic())
            .find(|word| !word.is_empty());
        word.is_some_and(|word| {
            WORDS
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        })
    };
    let mut named = cells(row, separator).filter(|cell| !cell.trim_ascii().is_empty());
    named.next().filter(|cell| is_word(cell)).map(shown)
}

/// Counts rows that are no writes, for a note.
#[derive(Default)]
pub(super) struct Totals {
    rows: u64,
    first: Option<(u64, String)>,
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

    /// Returns the note about the rows.
    pub(super) fn note(self) -> Option<String> {
        let (line, label) = self.first?;
        let rows = if self.rows == 1 {
            "1 row"
        } else {
            &format!("{} rows", self.rows)
        };
        Some(format!(
            "Skipped {rows} of totals or statistics (line {line}: \"{label}\")."
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
    fn points_of_thousands() {
        for (texts, is_refused) in [
            (&["812", "790", "85.012"][..], true),
            (&["812", "1.234", "0.5"], false),
            (&["0.812", "1.234", "12"], false),
            (&["812", "1.234", "1200"], false),
            (&["1.234", "1.290"], false),
            (&["812", "790"], false),
        ] {
            let mut points = Points::default();
            (1..)
                .zip(texts)
                .for_each(|(line, text)| points.push(text.as_bytes(), line));
            assert_eq!(points.finish().is_err(), is_refused, "{texts:?}");
        }
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
        ] {
            assert!(label_of_total(row.as_bytes(), b',').is_some(), "{row}");
        }
        for row in ["1,812,512", "W,812", "0.8e3", "maxwell,5", "5,max speed"] {
            assert!(label_of_total(row.as_bytes(), b',').is_none(), "{row}");
        }
    }
}
