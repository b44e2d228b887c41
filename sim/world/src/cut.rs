//! Power cuts, enumerated.

use crate::{Seed, Stuck, World};

/// Cuts the power at every place between two polls of a scenario, before the first and after the
/// last included; returns how many cuts.
///
/// For every cut, `medium` makes what survives it and `start` spawns the tasks, both anew. After so
/// many polls the world is dropped, and `check` gets the number of polls and the medium, restarts on
/// it and judges. What happens inside a poll is cut by the medium's own fault model.
///
/// The scenario must come to rest by itself, done or waiting for ever.
///
/// # Errors
/// [`Stuck::Livelock`] of the scenario.
pub fn cut_at_every_poll<M>(
    seed: Seed,
    medium: impl Fn() -> M,
    start: impl Fn(&World, &M),
    mut check: impl FnMut(u64, M),
) -> Result<u64, Stuck> {
    let mut polls = 0;
    loop {
        let medium = medium();
        let mut world = World::new(seed);
        start(&world, &medium);
        let done = world.run_polls(polls)?;
        drop(world);
        if done < polls {
            return Ok(polls);
        }
        check(polls, medium);
        polls += 1;
    }
}
