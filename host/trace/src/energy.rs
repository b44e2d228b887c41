//! Energy over time: the energy that a card drew from its supply.
//!
//! ```text
//!   scope: V1, V2 at a shunt ──┐
//!                              ├──> PowerStep ──> EnergyTrace, bins of equal width
//!   simulated card: pJ so far ─┘
//! ```

/// Bin width in ns, as in the study that plotted energy next to latencies; long measurements double this
/// width.
const BIN_NS: u64 = 10_000_000;

/// Maximum number of bins, enough for 43 minutes of 10 ms bins. Beyond that, pairs of bins are merged.
const BINS_MAX: usize = 1 << 18;

const PJ_PER_UJ: f64 = 1e6;

/// An interval of constant power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerStep {
    /// Start of the interval in ns, on any clock.
    pub start_ns: f64,
    /// End of the interval in ns, after its start.
    pub end_ns: f64,
    /// Power in mW. Measurement noise can make it negative.
    pub power_mw: f64,
}

impl PowerStep {
    /// Returns the energy of the step between two times in ns, in pJ; 0 if they do not overlap.
    pub fn energy_pj(&self, from_ns: f64, until_ns: f64) -> f64 {
        let overlap_ns = self.end_ns.min(until_ns) - self.start_ns.max(from_ns);
        self.power_mw * overlap_ns.max(0.0)
    }
}

/// Energy over time in bins of equal width; at most some hundred thousand bins for any duration.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyTrace {
    start_ns: f64,
    end_ns: f64,
    bin_ns: u64,
    bins_uj: Vec<f64>,
}

impl EnergyTrace {
    /// Creates an empty trace whose first bin starts at the given time in ns.
    pub fn from_ns(start_ns: f64) -> EnergyTrace {
        EnergyTrace {
            start_ns,
            end_ns: start_ns,
            bin_ns: BIN_NS,
            bins_uj: Vec::new(),
        }
    }

    /// Adds a step that begins where the previous one ended.
    pub fn add(&mut self, step: &PowerStep) {
        while self.bin_of(step.end_ns) >= BINS_MAX {
            self.widen();
        }
        let (first, last) = (self.bin_of(step.start_ns), self.bin_of(step.end_ns));
        if self.bins_uj.len() <= last {
            self.bins_uj.resize(last + 1, 0.0);
        }
        // Splits the step at bin edges, so that a rounding error in one bin is compensated in the next.
        let mut from_ns = step.start_ns;
        for bin in first..last {
            let edge_ns = self.edge_ns(bin + 1);
            self.bins_uj[bin] += step.energy_pj(from_ns, edge_ns) / PJ_PER_UJ;
            from_ns = edge_ns;
        }
        self.bins_uj[last] += step.energy_pj(from_ns, step.end_ns) / PJ_PER_UJ;
        self.end_ns = step.end_ns;
    }

    /// Returns the index of the bin that contains a time.
    fn bin_of(&self, at_ns: f64) -> usize {
        ((at_ns - self.start_ns) / self.bin_ns as f64) as usize
    }

    fn edge_ns(&self, bin: usize) -> f64 {
        self.start_ns + bin as f64 * self.bin_ns as f64
    }

    fn widen(&mut self) {
        self.bin_ns *= 2;
        let pairs = self.bins_uj.chunks(2).map(|pair| pair.iter().sum());
        self.bins_uj = pairs.collect();
    }

    /// Start of the first bin in ns.
    pub fn start_ns(&self) -> f64 {
        self.start_ns
    }

    /// End of the last step in ns, within the last bin.
    pub fn end_ns(&self) -> f64 {
        self.end_ns
    }

    /// Width of a bin in ns.
    pub fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// Energy in each bin, in uJ.
    pub fn bins_uj(&self) -> &[f64] {
        &self.bins_uj
    }

    /// Total energy of all bins, in uJ.
    pub fn total_uj(&self) -> f64 {
        self.bins_uj.iter().sum()
    }

    /// Mean power in mW; `None` if nothing was added.
    pub fn power_mw_mean(&self) -> Option<f64> {
        power_mw(self.total_uj() * PJ_PER_UJ, self.end_ns - self.start_ns)
    }

    /// Mean power over the bin with the most energy, in mW; `None` if nothing was added.
    pub fn power_mw_max(&self) -> Option<f64> {
        // A measurement shorter than one bin fills only a part of it.
        let width_ns = (self.bin_ns as f64).min(self.end_ns - self.start_ns);
        let most_uj = self.bins_uj.iter().copied().reduce(f64::max)?;
        power_mw(most_uj * PJ_PER_UJ, width_ns)
    }
}

