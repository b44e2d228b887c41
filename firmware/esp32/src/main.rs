//! Data logger on an ESP32-C3 or an ESP32-C6: samples from an interrupt are recorded to an SD card and served over
//! Wi-Fi, which a router or the logger itself provides.
//!
//! `docs/boards/esp32.md` describes the wiring. The firmware has been built only; it has not run yet.
#![no_std]
#![no_main]

mod actions;
mod card;
mod clock;
mod memory;
mod network;
mod password;
mod sampling;
mod settings;
mod time;
mod wifi;

use actions::{BoardActions, BoardCard};
use card::{Clock, Pins};
use cardiograph_card::CLOCK_HZ;
use cardiograph_logger::FORMAT;
use cardiograph_recorder::{
    Config, Control, Event, FatVolume, Parts, Recorder, StreamConfig, StreamSummary, Window,
};
use core::panic::PanicInfo;
use embassy_executor::Spawner;
use embassy_time::{Delay, Duration, Instant, Timer};
use esp_hal::clock::CpuClock;
use esp_hal::gpio::{Input, InputConfig, Pull};
use esp_hal::interrupt::Priority;
use esp_hal::rng::Rng;
use esp_hal::system::software_reset;
use esp_hal::timer::timg::TimerGroup;
use esp_println::println;
use esp_rtos::embassy::InterruptExecutor;
use static_cell::StaticCell;

esp_bootloader_esp_idf::esp_app_desc!();

/// Requests to the recorder.
static CONTROL: Control = Control::new();
/// Time after which the recorder runs again when it has no usable card.
const RETRY: Duration = Duration::from_secs(1);
/// Period in which the button is read: shorter than a press, longer than its bounce.
const BUTTON_MS: u64 = 20;
/// Stall that the ring buffer absorbs in addition to the reads of the server; it holds 0.76 s of samples.
const STALL_US: u32 = 500_000;

/// Memory of the radio's driver: what the boot loader no longer needs, and a part of ordinary RAM.
const HEAP_BYTES: usize = 36 * 1024;
const RECLAIMED_BYTES: usize = 64 * 1024;

#[esp_rtos::main]
async fn main(spawner: Spawner) {
    let chip = esp_hal::init(esp_hal::Config::default().with_cpu_clock(CpuClock::max()));
    esp_alloc::heap_allocator!(#[esp_hal::ram(reclaimed)] size: RECLAIMED_BYTES);
    esp_alloc::heap_allocator!(size: HEAP_BYTES);
    let timers = TimerGroup::new(chip.TIMG0);
    esp_rtos::start(timers.timer0, chip.FROM_CPU_INTR0);
    println!("cardiograph on an ESP32");

    // Before sampling begins, because writing flash delays interrupts.
    let passphrase = password::load(chip.FLASH, chip.RNG, chip.ADC1);
    let memory = memory::take();
    let (mut producer, consumer) = memory.ring.split(FORMAT);
    producer.show(sampling::NEWEST.handle());
    static SAMPLING: StaticCell<InterruptExecutor<1>> = StaticCell::new();
    let sampling = SAMPLING.init(InterruptExecutor::new(chip.FROM_CPU_INTR1));
    let sample = sampling::sample(producer, &CONTROL).expect("spawned once");
    sampling.start(Priority::Priority3).spawn(sample);

    let pins = Pins {
        clock: chip.GPIO6.into(),
        to_card: chip.GPIO7.into(),
        from_card: chip.GPIO3.into(),
        select: chip.GPIO10.into(),
    };
    let (bus, select) = card::open(chip.SPI2, pins);
    let parts = Parts {
        medium: BoardCard::new(bus, select, Delay, Clock, CLOCK_HZ),
        volume: FatVolume::new(clock::now_fat, Rng::new().random()),
        clock: || Instant::now().as_micros(),
        delay: Delay,
        events: report,
        control: &CONTROL,
        reads: Some(memory.desk),
    };
    let config = Config {
        serves_after_end: true,
        // Clients can download what fills the card.
        waits_for_room: true,
        stall_budget_us: STALL_US,
        ..Config::default()
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: FORMAT,
        window: Window::default(),
    };
    let mut recorder = Recorder::new(parts, config, [(stream, consumer)]);

    let actions = BoardActions::start();
    let start = network::start(
        spawner,
        chip.WIFI,
        passphrase,
        memory.desk,
        memory.network,
        actions,
    );
    spawner.spawn(start.expect("spawned once"));
    let button = Input::new(chip.GPIO9, InputConfig::default().with_pull(Pull::Up));
    spawner.spawn(stop_on_press(button).expect("spawned once"));
    loop {
        match recorder.run().await {
            Ok([summary]) => {
                print_summary(&summary);
                actions.fault.set(None);
                break;
            }
            Err(error) => {
                println!("no recording yet: {error}");
                actions.fault.set(Some(error));
            }
        }
        Timer::after(RETRY).await;
    }
    loop {
        if let Err(error) = recorder.serve(|| false).await {
            println!("the files are not served: {error}");
        }
        Timer::after(RETRY).await;
    }
}

/// Stops the recording when the button is pressed; its files are served until the board is switched off.
#[embassy_executor::task]
async fn stop_on_press(button: Input<'static>) {
    while button.is_high() {
        Timer::after_millis(BUTTON_MS).await;
    }
    CONTROL.stop();
}

/// Reports an event, unless it is an ordinary checkpoint.
fn report(event: Event) {
    if matches!(event, Event::Opened { .. }) {
        settings::FILE_BEGUN.signal(());
    }
    if !matches!(event, Event::Checkpoint { is_late: false, .. }) {
        println!("{event}");
    }
}

fn print_summary(summary: &StreamSummary) {
    println!(
        "stopped: {} samples written, {} lost, ring peak {} B",
        summary.written, summary.lost, summary.ring_peak_bytes,
    );
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    println!("{info}");
    // The next start recovers the recording.
    software_reset()
}
