//! Energy that a card drew, assigned to its writes.

use crate::summary::{EnergyPower, EnergyShare, EnergySummary, thousandths};
use crate::writes::Writes;
use cardiograph_trace::{EnergyTrace, PowerStep, Trace};

/// Assigns energy to writes and to the time between them. Steps are added in chronological order, each beginning
/// where the previous one ended.
pub struct EnergyMeter<'a> {
    /// Energy of all steps so far, on the time axis of the trace: 0 is the start of the trace.
    energy: Option<EnergyTrace>,
    offset_ns: f64,
    trace_ns: f64,
    writes: Box<dyn Iterator<Item = Write> + 'a>,
    /// The write in progress at the end of the last step, or the next write.
    write: Option<Write>,
    write_pj: f64,
    /// Energy and time of the steps within the trace.
    covered: Portion,
    in_writes: Portion,
    in_stalls: Portion,
    /// Writes that the steps cover completely.
    whole: WholeWrites,
}

/// One write on the time axis of the trace.
struct Write {
    start_ns: f64,
    end_ns: f64,
    bytes: u64,
    is_stall: bool,
}

#[derive(Clone, Copy, Default)]
struct Portion {
    energy_pj: f64,
    time_ns: f64,
}

#[derive(Clone, Copy, Default)]
struct WholeWrites {
    count: u64,
    bytes: u64,
    energy_pj: f64,
}

/// Energy over time, and the portions that belong to writes.
pub struct Energy {
    /// Energy on the time axis of the trace: 0 is the start of the trace.
    pub(crate) trace: EnergyTrace,
    trace_ns: f64,
    covered: Portion,
    in_writes: Portion,
    in_stalls: Portion,
    whole: WholeWrites,
}

impl<'a> EnergyMeter<'a> {
    /// Creates a meter for energy without a trace.
    pub(crate) fn without_writes(offset_ns: i64) -> EnergyMeter<'a> {
        EnergyMeter::new(offset_ns as f64, 0, Box::new(std::iter::empty()))
    }

    /// Creates a meter for the writes of a trace. `offset_ns` is the time after the start of the trace at which the
    /// clock of the steps shows 0. Writes longer than `threshold_ns` are stalls.
    pub(crate) fn of_writes(
        trace: &'a Trace,
        threshold_ns: Option<u64>,
        offset_ns: i64,
    ) -> EnergyMeter<'a> {
        let first_ns = trace.first_start_ns();
        let kind = Writes::of(trace).kind;
        let writes = trace.operations().filter(move |op| op.kind == kind);
        let writes = writes.map(move |op| Write {
            start_ns: (op.start_ns - first_ns) as f64,
            end_ns: (op.end_ns - first_ns) as f64,
            bytes: op.length_bytes,
            is_stall: threshold_ns.is_some_and(|ns| op.end_ns - op.start_ns > ns),
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
            covered: Portion::default(),
            in_writes: Portion::default(),
            in_stalls: Portion::default(),
            whole: WholeWrites::default(),
        }
    }

    /// Adds the next step.
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
            if write.is_stall {
                self.in_stalls.add(&step, write.start_ns, write.end_ns);
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

    /// Returns the energy, or `None` if no step was added.
    pub fn finish(self) -> Option<Energy> {
        Some(Energy {
            trace: self.energy?,
            trace_ns: self.trace_ns,
            covered: self.covered,
            in_writes: self.in_writes,
            in_stalls: self.in_stalls,
            whole: self.whole,
        })
    }
}

impl Portion {
    /// Adds the portion of a step between two times; returns its energy.
    fn add(&mut self, step: &PowerStep, from_ns: f64, until_ns: f64) -> f64 {
        let pj = step.energy_pj(from_ns, until_ns);
        self.energy_pj += pj;
        self.time_ns += (step.end_ns.min(until_ns) - step.start_ns.max(from_ns)).max(0.0);
        pj
    }

    fn less(self, other: Portion) -> Portion {
        Portion {
            energy_pj: self.energy_pj - other.energy_pj,
            time_ns: self.time_ns - other.time_ns,
        }
    }

    fn power_mw(self) -> Option<f64> {
        // A time of less than a picosecond is a rounding error.
        (self.time_ns > 1e-3).then(|| thousandths(self.energy_pj / self.time_ns))
    }

    fn share_of(self, whole: Portion) -> EnergyShare {
        let share = |portion: f64, whole: f64| (whole > 0.0).then(|| millionths(portion / whole));
        EnergyShare {
            energy_ratio: share(self.energy_pj, whole.energy_pj),
            time_ratio: share(self.time_ns, whole.time_ns),
        }
    }
}

fn millionths(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

impl Energy {
    /// Number of writes that the steps cover completely.
    pub(crate) fn covered_writes(&self) -> u64 {
        self.whole.count
    }

    /// Duration of all steps in ns.
    pub(crate) fn duration_ns(&self) -> f64 {
        self.trace.end_ns() - self.trace.start_ns()
    }

    pub(crate) fn summary(&self) -> EnergySummary {
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
            trace_covered_ratio: has_trace
                .then(|| millionths(self.covered.time_ns / self.trace_ns)),
            in_writes: self.in_writes.share_of(self.covered),
            in_stalls: self.in_stalls.share_of(self.covered),
        }
    }
}
