//! The card on SPI 0, with DMA.

use cardiograph_card::SetClock;
use embassy_rp::peripherals::SPI0;
use embassy_rp::spi::{Async, Error, Spi};
use embedded_hal_async::spi::{ErrorType, SpiBus};

/// Longest transfer without DMA, in bytes: below, setting up DMA and its interrupt would take longer.
const POLLED_BYTES_MAX: usize = 16;

/// The bus: blocks go by DMA, so that the processor sleeps meanwhile; commands and polls do not.
pub struct Bus(pub Spi<'static, SPI0, Async>);

impl ErrorType for Bus {
    type Error = Error;
}

impl SpiBus for Bus {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), Error> {
        words.fill(0xFF);
        self.transfer_in_place(words).await
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Error> {
        match words.len() {
            0..=POLLED_BYTES_MAX => self.0.blocking_write(words),
            _ => self.0.write(words).await,
        }
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Error> {
        self.0.transfer(read, write).await
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Error> {
        match words.len() {
            0..=POLLED_BYTES_MAX => self.0.blocking_transfer_in_place(words),
            _ => self.0.transfer_in_place(words).await,
        }
    }

    async fn flush(&mut self) -> Result<(), Error> {
        self.0.flush()
    }
}

/// Sets the clock of the bus.
pub struct Clock;

impl SetClock<Bus> for Clock {
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32) {
        bus.0.set_frequency(hz);
    }
}
