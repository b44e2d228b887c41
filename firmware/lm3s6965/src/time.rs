//! Clocks, delays, an executor, and counting of instructions.

use crate::producer;
use crate::registers::{NVIC_ISER0, RCC, RCGC1, TIMER_0, TIMER_1, TimerRegisters};
use core::cell::Cell;
use core::future::poll_fn;
use core::hint::spin_loop;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};
use core::task::{Context, Poll, Waker};
use cortex_m::interrupt::Mutex;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use embedded_hal_async::delay::DelayNs;

/// Clock of processor and peripherals, in Hz.
pub const CLOCK_HZ: u32 = 50_000_000;
const CLOCK_NS: u32 = 1_000_000_000 / CLOCK_HZ;
const CLOCKS_PER_US: u32 = CLOCK_HZ / 1_000_000;
/// RCC: PLL output of 200 MHz divided by 4.
const RCC_50_MHZ: u32 = 3 << 23 | 1 << 22;
const RCGC1_TIMERS: u32 = 0b11 << 16;

/// Duration of an instruction in QEMU with `-icount shift=6`. A clock period is shorter, so SysTick can count
/// single instructions.
const INSTRUCTION_NS: u32 = 64;
const _: () = assert!(CLOCK_NS < INSTRUCTION_NS);
/// SysTick has 24 bits.
const SYSTICK_MAX: u32 = (1 << 24) - 1;

const ONE_SHOT: u32 = 1;
const PERIODIC: u32 = 2;
const TIMER_0_INTERRUPT: i16 = 19;
const TIMER_1_INTERRUPT: i16 = 21;

/// Microseconds since the start, and the value of SysTick at that time.
static NOW: Mutex<Cell<(u64, u32)>> = Mutex::new(Cell::new((0, 0)));
static IS_DELAY_OVER: AtomicBool = AtomicBool::new(false);
/// Clocks spent waiting. Each wait is shorter than a SysTick period, because interrupts occur every millisecond.
static IDLE_CLOCKS: AtomicU32 = AtomicU32::new(0);
/// Set by every interrupt.
static WAS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Starts the clocks: SysTick for counting, and timer 0 for an interrupt every millisecond. Also enables the
/// interrupt of timer 1, which ends delays.
pub fn start(systick: &mut SYST) {
    RCC.write(RCC_50_MHZ);
    RCGC1.write(RCGC1.read() | RCGC1_TIMERS);
    systick.set_clock_source(SystClkSource::Core);
    systick.set_reload(SYSTICK_MAX);
    systick.clear_current();
    systick.enable_counter();
    // SysTick reads as zero until its first reload.
    while SYST::get_current() == 0 {}
    NVIC_ISER0.write(1 << TIMER_0_INTERRUPT | 1 << TIMER_1_INTERRUPT);
    run_timer(&TIMER_0, PERIODIC, CLOCK_HZ / 1000);
}

fn run_timer(timer: &TimerRegisters, mode: u32, clocks: u32) {
    timer.control.write(0);
    timer.mode.write(mode);
    timer.load.write(clocks);
    timer.interrupt_mask.write(1);
    timer.control.write(1);
}

/// Returns the microseconds since the start. The timer interrupt calls it every millisecond, long before
/// SysTick wraps around.
pub fn now_us() -> u64 {
    cortex_m::interrupt::free(|free| {
        let now = NOW.borrow(free);
        let (us, systick) = now.get();
        // SysTick counts down.
        let clocks = systick.wrapping_sub(SYST::get_current()) & SYSTICK_MAX;
        let more_us = clocks / CLOCKS_PER_US;
        let us = us + u64::from(more_us);
        let systick = systick.wrapping_sub(more_us * CLOCKS_PER_US) & SYSTICK_MAX;
        now.set((us, systick));
        us
    })
}

// Handles every interrupt, so no vector table of this chip is needed.
#[allow(unsafe_code, reason = "required by the attribute")]
#[exception]
unsafe fn DefaultHandler(interrupt: i16) {
    match interrupt {
        TIMER_0_INTERRUPT => {
            TIMER_0.interrupt_clear.write(1);
            producer::tick(now_us());
        }
        TIMER_1_INTERRUPT => {
            TIMER_1.interrupt_clear.write(1);
            IS_DELAY_OVER.store(true, Ordering::Relaxed);
        }
        other => panic!("unexpected interrupt {other}"),
    }
    WAS_INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Delays by timer 1.
pub struct Delay;

impl DelayNs for Delay {
    async fn delay_ns(&mut self, ns: u32) {
        TIMER_1.control.write(0);
        IS_DELAY_OVER.store(false, Ordering::Relaxed);
        run_timer(&TIMER_1, ONE_SHOT, ns.div_ceil(CLOCK_NS).max(1));
        poll_fn(|_| match IS_DELAY_OVER.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

/// Runs a future to completion. Between polls, the processor waits for the next interrupt.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Some(output) = poll_or_wait(future.as_mut()) {
            return output;
        }
    }
}

/// Polls a future at most `times` times, then drops it.
pub fn poll_times<F: Future>(future: F, times: u32) -> Option<F::Output> {
    let mut future = pin!(future);
    (0..times).find_map(|_| poll_or_wait(future.as_mut()))
}

fn poll_or_wait<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    WAS_INTERRUPTED.store(false, Ordering::Relaxed);
    if let Poll::Ready(output) = future.poll(&mut Context::from_waker(Waker::noop())) {
        return Some(output);
    }
    // A busy loop instead of sleep: while the processor sleeps, QEMU 7.2 merges every second timer interrupt
    // with the next.
    let clocks = clocks(|| {
        while !WAS_INTERRUPTED.load(Ordering::Relaxed) {
            spin_loop()
        }
    });
    let idle = IDLE_CLOCKS.load(Ordering::Relaxed);
    IDLE_CLOCKS.store(idle.wrapping_add(clocks), Ordering::Relaxed);
    None
}

/// Returns the total idle time in µs; wraps around after 85 s.
pub fn idle_us() -> u32 {
    IDLE_CLOCKS.load(Ordering::Relaxed) / CLOCKS_PER_US
}

/// Returns the number of instructions of a call, with interrupts disabled. At most 5 million.
pub fn instructions(call: impl FnOnce()) -> u32 {
    cortex_m::interrupt::free(|_| {
        let empty = clocks(|| ());
        let clocks = clocks(call) - empty;
        // The overhead of reading SysTick is the same in both; the rest is a rounding error of the clock.
        (clocks * CLOCK_NS + INSTRUCTION_NS / 2) / INSTRUCTION_NS
    })
}

// Not inlined, so that no surrounding code is moved between the two readings.
#[inline(never)]
fn clocks(call: impl FnOnce()) -> u32 {
    let before = SYST::get_current();
    compiler_fence(Ordering::SeqCst);
    call();
    compiler_fence(Ordering::SeqCst);
    // SysTick counts down.
    before.wrapping_sub(SYST::get_current()) & SYSTICK_MAX
}
