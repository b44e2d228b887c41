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
    AfterSession {
        /// Length of a session, in ns. The last session ends with the last sample.
        session_ns: u64,
    },
}

/// Settings of a recording: samples of equal length at a fixed rate, the size of the buffer, and the policy
/// of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggerConfig {
    /// Samples per second.
    pub rate_hz: NonZeroU32,
    /// Bytes per sample, which is a line of text including CR LF.
    pub sample_bytes: u32,
    /// Total number of samples.
    pub samples: u64,
    /// Size of the buffer in bytes, without the buffers of the file library.
    pub buffer_bytes: u64,
    /// Policy of the writer.
    pub policy: Policy,
}

/// Length of the shortest sample, in bytes: one character, CR and LF.
const SAMPLE_BYTES_MIN: u32 = 3;
/// Maximum size of a file on FAT, in bytes.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;
const NS_PER_S: u64 = 1_000_000_000;

impl LoggerConfig {
    /// Returns the number of samples that arrive before the end of a recording of `ns` nanoseconds.
    pub fn samples_before(rate_hz: NonZeroU32, ns: u64) -> u64 {
        let samples = u128::from(ns) * u128::from(rate_hz.get());
        samples
            .div_ceil(NS_PER_S.into())
            .try_into()
            .unwrap_or(u64::MAX)
    }

    /// Returns the arrival time of a sample, in ns from the start: index / rate, rounded down, without drift.
    pub fn arrival_ns(&self, sample: u64) -> u64 {
        let rate = u64::from(self.rate_hz.get());
        let (whole_s, rest) = (sample / rate, sample % rate);
        whole_s * NS_PER_S + rest * NS_PER_S / rate
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Invalid`], which displays the permitted values.
    pub fn check(&self) -> Result<(), Invalid> {
        if !(SAMPLE_BYTES_MIN..=Phase::BYTES_PER_CALL_MAX).contains(&self.sample_bytes) {
            return Err(Invalid::SampleBytes);
        }
        if self.buffer_bytes < self.sample_bytes.into() {
            return Err(Invalid::BufferBytes);
        }
        if self.samples > FILE_BYTES_MAX / u64::from(self.sample_bytes) {
            return Err(Invalid::FileBytes);
        }
        match self.policy {
            Policy::AfterSession { session_ns: 0 } => Err(Invalid::Session),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(rate_hz: u32) -> LoggerConfig {
        LoggerConfig {
            rate_hz: NonZeroU32::new(rate_hz).unwrap(),
            sample_bytes: 100,
            samples: 1,
            buffer_bytes: 65_536,
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
                let samples = LoggerConfig::samples_before(recording.rate_hz, ns);
                assert!(samples == 0 || recording.arrival_ns(samples - 1) < ns);
                assert!(recording.arrival_ns(samples) >= ns);
            }
        }
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let good = recording(860);
        assert_eq!(good.check(), Ok(()));
        let check = |change: fn(&mut LoggerConfig)| {
            let mut bad = good;
            change(&mut bad);
            bad.check().unwrap_err()
        };
        assert_eq!(check(|bad| bad.sample_bytes = 2), Invalid::SampleBytes);
        assert_eq!(check(|bad| bad.buffer_bytes = 99), Invalid::BufferBytes);
        assert_eq!(check(|bad| bad.samples = 42_949_673), Invalid::FileBytes);
        let policy = Policy::AfterSession { session_ns: 0 };
        let bad = LoggerConfig { policy, ..good };
        assert_eq!(bad.check(), Err(Invalid::Session));
    }
}
