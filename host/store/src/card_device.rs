//! A simulated card on a board, as the FAT libraries see it: behind a driver, with everything on the
//! wire.

use crate::sd_host::{self, SdHost, SdHostError};
use cardiograph_sim_card::wire::sd::SdBusCard;
use cardiograph_sim_card::wire::{Delay, Kind, Options, SpiCard, SpiDevice, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Board, Bus, Card, Clock, Driver, Sd, Spi};
use embedded_hal::spi::SpiDevice as _;
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use embedded_sdmmc::{Block, BlockCount, BlockDevice, BlockIdx, SdCard, SdCardError};
use std::cell::{Cell, RefCell};
use std::fmt;

/// The largest card that counts in bytes.
const STANDARD_BYTES_MAX: u64 = 2 << 30;

/// How often the driver is asked again when it gives up on a busy card: some 12 s in all.
const RETRIES_MAX: u32 = 100;

/// Ends a burst over SPI (SD Physical Layer Simplified Specification, 7.3.3.2).
const STOP_TOKEN: u8 = 0xFD;
/// What a card answers that is not busy.
const RELEASED: u8 = 0xFF;
/// Bytes of busy that are waited for after a burst: 12 s at 25 MHz.
const BUSY_BYTES_MAX: u64 = 37_500_000;

/// Why a driver did not do what it was told.
#[derive(Debug)]
pub enum DriverError {
    /// embedded-sdmmc's driver over SPI said so.
    Spi(SdCardError),
    /// The driver for the SD bus said so.
    Sd(SdHostError),
}

impl std::error::Error for DriverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DriverError::Spi(source) => Some(source),
            DriverError::Sd(source) => Some(source),
        }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DriverError::Spi(source) => source.fmt(f)?,
            DriverError::Sd(source) => source.fmt(f)?,
        }
        if self.is_time_out() {
            f.write_str(
                "; the card is busy for longer than this driver waits: take a card with shorter stalls",
            )?;
        }
        Ok(())
    }
}

impl DriverError {
    /// Whether the card was busy for longer than the driver waits.
    pub fn is_time_out(&self) -> bool {
        matches!(
            self,
            DriverError::Spi(
                SdCardError::TimeoutWaitNotBusy
                    | SdCardError::TimeoutReadBuffer
                    | SdCardError::TimeoutCommand(_)
                    | SdCardError::TimeoutACommand(_)
            ) | DriverError::Sd(SdHostError::BusyTimeOut | SdHostError::ReadTimeOut)
        )
    }
}

/// A card behind its driver.
pub(crate) struct CardDevice {
    port: Port,
    driver: Driver,
    clock: Clock,
}

enum Port {
    Spi(Box<SpiPort>),
    Sd(Box<RefCell<SdHost>>),
}

impl CardDevice {
    /// Powers the card up and brings it to where it takes blocks, at the board's clock.
    pub(crate) fn new(card: Card, board: &Board, clock: Clock) -> Result<CardDevice, DriverError> {
        let driver = board.driver;
        let kind = match card.blocks() * BLOCK_BYTES as u64 {
            0..=STANDARD_BYTES_MAX => Kind::Standard,
            _ => Kind::High,
        };
        let port = match &board.bus {
            Bus::Spi(spi) => {
                let port = SpiPort::new(card, spi, kind, clock.clone());
                Port::Spi(Box::new(port.map_err(DriverError::Spi)?))
            }
            Bus::Sd(sd) => {
                let host = sd_port(card, sd, kind, clock.clone(), driver.checks_status);
                Port::Sd(Box::new(RefCell::new(host.map_err(DriverError::Sd)?)))
            }
        };
        Ok(CardDevice {
            port,
            driver,
            clock,
        })
    }

    /// How often the driver has given up on a busy card.
    pub(crate) fn time_outs(&self) -> u64 {
        match &self.port {
            Port::Spi(port) => port.time_outs.get(),
            Port::Sd(host) => host.borrow().time_outs(),
        }
    }

    /// Takes the card off the board.
    pub(crate) fn into_card(self) -> Card {
        match self.port {
            Port::Spi(port) => port.into_card(),
            Port::Sd(host) => host.into_inner().into_card(),
        }
    }

    /// Reads consecutive blocks, in bursts as long as the driver has them.
    pub(crate) fn read(&self, start: u32, blocks: &mut [Block]) -> Result<(), DriverError> {
        let most = self.driver.burst_blocks;
        for (start, blocks) in (start..)
            .step_by(most as usize)
            .zip(blocks.chunks_mut(most as usize))
        {
            self.spend(blocks.len());
            match &self.port {
                Port::Spi(port) => port.read(start, blocks).map_err(DriverError::Spi)?,
                Port::Sd(host) => {
                    let read = host.borrow_mut().read(start, blocks);
                    read.map_err(DriverError::Sd)?;
                }
            }
        }
        Ok(())
    }

