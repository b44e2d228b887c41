//! Samples that an interrupt pushes into the ring buffer.

use cardiograph_logger::{RATE_HZ, SAMPLE_BYTES};
use cardiograph_recorder::{Control, NewestMemory, Producer};

/// Samples that the server shows live: those of 297 ms, of which it needs the newest 150.
const NEWEST_SAMPLES: usize = 256;
pub static NEWEST: NewestMemory<NEWEST_SAMPLES, SAMPLE_BYTES> = NewestMemory::new();

/// Takes samples in an interrupt.
#[embassy_executor::task]
pub async fn sample(producer: Producer<'static>, control: &'static Control) {
    cardiograph_logger::sample(producer, control, RATE_HZ).await;
}
