//! A driver for the SD bus: brings a card up and moves blocks, alone or in bursts.
//!
//! ```text
//!   CMD0, CMD8, ACMD41 … CMD2, CMD3, CMD9, CMD7, ACMD6, above 25 MHz CMD6
//!     read    CMD17 block                  CMD18 block … block CMD12
//!     write   CMD24 block busy             CMD25 block busy … block busy CMD12 busy
//!                          both with CMD13 after it, if the driver asks for the status
//! ```
//!
//! Section numbers are those of the SD Physical Layer Simplified Specification, version 9.00.

use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response, SdBusCard, Width};
use cardiograph_sim_card::{Card, Sd};
use embedded_sdmmc::Block;
use std::fmt;

/// Clock until a card has its address, in Hz (4.2.1).
pub(crate) const INIT_CLOCK_HZ: u32 = 400_000;
/// The fastest clock of a card that was not switched (4.3.10.4).
const DEFAULT_SPEED_HZ: u32 = 25_000_000;

/// Clocks that a card wants before the first command; 74 at least (6.4.1.1).
const POWER_UP_CLOCKS: u32 = 80;
/// From a response to the next command, and to a block (NRC and NWR of 4.12.4).
const NRC_CLOCKS: u32 = 8;
const NWR_CLOCKS: u32 = 2;
/// A response that has not begun by then does not come (NCR of 4.12.4).
const NCR_CLOCKS_MAX: u32 = 64;
/// Longest initialisation, in ms (4.2.3).
const INIT_MS_MAX: u64 = 1000;
/// Longest wait for a block to read, in ms (4.6.2.1).
const READ_MS_MAX: u64 = 100;
/// Longest busy that a host must bear, in ms (4.6.2.2, the largest cards).
const BUSY_MS_MAX: u64 = 500;
/// How often it is waited anew for a card that is busy for longer: some 12 s in all.
const WAITS_MAX: u64 = 24;

/// Voltages from 2.7 to 3.6 V, and a host that knows high capacity (4.2.3.1).
const ACMD41_ARGUMENT: u32 = 1 << 30 | 0x00FF_8000;
const OCR_READY: u32 = 1 << 31;
const OCR_HIGH_CAPACITY: u32 = 1 << 30;
/// 2.7 to 3.6 V and a pattern that comes back (4.3.13).
const CMD8_ARGUMENT: u32 = 0x1AA;
/// Switch group 1 to function 1, leave the others (4.3.10).
const CMD6_HIGH_SPEED: u32 = 0x80FF_FFF1;
/// Errors of the card status (4.10.1).
const STATUS_ERRORS: u32 = 0xFDF9_8000;
const OUT_OF_RANGE: u32 = 1 << 31;

/// Why the driver did not do what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdHostError {
    /// No response to this command.
    NoResponse(u8),
    /// The response to this command tells of an error: the card status.
    Status(u8, u32),
    /// The card was not ready a second after it was first asked.
    InitTimeOut,
    /// High speed was asked for, and the card has stayed with its default.
    NoHighSpeed,
    /// No block came within 100 ms.
    ReadTimeOut,
    /// The card was busy for 12 s.
    BusyTimeOut,
    /// A block came with wrong checksums.
    ReadChecksum,
    /// The card did not take a block.
    Refused,
    /// The bus or the card cannot be as the board has it.
    SetUp,
}

impl std::error::Error for SdHostError {}

impl fmt::Display for SdHostError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SdHostError::NoResponse(index) => write!(f, "no response to CMD{index}"),
            SdHostError::Status(index, status) => {
                write!(f, "CMD{index} failed with the card status {status:#010x}")
            }
            SdHostError::InitTimeOut => f.write_str("the card was not ready after 1 s"),
            SdHostError::NoHighSpeed => f.write_str("the card does not switch to high speed"),
            SdHostError::ReadTimeOut => f.write_str("no block came within 100 ms"),
            SdHostError::BusyTimeOut => f.write_str("the card was busy for 12 s"),
            SdHostError::ReadChecksum => f.write_str("a block came with wrong checksums"),
            SdHostError::Refused => f.write_str("the card did not take a block"),
            SdHostError::SetUp => f.write_str("the card does not fit this bus"),
        }
    }
}

