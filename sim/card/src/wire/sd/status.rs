//! The card status (4.10.1) and the states of a card (4.8).

/// Error and event bits of the card status.
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

/// Bit position of the CURRENT_STATE field in the card status.
const STATE_SHIFT: u32 = 9;

/// State of a card (4.8), with its data.
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

/// A block that the card is sending to the host, or a failed read.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    /// Length of the block in the buffer; `None` if the read failed and the card waits for CMD12.
    pub(super) bytes: Option<usize>,
    /// Earliest time at which the block may start, in ns.
    pub(super) ready_ns: u64,
    /// Earliest bus clock at which the block may start.
    pub(super) earliest: u64,
    /// Bus clock at which the block started; `None` before its start.
    pub(super) began: Option<u64>,
    /// Byte address of the next block to send; `None` if this block is the last.
    pub(super) next: Option<u64>,
}

/// A write command in progress.
#[derive(Clone, Copy)]
pub(super) struct Write {
    /// True if the command is CMD25.
    pub(super) is_multiple: bool,
    /// Number of the next block to write.
    pub(super) block: u64,
    /// True once a block was rejected; the blocks after it are ignored.
    pub(super) failed: bool,
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

    /// Returns true in the data transfer mode, in which a card has an address.
    pub(super) fn has_address(&self) -> bool {
        !matches!(self, State::Idle | State::Ready | State::Ident)
    }
}

/// Status bits for the next response, grouped by the condition that clears them.
#[derive(Default)]
pub(super) struct Status {
    /// State and READY_FOR_DATA at the arrival of the command, and APP_CMD (conditions A and B).
    current: u32,
    /// Errors of the previous command; cleared by the next command (condition B).
    command_error: u32,
    /// Errors that are pending until a response reports them (condition C).
    pending: u32,
}

impl Status {
    /// Records the arrival of a command with a correct checksum.
    pub(super) fn begin_command(&mut self, state: &State, is_ready: bool) {
        let ready = if is_ready { bits::READY_FOR_DATA } else { 0 };
        self.current = state.code() << STATE_SHIFT | ready;
    }

    /// Sets APP_CMD: the current command is CMD55 or an application command.
    pub(super) fn set_app_command(&mut self) {
        self.current |= bits::APP_CMD;
    }

    /// Sets the error bit for a rejected command; the error is reported only with the next command.
    pub(super) fn set_command_error(&mut self, error: u32) {
        self.command_error = error;
    }

    /// Sets an error that stays pending until a response can report it.
    pub(super) fn set_error(&mut self, error: u32) {
        self.pending |= error;
    }

    /// Records a response that does not contain the status.
    pub(super) fn clear_command_error(&mut self) {
        self.command_error = 0;
    }

    /// Returns the status for R1 and R1b, and clears the reported errors.
    pub(super) fn take_r1(&mut self) -> u32 {
        self.current | std::mem::take(&mut self.command_error) | std::mem::take(&mut self.pending)
    }

    /// Returns the status for R6 (4.9.5): bits 23, 22, 19 and 12 to 0. Errors in other bits stay pending.
    pub(super) fn take_r6(&mut self) -> u32 {
        let all = self.current | std::mem::take(&mut self.command_error) | self.pending;
        self.pending &= !bits::ERROR;
        all >> 8 & 0xC000 | all >> 6 & 0x2000 | all & 0x1FFF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_illegal_command_is_reported_by_the_next_command_only() {
        let mut status = Status::default();
        status.begin_command(&State::Tran, true);
        status.set_command_error(bits::ILLEGAL_COMMAND);
        status.begin_command(&State::Tran, true);
        assert_eq!(status.take_r1(), bits::ILLEGAL_COMMAND | 0x900);
        assert_eq!(status.take_r1(), 0x900);
        status.set_command_error(bits::ILLEGAL_COMMAND);
        status.clear_command_error();
        assert_eq!(status.take_r1(), 0x900);
    }

    #[test]
    fn r6_reports_three_errors_and_the_others_stay_pending() {
        let mut status = Status::default();
        status.begin_command(&State::Ident, true);
        status.set_command_error(bits::COM_CRC_ERROR);
        status.set_error(bits::ERROR | bits::OUT_OF_RANGE);
        assert_eq!(status.take_r6(), 0x8000 | 0x2000 | 0x500);
        assert_eq!(status.take_r1(), bits::OUT_OF_RANGE | 0x500);
    }
}
