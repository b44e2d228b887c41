//! Samples that an interrupt pushes into the ring buffer.

use cardiograph_recorder::{
    Column, Control, Format, Kind, NewestMemory, Producer, PushError, Schema,
};
use embassy_time::{Instant, Timer};

/// Samples per second.
const RATE_HZ: u64 = 860;
const SAMPLE_BYTES: usize = SCHEMA.sample_bytes();
const CHANNELS: usize = 22;

/// Columns of a sample of 100 B.
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

/// Samples that the server shows live: those of 297 ms, of which it needs the newest 150.
const NEWEST_SAMPLES: usize = 256;
pub static NEWEST: NewestMemory<NEWEST_SAMPLES, SAMPLE_BYTES> = NewestMemory::new();

/// Samples at a fixed rate, once the recorder is ready and until it stops. Runs in an interrupt.
#[embassy_executor::task]
pub async fn sample(mut producer: Producer<'static>, control: &'static Control) {
    while !control.is_ready() {
        Timer::after_millis(1).await;
    }
    let began_us = Instant::now().as_micros();
    for index in 0_u32.. {
        // From the start each time, so that rounding errors do not add up.
        let due_us = began_us + u64::from(index) * 1_000_000 / RATE_HZ;
        Timer::at(Instant::from_micros(due_us)).await;
        let now_us = Instant::now().as_micros();
        // The recorder reports samples that do not fit as a gap.
        if let Err(PushError::Stopped) = producer.push(&measure(now_us, index), now_us) {
            return;
        }
    }
}

/// Returns a sample. Replace the channels by the values of a sensor.
fn measure(time_us: u64, index: u32) -> [u8; SAMPLE_BYTES] {
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
