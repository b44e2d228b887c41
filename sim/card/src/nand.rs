//! A NAND flash chip: time and energy of its operations.
//!
//! ```text
//!   plane 0   plane 1      Planes work in parallel: their adjacent pages form one page for the
//!   ┌─────┐   ┌─────┐      controller, and their adjacent blocks one block.
//!   │block│   │block│
//!   └─────┘   └─────┘      Cells of 1, 2 or 3 bits hold one page per bit. The first is the fastest to
//!    pages:                program and the last the slowest; pages of a block alternate.
//!    lower, upper, lower, upper ...
//! ```
//!
//! A log block holds one bit per cell, whatever the cells could hold. Each operation takes its mean time
//! plus or minus a uniform spread; for a series of operations, the spread of the total time is drawn at
//! once, as a sum of four uniform numbers with the same variance. Erasing takes longer as a block wears
//! (Grupp et al., "Characterizing Flash Memory", 2009). Not modelled: programming becomes slightly faster
//! with wear.

use crate::flash::KINDS_MAX;
use crate::state::{Reader, Writer};
use crate::{StateError, profile};
use cardiograph_sim_world::{Random, Seed};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Range};

/// Time and energy of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) ns: u64,
    pub(crate) nj: u64,
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            ns: self.ns.saturating_add(other.ns),
            nj: self.nj.saturating_add(other.nj),
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        *self = *self + other;
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Work>>(works: I) -> Work {
        works.fold(Work::default(), Add::add)
    }
}

/// One flash chip.
#[derive(Clone)]
pub(crate) struct Nand {
    profile: profile::Flash,
    energy: profile::FlashEnergy,
    random: Random,
    /// Maximum deviation of an operation's time to either side, as a fraction of its mean.
    spread: f64,
    /// Chance of another read at the end of a block's life, in percent.
    read_retry_percent: u64,
}

/// Largest number of times that a page is read again.
const READ_RETRIES_MAX: u32 = 8;

impl Nand {
    pub(crate) fn new(profile: &profile::Profile, seed: Seed) -> Nand {
        let spread = f64::from(profile.flash.spread_percent) / 100.0;
        Nand {
            profile: profile.flash.clone(),
            energy: profile.power.flash,
            random: seed.stream("flash"),
            spread,
            read_retry_percent: profile.ftl().read_retry_percent.into(),
        }
    }

