//! An experiment recorded once and asked again of other cards, a hundred times quicker.
//!
//! What a library and a driver ask of a card does not depend on how long it takes, unless the driver gives
//! up. So a run is recorded on
//! one card, and each operation split into what the card was asked, and the rest: bus and computer. On
//! another card of the same capacity the rest stays. What differs is a host that polls, by less than
//! its period.

use crate::experiment::{Experiment, ExperimentError, Operations};
use cardiograph_sim_card::{Controller, Profile, Seed, TimedOperation};
use cardiograph_trace::{EnergyCounter, EnergyTrace};

/// A run of an experiment as what its card was asked.
pub struct Recording {
    operations: Operations,
    calls: Vec<TimedOperation>,
}

impl Recording {
    /// Runs an experiment and records it.
    ///
    /// # Errors
    /// As [`Experiment::run`], and if it [cannot be replayed](Experiment::can_be_replayed).
    pub fn of(experiment: &Experiment, seed: u64) -> Result<Recording, ExperimentError> {
        if !experiment.can_be_replayed() {
            return Err(ExperimentError::new(
                "what a card is asked during a download depends on how long it takes: \
                 there is no recording of it",
            ));
        }
        let (operations, calls) = experiment.run_recorded(seed)?;
        Ok(Recording { operations, calls })
    }

    /// The operations of the recording itself.
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// What the card was asked, in order.
    pub fn calls(&self) -> &[TimedOperation] {
        &self.calls
    }

    /// What a card of this profile takes from its supply meanwhile.
    pub fn energy(&self, profile: &Profile, seed: u64) -> EnergyTrace {
        let mut controller = Controller::new(profile, Seed::new(seed));
        let mut counter = EnergyCounter::new(0, 0);
        let mut energy = EnergyTrace::from_ns(0.0);
        let mut now_ns = 0;
        for call in &self.calls {
            now_ns = call.start_ns.max(now_ns);
            let before = counter.read(now_ns, controller.energy(now_ns).total_pj());
            let busy_ns = controller.run_operation(now_ns, call.operation);
            now_ns += busy_ns;
            let during = counter.read(now_ns, controller.energy(now_ns).total_pj());
            before
                .iter()
                .chain(&during)
                .for_each(|step| energy.add(step));
        }
        energy
    }

    /// What the operations would have been on another card of the same capacity.
    pub fn on(&self, profile: &Profile, seed: u64) -> Operations {
        let mut controller = Controller::new(profile, Seed::new(seed));
        let mut operations = self.operations.clone();
        let mut calls = self.calls.iter().peekable();
        // How much later it is than in the recording.
        let mut late_ns = 0_i64;
        let shift = |controller: &mut Controller, call: &TimedOperation, late_ns: &mut i64| {
            let now_ns = call.start_ns.saturating_add_signed(*late_ns);
            let busy_ns = controller.run_operation(now_ns, call.operation);
            *late_ns += busy_ns as i64 - call.busy_ns as i64;
        };
        for operation in &mut operations.all {
            let (start_ns, end_ns) = (operation.start_ns, operation.end_ns);
            while let Some(call) = calls.next_if(|call| call.start_ns < start_ns) {
                shift(&mut controller, call, &mut late_ns);
            }
            operation.start_ns = start_ns.saturating_add_signed(late_ns);
            while let Some(call) = calls.next_if(|call| call.start_ns < end_ns) {
                shift(&mut controller, call, &mut late_ns);
            }
            operation.end_ns = end_ns.saturating_add_signed(late_ns);
        }
        operations
    }
}
