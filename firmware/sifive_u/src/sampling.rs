//! Samples that the timer interrupt pushes into the ring buffer.

use crate::CONTROL;
#[cfg(feature = "network")]
use cardiograph_logger::SAMPLE_BYTES;
use cardiograph_logger::{RATE_HZ, measure};
#[cfg(feature = "network")]
use cardiograph_recorder::NewestMemory;
use cardiograph_recorder::{Producer, PushError};
use core::cell::RefCell;
use critical_section::Mutex;

/// Time between checks whether the recorder is ready, in us.
const READY_US: u64 = 1000;

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
