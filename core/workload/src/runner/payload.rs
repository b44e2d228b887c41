//! Content and offset of each call; the same in every run.

use super::Run;
use crate::{Fill, Phase};

impl<S, C, O> Run<'_, S, C, O> {
    /// Returns the file offset of a call, in bytes.
    #[inline]
    pub(super) fn next_offset_bytes(&mut self, phase: &Phase, call: u32) -> u64 {
        let payload = u64::from(phase.bytes_per_call);
        if phase.jump_within_bytes == 0 {
            return u64::from(call) * payload;
        }
        let within_run = call % phase.jump_every_calls;
        if within_run == 0 {
            self.random = splitmix64(self.random);
        }
        let run_bytes = payload * u64::from(phase.jump_every_calls);
        let offsets = (phase.jump_within_bytes - run_bytes) / payload + 1;
        (self.random % offsets + u64::from(within_run)) * payload
    }

    pub(super) fn fill(&mut self, fill: Fill, bytes_per_call: u32, file: u32) {
        let payload = &mut self.payload[..bytes_per_call as usize];
        match fill {
            Fill::Line => {
                payload.fill(b'~');
                let end = payload.len();
                if let Some(line_end) = end.checked_sub(2).map(|at| &mut payload[at..]) {
                    line_end.copy_from_slice(b"\r\n");
                }
            }
            Fill::Zeros => payload.fill(0),
            Fill::Letter | Fill::Numbered => payload.fill(b'A' + (file % 26) as u8),
        }
    }

    /// Fills the buffer with the given number of payloads.
    pub(super) fn fill_many(&mut self, phase: &Phase, file: u32, payloads: u32) {
        self.fill(phase.fill, phase.bytes_per_call, file);
        let length = phase.bytes_per_call as usize;
        for index in 1..payloads as usize {
            self.payload.copy_within(..length, index * length);
        }
    }

    /// Numbers the given number of payloads from `call` on.
    pub(super) fn stamp_many(&mut self, phase: &Phase, call: u32, payloads: u32) {
        if phase.fill == Fill::Numbered && phase.bytes_per_call >= 8 {
            let buffer = self.payload.chunks_exact_mut(phase.bytes_per_call as usize);
            for (payload, number) in buffer.take(payloads as usize).zip(u64::from(call)..) {
                payload[..8].copy_from_slice(&number.to_le_bytes());
            }
        }
    }

    #[inline]
    pub(super) fn stamp(&mut self, phase: &Phase, call: u32) {
        if phase.fill == Fill::Numbered && phase.bytes_per_call >= 8 {
            self.payload[..8].copy_from_slice(&u64::from(call).to_le_bytes());
        }
    }
}

/// Returns the next number of the SplitMix64 sequence (Steele, Lea and Flood, 2014).
fn splitmix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
