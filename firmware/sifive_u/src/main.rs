//! Data logger in 64 KiB of RAM: samples from an interrupt are recorded to an SD card and served over Ethernet. Without
//! the feature `network`, the ring buffer is larger, and commands over the serial port stop the recording and test the card.
//!
//! Runs on QEMU's sifive_u, whose card and network nobody of this project has written. `cargo xtask qemu` starts it;
//! `cargo xtask network` tests it.
#![no_std]
#![no_main]

mod card;
#[cfg(feature = "network")]
mod ethernet;
mod executor;
mod memory;
#[cfg(feature = "network")]
mod network;
#[cfg(not(feature = "network"))]
mod port;
mod print;
mod registers;
mod sampling;
mod time;

#[cfg(feature = "network")]
use cardiograph_card::BlockDevice;
use cardiograph_card::{CLOCK_HZ, Card};
use cardiograph_qemu_card::{Behaviour, QemuBus};
#[cfg(feature = "network")]
use cardiograph_recorder::StartError;
use cardiograph_recorder::{
    Config, Consumer, Control, DosTime, Event, FatError, FatVolume, Parts, ReadDesk, Recorder,
    StreamConfig, Window,
};
use core::convert::Infallible;
use core::panic::PanicInfo;
use embassy_executor::Spawner;
use embassy_time::{Delay, Duration, Timer};
use registers::SETTINGS;
use static_cell::StaticCell;

/// Requests to the recorder.
static CONTROL: Control = Control::new();
/// Time after which the recorder runs again when it has no usable card.
const RETRY: Duration = Duration::from_secs(1);

#[riscv_rt::entry]
fn main() -> ! {
    registers::paint_stack();
    print::start();
    println!("cardiograph on sifive_u");
    // Here, where little of the stack is in use.
    let memory = memory::take();
    executor::run(|spawner| spawner.spawn(log(spawner, memory).expect("spawned once")))
}

#[embassy_executor::task]
async fn log(spawner: Spawner, memory: memory::Memory) {
    let (producer, consumer) = memory.ring.split(cardiograph_logger::FORMAT);
    sampling::start(producer);
    time::start();

    let recorder = recorder(memory.desk, consumer);
    #[cfg(feature = "network")]
    let fault = {
        static FAULT: StaticCell<BoardFault> = StaticCell::new();
        FAULT.init(BoardFault::new())
    };
    #[cfg(feature = "network")]
    network::start(spawner, memory.desk, fault);
    #[cfg(not(feature = "network"))]
    port::start(spawner, memory.desk);
    loop {
        match recorder.run().await {
            Ok([summary]) => {
                println!(
                    "stopped: {} samples written, {} lost, ring peak {} B",
                    summary.written, summary.lost, summary.ring_peak_bytes,
                );
                #[cfg(feature = "network")]
                fault.set(None);
                break;
            }
            Err(error) => {
                println!("no recording yet: {error}");
                #[cfg(feature = "network")]
                fault.set(Some(error));
            }
        }
        Timer::after(RETRY).await;
    }
    print_memory();
    loop {
        if let Err(error) = recorder.serve(|| false).await {
            println!("the files are not served: {error}");
        }
        Timer::after(RETRY).await;
    }
}

type BoardCard = Card<QemuBus<card::Bus>, card::Select, Delay, card::Clock>;
type BoardFatError = FatError<Infallible>;
#[cfg(feature = "network")]
type BoardFault =
    cardiograph_logger::Fault<StartError<<BoardCard as BlockDevice>::Error, BoardFatError>>;
type BoardRecorder =
    Recorder<'static, BoardCard, FatVolume, BoardFatError, fn() -> u64, Delay, fn(Event), 1>;

/// Creates the recorder in static memory. Not inlined, so that no task keeps the stack that this takes.
#[inline(never)]
fn recorder(
    desk: &'static ReadDesk<'static>,
    consumer: Consumer<'static>,
) -> &'static mut BoardRecorder {
    static RECORDER: StaticCell<BoardRecorder> = StaticCell::new();
    static BEHAVIOUR: StaticCell<Behaviour> = StaticCell::new();
    let behaviour = BEHAVIOUR.init(Behaviour {
        now_us: time::now_us,
        stall_ms: SETTINGS.read(),
        stall_blocks: SETTINGS.at(4).read(),
        is_write_protected: SETTINGS.at(8).read() != 0,
    });
    let (bus, select) = card::open();
    let bus = QemuBus::new(bus, behaviour);
    let date: fn() -> DosTime = || DosTime::NO_CLOCK;
    let parts = Parts {
        medium: Card::new(bus, select, Delay, card::Clock, CLOCK_HZ),
        volume: FatVolume::new(date, time::now_us() as u32),
        clock: time::now_us as fn() -> u64,
        delay: Delay,
        events: report as fn(Event),
        control: &CONTROL,
        reads: Some(desk),
    };
    let config = Config {
        serves_after_end: true,
        // A client may remove files.
        waits_for_room: cfg!(feature = "network"),
        stall_budget_us: behaviour.stall_ms * 1000,
        ..Config::default()
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: cardiograph_logger::FORMAT,
        window: Window::default(),
    };
    RECORDER.init(Recorder::new(parts, config, [(stream, consumer)]))
}

/// Reports an event, unless it is an ordinary checkpoint.
fn report(event: Event) {
    if !matches!(event, Event::Checkpoint { is_late: false, .. }) {
        println!("{event}");
    }
}

fn print_memory() {
    println!(
        "RAM: {} B static, {} B for the stack, {} B maximum stack",
        registers::static_bytes(),
        registers::stack_bytes(),
        registers::stack_bytes_max()
    );
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    println!("{info}");
    loop {
        riscv::asm::wfi();
    }
}
