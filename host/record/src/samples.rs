//! Generated binary samples. Each contains its own index, so that a missing sample is detected.

use crate::Feed;
use crate::lines::due_ns;
use cardiograph_recorder::{Column, Format, Kind, LINE_BYTES_MAX, Schema};

/// Length of the shortest sample, which consists of its index only, in bytes.
pub const BINARY_SAMPLE_BYTES_MIN: usize = 8;
/// Length of the longest sample, in bytes: 19 columns of 8 B. Its text still fits in one CSV line.
pub const BINARY_SAMPLE_BYTES_MAX: usize = 152;

/// Binary samples with one schema at a fixed rate: a column `number`, then columns of values derived from
/// that number.
#[derive(Clone, Copy, Debug)]
pub struct BinarySamples {
    rate_hz: u32,
    count: u64,
    schemas: &'static [Schema],
}

impl BinarySamples {
    /// Describes `count` samples of `sample_bytes` each, clamped to [`BINARY_SAMPLE_BYTES_MIN`] to
    /// [`BINARY_SAMPLE_BYTES_MAX`]. The schema stays in memory until the program ends.
    pub fn new(rate_hz: u32, sample_bytes: usize, count: u64) -> BinarySamples {
        let bytes = sample_bytes.clamp(BINARY_SAMPLE_BYTES_MIN, BINARY_SAMPLE_BYTES_MAX);
        let mut columns = vec![Column {
            name: "number",
            kind: Kind::U64,
        }];
        let mut left = bytes - Kind::U64.bytes();
        for kind in [Kind::U64, Kind::U32, Kind::U16, Kind::U8] {
            while left >= kind.bytes() {
                let name = format!("value_{}", columns.len()).leak();
                columns.push(Column { name, kind });
                left -= kind.bytes();
            }
        }
        BinarySamples {
            rate_hz,
            count,
            schemas: vec![Schema::new(columns.leak())].leak(),
        }
    }

    fn sample_bytes(&self) -> usize {
        self.schemas[0].sample_bytes()
    }
}

impl Feed for BinarySamples {
    fn count(&self) -> u64 {
        self.count
    }

    fn due_ns(&self, index: u64) -> u64 {
        due_ns(index, self.rate_hz)
    }

    fn make(&self, index: u64, made: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let len = self.sample_bytes();
        let mut state = index;
        for value in made[..len].chunks_mut(8) {
            value.copy_from_slice(&state.to_le_bytes()[..value.len()]);
            state = (state ^ index)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29);
        }
        len
    }

    fn bytes(&self) -> u64 {
        self.count * self.sample_bytes() as u64
    }

    fn format(&self) -> Format {
        Format::Binary(self.schemas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_a_schema_and_numbered_samples() {
        for bytes in BINARY_SAMPLE_BYTES_MIN..=BINARY_SAMPLE_BYTES_MAX {
            let samples = BinarySamples::new(860, bytes, 10);
            let mut made = [0; LINE_BYTES_MAX];
            assert_eq!(samples.make(7, &mut made), bytes);
            assert_eq!(made[..8], 7_u64.to_le_bytes());
            assert_eq!(samples.bytes(), 10 * bytes as u64);
        }
    }
}
