//! The card: SPI controller 2.

use crate::registers::{Register, SPI};
use core::convert::Infallible;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal_async::spi::{self, SpiBus};

const CLOCK_DIVIDER: Register = SPI.at(0x00);
const SELECT_MODE: Register = SPI.at(0x18);
const FORMAT: Register = SPI.at(0x40);
const TX_DATA: Register = SPI.at(0x48);
const RX_DATA: Register = SPI.at(0x4C);

/// Clock of the controller, in Hz.
const INPUT_HZ: u32 = 500_000_000;
const DIVIDER_MAX: u32 = (1 << 12) - 1;
/// Select mode: low until the mode changes.
const HOLD: u32 = 2;
/// Select mode: high.
const OFF: u32 = 3;
/// Format: eight bits, most significant first.
const EIGHT_BITS: u32 = 8 << 16;
/// Receive data: the FIFO is empty.
const EMPTY: u32 = 1 << 31;
/// Length of the FIFOs, in bytes.
const FIFO_BYTES: usize = 8;

/// SPI bus.
pub struct Bus(());

/// Chip select.
pub struct Select(());

/// Initialises the controller; the card is deselected.
pub fn open() -> (Bus, Select) {
    SELECT_MODE.write(OFF);
    FORMAT.write(EIGHT_BITS);
    CLOCK_DIVIDER.write(DIVIDER_MAX);
    while RX_DATA.read() & EMPTY == 0 {}
    (Bus(()), Select(()))
}

/// Sets the clock of the bus.
pub struct Clock;

impl cardiograph_card::SetClock<cardiograph_qemu_card::QemuBus<Bus>> for Clock {
    fn set_clock_hz(&mut self, _: &mut cardiograph_qemu_card::QemuBus<Bus>, hz: u32) {
        // The bus has half of the controller's clock, divided by one more than the register's value.
        let divider = INPUT_HZ.div_ceil(2 * hz.max(1));
        CLOCK_DIVIDER.write((divider - 1).min(DIVIDER_MAX));
    }
}

impl Bus {
    fn receive(&mut self) -> u8 {
        loop {
            let data = RX_DATA.read();
            if data & EMPTY == 0 {
                return data as u8;
            }
        }
    }
}

impl spi::ErrorType for Bus {
    type Error = Infallible;
}

// Transfers poll the FIFO at full bus speed; only interrupts run meanwhile.
impl SpiBus for Bus {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        // A card takes low bits for a command.
        bytes.fill(0xFF);
        self.transfer_in_place(bytes).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        for part in bytes.chunks(FIFO_BYTES) {
            part.iter().for_each(|byte| TX_DATA.write(u32::from(*byte)));
            for _ in part {
                self.receive();
            }
        }
        Ok(())
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        for i in 0..read.len().max(write.len()) {
            TX_DATA.write(u32::from(write.get(i).copied().unwrap_or(0xFF)));
            let byte = self.receive();
            if let Some(received) = read.get_mut(i) {
                *received = byte;
            }
        }
        Ok(())
    }

    async fn transfer_in_place(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(FIFO_BYTES) {
            part.iter().for_each(|byte| TX_DATA.write(u32::from(*byte)));
            part.iter_mut().for_each(|byte| *byte = self.receive());
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl digital::ErrorType for Select {
    type Error = Infallible;
}

impl OutputPin for Select {
    fn set_low(&mut self) -> Result<(), Infallible> {
        SELECT_MODE.write(HOLD);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        SELECT_MODE.write(OFF);
        Ok(())
    }
}
