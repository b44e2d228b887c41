//! The figures of each part of a workload: what the studies' tables compare.

use crate::report::Times;
use crate::summary::us;
use cardiograph_trace::{Part, Trace};
use serde::Serialize;

/// One part of a workload, all its phases of the same label together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartFigures {
    pub(crate) label: String,
    pub(crate) count: u64,
    /// Median time of an operation, in us.
    pub(crate) median_us: f64,
    /// Payload of an operation over its median, longest and shortest time, in bytes per second.
    #[serde(rename = "rate_Bps")]
    pub(crate) rate_bps: f64,
    #[serde(rename = "rate_Bps_min")]
    pub(crate) rate_bps_min: f64,
    #[serde(rename = "rate_Bps_max")]
    pub(crate) rate_bps_max: f64,
}

/// The parts in the order they first come, without those that nothing was measured of.
pub(crate) fn of(trace: &Trace) -> Vec<PartFigures> {
    let parts = &trace.about.parts;
    if parts.is_empty() {
        return Vec::new();
    }
    let mut labels: Vec<&str> = Vec::new();
    let place_of_part: Vec<usize> = parts
        .iter()
        .map(|part| place_of(&mut labels, part))
        .collect();
    let mut times: Vec<Box<Times>> = labels.iter().map(|_| Box::default()).collect();
    for operation in trace.operations() {
        let after = parts.partition_point(|part| part.first_file <= operation.file);
        if let Some(part) = after.checked_sub(1) {
            let ns = operation.end_ns - operation.start_ns;
            times[place_of_part[part]].push(ns, operation.length_bytes);
        }
    }
    let figures = labels.iter().zip(&times);
    figures
        .filter_map(|(label, times)| figures_of(label, times))
        .collect()
}

fn place_of<'a>(labels: &mut Vec<&'a str>, part: &'a Part) -> usize {
    let known = labels.iter().position(|label| *label == part.label);
    known.unwrap_or_else(|| {
        labels.push(&part.label);
        labels.len() - 1
    })
}

fn figures_of(label: &str, times: &Times) -> Option<PartFigures> {
    let (median_ns, min_ns, max_ns) = (
        times.percentile_ns(500_000)?,
        times.min_ns()?,
        times.max_ns()?,
    );
    let payload = times.bytes() as f64 / times.count() as f64;
    // A time of 0 is one that the clock could not see.
    let rate = |ns: u64| payload * 1e9 / ns.max(1) as f64;
    Some(PartFigures {
        label: label.to_string(),
        count: times.count(),
        median_us: us(median_ns),
        rate_bps: rate(median_ns),
        rate_bps_min: rate(max_ns),
        rate_bps_max: rate(min_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_trace::{About, Operation, OperationKind};

    #[test]
    fn operations_are_told_apart_by_file_and_phases_of_one_label_are_one() {
        let part = |first_file, label: &str| Part {
            first_file,
            label: label.into(),
        };
        let mut trace = Trace::new(About {
            parts: vec![
                part(0, "small"),
                part(1, "large"),
                part(2, "small"),
                part(3, "none"),
            ],
            ..About::default()
        });
        for (i, (file, ms)) in [(0, 1), (1, 10), (1, 30), (1, 20), (2, 3)]
            .into_iter()
            .enumerate()
        {
            let start_ns = i as u64 * 1_000_000_000;
            let operation = Operation {
                kind: OperationKind::Write,
                file,
                offset_bytes: 0,
                length_bytes: 1000,
                start_ns,
                end_ns: start_ns + ms * 1_000_000,
            };
            trace.push(&operation).unwrap();
        }
        let figures = of(&trace);
        let shown: Vec<_> = figures
            .iter()
            .map(|part| (part.label.as_str(), part.count, part.rate_bps_min.round()))
            .collect();
        assert_eq!(shown, [("small", 2, 333_333.0), ("large", 3, 33_333.0)]);
    }
}
