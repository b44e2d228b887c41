//! Samples that the timer interrupt pushes into the ring buffer.

use crate::CONTROL;
#[cfg(feature = "network")]
use cardiograph_recorder::NewestMemory;
use cardiograph_recorder::{Column, Format, Kind, Producer, PushError, Schema};
use core::cell::RefCell;
use critical_section::Mutex;

/// Samples per second.
const RATE_HZ: u64 = 860;
const SAMPLE_BYTES: usize = SCHEMA.sample_bytes();
const CHANNELS: usize = 22;
/// Time between checks whether the recorder is ready, in us.
const READY_US: u64 = 1000;

/// Columns of a sample of 100 B. `xtask/src/rp2040/judge.rs` checks the values.
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

/// Samples that the server shows live: those of the last 4 ms. It reads older ones from the card.
#[cfg(feature = "network")]
const NEWEST_SAMPLES: usize = 4;
#[cfg(feature = "network")]
pub static NEWEST: NewestMemory<NEWEST_SAMPLES, SAMPLE_BYTES> = NewestMemory::new();

/// State of the interrupt handler during a recording.
static SAMPLING: Mutex<RefCell<Option<Sampling>>> = Mutex::new(RefCell::new(None));

struct Sampling {
    producer: Producer<'static>,
    /// Time of the first sample, in us.
    began_us: Option<u64>,
    next: u32,
}

/// Takes samples from the next interrupt on, once the recorder is ready.
pub fn start(
    #[cfg_attr(not(feature = "network"), expect(unused_mut))] mut producer: Producer<'static>,
) {
    #[cfg(feature = "network")]
    producer.show(NEWEST.handle());
    let sampling = Sampling {
        producer,
        began_us: None,
        next: 0,
    };
    critical_section::with(|section| SAMPLING.replace(section, Some(sampling)));
}

/// Takes every sample that is due; returns the time of the next one, in us. Runs in the interrupt.
pub fn take_due(now_us: u64) -> u64 {
    critical_section::with(|section| {
        let mut slot = SAMPLING.borrow_ref_mut(section);
        let Some(sampling) = slot.as_mut() else {
            return u64::MAX;
        };
        if !CONTROL.is_ready() {
            return now_us + READY_US;
        }
        match sampling.take_due(now_us) {
            Ok(next_us) => next_us,
            Err(PushError::Stopped) => {
                *slot = None;
                u64::MAX
            }
            Err(_) => now_us + READY_US,
        }
    })
}

impl Sampling {
    fn take_due(&mut self, now_us: u64) -> Result<u64, PushError> {
        let began_us = *self.began_us.get_or_insert(now_us);
        loop {
            // From the start each time, so that rounding errors do not add up.
            let due_us = began_us + u64::from(self.next) * 1_000_000 / RATE_HZ;
            if due_us > now_us {
                return Ok(due_us);
            }
            // The recorder reports samples that do not fit as a gap.
            if let Err(PushError::Stopped) = self.producer.push(&measure(due_us, self.next), now_us)
            {
                return Err(PushError::Stopped);
            }
            self.next += 1;
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
