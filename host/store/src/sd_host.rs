//! A driver for the SD bus: initialises a card and transfers single blocks or bursts.
//!
//! ```text
//!   CMD0, CMD8, ACMD41 … CMD2, CMD3, CMD9, CMD7, ACMD6, above 25 MHz CMD6
//!     read    CMD17 block                  CMD18 block … block CMD12
//!     write   CMD24 block busy             CMD25 block busy … block busy CMD12 busy
//!                          followed by CMD13 in both cases if the driver checks the status
//! ```
//!
//! Section numbers are those of the SD Physical Layer Simplified Specification, version 9.00.

use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response, SdBusCard, Width};
use cardiograph_sim_card::{Card, Sd};
use embedded_sdmmc::Block;
use std::fmt;

/// Clock during identification, in Hz (4.2.1).
pub(crate) const INIT_CLOCK_HZ: u32 = 400_000;
/// Fastest clock of a card that is not in high-speed mode (4.3.10.4).
const DEFAULT_SPEED_HZ: u32 = 25_000_000;

/// Clocks before the first command; the card requires at least 74 (6.4.1.1).
const POWER_UP_CLOCKS: u32 = 80;
/// Clocks from a response to the next command (4.12.4).
const NRC_CLOCKS: u32 = 8;
/// Clocks from a response to a data block sent to the card (4.12.4).
const NWR_CLOCKS: u32 = 2;
/// Longest time from a command to the start of its response, in clocks (NCR of 4.12.4).
const NCR_CLOCKS_MAX: u32 = 64;
/// Longest initialisation, in ms (4.2.3).
const INIT_MS_MAX: u64 = 1000;
/// Longest wait for a block to read, in ms (4.6.2.1).
const READ_MS_MAX: u64 = 100;
/// Longest busy time that a host must tolerate, in ms (4.6.2.2, for the largest cards).
const BUSY_MS_MAX: u64 = 500;
/// Number of waits of `BUSY_MS_MAX` for a card that stays busy: a total of about 12 s.
const WAITS_MAX: u64 = 24;

/// ACMD41 argument: voltages from 2.7 to 3.6 V, and support for high capacity (4.2.3.1).
const ACMD41_ARGUMENT: u32 = 1 << 30 | 0x00FF_8000;
const OCR_READY: u32 = 1 << 31;
const OCR_HIGH_CAPACITY: u32 = 1 << 30;
/// CMD8 argument: 2.7 to 3.6 V, and a check pattern that the card echoes (4.3.13).
const CMD8_ARGUMENT: u32 = 0x1AA;
/// CMD6 argument: switches function group 1 to function 1 and leaves the other groups unchanged (4.3.10).
const CMD6_HIGH_SPEED: u32 = 0x80FF_FFF1;
/// Error bits of the card status (4.10.1).
const STATUS_ERRORS: u32 = 0xFDF9_8000;
const OUT_OF_RANGE: u32 = 1 << 31;

/// Error of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdHostError {
    /// The card did not respond to the command with this index.
    NoResponse(u8),
    /// The response to a command reports errors; the values are the command index and the card status.
    Status(u8, u32),
    /// The card was not ready 1 s after the first ACMD41.
    InitTimeout,
    /// The card did not switch to high speed.
    NoHighSpeed,
    /// No data block arrived within 100 ms.
    ReadTimeout,
    /// The card stayed busy for 12 s.
    BusyTimeout,
    /// A data block arrived with wrong checksums.
    ReadChecksum,
    /// The card did not accept a data block.
    Rejected,
    /// The bus or the card does not support the board's settings.
    Unsupported,
}

impl std::error::Error for SdHostError {}

impl fmt::Display for SdHostError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SdHostError::NoResponse(index) => write!(f, "no response to CMD{index}"),
            SdHostError::Status(index, status) => {
                write!(f, "CMD{index} failed with the card status {status:#010x}")
            }
            SdHostError::InitTimeout => f.write_str("the card was not ready after 1 s"),
            SdHostError::NoHighSpeed => f.write_str("the card did not switch to high speed"),
            SdHostError::ReadTimeout => {
                f.write_str("no data block within 100 ms of a read command")
            }
            SdHostError::BusyTimeout => f.write_str("the card stayed busy for 12 s"),
            SdHostError::ReadChecksum => f.write_str("a data block arrived with wrong checksums"),
            SdHostError::Rejected => f.write_str("the card rejected a data block"),
            SdHostError::Unsupported => {
                f.write_str("the card does not support this bus width or clock")
            }
        }
    }
}

