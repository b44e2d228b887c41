//! Times that decrease too often for a clock: latencies under the name of a time, or rows out of order.

use super::columns::pointed;
use super::error::{Fault, Problem};
use super::remedy::{ANALYZE, awk};

/// A column of times in a table.
pub(super) struct Clock<'a> {
    pub name: &'a str,
    /// Index of the column.
    pub index: usize,
    pub separator: u8,
    /// Number of rows above the first time.
    pub rows_above: usize,
    /// False if this column cannot contain the latencies of the table, because they are known to be elsewhere.
    pub may_be_latency: bool,
}

/// Minimum number of rows for a decision.
const ROWS_MIN: usize = 8;
/// One decrease in this number of rows is too many for a clock that wraps, or for several joined runs.
const ROWS_PER_FALL: usize = 10;

/// Refuses times that decrease in many of the given rows, and times in days.
pub(super) fn refuse<'a>(
    clock: &Clock<'_>,
    texts: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Fault> {
    let number = |text: &[u8]| str::from_utf8(&pointed(text)).ok()?.parse::<f64>().ok();
    let times: Vec<f64> = texts.map_while(number).collect();
    if are_days(&times) {
        return Err(clock.of_days().in_file());
    }
    let falls = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    if times.len() < ROWS_MIN || falls * ROWS_PER_FALL < times.len() {
        return Ok(());
    }
    Err(Problem::Disorder {
        name: clock.name.to_owned(),
        falls,
        rows: times.len(),
        may_be_latency: clock.may_be_latency,
        sort: clock.sort(),
    }
    .in_file())
}

/// Returns true for times in days, as spreadsheets and MATLAB count them.
fn are_days(times: &[f64]) -> bool {
    // From 1990 to 2091, counted from 1900 or, in MATLAB, from the year 0.
    let is_day = |time: &f64| {
        let is_known = (32_874.0..70_000.0).contains(time) || (726_834.0..764_000.0).contains(time);
        is_known && time.fract() != 0.0
    };
    let ends = times.first().zip(times.last());
    times.len() >= ROWS_MIN
        && times.iter().all(is_day)
        && ends.is_some_and(|(first, last)| (0.0..31.0).contains(&(last - first)))
        && times.windows(2).all(|pair| pair[1] - pair[0] < 1.0 / 24.0)
}

impl Clock<'_> {
    /// Returns the problem of times in days.
    fn of_days(&self) -> Problem {
        let (at, rows) = (self.index + 1, self.rows_above);
        let program = format!("NR > {rows} {{ ${at} = sprintf(\"%.6f\", ${at} * 86400) }} 1");
        Problem::Prose {
            what: "a time in days, as in spreadsheets and MATLAB,",
            command: format!("{} --time-unit s", awk(self.separator, &program)),
        }
    }

    /// Returns a command that sorts the rows by the time.
    fn sort(&self) -> String {
        let at = self.index + 1;
        let separator = match self.separator {
            b' ' => String::new(),
            b'\t' => "-t \"$(printf '\\t')\" ".to_owned(),
            other => format!("-t '{}' ", char::from(other)),
        };
        let sort = format!("sort {separator}-k {at},{at}g");
        match self.rows_above {
            0 => format!("{sort} FILE | {ANALYZE}"),
            above => format!(
                "(head -n {above} FILE; tail -n +{} FILE | {sort}) | {ANALYZE}",
                above + 1
            ),
        }
    }
}