/// A host controller with its driver, and the card on its bus.
pub(crate) struct SdHost {
    bus: SdBusCard,
    width: Width,
    clock_hz: u32,
    rca: u32,
    /// Blocks to an address: 1, or 512 where addresses count bytes.
    address_step: u32,
    checks_status: bool,
    /// How often a card was busy for longer than a host must bear.
    time_outs: u64,
}

impl SdHost {
    /// Brings the card up, at the board's clock and width.
    pub(crate) fn new(bus: SdBusCard, sd: &Sd, checks_status: bool) -> Result<SdHost, SdHostError> {
        let mut host = SdHost {
            bus,
            width: Width::One,
            clock_hz: INIT_CLOCK_HZ,
            rca: 0,
            address_step: 512,
            checks_status,
            time_outs: 0,
        };
        host.bus.idle(POWER_UP_CLOCKS);
        host.identify()?;
        host.speed_up(sd)?;
        Ok(host)
    }

    pub(crate) fn into_card(self) -> Card {
        self.bus.into_card()
    }

    /// How often it gave up on a busy card and waited anew.
    pub(crate) fn time_outs(&self) -> u64 {
        self.time_outs
    }

    /// Whether the card takes no more writes.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.bus.card().controller().is_worn_out()
    }

    /// Blocks of the card.
    pub(crate) fn blocks(&self) -> u32 {
        u32::try_from(self.bus.card().blocks()).unwrap_or(u32::MAX)
    }

    /// From `idle` to `stby`: the card gets an address.
    fn identify(&mut self) -> Result<(), SdHostError> {
        self.send(0, 0);
        // A card of version 1 does not answer, and is told nothing of high capacity then.
        let knows_voltage = self.send(8, CMD8_ARGUMENT).argument().is_some();
        let argument = match knows_voltage {
            true => ACMD41_ARGUMENT,
            false => ACMD41_ARGUMENT & !OCR_HIGH_CAPACITY,
        };
        let began_ns = self.now_ns();
        let ocr = loop {
            let ocr = self.app(41, argument)?;
            if ocr & OCR_READY != 0 {
                break ocr;
            }
            if self.now_ns() - began_ns > INIT_MS_MAX * 1_000_000 {
                return Err(SdHostError::InitTimeOut);
            }
        };
        if ocr & OCR_HIGH_CAPACITY != 0 {
            self.address_step = 1;
        }
        self.register(2, 0)?;
        self.rca = self.command(3, 0)? & 0xFFFF_0000;
        self.register(9, self.rca)?;
        Ok(())
    }

    /// Selects the card; then as many lines, and the clock.
    fn speed_up(&mut self, sd: &Sd) -> Result<(), SdHostError> {
        self.status(7, self.rca)?;
        if sd.width == 4 {
            self.app_status(6, 0b10)?;
            self.width = Width::Four;
            self.bus.set_width(Width::Four);
        }
        if sd.clock_hz > DEFAULT_SPEED_HZ {
            self.status(6, CMD6_HIGH_SPEED)?;
            let mut switched = [0; 64];
            self.receive(&mut switched)?;
            // Function of group 1 (4.3.10.4).
            if switched[16] & 0xF != 1 {
                return Err(SdHostError::NoHighSpeed);
            }
        }
        self.clock_hz = sd.clock_hz;
        let set = self.bus.set_clock_hz(sd.clock_hz);
        set.map_err(|_| SdHostError::SetUp)
    }

    /// Reads consecutive blocks, with one command.
    pub(crate) fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), SdHostError> {
        let index = if blocks.len() == 1 { 17 } else { 18 };
        self.status(index, start * self.address_step)?;
        let mut result = Ok(());
        for block in blocks.iter_mut() {
            result = self.receive(&mut block.contents);
            if result.is_err() {
                break;
            }
        }
        // A card that cannot read a block waits for the stop as well.
        if index == 18 || result.is_err() {
            let stopped = self.stop();
            result = result.and(stopped);
        }
        result
    }

    /// Writes consecutive blocks, with one command; returns when the card is no longer busy.
    pub(crate) fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), SdHostError> {
        let index = if blocks.len() == 1 { 24 } else { 25 };
        self.status(index, start * self.address_step)?;
        let mut result = Ok(());
        for block in blocks {
            self.bus.idle(NWR_CLOCKS);
            let sums = self.width.sums(&block.contents);
            result = match self.bus.write_block(&block.contents, sums) {
                Some(CrcStatus::Positive) => self.wait(),
                _ => Err(SdHostError::Refused),
            };
            if result.is_err() {
                break;
            }
        }
        if index == 25 {
            let stopped = self.stop();
            result = result.and(stopped);
        }
        if self.checks_status {
            let status = self.status(13, self.rca);
            result = result.and(status);
        }
        result
    }

    /// CMD12, and what the card has yet to do.
    fn stop(&mut self) -> Result<(), SdHostError> {
        let status = self.command(12, 0)?;
        // A card that reads ahead may have passed its own end (4.3.3); blocks past it do not come, and
        // are not taken, so that nothing is overlooked.
        match status & STATUS_ERRORS & !OUT_OF_RANGE {
            0 => self.wait(),
            _ => Err(SdHostError::Status(12, status)),
        }
    }

    /// Waits until the card is no longer busy.
    fn wait(&mut self) -> Result<(), SdHostError> {
        let clocks_max = self.clocks_in_ms(BUSY_MS_MAX);
        for _ in 0..WAITS_MAX {
            if self.bus.wait(clocks_max) {
                return Ok(());
            }
            self.time_outs += 1;
        }
        Err(SdHostError::BusyTimeOut)
    }

    fn receive(&mut self, data: &mut [u8]) -> Result<(), SdHostError> {
        let clocks_max = self.clocks_in_ms(READ_MS_MAX);
        let sums = self.bus.read_block(data, clocks_max);
        let sums = sums.ok_or(SdHostError::ReadTimeOut)?;
        match self.width.sums_match(data, &sums) {
            true => Ok(()),
            false => Err(SdHostError::ReadChecksum),
        }
    }

    fn clocks_in_ms(&self, ms: u64) -> u32 {
        (u64::from(self.clock_hz) / 1000 * ms) as u32
    }

    fn send(&mut self, index: u8, argument: u32) -> Response {
        let response = self.bus.command(Command::new(index, argument));
        if response == Response::None {
            self.bus.idle(NCR_CLOCKS_MAX);
        }
        self.bus.idle(NRC_CLOCKS);
        response
    }

    fn command(&mut self, index: u8, argument: u32) -> Result<u32, SdHostError> {
        let response = self.send(index, argument).argument();
        response.ok_or(SdHostError::NoResponse(index))
    }

    /// A command whose response is the card status.
    fn status(&mut self, index: u8, argument: u32) -> Result<(), SdHostError> {
        let status = self.command(index, argument)?;
        match status & STATUS_ERRORS {
            0 => Ok(()),
            _ => Err(SdHostError::Status(index, status)),
        }
    }

    fn app(&mut self, index: u8, argument: u32) -> Result<u32, SdHostError> {
        self.command(55, self.rca)?;
        self.command(index, argument)
    }

    fn app_status(&mut self, index: u8, argument: u32) -> Result<(), SdHostError> {
        self.command(55, self.rca)?;
        self.status(index, argument)
    }

    fn register(&mut self, index: u8, argument: u32) -> Result<[u8; 16], SdHostError> {
        let register = self.send(index, argument).register();
        register.ok_or(SdHostError::NoResponse(index))
    }

    fn now_ns(&self) -> u64 {
        self.bus.clock().now_ns()
    }
}
