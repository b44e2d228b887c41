//! A simulated card on a board as a block device for the FAT libraries: a driver accesses the card, and
//! every transfer on the bus is simulated.

use crate::sd_host::{self, SdHost, SdHostError};
use crate::spi_port::SpiPort;
use cardiograph_sim_card::wire::sd::SdBusCard;
use cardiograph_sim_card::wire::{Kind, Options};
use cardiograph_sim_card::{BLOCK_BYTES, Board, Bus, Card, Clock, Driver, Sd};
use embedded_sdmmc::{Block, BlockCount, BlockDevice, BlockIdx, SdCardError};
use std::cell::{Cell, RefCell};
use std::fmt;

/// Capacity of the largest byte-addressed card.
const STANDARD_BYTES_MAX: u64 = 2 << 30;

/// Error of a card driver.
#[derive(Debug)]
pub enum DriverError {
    /// Error of embedded-sdmmc's SPI driver.
    Spi(SdCardError),
    /// Error of the driver for the SD bus.
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
        if self.is_timeout() {
            f.write_str(
                "; the card stays busy for longer than this driver waits: use a card with shorter stalls",
            )?;
        }
        Ok(())
    }
}

impl DriverError {
    /// Returns true if the card stayed busy for longer than the driver waits.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            DriverError::Spi(
                SdCardError::TimeoutWaitNotBusy
                    | SdCardError::TimeoutReadBuffer
                    | SdCardError::TimeoutCommand(_)
                    | SdCardError::TimeoutACommand(_)
            ) | DriverError::Sd(SdHostError::BusyTimeout | SdHostError::ReadTimeout)
        )
    }
}

/// A card, accessed through its driver.
pub(crate) struct CardDevice {
    port: Port,
    driver: Driver,
    clock: Clock,
    run: Cell<Run>,
    /// Number of times the card reader stopped responding.
    hangs: Cell<u64>,
}

/// Writes to consecutive blocks, without another command between them.
#[derive(Clone, Copy, Default)]
struct Run {
    end: u32,
    blocks: u32,
}

enum Port {
    Spi(Box<SpiPort>),
    Sd(Box<RefCell<SdHost>>),
}

impl CardDevice {
    /// Powers up and initialises the card, then sets the board's clock.
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
            run: Cell::default(),
            hangs: Cell::default(),
        })
    }

    /// Returns how many times the driver timed out on a busy card, or on a card reader that did not respond.
    pub(crate) fn timeouts(&self) -> u64 {
        let of_card = match &self.port {
            Port::Spi(port) => port.timeouts(),
            Port::Sd(host) => host.borrow().timeouts(),
        };
        of_card + self.hangs.get()
    }

    /// Returns true if the card rejects writes because it is worn out.
    pub(crate) fn is_worn_out(&self) -> bool {
        match &self.port {
            Port::Spi(port) => port.is_worn_out(),
            Port::Sd(host) => host.borrow().is_worn_out(),
        }
    }

    /// Returns a copy of a card on SPI as a power cut at this moment would leave it.
    pub(crate) fn interrupted_copy(&self) -> Option<Card> {
        match &self.port {
            Port::Spi(port) => Some(port.interrupted_copy()),
            Port::Sd(_) => None,
        }
    }

    /// Removes the card from the board.
    pub(crate) fn into_card(self) -> Card {
        match self.port {
            Port::Spi(port) => port.into_card(),
            Port::Sd(host) => host.into_inner().into_card(),
        }
    }

    /// Reads consecutive blocks, in bursts of at most `burst_blocks`.
    pub(crate) fn read(&self, start: u32, blocks: &mut [Block]) -> Result<(), DriverError> {
        let most = self.driver.burst_blocks;
        self.run.take();
        for (start, blocks) in (start..)
            .step_by(most as usize)
            .zip(blocks.chunks_mut(most as usize))
        {
            self.charge_cpu_time(blocks.len());
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

    /// Writes consecutive blocks, in bursts of at most `burst_blocks`.
    pub(crate) fn write(&self, start: u32, blocks: &[Block]) -> Result<(), DriverError> {
        let most = self.driver.burst_blocks;
        for (start, blocks) in (start..)
            .step_by(most as usize)
            .zip(blocks.chunks(most as usize))
        {
            self.continue_run(start, blocks.len() as u32);
            self.charge_cpu_time(blocks.len());
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

    /// Adds a write to the run of consecutive blocks, before it begins. A card reader that hangs at this length takes
    /// until the host's time-out.
    fn continue_run(&self, start: u32, blocks: u32) {
        let Some(hang) = self.driver.hang else { return };
        let mut run = self.run.get();
        if run.end != start {
            run.blocks = 0;
        }
        if run.blocks + blocks > hang.run_blocks_max {
            self.clock
                .advance_ns(u64::from(hang.timeout_ms) * 1_000_000);
            self.hangs.set(self.hangs.get() + 1);
            run.blocks = 0;
        }
        self.run.set(Run {
            end: start + blocks,
            blocks: run.blocks + blocks,
        });
    }

    fn charge_cpu_time(&self, blocks: usize) {
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
            Port::Spi(port) => port.blocks().map_err(DriverError::Spi)?,
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
        // The clamp changes nothing: the range was checked when the board file was read.
        ncr_clocks: sd.ncr_clocks.clamp(2, 64) as u8,
        ..Options::default()
    };
    let bus = SdBusCard::new(card, options, clock, sd_host::INIT_CLOCK_HZ);
    SdHost::new(
        bus.map_err(|_| SdHostError::Unsupported)?,
        sd,
        checks_status,
    )
}

#[cfg(test)]
mod tests;
