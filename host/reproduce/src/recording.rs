//! Recording of an experiment's card commands, and its replay on other cards, about a hundred times faster.
//!
//! The commands that a library and a driver send to a card do not depend on the duration of the commands,
//! unless the driver times out. A recording therefore splits each operation of a run into the card's busy
//! times and the time of bus and host. On another card of the same capacity, the time of bus and host is the
//! same. Only for hosts that poll does it differ, by less than their polling period per wait.
//!
//! A card programs what it receives page by page, so that a recording has one write per page. On a card with pages of
//! another size, the blocks of a command are divided into its pages ([`steps`]). Two things are not divided: the transfer of a page, so
//! that a card that receives ahead (`ftl.receive_pages`) must be recorded with pages of its own or smaller ones; and reads.

use crate::experiment::{Experiment, ExperimentError, Operations};
use crate::steps::{Step, steps};
use cardiograph_sim_card::{Controller, Profile, Seed, TimedOperation};
use cardiograph_trace::{EnergyCounter, EnergyTrace};

/// A run of an experiment with the commands that its card received.
pub struct Recording {
    operations: Operations,
    calls: Vec<TimedOperation>,
    /// Number of blocks per page of the recorded card.
    page_blocks: u64,
}

impl Recording {
    /// Runs an experiment and records it.
    ///
    /// # Errors
    /// As for [`Experiment::run`], and if the experiment [cannot be replayed](Experiment::can_be_replayed).
    pub fn of(experiment: &Experiment, seed: u64) -> Result<Recording, ExperimentError> {
        let (_, profile, _) = experiment.set_up()?;
        Recording::on_card(experiment, &profile, seed)
    }

    /// Runs an experiment on another card of the same capacity and records it.
    ///
    /// # Errors
    /// As for [`Recording::of`].
    pub fn on_card(
        experiment: &Experiment,
        profile: &Profile,
        seed: u64,
    ) -> Result<Recording, ExperimentError> {
        if !experiment.can_be_replayed() {
            return Err(ExperimentError::new(
                "an experiment with a web server cannot be replayed: its card commands depend on \
                 the durations of earlier ones",
            ));
        }
        let (operations, calls) = experiment.run_recorded(profile, seed)?;
        Ok(Recording {
            operations,
            calls,
            page_blocks: profile.page_blocks(),
        })
    }

    /// Returns the operations of the recorded run.
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Returns the commands that the card received, in order.
    pub fn calls(&self) -> &[TimedOperation] {
        &self.calls
    }

    /// Returns the energy that a card of this profile draws from its supply over the recorded run.
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

    /// Returns the operations as they would have been on another card of the same capacity.
    pub fn on(&self, profile: &Profile, seed: u64) -> Operations {
        let mut controller = Controller::new(profile, Seed::new(seed));
        let mut operations = self.operations.clone();
        let pages = (self.page_blocks, profile.page_blocks());
        let mut steps = steps(&self.calls, pages).peekable();
        // Delay of the replay relative to the recording.
        let mut delay_ns = 0_i64;
        let shift = |controller: &mut Controller, step: &Step, delay_ns: &mut i64| {
            let start_ns = step.start_ns.saturating_add_signed(*delay_ns);
            let mut now_ns = start_ns;
            for operation in step.operations() {
                now_ns += controller.run_operation(now_ns, *operation);
            }
            *delay_ns += (now_ns - start_ns) as i64 - step.busy_ns as i64;
        };
        for operation in &mut operations.all {
            let (start_ns, end_ns) = (operation.start_ns, operation.end_ns);
            while let Some(step) = steps.next_if(|step| step.start_ns < start_ns) {
                shift(&mut controller, &step, &mut delay_ns);
            }
            operation.start_ns = start_ns.saturating_add_signed(delay_ns);
            while let Some(step) = steps.next_if(|step| step.start_ns < end_ns) {
                shift(&mut controller, &step, &mut delay_ns);
            }
            operation.end_ns = end_ns.saturating_add_signed(delay_ns);
        }
        operations
    }
}
