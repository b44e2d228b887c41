//! What a card took from its supply, laid under its writes.

use crate::report::Report;
use crate::summary::{EnergyPower, EnergyShare, EnergySummary, thousandths};
use crate::units;
use crate::writes::Writes;
use cardiograph_trace::{About, EnergyTrace, PowerStep, Scope};

/// A longest step of so many mean ones is a gap.
const GAP_STEPS: f64 = 10.0;

/// Sorts energy by what the card did meanwhile. Steps are added in order of time, each where the one
/// before it ended.
pub struct EnergyMeter<'a> {
    /// The first step and all others, on the time axis of the trace: 0 is its start.
    energy: Option<EnergyTrace>,
    offset_ns: f64,
    trace_ns: f64,
    writes: Box<dyn Iterator<Item = Write> + 'a>,
    /// The write that is met next or just going on.
    write: Option<Write>,
    write_pj: f64,
    /// Within the trace.
    covered: Part,
    in_writes: Part,
    in_peaks: Part,
    /// Writes of which no part is missing.
    whole: WholeWrites,
}

/// One write on the time axis of the trace.
struct Write {
    start_ns: f64,
    end_ns: f64,
    bytes: u64,
    is_peak: bool,
}

#[derive(Clone, Copy, Default)]
struct Part {
    energy_pj: f64,
    time_ns: f64,
}

#[derive(Clone, Copy, Default)]
struct WholeWrites {
    count: u64,
    bytes: u64,
    energy_pj: f64,
}

/// Energy over time and what of it fell into writes.
pub struct Energy {
    /// On the time axis of the trace: 0 is its start.
    pub(crate) trace: EnergyTrace,
    trace_ns: f64,
    covered: Part,
    in_writes: Part,
    in_peaks: Part,
    whole: WholeWrites,
}

impl<'a> EnergyMeter<'a> {
    /// A meter for the writes of a report. The clock of the energy shows 0 so many ns after the start
    /// of the report's trace. Peaks are those of the report.
    pub fn over(report: &'a Report, offset_ns: i64) -> EnergyMeter<'a> {
        let Some(trace) = report.trace() else {
            return EnergyMeter::new(offset_ns as f64, 0, Box::new(std::iter::empty()));
        };
        let first_ns = trace.first_start_ns();
        let kind = Writes::of(trace).kind;
        let threshold_ns = report.detail.as_ref().map(|d| d.peaks.threshold_ns());
        let writes = trace.operations().filter(move |op| op.kind == kind);
        let writes = writes.map(move |op| Write {
            start_ns: (op.start_ns - first_ns) as f64,
            end_ns: (op.end_ns - first_ns) as f64,
            bytes: op.length_bytes,
            is_peak: threshold_ns.is_some_and(|ns| op.end_ns - op.start_ns > ns),
        });
        let trace_ns = trace.last_end_ns() - first_ns;
        EnergyMeter::new(offset_ns as f64, trace_ns, Box::new(writes))
    }

    fn new(
        offset_ns: f64,
        trace_ns: u64,
        mut writes: Box<dyn Iterator<Item = Write> + 'a>,
    ) -> EnergyMeter<'a> {
        EnergyMeter {
            energy: None,
            offset_ns,
            trace_ns: trace_ns as f64,
            write: writes.next(),
            writes,
            write_pj: 0.0,
            covered: Part::default(),
            in_writes: Part::default(),
            in_peaks: Part::default(),
            whole: WholeWrites::default(),
        }
    }

    /// Adds the step that follows.
    pub fn add(&mut self, step: &PowerStep) {
        let step = PowerStep {
            start_ns: step.start_ns + self.offset_ns,
            end_ns: step.end_ns + self.offset_ns,
            ..*step
        };
        let begin = || EnergyTrace::from_ns(step.start_ns);
        self.energy.get_or_insert_with(begin).add(&step);
        self.covered.add(&step, 0.0, self.trace_ns);
        while let Some(write) = &self.write {
            if write.start_ns >= step.end_ns {
                break;
            }
            let pj = self.in_writes.add(&step, write.start_ns, write.end_ns);
            if write.is_peak {
                self.in_peaks.add(&step, write.start_ns, write.end_ns);
            }
            self.write_pj += pj;
            if write.end_ns > step.end_ns {
                break;
            }
            self.end_write();
        }
    }

    fn end_write(&mut self) {
        let begun_ns = self.energy.as_ref().map(EnergyTrace::start_ns);
        if let (Some(write), Some(begun_ns)) = (&self.write, begun_ns)
            && write.start_ns >= begun_ns
        {
            self.whole.count += 1;
            self.whole.bytes += write.bytes;
            self.whole.energy_pj += self.write_pj;
        }
        self.write_pj = 0.0;
        self.write = self.writes.next();
    }

