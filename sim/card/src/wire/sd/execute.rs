//! What each command does (SD Physical Layer Simplified Specification, 4.7.4), and in which state it is
//! taken (4.8).

use super::card::{SdBusCard, Session};
use super::frame::{Command, Response};
use super::lines::Width;
use super::status::{State, bits};
use crate::BLOCK_BYTES;
use crate::wire::options::Kind;
use crate::wire::registers;

/// Clocks between CMD2 or ACMD41 and its response, exactly (NID of 4.12.4).
const NID_CLOCKS: u64 = 5;
/// Host capacity support, in the argument of ACMD41.
const HOST_HIGH_CAPACITY: u32 = 1 << 30;
/// The only voltage a host can ask for in CMD8: 2.7 to 3.6 V.
const VOLTAGE: u32 = 1;

/// A response, and the clocks before it.
pub(super) struct Answer {
    pub(super) gap_clocks: u64,
    pub(super) response: Response,
}

/// The command is not taken in this state, or not at all.
pub(super) struct Illegal;

pub(super) type Taken = Result<Response, Illegal>;

impl SdBusCard {
    /// Carries out a command. One that is not taken gets no response (4.6.1); the next one tells.
    pub(super) fn obey(&mut self, command: Command) -> Answer {
        let (index, argument) = (command.index(), command.argument());
        let mut gap_clocks = u64::from(self.options.ncr_clocks);
        if !command.crc_holds() {
            self.status.blame(bits::COM_CRC_ERROR);
            let response = Response::None;
            return Answer {
                gap_clocks,
                response,
            };
        }
        self.settle();
        let is_ready = self.pace.now_ns() >= self.busy_until_ns;
        self.status.begin(&self.state, is_ready);
        let is_app = std::mem::take(&mut self.session.app_command);
        let is_of_erase = matches!(index, 13 | 32 | 33 | 38 | 55);
        if self.session.erase_first.is_some() && !is_of_erase {
            self.forget_erase();
            self.status.note(bits::ERASE_RESET);
        }
        if index == 2 || is_app && index == 41 {
            gap_clocks = NID_CLOCKS;
        }
        let response = self.execute(is_app, index, argument).unwrap_or_else(|_| {
            self.status.blame(bits::ILLEGAL_COMMAND);
            Response::None
        });
        Answer {
            gap_clocks,
            response,
        }
    }

    fn execute(&mut self, is_app: bool, index: u8, argument: u32) -> Taken {
        match (is_app, index) {
            (_, 0) => Ok(self.reset()),
            (true, 41) => self.initialise(argument),
            (true, 6 | 13 | 22 | 23 | 51) => self.execute_app(index, argument),
            (_, 2 | 3 | 8) => self.identify(index, argument),
            (_, 7) => self.select(argument),
            (_, 9 | 10 | 13 | 55) => self.tell(index, argument),
            (_, 12) => self.stop(),
            (_, 6 | 16..=18 | 24 | 25 | 32 | 33 | 38) => self.execute_selected(index, argument),
            _ => Err(Illegal),
        }
    }

    /// What time has done: programming is over.
    fn settle(&mut self) {
        let is_over = self.pace.now_ns() >= self.busy_until_ns;
        match self.state {
            State::Prg if is_over => self.state = State::Tran,
            State::Dis if is_over => self.state = State::Stby,
            _ => (),
        }
    }

    /// CMD0. Blocks of a stream that was not ended are lost where their page was not whole.
    fn reset(&mut self) -> Response {
        self.card.stream_abandon();
        self.state = State::Idle;
        self.session = Session::new();
        self.status = Default::default();
        Response::None
    }

    /// ACMD41 (4.2.3.1): without voltages it only asks for the OCR; a card of high capacity waits for a
    /// host that knows of such.
    fn initialise(&mut self, argument: u32) -> Taken {
        if !matches!(self.state, State::Idle) {
            return Err(Illegal);
        }
        let (now_ns, kind) = (self.pace.now_ns(), self.options.kind);
        let is_known = self.session.knows_host && argument & HOST_HIGH_CAPACITY != 0;
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
        self.status.pass_over();
        Ok(Response::ocr(registers::ocr(kind, is_ready)))
    }

    /// CMD2, CMD3 and CMD8: a card gets its address.
    fn identify(&mut self, index: u8, argument: u32) -> Taken {
        match (index, &self.state) {
            (2, State::Ready) => {
                self.state = State::Ident;
                self.status.pass_over();
                Ok(Response::long(&self.registers.cid))
            }
            (3, State::Ident | State::Stby) => {
                self.session.rca = self.session.rca.wrapping_add(1).max(1);
                self.state = State::Stby;
                let rca = u32::from(self.session.rca) << 16;
                Ok(Response::short(3, rca | self.status.tell_short()))
            }
            (8, State::Idle) if self.options.kind != Kind::Version1 => {
                self.status.pass_over();
                // A card that cannot work at this voltage stays silent (4.2.2).
                if argument >> 8 & 0xF != VOLTAGE {
                    return Ok(Response::None);
                }
                self.session.knows_host = true;
                Ok(Response::short(8, argument & 0xFFF))
            }
            _ => Err(Illegal),
        }
    }

