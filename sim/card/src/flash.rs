//! NAND flash: how long pages and blocks take.

use crate::profile;
use cardiograph_sim_world::{Random, Seed};

/// Times of one flash chip, each operation a little different from the last.
pub(crate) struct Flash {
    profile: profile::Flash,
    random: Random,
    erases: u64,
}

impl Flash {
    pub(crate) fn new(profile: profile::Flash, seed: Seed) -> Flash {
        Flash {
            profile,
            random: seed.stream("flash"),
            erases: 0,
        }
    }

    pub(crate) fn read_ns(&mut self) -> u64 {
        self.spread_ns(self.profile.read_us)
    }

    /// Programs a page of a data block.
    pub(crate) fn program_ns(&mut self) -> u64 {
        self.spread_ns(self.profile.program_us)
    }

    /// Programs a page of a log block, which holds fewer bits a cell.
    pub(crate) fn log_program_ns(&mut self) -> u64 {
        self.spread_ns(self.profile.log_program_us)
    }

    pub(crate) fn erase_ns(&mut self) -> u64 {
        self.erases += 1;
        self.spread_ns(self.profile.erase_us)
    }

    /// Reads and programs so many pages, one after the other.
    pub(crate) fn copy_ns(&mut self, pages: u32) -> u64 {
        (0..pages).map(|_| self.read_ns() + self.program_ns()).sum()
    }

    /// Blocks erased so far.
    pub(crate) fn erases(&self) -> u64 {
        self.erases
    }

    fn spread_ns(&mut self, us: u32) -> u64 {
        let ns = u64::from(us) * 1000;
        let width_ns = ns * u64::from(self.profile.spread_percent) / 50;
        ns - width_ns / 2 + self.random.below(width_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn times_stay_within_the_spread_and_repeat_with_the_seed() {
        let profile = Profile::named("class10-16g").unwrap().flash;
        let times = |seed| {
            let mut flash = Flash::new(profile, Seed::new(seed));
            (0..1000).map(|_| flash.program_ns()).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        let (low, high) = (665_000, 735_000);
        assert!(times(3).iter().all(|ns| (low..=high).contains(ns)));
        let mean = times(3).iter().sum::<u64>() / 1000;
        assert!(mean.abs_diff(700_000) < 5_000, "{mean}");
    }
}
