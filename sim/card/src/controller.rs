//! The controller: busy times, power states and energy. It stores no data.
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
//! Each state draws its own current; flash operations take additional energy. While idle, the controller may
//! run garbage collection so that later writes do not have to wait for it.

use crate::energy::{Energy, Meter};
use crate::flash::Flash;
use crate::nand::Work;
use crate::received::Received;
use crate::state::{Reader, Writer};
use crate::translation::Written;
use crate::{Profile, StateError};
use cardiograph_sim_world::Seed;
use std::ops::RangeInclusive;

/// An operation of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Accept a command.
    Command,
    /// Write consecutive blocks.
    Write {
        /// Number of the first block.
        start: u64,
        /// Number of blocks.
        count: u64,
    },
    /// Fetch consecutive blocks.
    Read {
        /// Number of the first block.
        start: u64,
        /// Number of blocks.
        count: u64,
    },
    /// Mark consecutive blocks as empty.
    Discard {
        /// Number of the first block.
        start: u64,
        /// Number of blocks.
        count: u64,
    },
    /// Wait until the pages received are in flash.
    Settle,
}

/// An operation in a trace, with its start and busy time. Replaying a trace on another card shows how that
/// card would have performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOperation {
    /// Operation that was performed.
    pub operation: Operation,
    /// Start of the operation, in ns.
    pub start_ns: u64,
    /// Busy time after the start, in ns.
    pub busy_ns: u64,
}

/// Busy time of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Total busy time, in ns.
    pub total_ns: u64,
    /// Time for which the controller programs the page, in ns: the last phase of the busy time, unless the card
    /// receives while it programs.
    pub program_ns: u64,
    /// Time after the busy time until the page is in flash, in ns; 0 unless the card receives while it programs.
    pub behind_ns: u64,
}

/// A card without data: the busy time of each command.
///
/// All times are in ns of one clock and must not decrease. The caller must not start a command before the
/// busy time of the previous one is over.
#[derive(Clone)]
pub struct Controller {
    flash: Flash,
    meter: Meter,
    command_ns: u64,
    idle_after_ns: u64,
    sleep_after_ns: u64,
    wake_ns: u64,
    received: Received,
    /// Time at which the last command is complete, in ns.
    ready_ns: u64,
    /// Time up to which idle time has been accounted for.
    accounted_ns: u64,
    awake_until_ns: u64,
    is_off: bool,
    busy_ns: u64,
    trace: Option<Vec<TimedOperation>>,
}

impl Controller {
    /// Creates the controller of a used card. `seed` determines how full the card and its log are, and the random
    /// spread of operation times. With `model = 1`, every page holds data, and the log is as full as the
    /// profile specifies.
    pub fn new(profile: &Profile, seed: Seed) -> Controller {
        let (controller, power) = (profile.controller, profile.power);
        Controller {
            flash: Flash::new(profile, seed),
            meter: Meter::new(&power),
            command_ns: u64::from(controller.command_us) * 1000,
            idle_after_ns: u64::from(controller.idle_after_us) * 1000,
            sleep_after_ns: u64::from(power.sleep_after_us) * 1000,
            wake_ns: u64::from(power.wake_us) * 1000,
            received: Received::new(profile.ftl().receive_pages),
            ready_ns: 0,
            accounted_ns: 0,
            awake_until_ns: u64::from(power.sleep_after_us) * 1000,
            is_off: false,
            busy_ns: 0,
            trace: None,
        }
    }