    /// Writes the state: the random stream.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        to.u64(self.random.state());
    }

    /// Replaces the state by a saved one.
    pub(crate) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        self.random = Random::from_state(from.u64()?);
        Ok(())
    }

    /// Reads a page.
    pub(crate) fn read(&mut self) -> Work {
        self.work(self.profile.read_us, self.energy.read_nj)
    }

    /// Reads a page of a block that has been erased `cycles` times. The worse its charge can be told, the more often
    /// the controller reads again with shifted thresholds: see [`Ftl::read_retry_percent`](crate::FtlProfile).
    pub(crate) fn read_worn(&mut self, cycles: u32) -> Work {
        let mut work = self.read();
        let wear_ppm = u64::from(cycles) * 1_000_000 / u64::from(self.profile.endurance_cycles);
        let retry_ppm = wear_ppm.min(1_000_000) * self.read_retry_percent / 100;
        if retry_ppm == 0 {
            return work;
        }
        for _ in 0..READ_RETRIES_MAX {
            if !self.random.chance_ppm(retry_ppm as u32) {
                break;
            }
            work += self.read();
        }
        work
    }

    /// Programs a page of a data block.
    pub(crate) fn program(&mut self, page_in_block: u32) -> Work {
        let times = &self.profile.program_us;
        let us = times[page_in_block as usize % times.len()];
        self.work(us, self.energy.program_nj)
    }

    /// Returns the longest time that programming a page of a data block can take, in ns.
    pub(crate) fn program_max_ns(&self) -> u64 {
        let longest_us = self.profile.program_us.iter().max().copied().unwrap_or(0);
        let mean_ns = u64::from(longest_us) * 1000;
        mean_ns + self.width_ns(mean_ns).div_ceil(2)
    }

    /// Programs a page of a log block, which holds one bit per cell.
    pub(crate) fn log_program(&mut self) -> Work {
        self.work(self.profile.log_program_us, self.energy.log_program_nj)
    }

    /// Erases a block that has been erased `cycles` times before.
    pub(crate) fn erase(&mut self, cycles: u32) -> Work {
        let flash = &self.profile;
        let mean_ns = u64::from(flash.erase_us) * 1000;
        let worn_ns = mean_ns * u64::from(flash.erase_wear_percent) * u64::from(cycles)
            / (100 * u64::from(flash.endurance_cycles));
        let nj = self.energy.erase_nj;
        Work {
            ns: self.operation_ns(mean_ns + worn_ns),
            nj: self.in_all_planes(nj, 1),
        }
    }

    /// Copies pages to the same positions of another data block, one after the other.
    pub(crate) fn copy(&mut self, pages: Range<u32>) -> Work {
        let count = u64::from(pages.end - pages.start);
        let times = &self.profile.program_us;
        let bits = times.len() as u32;
        // Number of pages of each kind (lower, upper) before a page, counted from the start of the block.
        let before = |page: u32, bit: u32| u64::from(page / bits + u32::from(page % bits > bit));
        let program_us: u64 = (0..bits)
            .zip(times)
            .map(|(bit, &us)| (before(pages.end, bit) - before(pages.start, bit)) * u64::from(us))
            .sum();
        let mean_ns = (count * u64::from(self.profile.read_us) + program_us) * 1000;
        let nj = self.energy.read_nj + self.energy.program_nj;
        Work {
            ns: self.total_ns(mean_ns, 2 * count),
            nj: self.in_all_planes(nj, count),
        }
    }

    /// Returns the number of kinds of pages, which is that of bits per cell.
    pub(crate) fn kinds(&self) -> u32 {
        self.profile.program_us.len() as u32
    }

    /// Copies some pages of a data block, one after the other, given the number of each kind.
    pub(crate) fn copy_kinds(&mut self, kinds: [u32; KINDS_MAX]) -> Work {
        let count = kinds.iter().copied().map(u64::from).sum();
        let times = kinds.iter().zip(&self.profile.program_us);
        let program_us: u64 = times
            .map(|(&pages, &us)| u64::from(pages) * u64::from(us))
            .sum();
        let mean_ns = (count * u64::from(self.profile.read_us) + program_us) * 1000;
        let nj = self.energy.read_nj + self.energy.program_nj;
        Work {
            ns: self.total_ns(mean_ns, 2 * count),
            nj: self.in_all_planes(nj, count),
        }
    }

    /// Takes a time that is not that of a flash operation, with the spread of one.
    pub(crate) fn commit(&mut self, us: u32) -> Work {
        Work {
            ns: self.operation_ns(u64::from(us) * 1000),
            nj: 0,
        }
    }

    /// Copies pages to a log block.
    pub(crate) fn copy_to_log(&mut self, pages: u64) -> Work {
        let each_us = self.profile.read_us + self.profile.log_program_us;
        let nj = self.energy.read_nj + self.energy.log_program_nj;
        Work {
            ns: self.total_ns(pages * u64::from(each_us) * 1000, 2 * pages),
            nj: self.in_all_planes(nj, pages),
        }
    }

    fn work(&mut self, us: u32, nj: u32) -> Work {
        Work {
            ns: self.operation_ns(u64::from(us) * 1000),
            nj: self.in_all_planes(nj, 1),
        }
    }

    fn in_all_planes(&self, nj: u32, times: u64) -> u64 {
        u64::from(nj) * u64::from(self.profile.planes) * times
    }

    fn operation_ns(&mut self, mean_ns: u64) -> u64 {
        let width_ns = self.width_ns(mean_ns);
        mean_ns - width_ns / 2 + self.random.below(width_ns + 1)
    }

    /// Returns the difference between the longest and the shortest time of an operation.
    fn width_ns(&self, mean_ns: u64) -> u64 {
        (mean_ns as f64 * self.spread * 2.0) as u64
    }

    /// Draws the total time of several operations.
    fn total_ns(&mut self, mean_ns: u64, operations: u64) -> u64 {
        if operations == 0 {
            return 0;
        }
        let bits = self.random.next_u64();
        let lanes = (0..4).map(|lane| ((bits >> (16 * lane)) & 0xFFFF) as f64);
        // The sum is from -4 to 4 and has a variance of 4/3; the variance of one operation is the squared
        // spread divided by 3.
        let sum = lanes.sum::<f64>() / 32_767.5 - 4.0;
        let share = sum * self.spread / (2.0 * (operations as f64).sqrt());
        (mean_ns as f64 * (1.0 + share)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    fn nand(seed: u64, change: impl FnOnce(&mut Profile)) -> Nand {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.flash.program_us = vec![400, 1000];
        change(&mut profile);
        Nand::new(&profile, Seed::new(seed))
    }

    #[test]
    fn times_stay_within_the_spread_and_repeat_with_the_seed() {
        let times = |seed| {
            let mut nand = nand(seed, |_| ());
            (0..1000).map(|_| nand.program(1).ns).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        let (low, high) = (950_000, 1_050_000);
        assert!(times(3).iter().all(|ns| (low..=high).contains(ns)));
        let longest_ns = nand(3, |_| ()).program_max_ns();
        assert!(times(3).iter().all(|&ns| ns <= longest_ns) && longest_ns <= high);
        let mean = times(3).iter().sum::<u64>() / 1000;
        assert!(mean.abs_diff(1_000_000) < 6_000, "{mean}");
    }

    #[test]
    fn many_operations_at_once_spread_like_many_single_ones() {
        let deviation = |totals: Vec<f64>| {
            let mean = totals.iter().sum::<f64>() / totals.len() as f64;
            let squares = totals.iter().map(|total| (total - mean).powi(2));
            (mean, (squares.sum::<f64>() / totals.len() as f64).sqrt())
        };
        let slc = |profile: &mut Profile| {
            profile.flash.program_us = vec![500];
            profile.flash.read_us = 500;
            profile.flash.spread_percent = 20;
        };
        let (mut each, mut once) = (nand(1, slc), nand(2, slc));
        let totals = (0..4000).map(|_| {
            let works = (0..16).map(|page| each.read() + each.program(page));
            works.sum::<Work>().ns as f64
        });
        let (each_mean, each_deviation) = deviation(totals.collect());
        let totals = (0..4000).map(|_| once.copy(0..16).ns as f64);
        let (once_mean, once_deviation) = deviation(totals.collect());
        assert!((each_mean / once_mean - 1.0).abs() < 0.003);
        assert!((each_deviation / once_deviation - 1.0).abs() < 0.06);
    }

    #[test]
    fn pages_of_a_cell_alternate_and_planes_add_energy_but_no_time() {
        let even = |profile: &mut Profile| profile.flash.spread_percent = 0;
        let mut mlc = nand(1, even);
        assert_eq!(mlc.program(6).ns, 400_000);
        assert_eq!(mlc.program(7).ns, 1_000_000);
        // Pages 3 to 6 are two lower and two upper pages, each of which is read first.
        assert_eq!(mlc.copy(3..7).ns, 4 * 50_000 + 2 * 1_400_000);
        let mut tlc = nand(1, |profile| {
            even(profile);
            profile.flash.program_us = vec![500, 2000, 5000];
            profile.flash.planes = 2;
        });
        assert_eq!(tlc.copy(1..4).ns, 3 * 50_000 + 7_500_000);
        assert_eq!(tlc.read().nj, 2 * mlc.read().nj);
    }

    #[test]
    fn erasing_takes_longer_as_the_block_wears() {
        let mut nand = nand(1, |profile| {
            profile.flash.spread_percent = 0;
            profile.flash.endurance_cycles = 1000;
            profile.flash.erase_wear_percent = 50;
        });
        assert_eq!(nand.erase(0).ns, 3_000_000);
        assert_eq!(nand.erase(1000).ns, 4_500_000);
    }
}
