//! Effect of injected faults and of the power supply on a card on SPI.

use super::card::{ByteEnd, Session, SpiCard};
use super::command::Response;
use super::faults::{FaultCounts, InterruptedCard, Power};
use super::levels::RELEASED;
use super::state::Transfer;
use crate::Card;
use crate::wire::fault::{Fault, FaultSchedule};

impl SpiCard {
    /// Injects a fault before the byte with the given number, counted as in [`Count::bytes`](super::Count).
    /// If this byte has been exchanged already, the fault happens before the next byte.
    pub fn inject(&mut self, byte: u64, fault: Fault) {
        self.faults.upcoming.add(byte, fault);
        self.faults.update_next_byte();
    }

    /// Injects all faults of a schedule, each as with [`SpiCard::inject`].
    pub fn schedule(&mut self, faults: &FaultSchedule) {
        self.faults.upcoming.extend(faults.iter());
        self.faults.update_next_byte();
    }

    /// Takes the copies made by [`Fault::Copy`] so far, in order.
    pub fn take_copies(&mut self) -> Vec<InterruptedCard> {
        std::mem::take(&mut self.faults.copies)
    }

    /// Returns a copy of the card in the state in which a power cut at this moment would leave it.
    pub fn interrupted_copy(&self) -> InterruptedCard {
        let at_ns = self.pace.now_ns();
        let mut card = self.card.clone();
        if self.is_powered() {
            card.power_cut(at_ns);
        }
        card.power_on(at_ns);
        InterruptedCard {
            byte: self.count().bytes,
            at_ns,
            card,
        }
    }

    /// Returns the number of faults that had an effect so far.
    pub fn fault_counts(&self) -> FaultCounts {
        self.faults.fault_counts
    }

    /// Cuts the power, inserts another card of the same capacity, and returns the previous one. The new
    /// card is without power until [`SpiCard::power_on`].
    ///
    /// # Panics
    /// If the capacities differ.
    pub fn swap_card(&mut self, other: Card) -> Card {
        assert_eq!(
            other.blocks(),
            self.card.blocks(),
            "the new card must have the same capacity"
        );
        self.power_cut();
        std::mem::replace(&mut self.card, other)
    }

    /// Cuts the power until [`SpiCard::power_on`]. If the card has been pulled, its power does not return on
    /// its own.
    pub fn power_cut(&mut self) {
        self.lose_power(u64::MAX);
    }

    /// Powers on a card that has no power, as if it had just been inserted. Has no effect on a powered card.
    pub fn power_on(&mut self) {
        if self.faults.power == Power::On {
            return;
        }
        self.faults.power = Power::On;
        self.card.power_on(self.pace.now_ns());
        self.session = Session::default();
        self.transfer = Transfer::None;
        self.response = Response::default();
        self.busy_until_ns = 0;
        self.power_up_clocks = 0;
        self.faults.update_next_byte();
    }

    /// Returns true if the card has power.
    pub fn is_powered(&self) -> bool {
        match self.faults.power {
            Power::On => true,
            Power::Off { until_ns } => self.pace.now_ns() >= until_ns,
        }
    }

    fn lose_power(&mut self, until_ns: u64) {
        if self.is_powered() {
            // If a pulled card has regained power in the meantime, it has done nothing yet that a cut could
            // undo.
            self.card.power_cut(self.pace.now_ns());
            self.faults.fault_counts.power_losses += 1;
        }
        self.faults.power = Power::Off { until_ns };
        self.faults.update_next_byte();
    }

    /// Exchanges a byte while faults are due or the power is off.
    #[cold]
    pub(super) fn exchange_with_faults(&mut self, end: ByteEnd, out: u8) -> u8 {
        let (mut to_card, mut to_host) = (0, 0);
        while let Some(fault) = self.faults.upcoming.take_due(self.count().bytes) {
            match fault {
                Fault::PowerCut => self.power_cut(),
                Fault::Pull { out_ns } if self.is_powered() => {
                    self.lose_power(self.pace.now_ns().saturating_add(out_ns));
                }
                Fault::Pull { .. } => (),
                Fault::LoseCommand => {
                    self.faults.lost_commands = self.faults.lost_commands.saturating_add(1);
                }
                Fault::FlipToCard { bit } => to_card ^= 1 << (bit % 8),
                Fault::FlipToHost { bit } => to_host ^= 1 << (bit % 8),
                Fault::Busy { extra_ns } => {
                    let extra_busy_ns = &mut self.faults.extra_busy_ns;
                    *extra_busy_ns = extra_busy_ns.saturating_add(extra_ns);
                }
                Fault::Copy => {
                    let copy = self.interrupted_copy();
                    self.faults.copies.push(copy);
                }
            }
        }
        self.faults.update_next_byte();
        if !self.is_powered() {
            self.pass_byte(end);
            return RELEASED;
        }
        self.power_on();
        if self.is_selected() {
            self.faults.fault_counts.flips_to_card += u64::from(to_card != 0);
            self.faults.fault_counts.flips_to_host += u64::from(to_host != 0);
        }
        self.exchange_without_faults(end, out ^ to_card) ^ to_host
    }
}
