//! Faults that are injected at the interface of a card, and their schedule.
//!
//! Each fault is described in `docs/faults.md`.

use cardiograph_sim_world::{Random, Seed};
use std::collections::VecDeque;
use std::ops::Range;

/// A fault that happens at one byte of the bus traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power fails and stays off until the test switches it on.
    PowerCut,
    /// The card is pulled and later reinserted: the power fails and returns.
    Pull {
        /// Time without power, in ns.
        out_ns: u64,
    },
    /// The card misses the next complete command and does not respond.
    LoseCommand,
    /// A bit sent to the card is flipped.
    FlipToCard {
        /// Number of the bit in the byte, 0 to 7; bit 0 is the last on the bus.
        bit: u8,
    },
    /// A bit sent to the host is flipped.
    FlipToHost {
        /// Number of the bit in the byte, 0 to 7; bit 0 is the last on the bus.
        bit: u8,
    },
    /// Extends the card's next busy time.
    Busy {
        /// Additional busy time, in ns; `u64::MAX` means forever.
        extra_ns: u64,
    },
    /// The simulation copies the card in the state in which a power cut at this byte would leave it; host
    /// and card notice nothing. See [`SpiCard::take_copies`](super::SpiCard::take_copies).
    Copy,
}

/// Scheduled faults in order of time. Each fault has a byte count: it happens once this number of bytes has
/// been exchanged on the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSchedule(VecDeque<(u64, Fault)>);

/// Number of random faults of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultMix {
    /// Number of [`Fault::PowerCut`] faults.
    pub power_cuts: u32,
    /// Number of [`Fault::Pull`] faults.
    pub pulls: u32,
    /// Longest time without power of a [`Fault::Pull`], in ns.
    pub out_ns_max: u64,
    /// Number of [`Fault::LoseCommand`] faults.
    pub lost_commands: u32,
    /// Number of [`Fault::FlipToCard`] faults.
    pub flips_to_card: u32,
    /// Number of [`Fault::FlipToHost`] faults.
    pub flips_to_host: u32,
    /// Number of [`Fault::Busy`] faults.
    pub long_busies: u32,
    /// Longest additional busy time of a [`Fault::Busy`], in ns.
    pub extra_ns_max: u64,
}

impl FaultSchedule {
    /// Creates random faults in a range of byte counts. Each kind has its own random stream: changing the
    /// number of one kind does not affect the others.
    pub fn random(seed: Seed, mix: &FaultMix, bytes: Range<u64>) -> FaultSchedule {
        // Do not rename: the faults of recorded seeds depend on this name.
        let seed = seed.child("strikes");
        let mut faults = FaultSchedule::default();
        let mut add = |name, count, fault: &dyn Fn(&mut Random) -> Fault| {
            let mut random = seed.stream(name);
            for _ in 0..count {
                let length = bytes.end.saturating_sub(bytes.start);
                let byte = bytes.start + random.below(length);
                faults.add(byte, fault(&mut random));
            }
        };
        add("power cut", mix.power_cuts, &|_| Fault::PowerCut);
        add("pull", mix.pulls, &|random| Fault::Pull {
            out_ns: random.below(mix.out_ns_max),
        });
        add("lost command", mix.lost_commands, &|_| Fault::LoseCommand);
        add("flip to card", mix.flips_to_card, &|random| {
            Fault::FlipToCard {
                bit: random.below(8) as u8,
            }
        });
        add("flip to host", mix.flips_to_host, &|random| {
            Fault::FlipToHost {
                bit: random.below(8) as u8,
            }
        });
        add("busy", mix.long_busies, &|random| Fault::Busy {
            extra_ns: random.below(mix.extra_ns_max),
        });
        faults
    }

    /// Adds a fault; faults at the same byte happen in the order in which they were added.
    pub fn add(&mut self, byte: u64, fault: Fault) {
        let index = self.0.partition_point(|(known, _)| *known <= byte);
        self.0.insert(index, (byte, fault));
    }

