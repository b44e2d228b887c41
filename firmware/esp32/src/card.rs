//! The card on SPI 2.

use cardiograph_card::{ACQUIRE_CLOCK_HZ, SetClock};
use embedded_hal_async::spi::{ErrorType, SpiBus};
use esp_hal::Async;
use esp_hal::gpio::{AnyPin, Level, Output, OutputConfig};
use esp_hal::peripherals::SPI2;
use esp_hal::spi::Error;
use esp_hal::spi::master::{Config, Spi};
use esp_hal::time::Rate;

/// Longest transfer during which the processor waits, in bytes: below, the interrupt would take longer.
const POLLED_BYTES_MAX: usize = 16;

/// Pins of the card.
pub struct Pins {
    pub clock: AnyPin<'static>,
    pub to_card: AnyPin<'static>,
    pub from_card: AnyPin<'static>,
    pub select: AnyPin<'static>,
}

/// Opens the bus; returns it with the chip select, which is high.
pub fn open(spi: SPI2<'static>, pins: Pins) -> (Bus, Output<'static>) {
    let spi = Spi::new(spi, config(ACQUIRE_CLOCK_HZ)).expect("the bus supports 400 kHz");
    let spi = spi
        .with_sck(pins.clock)
        .with_mosi(pins.to_card)
        .with_miso(pins.from_card)
        .into_async();
    let select = Output::new(pins.select, Level::High, OutputConfig::default());
    (Bus(spi), select)
}

fn config(hz: u32) -> Config {
    Config::default().with_frequency(Rate::from_hz(hz))
}

/// The bus: during blocks, the processor does other work.
pub struct Bus(Spi<'static, Async>);

impl ErrorType for Bus {
    type Error = Error;
}

impl SpiBus for Bus {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), Error> {
        // A card takes low bits for a command.
        words.fill(0xFF);
        self.transfer_in_place(words).await
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Error> {
        match words.len() {
            0..=POLLED_BYTES_MAX => self.0.write(words),
            _ => SpiBus::write(&mut self.0, words).await,
        }
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Error> {
        SpiBus::transfer(&mut self.0, read, write).await
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Error> {
        match words.len() {
            0..=POLLED_BYTES_MAX => self.0.transfer(words),
            _ => SpiBus::transfer_in_place(&mut self.0, words).await,
        }
    }

    async fn flush(&mut self) -> Result<(), Error> {
        SpiBus::flush(&mut self.0).await
    }
}

/// Sets the clock of the bus.
pub struct Clock;

impl SetClock<Bus> for Clock {
    fn set_clock_hz(&mut self, bus: &mut Bus, hz: u32) {
        // The driver asks only for clocks that the bus supports.
        let _ = bus.0.apply_config(&config(hz));
    }
}
