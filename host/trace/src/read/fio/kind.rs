//! Meaning of the values of a fio log: latencies in ns (fio 3) or us (fio 2), bandwidths, or operations per second. All
//! of these logs look the same; the file name and the magnitudes of the values distinguish them.

use super::split;
use crate::read::TimeUnit;
use crate::read::columns::{MICROSECOND, NANOSECOND};
use crate::read::error::{Fault, Problem};
use crate::read::guess::span;
use crate::read::number::whole;
use crate::read::recording::rows_in;

const BANDWIDTHS: &str = "a fio bandwidth log";
const OPERATIONS: &str = "a fio IOPS log";

/// Minimum number of rows from which the meaning of the values is inferred.
const ROWS_MIN: usize = 8;

/// Returns the kind of values according to the name that fio gave the log, such as `job_bw.1.log`, if they are not
/// latencies.
pub(super) fn in_name(name: &str) -> Option<&'static str> {
    let name = name.rsplit(['/', '\\']).next()?.strip_suffix(".log")?;
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if kind.ends_with("_bw") {
        Some(BANDWIDTHS)
    } else if kind.ends_with("_iops") {
        Some(OPERATIONS)
    } else {
        None
    }
}

/// Returns true if fio's name for a log, such as `job_lat.1.log`, says that it contains latencies.
pub(super) fn is_latency_name(name: &str) -> bool {
    let name = name.strip_suffix(".log").unwrap_or_default();
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    kind.ends_with("lat")
}

/// Information about a log that comes from sources other than its values.
pub(super) struct Known {
    /// The values are latencies, according to the file name.
    pub are_latencies: bool,
    /// Only fio 3 writes the column of priorities.
    pub is_fio_3: bool,
    /// The user's unit.
    pub unit: Option<TimeUnit>,
}

/// Infers the unit of the values from the first rows.
pub(super) fn unit(head: &[u8], known: &Known) -> Result<TimeUnit, Fault> {
    let is_of_fio = rows_in(head).next().is_some_and(|row| {
        let mut pairs = row.windows(2).filter(|pair| pair[0] == b',');
        pairs.all(|pair| pair[1] == b' ')
    });
    if !is_of_fio {
        return Err(Problem::FioOrTable.in_file());
    }
    let Some(rows) = Rows::of(head) else {
        return Ok(NANOSECOND);
    };
    if let Some(kind) = rows.other_than_latencies().filter(|_| !known.are_latencies) {
        return Err(Problem::NotLatencies { kind }.in_file());
    }
    let decided = match known.are_latencies || !rows.may_be_bandwidths() {
        true if known.is_fio_3 => Some(NANOSECOND),
        true => rows.decided(),
        false => None,
    };
    match (decided, known.unit) {
        (Some(unit), None) => Ok(unit),
        (None, Some(unit)) if unit == NANOSECOND || unit == MICROSECOND => Ok(unit),
        (Some(unit), Some(given)) if unit == given => Ok(unit),
        (_, Some(_)) => {
            let (format, option) = ("fio latency log", "--time-unit");
            Err(Problem::FixedFormat { format, option }.in_file())
        }
        (None, None) => {
            let median = rows.median as f64;
            let (ns, us) = (span(median / 1e9), span(median / 1e6));
            Err(Problem::FioUnit { ns, us }.in_file())
        }
    }
}

/// Rows from the beginning of a log, for comparison of values and timestamps.
struct Rows {
    /// Timestamp in ms, value, and block size of each row.
    rows: Vec<(u64, u64, u64)>,
    /// Time between the first and the last row, in ns.
    elapsed_ns: f64,
    median: u64,
    sum: f64,
    /// Fraction of the elapsed time that the rows fill if the values are bandwidths in kB/s.
    as_bandwidths: f64,
}

impl Rows {
    /// Returns the complete rows of the beginning of a file, or `None` if there are none.
    fn of(head: &[u8]) -> Option<Rows> {
        let rows = rows_in(head).map_while(|row| {
            let (texts, _) = split(row);
            let number = |index: usize| whole(texts[index]).ok();
            Some((number(0)?, number(1)?, number(3)?))
        });
        let rows: Vec<_> = rows.collect();
        let (first, last) = (rows.first()?.0, rows.last()?.0);
        let mut values: Vec<u64> = rows.iter().map(|row| row.1).collect();
        values.sort_unstable();
        let of_row = |row: &(u64, u64, u64)| row.2 as f64 * 1e6 / row.1.max(1) as f64;
        let elapsed_ns = last.checked_sub(first)? as f64 * 1e6;
        Some(Rows {
            elapsed_ns,
            as_bandwidths: rows.iter().map(of_row).sum::<f64>() / elapsed_ns,
            median: values[values.len() / 2],
            sum: values.iter().map(|value| *value as f64).sum(),
            rows,
        })
    }

