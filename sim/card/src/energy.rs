//! Energy that a card draws from its supply.

use crate::nand::Work;
use crate::profile::Power;

/// Conversion factor: 1 pJ is 1000 uW ns.
const UW_NS_PER_PJ: u64 = 1000;
const PJ_PER_NJ: u64 = 1000;

/// Energy since power-on, in pJ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Energy {
    /// Energy while the controller was asleep.
    pub asleep_pj: u64,
    /// Energy while the controller was idle.
    pub idle_pj: u64,
    /// Energy while the controller was working.
    pub working_pj: u64,
    /// Energy for reading, programming and erasing flash.
    pub flash_pj: u64,
}

impl Energy {
    /// Returns the total energy, in pJ.
    pub fn total_pj(&self) -> u64 {
        let states = self.asleep_pj.saturating_add(self.idle_pj);
        states
            .saturating_add(self.working_pj)
            .saturating_add(self.flash_pj)
    }
}

/// Accumulates energy and tracks what the card is doing.
#[derive(Clone)]
pub(crate) struct Meter {
    asleep_uw: u64,
    idle_uw: u64,
    working_uw: u64,
    /// Energy up to the start of the last busy time.
    consumed: Energy,
    busy_from_ns: u64,
    busy_ns: u64,
    busy_flash_pj: u64,
    sleep_after_ns: u64,
}

impl Meter {
    pub(crate) fn new(power: &Power) -> Meter {
        let uw = |ua: u32| u64::from(ua) * u64::from(power.supply_mv) / 1000;
        Meter {
            asleep_uw: uw(power.asleep_ua),
            idle_uw: uw(power.idle_ua),
            working_uw: uw(power.working_ua),
            consumed: Energy::default(),
            busy_from_ns: 0,
            busy_ns: 0,
            busy_flash_pj: 0,
            sleep_after_ns: u64::from(power.sleep_after_us) * 1000,
        }
    }

    /// Starts a busy time, during which flash consumes `flash_nj`.
    pub(crate) fn busy(&mut self, now_ns: u64, busy_ns: u64, flash_nj: u64) {
        self.book_busy();
        (self.busy_from_ns, self.busy_ns) = (now_ns, busy_ns);
        self.busy_flash_pj = flash_nj.saturating_mul(PJ_PER_NJ);
    }

    /// Adds garbage collection that ran while the host was idle.
    pub(crate) fn garbage_collection(&mut self, work: Work) {
        self.book_busy();
        add(
            &mut self.consumed.working_pj,
            pj(work.ns, self.working_uw - self.idle_uw),
        );
        add(
            &mut self.consumed.flash_pj,
            work.nj.saturating_mul(PJ_PER_NJ),
        );
    }

    /// Adds idle time: awake for `awake_ns`, then asleep until `until_ns`.
    pub(crate) fn idle(&mut self, from_ns: u64, awake_ns: u64, until_ns: u64) {
        self.book_busy();
        let asleep_ns = until_ns - from_ns - awake_ns;
        add(&mut self.consumed.idle_pj, pj(awake_ns, self.idle_uw));
        add(&mut self.consumed.asleep_pj, pj(asleep_ns, self.asleep_uw));
        (self.busy_from_ns, self.busy_ns) = (until_ns, 0);
    }

    /// Adds busy times of a total of `busy_ns` that ended before `until_ns`, with idle time between them.
    pub(crate) fn busy_and_idle(
        &mut self,
        from_ns: u64,
        busy_ns: u64,
        until_ns: u64,
        flash_nj: u64,
    ) {
        self.book_busy();
        let idle_ns = until_ns - from_ns - busy_ns;
        add(&mut self.consumed.working_pj, pj(busy_ns, self.working_uw));
        add(&mut self.consumed.idle_pj, pj(idle_ns, self.idle_uw));
        let flash_pj = flash_nj.saturating_mul(PJ_PER_NJ);
        add(&mut self.consumed.flash_pj, flash_pj);
        (self.busy_from_ns, self.busy_ns) = (until_ns, 0);
    }

    /// Stops consumption at a power cut.
    pub(crate) fn power_cut(&mut self, now_ns: u64) {
        self.consumed = self.energy_until(now_ns);
        (self.busy_from_ns, self.busy_ns, self.busy_flash_pj) = (u64::MAX, 0, 0);
    }

