//! Power cuts, enumerated.

use crate::{Clock, Seed, Stuck, World};

/// Cuts the power at every place between two polls of a scenario, before the first and after the
/// last included; returns how many cuts.
///
/// For every cut, `medium` makes what survives it, on the clock of the world to come, and `start`
/// spawns the tasks, both anew. After so many polls the world is dropped, and `check` gets the number
/// of polls, the clock and the medium, restarts and judges. What happens inside a poll is cut by the
/// medium's own fault model.
///
/// The scenario must come to rest by itself, done or waiting for ever. It is run once for each of its
/// polls: keep it short.
///
/// # Errors
/// [`Stuck::Livelock`] of the scenario.
pub fn cut_at_every_poll<M>(
    seed: Seed,
    medium: impl Fn(&Clock) -> M,
    start: impl Fn(&World, &M),
    mut check: impl FnMut(u64, Clock, M),
) -> Result<u64, Stuck> {
    let mut polls = 0;
    loop {
        let clock = Clock::default();
        let medium = medium(&clock);
        let mut world = World::on_clock(seed, clock.clone());
        start(&world, &medium);
        let done = world.run_polls(polls)?;
        drop(world);
        if done < polls {
            return Ok(polls);
        }
        check(polls, clock, medium);
        polls += 1;
    }
}
