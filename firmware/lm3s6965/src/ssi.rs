//! SPI bus and chip select of the card: SSI 0, and pin 0 of port D.

use crate::registers::{
    PORT_A_AFSEL, PORT_A_DEN, PORT_D_DATA_0, PORT_D_DEN, PORT_D_DIR, RCGC1, RCGC2, SSI_CPSR,
    SSI_CR0, SSI_CR1, SSI_DR, SSI_SR,
};
use crate::time::CLOCK_HZ;
use core::convert::Infallible;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal_async::spi::{self, SpiBus};

/// Smallest and largest clock divider.
const DIVIDER_MIN: u32 = 2;
const DIVIDER_MAX: u32 = 254;
/// Highest bus clock.
pub const BUS_HZ_MAX: u32 = CLOCK_HZ / DIVIDER_MIN;

const RCGC1_SSI_0: u32 = 1 << 4;
const RCGC2_PORTS_A_D: u32 = 1 << 0 | 1 << 3;
/// Pins SSI0Clk, SSI0Rx and SSI0Tx.
const PORT_A_SSI: u32 = 0b11_0100;
/// CR0: eight bits, SPI mode 0.
const EIGHT_BITS: u32 = 7;
/// CR1: enable.
const ENABLE: u32 = 1 << 1;
/// SR: receive FIFO not empty.
const NOT_EMPTY: u32 = 1 << 2;
/// SR: busy.
const IS_BUSY: u32 = 1 << 4;

/// SPI bus.
pub struct Ssi(());

/// Chip select.
pub struct Select(());

/// Initialises SSI and pins; the card is deselected.
pub fn take() -> (Ssi, Select) {
    RCGC1.write(RCGC1.read() | RCGC1_SSI_0);
    RCGC2.write(RCGC2.read() | RCGC2_PORTS_A_D);
    PORT_D_DATA_0.write(1);
    PORT_D_DIR.write(1);
    PORT_D_DEN.write(1);
    PORT_A_AFSEL.write(PORT_A_SSI);
    PORT_A_DEN.write(PORT_A_SSI);
    SSI_CR0.write(EIGHT_BITS);
    SSI_CPSR.write(DIVIDER_MAX);
    SSI_CR1.write(ENABLE);
    (Ssi(()), Select(()))
}

impl Ssi {
    fn exchange(&mut self, byte: u8) -> u8 {
        SSI_DR.write(u32::from(byte));
        while SSI_SR.read() & NOT_EMPTY == 0 {}
        SSI_DR.read() as u8
    }

    /// Sets the clock to at most `hz`, within the range of the divider.
    pub fn set_clock_hz(&mut self, hz: u32) {
        let divider = CLOCK_HZ.div_ceil(hz.max(1)).next_multiple_of(2);
        SSI_CPSR.write(divider.clamp(DIVIDER_MIN, DIVIDER_MAX));
    }
}

impl spi::ErrorType for Ssi {
    type Error = Infallible;
}

// Transfers poll the FIFO at full bus speed; only interrupts run meanwhile.
impl SpiBus for Ssi {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0xFF);
        self.transfer_in_place(bytes).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        for byte in bytes {
            self.exchange(*byte);
        }
        Ok(())
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        for i in 0..read.len().max(write.len()) {
            let byte = self.exchange(write.get(i).copied().unwrap_or(0xFF));
            if let Some(received) = read.get_mut(i) {
                *received = byte;
            }
        }
        Ok(())
    }

    async fn transfer_in_place(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.exchange(*byte);
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        while SSI_SR.read() & IS_BUSY != 0 {}
        Ok(())
    }
}

impl digital::ErrorType for Select {
    type Error = Infallible;
}

impl OutputPin for Select {
    fn set_low(&mut self) -> Result<(), Infallible> {
        PORT_D_DATA_0.write(0);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        PORT_D_DATA_0.write(1);
        Ok(())
    }
}
