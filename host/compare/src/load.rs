//! Check that a bus carries a data rate, and that a card has room for the samples.

use crate::bus_rate_bytes_per_s;
use cardiograph_report::units;
use cardiograph_sim_card::{Profile, Spi};

/// Maximum space on a card, in bytes, that is not available for files: partition table, allocation tables and
/// alignment.
const OVERHEAD_BYTES: u64 = 16 << 20;

/// Amount of data of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Total size of all samples, in bytes.
    pub bytes: u64,
    /// Rate at which they arrive; `None` if a recording with its own times is replayed.
    pub bytes_per_s: Option<f64>,
    /// True if old recordings are removed to make room.
    pub removes_oldest: bool,
}

impl Load {
    /// Checks that the bus carries the rate, and that the samples fit on the card. `spi` is `None` for boards without
    /// an SPI bus, whose rate is not checked.
    ///
    /// # Errors
    /// One sentence with the remedy.
    pub fn check(&self, profile: &Profile, spi: Option<&Spi>) -> Result<(), String> {
        if let (Some(spi), Some(requested)) = (spi, self.bytes_per_s) {
            let maximum = bus_rate_bytes_per_s(spi);
            if requested > maximum {
                return Err(format!(
                    "the samples need {}, but the bus carries at most {}; reduce --rate or --sample-bytes, or use \
                     a board with a faster clock",
                    units::rate(requested),
                    units::rate(maximum)
                ));
            }
        }
        let room = profile.capacity_bytes.saturating_sub(OVERHEAD_BYTES);
        if self.bytes > room && !self.removes_oldest {
            return Err(format!(
                "the samples take {}, but at most {} fit on this card; reduce --for, use a larger card, or add \
                 --when-full remove-oldest",
                units::bytes(self.bytes as f64),
                units::bytes(room as f64)
            ));
        }
        Ok(())
    }
}