    /// CMD7. A card that programs goes on when it is no longer selected, off the bus.
    fn select(&mut self, argument: u32) -> Taken {
        let next = match (&self.state, self.is_mine(argument)) {
            (State::Stby, true) => State::Tran,
            (State::Dis, true) => State::Prg,
            (State::Stby | State::Tran | State::Data(_), false) => State::Stby,
            (State::Prg | State::Dis, false) => State::Dis,
            _ => return Err(Illegal),
        };
        self.state = next;
        Ok(match self.is_mine(argument) {
            true => self.r1(7),
            false => Response::None,
        })
    }

    /// CMD9, CMD10, CMD13 and CMD55, each for the card that has the address.
    fn tell(&mut self, index: u8, argument: u32) -> Taken {
        // Before it has an address, a card is meant by 0 (4.3.9.1).
        let is_first = matches!(self.state, State::Idle) && index == 55 && argument >> 16 == 0;
        if !is_first && !self.state.has_address() {
            return Err(Illegal);
        }
        if !is_first && !self.is_mine(argument) {
            return Ok(Response::None);
        }
        match index {
            13 => Ok(self.r1(13)),
            55 => {
                self.session.app_command = true;
                self.status.mark_app();
                Ok(self.r1(55))
            }
            _ if !matches!(self.state, State::Stby) => Err(Illegal),
            _ => {
                self.status.pass_over();
                let csd = registers::csd_on_sd_bus(self.registers.csd, self.session.high_speed);
                let cid = self.registers.cid;
                Ok(Response::long(if index == 9 { &csd } else { &cid }))
            }
        }
    }

    fn is_mine(&self, argument: u32) -> bool {
        self.session.rca != 0 && argument >> 16 == u32::from(self.session.rca)
    }

    /// CMD12: a read ends at once; what was written is made durable.
    fn stop(&mut self) -> Taken {
        match self.state {
            State::Data(_) => self.state = State::Tran,
            State::Rcv(_) => self.end_write(),
            _ => return Err(Illegal),
        }
        Ok(self.r1(12))
    }

    /// Commands for the card that is selected and has nothing else to do.
    fn execute_selected(&mut self, index: u8, argument: u32) -> Taken {
        if !matches!(self.state, State::Tran) {
            return Err(Illegal);
        }
        // What shows only in carrying it out, such as a block that cannot be read, is told later.
        let told = self.status.tell();
        let errors = match index {
            6 => self.switch(argument),
            16 => self.set_block_length(argument),
            17 | 18 => self.begin_read(argument, index == 18),
            24 | 25 => self.begin_write(argument, index == 25),
            32 | 33 => self.mark_erase(index == 32, argument),
            _ => self.erase(),
        };
        Ok(Response::short(index, told | errors))
    }

    /// Commands after CMD55 that others do not share a number with, or that mean something else then.
    fn execute_app(&mut self, index: u8, argument: u32) -> Taken {
        if !matches!(self.state, State::Tran) {
            return Err(Illegal);
        }
        self.status.mark_app();
        let mut errors = 0;
        match index {
            6 => errors = self.set_lines(argument),
            13 => self.send_sd_status(),
            22 => self.send_bytes(&self.session.blocks_written.to_be_bytes()),
            51 => {
                let scr = self.registers.scr;
                self.send_bytes(&scr);
            }
            // ACMD23 is advice, and this card erases when it has to.
            _ => (),
        }
        Ok(Response::short(index, self.status.tell() | errors))
    }

    /// ACMD6.
    fn set_lines(&mut self, argument: u32) -> u32 {
        self.session.width = match argument & 0b11 {
            0b00 => Width::One,
            0b10 => Width::Four,
            _ => return bits::OUT_OF_RANGE,
        };
        0
    }

    /// CMD16. Cards of high capacity take the command and stay with 512 bytes.
    fn set_block_length(&mut self, argument: u32) -> u32 {
        if !(1..=BLOCK_BYTES as u32).contains(&argument) {
            return bits::BLOCK_LEN_ERROR;
        }
        if self.options.kind != Kind::High {
            self.session.block_bytes = argument.into();
        }
        0
    }

    /// R1 and R1b (4.9.1, 4.9.2).
    fn r1(&mut self, index: u8) -> Response {
        Response::short(index, self.status.tell())
    }
}
