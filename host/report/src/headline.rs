//! The headline: the result in one or two sentences.

use crate::report::{BACKLOG_BUFFER_BYTES, Noun, Report};
use crate::summary::{CadenceSummary, Summary};
use crate::units;

impl Report {
    /// Returns the summary for a program, whose notes include the warnings.
    pub fn summary_with_warnings(&self) -> Summary {
        let mut summary = self.summary.clone();
        let warnings = self.warnings.iter().map(|text| format!("Warning: {text}."));
        summary.notes.extend(warnings);
        summary
    }

    /// Returns one or two sentences on latency and sustained rate, on sample timing, or on energy.
    pub fn headline(&self) -> String {
        match (&self.summary.cadence, self.noun) {
            (Some(_), _) => self.cadence_headline(),
            (None, _) if self.summary.writes == 0 && self.summary.energy.is_some() => {
                self.energy_headline()
            }
            (None, Noun::Write) if !self.summary.sustained_rates.is_empty() => {
                format!("{} {}", self.latency_headline(), self.sustained_headline())
            }
            _ => self.latency_headline(),
        }
    }

    fn energy_headline(&self) -> String {
        let Some(energy) = &self.summary.energy else {
            return String::new();
        };
        let shown = |mw: Option<f64>| units::power(mw.unwrap_or(0.0));
        format!(
            "The card drew {} in {}: {} on average, at most {} over {}.",
            units::energy(energy.total_uj),
            units::time(energy.duration_us),
            shown(energy.power_mw.mean),
            shown(energy.power_mw.max),
            units::time(energy.bin_us),
        )
    }

    fn latency_headline(&self) -> String {
        let latency = &self.summary.latency_us;
        let noun = self.noun.singular();
        match (latency.median, latency.mean, latency.worst_case) {
            (Some(median), _, Some(worst_case)) => format!(
                "Median {noun} {}, worst case {}.",
                units::time(median),
                units::time(worst_case)
            ),
            (None, Some(mean), Some(worst_case)) => format!(
                "Mean {noun} {}, worst case {}.",
                units::time(mean),
                units::time(worst_case)
            ),
            _ => format!("No {}.", self.noun.plural()),
        }
    }

    fn sustained_headline(&self) -> String {
        let rates = &self.summary.sustained_rates;
        let Some(row) = rates
            .iter()
            .find(|row| row.buffer_bytes == BACKLOG_BUFFER_BYTES)
        else {
            return String::new();
        };
        if row.rate_bytes_per_s == 0.0 {
            let payload = self.summary.payload_bytes as f64 / self.summary.writes as f64;
            let buffer = units::binary_bytes(row.buffer_bytes);
            return match payload <= row.buffer_bytes as f64 {
                true => format!("A {buffer} buffer sustains less than 1 B/s."),
                false => format!(
                    "A {} of {} does not fit in a {buffer} buffer.",
                    self.noun.singular(),
                    units::bytes(payload),
                ),
            };
        }
        format!(
            "A {} buffer sustains {} without loss.",
            units::binary_bytes(row.buffer_bytes),
            units::rate(row.rate_bytes_per_s)
        )
    }

    fn cadence_headline(&self) -> String {
        let Some(cadence) = &self.summary.cadence else {
            return String::new();
        };
        let Some(period_us) = cadence.period_us else {
            return format!(
                "No sample period fits: a sample every {} (median). {}.",
                units::time(cadence.median_interval_us),
                late_steps(cadence)
            );
        };
        let period = units::period(period_us);
        let missing = (
            cadence.missing_samples,
            cadence.missing_samples_min,
            cadence.missing_samples_max,
        );
        match missing {
            (Some(0), ..) if cadence.late_samples == 0 => {
                format!("A sample every {period}, none missing, none late.")
            }
            (Some(0), ..) => {
                format!(
                    "A sample every {period}, none missing. {}.",
                    late_steps(cadence)
                )
            }
            (Some(count), ..) => format!(
                "A sample every {period}, {} missing. {}.",
                units::count(count),
                late_steps(cadence)
            ),
            (None, least, most) => format!(
                "A sample every {period}, {} to {} missing; the times do not show how many. {}.",
                units::count(least.unwrap_or(0)),
                units::count(most.unwrap_or(0)),
                late_steps(cadence)
            ),
        }
    }
}

/// Returns a sentence on the late steps.
fn late_steps(cadence: &CadenceSummary) -> String {
    let room = match cadence.room_for_samples {
        Some(count) if cadence.late_samples > 0 => {
            format!(", with room for {} samples", units::count(count))
        }
        _ => String::new(),
    };
    format!(
        "{} of {} steps {} late{room}; longest step: {}",
        units::count(cadence.late_samples),
        units::count(cadence.samples - 1),
        if cadence.late_samples == 1 {
            "is"
        } else {
            "are"
        },
        units::time(cadence.longest_gap_us)
    )
}
