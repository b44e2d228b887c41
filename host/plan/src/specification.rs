//! Buffer that the SD specification asks for, whatever was measured.

use crate::plan::Logger;
use cardiograph_report::units;
use serde::Serialize;

/// Longest time that a card of up to 32 GB may be busy after a write, in s (SD Physical Layer Simplified Specification
/// 9.00, 4.6.2.2).
pub(crate) const BUSY_S_MAX: f64 = 0.25;
/// The same for SDXC cards.
pub(crate) const SDXC_BUSY_S_MAX: f64 = 0.5;

/// Least buffers that hold the samples of the longest stall that the specification allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Specification {
    /// For SD and SDHC cards, up to 32 GB: 250 ms.
    pub sdhc_buffer_bytes: u64,
    /// For SDXC cards: 500 ms.
    pub sdxc_buffer_bytes: u64,
}

impl Specification {
    /// Returns the buffers for a data rate in B/s.
    pub fn of(rate_bytes_per_s: f64) -> Specification {
        let bytes = |s: f64| (rate_bytes_per_s * s).ceil() as u64;
        Specification {
            sdhc_buffer_bytes: bytes(BUSY_S_MAX),
            sdxc_buffer_bytes: bytes(SDXC_BUSY_S_MAX),
        }
    }

    /// Returns both buffers as words, such as `21.5 kB (250 ms; SDXC cards: 500 ms, 43 kB)`.
    pub(crate) fn words(&self) -> String {
        format!(
            "{} (250 ms; SDXC cards: 500 ms, {})",
            units::bytes(self.sdhc_buffer_bytes as f64),
            units::bytes(self.sdxc_buffer_bytes as f64)
        )
    }
}

/// The answer for a card that was not measured.
#[derive(Clone, Debug, Serialize)]
pub struct Unmeasured {
    /// The answer as a sentence.
    pub answer: String,
    /// Samples per second.
    pub sample_rate_hz: f64,
    /// Bytes per sample.
    pub sample_bytes: u64,
    /// Data rate of the logger.
    pub rate_bytes_per_s: f64,
    /// Length of a logger run, from start to stop.
    pub run_s: f64,
    /// Buffer that the specification asks for.
    pub specification: Specification,
}

impl Unmeasured {
    /// Returns the answer for a logger.
    pub fn of(logger: &Logger) -> Unmeasured {
        let rate_bytes_per_s = logger.rate_bytes_per_s();
        let specification = Specification::of(rate_bytes_per_s);
        Unmeasured {
            answer: format!(
                "A card that was not measured needs a buffer of at least {} at {}: the longest stall that the SD specification \
                 allows.",
                specification.words(),
                units::rate(rate_bytes_per_s)
            ),
            sample_rate_hz: logger.sample_rate_hz,
            sample_bytes: logger.sample_bytes,
            rate_bytes_per_s,
            run_s: logger.run_s,
            specification,
        }
    }

    /// Returns the answer for a terminal.
    pub fn text(&self) -> String {
        format!(
            "{}\n\n  note: This holds for any way of writing in which only one write at a time is stalled, such as one file that \
             stays open. A sketch that opens and closes its file, or syncs it, waits for several writes: measure it with \
             `cardiograph bench`, and pass the trace to `plan`. Whether the card sustains {} on average is not known either.\n",
            self.answer,
            units::rate(self.rate_bytes_per_s)
        )
    }
}
