//! embedded-sdmmc's own driver on a simulated SPI bus. This module adds two things that the driver lacks:
//! waiting after a burst, and waiting for cards that stay busy for longer than the driver's timeout.
//!
//! Section numbers are those of the SD Physical Layer Simplified Specification, version 9.00.

use crate::sd_host::INIT_CLOCK_HZ;
use cardiograph_sim_card::wire::{Delay, Kind, Options, SpiCard, SpiDevice, Wire};
use cardiograph_sim_card::{Card, Clock, Spi};
use embedded_hal::spi::SpiDevice as _;
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use embedded_sdmmc::{Block, BlockDevice as _, BlockIdx, SdCard, SdCardError};
use std::cell::Cell;

/// Number of calls to a driver that times out on a busy card; together these wait about 12 s.
const RETRIES_MAX: u32 = 100;

/// Token that ends a burst over SPI (7.3.3.2).
const STOP_TOKEN: u8 = 0xFD;
/// Token before data sent by the card (7.3.3.2).
const START_TOKEN: u8 = 0xFE;
/// Byte read from a card that is not busy.
const RELEASED: u8 = 0xFF;
/// Longest wait for a busy card after a burst, in ns.
const BUSY_NS_MAX: u64 = 12_000_000_000;

/// embedded-sdmmc's own driver on a simulated SPI bus.
pub(crate) struct SpiPort {
    driver: SdCard<SpiDevice, Delay>,
    wire: Wire,
    timeouts: Cell<u64>,
}

impl SpiPort {
    /// Initialises the card and sets the board's clock.
    pub(crate) fn new(
        card: Card,
        spi: &Spi,
        kind: Kind,
        clock: Clock,
    ) -> Result<SpiPort, SdCardError> {
        let options = Options {
            kind,
            // The minimum changes nothing: the range was checked when the board file was read.
            ncr_bytes: spi.ncr_bytes.min(8) as u8,
            ..Options::default()
        };
        let card = SpiCard::new(card, options, clock, INIT_CLOCK_HZ);
        let wire = Wire::new(card.map_err(|_| SdCardError::CardNotFound)?);
        wire.power_up();
        // Checksums would take most of the host's time, and take no virtual time.
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
            timeouts: Cell::default(),
        })
    }

    /// Returns how many times the driver timed out on a busy card.
    pub(crate) fn timeouts(&self) -> u64 {
        self.timeouts.get()
    }

    /// Returns true if the card rejects writes because it is worn out.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.wire.card().card().controller().is_worn_out()
    }

    /// Returns the number of blocks of the card.
    pub(crate) fn blocks(&self) -> Result<u32, SdCardError> {
        Ok(self.driver.num_blocks()?.0)
    }

    /// Returns a copy of the card as a power cut at this moment would leave it.
    pub(crate) fn interrupted_copy(&self) -> Card {
        self.wire.card().interrupted_copy().card
    }

    /// Removes the card from the bus.
    pub(crate) fn into_card(self) -> Card {
        drop(self.driver);
        let card = self.wire.into_card();
        card.unwrap_or_else(|| {
            unreachable!("the driver, now dropped, held the only other reference to the bus")
        })
    }

    /// Reads consecutive blocks with one command.
    pub(crate) fn read(&self, start: u32, blocks: &mut [Block]) -> Result<(), SdCardError> {
        self.retry_while_busy(|| self.driver.read(blocks, BlockIdx(start)))
    }

    /// Writes consecutive blocks with one command; returns when the card is no longer busy.
    pub(crate) fn write(&self, start: u32, blocks: &[Block]) -> Result<(), SdCardError> {
        let (mut start, mut rest) = (start, blocks);
        for _ in 0..RETRIES_MAX {
            if rest.len() <= 1 {
                return match rest {
                    [] => Ok(()),
                    one => self.retry_while_busy(|| self.driver.write(one, BlockIdx(start))),
                };
            }
            self.wait()?;
            let written = self.driver.write(rest, BlockIdx(start));
            let Err(SdCardError::TimeoutWaitNotBusy) = written else {
                // Skip a byte: the driver would take the busy signal after the stop token for a response to
                // its next command.
                self.exchange(RELEASED)?;
                self.wait()?;
                return written;
            };
            self.timeouts.set(self.timeouts.get() + 1);
            let done = self.end_burst()?.min(rest.len() as u32);
            start += done;
            rest = &rest[done as usize..];
        }
        Err(SdCardError::TimeoutWaitNotBusy)
    }

    /// Ends a burst on which the driver timed out; returns the number of blocks that the card has accepted
    /// (ACMD22). Writing the accepted blocks again could cause the same stall again, without end.
    fn end_burst(&self) -> Result<u32, SdCardError> {
        self.wait()?;
        self.exchange(STOP_TOKEN)?;
        self.exchange(RELEASED)?;
        self.wait()?;
        for index in [55, 22] {
            let command = [0x40 | index, 0, 0, 0, 0, RELEASED];
            let sent = self.wire.device().write(&command);
            sent.map_err(|_| SdCardError::Transport)?;
            self.await_byte(|byte| byte & 0x80 == 0)?;
        }
        self.await_byte(|byte| byte == START_TOKEN)?;
        let mut taken = [0; 4];
        for byte in &mut taken {
            *byte = self.exchange(RELEASED)?;
        }
        // The CRC follows.
        self.exchange(RELEASED)?;
        self.exchange(RELEASED)?;
        Ok(u32::from_be_bytes(taken))
    }

    /// Calls the driver, repeatedly while it times out on a busy card: a long stall must be measured and must
    /// not end the run.
    fn retry_while_busy<T>(
        &self,
        mut call: impl FnMut() -> Result<T, SdCardError>,
    ) -> Result<T, SdCardError> {
        let mut result = call();
        for _ in 0..RETRIES_MAX {
            let Err(SdCardError::TimeoutWaitNotBusy) = result else {
                break;
            };
            self.timeouts.set(self.timeouts.get() + 1);
            result = call();
        }
        result
    }

    /// Reads bytes until the card is no longer busy.
    fn wait(&self) -> Result<(), SdCardError> {
        self.await_byte(|byte| byte == RELEASED)
    }

    fn await_byte(&self, is_due: impl Fn(u8) -> bool) -> Result<(), SdCardError> {
        let end_ns = self.now_ns() + BUSY_NS_MAX;
        while !is_due(self.exchange(RELEASED)?) {
            if self.now_ns() > end_ns {
                return Err(SdCardError::TimeoutWaitNotBusy);
            }
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.wire.card().clock().now_ns()
    }

    fn exchange(&self, out: u8) -> Result<u8, SdCardError> {
        let mut byte = [out];
        let exchanged = self.wire.device().transfer_in_place(&mut byte);
        exchanged.map_err(|_| SdCardError::Transport)?;
        Ok(byte[0])
    }
}
