//! The card as one end of the SD bus: commands, blocks and the clocks that they take.

use super::frame::{COMMAND_CLOCKS, Command, Response};
use super::lines::{LineSums, Width};
use super::status::{State, Status};
use super::transfer::{CrcStatus, Sending};
use crate::wire::options::{Options, OptionsError, check_clock};
use crate::wire::pace::Pace;
use crate::wire::registers::Registers;
use crate::{BLOCK_BYTES, Block, Card, Clock};

/// Clocks that a card wants after power came, before the first command (6.4.1.1).
const POWER_UP_CLOCKS: u32 = 74;
/// Fastest bus without and with high speed (4.3.10, group 1).
const DEFAULT_SPEED_HZ: u64 = 25_000_000;
const HIGH_SPEED_HZ: u64 = 50_000_000;
/// Clocks between a block and its CRC status (NCRC of 4.12.3), ...
const NCRC_CLOCKS: u64 = 2;
/// ... which is a start bit, three bits and an end bit.
const CRC_STATUS_CLOCKS: u64 = 5;
/// The end bit of busy (4.12.3).
const END_CLOCKS: u64 = 1;

/// What a reset does away with.
#[derive(Default)]
pub(super) struct Session {
    pub(super) width: Width,
    pub(super) high_speed: bool,
    /// Relative card address; none has 0.
    pub(super) rca: u16,
    /// The command before was CMD55.
    pub(super) app_command: bool,
    pub(super) knows_host: bool,
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

/// A card on an SD bus of its own: it answers every command as a card would, and never panics.
///
/// A clock is one period of the bus on the virtual [`Clock`]. Time that passes between calls is the
/// host's, who stops the bus meanwhile (4.4); the card goes on with its work.
pub struct SdBusCard {
    pub(super) card: Card,
    pub(super) options: Options,
    pub(super) registers: Registers,
    pub(super) session: Session,
    pub(super) state: State,
    pub(super) status: Status,
    /// The block that goes to the host.
    pub(super) buffer: Block,
    pub(super) busy_until_ns: u64,
    pub(super) pace: Pace,
    /// All that there were.
    pub(super) clocks: u64,
    host_width: Width,
    power_up_clocks: u32,
    is_powered: bool,
}

impl SdBusCard {
    /// Puts a card on a bus of this clock, in Hz. Power has just come.
    ///
    /// # Errors
    /// [`OptionsError`] if no card has such options.
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

    /// The card itself.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The clock that the bus moves on.
    pub fn clock(&self) -> &Clock {
        self.pace.clock()
    }

    /// Clocks of the bus so far.
    pub fn clocks(&self) -> u64 {
        self.clocks
    }

    /// When the card has done all it was told, in ns of the virtual clock; may have passed.
    pub fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// Takes the power away until [`SdBusCard::power_on`]: no command is heard, no block moves.
    pub fn power_cut(&mut self) {
        if self.is_powered {
            self.card.power_cut(self.pace.now_ns());
        }
        self.is_powered = false;
        self.reset_to_power_up();
    }

    /// Gives power to a card that has none: it is as freshly plugged in. Does nothing to another.
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

    /// Changes the clock of the bus, in Hz. Above 25 MHz a card hears no commands unless CMD6 has
    /// switched it to high speed.
    ///
    /// # Errors
    /// [`OptionsError`] if no bus has such a clock.
    pub fn set_clock_hz(&mut self, clock_hz: u32) -> Result<(), OptionsError> {
        check_clock(clock_hz)?;
        self.pace = Pace::new(self.clock().clone(), clock_hz);
        Ok(())
    }

    /// Changes the number of lines that the host looks at and drives. No block comes across while the
    /// card, told by ACMD6, has another.
    pub fn set_width(&mut self, width: Width) {
        self.host_width = width;
    }

    /// Lets clocks pass with all lines left high: NRC, NCC and NWR of 4.12.4 are the host's to keep.
    pub fn idle(&mut self, clocks: u32) {
        self.pass(clocks.into());
        self.power_up_clocks = self.power_up_clocks.saturating_add(clocks);
    }

