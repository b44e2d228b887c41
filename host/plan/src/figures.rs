//! The figures of a plan, serialised as JSON for programs.

use crate::{Source, Specification};
use serde::Serialize;

/// Buffer size, risk, energy and wear of a data logger. Figures that a trace cannot provide are null.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The simulated card and board, or the file that the trace was read from.
    pub target: String,
    /// Samples per second.
    pub sample_rate_hz: f64,
    /// Bytes per sample.
    pub sample_bytes: u64,
    /// Data rate of the logger.
    pub rate_bytes_per_s: f64,
    /// Length of a logger run, from start to stop.
    pub run_s: f64,
    /// Statistics of the measured writes.
    pub measured: Measured,
    /// Payload of each write; null if the writes differ.
    pub block_bytes: Option<u64>,
    /// Way of writing for which the plan holds: the recorder's stream, or that of the trace.
    pub writing: Source,
    /// The same as a sentence.
    pub policy: String,
    /// Peak backlog of the measured writes at this rate; null if the rate is above the mean throughput.
    pub peak_backlog_bytes: Option<f64>,
    /// Smallest of the buffer sizes that at most one run in 1000 overflows, with 95 % confidence; null if there is none, or
    /// if a run is more than 1000 times as long as the measurement.
    pub recommended_buffer_bytes: Option<u64>,
    /// Buffer sizes in ascending order.
    pub buffers: Vec<BufferRow>,
    /// Distribution of the greatest backlogs; null if no distribution fits.
    pub tail: Option<TailFigures>,
    /// Energy that the card draws per day; known for simulated cards only.
    #[serde(rename = "energy_J_per_day")]
    pub energy_j_per_day: Option<f64>,
    /// Wear of the card; known for simulated cards only.
    pub wear: Option<Wear>,
    /// Time after which the card is full; known for simulated cards only.
    pub full_after_s: Option<f64>,
    /// Buffer that the SD specification asks for, whatever was measured.
    pub specification: Specification,
    /// The figures of all members, if the simulated card is an ensemble; the other figures are those of its first
    /// member.
    pub ensemble: Option<Ensemble>,
    /// Warnings about the validity of the plan.
    pub warnings: Vec<String>,
}

/// Statistics of the measured writes.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Number of writes.
    pub writes: u64,
    /// Total payload of the measured writes.
    pub payload_bytes: u64,
    /// Worst-case latency.
    pub worst_case_latency_us: f64,
    /// Payload of the run from which the risk is estimated; on simulated cards this run is longer than the
    /// measured writes.
    pub risk_payload_bytes: u64,
    /// Time in which the logger produces `risk_payload_bytes`.
    pub run_s: f64,
    /// Payload divided by the sum of the latencies.
    pub mean_throughput_bytes_per_s: f64,
    /// Rate of the logger divided by the mean throughput.
    pub utilisation_ratio: f64,
    /// Number of times that a backlog built up and drained again.
    pub busy_periods: u64,
}

/// Figures of one buffer size.
#[derive(Clone, Debug, Serialize)]
pub struct BufferRow {
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Highest constant rate that a buffer of this size sustained over the measured writes.
    pub sustained_bytes_per_s: f64,
    /// Longest stall that a buffer of this size absorbs at the logger's rate; null if the buffer does not
    /// hold a write.
    pub longest_stall_us: Option<f64>,
    /// Number of measured backlogs that exceeded this buffer size.
    pub overflows: u64,
    /// Probability that a run overflows the buffer; from 0 to 1 if a run is more than 1000 times as long as the measurement.
    pub risk: Risk,
}

/// A probability with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Risk {
    /// Most likely value; null if only a bound is known.
    pub likely: Option<f64>,
    /// Lower limit of the confidence interval.
    pub low: f64,
    /// Upper limit of the confidence interval.
    pub high: f64,
}

