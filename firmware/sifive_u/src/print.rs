//! Messages on the serial port.

use crate::registers::{Register, UART};
use core::fmt;

const TX_DATA: Register = UART.at(0);
const TX_CONTROL: Register = UART.at(8);
/// Transmit data: the FIFO is full.
const FULL: u32 = 1 << 31;
/// Transmit control: enable.
const ENABLE: u32 = 1;

/// Enables the serial port.
pub fn start() {
    TX_CONTROL.write(ENABLE);
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