    /// The energy; `None` if nothing was added.
    pub fn finish(self) -> Option<Energy> {
        Some(Energy {
            trace: self.energy?,
            trace_ns: self.trace_ns,
            covered: self.covered,
            in_writes: self.in_writes,
            in_peaks: self.in_peaks,
            whole: self.whole,
        })
    }
}

impl Part {
    /// Adds what a step has between two times; returns the energy.
    fn add(&mut self, step: &PowerStep, from_ns: f64, until_ns: f64) -> f64 {
        let pj = step.energy_pj(from_ns, until_ns);
        self.energy_pj += pj;
        self.time_ns += (step.end_ns.min(until_ns) - step.start_ns.max(from_ns)).max(0.0);
        pj
    }

    fn less(self, other: Part) -> Part {
        Part {
            energy_pj: self.energy_pj - other.energy_pj,
            time_ns: self.time_ns - other.time_ns,
        }
    }

    fn power_mw(self) -> Option<f64> {
        // Less than a picosecond is what rounding leaves of nothing.
        (self.time_ns > 1e-3).then(|| thousandths(self.energy_pj / self.time_ns))
    }

    fn share_of(self, whole: Part) -> EnergyShare {
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| millionths(part / whole));
        EnergyShare {
            energy: share(self.energy_pj, whole.energy_pj),
            time: share(self.time_ns, whole.time_ns),
        }
    }
}

fn millionths(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

impl Energy {
    fn summary(&self) -> EnergySummary {
        let whole = &self.whole;
        let per = |n: u64| (n > 0).then(|| whole.energy_pj / 1e6 / n as f64);
        let has_trace = self.trace_ns > 0.0;
        EnergySummary {
            total_uj: thousandths(self.trace.total_uj()),
            duration_us: thousandths((self.trace.end_ns() - self.trace.start_ns()) / 1e3),
            bin_us: self.trace.bin_ns() as f64 / 1e3,
            power_mw: EnergyPower {
                mean: self.trace.power_mw_mean().map(thousandths),
                max: self.trace.power_mw_max().map(thousandths),
                in_writes: self.in_writes.power_mw(),
                between_writes: self.covered.less(self.in_writes).power_mw(),
            },
            per_write_uj: per(whole.count).map(thousandths),
            per_kb_uj: per(whole.bytes).map(|uj| thousandths(uj * 1e3)),
            trace_covered: has_trace.then(|| millionths(self.covered.time_ns / self.trace_ns)),
            in_writes: self.in_writes.share_of(self.covered),
            in_peaks: self.in_peaks.share_of(self.covered),
        }
    }
}

impl Report {
    /// A report of energy alone, without writes; `name` is the file it was read from.
    pub fn of_energy(name: &str) -> Report {
        let about = About {
            target: name.to_string(),
            workload: "scope".to_string(),
            ..About::default()
        };
        Report::empty(about)
    }

    /// Lays the energy that a scope saw under the writes. `offset_ns` is how long after the start of
    /// the trace the scope's clock shows 0, where that was said.
    pub fn lay_under(&mut self, energy: Energy, scope: &Scope, offset_ns: Option<i64>) {
        let summary = energy.summary();
        self.about.notes.extend(scope.notes.iter().cloned());
        self.about.notes.extend(gap_note(&energy, scope));
        if let Some(covered) = summary.trace_covered {
            let note = format!(
                "{} The scope covers {:.1} % of the trace, {} of {} {} wholly.",
                place_note(offset_ns),
                covered * 100.0,
                units::count(energy.whole.count),
                units::count(self.summary.writes),
                self.noun.plural(),
            );
            self.about.notes.push(note);
            if covered == 0.0 {
                self.warnings.push(
                    "the scope covers nothing of the trace; move it with --scope-offset"
                        .to_string(),
                );
            }
        }
        if summary.power_mw.mean.is_some_and(|mw| mw < 0.0) {
            self.warnings.push(
                "the mean power is below 0: V1 is before the shunt and V2 behind it, and here they \
                 seem to be swapped"
                    .to_string(),
            );
        }
        self.summary.energy = Some(summary);
        self.energy = Some(energy);
    }
}

fn place_note(offset_ns: Option<i64>) -> String {
    let Some(offset_ns) = offset_ns else {
        return "The scope's time 0 is taken as the start of the trace; --scope-offset says \
                otherwise."
            .to_string();
    };
    format!(
        "The scope's time 0 lies {} {} the start of the trace, as was said.",
        units::time(offset_ns.unsigned_abs() as f64 / 1e3),
        if offset_ns < 0 { "before" } else { "after" },
    )
}

fn gap_note(energy: &Energy, scope: &Scope) -> Option<String> {
    let step_ns = (energy.trace.end_ns() - energy.trace.start_ns()) / scope.samples as f64;
    (scope.step_ns_max > GAP_STEPS * step_ns).then(|| {
        format!(
            "The scope's samples have gaps: the mean step is {}, the longest {}. The power is taken \
             to last until the next sample.",
            units::time(step_ns / 1e3),
            units::time(scope.step_ns_max / 1e3),
        )
    })
}
