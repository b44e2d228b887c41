//! Adds the energy that a scope measured to a report.

use crate::energy::{Energy, EnergyMeter};
use crate::report::Report;
use crate::units;
use cardiograph_trace::{About, Scope};

/// The scope's recording has gaps if its longest step exceeds this number of mean intervals.
const GAP_STEPS: f64 = 10.0;

impl Report {
    /// Creates a report on energy alone, without writes; `name` is the file that the energy was read from.
    pub fn of_energy(name: &str) -> Report {
        let about = About {
            target: name.to_string(),
            workload: "scope".to_string(),
            ..About::default()
        };
        Report::empty(about)
    }

    /// Creates a meter for the writes and stalls of this report. `offset_ns` is the time after the start of the
    /// trace at which the clock of the energy shows 0.
    pub fn energy_meter(&self, offset_ns: i64) -> EnergyMeter<'_> {
        let stalls = self
            .detail
            .as_ref()
            .and_then(|detail| detail.stalls.as_ref());
        let threshold_ns = stalls.map(|stalls| stalls.threshold_ns());
        match self.trace() {
            Some(trace) => EnergyMeter::of_writes(trace, threshold_ns, offset_ns),
            None => EnergyMeter::without_writes(offset_ns),
        }
    }

    /// Adds the energy that a scope measured. `offset_ns` is the time after the start of the trace at which the
    /// scope's clock shows 0, if the user gave it.
    pub fn add_energy(&mut self, energy: Energy, scope: &Scope, offset_ns: Option<i64>) {
        let summary = energy.summary();
        self.about.notes.extend(scope.notes.iter().cloned());
        self.about.notes.extend(gap_note(&energy, scope));
        if let Some(covered) = summary.trace_covered_ratio {
            let note = format!(
                "{} The scope's recording covers {:.1} % of the trace, including {} of {} {} completely.",
                offset_note(offset_ns),
                covered * 100.0,
                units::count(energy.covered_writes()),
                units::count(self.summary.writes),
                self.noun.plural(),
            );
            self.about.notes.push(note);
            if covered == 0.0 {
                self.warnings.push(
                    "the scope covers no part of the trace; shift it with --scope-offset"
                        .to_string(),
                );
            }
        }
        self.summary.notes.clone_from(&self.about.notes);
        if summary.power_mw.mean.is_some_and(|mw| mw < 0.0) {
            self.warnings.push(
                "the mean power is negative; V1 must be before the shunt and V2 after it, and they \
                 appear to be swapped"
                    .to_string(),
            );
        }
        self.summary.energy = Some(summary);
        self.energy = Some(energy);
    }
}

fn offset_note(offset_ns: Option<i64>) -> String {
    let Some(offset_ns) = offset_ns else {
        return "The scope's time 0 is aligned with the start of the trace; use --scope-offset to shift it."
            .to_string();
    };
    format!(
        "The scope's time 0 is {} {} the start of the trace, as given by --scope-offset.",
        units::time(offset_ns.unsigned_abs() as f64 / 1e3),
        if offset_ns < 0 { "before" } else { "after" },
    )
}

fn gap_note(energy: &Energy, scope: &Scope) -> Option<String> {
    let step_ns = energy.duration_ns() / scope.samples as f64;
    (scope.step_ns_max > GAP_STEPS * step_ns).then(|| {
        format!(
            "The scope's recording has gaps: its samples are {} apart on average, but up to {}. The \
             power is assumed to be constant from each sample to the next.",
            units::time(step_ns / 1e3),
            units::time(scope.step_ns_max / 1e3),
        )
    })
}
