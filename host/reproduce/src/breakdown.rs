//! What the time of an operation is made of: card, bus, driver and library.
//!
//! The card's part is the sum of its busy times. The computer's parts are the board's, times how often they
//! come. The bus has the rest. What the FAT library costs beyond its own CPU time is the blocks that it moves
//! besides payload.

use crate::experiment::{Experiment, ExperimentError};
use crate::recording::Recording;
use cardiograph_sim_card::Operation;
use cardiograph_workload::Span;

/// Means over all operations of an experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breakdown {
    /// The whole time, in ns.
    pub total_ns: f64,
    /// The card is busy, or fetches.
    pub card_ns: f64,
    /// Bytes on the bus, and waiting for the end of busy to be noticed.
    pub bus_ns: f64,
    /// CPU time of the driver.
    pub driver_ns: f64,
    /// CPU time of the library.
    pub library_ns: f64,
    /// Blocks read for it.
    pub blocks_read: f64,
    /// Blocks written for it.
    pub blocks_written: f64,
    /// Payload, in blocks.
    pub payload_blocks: f64,
}

impl Breakdown {
    /// Runs an experiment of one phase and takes its operations apart.
    ///
    /// # Errors
    /// As [`Experiment::run`].
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
                    Operation::Discard { .. } => {}
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

    /// In a sentence.
    pub fn sentence(&self, what: &str) -> String {
        let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
        format!(
            "{what} takes {}: card {}, bus {}, driver's CPU {}, FAT library's CPU {}. The FAT library reads {:.1} \
             and writes {:.1} blocks for it, {:.1} of them payload.",
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
    fn the_parts_are_the_whole_and_the_bus_is_its_bytes() {
        let parts = breakdown("magod2-kept-open");
        let sum = parts.card_ns + parts.bus_ns + parts.driver_ns + parts.library_ns;
        assert!((sum / parts.total_ns - 1.0).abs() < 1e-9);
        // A block and its status are 536 bytes, and so is a block read or less; 2 us a byte at 4 MHz. The
        // driver waits 10 us between looks at a busy card.
        let blocks = parts.blocks_read + parts.blocks_written;
        let bytes = parts.bus_ns / 2000.0;
        assert!(
            (520.0..600.0).contains(&(bytes / blocks)),
            "{}",
            bytes / blocks
        );
    }

    #[test]
    fn opening_and_closing_moves_many_blocks_for_little_payload() {
        let (kept_open, opened) = (breakdown("magod2-kept-open"), breakdown("magod2"));
        assert!(kept_open.blocks_written < 1.0);
        assert!(opened.blocks_read + opened.blocks_written > 5.0);
        assert!((opened.payload_blocks - 100.0 / 512.0).abs() < 1e-9);
    }
}
