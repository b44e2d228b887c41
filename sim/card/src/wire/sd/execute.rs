//! Execution of commands (SD Physical Layer Simplified Specification, 4.7.4), and the states in which they
//! are allowed (4.8).

use super::card::{SdBusCard, Session};
use super::frame::{Command, Response};
use super::lines::Width;
use super::status::{State, bits};
use crate::BLOCK_BYTES;
use crate::wire::options::Kind;
use crate::wire::registers;

/// Fixed number of clocks between CMD2 or ACMD41 and the response (NID of 4.12.4).
const NID_CLOCKS: u64 = 5;
/// Host capacity support bit in the argument of ACMD41.
const HOST_HIGH_CAPACITY: u32 = 1 << 30;
/// The only voltage that a host can request in CMD8: 2.7 to 3.6 V.
const VOLTAGE: u32 = 1;

/// A response, with the number of clocks between the command and the response.
pub(super) struct TimedResponse {
    pub(super) gap_clocks: u64,
    pub(super) response: Response,
}

/// The command is not supported, or not allowed in the card's current state.
pub(super) struct Illegal;

pub(super) type CommandResult = Result<Response, Illegal>;

impl SdBusCard {
    /// Executes a command. An illegal command gets no response (4.6.1); the response to the next command
    /// reports the error.
    pub(super) fn process_command(&mut self, command: Command) -> TimedResponse {
        let (index, argument) = (command.index(), command.argument());
        let mut gap_clocks = u64::from(self.options.ncr_clocks);
        if !command.crc_matches() {
            self.status.set_command_error(bits::COM_CRC_ERROR);
            let response = Response::None;
            return TimedResponse {
                gap_clocks,
                response,
            };
        }
        self.update_state();
        let is_ready = self.pace.now_ns() >= self.busy_until_ns;
        self.status.begin_command(&self.state, is_ready);
        let is_app_command = std::mem::take(&mut self.session.app_command);
        let is_erase_sequence = matches!(index, 13 | 32 | 33 | 38 | 55);
        if self.session.erase_first.is_some() && !is_erase_sequence {
            self.clear_erase_range();
            self.status.set_error(bits::ERASE_RESET);
        }
        if index == 2 || is_app_command && index == 41 {
            gap_clocks = NID_CLOCKS;
        }
        let response = self
            .execute(is_app_command, index, argument)
            .unwrap_or_else(|_| {
                self.status.set_command_error(bits::ILLEGAL_COMMAND);
                Response::None
            });
        TimedResponse {
            gap_clocks,
            response,
        }
    }

    fn execute(&mut self, is_app_command: bool, index: u8, argument: u32) -> CommandResult {
        match (is_app_command, index) {
            (_, 0) => Ok(self.reset()),
            (true, 41) => self.initialise(argument),
            (true, 6 | 13 | 22 | 23 | 51) => self.execute_app(index, argument),
            (_, 2 | 3 | 8) => self.identify(index, argument),
            (_, 7) => self.select(argument),
            (_, 9 | 10 | 13 | 55) => self.addressed_command(index, argument),
            (_, 12) => self.stop(),
            (_, 6 | 16..=18 | 24 | 25 | 32 | 33 | 38) => self.execute_selected(index, argument),
            _ => Err(Illegal),
        }
    }

    /// Updates the card state if programming has ended.
    fn update_state(&mut self) {
        let is_over = self.pace.now_ns() >= self.busy_until_ns;
        match self.state {
            State::Prg if is_over => self.state = State::Tran,
            State::Dis if is_over => self.state = State::Stby,
            _ => (),
        }
    }

    /// CMD0. Blocks of an unfinished stream are lost if their page is incomplete.
    fn reset(&mut self) -> Response {
        self.card.stream_abandon();
        self.state = State::Idle;
        self.session = Session::new();
        self.status = Default::default();
        Response::None
    }

    /// ACMD41 (4.2.3.1): an argument without voltages only queries the OCR; a high-capacity card waits for
    /// a host that supports high capacity.
    fn initialise(&mut self, argument: u32) -> CommandResult {
        if !matches!(self.state, State::Idle) {
            return Err(Illegal);
        }
        let (now_ns, kind) = (self.pace.now_ns(), self.options.kind);
        let is_known = self.session.cmd8_received && argument & HOST_HIGH_CAPACITY != 0;
        let voltages = u32::from_be_bytes(registers::ocr(kind, false));
        let mut is_ready = false;
        if argument & voltages != 0 && (kind != Kind::High || is_known) {
            let began_ns = *self.session.init_began_ns.get_or_insert(now_ns);
            is_ready = now_ns - began_ns >= u64::from(self.options.init_us) * 1000
                && now_ns >= self.busy_until_ns;
        }
        if is_ready {
            self.state = State::Ready;
        }
        self.status.clear_command_error();
        Ok(Response::ocr(registers::ocr(kind, is_ready)))
    }

