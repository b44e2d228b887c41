//! The result in plain words.

use crate::report::{BACKLOG_RAM_BYTES, Noun, Report};
use crate::units;

impl Report {
    /// One or two sentences that say how even the writes are and what rate they carry.
    pub fn headline(&self) -> String {
        match (&self.summary.cadence, self.noun) {
            (Some(_), _) => self.cadence_headline(),
            (None, _) if self.summary.writes == 0 && self.summary.energy.is_some() => {
                self.energy_headline()
            }
            (None, Noun::Write) if !self.summary.frontier.is_empty() => {
                format!("{} {}", self.times_headline(), self.lossless_headline())
            }
            _ => self.times_headline(),
        }
    }

    fn energy_headline(&self) -> String {
        let Some(energy) = &self.summary.energy else {
            return String::new();
        };
        let shown = |mw: Option<f64>| units::power(mw.unwrap_or(0.0));
        format!(
            "The card took {} in {}: {} in the mean, at most {} over {}.",
            units::energy(energy.total_uj),
            units::time(energy.duration_us),
            shown(energy.power_mw.mean),
            shown(energy.power_mw.max),
            units::time(energy.bin_us),
        )
    }

    fn times_headline(&self) -> String {
        let times = &self.summary.write_time_us;
        let plural = self.noun.plural();
        match (times.p50, times.mean, times.max) {
            (Some(half), _, Some(max)) => format!(
                "Half of the {plural} take up to {}, the longest {}.",
                units::time(half),
                units::time(max)
            ),
            (None, Some(mean), Some(max)) => format!(
                "The {plural} take {} in the mean, the longest {}.",
                units::time(mean),
                units::time(max)
            ),
            _ => format!("There are no {plural}."),
        }
    }

    fn lossless_headline(&self) -> String {
        let frontier = &self.summary.frontier;
        let Some(point) = frontier
            .iter()
            .find(|point| point.ram_bytes == BACKLOG_RAM_BYTES)
        else {
            return String::new();
        };
        if point.lossless_bps == 0.0 {
            let payload = self.summary.bytes as f64 / self.summary.writes as f64;
            return format!(
                "A {} of {} does not fit in {} of RAM.",
                self.noun.singular(),
                units::bytes(payload),
                units::ram(point.ram_bytes)
            );
        }
        format!(
            "With {} of RAM in front, {} went through without loss.",
            units::ram(point.ram_bytes),
            units::rate(point.lossless_bps)
        )
    }

    fn cadence_headline(&self) -> String {
        let Some(cadence) = &self.summary.cadence else {
            return String::new();
        };
        let step = units::time(cadence.median_step_us);
        if cadence.late == 0 {
            return format!("A sample every {step}, none late.");
        }
        format!(
            "A sample every {step}; {} of {} steps were late, the longest {}, and {} samples are missing.",
            units::count(cadence.late),
            units::count(cadence.samples - 1),
            units::time(cadence.longest_gap_us),
            units::count(cadence.missing)
        )
    }
}
