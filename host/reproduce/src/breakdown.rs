//! Breakdown of latencies into the times of card, bus, driver and library.
//!
//! The card's share is the sum of the times for which it is busy or reads from its flash. Driver and library
//! shares are the board's CPU times, multiplied by the number of commands, blocks and calls. The remainder
//! is the bus. Besides its CPU time, the FAT library causes the transfer of all blocks that are not payload.

use crate::experiment::{Experiment, ExperimentError};
use crate::recording::Recording;
use cardiograph_sim_card::Operation;
use cardiograph_workload::Span;

/// Mean values per operation of an experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breakdown {
    /// Latency, in ns.
    pub total_ns: f64,
    /// Time for which the card is busy or reads from its flash, in ns.
    pub card_ns: f64,
    /// Transfer time on the bus, and the delay until the host notices the end of busy, in ns.
    pub bus_ns: f64,
    /// CPU time used by the driver, in ns.
    pub driver_ns: f64,
    /// CPU time used by the file library, in ns.
    pub library_ns: f64,
    /// Number of blocks read.
    pub blocks_read: f64,
    /// Number of blocks written.
    pub blocks_written: f64,
    /// Payload, in blocks.
    pub payload_blocks: f64,
}

impl Breakdown {
    /// Runs an experiment of one phase and breaks down its operations.
    ///
    /// # Errors
    /// As for [`Recording::of`].
    pub fn of(experiment: &Experiment) -> Result<Breakdown, ExperimentError> {
        let (workload, _, board) = experiment.set_up()?;
        let recording = Recording::of(experiment, 1)?;
        let calls_per_operation = match workload.phases.first().map(|phase| phase.span) {
            Some(Span::OpenToClose) => 3,
            _ => 1,
        };
        let operations = recording.operations().all();
        let mut sum = Breakdown::default();
        let mut calls = recording.calls().iter().peekable();
        for operation in operations {
            let duration_ns = operation.duration_ns() as f64;
            let (mut card_ns, mut blocks_read, mut blocks_written, mut commands) = (0, 0, 0, 0);
            while calls
                .next_if(|call| call.start_ns < operation.start_ns)
                .is_some()
            {}
            while let Some(call) = calls.next_if(|call| call.start_ns < operation.end_ns) {
                card_ns += call.busy_ns;
                match call.operation {
                    Operation::Command => commands += 1,
                    Operation::Read { count, .. } => blocks_read += count,
                    Operation::Write { count, .. } => blocks_written += count,
                    Operation::Discard { .. } | Operation::Settle => {}
                }
            }
            let blocks = blocks_read + blocks_written;
            let driver_us = commands * u64::from(board.driver.command_us)
                + blocks * u64::from(board.driver.block_us);
            let library_ns = board.write_call_ns(operation.length_bytes)
                + (calls_per_operation - 1) * board.call_ns();
            let rest_ns = duration_ns - (card_ns + driver_us * 1000 + library_ns) as f64;
            sum.total_ns += duration_ns;
            sum.card_ns += card_ns as f64;
            sum.driver_ns += (driver_us * 1000) as f64;
            sum.library_ns += library_ns as f64;
            sum.bus_ns += rest_ns;
            sum.blocks_read += blocks_read as f64;
            sum.blocks_written += blocks_written as f64;
            sum.payload_blocks += operation.length_bytes as f64 / 512.0;
        }
        Ok(sum.over(operations.len().max(1) as f64))
    }

    fn over(self, count: f64) -> Breakdown {
        Breakdown {
            total_ns: self.total_ns / count,
            card_ns: self.card_ns / count,
            bus_ns: self.bus_ns / count,
            driver_ns: self.driver_ns / count,
            library_ns: self.library_ns / count,
            blocks_read: self.blocks_read / count,
            blocks_written: self.blocks_written / count,
            payload_blocks: self.payload_blocks / count,
        }
    }

    /// Describes the breakdown; `operation` is the subject of the sentence.
    pub fn sentence(&self, operation: &str) -> String {
        let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
        format!(
            "{operation}: {} on average, made up of card {}, bus {}, driver CPU {} and FAT library CPU {}. The FAT \
             library reads {:.1} and writes {:.1} blocks for {:.1} blocks of payload.",
            ms(self.total_ns),
            ms(self.card_ns),
            ms(self.bus_ns),
            ms(self.driver_ns),
            ms(self.library_ns),
            self.blocks_read,
            self.blocks_written,
            self.payload_blocks,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breakdown(workload: &str) -> Breakdown {
        let experiment = Experiment::new("class10-16g", "esp32", workload);
        Breakdown::of(&experiment).unwrap()
    }

    #[test]
    fn shares_add_up_and_bus_time_matches_the_bytes() {
        let shares = breakdown("magod2-kept-open");
        let sum = shares.card_ns + shares.bus_ns + shares.driver_ns + shares.library_ns;
        assert!((sum / shares.total_ns - 1.0).abs() < 1e-9);
        // A block written takes 536 bytes including its status, and a block read takes no more; each byte takes 2 µs at
        // 4 MHz. The driver polls a busy card every 10 µs.
        let blocks = shares.blocks_read + shares.blocks_written;
        let bytes = shares.bus_ns / 2000.0;
        assert!(
            (520.0..600.0).contains(&(bytes / blocks)),
            "{}",
            bytes / blocks
        );
    }

    /// Bit-banged SPI at 16 MHz takes 16 cycles per bit, hence 8 µs per byte.
    #[test]
    fn a_byte_takes_8_us_on_the_mega() {
        let experiment = Experiment::new("sandisk-1g-2008", "mega2560", "byte-multi-write");
        let shares = Breakdown::of(&experiment).unwrap();
        let blocks = shares.blocks_read + shares.blocks_written;
        // A block takes 512 bytes of data and, read or written, 9 to 30 of command, response, token, checksum and status.
        let us_per_block = shares.bus_ns / 1e3 / blocks;
        assert!(
            (521.0 * 8.0..542.0 * 8.0).contains(&us_per_block),
            "{us_per_block}"
        );
    }

    #[test]
    fn opening_and_closing_transfers_many_blocks_for_little_payload() {
        let (kept_open, opened) = (breakdown("magod2-kept-open"), breakdown("magod2"));
        assert!(kept_open.blocks_written < 1.0);
        assert!(opened.blocks_read + opened.blocks_written > 5.0);
        assert!((opened.payload_blocks - 100.0 / 512.0).abs() < 1e-9);
    }
}
