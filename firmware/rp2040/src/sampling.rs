//! Samples that an interrupt pushes into the ring buffer.

use cardiograph_logger::FORMAT;
use cardiograph_recorder::{Consumer, Control, Producer, Ring};
use core::sync::atomic::AtomicU8;
use static_cell::ConstStaticCell;

/// Samples per second; the environment variable sets another rate when the firmware is built.
const RATE_HZ: u64 = match option_env!("CARDIOGRAPH_RATE_HZ") {
    Some(text) => match u64::from_str_radix(text, 10) {
        Ok(hz @ 1..=10_000) => hz,
        _ => panic!("CARDIOGRAPH_RATE_HZ must be a number from 1 to 10000"),
    },
    None => cardiograph_logger::RATE_HZ,
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

/// Creates the ring buffer.
pub fn ring() -> (Producer<'static>, Consumer<'static>) {
    static RING: ConstStaticCell<Ring<[AtomicU8; RING_BYTES]>> = ConstStaticCell::new(Ring::new());
    RING.take().split(FORMAT)
}

/// Takes samples in an interrupt.
#[embassy_executor::task]
pub async fn sample(producer: Producer<'static>, control: &'static Control) {
    cardiograph_logger::sample(producer, control, RATE_HZ).await;
}