    /// Executes CMD2, CMD3 and CMD8: identification and address assignment.
    fn identify(&mut self, index: u8, argument: u32) -> CommandResult {
        match (index, &self.state) {
            (2, State::Ready) => {
                self.state = State::Ident;
                self.status.clear_command_error();
                Ok(Response::long(&self.registers.cid))
            }
            (3, State::Ident | State::Stby) => {
                self.session.rca = self.session.rca.wrapping_add(1).max(1);
                self.state = State::Stby;
                let rca = u32::from(self.session.rca) << 16;
                Ok(Response::short(3, rca | self.status.take_r6()))
            }
            (8, State::Idle) if self.options.kind != Kind::Version1 => {
                self.status.clear_command_error();
                // A card that does not support the requested voltage does not respond (4.2.2).
                if argument >> 8 & 0xF != VOLTAGE {
                    return Ok(Response::None);
                }
                self.session.cmd8_received = true;
                Ok(Response::short(8, argument & 0xFFF))
            }
            _ => Err(Illegal),
        }
    }

    /// CMD7. A card that is deselected while programming continues to program.
    fn select(&mut self, argument: u32) -> CommandResult {
        let next = match (&self.state, self.is_addressed(argument)) {
            (State::Stby, true) => State::Tran,
            (State::Dis, true) => State::Prg,
            (State::Stby | State::Tran | State::Data(_), false) => State::Stby,
            (State::Prg | State::Dis, false) => State::Dis,
            _ => return Err(Illegal),
        };
        self.state = next;
        Ok(match self.is_addressed(argument) {
            true => self.r1(7),
            false => Response::None,
        })
    }

    /// CMD9, CMD10, CMD13 and CMD55, which address a card by its relative card address (RCA).
    fn addressed_command(&mut self, index: u8, argument: u32) -> CommandResult {
        // Before a card has an RCA, it is addressed by 0 (4.3.9.1).
        let is_first = matches!(self.state, State::Idle) && index == 55 && argument >> 16 == 0;
        if !is_first && !self.state.has_address() {
            return Err(Illegal);
        }
        if !is_first && !self.is_addressed(argument) {
            return Ok(Response::None);
        }
        match index {
            13 => Ok(self.r1(13)),
            55 => {
                self.session.app_command = true;
                self.status.set_app_command();
                Ok(self.r1(55))
            }
            _ if !matches!(self.state, State::Stby) => Err(Illegal),
            _ => {
                self.status.clear_command_error();
                let csd = registers::csd_at_speed(self.registers.csd, self.session.high_speed);
                let cid = self.registers.cid;
                Ok(Response::long(if index == 9 { &csd } else { &cid }))
            }
        }
    }

    fn is_addressed(&self, argument: u32) -> bool {
        self.session.rca != 0 && argument >> 16 == u32::from(self.session.rca)
    }

    /// CMD12 ends a read at once, or makes the accepted blocks of a write durable.
    fn stop(&mut self) -> CommandResult {
        match self.state {
            State::Data(_) => self.state = State::Tran,
            State::Rcv(_) => self.end_write(),
            _ => return Err(Illegal),
        }
        Ok(self.r1(12))
    }

    /// Executes commands that require the transfer state.
    fn execute_selected(&mut self, index: u8, argument: u32) -> CommandResult {
        if !matches!(self.state, State::Tran) {
            return Err(Illegal);
        }
        // Errors found during execution, such as an unreadable block, are reported by a later response.
        let status = self.status.take_r1();
        let errors = match index {
            6 => self.switch(argument),
            16 => self.set_block_length(argument),
            17 | 18 => self.begin_read(argument, index == 18),
            24 | 25 => self.begin_write(argument, index == 25),
            32 | 33 => self.set_erase_bound(index == 32, argument),
            _ => self.erase(),
        };
        Ok(Response::short(index, status | errors))
    }

    /// Executes application commands whose number is otherwise unused or has another meaning.
    fn execute_app(&mut self, index: u8, argument: u32) -> CommandResult {
        if !matches!(self.state, State::Tran) {
            return Err(Illegal);
        }
        self.status.set_app_command();
        let mut errors = 0;
        match index {
            6 => errors = self.set_bus_width(argument),
            13 => self.send_sd_status(),
            22 => self.send_bytes(&self.session.blocks_written.to_be_bytes()),
            51 => {
                let scr = self.registers.scr;
                self.send_bytes(&scr);
            }
            // ACMD23 is only a hint; this card erases blocks when it needs them.
            _ => (),
        }
        Ok(Response::short(index, self.status.take_r1() | errors))
    }

    /// ACMD6: sets the bus width.
    fn set_bus_width(&mut self, argument: u32) -> u32 {
        self.session.width = match argument & 0b11 {
            0b00 => Width::One,
            0b10 => Width::Four,
            _ => return bits::OUT_OF_RANGE,
        };
        0
    }

    /// CMD16. High-capacity cards accept the command and keep 512 bytes.
    fn set_block_length(&mut self, argument: u32) -> u32 {
        if !(1..=BLOCK_BYTES as u32).contains(&argument) {
            return bits::BLOCK_LEN_ERROR;
        }
        if self.options.kind != Kind::High {
            self.session.block_bytes = argument.into();
        }
        0
    }

    /// Creates R1 or R1b (4.9.1, 4.9.2).
    fn r1(&mut self, index: u8) -> Response {
        Response::short(index, self.status.take_r1())
    }
}