fn power_mw(energy_pj: f64, time_ns: f64) -> Option<f64> {
    (time_ns > 0.0).then(|| energy_pj / time_ns)
}

/// Converts readings of an energy counter, such as that of a simulated card, to steps. The power is assumed to
/// be constant between two readings.
#[derive(Clone, Copy, Debug)]
pub struct EnergyCounter {
    at_ns: u64,
    total_pj: u64,
}

impl EnergyCounter {
    /// Starts with the first reading: the time in ns and the energy consumed so far, in pJ.
    pub fn new(at_ns: u64, total_pj: u64) -> EnergyCounter {
        EnergyCounter { at_ns, total_pj }
    }

    /// Returns the step from the previous reading to this one. If no time has passed, returns `None`, and
    /// the energy counts towards the next step.
    pub fn read(&mut self, at_ns: u64, total_pj: u64) -> Option<PowerStep> {
        let passed_ns = at_ns.checked_sub(self.at_ns).filter(|&ns| ns > 0)?;
        let taken_pj = total_pj.saturating_sub(self.total_pj);
        let step = PowerStep {
            start_ns: self.at_ns as f64,
            end_ns: at_ns as f64,
            power_mw: taken_pj as f64 / passed_ns as f64,
        };
        *self = EnergyCounter { at_ns, total_pj };
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(start_ms: f64, end_ms: f64, power_mw: f64) -> PowerStep {
        PowerStep {
            start_ns: start_ms * 1e6,
            end_ns: end_ms * 1e6,
            power_mw,
        }
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
        let alike = found.len() == expected.len() && found.iter().zip(expected).all(near);
        assert!(alike, "{found:?}, due is {expected:?}");
    }

    #[test]
    fn a_step_over_several_bins_is_spread_by_time() {
        let mut trace = EnergyTrace::from_ns(-5e6);
        trace.add(&step(-5.0, 20.0, 100.0));
        trace.add(&step(20.0, 30.0, 10.0));
        // 100 mW for 10 ms are 1000 uJ; the third bin has 5 ms of each power.
        assert_near(trace.bins_uj(), &[1000.0, 1000.0, 550.0, 50.0]);
        assert_near(&[trace.total_uj()], &[2600.0]);
        assert_near(&[trace.power_mw_mean().unwrap()], &[2600.0 / 35.0]);
        assert_near(&[trace.power_mw_max().unwrap()], &[100.0]);
    }

    #[test]
    fn a_trace_shorter_than_a_bin_has_the_power_of_its_own_duration() {
        let mut trace = EnergyTrace::from_ns(0.0);
        assert_eq!((trace.power_mw_mean(), trace.power_mw_max()), (None, None));
        trace.add(&step(0.0, 1.0, 50.0));
        assert_near(&[trace.power_mw_max().unwrap()], &[50.0]);
    }

    #[test]
    fn a_long_trace_has_wider_bins_and_the_same_energy() {
        let mut trace = EnergyTrace::from_ns(0.0);
        for second in 0..10_000 {
            let start_ms = f64::from(second) * 1e3;
            trace.add(&step(start_ms, start_ms + 1e3, f64::from(second % 7)));
        }
        assert_eq!(trace.bin_ns(), 4 * BIN_NS);
        assert!(trace.bins_uj().len() <= BINS_MAX);
        let due_mj: i32 = (0..10_000).map(|second| second % 7).sum();
        assert_near(&[trace.total_uj()], &[f64::from(due_mj) * 1e3]);
    }

    #[test]
    fn a_step_of_centuries_terminates() {
        let mut trace = EnergyTrace::from_ns(-9.2e18);
        trace.add(&PowerStep {
            start_ns: -9.2e18,
            end_ns: 9.2e18,
            power_mw: 1.0,
        });
        assert!(trace.bins_uj().len() <= BINS_MAX);
        assert_near(&[trace.total_uj() / 18.4e12], &[1.0]);
    }

    #[test]
    fn counter_readings_become_steps() {
        let mut counter = EnergyCounter::new(1_000_000, 7);
        assert_eq!(
            counter.read(3_000_000, 200_000_007),
            Some(step(1.0, 3.0, 100.0))
        );
        assert_eq!(counter.read(3_000_000, 200_000_008), None);
        assert_eq!(counter.read(2_000_000, 200_000_008), None);
        assert_eq!(
            counter.read(4_000_000, 201_000_007),
            Some(step(3.0, 4.0, 1.0))
        );
    }
}
