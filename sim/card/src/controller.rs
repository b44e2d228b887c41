//! The controller: when things happen, and what they take of the supply. It knows no data.
//!
//! ```text
//!                         power
//!                           v
//!        ┌──── command ── idle <──────────── busy over ──────────┐
//!        v                  │ no command for a while             │
//!     working               v                                    │
//!        │               asleep ── command: time to wake up ──> working
//!        └── busy over ──> idle
//! ```
//!
//! Each state draws its own current; what flash does costs energy on top. While idle the controller may
//! clean up, so that later writes need not wait.

use crate::Profile;
use crate::energy::{Energy, Meter};
use crate::nand::Work;
use crate::translation::{Translation, Written};
use cardiograph_sim_world::Seed;
use std::ops::RangeInclusive;

/// What a controller was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To take a command.
    Command,
    /// To write consecutive blocks.
    Write {
        /// The first of them.
        start: u64,
        /// How many.
        count: u64,
    },
    /// To fetch consecutive blocks.
    Read {
        /// The first of them.
        start: u64,
        /// How many.
        count: u64,
    },
    /// To note that consecutive blocks are empty.
    Forget {
        /// The first of them.
        start: u64,
        /// How many.
        count: u64,
    },
}

/// What a controller was asked, when, and for how long that kept it busy. The same asked of another
/// card shows what that would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What.
    pub ask: Ask,
    /// When, in ns.
    pub at_ns: u64,
    /// How long it was busy, in ns.
    pub busy_ns: u64,
}

/// How long the card is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// All of it, in ns.
    pub total_ns: u64,
    /// The last part of it, in which the page is programmed, in ns.
    pub program_ns: u64,
}

/// A card without data: how long each command keeps it busy.
///
/// Times are of one clock, in ns, and never go back. Nothing starts before the busy time of what came
/// before is over.
#[derive(Clone)]
pub struct Controller {
    translation: Translation,
    meter: Meter,
    command_ns: u64,
    idle_after_ns: u64,
    sleep_after_ns: u64,
    wake_ns: u64,
    /// When the last command was done with.
    ready_ns: u64,
    /// Up to when the time since then is accounted for.
    rested_ns: u64,
    awake_until_ns: u64,
    is_off: bool,
    busy_ns: u64,
    record: Option<Vec<Call>>,
}

impl Controller {
    /// A card of this profile, filled once and then cleaned up: every page holds data, the log is
    /// as used as the profile says. `seed` decides the spread of its times.
    pub fn new(profile: &Profile, seed: Seed) -> Controller {
        let (controller, power) = (profile.controller, profile.power);
        Controller {
            translation: Translation::new(profile, seed),
            meter: Meter::new(&power),
            command_ns: u64::from(controller.command_us) * 1000,
            idle_after_ns: u64::from(controller.idle_after_us) * 1000,
            sleep_after_ns: u64::from(power.sleep_after_us) * 1000,
            wake_ns: u64::from(power.wake_us) * 1000,
            ready_ns: 0,
            rested_ns: 0,
            awake_until_ns: u64::from(power.sleep_after_us) * 1000,
            is_off: false,
            busy_ns: 0,
            record: None,
        }
    }

    /// Keeps a record of all calls from now on.
    pub fn record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// The calls recorded so far; none are from now on.
    pub fn take_record(&mut self) -> Vec<Call> {
        self.record.take().unwrap_or_default()
    }

    /// Does what is asked; returns how long the card is busy, in ns.
    pub fn call(&mut self, now_ns: u64, ask: Ask) -> u64 {
        match ask {
            Ask::Command => self.command(now_ns),
            Ask::Write { start, count } => self.write(now_ns, start, count).total_ns,
            Ask::Read { start, count } => self.read(now_ns, start, count),
            Ask::Forget { start, count } => self.forget(now_ns, start, count),
        }
    }

    /// Time that the card has been busy so far, in ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// When it was, or will be, done with the last command, in ns.
    pub fn ready_ns(&self) -> u64 {
        self.ready_ns
    }

    /// Blocks that share a page.
    pub fn blocks_per_page(&self) -> u64 {
        self.translation.blocks_per_page()
    }

    /// Takes a command; returns the time until the controller works on it, in ns.
    pub fn command(&mut self, now_ns: u64) -> u64 {
        let woken_ns = self.arrive(now_ns);
        self.work(
            now_ns,
            Ask::Command,
            Work::default(),
            woken_ns + self.command_ns,
        )
    }

    /// Writes consecutive blocks, from the time they are in; returns how long the card is busy.
    pub fn write(&mut self, now_ns: u64, start: u64, count: u64) -> Busy {
        let woken_ns = self.arrive(now_ns);
        let Written { work, program_ns } = self.translation.write(start, count);
        Busy {
            total_ns: self.work(now_ns, Ask::Write { start, count }, work, woken_ns),
            program_ns,
        }
    }

    /// Writes consecutive blocks by a command of their own.
    pub fn write_by_command(&mut self, now_ns: u64, start: u64, count: u64) -> Busy {
        let command_ns = self.command(now_ns);
        let mut busy = self.write(now_ns + command_ns, start, count);
        busy.total_ns += command_ns;
        busy
    }

    /// Fetches consecutive blocks; returns how long that takes, in ns.
    pub fn read(&mut self, now_ns: u64, start: u64, count: u64) -> u64 {
        let woken_ns = self.arrive(now_ns);
        let work = self.translation.read(start, count);
        self.work(now_ns, Ask::Read { start, count }, work, woken_ns)
    }

