//! What each command does (SD Physical Layer Simplified Specification, 7.3.1.3).

use super::card::{Session, SpiCard};
use super::command::{Answer, Command, r1, r2};
use super::transfer::{Task, Write};
use crate::BLOCK_BYTES;
use crate::wire::options::Kind;
use crate::wire::registers;

/// Host capacity support, in the argument of ACMD41.
const HOST_HIGH_CAPACITY: u32 = 1 << 30;
/// The only voltage a host can ask for in CMD8: 2.7 to 3.6 V.
const VOLTAGE: u32 = 1;

impl SpiCard {
    /// Carries out a command, or says why not.
    pub(super) fn obey(&mut self, command: Command) {
        let Command {
            index, argument, ..
        } = command;
        // A card on the SD bus only leaves it for a whole CMD0 (7.2.1).
        if !self.session.in_spi_mode && (index != 0 || !command.crc_holds) {
            return;
        }
        let is_checked = self.session.crc_on || matches!(index, 0 | 8);
        if is_checked && !command.crc_holds {
            return self.reply(r1::CRC_ERROR);
        }
        let is_app = std::mem::take(&mut self.session.app_command);
        let is_of_erase = matches!(index, 13 | 32 | 33 | 38 | 55);
        if self.session.erase_first.is_some() && !is_of_erase {
            self.forget_erase();
            self.session.erase_reset = true;
        }
        let in_turn = match self.task {
            Task::None => index != 12,
            Task::Send(_) | Task::Stalled => matches!(index, 0 | 12),
            Task::Await(_) | Task::Receive { .. } => matches!(index, 0 | 12 | 13),
        };
        match (is_app, index) {
            (_, 0) => self.reset(),
            (_, 12) if in_turn => self.stop(),
            // Its byte of stuff comes even so.
            (_, 12) => self.reply_late(r1::ILLEGAL_COMMAND),
            _ if !in_turn => self.reply(r1::ILLEGAL_COMMAND),
            (true, 41) => self.initialise(argument),
            (_, 8) if self.options.kind != Kind::Version1 => self.tell_interface(argument),
            (_, 55) => {
                self.session.app_command = true;
                self.reply(0);
            }
            (_, 58) => {
                let ocr = registers::ocr(self.options.kind, self.session.is_ready);
                self.reply_with(ocr);
            }
            (_, 59) => {
                self.session.crc_on = argument & 1 == 1;
                self.reply(0);
            }
            _ if !self.session.is_ready => self.reply(r1::ILLEGAL_COMMAND),
            (true, 13 | 22 | 23 | 51) => self.obey_app(index),
            _ => self.obey_ready(index, argument),
        }
    }

    /// Commands after CMD55 that others do not share a number with, or that mean something else then.
    fn obey_app(&mut self, index: u8) {
        match index {
            13 => {
                self.reply_status();
                let status = self.registers.sd_status;
                self.send_register(&status);
            }
            22 => {
                self.reply(0);
                let blocks = self.session.blocks_written.to_be_bytes();
                self.send_register(&blocks);
            }
            51 => {
                self.reply(0);
                let scr = self.registers.scr;
                self.send_register(&scr);
            }
            // ACMD23 is advice, and this card erases when it has to.
            _ => self.reply(0),
        }
    }

    /// Commands that a card takes once it is ready.
    fn obey_ready(&mut self, index: u8, argument: u32) {
        match index {
            9 | 10 => {
                self.reply(0);
                let (csd, cid) = (self.registers.csd, self.registers.cid);
                self.send_register(if index == 9 { &csd } else { &cid });
            }
            13 => self.reply_status(),
            16 => self.set_block_length(argument),
            17 | 18 => self.begin_read(argument, index == 18),
            24 | 25 => self.begin_write(argument, index == 25),
            32 | 33 => self.mark_erase(index == 32, argument),
            38 => self.erase(),
            _ => self.reply(r1::ILLEGAL_COMMAND),
        }
    }

    /// CMD0. Blocks of a stream that was not ended are lost where their page was not whole.
    fn reset(&mut self) {
        self.card.stream_abandon();
        self.task = Task::None;
        self.session = Session {
            in_spi_mode: true,
            block_bytes: BLOCK_BYTES as u64,
            ..Session::default()
        };
        self.reply(0);
    }

    /// CMD8: whether the card and this host understand each other.
    fn tell_interface(&mut self, argument: u32) {
        self.session.knows_host = true;
        let voltage = match argument >> 8 & 0xF {
            VOLTAGE => VOLTAGE,
            _ => 0,
        };
        self.reply_with((voltage << 8 | argument & 0xFF).to_be_bytes());
    }

    /// ACMD41: a card of high capacity waits for a host that knows of such (7.2.1).
    fn initialise(&mut self, argument: u32) {
        let session = &mut self.session;
        let is_known = session.knows_host && argument & HOST_HIGH_CAPACITY != 0;
        if self.options.kind != Kind::High || is_known {
            let now_ns = self.pace.now_ns();
            let began_ns = *session.init_began_ns.get_or_insert(now_ns);
            session.is_ready |= now_ns - began_ns >= u64::from(self.options.init_us) * 1000;
        }
        self.reply(0);
    }