    /// Returns the byte count at which the next fault happens; `u64::MAX` if no fault is left.
    pub fn next_byte(&self) -> u64 {
        self.0.front().map_or(u64::MAX, |(byte, _)| *byte)
    }

    /// Removes and returns the next fault if it is due at the given byte.
    pub fn take_due(&mut self, byte: u64) -> Option<Fault> {
        if self.next_byte() > byte {
            return None;
        }
        self.0.pop_front().map(|(_, fault)| fault)
    }

    /// Returns the scheduled faults in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Fault)> {
        self.0.iter().copied()
    }
}

impl Extend<(u64, Fault)> for FaultSchedule {
    fn extend<I: IntoIterator<Item = (u64, Fault)>>(&mut self, faults: I) {
        for (byte, fault) in faults {
            self.add(byte, fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIX: FaultMix = FaultMix {
        power_cuts: 3,
        pulls: 4,
        out_ns_max: 1_000,
        lost_commands: 5,
        flips_to_card: 600,
        flips_to_host: 7,
        long_busies: 8,
        extra_ns_max: 2_000,
    };

    fn is_flip_to_card(fault: &(u64, Fault)) -> bool {
        matches!(fault.1, Fault::FlipToCard { .. })
    }

    #[test]
    fn faults_are_ordered_by_byte_and_then_by_insertion() {
        let mut faults = FaultSchedule::default();
        assert_eq!(faults.next_byte(), u64::MAX);
        let lose = Fault::LoseCommand;
        faults.extend([(5, lose), (3, Fault::PowerCut), (5, Fault::PowerCut)]);
        assert_eq!(faults.take_due(2), None);
        assert_eq!(faults.take_due(9), Some(Fault::PowerCut));
        assert_eq!(faults.next_byte(), 5);
        assert_eq!(faults.take_due(5), Some(lose));
        assert_eq!(faults.take_due(5), Some(Fault::PowerCut));
        assert_eq!(faults.take_due(u64::MAX), None);
    }

    #[test]
    fn each_kind_has_the_requested_number_within_its_bounds() {
        let faults = FaultSchedule::random(Seed::new(1), &MIX, 100..200);
        let count = |is: fn(&Fault) -> bool| faults.iter().filter(|(_, s)| is(s)).count();
        assert_eq!(count(|s| *s == Fault::PowerCut), 3);
        assert_eq!(count(|s| matches!(s, Fault::Pull { out_ns: 0..1_000 })), 4);
        assert_eq!(count(|s| *s == Fault::LoseCommand), 5);
        assert_eq!(count(|s| matches!(s, Fault::FlipToHost { bit: 0..8 })), 7);
        assert_eq!(
            count(|s| matches!(s, Fault::Busy { extra_ns: 0..2_000 })),
            8
        );
        for bit in 0..8 {
            let flips = faults
                .iter()
                .filter(|(_, s)| *s == Fault::FlipToCard { bit });
            // Six standard deviations of a binomial distribution (n = 600, p = 1/8) are 49.
            assert!(flips.count().abs_diff(75) < 49);
        }
        let bytes: Vec<u64> = faults.iter().map(|(byte, _)| byte).collect();
        assert!(bytes.is_sorted());
        assert!(bytes.iter().all(|byte| (100..200).contains(byte)));
    }

    #[test]
    fn a_seed_determines_the_schedule_and_kinds_are_independent() {
        let random = |seed, mix| FaultSchedule::random(Seed::new(seed), mix, 0..1_000_000);
        assert_eq!(random(1, &MIX), random(1, &MIX));
        assert_ne!(random(1, &MIX), random(2, &MIX));
        let flips = FaultMix {
            flips_to_card: 600,
            ..FaultMix::default()
        };
        let among_others: Vec<_> = random(1, &MIX).iter().filter(is_flip_to_card).collect();
        assert!(random(1, &flips).iter().eq(among_others));
    }
}
