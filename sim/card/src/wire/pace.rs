//! Conversion of bus clocks to virtual time.

use crate::Clock;

/// One clock period of the bus in ns, times its frequency in Hz.
const PERIOD_NS_HZ: u64 = 1_000_000_000;
const BYTE_NS_HZ: u64 = 8 * PERIOD_NS_HZ;

/// Advances the clock by bus periods, eight per byte; carries fractions of a nanosecond over.
pub(in crate::wire) struct Pace {
    clock: Clock,
    clock_hz: u64,
    byte_ns: u64,
    byte_remainder: u64,
    remainder: u64,
}

impl Pace {
    pub(in crate::wire) fn new(clock: Clock, clock_hz: u32) -> Pace {
        let clock_hz = u64::from(clock_hz);
        Pace {
            clock,
            clock_hz,
            byte_ns: BYTE_NS_HZ / clock_hz,
            byte_remainder: BYTE_NS_HZ % clock_hz,
            remainder: 0,
        }
    }

    pub(in crate::wire) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(in crate::wire) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    pub(in crate::wire) fn byte(&mut self) {
        self.remainder += self.byte_remainder;
        let carry = self.remainder >= self.clock_hz;
        if carry {
            self.remainder -= self.clock_hz;
        }
        self.clock.advance_ns(self.byte_ns + u64::from(carry));
    }

    pub(in crate::wire) fn bytes(&mut self, count: usize) {
        self.clocks(8 * count as u64);
    }

    /// Advances the clock by bus periods, at most 18 billion.
    pub(in crate::wire) fn clocks(&mut self, count: u64) {
        let total = PERIOD_NS_HZ * count + self.remainder;
        self.remainder = total % self.clock_hz;
        self.clock.advance_ns(total / self.clock_hz);
    }

    /// Returns the number of bus periods that begin before `ns`.
    pub(in crate::wire) fn clocks_until(&self, ns: u64) -> u64 {
        let left_ns = ns.saturating_sub(self.now_ns());
        let left = u128::from(left_ns) * u128::from(self.clock_hz);
        let clocks = left
            .saturating_sub(self.remainder.into())
            .div_ceil(PERIOD_NS_HZ.into());
        u64::try_from(clocks).unwrap_or(u64::MAX)
    }

    pub(in crate::wire) fn clock_hz(&self) -> u64 {
        self.clock_hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_nanosecond_add_up() {
        let (one, many) = (Clock::default(), Clock::default());
        let mut bytewise = Pace::new(one.clone(), 26_000_000);
        (0..26).for_each(|_| bytewise.byte());
        Pace::new(many.clone(), 26_000_000).bytes(26);
        assert_eq!((one.now_ns(), many.now_ns()), (8_000, 8_000));
    }

    #[test]
    fn clocks_until_counts_the_periods_that_begin_before_a_time() {
        for clock_hz in [25_000_000, 26_000_000, 49_999_999] {
            for ns in [0, 1, 39, 40, 41, 1000, 123_456] {
                let mut pace = Pace::new(Clock::default(), clock_hz);
                let mut begun = 0;
                while pace.now_ns() < ns {
                    assert!(pace.clocks_until(ns) > 0);
                    pace.clocks(1);
                    begun += 1;
                }
                let fresh = Pace::new(Clock::default(), clock_hz);
                assert_eq!(fresh.clocks_until(ns), begun, "{ns} ns at {clock_hz} Hz");
            }
        }
    }
}
