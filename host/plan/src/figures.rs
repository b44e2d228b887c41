//! The figures of a plan: the JSON that programs read.

use serde::Serialize;

/// What a logger needs, and what it risks. What the trace cannot tell is null.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "Bps is bytes per second, J joule")]
pub struct Plan {
    /// Version of this layout.
    pub schema: u32,
    /// The card on its board, or the file a trace was read from.
    pub target: String,
    /// Samples a second.
    pub rate_hz: f64,
    /// Bytes of a sample.
    pub line_bytes: u64,
    /// Data rate.
    pub rate_Bps: f64,
    /// How long a run of the logger is.
    pub run_s: f64,
    /// What was measured.
    pub measured: Measured,
    /// Bytes of each write; null where they differ.
    pub block_bytes: Option<u64>,
    /// How to write, in a sentence.
    pub policy: String,
    /// Most RAM that the measured writes themselves take at this rate; null if it is above the average.
    pub ram_needed_bytes: Option<f64>,
    /// Least of the sizes that one run in 1000 overflows at most, with 95 % confidence.
    pub ram_advised_bytes: Option<u64>,
    /// RAM sizes.
    pub sizes: Vec<Size>,
    /// The law that the greatest backlogs follow; null where none does.
    pub tail: Option<TailFigures>,
    /// What the card takes from its supply in a day; known of simulated cards alone.
    pub energy_J_per_day: Option<f64>,
    /// How the card wears; known of simulated cards alone.
    pub wear: Option<Wear>,
    /// What must be known before this is trusted.
    pub warnings: Vec<String>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "Bps is bytes per second")]
pub struct Measured {
    /// Number of writes.
    pub writes: u64,
    /// Payload.
    pub bytes: u64,
    /// The longest write.
    pub longest_write_s: f64,
    /// Payload of the run that backlogs are taken from: longer on simulated cards.
    pub backlog_bytes: u64,
    /// How long the logger takes to fill that.
    pub run_s: f64,
    /// Payload over the sum of the write times.
    pub average_Bps: f64,
    /// The logger's rate over that.
    pub utilisation: f64,
    /// How often the backlog built up from nothing and was gone again.
    pub busy_periods: u64,
}

/// One size of RAM.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "Bps is bytes per second")]
pub struct Size {
    /// The size.
    pub ram_bytes: u64,
    /// The highest constant rate that it carried through the measured writes.
    pub lossless_Bps: f64,
    /// The longest stall that it bears at the logger's rate; null where it does not hold a write.
    pub stall_s: Option<f64>,
    /// Backlogs that were higher, among the measured.
    pub overflows_measured: u64,
    /// Probability that a run overflows it.
    pub risk: Risk,
}

/// A probability with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Risk {
    /// The likeliest; null where nothing but a bound is known.
    pub likely: Option<f64>,
    /// Least.
    pub low: f64,
    /// Greatest.
    pub high: f64,
}

/// A generalized Pareto distribution over a threshold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailFigures {
    /// Where it begins.
    pub threshold_bytes: f64,
    /// Backlogs above it, among the measured.
    pub exceedances: u64,
    /// Its shape: below 0 there is a highest backlog, above 0 the tail is heavy.
    pub shape: f64,
    /// Its scale.
    pub scale_bytes: f64,
}

/// How a card wears.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wear {
    /// Flash blocks erased in a day.
    pub erases_per_day: f64,
    /// Time until all blocks, worn alike, have been erased as often as they bear.
    pub years: f64,
}

impl Plan {
    /// The row of a RAM size.
    pub fn size(&self, ram_bytes: u64) -> Option<&Size> {
        self.sizes.iter().find(|size| size.ram_bytes == ram_bytes)
    }

    /// Whether the medium carries this rate on average.
    pub fn is_carried(&self) -> bool {
        self.measured.utilisation < 1.0
    }

    /// How many times as long a run is as what was measured.
    pub fn times_as_long(&self) -> f64 {
        self.run_s / self.measured.run_s
    }
}
