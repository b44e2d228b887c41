//! Samples of 100 B, as those of a sensor.

use cardiograph_recorder::{Column, Control, Format, Kind, Producer, PushError, Schema};
use embassy_time::{Instant, Timer};

/// Samples per second.
pub const RATE_HZ: u64 = 860;
/// Length of a sample, in bytes.
pub const SAMPLE_BYTES: usize = SCHEMA.sample_bytes();
const CHANNELS: usize = 22;

/// Columns of a sample. `xtask/src/judge.rs` checks the values.
const SCHEMA: Schema = Schema::new(&COLUMNS);
const COLUMNS: [Column; 2 + CHANNELS] = {
    let mut columns = [Column {
        name: "channel",
        kind: Kind::I32,
    }; 2 + CHANNELS];
    columns[0] = Column {
        name: "time_us",
        kind: Kind::U64,
    };
    columns[1] = Column {
        name: "index",
        kind: Kind::U32,
    };
    columns
};
const _: () = assert!(SAMPLE_BYTES == 100);

/// File format of the recording.
pub const FORMAT: Format = Format::Binary(&[SCHEMA]);

/// Samples at a fixed rate, once the recorder is ready and until it stops. For a task that runs in an interrupt.
pub async fn sample(mut producer: Producer<'static>, control: &'static Control, rate_hz: u64) {
    while !control.is_ready() {
        Timer::after_millis(1).await;
    }
    let began_us = Instant::now().as_micros();
    for index in 0_u32.. {
        // From the start each time, so that rounding errors do not add up.
        let due_us = began_us + u64::from(index) * 1_000_000 / rate_hz;
        Timer::at(Instant::from_micros(due_us)).await;
        let now_us = Instant::now().as_micros();
        // The recorder reports samples that do not fit as a gap.
        if let Err(PushError::Stopped) = producer.push(&measure(now_us, index), now_us) {
            return;
        }
    }
}

/// Returns a sample. Replace the channels by the values of a sensor.
pub fn measure(time_us: u64, index: u32) -> [u8; SAMPLE_BYTES] {
    let mut sample = [0; SAMPLE_BYTES];
    sample[..8].copy_from_slice(&time_us.to_le_bytes());
    sample[8..12].copy_from_slice(&index.to_le_bytes());
    let mut value = index.wrapping_mul(0x9E37_79B1);
    for channel in sample[12..].chunks_exact_mut(4) {
        channel.copy_from_slice(&value.to_le_bytes());
        value = value.rotate_left(7).wrapping_add(index);
    }
    sample
}