    /// Writes the state of a controller without power.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        self.flash.write_state(to);
    }

    /// Replaces the state of a new controller by a saved one.
    pub(crate) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        self.flash.read_state(from)
    }

    /// Starts a trace of all operations.
    pub fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// Ends the trace and returns its operations.
    pub fn take_trace(&mut self) -> Vec<TimedOperation> {
        self.trace.take().unwrap_or_default()
    }

    /// Performs an operation; returns how long the card is busy, in ns.
    pub fn run_operation(&mut self, now_ns: u64, operation: Operation) -> u64 {
        match operation {
            Operation::Command => self.command(now_ns),
            Operation::Write { start, count } => self.write(now_ns, start, count).total_ns,
            Operation::Read { start, count } => self.read(now_ns, start, count),
            Operation::Discard { start, count } => self.discard(now_ns, start, count),
            Operation::Settle => self.settle(now_ns),
        }
    }

    /// Returns the total busy time so far, in ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Returns the end of the last command, in ns; may be in the future.
    pub fn ready_ns(&self) -> u64 {
        self.ready_ns
    }

    /// Returns the number of blocks per page.
    pub fn blocks_per_page(&self) -> u64 {
        self.flash.blocks_per_page()
    }

    /// Accepts a command; returns how long this takes, including the time to wake up, in ns.
    pub fn command(&mut self, now_ns: u64) -> u64 {
        let wake_up_ns = self.advance_to_command(now_ns);
        let unsettled_ns = self.received.take(now_ns);
        self.flash.begin_command();
        self.work(
            now_ns,
            Operation::Command,
            Work::default(),
            unsettled_ns + wake_up_ns + self.command_ns,
        )
    }

    /// Writes consecutive blocks that have been received; returns how long the card is busy, in ns. If the card receives
    /// while it programs, the blocks are in flash only when it has [settled](Controller::settle).
    pub fn write(&mut self, now_ns: u64, start: u64, count: u64) -> Busy {
        let wake_up_ns = self.advance_to_command(now_ns);
        let Written { work, program_ns } = self.flash.write(start, count);
        let needed_ns = wake_up_ns + work.ns;
        let (busy_ns, behind_ns) = self.received.push(now_ns, needed_ns);
        let operation = Operation::Write { start, count };
        self.work_visibly(now_ns, operation, work, busy_ns);
        Busy {
            total_ns: busy_ns,
            program_ns,
            behind_ns,
        }
    }

    /// Waits until the pages received are in flash, as at the end of a command; returns how long the card is busy, in ns.
    pub fn settle(&mut self, now_ns: u64) -> u64 {
        let busy_ns = self.received.take(now_ns);
        match busy_ns {
            0 => self.trace(now_ns, Operation::Settle, 0),
            _ => {
                self.account_idle(now_ns);
                self.work_visibly(now_ns, Operation::Settle, Work::default(), busy_ns);
            }
        }
        busy_ns
    }

    /// Returns true if the card receives pages while it programs earlier ones.
    pub(crate) fn receives_ahead(&self) -> bool {
        self.received.is_ahead()
    }

    /// Returns the longest busy time of a write that only programs a page, in ns; `None` for a profile with `model = 1`,
    /// for which [`write_spaced`](Controller::write_spaced) writes nothing.
    pub fn program_max_ns(&self) -> Option<u64> {
        self.flash.program_max_ns()
    }

    /// Writes complete pages as by a [`write`](Controller::write) each, in one step, as long as nothing but programming
    /// can happen; returns the number of pages written, from the first one on. If something else can happen, nothing is
    /// written and 0 returned: the caller then writes the next page alone.
    ///
    /// `start` is the first block of a page. `received` is called with the busy time of each page, and returns the time
    /// at which the page has been received. The caller ensures that the card is no longer busy by then if each page takes
    /// [`program_max_ns`](Controller::program_max_ns), and idle for at most `idle_max_ns`. Times and state are those of
    /// single writes; the energy differs by rounding.
    pub fn write_spaced(
        &mut self,
        start: u64,
        pages: u32,
        idle_max_ns: u64,
        mut received: impl FnMut(u64) -> u64,
    ) -> u32 {
        let page_blocks = self.flash.blocks_per_page();
        let first = (start / page_blocks) as u32;
        // A card that falls asleep between two pages takes time to wake up.
        let is_single = self.trace.is_some() || self.receives_ahead();
        if idle_max_ns > self.sleep_after_ns || is_single || self.is_off {
            return 0;
        }
        let collects = idle_max_ns > self.idle_after_ns;
        let mut now_ns = 0;
        let mut each = |work: Work| now_ns = received(work.ns);
        let written = self
            .flash
            .write_spaced(first..first + pages, collects, &mut each);
        let Some((count, work, last)) = written else {
            return 0;
        };
        let (from_ns, before_ns) = (self.accounted_ns, work.ns - last.ns);
        self.busy_ns += before_ns;
        self.meter
            .busy_and_idle(from_ns, before_ns, now_ns, work.nj - last.nj);
        let operation = Operation::Write {
            start: start + u64::from(count - 1) * page_blocks,
            count: page_blocks,
        };
        self.work(now_ns, operation, last, 0);
        count
    }

    /// Writes consecutive blocks with a command of their own.
    pub fn write_by_command(&mut self, now_ns: u64, start: u64, count: u64) -> Busy {
        let command_ns = self.command(now_ns);
        let mut busy = self.write(now_ns + command_ns, start, count);
        busy.total_ns += command_ns;
        busy.total_ns += self.settle(now_ns + busy.total_ns);
        busy.behind_ns = 0;
        busy
    }

    /// Fetches consecutive blocks; returns how long this takes, in ns.
    pub fn read(&mut self, now_ns: u64, start: u64, count: u64) -> u64 {
        let wake_up_ns = self.advance_to_command(now_ns);
        let work = self.flash.read(start, count);
        self.work(now_ns, Operation::Read { start, count }, work, wake_up_ns)
    }

    /// Marks consecutive blocks as empty; returns how long this takes, in ns.
    pub fn discard(&mut self, now_ns: u64, start: u64, count: u64) -> u64 {
        let wake_up_ns = self.advance_to_command(now_ns);
        let work = self.flash.discard(start, count);
        self.work(
            now_ns,
            Operation::Discard { start, count },
            work,
            wake_up_ns,
        )
    }

    /// Cuts the power.
    pub fn power_cut(&mut self, now_ns: u64) {
        self.account_idle(now_ns);
        self.meter.power_cut(now_ns);
        self.flash.power_cut();
        self.received.take(now_ns);
        self.is_off = true;
    }

    /// Restores the power.
    pub fn power_on(&mut self, now_ns: u64) {
        self.meter.power_on(now_ns);
        self.is_off = false;
        self.idle_from(now_ns);
    }

    /// Returns true if the card rejects writes because too many blocks are worn out.
    pub fn is_worn_out(&self) -> bool {
        self.flash.is_worn_out()
    }

    /// Returns the energy drawn from the supply until `now_ns`, including garbage collection while idle.
    pub fn energy(&mut self, now_ns: u64) -> Energy {
        self.account_idle(now_ns);
        self.meter.energy_until(now_ns)
    }

    /// Returns the number of flash block erases so far.
    pub fn erases(&self) -> u64 {
        self.flash.erases()
    }

    /// Returns the lowest and the highest erase count of any block.
    pub fn cycles(&self) -> RangeInclusive<u32> {
        self.flash.cycles()
    }

    /// Returns the number of pages programmed so far, by writes, garbage collection and the card's tables; `None` for
    /// a profile with `model = 1`.
    pub fn pages_programmed(&self) -> Option<u64> {
        self.flash.pages_programmed()
    }

    /// Returns the number of spare blocks that have not yet replaced a worn-out block.
    pub fn spares_left(&self) -> u32 {
        self.flash.spares_left()
    }

    /// Accounts for the idle time before a command; returns the wake-up time, in ns.
    fn advance_to_command(&mut self, now_ns: u64) -> u64 {
        self.account_idle(now_ns);
        match now_ns > self.awake_until_ns {
            true => self.wake_ns,
            false => 0,
        }
    }

    /// Accounts for time without a command, and runs garbage collection during this time.
    fn account_idle(&mut self, now_ns: u64) {
        if now_ns <= self.accounted_ns || self.is_off {
            return;
        }
        let gc_start_ns = self
            .accounted_ns
            .max(self.ready_ns.saturating_add(self.idle_after_ns));
        if now_ns > gc_start_ns {
            let work = self.flash.idle(now_ns - gc_start_ns);
            self.meter.garbage_collection(work);
            if work.ns > 0 {
                self.awake_until_ns = self.awake_until_ns.max(gc_start_ns + work.ns);
            }
        }
        let awake_ns = now_ns
            .min(self.awake_until_ns)
            .saturating_sub(self.accounted_ns);
        self.meter.idle(self.accounted_ns, awake_ns, now_ns);
        self.accounted_ns = now_ns;
    }

    /// Starts counting idle time at `now_ns`.
    fn idle_from(&mut self, now_ns: u64) {
        (self.ready_ns, self.accounted_ns) = (now_ns, now_ns);
        self.awake_until_ns = now_ns.saturating_add(self.sleep_after_ns);
    }

    fn work(&mut self, now_ns: u64, operation: Operation, work: Work, overhead_ns: u64) -> u64 {
        let busy_ns = work.ns + overhead_ns;
        self.work_visibly(now_ns, operation, work, busy_ns);
        busy_ns
    }

    /// Accounts for an operation after whose start the card is busy for `busy_ns`.
    fn work_visibly(&mut self, now_ns: u64, operation: Operation, work: Work, busy_ns: u64) {
        self.busy_ns += busy_ns;
        self.trace(now_ns, operation, busy_ns);
        self.meter.busy(now_ns, busy_ns, work.nj);
        self.idle_from(now_ns.saturating_add(busy_ns));
    }

    fn trace(&mut self, start_ns: u64, operation: Operation, busy_ns: u64) {
        if let Some(trace) = &mut self.trace {
            trace.push(TimedOperation {
                operation,
                start_ns,
                busy_ns,
            });
        }
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

    /// Returns a controller whose log is full of pages of many units.
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
    fn polling_the_energy_changes_nothing_and_includes_garbage_collection_while_idle() {
        let ((mut watched, start_ns), (mut other, _)) = (used(), used());
        let end_ns = start_ns + 30 * SECOND_NS;
        let before = watched.energy(start_ns).total_pj();
        let mut last = before;
        for step in 1..=3000 {
            let total = watched.energy(start_ns + step * SECOND_NS / 100).total_pj();
            // The increase is limited to the energy that controller and flash can draw in 10 ms.
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
    fn spaced_pages_give_the_times_and_within_rounding_the_energy_of_single_writes() {
        let profile = Profile::named("generic-16g-class10").unwrap();
        let mut single = Controller::new(&profile, Seed::new(3));
        let page_blocks = single.blocks_per_page();
        let received_ns = |page: u64| (page + 1) * SECOND_NS / 20;
        // The first page opens a unit, which a single step does not.
        let start = 1 << 20;
        let first = single.write_by_command(received_ns(0), start, page_blocks);
        let mut spaced = single.clone();
        let mut page = 0;
        let written = spaced.write_spaced(start + page_blocks, 9, SECOND_NS / 20, |busy_ns| {
            assert!(busy_ns <= single.program_max_ns().unwrap());
            page += 1;
            received_ns(page)
        });
        assert!(written > 1 && u64::from(written) == page && first.total_ns > 0);
        for page in 1..=page {
            single.write(received_ns(page), start + page * page_blocks, page_blocks);
        }
        assert_eq!(spaced.ready_ns(), single.ready_ns());
        assert_eq!(spaced.busy_ns(), single.busy_ns());
        assert_eq!(spaced.pages_programmed(), single.pages_programmed());
        let end_ns = received_ns(page) + SECOND_NS;
        let energies_pj = [&mut spaced, &mut single].map(|card| card.energy(end_ns).total_pj());
        let difference_pj = energies_pj[0].abs_diff(energies_pj[1]);
        assert!(difference_pj <= 4 * u64::from(written), "{energies_pj:?}");
    }

    #[test]
    fn a_sleeping_card_takes_time_to_wake_up() {
        let mut controller = Controller::new(&profile(), Seed::new(1));
        let awake_ns = controller.command(SECOND_NS);
        let slept_ns = controller.command(10 * SECOND_NS);
        assert_eq!(slept_ns - awake_ns, 5_000_000);
    }
}
