//! Reports through the crate `log`. Runs with `--features log`.
#![cfg(feature = "log")]

use cardiograph_card::Card;
use cardiograph_recorder::{Cause, Event, Gap, log_event};
use cardiograph_sim_card::wire::{Fault, Options, SpiCard, Wire};
use cardiograph_sim_card::{Card as Flash, Clock, Defects, Profile, Seed};
use log::{LevelFilter, Log, Metadata, Record};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let line = format!("{} {}", record.level(), record.args());
        self.0.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}

static LINES: Lines = Lines(Mutex::new(Vec::new()));

fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

// One test, because there is one logger in a process.
#[test]
fn the_driver_and_the_events_are_logged() {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Info);

    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 16 << 20;
    let flash = Flash::with_defects(&profile, Defects::default(), Seed::new(1));
    let clock_hz = cardiograph_card::CLOCK_HZ;
    let card = SpiCard::new(flash, Options::default(), Clock::default(), clock_hz).unwrap();
    let wire = Wire::new(card);
    let set_clock = |_: &mut _, _| ();
    let mut driver = Card::new(
        wire.bus(),
        wire.chip_select(),
        wire.delay(),
        set_clock,
        clock_hz,
    );
    done(driver.acquire()).unwrap();
    let byte = wire.card().count().bytes;
    wire.card().inject(byte, Fault::LoseCommand);
    done(driver.read(0, &mut [[0; 512]])).unwrap();

    log_event(Event::Lost {
        stream: 0,
        gap: Gap {
            first: 860,
            count: 12,
            at_us: 1_000_000,
            last_us: 1_012_790,
            cause: Cause::Busy,
        },
    });
    log_event(Event::CardBack);
    // Below the level.
    log_event(Event::Checkpoint {
        stream: 0,
        samples: 860,
        pushed_before_us: 1_000_000,
        is_late: false,
    });

    assert_eq!(
        *LINES.0.lock().unwrap(),
        [
            "INFO card of 32768 blocks ready",
            "WARN no card responds; trying again",
            "WARN stream 0: lost 12 samples from 860 on: busy",
            "INFO the card is back",
        ]
    );
}
