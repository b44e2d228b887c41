//! What strikes do to a card on SPI.

use super::card::{RELEASED, Session, SpiCard};
use super::command::Answer;
use super::transfer::Task;
use crate::Card;
use crate::wire::strike::{Strike, Strikes};

/// How often strikes had an effect on a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Power went away from a card that had it.
    pub power_losses: u64,
    /// Commands that were complete and went unheard.
    pub lost_commands: u64,
    /// Bits that a selected card took wrongly.
    pub flips_to_card: u64,
    /// Bits that the host got wrongly from a selected card.
    pub flips_to_host: u64,
    /// Busy times that lasted longer.
    pub busies: u64,
}

impl Effects {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.power_losses
            + self.lost_commands
            + self.flips_to_card
            + self.flips_to_host
            + self.busies
    }
}

/// Strikes to come, and what of them is not over.
pub(super) struct Faults {
    /// The byte that must not pass unseen: that of the next strike, any while there is no power.
    pub(super) next_byte: u64,
    upcoming: Strikes,
    power: Power,
    lost_commands: u32,
    extra_busy_ns: u64,
    effects: Effects,
    copies: Vec<Copied>,
}

/// A card as a power cut leaves it, its power gone and given back.
#[derive(Clone)]
pub struct Copied {
    /// Bytes that had been exchanged.
    pub byte: u64,
    /// When it was, in ns.
    pub at_ns: u64,
    /// The card.
    pub card: Card,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    /// `u64::MAX` if it does not come back by itself.
    Off {
        until_ns: u64,
    },
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            next_byte: u64::MAX,
            upcoming: Strikes::default(),
            power: Power::On,
            lost_commands: 0,
            extra_busy_ns: 0,
            effects: Effects::default(),
            copies: Vec::new(),
        }
    }
}

impl Faults {
    /// Whether a command that is complete goes unheard.
    pub(super) fn lose_command(&mut self) -> bool {
        let is_lost = self.lost_commands > 0;
        self.lost_commands -= u32::from(is_lost);
        self.effects.lost_commands += u64::from(is_lost);
        is_lost
    }

    /// By how much the busy that begins lasts longer.
    pub(super) fn take_extra_busy_ns(&mut self) -> u64 {
        self.effects.busies += u64::from(self.extra_busy_ns > 0);
        std::mem::take(&mut self.extra_busy_ns)
    }

    fn watch(&mut self) {
        self.next_byte = match self.power {
            Power::On => self.upcoming.next_place(),
            Power::Off { .. } => 0,
        };
    }
}

impl SpiCard {
    /// Adds a strike before the byte of this number, counted as [`Count::bytes`](super::Count) does. If
    /// that byte has passed, it comes before the next.
    pub fn strike(&mut self, byte: u64, strike: Strike) {
        self.faults.upcoming.add(byte, strike);
        self.faults.watch();
    }

    /// Adds all of these strikes in the same way.
    pub fn schedule(&mut self, strikes: &Strikes) {
        self.faults.upcoming.extend(strikes.iter());
        self.faults.watch();
    }

    /// Returns the copies that [`Strike::Copy`] has made so far, in order.
    pub fn take_copies(&mut self) -> Vec<Copied> {
        std::mem::take(&mut self.faults.copies)
    }

    /// Returns a copy of the card as a power cut leaves it now.
    pub fn copied(&self) -> Copied {
        let at_ns = self.pace.now_ns();
        let mut card = self.card.clone();
        if self.is_powered() {
            card.power_cut(at_ns);
        }
        card.power_on(at_ns);
        Copied {
            byte: self.count().bytes,
            at_ns,
            card,
        }
    }

    /// How often strikes had an effect so far.
    pub fn effects(&self) -> Effects {
        self.faults.effects
    }

    /// Takes the power away, puts another card in, and returns the one that was there. The other has no
    /// power until [`SpiCard::power_on`]. Its capacity has to be the same.
    ///
    /// # Panics
    /// If it is not.
    pub fn exchange_card(&mut self, other: Card) -> Card {
        assert_eq!(other.blocks(), self.card.blocks(), "another capacity");
        self.power_cut();
        std::mem::replace(&mut self.card, other)
    }

    /// Takes the power away, now, until [`SpiCard::power_on`]: also from a card that is out.
    pub fn power_cut(&mut self) {
        self.lose_power(u64::MAX);
    }

    /// Gives power to a card that has none: it is as freshly plugged in. Does nothing to another.
    pub fn power_on(&mut self) {
        if self.faults.power == Power::On {
            return;
        }
        self.faults.power = Power::On;
        self.card.power_on(self.pace.now_ns());
        self.session = Session::default();
        self.task = Task::None;
        self.answer = Answer::default();
        self.busy_until_ns = 0;
        self.power_up_clocks = 0;
        self.faults.watch();
    }

    /// Whether the card has power.
    pub fn is_powered(&self) -> bool {
        match self.faults.power {
            Power::On => true,
            Power::Off { until_ns } => self.pace.now_ns() >= until_ns,
        }
    }

    fn lose_power(&mut self, until_ns: u64) {
        if self.is_powered() {
            // A card put back in the meantime has done nothing that this would undo.
            self.card.power_cut(self.pace.now_ns());
            self.faults.effects.power_losses += 1;
        }
        self.faults.power = Power::Off { until_ns };
        self.faults.watch();
    }

    /// A byte with something the matter: strikes are due, or power is away.
    #[cold]
    pub(super) fn exchange_struck(&mut self, out: u8) -> u8 {
        let (mut to_card, mut to_host) = (0, 0);
        while let Some(strike) = self.faults.upcoming.take_due(self.count().bytes) {
            match strike {
                Strike::PowerCut => self.power_cut(),
                Strike::Pull { out_ns } if self.is_powered() => {
                    self.lose_power(self.pace.now_ns().saturating_add(out_ns));
                }
                Strike::Pull { .. } => (),
                Strike::LoseCommand => {
                    self.faults.lost_commands = self.faults.lost_commands.saturating_add(1);
                }
                Strike::FlipToCard { bit } => to_card ^= 1 << (bit % 8),
                Strike::FlipToHost { bit } => to_host ^= 1 << (bit % 8),
                Strike::Busy { extra_ns } => {
                    let extra_busy_ns = &mut self.faults.extra_busy_ns;
                    *extra_busy_ns = extra_busy_ns.saturating_add(extra_ns);
                }
                Strike::Copy => {
                    let copied = self.copied();
                    self.faults.copies.push(copied);
                }
            }
        }
        self.faults.watch();
        if !self.is_powered() {
            self.pass(1);
            return RELEASED;
        }
        self.power_on();
        if self.is_selected() {
            self.faults.effects.flips_to_card += u64::from(to_card != 0);
            self.faults.effects.flips_to_host += u64::from(to_host != 0);
        }
        self.exchange_unharmed(out ^ to_card) ^ to_host
    }
}