    /// Writes consecutive blocks, in bursts as long as the driver has them.
    pub(crate) fn write(&self, start: u32, blocks: &[Block]) -> Result<(), DriverError> {
        let most = self.driver.burst_blocks;
        for (start, blocks) in (start..)
            .step_by(most as usize)
            .zip(blocks.chunks(most as usize))
        {
            self.spend(blocks.len());
            match &self.port {
                Port::Spi(port) => port.write(start, blocks).map_err(DriverError::Spi)?,
                Port::Sd(host) => {
                    let written = host.borrow_mut().write(start, blocks);
                    written.map_err(DriverError::Sd)?;
                }
            }
        }
        Ok(())
    }

    fn spend(&self, blocks: usize) {
        let Driver {
            command_us,
            block_us,
            ..
        } = self.driver;
        let us = u64::from(command_us) + u64::from(block_us) * blocks as u64;
        self.clock.advance_ns(us * 1000);
    }
}

impl BlockDevice for CardDevice {
    type Error = DriverError;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), DriverError> {
        CardDevice::read(self, start.0, blocks)
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), DriverError> {
        CardDevice::write(self, start.0, blocks)
    }

    fn num_blocks(&self) -> Result<BlockCount, DriverError> {
        Ok(BlockCount(match &self.port {
            Port::Spi(port) => port.driver.num_blocks().map_err(DriverError::Spi)?.0,
            Port::Sd(host) => host.borrow().blocks(),
        }))
    }
}

fn sd_port(
    card: Card,
    sd: &Sd,
    kind: Kind,
    clock: Clock,
    checks_status: bool,
) -> Result<SdHost, SdHostError> {
    let options = Options {
        kind,
        // What it may be is checked when a board is read.
        ncr_clocks: sd.ncr_clocks.clamp(2, 64) as u8,
        ..Options::default()
    };
    let bus = SdBusCard::new(card, options, clock, sd_host::INIT_CLOCK_HZ);
    SdHost::new(bus.map_err(|_| SdHostError::SetUp)?, sd, checks_status)
}

/// embedded-sdmmc's own driver on the wire.
struct SpiPort {
    driver: SdCard<SpiDevice, Delay>,
    wire: Wire,
    time_outs: Cell<u64>,
}

impl SpiPort {
    fn new(card: Card, spi: &Spi, kind: Kind, clock: Clock) -> Result<SpiPort, SdCardError> {
        let options = Options {
            kind,
            // What it may be is checked when a board is read.
            ncr_bytes: spi.ncr_bytes.min(8) as u8,
            ..Options::default()
        };
        let card = SpiCard::new(card, options, clock, sd_host::INIT_CLOCK_HZ);
        let wire = Wire::new(card.map_err(|_| SdCardError::CardNotFound)?);
        wire.power_up();
        // Checksums cost this computer more than all the rest, and the card's time nothing.
        let without_crc = AcquireOpts {
            use_crc: false,
            ..AcquireOpts::default()
        };
        let driver = SdCard::new_with_options(wire.device(), wire.delay(), without_crc);
        driver.num_bytes()?;
        let set = wire.card().set_clock_hz(spi.clock_hz);
        set.map_err(|_| SdCardError::Transport)?;
        wire.set_gaps(spi.send_gap_ns, spi.receive_gap_ns);
        Ok(SpiPort {
            driver,
            wire,
            time_outs: Cell::default(),
        })
    }

    fn into_card(self) -> Card {
        drop(self.driver);
        let card = self.wire.into_card();
        card.unwrap_or_else(|| unreachable!("the driver alone held the wire, and it is gone"))
    }

    fn read(&self, start: u32, blocks: &mut [Block]) -> Result<(), SdCardError> {
        self.insist(|| self.driver.read(blocks, BlockIdx(start)))
    }

    fn write(&self, start: u32, blocks: &[Block]) -> Result<(), SdCardError> {
        if blocks.len() == 1 {
            return self.insist(|| self.driver.write(blocks, BlockIdx(start)));
        }
        self.insist(|| {
            let written = self.driver.write(blocks, BlockIdx(start));
            if matches!(written, Err(SdCardError::TimeoutWaitNotBusy)) {
                // The burst is still open.
                self.wait()?;
                self.exchange(STOP_TOKEN)?;
            }
            // The driver would take busy after the stop token for an answer to its next command.
            self.exchange(RELEASED)?;
            self.wait()?;
            written
        })
    }

    /// Asks the driver, and again while it gives up on a busy card: the stall is to be measured, not
    /// to end the run.
    fn insist<T>(&self, mut ask: impl FnMut() -> Result<T, SdCardError>) -> Result<T, SdCardError> {
        let mut result = ask();
        for _ in 0..RETRIES_MAX {
            let Err(SdCardError::TimeoutWaitNotBusy) = result else {
                break;
            };
            self.time_outs.set(self.time_outs.get() + 1);
            result = ask();
        }
        result
    }

    /// Reads bytes until the card is no longer busy.
    fn wait(&self) -> Result<(), SdCardError> {
        for _ in 0..BUSY_BYTES_MAX {
            if self.exchange(RELEASED)? == RELEASED {
                return Ok(());
            }
        }
        Err(SdCardError::TimeoutWaitNotBusy)
    }

    fn exchange(&self, out: u8) -> Result<u8, SdCardError> {
        let mut byte = [out];
        let exchanged = self.wire.device().transfer_in_place(&mut byte);
        exchanged.map_err(|_| SdCardError::Transport)?;
        Ok(byte[0])
    }
}
