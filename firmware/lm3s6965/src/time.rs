//! Clocks, a delay, running a future, and counting instructions.

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

/// Clock of processor and peripherals.
pub const CLOCK_HZ: u32 = 50_000_000;
const CLOCK_NS: u32 = 1_000_000_000 / CLOCK_HZ;
const CLOCKS_PER_US: u32 = CLOCK_HZ / 1_000_000;
/// RCC: 200 MHz of the PLL over 4.
const RCC_50_MHZ: u32 = 3 << 23 | 1 << 22;
const RCGC1_TIMERS: u32 = 0b11 << 16;

/// What QEMU lets an instruction take: `-icount shift=6`. A clock is shorter, so that SysTick counts
/// single instructions.
const INSTRUCTION_NS: u32 = 64;
const _: () = assert!(CLOCK_NS < INSTRUCTION_NS);
/// SysTick has 24 bits.
const SYSTICK_MAX: u32 = (1 << 24) - 1;

const ONE_SHOT: u32 = 1;
const PERIODIC: u32 = 2;
const TIMER_0_INTERRUPT: i16 = 19;
const TIMER_1_INTERRUPT: i16 = 21;

/// Microseconds since the start, and SysTick when they were counted.
static NOW: Mutex<Cell<(u64, u32)>> = Mutex::new(Cell::new((0, 0)));
static IS_DELAY_OVER: AtomicBool = AtomicBool::new(false);
/// While interrupts come each millisecond, SysTick does not go round in one wait.
static IDLE_CLOCKS: AtomicU32 = AtomicU32::new(0);
/// Whether an interrupt came since this was last cleared.
static WAS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Starts the clocks: SysTick, which counts, timer 0, which interrupts each millisecond, and timer 1,
/// which ends delays.
pub fn start(systick: &mut SYST) {
    RCC.write(RCC_50_MHZ);
    RCGC1.write(RCGC1.read() | RCGC1_TIMERS);
    systick.set_clock_source(SystClkSource::Core);
    systick.set_reload(SYSTICK_MAX);
    systick.clear_current();
    systick.enable_counter();
    // It reads as zero until it was loaded.
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

/// Microseconds since the start. Asked for each millisecond at least, long before SysTick goes round.
pub fn now_us() -> u64 {
    cortex_m::interrupt::free(|free| {
        let now = NOW.borrow(free);
        let (us, systick) = now.get();
        // It counts down.
        let clocks = systick.wrapping_sub(SYST::get_current()) & SYSTICK_MAX;
        let more_us = clocks / CLOCKS_PER_US;
        let us = us + u64::from(more_us);
        let systick = systick.wrapping_sub(more_us * CLOCKS_PER_US) & SYSTICK_MAX;
        now.set((us, systick));
        us
    })
}

// Every interrupt, so that no table of this chip's is needed.
#[allow(unsafe_code, reason = "the attribute asks for it")]
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
        other => panic!("interrupt {other} was not asked for"),
    }
    WAS_INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Waits by timer 1.
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

/// Runs a future to its end. The processor waits from one interrupt to the next in between.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Some(output) = poll_or_wait(future.as_mut()) {
            return output;
        }
    }
}

/// Polls a future at most so often, and drops it.
pub fn poll_times<F: Future>(future: F, times: u32) -> Option<F::Output> {
    let mut future = pin!(future);
    (0..times).find_map(|_| poll_or_wait(future.as_mut()))
}

fn poll_or_wait<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    WAS_INTERRUPTED.store(false, Ordering::Relaxed);
    if let Poll::Ready(output) = future.poll(&mut Context::from_waker(Waker::noop())) {
        return Some(output);
    }
    // Awake: QEMU 7.2 joins every second interrupt of a timer to the next while the processor sleeps.
    let clocks = clocks(|| {
        while !WAS_INTERRUPTED.load(Ordering::Relaxed) {
            spin_loop()
        }
    });
    let idle = IDLE_CLOCKS.load(Ordering::Relaxed);
    IDLE_CLOCKS.store(idle.wrapping_add(clocks), Ordering::Relaxed);
    None
}

/// Microseconds that there was nothing to do; they begin anew after 85 s.
pub fn idle_us() -> u32 {
    IDLE_CLOCKS.load(Ordering::Relaxed) / CLOCKS_PER_US
}

/// Instructions that a call takes, at most 5 million, with interrupts off.
pub fn instructions(call: impl FnOnce()) -> u32 {
    cortex_m::interrupt::free(|_| {
        let empty = clocks(|| ());
        let clocks = clocks(call) - empty;
        // Reading SysTick twice takes the same instructions in both; the remainder is of the clock.
        (clocks * CLOCK_NS + INSTRUCTION_NS / 2) / INSTRUCTION_NS
    })
}

// Apart, so that nothing of what surrounds a call is moved between the looks at the clock.
#[inline(never)]
fn clocks(call: impl FnOnce()) -> u32 {
    let before = SYST::get_current();
    compiler_fence(Ordering::SeqCst);
    call();
    compiler_fence(Ordering::SeqCst);
    // It counts down.
    before.wrapping_sub(SYST::get_current()) & SYSTICK_MAX
}