    /// Returns the kind of the values if they are not latencies.
    fn other_than_latencies(&self) -> Option<&'static str> {
        // No computer copies memory faster than this, in bytes per ns.
        const RATE_MAX: f64 = 100.0;
        // More writes than this never overlap in a log of one job.
        const DEPTH_MAX: f64 = 300.0;
        if self.rows.len() < ROWS_MIN {
            return None;
        }
        if self.rows.iter().all(|row| row.1 <= 1) {
            return Some(OPERATIONS);
        }
        let bytes: f64 = self.rows.iter().map(|row| row.2 as f64).sum();
        let (slow_high, slow_low) = self.votes();
        let fills_the_time = (0.8..=1.2).contains(&self.as_bandwidths) && slow_high == 0;
        let is_bandwidth = bytes / self.sum > RATE_MAX
            || self.as_latencies() > DEPTH_MAX && self.elapsed_ns > 0.0
            || self.are_quotients() == Some(true)
            || slow_low > slow_high
            || fills_the_time && self.as_latencies() < 0.5;
        is_bandwidth.then_some(BANDWIDTHS)
    }

    /// Fraction of the elapsed time that the values fill as latencies in ns; greater than 1 if writes overlapped.
    fn as_latencies(&self) -> f64 {
        self.sum / self.elapsed_ns
    }

    /// Returns true if all high values are block sizes divided by whole ns, because this is how fio calculates
    /// bandwidths, and other high numbers are hardly ever such quotients. Returns false if a high value is not such a
    /// quotient, and `None` if there are too few high values.
    fn are_quotients(&self) -> Option<bool> {
        // Bandwidths are kB/s, or KiB/s in old versions.
        let dividends = |bytes: u64| {
            [
                bytes.saturating_mul(1_000_000),
                bytes.saturating_mul(1_000_000_000) >> 10,
            ]
        };
        // For high quotients, consecutive divisors give quotients that are at least 16 apart.
        let is_high = |value: u64, dividend: u64| {
            u128::from(value).pow(2) > 16 * u128::from(dividend) && value <= dividend
        };
        let is_quotient = |value: u64, dividend: u64| {
            dividend
                .checked_div(value)
                .is_some_and(|divisor| divisor > 0 && dividend / divisor == value)
        };
        let mut count = 0;
        for (_, value, bytes) in &self.rows {
            let dividends = dividends(*bytes);
            if dividends.iter().all(|dividend| is_high(*value, *dividend)) {
                count += 1;
                if !dividends
                    .iter()
                    .any(|dividend| is_quotient(*value, *dividend))
                {
                    return Some(false);
                }
            }
        }
        (count >= ROWS_MIN).then_some(true)
    }

    /// Returns true if the values may be bandwidths: the bandwidths of a slow card in kB/s are of the same magnitude as
    /// the latencies of fast writes.
    fn may_be_bandwidths(&self) -> bool {
        let (slow_high, slow_low) = self.votes();
        self.rows.len() >= ROWS_MIN
            && self.are_quotients().is_none()
            && slow_high <= slow_low
            && (0.01..=64.0).contains(&self.as_bandwidths)
    }

    /// Counts the pauses in the timestamps after which a value is far greater than the median, and those after which it
    /// is far less. After a long pause, a latency is high and a bandwidth low.
    fn votes(&self) -> (usize, usize) {
        const PAUSE_MS: u64 = 3;
        let mean_ms = self.elapsed_ns / 1e6 / self.rows.len() as f64;
        let pauses = self.rows.windows(2).filter(|pair| {
            let step_ms = pair[1].0.saturating_sub(pair[0].0);
            step_ms >= PAUSE_MS && step_ms as f64 > 4.0 * mean_ms
        });
        let values: Vec<u64> = pauses.map(|pair| pair[1].1).collect();
        let high = values
            .iter()
            .filter(|value| **value / 2 > self.median)
            .count();
        let low = values
            .iter()
            .filter(|value| **value < self.median / 2)
            .count();
        (high, low)
    }

    /// Returns the unit if the magnitudes leave only one possibility.
    fn decided(&self) -> Option<TimeUnit> {
        // A card rarely processes more writes than this at the same time.
        const DEPTH: f64 = 16.0;
        let tick_ns = 1e6;
        let as_us = self.sum * 1000.0 / (self.elapsed_ns + tick_ns);
        if as_us > DEPTH {
            Some(NANOSECOND)
        } else if (0.5..=1.05).contains(&as_us) || self.median < 1000 {
            // As us, the latencies fill the elapsed time; or as ns, they would be shorter than any system call.
            Some(MICROSECOND)
        } else {
            None
        }
    }
}