/// A host controller with its driver, and the card on its bus.
pub(crate) struct SdHost {
    bus: SdBusCard,
    width: Width,
    clock_hz: u32,
    rca: u32,
    /// Address step per block: 1 if addresses count blocks, 512 if they count bytes.
    address_step: u32,
    checks_status: bool,
    /// Number of times the card stayed busy for longer than a host must tolerate.
    timeouts: u64,
}

impl SdHost {
    /// Initialises the card and sets the board's clock and bus width.
    pub(crate) fn new(bus: SdBusCard, sd: &Sd, checks_status: bool) -> Result<SdHost, SdHostError> {
        let mut host = SdHost {
            bus,
            width: Width::One,
            clock_hz: INIT_CLOCK_HZ,
            rca: 0,
            address_step: 512,
            checks_status,
            timeouts: 0,
        };
        host.bus.idle(POWER_UP_CLOCKS);
        host.identify()?;
        host.set_up_bus(sd)?;
        Ok(host)
    }

    pub(crate) fn into_card(self) -> Card {
        self.bus.into_card()
    }

    /// Returns how many times the driver timed out on a busy card and waited again.
    pub(crate) fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// Returns true if the card rejects writes because it is worn out.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.bus.card().controller().is_worn_out()
    }

    /// Returns the number of blocks of the card.
    pub(crate) fn blocks(&self) -> u32 {
        u32::try_from(self.bus.card().blocks()).unwrap_or(u32::MAX)
    }

    /// Takes the card from state `idle` to `stby`, in which it has an address.
    fn identify(&mut self) -> Result<(), SdHostError> {
        self.send(0, 0);
        // A card of version 1 does not respond to CMD8; ACMD41 must not offer high capacity to it.
        let is_version_2 = self.send(8, CMD8_ARGUMENT).argument().is_some();
        let argument = match is_version_2 {
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
                return Err(SdHostError::InitTimeout);
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

    /// Selects the card, then sets bus width and clock.
    fn set_up_bus(&mut self, sd: &Sd) -> Result<(), SdHostError> {
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
            // These bits state the selected function of group 1 (4.3.10.4).
            if switched[16] & 0xF != 1 {
                return Err(SdHostError::NoHighSpeed);
            }
        }
        self.clock_hz = sd.clock_hz;
        let set = self.bus.set_clock_hz(sd.clock_hz);
        set.map_err(|_| SdHostError::Unsupported)
    }

    /// Reads consecutive blocks with one command.
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
        // A card that fails to read a single block also waits for CMD12.
        if index == 18 || result.is_err() {
            let stopped = self.stop();
            result = result.and(stopped);
        }
        result
    }

    /// Writes consecutive blocks with one command; returns when the card is no longer busy.
    pub(crate) fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), SdHostError> {
        let index = if blocks.len() == 1 { 24 } else { 25 };
        self.status(index, start * self.address_step)?;
        let mut result = Ok(());
        for block in blocks {
            self.bus.idle(NWR_CLOCKS);
            let sums = self.width.sums(&block.contents);
            result = match self.bus.write_block(&block.contents, sums) {
                Some(CrcStatus::Positive) => self.wait(),
                _ => Err(SdHostError::Rejected),
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

    /// Sends CMD12 and waits until the card is no longer busy.
    fn stop(&mut self) -> Result<(), SdHostError> {
        let status = self.command(12, 0)?;
        // A card that reads ahead may run past its last block (4.3.3). Ignoring OUT_OF_RANGE hides nothing:
        // the card neither sends nor accepts blocks past its end, so the transfer itself fails.
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
            self.timeouts += 1;
        }
        Err(SdHostError::BusyTimeout)
    }

    fn receive(&mut self, data: &mut [u8]) -> Result<(), SdHostError> {
        let clocks_max = self.clocks_in_ms(READ_MS_MAX);
        let sums = self.bus.read_block(data, clocks_max);
        let sums = sums.ok_or(SdHostError::ReadTimeout)?;
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

    /// Sends a command whose response is the card status and checks it.
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