    /// CMD12.
    fn stop(&mut self) {
        // A read ends at once; what was written is made durable.
        self.end_write();
        self.reply_late(0);
    }

    /// CMD16. Cards of high capacity take the command and stay with 512 bytes.
    fn set_block_length(&mut self, argument: u32) {
        if !(1..=BLOCK_BYTES as u32).contains(&argument) {
            return self.reply(r1::PARAMETER_ERROR);
        }
        if self.options.kind != Kind::High {
            self.session.block_bytes = argument.into();
        }
        self.reply(0);
    }

    fn begin_read(&mut self, argument: u32, many: bool) {
        let address = self.options.kind.address_of(argument);
        let (within, length) = (address % BLOCK_BYTES as u64, self.session.block_bytes);
        if !self.is_in_range(address) {
            self.reply(r1::PARAMETER_ERROR)
        } else if within + length > BLOCK_BYTES as u64 {
            self.reply(r1::ADDRESS_ERROR)
        } else {
            self.reply(0);
            self.send_block(address, many, true);
        }
    }

    fn begin_write(&mut self, argument: u32, many: bool) {
        let address = self.options.kind.address_of(argument);
        if !self.is_in_range(address) {
            self.reply(r1::PARAMETER_ERROR)
        } else if !address.is_multiple_of(BLOCK_BYTES as u64) {
            self.reply(r1::ADDRESS_ERROR)
        } else if self.session.block_bytes != BLOCK_BYTES as u64 {
            // WRITE_BL_PARTIAL is 0.
            self.reply(r1::PARAMETER_ERROR)
        } else {
            self.session.blocks_written = 0;
            self.reply(0);
            self.task = Task::Await(Write {
                many,
                block: address / BLOCK_BYTES as u64,
                failed: false,
            });
        }
    }

    /// CMD32 and CMD33: first and last block to erase.
    fn mark_erase(&mut self, first: bool, argument: u32) {
        let address = self.options.kind.address_of(argument);
        let block = Some(address / BLOCK_BYTES as u64);
        if !first && self.session.erase_first.is_none() {
            return self.reply(r1::ERASE_SEQUENCE_ERROR);
        }
        if !self.is_in_range(address) {
            self.forget_erase();
            return self.reply(r1::PARAMETER_ERROR);
        }
        if first {
            self.forget_erase();
            self.session.erase_first = block;
        } else {
            self.session.erase_last = block;
        }
        self.reply(0);
    }

    /// CMD38.
    fn erase(&mut self) {
        let marked = self.session.erase_first.zip(self.session.erase_last);
        self.forget_erase();
        let Some((first, last)) = marked else {
            return self.reply(r1::ERASE_SEQUENCE_ERROR);
        };
        if first > last {
            self.session.status |= r2::ERASE_PARAMETER;
        } else if self.options.write_protected {
            self.session.status |= r2::WRITE_PROTECT_ERASE_SKIP;
        } else if let Ok(busy_ns) = self.card.erase(self.pace.now_ns(), first, last - first + 1) {
            self.be_busy(busy_ns);
        }
        self.reply(0);
    }

    fn forget_erase(&mut self) {
        self.session.erase_first = None;
        self.session.erase_last = None;
    }

    /// Whether this byte is on the card; notes it if not.
    fn is_in_range(&mut self, address: u64) -> bool {
        let is = address / (BLOCK_BYTES as u64) < self.registers.blocks;
        if !is {
            self.session.status |= r2::OUT_OF_RANGE;
        }
        is
    }

    fn r1(&mut self, bits: u8) -> u8 {
        let idle = if self.session.is_ready { 0 } else { r1::IDLE };
        let reset = match std::mem::take(&mut self.session.erase_reset) {
            true => r1::ERASE_RESET,
            false => 0,
        };
        bits | idle | reset
    }

    /// R1 (7.3.2.1).
    fn reply(&mut self, bits: u8) {
        let r1 = self.r1(bits);
        self.answer = Answer::after(self.options.ncr_bytes.into(), &[r1]);
    }

    /// R1b to CMD12: a byte of stuff comes first (7.3.1.3).
    fn reply_late(&mut self, bits: u8) {
        let r1 = self.r1(bits);
        self.answer = Answer::after(1 + usize::from(self.options.ncr_bytes), &[r1]);
    }

    /// R2 (7.3.2.3); the status is clear once it is read.
    fn reply_status(&mut self) {
        let r2 = [self.r1(0), std::mem::take(&mut self.session.status)];
        self.answer = Answer::after(self.options.ncr_bytes.into(), &r2);
    }

    /// R3 and R7 (7.3.2.4, 7.3.2.6): R1 and four bytes.
    fn reply_with(&mut self, [a, b, c, d]: [u8; 4]) {
        let bytes = [self.r1(0), a, b, c, d];
        self.answer = Answer::after(self.options.ncr_bytes.into(), &bytes);
    }
}
