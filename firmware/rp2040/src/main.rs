//! Data logger on a Raspberry Pi Pico: samples from an interrupt are recorded to an SD card on SPI 0.
//!
//! Reports on UART 0; `docs/boards/rp2040.md` describes the wiring. `cargo xtask rp2040` runs the firmware in an
//! emulator with a simulated card.
#![no_std]
#![no_main]

mod card;
mod report;
mod sampling;

use card::{Bus, Clock};
use cardiograph_card::{ACQUIRE_CLOCK_HZ, CLOCK_HZ, Card};
use cardiograph_recorder::{
    Config, Control, DosTime, FatVolume, Parts, Recorder, StreamConfig, Window,
};
use core::cell::RefCell;
use core::panic::PanicInfo;
use embassy_executor::{InterruptExecutor, Spawner};
use embassy_rp::clocks::RoscRng;
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::interrupt::{InterruptExt, Priority};
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1};
use embassy_rp::spi::{self, Spi};
use embassy_rp::{bind_interrupts, dma, interrupt};
use embassy_time::{Delay, Duration, Instant, Timer};
use report::Report;

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

/// Requests to the recorder.
static CONTROL: Control = Control::new();
/// Runs the sampling task in an interrupt, which preempts the recorder.
static SAMPLING: InterruptExecutor = InterruptExecutor::new();
/// Time after which the recorder runs again when it has no usable card.
const RETRY: Duration = Duration::from_secs(1);
/// Period in which the button is read: shorter than a press, longer than its bounce.
const BUTTON_MS: u64 = 20;

#[allow(unsafe_code, reason = "required by the executor")]
#[interrupt]
unsafe fn SWI_IRQ_1() {
    // SAFETY: `start` of this executor gets the same interrupt.
    unsafe { SAMPLING.on_interrupt() }
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let pins = embassy_rp::init(embassy_rp::config::Config::default());
    let report = RefCell::new(Report::new(pins.UART0, pins.PIN_0));
    report
        .borrow_mut()
        .line(format_args!("cardiograph on a Raspberry Pi Pico"));

    let (producer, consumer) = sampling::ring();
    interrupt::SWI_IRQ_1.set_priority(Priority::P2);
    let sample = sampling::sample(producer, &CONTROL).expect("spawned once");
    SAMPLING.start(interrupt::SWI_IRQ_1).spawn(sample);
    let button = Input::new(pins.PIN_22, Pull::Up);
    spawner.spawn(stop_on_press(button).expect("spawned once"));

    let mut bus = spi::Config::default();
    bus.frequency = ACQUIRE_CLOCK_HZ;
    let bus = Spi::new(
        pins.SPI0,
        pins.PIN_18,
        pins.PIN_19,
        pins.PIN_16,
        pins.DMA_CH0,
        pins.DMA_CH1,
        Interrupts,
        bus,
    );
    let select = Output::new(pins.PIN_17, Level::High);
    let mut card = Card::new(Bus(bus), select, Delay, Clock, CLOCK_HZ);
    if card.acquire().await.is_ok()
        && let Ok(cid) = card.read_cid().await
    {
        report.borrow_mut().line(format_args!("card: {cid}"));
    }
    let parts = Parts {
        medium: card,
        volume: FatVolume::new(|| DosTime::NO_CLOCK, RoscRng.next_u32()),
        clock: || Instant::now().as_micros(),
        delay: Delay,
        events: |event| report.borrow_mut().event(&event),
        control: &CONTROL,
        reads: None,
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: cardiograph_logger::FORMAT,
        window: Window::default(),
    };
    let mut recorder = Recorder::new(parts, Config::default(), [(stream, consumer)]);
    let [summary] = loop {
        match recorder.run().await {
            Ok(summaries) => break summaries,
            Err(error) => {
                let text = format_args!("no recording yet: {error}");
                report.borrow_mut().line(text);
            }
        }
        Timer::after(RETRY).await;
    };
    report.borrow_mut().summary(&summary);
}

/// Stops the recording when the button is pressed.
#[embassy_executor::task]
async fn stop_on_press(button: Input<'static>) {
    while button.is_high() {
        Timer::after_millis(BUTTON_MS).await;
    }
    CONTROL.stop();
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    // The next start recovers the recording.
    cortex_m::peripheral::SCB::sys_reset()
}