    /// Starts consumption in the idle state.
    pub(crate) fn power_on(&mut self, now_ns: u64) {
        self.busy_from_ns = now_ns;
    }

    /// Returns the energy until `now_ns`, which must not be before the start of the last busy time. Flash
    /// energy is spread evenly over the busy time.
    pub(crate) fn energy_until(&self, now_ns: u64) -> Energy {
        let mut energy = self.consumed;
        let passed_ns = now_ns.saturating_sub(self.busy_from_ns);
        let worked_ns = passed_ns.min(self.busy_ns);
        add(&mut energy.working_pj, pj(worked_ns, self.working_uw));
        let flash_pj = match worked_ns == self.busy_ns {
            true => self.busy_flash_pj,
            false => {
                let share = u128::from(self.busy_flash_pj) * u128::from(worked_ns);
                (share / u128::from(self.busy_ns)) as u64
            }
        };
        add(&mut energy.flash_pj, flash_pj);
        let idle_ns = passed_ns - worked_ns;
        let awake_ns = idle_ns.min(self.sleep_after_ns);
        add(&mut energy.idle_pj, pj(awake_ns, self.idle_uw));
        add(
            &mut energy.asleep_pj,
            pj(idle_ns - awake_ns, self.asleep_uw),
        );
        energy
    }

    /// Adds the energy up to the end of the last busy period to the total.
    fn book_busy(&mut self) {
        let working_pj = pj(self.busy_ns, self.working_uw);
        add(&mut self.consumed.working_pj, working_pj);
        add(&mut self.consumed.flash_pj, self.busy_flash_pj);
        self.busy_from_ns = self.busy_from_ns.saturating_add(self.busy_ns);
        (self.busy_ns, self.busy_flash_pj) = (0, 0);
    }
}

/// Converts a power in uW over a time in ns to pJ.
fn pj(ns: u64, uw: u64) -> u64 {
    // Almost every product fits, and a division of 128 bits takes ten times as long.
    if let Some(product) = ns.checked_mul(uw) {
        return product / UW_NS_PER_PJ;
    }
    let pj = u128::from(ns) * u128::from(uw) / u128::from(UW_NS_PER_PJ);
    pj.try_into().unwrap_or(u64::MAX)
}

/// Adds energy, saturating: a u64 of pJ is enough for half a year at 1 W.
fn add(sum: &mut u64, pj: u64) {
    *sum = sum.saturating_add(pj);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    const MS_NS: u64 = 1_000_000;

    fn meter() -> Meter {
        let mut power = Profile::named("class10-16g").unwrap().power;
        (power.supply_mv, power.sleep_after_us) = (3000, 5_000);
        (power.asleep_ua, power.idle_ua, power.working_ua) = (100, 1000, 20_000);
        Meter::new(&power)
    }

    #[test]
    fn each_state_draws_its_current_times_the_voltage() {
        let mut meter = meter();
        meter.busy(0, 2 * MS_NS, 1000);
        // The card draws 60 mW for 2 ms, 3 mW for 5 ms and 0.3 mW for 3 ms; 1 mW is 1 uJ per ms.
        let energy = meter.energy_until(10 * MS_NS);
        assert_eq!(energy.working_pj, 120_000_000);
        assert_eq!(energy.idle_pj, 15_000_000);
        assert_eq!(energy.asleep_pj, 900_000);
        assert_eq!(energy.flash_pj, 1_000_000);
    }

    #[test]
    fn half_way_through_a_busy_time_half_of_its_energy_is_consumed() {
        let mut meter = meter();
        meter.busy(0, 2 * MS_NS, 1000);
        let energy = meter.energy_until(MS_NS);
        assert_eq!((energy.working_pj, energy.flash_pj), (60_000_000, 500_000));
    }

    #[test]
    fn nothing_is_consumed_without_power() {
        let mut meter = meter();
        meter.busy(0, 2 * MS_NS, 1000);
        meter.power_cut(MS_NS);
        let cut = meter.energy_until(MS_NS);
        assert_eq!(meter.energy_until(1000 * MS_NS), cut);
        meter.power_on(1000 * MS_NS);
        let later = meter.energy_until(1001 * MS_NS);
        assert_eq!(later.total_pj() - cut.total_pj(), 3_000_000);
    }
}