    /// Notes that consecutive blocks are empty; returns how long that takes, in ns.
    pub fn forget(&mut self, now_ns: u64, start: u64, count: u64) -> u64 {
        let woken_ns = self.arrive(now_ns);
        let work = self.translation.forget(start, count);
        self.work(now_ns, Ask::Forget { start, count }, work, woken_ns)
    }

    /// Takes the power away.
    pub fn power_cut(&mut self, now_ns: u64) {
        self.rest(now_ns);
        self.meter.power_cut(now_ns);
        self.translation.power_cut();
        self.is_off = true;
    }

    /// Gives the power back.
    pub fn power_on(&mut self, now_ns: u64) {
        self.meter.power_on(now_ns);
        self.is_off = false;
        self.be_ready(now_ns);
    }

    /// Whether the card takes no more writes, because too many blocks have given out.
    pub fn is_worn_out(&self) -> bool {
        self.translation.is_worn_out()
    }

    /// What it has taken from the supply until this time, clean-up while idle included.
    pub fn energy(&mut self, now_ns: u64) -> Energy {
        self.rest(now_ns);
        self.meter.until(now_ns)
    }

    /// Blocks of flash erased so far.
    pub fn erases(&self) -> u64 {
        self.translation.erases()
    }

    /// Erases of the blocks that were erased least and most often.
    pub fn cycles(&self) -> RangeInclusive<u32> {
        self.translation.cycles()
    }

    /// Spare blocks that have not stood in for one that gave out.
    pub fn spares_left(&self) -> u32 {
        self.translation.spares_left()
    }

    /// Lets the time until a command pass; returns how long waking up takes, in ns.
    fn arrive(&mut self, now_ns: u64) -> u64 {
        self.rest(now_ns);
        match now_ns > self.awake_until_ns {
            true => self.wake_ns,
            false => 0,
        }
    }

    /// Lets time pass in which the host wants nothing.
    fn rest(&mut self, now_ns: u64) {
        if now_ns <= self.rested_ns || self.is_off {
            return;
        }
        let may_clean_ns = self
            .rested_ns
            .max(self.ready_ns.saturating_add(self.idle_after_ns));
        if now_ns > may_clean_ns {
            let work = self.translation.idle(now_ns - may_clean_ns);
            self.meter.clean_up(work);
            if work.ns > 0 {
                self.awake_until_ns = self.awake_until_ns.max(may_clean_ns + work.ns);
            }
        }
        let awake_ns = now_ns
            .min(self.awake_until_ns)
            .saturating_sub(self.rested_ns);
        self.meter.quiet(self.rested_ns, awake_ns, now_ns);
        self.rested_ns = now_ns;
    }

    /// Nothing is asked from now on.
    fn be_ready(&mut self, now_ns: u64) {
        (self.ready_ns, self.rested_ns) = (now_ns, now_ns);
        self.awake_until_ns = now_ns.saturating_add(self.sleep_after_ns);
    }

    fn work(&mut self, now_ns: u64, ask: Ask, work: Work, beside_ns: u64) -> u64 {
        let busy_ns = work.ns + beside_ns;
        self.busy_ns += busy_ns;
        if let Some(record) = &mut self.record {
            record.push(Call {
                ask,
                at_ns: now_ns,
                busy_ns,
            });
        }
        self.meter.busy(now_ns, busy_ns, work.nj);
        self.be_ready(now_ns.saturating_add(busy_ns));
        busy_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn profile() -> Profile {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.controller.log_blocks = 8;
        profile.controller.idle_free_blocks = 8;
        profile.power.sleep_after_us = 2_000_000;
        profile.power.wake_us = 5_000;
        profile
    }

    /// A card whose log is full of pages of many units.
    fn used() -> (Controller, u64) {
        let mut controller = Controller::new(&profile(), Seed::new(1));
        let mut now_ns = 0;
        for unit in 0..400 {
            let busy = controller.write_by_command(now_ns, unit * 512, 1);
            now_ns += busy.total_ns;
        }
        (controller, now_ns)
    }

    #[test]
    fn looking_at_the_energy_changes_nothing_and_clean_up_while_idle_is_in_it() {
        let ((mut watched, start_ns), (mut other, _)) = (used(), used());
        let end_ns = start_ns + 30 * SECOND_NS;
        let before = watched.energy(start_ns).total_pj();
        let mut last = before;
        for step in 1..=3000 {
            let total = watched.energy(start_ns + step * SECOND_NS / 100).total_pj();
            // No more than working and flash can take in 10 ms.
            assert!((last..last + 20_000_000_000).contains(&total));
            last = total;
        }
        assert!(last - before > 1_000_000_000_000, "{}", last - before);
        let total = other.energy(end_ns).total_pj();
        assert!(total.abs_diff(last) < total / 1000, "{total} and {last}");
        let busy = |card: &mut Controller| card.write_by_command(end_ns, 7, 1);
        assert_eq!(busy(&mut watched), busy(&mut other));
    }

    #[test]
    fn a_card_that_slept_wakes_up_first() {
        let mut controller = Controller::new(&profile(), Seed::new(1));
        let awake_ns = controller.command(SECOND_NS);
        let slept_ns = controller.command(10 * SECOND_NS);
        assert_eq!(slept_ns - awake_ns, 5_000_000);
    }
}
