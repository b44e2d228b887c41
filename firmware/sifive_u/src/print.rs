//! The serial port: messages, and bytes from the other side.

use crate::registers::{Register, UART};
use core::fmt;

const TX_DATA: Register = UART.at(0);
#[cfg(not(feature = "network"))]
const RX_DATA: Register = UART.at(4);
const TX_CONTROL: Register = UART.at(8);
const RX_CONTROL: Register = UART.at(12);
/// Transmit data: the FIFO is full.
const FULL: u32 = 1 << 31;
/// Receive data: the FIFO is empty.
#[cfg(not(feature = "network"))]
const EMPTY: u32 = 1 << 31;
/// Transmit and receive control: enable.
const ENABLE: u32 = 1;

/// Enables the serial port.
pub fn start() {
    TX_CONTROL.write(ENABLE);
    RX_CONTROL.write(ENABLE);
}

/// Returns the next byte that was received, if there is one.
#[cfg(not(feature = "network"))]
pub fn received() -> Option<u8> {
    let data = RX_DATA.read();
    (data & EMPTY == 0).then_some(data as u8)
}

/// Writes text to the serial port; waits while it is busy.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while TX_DATA.read() & FULL != 0 {}
            TX_DATA.write(u32::from(byte));
        }
        Ok(())
    }
}

/// Prints a line.
#[macro_export]
macro_rules! println {
    ($($text:tt)*) => {{
        use core::fmt::Write;
        let _ = writeln!($crate::print::Serial, $($text)*);
    }};
}
