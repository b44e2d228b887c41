//! What happens to a card at the wire, and when.
//!
//! Each fault is described in `docs/faults.md`.

use cardiograph_sim_world::{Random, Seed};
use std::collections::VecDeque;
use std::ops::Range;

/// A fault that strikes at one place of what goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// Power goes away until somebody switches it on.
    PowerCut,
    /// The card is taken out, and put back after this time: power goes away and comes back.
    Pull {
        /// How long it is out, in ns.
        out_ns: u64,
    },
    /// The next command to be complete is not heard, and not answered.
    LoseCommand,
    /// A bit on its way to the card is wrong.
    FlipToCard {
        /// Which bit: 0, the last on the line, to 7.
        bit: u8,
    },
    /// A bit on its way to the host is wrong.
    FlipToHost {
        /// Which bit: 0, the last on the line, to 7.
        bit: u8,
    },
    /// The next busy lasts longer.
    Busy {
        /// By how much, in ns; `u64::MAX` is for ever.
        extra_ns: u64,
    },
    /// The host and the card notice nothing; the card is copied, and the copy loses its power. See
    /// [`SpiCard::take_copies`](super::SpiCard::take_copies).
    Copy,
}

/// Strikes to come, each before a place on the wire: so many bytes were exchanged when it happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strikes(VecDeque<(u64, Strike)>);

/// How many strikes of each kind come at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// [`Strike::PowerCut`].
    pub power_cuts: u32,
    /// [`Strike::Pull`].
    pub pulls: u32,
    /// Longest time that a card is out, in ns.
    pub out_ns_max: u64,
    /// [`Strike::LoseCommand`].
    pub lost_commands: u32,
    /// [`Strike::FlipToCard`].
    pub flips_to_card: u32,
    /// [`Strike::FlipToHost`].
    pub flips_to_host: u32,
    /// [`Strike::Busy`].
    pub busies: u32,
    /// Longest time by which busy lasts longer, in ns.
    pub extra_ns_max: u64,
}

impl Strikes {
    /// Strikes anywhere in a part of the wire. Each kind draws from a stream of its own: more of one
    /// change nothing for the others.
    pub fn random(seed: Seed, mix: &Mix, places: Range<u64>) -> Strikes {
        let seed = seed.child("strikes");
        let mut strikes = Strikes::default();
        let mut add = |name, count, strike: &dyn Fn(&mut Random) -> Strike| {
            let mut random = seed.stream(name);
            for _ in 0..count {
                let length = places.end.saturating_sub(places.start);
                let place = places.start + random.below(length);
                strikes.add(place, strike(&mut random));
            }
        };
        add("power cut", mix.power_cuts, &|_| Strike::PowerCut);
        add("pull", mix.pulls, &|random| Strike::Pull {
            out_ns: random.below(mix.out_ns_max),
        });
        add("lost command", mix.lost_commands, &|_| Strike::LoseCommand);
        add("flip to card", mix.flips_to_card, &|random| {
            Strike::FlipToCard {
                bit: random.below(8) as u8,
            }
        });
        add("flip to host", mix.flips_to_host, &|random| {
            Strike::FlipToHost {
                bit: random.below(8) as u8,
            }
        });
        add("busy", mix.busies, &|random| Strike::Busy {
            extra_ns: random.below(mix.extra_ns_max),
        });
        strikes
    }

    /// Adds a strike; of those at one place, the first added comes first.
    pub fn add(&mut self, place: u64, strike: Strike) {
        let index = self.0.partition_point(|(known, _)| *known <= place);
        self.0.insert(index, (place, strike));
    }

    /// Where the next one happens; `u64::MAX` if none is left.
    pub fn next_place(&self) -> u64 {
        self.0.front().map_or(u64::MAX, |(place, _)| *place)
    }

    /// Takes out the next one of those up to this place.
    pub fn take_due(&mut self, place: u64) -> Option<Strike> {
        if self.next_place() > place {
            return None;
        }
        self.0.pop_front().map(|(_, strike)| strike)
    }

    /// Those to come, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Strike)> {
        self.0.iter().copied()
    }
}

impl Extend<(u64, Strike)> for Strikes {
    fn extend<I: IntoIterator<Item = (u64, Strike)>>(&mut self, strikes: I) {
        for (place, strike) in strikes {
            self.add(place, strike);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIX: Mix = Mix {
        power_cuts: 3,
        pulls: 4,
        out_ns_max: 1_000,
        lost_commands: 5,
        flips_to_card: 600,
        flips_to_host: 7,
        busies: 8,
        extra_ns_max: 2_000,
    };

    fn is_flip_to_card(strike: &(u64, Strike)) -> bool {
        matches!(strike.1, Strike::FlipToCard { .. })
    }

    #[test]
    fn they_come_in_order_and_those_at_one_place_as_they_were_added() {
        let mut strikes = Strikes::default();
        assert_eq!(strikes.next_place(), u64::MAX);
        let lose = Strike::LoseCommand;
        strikes.extend([(5, lose), (3, Strike::PowerCut), (5, Strike::PowerCut)]);
        assert_eq!(strikes.take_due(2), None);
        assert_eq!(strikes.take_due(9), Some(Strike::PowerCut));
        assert_eq!(strikes.next_place(), 5);
        assert_eq!(strikes.take_due(5), Some(lose));
        assert_eq!(strikes.take_due(5), Some(Strike::PowerCut));
        assert_eq!(strikes.take_due(u64::MAX), None);
    }

    #[test]
    fn as_many_of_each_kind_as_asked_for_within_their_bounds() {
        let strikes = Strikes::random(Seed::new(1), &MIX, 100..200);
        let count = |is: fn(&Strike) -> bool| strikes.iter().filter(|(_, s)| is(s)).count();
        assert_eq!(count(|s| *s == Strike::PowerCut), 3);
        assert_eq!(count(|s| matches!(s, Strike::Pull { out_ns: 0..1_000 })), 4);
        assert_eq!(count(|s| *s == Strike::LoseCommand), 5);
        assert_eq!(count(|s| matches!(s, Strike::FlipToHost { bit: 0..8 })), 7);
        assert_eq!(
            count(|s| matches!(s, Strike::Busy { extra_ns: 0..2_000 })),
            8
        );
        for bit in 0..8 {
            let flips = strikes
                .iter()
                .filter(|(_, s)| *s == Strike::FlipToCard { bit });
            // Six standard deviations of a binomial (600; 1/8) are 49.
            assert!(flips.count().abs_diff(75) < 49);
        }
        let places: Vec<u64> = strikes.iter().map(|(place, _)| place).collect();
        assert!(places.is_sorted());
        assert!(places.iter().all(|place| (100..200).contains(place)));
    }

    #[test]
    fn one_seed_one_schedule_and_other_kinds_do_not_disturb() {
        let random = |seed, mix| Strikes::random(Seed::new(seed), mix, 0..1_000_000);
        assert_eq!(random(1, &MIX), random(1, &MIX));
        assert_ne!(random(1, &MIX), random(2, &MIX));
        let flips = Mix {
            flips_to_card: 600,
            ..Mix::default()
        };
        let among_others: Vec<_> = random(1, &MIX).iter().filter(is_flip_to_card).collect();
        assert!(random(1, &flips).iter().eq(among_others));
    }
}
