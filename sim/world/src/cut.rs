//! Systematic power cuts: one at every point between two polls.

use crate::{Clock, Seed, Stuck, World};

/// Runs a scenario repeatedly and cuts the power at every point between two polls, including before the
/// first and after the last poll; returns the number of cuts.
///
/// For each cut, `storage` creates the state that survives the cut, on the clock of the next world, and
/// `start` spawns the tasks. After the given number of polls, the world is dropped, and `check` receives the
/// number of polls, the clock and the storage to restart from and to verify. The fault model of the storage
/// itself covers cuts within a poll.
///
/// The scenario must end on its own, with all tasks finished or waiting forever. It runs once per poll:
/// keep it short.
///
/// # Errors
/// [`Stuck::Livelock`] if the scenario does not end.
pub fn cut_at_every_poll<M>(
    seed: Seed,
    storage: impl Fn(&Clock) -> M,
    start: impl Fn(&World, &M),
    mut check: impl FnMut(u64, Clock, M),
) -> Result<u64, Stuck> {
    let mut polls = 0;
    loop {
        let clock = Clock::default();
        let storage = storage(&clock);
        let mut world = World::on_clock(seed, clock.clone());
        start(&world, &storage);
        let done = world.run_polls(polls)?;
        drop(world);
        if done < polls {
            return Ok(polls);
        }
        check(polls, clock, storage);
        polls += 1;
    }
}
