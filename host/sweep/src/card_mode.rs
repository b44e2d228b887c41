//! The mode `card`: the writes of a policy on the card's timing alone.
//!
//! Bus and driver take the same time for each block, which a short stream over the simulated bus measures. If the
//! backlog never exceeds a buffer, nothing is lost with that buffer; one simulation therefore serves all buffer sizes.

use crate::SweepError;
use crate::card_stream::peak_backlog;
use crate::task::{Row, Task};
use cardiograph_plan::stream;
use cardiograph_sim_card::{Board, Profile};

/// Payload of the stream that measures the time per block.
const CALIBRATION_BYTES: u64 = 256 << 10;
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// A card, and the time that bus and driver take per block.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) block_ns: u64,
}

impl<'a> Set<'a> {
    /// Measures the time per block on the simulated bus.
    ///
    /// # Errors
    /// If the recorder's driver cannot write to the card.
    pub fn measure(
        target: &str,
        profile: &'a Profile,
        board: &Board,
    ) -> Result<Set<'a>, SweepError> {
        let streamed = stream((profile, board), 1, CALIBRATION_BYTES);
        let streamed = streamed.map_err(|error| SweepError::new(format!("{target}: {error}")))?;
        let times_ns = streamed.trace.operations();
        let mut times_ns: Vec<u64> = times_ns
            .map(|block| block.end_ns - block.start_ns)
            .collect();
        // The card is not busy before most blocks, so the median contains no busy time.
        let middle = times_ns.len() / 2;
        let (_, &mut block_ns, _) = times_ns.select_nth_unstable(middle);
        Ok(Set { profile, block_ns })
    }
}

/// Samples of a recording.
#[derive(Clone, Copy, Debug)]
pub struct CardLoad {
    /// Samples per second.
    pub rate_hz: u32,
    /// Bytes per sample.
    pub sample_bytes: u32,
    /// Length of the recording, in ns.
    pub run_ns: u64,
    /// Durability window, in ns.
    pub window_ns: u64,
}

impl CardLoad {
    /// Returns the arrival of a sample, in ns from the start.
    fn arrival_ns(&self, sample: u64) -> u64 {
        let rate = u64::from(self.rate_hz);
        sample / rate * NS_PER_S + sample % rate * NS_PER_S / rate
    }

    /// Returns the time at which `bytes` bytes of samples have arrived.
    pub(crate) fn arrival_of_byte_ns(&self, bytes: u64) -> u64 {
        self.arrival_ns(bytes.div_ceil(self.sample_bytes.into()).saturating_sub(1))
    }

    /// Returns the bytes of all samples that have arrived at `ns`.
    pub(crate) fn arrived_bytes(&self, ns: u64) -> u64 {
        let rate = u64::from(self.rate_hz);
        let whole = match ns.checked_mul(rate) {
            // Most products fit, and a division of 128 bits takes ten times as long.
            Some(product) => product / NS_PER_S,
            None => (u128::from(ns) * u128::from(rate) / u128::from(NS_PER_S)) as u64,
        };
        (whole + 1) * u64::from(self.sample_bytes)
    }
}

/// Runs a task in card mode.
pub(crate) fn run(
    task: &Task,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Vec<Row>>, SweepError> {
    let spec = task.spec;
    let load = CardLoad {
        rate_hz: task.rate_hz,
        sample_bytes: spec.sample_bytes,
        run_ns: spec.run_s * NS_PER_S,
        window_ns: spec.durability_window_ms * 1_000_000,
    };
    let mut rows = Vec::new();
    for (member, profile) in task.numbered() {
        let set = Set::measure(&task.target(), profile, task.board)?;
        for seed in task.seeds.clone() {
            let Some(peak_bytes) = peak_backlog(&set, seed, &load, is_stopped) else {
                return Ok(None);
            };
            for &buffer_bytes in task.buffers_bytes {
                let mut row = task.row(member, buffer_bytes, seed);
                row.lost = peak_bytes > buffer_bytes;
                row.peak_backlog_bytes = peak_bytes;
                rows.push(row);
            }
        }
    }
    Ok(Some(rows))
}
