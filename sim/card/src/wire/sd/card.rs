//! The card's end of the SD bus: commands, blocks and the clocks that they take.

use super::frame::{COMMAND_CLOCKS, Command, Response};
use super::lines::{CrcStatus, LineSums, Width};
use super::status::{Sending, State, Status};
use crate::wire::options::{Options, OptionsError, check_clock};
use crate::wire::pace::Pace;
use crate::wire::registers::Registers;
use crate::{BLOCK_BYTES, Block, Card, Clock};

/// Clocks that a card needs after power-on, before the first command (6.4.1.1).
const POWER_UP_CLOCKS: u32 = 74;
/// Highest bus clock without and with high speed (4.3.10, group 1).
const DEFAULT_SPEED_HZ: u64 = 25_000_000;
const HIGH_SPEED_HZ: u64 = 50_000_000;
/// Clocks between a block and its CRC status (NCRC of 4.12.3).
const NCRC_CLOCKS: u64 = 2;
/// Clocks of a CRC status: a start bit, three bits and an end bit.
const CRC_STATUS_CLOCKS: u64 = 5;
/// Number of clocks that the end bit of the busy signal takes (4.12.3).
const END_CLOCKS: u64 = 1;

/// State that a reset clears.
#[derive(Default)]
pub(super) struct Session {
    pub(super) width: Width,
    pub(super) high_speed: bool,
    /// Relative card address; 0 if none has been assigned.
    pub(super) rca: u16,
    /// True if the previous command was CMD55.
    pub(super) app_command: bool,
    pub(super) cmd8_received: bool,
    pub(super) init_began_ns: Option<u64>,
    pub(super) block_bytes: u64,
    pub(super) erase_first: Option<u64>,
    pub(super) erase_last: Option<u64>,
    pub(super) blocks_written: u32,
}

impl Session {
    pub(super) fn new() -> Session {
        Session {
            block_bytes: BLOCK_BYTES as u64,
            ..Session::default()
        }
    }
}

/// A card on an SD bus of its own. Responds to any command as a card would, and never panics.
///
/// A clock is one bus period on the virtual [`Clock`]. The host controls the time between calls, during
/// which it stops the bus (4.4); the card keeps working.
pub struct SdBusCard {
    pub(super) card: Card,
    pub(super) options: Options,
    pub(super) registers: Registers,
    pub(super) session: Session,
    pub(super) state: State,
    pub(super) status: Status,
    /// Block that the card is sending to the host.
    pub(super) buffer: Block,
    pub(super) busy_until_ns: u64,
    pub(super) pace: Pace,
    /// Total number of bus clocks so far.
    pub(super) clocks: u64,
    host_width: Width,
    power_up_clocks: u32,
    is_powered: bool,
}

impl SdBusCard {
    /// Puts a card on a bus with a clock of `clock_hz`. The card has just been powered on.
    ///
    /// # Errors
    /// [`OptionsError`] if an option is out of range.
    pub fn new(
        card: Card,
        options: Options,
        clock: Clock,
        clock_hz: u32,
    ) -> Result<SdBusCard, OptionsError> {
        options.check(card.blocks())?;
        check_clock(clock_hz)?;
        Ok(SdBusCard {
            registers: Registers::new(&options, card.blocks()),
            card,
            options,
            session: Session::new(),
            state: State::Idle,
            status: Status::default(),
            buffer: [0; BLOCK_BYTES],
            busy_until_ns: 0,
            pace: Pace::new(clock, clock_hz),
            clocks: 0,
            host_width: Width::One,
            power_up_clocks: 0,
            is_powered: true,
        })
    }

    /// Takes the card off the bus.
    pub fn into_card(self) -> Card {
        self.card
    }

    /// Returns the card.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Returns the virtual clock, which every bus clock advances.
    pub fn clock(&self) -> &Clock {
        self.pace.clock()
    }

    /// Returns the number of bus clocks so far.
    pub fn clocks(&self) -> u64 {
        self.clocks
    }

    /// Returns the time, in ns of the virtual clock, at which all commands are complete. The time may be in
    /// the past.
    pub fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// Cuts the power until [`SdBusCard::power_on`]: the card receives no commands and transfers no blocks.
    pub fn power_cut(&mut self) {
        if self.is_powered {
            self.card.power_cut(self.pace.now_ns());
        }
        self.is_powered = false;
        self.reset_to_power_up();
    }

    /// Powers on a card that has no power, as if it had just been inserted. Has no effect on a powered card.
    pub fn power_on(&mut self) {
        if !self.is_powered {
            self.card.power_on(self.pace.now_ns());
            self.is_powered = true;
            self.reset_to_power_up();
        }
    }

    fn reset_to_power_up(&mut self) {
        self.session = Session::new();
        self.state = State::Idle;
        self.status = Status::default();
        self.busy_until_ns = 0;
        self.power_up_clocks = 0;
    }

