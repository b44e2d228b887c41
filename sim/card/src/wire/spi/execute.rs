//! Execution of commands (SD Physical Layer Simplified Specification, 7.3.1.3).

use super::card::{Session, SpiCard};
use super::command::{Command, Response, r1, r2};
use super::state::{Transfer, Write};
use crate::BLOCK_BYTES;
use crate::wire::options::Kind;
use crate::wire::{registers, switch};

/// Host capacity support bit in the argument of ACMD41.
const HOST_HIGH_CAPACITY: u32 = 1 << 30;
/// The only voltage that a host can request in CMD8: 2.7 to 3.6 V.
const VOLTAGE: u32 = 1;

impl SpiCard {
    /// Executes a command or rejects it, and responds.
    pub(super) fn execute(&mut self, command: Command) {
        let Command {
            index, argument, ..
        } = command;
        // A card in SD mode leaves this mode only on a valid CMD0 (7.2.1).
        if !self.session.in_spi_mode && (index != 0 || !command.crc_matches) {
            return;
        }
        let is_checked = self.session.crc_on || matches!(index, 0 | 8);
        if is_checked && !command.crc_matches {
            return self.respond(r1::CRC_ERROR);
        }
        let is_app_command = std::mem::take(&mut self.session.app_command);
        let is_erase_sequence = matches!(index, 13 | 32 | 33 | 38 | 55);
        if self.session.erase_first.is_some() && !is_erase_sequence {
            self.clear_erase_range();
            self.session.erase_reset = true;
        }
        let is_allowed = match self.transfer {
            Transfer::None => index != 12,
            Transfer::Sending(_) | Transfer::AwaitStop => matches!(index, 0 | 12),
            Transfer::AwaitToken(_) | Transfer::Receive { .. } => matches!(index, 0 | 12 | 13),
        };
        match (is_app_command, index) {
            (_, 0) => self.reset(),
            (_, 12) if is_allowed => self.stop(),
            // The stuff byte of CMD12 precedes a rejection as well.
            (_, 12) => self.respond_after_stuff_byte(r1::ILLEGAL_COMMAND),
            _ if !is_allowed => self.respond(r1::ILLEGAL_COMMAND),
            (true, 41) => self.initialise(argument),
            (_, 8) if self.options.kind != Kind::Version1 => {
                self.report_interface_condition(argument)
            }
            (_, 55) => {
                self.session.app_command = true;
                self.respond(0);
            }
            (_, 58) => {
                let ocr = registers::ocr(self.options.kind, self.session.is_ready);
                self.respond_with(ocr);
            }
            (_, 59) => {
                self.session.crc_on = argument & 1 == 1;
                self.respond(0);
            }
            _ if !self.session.is_ready => self.respond(r1::ILLEGAL_COMMAND),
            (true, 13 | 22 | 23 | 51) => self.execute_app(index),
            _ => self.execute_ready(index, argument),
        }
    }

    /// Executes application commands whose number is otherwise unused or has another meaning.
    fn execute_app(&mut self, index: u8) {
        match index {
            13 => {
                self.respond_status();
                let status = self.registers.sd_status;
                self.send_register(&status);
            }
            22 => {
                self.respond(0);
                let blocks = self.session.blocks_written.to_be_bytes();
                self.send_register(&blocks);
            }
            51 => {
                self.respond(0);
                let scr = self.registers.scr;
                self.send_register(&scr);
            }
            // ACMD23 is only a hint; this card erases blocks when it needs them.
            _ => self.respond(0),
        }
    }

    /// Executes commands that require an initialised card.
    fn execute_ready(&mut self, index: u8, argument: u32) {
        match index {
            6 => {
                self.respond(0);
                let status = switch::switch(argument, &mut self.session.high_speed);
                self.send_register(&status);
            }
            9 => {
                self.respond(0);
                let csd = registers::csd_at_speed(self.registers.csd, self.session.high_speed);
                self.send_register(&csd);
            }
            10 => {
                self.respond(0);
                let cid = self.registers.cid;
                self.send_register(&cid);
            }
            13 => self.respond_status(),
            16 => self.set_block_length(argument),
            17 | 18 => self.begin_read(argument, index == 18),
            24 | 25 => self.begin_write(argument, index == 25),
            32 | 33 => self.set_erase_bound(index == 32, argument),
            38 => self.erase(),
            _ => self.respond(r1::ILLEGAL_COMMAND),
        }
    }

    /// CMD0. Blocks of an unfinished stream are lost if their page is incomplete.
    fn reset(&mut self) {
        self.card.stream_abandon();
        self.transfer = Transfer::None;
        self.session = Session {
            in_spi_mode: true,
            block_bytes: BLOCK_BYTES as u64,
            ..Session::default()
        };
        self.respond(0);
    }

    /// CMD8: reports whether the card supports the voltage, and echoes the check pattern.
    fn report_interface_condition(&mut self, argument: u32) {
        self.session.cmd8_received = true;
        let voltage = match argument >> 8 & 0xF {
            VOLTAGE => VOLTAGE,
            _ => 0,
        };
        self.respond_with((voltage << 8 | argument & 0xFF).to_be_bytes());
    }

