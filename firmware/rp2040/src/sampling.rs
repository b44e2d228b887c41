//! Samples that an interrupt pushes into the ring buffer.

use cardiograph_recorder::{
    Column, Consumer, Control, Format, Kind, Producer, PushError, Ring, Schema,
};
use core::sync::atomic::AtomicU8;
use embassy_time::{Instant, Timer};
use static_cell::ConstStaticCell;

/// Samples per second; the environment variable sets another rate when the firmware is built.
const RATE_HZ: u64 = match option_env!("CARDIOGRAPH_RATE_HZ") {
    Some(text) => match u64::from_str_radix(text, 10) {
        Ok(hz @ 1..=10_000) => hz,
        _ => panic!("CARDIOGRAPH_RATE_HZ must be a number from 1 to 10000"),
    },
    None => 860,
};
/// Size of the ring buffer: 1.5 s of samples at 860 Hz. The environment variable sets a smaller one.
const RING_BYTES: usize = 1024
    * match option_env!("CARDIOGRAPH_RING_KIB") {
        Some(text) => match usize::from_str_radix(text, 10) {
            Ok(kib @ 8..=128) => kib,
            _ => panic!("CARDIOGRAPH_RING_KIB must be a number from 8 to 128"),
        },
        None => 128,
    };
const SAMPLE_BYTES: usize = SCHEMA.sample_bytes();
const CHANNELS: usize = 22;

/// Columns of a sample of 100 B. `cargo xtask rp2040` checks the values.
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

/// Creates the ring buffer.
pub fn ring() -> (Producer<'static>, Consumer<'static>) {
    static RING: ConstStaticCell<Ring<[AtomicU8; RING_BYTES]>> = ConstStaticCell::new(Ring::new());
    RING.take().split(FORMAT)
}

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
