//! Settings of a recording: samples, buffer and policy.

use crate::Invalid;
use cardiograph_workload::Phase;
use std::num::NonZeroU32;

/// The way in which samples get from the buffer to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Opens the file, appends one sample and closes the file, for every sample: the safe way of MagOD2 (figure
    /// 4.6).
    Naive,
    /// Keeps the file open, writes every sample separately, and closes the file at the end (figure 4.9).
    KeepOpen,
    /// Keeps samples in the buffer until a session ends, then opens the file, appends them and closes the
    /// file: the final recommendation of MagOD2, which calls a session a recipe. Meanwhile samples of the
    /// next session go to the buffer.
    AfterRecipe {
        /// Length of a session, in ns. The last one ends with the last sample.
        recipe_ns: u64,
    },
}

/// Samples of one length at a fixed rate, the buffer before the writer, and its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Samples per second.
    pub rate_hz: NonZeroU32,
    /// Bytes of a sample, a line of text including CR LF.
    pub line_bytes: u32,
    /// Total number of samples.
    pub lines: u64,
    /// Bytes of the buffer. Buffers of the library are not included.
    pub ram_bytes: u64,
    /// Policy of the writer.
    pub policy: Policy,
}

/// Bytes of the shortest sample: one byte, CR and LF.
const LINE_BYTES_MIN: u32 = 3;
/// Bytes of the longest file of FAT.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;
const NS_PER_S: u64 = 1_000_000_000;

impl Recording {
    /// Returns the number of samples in a recording of this length, in ns: those that arrive before its end.
    pub fn lines_before(rate_hz: NonZeroU32, ns: u64) -> u64 {
        let lines = u128::from(ns) * u128::from(rate_hz.get());
        lines
            .div_ceil(NS_PER_S.into())
            .try_into()
            .unwrap_or(u64::MAX)
    }

    /// Returns the arrival time of a sample, in ns from the start: index / rate, rounded down, without drift.
    pub fn arrival_ns(&self, line: u64) -> u64 {
        let rate = u64::from(self.rate_hz.get());
        let (whole_s, rest) = (line / rate, line % rate);
        whole_s * NS_PER_S + rest * NS_PER_S / rate
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Invalid`], which displays the permitted values.
    pub fn check(&self) -> Result<(), Invalid> {
        if !(LINE_BYTES_MIN..=Phase::BYTES_PER_CALL_MAX).contains(&self.line_bytes) {
            return Err(Invalid::LineBytes);
        }
        if self.ram_bytes < self.line_bytes.into() {
            return Err(Invalid::RamBytes);
        }
        if self.lines > FILE_BYTES_MAX / u64::from(self.line_bytes) {
            return Err(Invalid::FileBytes);
        }
        match self.policy {
            Policy::AfterRecipe { recipe_ns: 0 } => Err(Invalid::Recipe),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(rate_hz: u32) -> Recording {
        Recording {
            rate_hz: NonZeroU32::new(rate_hz).unwrap(),
            line_bytes: 100,
            lines: 1,
            ram_bytes: 65_536,
            policy: Policy::Naive,
        }
    }

    #[test]
    fn arrivals_do_not_drift() {
        for rate_hz in [1, 7, 8, 860, 999_999_937, u32::MAX] {
            let recording = recording(rate_hz);
            for line in [0, 1, 2, 859, 860, 861, 74_303_999, u64::from(u32::MAX)] {
                let exact = u128::from(line) * 1_000_000_000 / u128::from(rate_hz);
                assert_eq!(u128::from(recording.arrival_ns(line)), exact);
            }
        }
        assert_eq!(recording(860).arrival_ns(860 * 86_400), 86_400 * NS_PER_S);
    }

    #[test]
    fn a_length_has_the_samples_that_arrive_within_it() {
        for rate_hz in [1, 3, 8, 860, 7919] {
            let recording = recording(rate_hz);
            for ns in [
                0,
                1,
                999_999_999,
                1_000_000_000,
                1_000_000_001,
                120 * NS_PER_S,
            ] {
                let lines = Recording::lines_before(recording.rate_hz, ns);
                assert!(lines == 0 || recording.arrival_ns(lines - 1) < ns);
                assert!(recording.arrival_ns(lines) >= ns);
            }
        }
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let good = recording(860);
        assert_eq!(good.check(), Ok(()));
        let check = |change: fn(&mut Recording)| {
            let mut bad = good;
            change(&mut bad);
            bad.check().unwrap_err()
        };
        assert_eq!(check(|bad| bad.line_bytes = 2), Invalid::LineBytes);
        assert_eq!(check(|bad| bad.ram_bytes = 99), Invalid::RamBytes);
        assert_eq!(check(|bad| bad.lines = 42_949_673), Invalid::FileBytes);
        let recipe = Policy::AfterRecipe { recipe_ns: 0 };
        let bad = Recording {
            policy: recipe,
            ..good
        };
        assert_eq!(bad.check(), Err(Invalid::Recipe));
    }
}
