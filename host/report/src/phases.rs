//! Throughput of each phase of a workload, as in the tables of the studies.

use crate::statistics::LatencyStatistics;
use crate::summary::us;
use cardiograph_trace::{PhaseLabel, Trace};
use serde::Serialize;

/// Statistics of all phases of a workload that have the same label.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseFigures {
    pub(crate) label: String,
    pub(crate) count: u64,
    /// Median latency of an operation, in us.
    pub(crate) median_us: f64,
    /// Payload of an operation divided by the median latency.
    pub(crate) throughput_bytes_per_s: f64,
    /// Payload of an operation divided by the worst-case latency.
    pub(crate) throughput_bytes_per_s_min: f64,
    /// Payload of an operation divided by the minimum latency.
    pub(crate) throughput_bytes_per_s_max: f64,
}

/// Returns the phases in the order of their first occurrence, without phases that have no operations.
pub(crate) fn of(trace: &Trace) -> Vec<PhaseFigures> {
    let phases = &trace.about.phases;
    if phases.is_empty() {
        return Vec::new();
    }
    let mut labels: Vec<&str> = Vec::new();
    let label_of_phase: Vec<usize> = phases
        .iter()
        .map(|phase| index_of_label(&mut labels, phase))
        .collect();
    let mut latencies: Vec<Box<LatencyStatistics>> =
        labels.iter().map(|_| Box::default()).collect();
    for operation in trace.operations() {
        let after = phases.partition_point(|phase| phase.first_file <= operation.file);
        if let Some(phase) = after.checked_sub(1) {
            let ns = operation.end_ns - operation.start_ns;
            latencies[label_of_phase[phase]].push(ns, operation.length_bytes);
        }
    }
    let figures = labels.iter().zip(&latencies);
    figures
        .filter_map(|(label, latencies)| figures_of(label, latencies))
        .collect()
}

fn index_of_label<'a>(labels: &mut Vec<&'a str>, phase: &'a PhaseLabel) -> usize {
    let known = labels.iter().position(|label| *label == phase.label);
    known.unwrap_or_else(|| {
        labels.push(&phase.label);
        labels.len() - 1
    })
}

fn figures_of(label: &str, latencies: &LatencyStatistics) -> Option<PhaseFigures> {
    let (median_ns, min_ns, max_ns) = (
        latencies.percentile_ns(500_000)?,
        latencies.min_ns()?,
        latencies.max_ns()?,
    );
    let payload = latencies.bytes() as f64 / latencies.count() as f64;
    // A latency of 0 is below the resolution of the clock.
    let throughput = |ns: u64| payload * 1e9 / ns.max(1) as f64;
    Some(PhaseFigures {
        label: label.to_string(),
        count: latencies.count(),
        median_us: us(median_ns),
        throughput_bytes_per_s: throughput(median_ns),
        throughput_bytes_per_s_min: throughput(max_ns),
        throughput_bytes_per_s_max: throughput(min_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_trace::{About, Operation, OperationKind};

    #[test]
    fn operations_belong_to_a_phase_by_file_and_equal_labels_are_merged() {
        let phase = |first_file, label: &str| PhaseLabel {
            first_file,
            label: label.into(),
        };
        let mut trace = Trace::new(About {
            phases: vec![
                phase(0, "small"),
                phase(1, "large"),
                phase(2, "small"),
                phase(3, "none"),
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
            .map(|phase| {
                (
                    phase.label.as_str(),
                    phase.count,
                    phase.throughput_bytes_per_s_min.round(),
                )
            })
            .collect();
        assert_eq!(shown, [("small", 2, 333_333.0), ("large", 3, 33_333.0)]);
    }
}