    /// ACMD41: a high-capacity card waits for a host that supports high capacity (7.2.1).
    fn initialise(&mut self, argument: u32) {
        let session = &mut self.session;
        let is_known = session.cmd8_received && argument & HOST_HIGH_CAPACITY != 0;
        if self.options.kind != Kind::High || is_known {
            let now_ns = self.pace.now_ns();
            let began_ns = *session.init_began_ns.get_or_insert(now_ns);
            session.is_ready |= now_ns - began_ns >= u64::from(self.options.init_us) * 1000;
        }
        self.respond(0);
    }

    /// Executes CMD12: ends a read or a write.
    fn stop(&mut self) {
        // A read ends at once; accepted blocks of a write become durable.
        self.end_write();
        self.respond_after_stuff_byte(0);
    }

    /// CMD16. High-capacity cards accept the command and keep 512 bytes.
    fn set_block_length(&mut self, argument: u32) {
        if !(1..=BLOCK_BYTES as u32).contains(&argument) {
            return self.respond(r1::PARAMETER_ERROR);
        }
        if self.options.kind != Kind::High {
            self.session.block_bytes = argument.into();
        }
        self.respond(0);
    }

    fn begin_read(&mut self, argument: u32, is_multiple: bool) {
        let address = self.options.kind.address_of(argument);
        let (within, length) = (address % BLOCK_BYTES as u64, self.session.block_bytes);
        if !self.is_in_range(address) {
            self.respond(r1::PARAMETER_ERROR)
        } else if within + length > BLOCK_BYTES as u64 {
            self.respond(r1::ADDRESS_ERROR)
        } else {
            self.respond(0);
            self.send_block(address, is_multiple, true);
        }
    }

    fn begin_write(&mut self, argument: u32, is_multiple: bool) {
        let address = self.options.kind.address_of(argument);
        if !self.is_in_range(address) {
            self.respond(r1::PARAMETER_ERROR)
        } else if !address.is_multiple_of(BLOCK_BYTES as u64) {
            self.respond(r1::ADDRESS_ERROR)
        } else if self.session.block_bytes != BLOCK_BYTES as u64 {
            // WRITE_BL_PARTIAL is 0, so only whole blocks can be written.
            self.respond(r1::PARAMETER_ERROR)
        } else {
            self.session.blocks_written = 0;
            self.respond(0);
            self.transfer = Transfer::AwaitToken(Write {
                is_multiple,
                block: address / BLOCK_BYTES as u64,
                failed: false,
            });
        }
    }

    /// CMD32 and CMD33: first and last block to erase.
    fn set_erase_bound(&mut self, first: bool, argument: u32) {
        let address = self.options.kind.address_of(argument);
        let block = Some(address / BLOCK_BYTES as u64);
        if !first && self.session.erase_first.is_none() {
            return self.respond(r1::ERASE_SEQUENCE_ERROR);
        }
        if !self.is_in_range(address) {
            self.clear_erase_range();
            return self.respond(r1::PARAMETER_ERROR);
        }
        if first {
            self.clear_erase_range();
            self.session.erase_first = block;
        } else {
            self.session.erase_last = block;
        }
        self.respond(0);
    }

    /// Executes CMD38: erases the selected blocks.
    fn erase(&mut self) {
        let marked = self.session.erase_first.zip(self.session.erase_last);
        self.clear_erase_range();
        let Some((first, last)) = marked else {
            return self.respond(r1::ERASE_SEQUENCE_ERROR);
        };
        if first > last {
            self.session.status |= r2::ERASE_PARAMETER;
        } else if self.options.write_protected {
            self.session.status |= r2::WRITE_PROTECT_ERASE_SKIP;
        } else if let Ok(busy_ns) = self.card.erase(self.pace.now_ns(), first, last - first + 1) {
            self.start_busy(busy_ns);
        }
        self.respond(0);
    }

    fn clear_erase_range(&mut self) {
        self.session.erase_first = None;
        self.session.erase_last = None;
    }

    /// Returns true if a byte address is on the card; otherwise sets the out-of-range bit of the status.
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

    /// Sends R1 (7.3.2.1).
    fn respond(&mut self, bits: u8) {
        let r1 = self.r1(bits);
        self.response = Response::after(self.options.ncr_bytes.into(), &[r1]);
    }

    /// Sends R1b to CMD12, after a stuff byte (7.3.1.3).
    fn respond_after_stuff_byte(&mut self, bits: u8) {
        let r1 = self.r1(bits);
        self.response = Response::after(1 + usize::from(self.options.ncr_bytes), &[r1]);
    }

    /// Sends R2 (7.3.2.3) and clears the status bits.
    fn respond_status(&mut self) {
        let r2 = [self.r1(0), std::mem::take(&mut self.session.status)];
        self.response = Response::after(self.options.ncr_bytes.into(), &r2);
    }

    /// Sends R3 or R7 (7.3.2.4, 7.3.2.6): R1 and four bytes.
    fn respond_with(&mut self, [a, b, c, d]: [u8; 4]) {
        let bytes = [self.r1(0), a, b, c, d];
        self.response = Response::after(self.options.ncr_bytes.into(), &bytes);
    }
}
