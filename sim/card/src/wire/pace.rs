//! How much virtual time bytes take.

use crate::Clock;

const BYTE_NS_HZ: u64 = 8 * 1_000_000_000;

/// Moves the clock on, eight periods of the bus a byte; what is less than a nanosecond is kept.
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
        let total = BYTE_NS_HZ * count as u64 + self.remainder;
        self.remainder = total % self.clock_hz;
        self.clock.advance_ns(total / self.clock_hz);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_lost_at_clocks_that_do_not_divide_a_nanosecond() {
        let (one, many) = (Clock::default(), Clock::default());
        let mut bytewise = Pace::new(one.clone(), 26_000_000);
        (0..26).for_each(|_| bytewise.byte());
        Pace::new(many.clone(), 26_000_000).bytes(26);
        assert_eq!((one.now_ns(), many.now_ns()), (8_000, 8_000));
    }
}
