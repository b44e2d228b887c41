//! Messages on UART 0, at 115,200 baud.
//!
//! The port is polled. Sampling runs in an interrupt meanwhile, and the ring buffer holds its samples.

use cardiograph_recorder::{Event, StreamSummary};
use core::fmt::{self, Arguments, Write};
use embassy_rp::Peri;
use embassy_rp::peripherals::{PIN_0, UART0};
use embassy_rp::uart::{Blocking, Config, UartTx};

/// The serial port.
pub struct Report(UartTx<'static, Blocking>);

impl Report {
    /// Opens the port.
    pub fn new(uart: Peri<'static, UART0>, pin: Peri<'static, PIN_0>) -> Report {
        Report(UartTx::new_blocking(uart, pin, Config::default()))
    }

    /// Sends a line.
    pub fn line(&mut self, text: Arguments) {
        // A serial port without a listener loses the text, which changes nothing for the recording.
        let _ = write!(self, "{text}\r\n");
    }

    /// Reports an event, unless it is an ordinary checkpoint.
    pub fn event(&mut self, event: &Event) {
        if !matches!(event, Event::Checkpoint { is_late: false, .. }) {
            self.line(format_args!("{event}"));
        }
    }

    /// Reports the result of the recording.
    pub fn summary(&mut self, summary: &StreamSummary) {
        self.line(format_args!(
            "stopped: {} samples written, {} lost, ring peak {} B, {} checkpoints, {} windows exceeded, {} us at risk",
            summary.written,
            summary.lost,
            summary.ring_peak_bytes,
            summary.checkpoints,
            summary.window_breaches,
            summary.at_risk_us_max,
        ));
    }
}

impl Write for Report {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0
            .blocking_write(text.as_bytes())
            .map_err(|_| fmt::Error)
    }
}