    /// Sends a command and takes the response: 48 clocks, and as many as NCR or NID and the response
    /// have if there is one (4.12.1).
    pub fn command(&mut self, command: Command) -> Response {
        self.pass(COMMAND_CLOCKS);
        if !self.hears() || !command.is_framed() {
            return Response::None;
        }
        let answer = self.obey(command);
        if answer.response != Response::None {
            self.pass(answer.gap_clocks + answer.response.clocks());
        }
        answer.response
    }

    /// Takes a block, with its checksums as they came; `None` if none has begun after `clocks_max`
    /// clocks. What the host has no room for is lost, and what does not come is 0xFF.
    ///
    /// The block may have begun while the response to its command was on its way, which is on another
    /// line.
    pub fn read_block(&mut self, data: &mut [u8], clocks_max: u32) -> Option<LineSums> {
        let bytes = self.await_block(clocks_max)?;
        data.fill(0xFF);
        let room = data.len().min(bytes);
        data[..room].copy_from_slice(&self.buffer[..room]);
        let sums = self.session.width.sums(&self.buffer[..bytes]);
        self.next_block();
        Some(sums)
    }

    /// Sends a block with these checksums, and takes the CRC status; `None` if there is none.
    ///
    /// A card that expects no block, or is busy, leaves it alone, and so it does after a block that it
    /// refused (4.3.4).
    pub fn write_block(&mut self, data: &Block, sums: LineSums) -> Option<CrcStatus> {
        let is_heard = !self.is_busy() && self.host_width == self.session.width;
        self.pass(self.host_width.block_clocks(BLOCK_BYTES));
        let State::Rcv(write) = self.state else {
            return None;
        };
        if !is_heard || write.failed {
            return None;
        }
        let status = self.take_block(write, data, &sums);
        self.pass(NCRC_CLOCKS + CRC_STATUS_CLOCKS);
        Some(status)
    }

    /// Whether the card holds DAT0 low.
    pub fn is_busy(&self) -> bool {
        let may_be = matches!(self.state, State::Rcv(_) | State::Prg);
        may_be && self.pace.now_ns() < self.busy_until_ns
    }

    /// Lets clocks pass until the card has let go of DAT0, its end bit included, and no more than
    /// `clocks_max`; returns whether it has.
    pub fn wait(&mut self, clocks_max: u32) -> bool {
        if !self.is_busy() {
            return true;
        }
        let clocks = self.pace.clocks_until(self.busy_until_ns) + END_CLOCKS;
        let within = clocks.min(clocks_max.into());
        self.pass(within);
        within == clocks
    }

    /// Lets clocks pass until the block is over that the card has to send; returns its bytes.
    fn await_block(&mut self, clocks_max: u32) -> Option<usize> {
        let deadline = self.clocks + u64::from(clocks_max);
        let begin = self.block_begins().filter(|begin| *begin <= deadline);
        let (
            Some(begin),
            State::Data(Sending {
                bytes: Some(bytes), ..
            }),
        ) = (begin, self.state)
        else {
            self.pass(clocks_max.into());
            return None;
        };
        let end = begin + self.session.width.block_clocks(bytes);
        self.pass(end.saturating_sub(self.clocks));
        Some(bytes)
    }

    /// All clocks go through here.
    fn pass(&mut self, clocks: u64) {
        let begin = self.block_begins();
        self.clocks += clocks;
        self.pace.clocks(clocks);
        if let State::Data(sending) = &mut self.state {
            sending.began = begin.filter(|begin| *begin < self.clocks);
        }
    }

    /// Clock at which the block begins, or began, that the card has to send.
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

    /// Whether a command gets through.
    fn hears(&self) -> bool {
        let max_hz = match self.session.high_speed {
            true => HIGH_SPEED_HZ,
            false => DEFAULT_SPEED_HZ,
        };
        self.is_powered && self.power_up_clocks >= POWER_UP_CLOCKS && self.pace.clock_hz() <= max_hz
    }
}
