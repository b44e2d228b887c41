//! Random walks: a quick sample of the worlds that the search visits. A busy stretch of events and faults is followed by
//! a calm one, which has to end with nothing left to do.

use super::steps::{Event, Step, Steps};
use super::world::World;
use super::{Config, check};
use crate::plan::Phase;
use cardiograph_sim_world::{Random, Seed};
use std::string::String;

/// Steps of a busy and of a calm stretch.
const BUSY: usize = 60;
const CALM: usize = 150;
/// Subsets of the free predicates that are tried before each step.
const SUBSETS: usize = 6;

/// Walks through a model; panics with the steps to a violation.
pub(super) fn walk<const N: usize>(config: &Config<N>, stretches: u64) {
    for stretch in 0..stretches {
        let mut walk = Walk {
            config,
            world: World::new(config),
            random: Seed::new(stretch).stream(config.name),
            path: String::new(),
        };
        let result = walk.stretch();
        let violation = result.err().unwrap_or_default();
        assert!(
            violation.is_empty(),
            "{}{violation}\n{:?}",
            walk.path,
            walk.world
        );
    }
}

struct Walk<'a, const N: usize> {
    config: &'a Config<N>,
    world: World<N>,
    random: Random,
    path: String,
}

impl<const N: usize> Walk<'_, N> {
    fn stretch(&mut self) -> Result<(), String> {
        while self.world.plan.phase == Phase::Recording {
            for _ in 0..BUSY {
                self.step(|step, random| match step {
                    Step::Event(Event::Stop) => random.below(40) == 0,
                    Step::Act { is_fault: true, .. } => random.below(40) == 0,
                    Step::Event(_) => random.below(3) == 0,
                    _ => true,
                })?;
            }
            for _ in 0..CALM {
                self.step(|step, _| step.is_internal())?;
            }
            let settled = check::settled(self.config, &self.world, false);
            settled.map_err(|violation| std::format!("=> {violation}"))?;
            let serves_read = || Steps::new(self.config, self.world).serves_read();
            let is_over = self.world.plan.phase == Phase::Ended;
            if self.config.has_reads && !is_over && !serves_read() {
                return Err("=> a read waits forever".into());
            }
        }
        Ok(())
    }

    /// Makes one of the steps that may be made.
    fn step(&mut self, mut may_make: impl FnMut(&Step, &mut Random) -> bool) -> Result<(), String> {
        let random = &mut self.random;
        let chosen: [u32; SUBSETS] = core::array::from_fn(|_| random.next_u64() as u32);
        let subsets = |free| chosen.into_iter().map(move |subset| subset & free);
        let steps = Steps::with(self.config, self.world, subsets);
        let mut found = steps
            .map_err(|(step, violation)| std::format!("  {step}\n=> {violation}"))?
            .found;
        found.retain(|(step, _)| may_make(step, &mut self.random));
        if !found.is_empty() {
            let (step, next) = found[self.random.below(found.len() as u64) as usize];
            self.path += &std::format!("  {step}\n");
            self.world = next;
        }
        Ok(())
    }
}
