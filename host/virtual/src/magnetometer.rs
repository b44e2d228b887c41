//! Samples of a simulated magnetometer on a slowly turning table.

use cardiograph_recorder::{Format, LINE_BYTES_MAX, Session};
use cardiograph_sim_device::{Samples, due_ns};
use std::io::Write;

/// Samples per second, the same as with the instrument of study 1.
pub const RATE_HZ: u32 = 860;
/// Maximum length of a row, in bytes.
const ROW_BYTES_MAX: u16 = 48;
/// Rows of text with a time column.
pub const FORMAT: Format = Format::Lines {
    header: "time_us,x_nt,y_nt,z_nt",
    line_bytes_max: ROW_BYTES_MAX,
};

/// Horizontal and vertical component of the field, in nT.
const HORIZONTAL_NT: f64 = 20_000.0;
const VERTICAL_NT: f64 = 45_000.0;
/// Duration of one turn, in s.
const TURN_S: f64 = 12.0;

/// A magnetometer that supplies samples without end.
pub struct Magnetometer {
    /// Session that begins before the first sample.
    pub session: Option<Session>,
}

impl Samples for Magnetometer {
    fn session(&mut self, index: u64) -> Option<Session> {
        self.session.take_if(|_| index == 0)
    }

    fn due_ns(&mut self, index: u64) -> Option<u64> {
        Some(due_ns(index, RATE_HZ))
    }

    fn make(&mut self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let time_us = due_ns(index, RATE_HZ) / 1000;
        let angle = time_us as f64 / 1e6 / TURN_S * std::f64::consts::TAU;
        let (sin, cos) = angle.sin_cos();
        // Noise of a few nT that depends on the index only.
        let noise = (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as f64 - 7.5;
        let mut row = &mut sample[..usize::from(ROW_BYTES_MAX)];
        let room = row.len();
        let written = write!(
            row,
            "{time_us},{:.0},{:.0},{:.0}\r\n",
            HORIZONTAL_NT * cos + noise,
            HORIZONTAL_NT * sin - noise,
            VERTICAL_NT + noise
        );
        // Rows of the first 292,000 years fit.
        debug_assert!(written.is_ok());
        room - row.len()
    }
}
