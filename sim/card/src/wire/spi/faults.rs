//! Injected faults of a card on SPI: scheduled faults, faults in effect, and counters.

use crate::Card;
use crate::wire::fault::FaultSchedule;

/// Number of faults that had an effect on a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Number of times that a powered card lost power.
    pub power_losses: u64,
    /// Number of complete commands that the card missed.
    pub lost_commands: u64,
    /// Number of flipped bits that a selected card received.
    pub flips_to_card: u64,
    /// Number of flipped bits that the host received from a selected card.
    pub flips_to_host: u64,
    /// Number of busy times that were extended.
    pub long_busies: u64,
}

impl FaultCounts {
    /// Returns the total number of faults.
    pub fn total(&self) -> u64 {
        self.power_losses
            + self.lost_commands
            + self.flips_to_card
            + self.flips_to_host
            + self.long_busies
    }
}

/// Scheduled faults, and faults in effect.
pub(super) struct FaultState {
    /// Number of the first byte that needs the slow path: the byte of the next fault, or the next byte while
    /// the power is off.
    pub(super) next_byte: u64,
    pub(super) upcoming: FaultSchedule,
    pub(super) power: Power,
    pub(super) lost_commands: u32,
    pub(super) extra_busy_ns: u64,
    pub(super) fault_counts: FaultCounts,
    pub(super) copies: Vec<InterruptedCard>,
}

/// A copy of a card in the state in which a power cut leaves it, with the power restored.
#[derive(Clone)]
pub struct InterruptedCard {
    /// Number of bytes exchanged before the power cut.
    pub byte: u64,
    /// Time of the power cut, in ns.
    pub at_ns: u64,
    /// Copy of the card.
    pub card: Card,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    On,
    /// Time at which the power returns, in ns; `u64::MAX` if it does not return on its own.
    Off {
        until_ns: u64,
    },
}

impl Default for FaultState {
    fn default() -> FaultState {
        FaultState {
            next_byte: u64::MAX,
            upcoming: FaultSchedule::default(),
            power: Power::On,
            lost_commands: 0,
            extra_busy_ns: 0,
            fault_counts: FaultCounts::default(),
            copies: Vec::new(),
        }
    }
}

impl FaultState {
    /// Returns true if a command that has just been completed gets lost.
    pub(super) fn lose_command(&mut self) -> bool {
        let is_lost = self.lost_commands > 0;
        self.lost_commands -= u32::from(is_lost);
        self.fault_counts.lost_commands += u64::from(is_lost);
        is_lost
    }

    /// Returns the additional time, in ns, by which a fault extends the busy time that starts now.
    pub(super) fn take_extra_busy_ns(&mut self) -> u64 {
        self.fault_counts.long_busies += u64::from(self.extra_busy_ns > 0);
        std::mem::take(&mut self.extra_busy_ns)
    }

    pub(super) fn update_next_byte(&mut self) {
        self.next_byte = match self.power {
            Power::On => self.upcoming.next_byte(),
            Power::Off { .. } => 0,
        };
    }
}
