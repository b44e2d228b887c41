//! The card status (4.10.1) and the states of a card (4.8).

use super::transfer::{Sending, Write};

/// Errors and events of the card status.
pub(super) mod bits {
    pub(crate) const OUT_OF_RANGE: u32 = 1 << 31;
    pub(crate) const ADDRESS_ERROR: u32 = 1 << 30;
    pub(crate) const BLOCK_LEN_ERROR: u32 = 1 << 29;
    pub(crate) const ERASE_SEQ_ERROR: u32 = 1 << 28;
    pub(crate) const ERASE_PARAM: u32 = 1 << 27;
    pub(crate) const WP_VIOLATION: u32 = 1 << 26;
    pub(crate) const COM_CRC_ERROR: u32 = 1 << 23;
    pub(crate) const ILLEGAL_COMMAND: u32 = 1 << 22;
    pub(crate) const CARD_ECC_FAILED: u32 = 1 << 21;
    pub(crate) const ERROR: u32 = 1 << 19;
    pub(crate) const WP_ERASE_SKIP: u32 = 1 << 15;
    pub(crate) const ERASE_RESET: u32 = 1 << 13;
    pub(super) const READY_FOR_DATA: u32 = 1 << 8;
    pub(super) const APP_CMD: u32 = 1 << 5;
}

/// Where CURRENT_STATE is.
const STATE_SHIFT: u32 = 9;

/// What a card is at, with what it needs for that.
#[derive(Clone, Copy)]
pub(super) enum State {
    Idle,
    Ready,
    Ident,
    Stby,
    Tran,
    Data(Sending),
    Rcv(Write),
    Prg,
    Dis,
}

impl State {
    fn code(&self) -> u32 {
        match self {
            State::Idle => 0,
            State::Ready => 1,
            State::Ident => 2,
            State::Stby => 3,
            State::Tran => 4,
            State::Data(_) => 5,
            State::Rcv(_) => 6,
            State::Prg => 7,
            State::Dis => 8,
        }
    }

    /// Whether this is the data transfer mode, in which a card has an address.
    pub(super) fn has_address(&self) -> bool {
        !matches!(self, State::Idle | State::Ready | State::Ident)
    }
}

/// What is told by the next response, and when it is forgotten.
#[derive(Default)]
pub(super) struct Status {
    /// State and READY_FOR_DATA when the command came, and APP_CMD (conditions A and B).
    now: u32,
    /// What was wrong with the command before: gone after one command (condition B).
    before: u32,
    /// What waits for a response that tells of it (condition C).
    kept: u32,
}

impl Status {
    /// A command has come whose checksum holds.
    pub(super) fn begin(&mut self, state: &State, is_ready: bool) {
        let ready = if is_ready { bits::READY_FOR_DATA } else { 0 };
        self.now = state.code() << STATE_SHIFT | ready;
    }

    /// It is or comes before an application command.
    pub(super) fn mark_app(&mut self) {
        self.now |= bits::APP_CMD;
    }

    /// The command that has come was not taken; told once, with the command after it.
    pub(super) fn blame(&mut self, error: u32) {
        self.before = error;
    }

    /// Told by the next response that has room for it.
    pub(super) fn note(&mut self, error: u32) {
        self.kept |= error;
    }

    /// A response that tells nothing of the status.
    pub(super) fn pass_over(&mut self) {
        self.before = 0;
    }

    /// For R1 and R1b.
    pub(super) fn tell(&mut self) -> u32 {
        self.now | std::mem::take(&mut self.before) | std::mem::take(&mut self.kept)
    }

    /// For R6 (4.9.5): bits 23, 22, 19 and 12 to 0. What it has no room for is kept.
    pub(super) fn tell_short(&mut self) -> u32 {
        let all = self.now | std::mem::take(&mut self.before) | self.kept;
        self.kept &= !bits::ERROR;
        all >> 8 & 0xC000 | all >> 6 & 0x2000 | all & 0x1FFF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_illegal_command_is_told_by_the_next_command_only() {
        let mut status = Status::default();
        status.begin(&State::Tran, true);
        status.blame(bits::ILLEGAL_COMMAND);
        status.begin(&State::Tran, true);
        assert_eq!(status.tell(), bits::ILLEGAL_COMMAND | 0x900);
        assert_eq!(status.tell(), 0x900);
        status.blame(bits::ILLEGAL_COMMAND);
        status.pass_over();
        assert_eq!(status.tell(), 0x900);
    }

    #[test]
    fn r6_tells_three_errors_and_keeps_the_others() {
        let mut status = Status::default();
        status.begin(&State::Ident, true);
        status.blame(bits::COM_CRC_ERROR);
        status.note(bits::ERROR | bits::OUT_OF_RANGE);
        assert_eq!(status.tell_short(), 0x8000 | 0x2000 | 0x500);
        assert_eq!(status.tell(), bits::OUT_OF_RANGE | 0x500);
    }
}