/// A generalised Pareto distribution above a threshold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailFigures {
    /// Threshold above which the distribution applies.
    pub threshold_bytes: f64,
    /// Number of measured backlogs above the threshold.
    pub exceedances: u64,
    /// Shape parameter of the tail: if negative, the backlog has an upper bound; if positive, the tail is heavy.
    pub shape: f64,
    /// Scale parameter of the distribution.
    pub scale_bytes: f64,
}

/// Wear of a card.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wear {
    /// Flash blocks erased per day.
    pub erases_per_day: f64,
    /// Time until all blocks, worn evenly, have reached their endurance.
    pub lifetime_years: f64,
}

/// Figures of the members of an ensemble: simulated cards that explain the published measurements of one card.
#[derive(Clone, Debug, Serialize)]
pub struct Ensemble {
    /// Number of members.
    pub members: u64,
    /// Payload divided by the sum of the latencies.
    pub mean_throughput_bytes_per_s: Spread,
    /// Worst-case latency.
    pub worst_case_latency_us: Spread,
    /// Peak backlog, over the members that sustain the rate; null if none does.
    pub peak_backlog_bytes: Option<Spread>,
    /// Median of the members' recommended buffers, the larger of the middle two; null if at least half of the members
    /// have none.
    pub recommended_buffer_bytes: Option<u64>,
    /// Largest of the members' recommended buffers; null if a member has none.
    pub largest_recommended_buffer_bytes: Option<u64>,
    /// Energy that the card draws per day, over the members that sustain the rate; null if none does.
    #[serde(rename = "energy_J_per_day")]
    pub energy_j_per_day: Option<Spread>,
    /// Time until all blocks are worn out, over the members that erase blocks at this rate; null if none does.
    pub lifetime_years: Option<Spread>,
    /// Buffer sizes in ascending order.
    pub buffers: Vec<EnsembleRow>,
}

/// Figures of one buffer size over the members of an ensemble.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EnsembleRow {
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Highest constant rate that a buffer of this size sustained.
    pub sustained_bytes_per_s: Spread,
    /// Upper limit of the 95 % confidence interval of the probability that a run overflows the buffer.
    pub risk_high: Spread,
}

/// Median and range of a figure over the members of an ensemble.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub low: f64,
    /// Greatest value.
    pub high: f64,
}

/// Length of a run, in measurements, beyond which no probability is stated.
pub const TIMES_MAX: f64 = 1000.0;

impl Plan {
    /// Returns the row of a buffer size.
    pub fn buffer(&self, buffer_bytes: u64) -> Option<&BufferRow> {
        self.buffers
            .iter()
            .find(|row| row.buffer_bytes == buffer_bytes)
    }

    /// Returns true if the rate is below the mean throughput.
    pub fn is_sustained(&self) -> bool {
        self.measured.utilisation_ratio < 1.0
    }

    /// Returns the length of a run of the logger divided by the length of the measurement.
    pub fn times_as_long(&self) -> f64 {
        self.run_s / self.measured.run_s
    }

    /// Returns true if a run is too long for a probability: more than 1000 times as long as the measurement.
    pub fn is_beyond_prediction(&self) -> bool {
        self.times_as_long() > TIMES_MAX
    }

    /// Returns the largest backlog of the measured writes; of an ensemble, that of the worst member. `None` if the card, or
    /// a member, does not sustain the rate.
    pub fn worst_backlog_bytes(&self) -> Option<f64> {
        match &self.ensemble {
            Some(all) if self.rate_bytes_per_s < all.mean_throughput_bytes_per_s.low => {
                all.peak_backlog_bytes.map(|bytes| bytes.high)
            }
            Some(_) => None,
            None => self.peak_backlog_bytes,
        }
    }

    /// Returns the upper limit of the risk with a buffer; of an ensemble, that of the worst member.
    pub fn worst_risk(&self, buffer_bytes: u64) -> Option<f64> {
        match &self.ensemble {
            Some(all) => Some(all.buffer(buffer_bytes)?.risk_high.high),
            None => Some(self.buffer(buffer_bytes)?.risk.high),
        }
    }
}
