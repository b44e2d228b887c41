//! The clock, and its interrupt: for samples, and for the timers of the tasks.

use crate::registers::{self, CLINT, Register};
use crate::sampling;
use core::cell::{Cell, RefCell};
use core::task::Waker;
use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;
use riscv::interrupt::Interrupt;

/// Time at which the first processor gets its timer interrupt.
const COMPARE_LOW: Register = CLINT.at(0x4000);
const COMPARE_HIGH: Register = CLINT.at(0x4004);
/// Time in us: the clock has 1 MHz.
const TIME_LOW: Register = CLINT.at(0xBFF8);
const TIME_HIGH: Register = CLINT.at(0xBFFC);

struct Clock {
    timers: Mutex<RefCell<Queue>>,
    sample_us: Mutex<Cell<u64>>,
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock {
    timers: Mutex::new(RefCell::new(Queue::new())),
    sample_us: Mutex::new(Cell::new(u64::MAX)),
});

/// Enables the interrupt, and begins to take samples.
pub fn start() {
    critical_section::with(|section| {
        CLOCK.sample_us.borrow(section).set(now_us());
        CLOCK.schedule(section);
    });
    registers::enable_interrupts();
}

/// Returns the time since the start, in us.
pub fn now_us() -> u64 {
    loop {
        let high = TIME_HIGH.read();
        let low = TIME_LOW.read();
        if high == TIME_HIGH.read() {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

impl Driver for Clock {
    fn now(&self) -> u64 {
        now_us()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            if self.timers.borrow_ref_mut(section).schedule_wake(at, waker) {
                self.schedule(section);
            }
        });
    }
}

impl Clock {
    /// Wakes the tasks whose time has come, and sets the time of the next interrupt.
    fn schedule(&self, section: CriticalSection<'_>) {
        let timer_us = self
            .timers
            .borrow_ref_mut(section)
            .next_expiration(now_us());
        let at_us = timer_us.min(self.sample_us.borrow(section).get());
        // No interrupt between the two writes.
        COMPARE_HIGH.write(u32::MAX);
        COMPARE_LOW.write(at_us as u32);
        COMPARE_HIGH.write((at_us >> 32) as u32);
    }
}

#[riscv_rt::core_interrupt(Interrupt::MachineTimer)]
fn tick() {
    critical_section::with(|section| {
        let sample_us = CLOCK.sample_us.borrow(section);
        if now_us() >= sample_us.get() {
            sample_us.set(sampling::take_due(now_us()));
        }
        CLOCK.schedule(section);
    });
}
