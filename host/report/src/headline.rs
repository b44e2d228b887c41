//! The headline: the result in one or two sentences.

use crate::report::{Noun, Report};
use crate::runs;
use crate::summary::{CadenceSummary, Input, Summary};
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
            _ if self.summary.input == Input::Summary => self.longest_write_headline(),
            _ => self.latency_headline(),
        }
    }

    /// Returns the buffer that the longest write of a summary needs. It is no sustained rate: the summary does not show how
    /// soon the next long write follows.
    fn longest_write_headline(&self) -> String {
        // A data logger with 860 samples of 100 B per second.
        const RATE_BYTES_PER_S: f64 = 86_000.0;
        let buffer = |us: f64| units::bytes(RATE_BYTES_PER_S * us / 1e6);
        let rate = units::rate(RATE_BYTES_PER_S);
        let bound = format!(
            "The SD specification allows 250 ms ({}), and 500 ms for SDXC ({}).",
            buffer(250e3),
            buffer(500e3)
        );
        let summary = &self.summary;
        match summary.latency_us.worst_case {
            Some(us) => format!(
                "The longest {} {}: at {rate}, that alone needs a buffer of {}, and a longer run will see longer ones. {bound}",
                match summary.writes {
                    0 => "write took".to_owned(),
                    writes => format!("of {} writes took", units::count(writes)),
                },
                units::time(us),
                buffer(us)
            ),
            None => format!(
                "The longest write is not stated, so no buffer follows from it at {rate}. {bound}"
            ),
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
        let buffer_bytes = self.answer_buffer_bytes;
        let Some(rate_bytes_per_s) = self.sustained_bytes_per_s(buffer_bytes) else {
            return String::new();
        };
        if rate_bytes_per_s == 0.0 {
            let payload = self.summary.payload_bytes as f64 / self.summary.writes as f64;
            let buffer = units::binary_bytes(buffer_bytes);
            return match payload <= buffer_bytes as f64 {
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
            units::binary_bytes(buffer_bytes),
            units::rate(rate_bytes_per_s)
        )
    }

    fn cadence_headline(&self) -> String {
        let Some(cadence) = &self.summary.cadence else {
            return String::new();
        };
        let start = match cadence.runs.len() {
            0 => "A".to_owned(),
            runs => format!(
                "{runs} runs of {} samples in total: a",
                units::count(cadence.samples)
            ),
        };
        let mut pairs = cadence.runs.windows(2);
        let is_alike =
            pairs.all(|pair| is_near(pair[0].median_interval_us, pair[1].median_interval_us));
        let missing = missing(cadence);
        if !is_alike {
            let missing = missing.map_or(String::new(), |text| format!(", {text}"));
            return format!(
                "{} sources or runs at different rates{missing}. {}.",
                cadence.runs.len(),
                different_runs(cadence)
            );
        }
        let Some(missing) = missing else {
            return format!(
                "No sample period fits: {} sample every {} (median). {}.",
                start.replace('A', "a"),
                units::time(cadence.median_interval_us),
                late_steps(cadence)
            );
        };
        let period = match cadence.period_us {
            Some(us) => units::period(us),
            None => units::time(cadence.median_interval_us),
        };
        match cadence.late_samples {
            0 => format!("{start} sample every {period}, {missing}, none late."),
            _ => format!(
                "{start} sample every {period}, {missing}. {}.",
                late_steps(cadence)
            ),
        }
    }
}

/// Returns the number of missing samples in words, or `None` if neither times nor numbers show it.
fn missing(cadence: &CadenceSummary) -> Option<String> {
    let count = match cadence.missing_samples {
        Some(0) => "none".to_owned(),
        Some(count) => units::count(count),
        None => {
            let (least, most) = (cadence.missing_samples_min?, cadence.missing_samples_max?);
            return Some(format!(
                "{} to {} missing; the times do not show how many",
                units::count(least),
                units::count(most)
            ));
        }
    };
    Some(match &cadence.sequence {
        Some(sequence) => format!(
            "{count} missing by the numbers in column \"{}\"",
            sequence.column
        ),
        None => format!("{count} missing"),
    })
}

/// Returns the figures of the first runs in words.
fn different_runs(cadence: &CadenceSummary) -> String {
    const RUNS_MAX: usize = 4;
    let runs = cadence.runs.iter().take(RUNS_MAX);
    let mut words: Vec<String> = runs
        .map(|run| format!("{}: {}", run.label, runs::in_words(run)))
        .collect();
    if cadence.runs.len() > RUNS_MAX {
        words.push(format!("{} more", cadence.runs.len() - RUNS_MAX));
    }
    words.join("; ")
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
        units::count(cadence.samples - cadence.runs.len().max(1) as u64),
        if cadence.late_samples == 1 {
            "is"
        } else {
            "are"
        },
        units::time(cadence.longest_gap_us)
    )
}

/// Returns true for intervals that differ by at most a tenth.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= a.max(b) / 10.0
}