    /// Changes the clock of the bus, in Hz. Above 25 MHz, a card receives no commands unless CMD6 has
    /// switched it to high speed.
    ///
    /// # Errors
    /// [`OptionsError`] if the clock is out of range.
    pub fn set_clock_hz(&mut self, clock_hz: u32) -> Result<(), OptionsError> {
        check_clock(clock_hz)?;
        self.pace = Pace::new(self.clock().clone(), clock_hz);
        Ok(())
    }

    /// Changes the bus width of the host. No block is transferred while the card's bus width, which ACMD6
    /// sets, is different.
    pub fn set_width(&mut self, width: Width) {
        self.host_width = width;
    }

    /// Clocks the idle bus, which the host uses to observe the minimum times NRC, NCC and NWR of 4.12.4.
    pub fn idle(&mut self, clocks: u32) {
        self.advance(clocks.into());
        self.power_up_clocks = self.power_up_clocks.saturating_add(clocks);
    }

    /// Sends a command and receives the response: 48 clocks, plus NCR or NID and the length of the response
    /// if there is one (4.12.1).
    pub fn command(&mut self, command: Command) -> Response {
        self.advance(COMMAND_CLOCKS);
        if !self.receives_commands() || !command.is_framed() {
            return Response::None;
        }
        let response = self.process_command(command);
        if response.response != Response::None {
            self.advance(response.gap_clocks + response.response.clocks());
        }
        response.response
    }

    /// Receives a block with its checksums; returns `None` if no block has begun after `clocks_max` clocks.
    /// Excess bytes of the block are lost, and missing ones read as 0xFF.
    ///
    /// The block may have begun during the response to its command, which is sent on another line.
    pub fn read_block(&mut self, data: &mut [u8], clocks_max: u32) -> Option<LineSums> {
        let bytes = self.await_block(clocks_max)?;
        data.fill(0xFF);
        let room = data.len().min(bytes);
        data[..room].copy_from_slice(&self.buffer[..room]);
        let sums = self.session.width.sums(&self.buffer[..bytes]);
        self.next_block();
        Some(sums)
    }

    /// Sends a block with the given checksums and receives the CRC status; returns `None` if the card sends
    /// no CRC status.
    ///
    /// A card that expects no block, is busy, has another bus width than the host, or has rejected an earlier
    /// block (4.3.4) ignores the block.
    pub fn write_block(&mut self, data: &Block, sums: LineSums) -> Option<CrcStatus> {
        let is_received = !self.is_busy() && self.host_width == self.session.width;
        self.advance(self.host_width.block_clocks(BLOCK_BYTES));
        let State::Rcv(write) = self.state else {
            return None;
        };
        if !is_received || write.failed {
            return None;
        }
        let status = self.receive_block(write, data, &sums);
        self.advance(NCRC_CLOCKS + CRC_STATUS_CLOCKS);
        Some(status)
    }

    /// Returns true while the card holds DAT0 low.
    pub fn is_busy(&self) -> bool {
        let may_be = matches!(self.state, State::Rcv(_) | State::Prg);
        may_be && self.pace.now_ns() < self.busy_until_ns
    }

    /// Clocks the bus until the card has released DAT0 and sent the end bit, but at most `clocks_max` times;
    /// returns true if the card has released DAT0.
    pub fn wait(&mut self, clocks_max: u32) -> bool {
        if !self.is_busy() {
            return true;
        }
        let clocks = self.pace.clocks_until(self.busy_until_ns) + END_CLOCKS;
        let within = clocks.min(clocks_max.into());
        self.advance(within);
        within == clocks
    }

    /// Clocks the bus until the end of the block that the card sends; returns its length in bytes.
    fn await_block(&mut self, clocks_max: u32) -> Option<usize> {
        let deadline = self.clocks + u64::from(clocks_max);
        let start = self.block_begins().filter(|start| *start <= deadline);
        let (
            Some(start),
            State::Data(Sending {
                bytes: Some(bytes), ..
            }),
        ) = (start, self.state)
        else {
            self.advance(clocks_max.into());
            return None;
        };
        let end = start + self.session.width.block_clocks(bytes);
        self.advance(end.saturating_sub(self.clocks));
        Some(bytes)
    }

    /// Advances the bus; every clock passes through this function.
    fn advance(&mut self, clocks: u64) {
        let start = self.block_begins();
        self.clocks += clocks;
        self.pace.clocks(clocks);
        if let State::Data(sending) = &mut self.state {
            sending.began = start.filter(|start| *start < self.clocks);
        }
    }

    /// Returns the bus clock, past or future, at which the block that the card sends starts.
    fn block_begins(&self) -> Option<u64> {
        let State::Data(sending) = self.state else {
            return None;
        };
        sending.bytes?;
        if self.host_width != self.session.width {
            return None;
        }
        let until_ready = self.pace.clocks_until(sending.ready_ns);
        let ready = self.clocks.saturating_add(until_ready);
        Some(sending.began.unwrap_or(sending.earliest.max(ready)))
    }

    fn receives_commands(&self) -> bool {
        let max_hz = match self.session.high_speed {
            true => HIGH_SPEED_HZ,
            false => DEFAULT_SPEED_HZ,
        };
        self.is_powered && self.power_up_clocks >= POWER_UP_CLOCKS && self.pace.clock_hz() <= max_hz
    }
}
