//! What others ask of the recorder while it runs, and see of it.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Shared between the recorder and those around it, interrupts included: plain loads and stores. Each
/// request is made by one place only.
#[derive(Default)]
pub struct Control {
    is_ready: AtomicBool,
    stop: AtomicBool,
    flush_asked: AtomicU32,
    flush_done: AtomicU32,
    roll_asked: AtomicU32,
    /// Longest that a flush would take just now, in us.
    flush_us_max: AtomicU32,
}

impl Control {
    /// Nothing is asked.
    pub const fn new() -> Self {
        Control {
            is_ready: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            flush_asked: AtomicU32::new(0),
            flush_done: AtomicU32::new(0),
            roll_asked: AtomicU32::new(0),
            flush_us_max: AtomicU32::new(0),
        }
    }

    /// Whether files are open, so that the producer may begin.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Ends the recording: what waits is written, and the files are closed.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// The supply is failing: makes all that was pushed durable, before anything else. Returns the number
    /// of the request.
    pub fn flush(&self) -> u32 {
        let number = self.flush_asked.load(Ordering::Relaxed).wrapping_add(1);
        self.flush_asked.store(number, Ordering::Release);
        number
    }

    /// Whether a flush is done.
    pub fn is_flushed(&self, number: u32) -> bool {
        self.flush_done.load(Ordering::Acquire).wrapping_sub(number) as i32 >= 0
    }

    /// The longest that a flush asked for now should take, in us, by what this card has shown so far: the
    /// ring's bytes at the rate it writes, and the longest busy.
    pub fn flush_us_max(&self) -> u32 {
        self.flush_us_max.load(Ordering::Relaxed)
    }

    /// Goes on in a new file, all streams: a recipe has ended. No sample is lost by it.
    pub fn roll(&self) {
        let number = self.roll_asked.load(Ordering::Relaxed).wrapping_add(1);
        self.roll_asked.store(number, Ordering::Release);
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn flush_asked(&self) -> u32 {
        self.flush_asked.load(Ordering::Acquire)
    }

    pub(crate) fn set_flushed(&self, number: u32) {
        self.flush_done.store(number, Ordering::Release);
    }

    pub(crate) fn roll_asked(&self) -> u32 {
        self.roll_asked.load(Ordering::Acquire)
    }

    pub(crate) fn set_flush_us_max(&self, us: u32) {
        self.flush_us_max.store(us, Ordering::Relaxed);
    }
}
