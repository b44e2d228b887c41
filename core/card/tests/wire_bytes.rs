//! Bytes, time and memory that the driver uses when nothing fails.

use crate::rig::{self, BYTE_NS, OPTIONS, Rig, data, flash, run};
use cardiograph_card::Error;
use cardiograph_sim_card::wire::{Count, Fault, Kind, Options};
use cardiograph_sim_card::{Card as Flash, Profile, Seed};
use cardiograph_sim_world::World;
use embedded_sdmmc::{BlockDevice, BlockIdx, SdCard};
use std::cell::Cell;
use std::rc::Rc;

/// Returns the bytes transferred so far, without busy bytes.
fn quiet(rig: &Rig) -> u64 {
    let Count { bytes, busy, .. } = rig.wire.card().count();
    bytes - busy
}

#[test]
fn every_kind_of_card_is_acquired_written_and_read_back() {
    for kind in [Kind::Version1, Kind::Standard, Kind::High] {
        for init_us in [0, 20_000, 900_000] {
            let options = Options {
                kind,
                init_us,
                ..OPTIONS
            };
            let mut rig = Rig::with(flash(), options);
            assert_eq!(rig.read(0, 1), Err(Error::NotReady));
            rig.acquire().unwrap();
            assert_eq!(rig.driver.blocks(), 32 * 1024);
            rig.write(5, &run(1, 5, 1)).unwrap();
            rig.write(6, &run(1, 6, 20)).unwrap();
            rig.write(32 * 1024 - 1, &run(1, 9, 1)).unwrap();
            assert!((5..26).all(|block| rig.stored(block) == data(1, block)));
            assert!(rig.read(5, 21).unwrap() == run(1, 5, 21));
            assert!(rig.read(7, 1).unwrap() == run(1, 7, 1));
            assert!(rig.read(32 * 1024 - 1, 1).unwrap() == run(1, 9, 1));
        }
    }
}

#[test]
fn another_driver_reads_what_was_written() {
    let mut rig = Rig::ready();
    rig.write(100, &run(3, 100, 40)).unwrap();
    let card = SdCard::new(rig.wire.device(), rig.wire.delay());
    let mut blocks = [const { embedded_sdmmc::Block { contents: [0; 512] } }; 40];
    rig.wire.power_up();
    card.read(&mut blocks, BlockIdx(100)).unwrap();
    for (block, read) in (100..).zip(&blocks) {
        assert!(read.contents == data(3, block));
    }
    // The reverse direction: embedded-sdmmc writes, and this driver reads after initialising the card
    // again.
    let contents = data(4, 7);
    let block = embedded_sdmmc::Block { contents };
    card.write(&[block.clone(), block], BlockIdx(7)).unwrap();
    rig.acquire().unwrap();
    assert!(rig.read(7, 2).unwrap() == [contents; 2]);
}

#[test]
fn a_single_block_takes_536_bytes_and_two_ncr() {
    for ncr in [1, 2, 8] {
        let options = Options {
            ncr_bytes: ncr,
            ..OPTIONS
        };
        let mut rig = Rig::with(flash(), options);
        rig.acquire().unwrap();
        for block in 0..20 {
            let before = quiet(&rig);
            rig.write(block, &[data(1, block)]).unwrap();
            // CMD24: 8 + NCR. NWR and block: 517. The poll that finds the card ready: 1. CMD13: 9 + NCR. Deselecting:
            // 1.
            assert_eq!(quiet(&rig) - before, 536 + 2 * u64::from(ncr));
        }
    }
}

#[test]
fn a_stream_takes_517_bytes_a_block() {
    for ncr in [1, 2, 8] {
        let options = Options {
            ncr_bytes: ncr,
            ..OPTIONS
        };
        let mut rig = Rig::with(flash(), options);
        rig.acquire().unwrap();
        for n in [2, 3, 64, 100] {
            let before = quiet(&rig);
            rig.write(64, &run(1, 64, n)).unwrap();
            let fixed = FIXED + 6 * u64::from(ncr) + u64::from(OPTIONS.nac_bytes);
            assert_eq!(quiet(&rig) - before, 517 * u64::from(n) + fixed);
        }
    }
}

/// Bytes of a stream that do not depend on its length:
///
/// - CMD55, CMD23 and CMD25: 24
/// - stop token and the bytes after it: 4
/// - CMD13: 9
/// - CMD55 and CMD22: 16, and the count: 7
/// - deselecting: 1
const FIXED: u64 = 61;

/// Returns the share of the bus time, without busy, that a stream uses for data.
fn efficiency(rig: &mut Rig, blocks: u32, polls: &mut u64) -> f64 {
    rig.begin(0, blocks).unwrap();
    let clock = rig.wire.card().clock().clone();
    let (began_ns, mut busy_ns, busy) = (clock.now_ns(), 0, rig.wire.card().count().busy);
    for block in 0..blocks {
        rig.push(&data(1, block)).unwrap();
        busy_ns += rig
            .wire
            .card()
            .busy_until_ns()
            .saturating_sub(clock.now_ns());
    }
    // The next call detects the end of the last busy time.
    let end_ns = rig.wire.card().busy_until_ns().max(clock.now_ns());
    *polls = rig.wire.card().count().busy - busy;
    let wire_ns = end_ns - began_ns - busy_ns;
    rig.end().unwrap();
    f64::from(blocks) * 512.0 * BYTE_NS as f64 / wire_ns as f64 / (512.0 / 517.0)
}

#[test]
fn a_stream_leaves_98_percent_of_the_wire_to_data() {
    // The cards tested differ in page size and in busy times.
    for name in [
        "class10-16g",
        "kioxia-16g-tlc",
        "sandisk-extreme-ii-2g",
        "toshiba-8g",
    ] {
        let mut profile = Profile::named(name).unwrap();
        profile.capacity_bytes = 64 << 20;
        for blocks in [64, 100, 256, 1024] {
            let mut rig = Rig::with(Flash::new(&profile, Seed::new(1)), OPTIONS);
            rig.acquire().unwrap();
            let mut polls = 0;
            let share = efficiency(&mut rig, blocks, &mut polls);
            println!(
                "{name}, {blocks} blocks: {:.2} %, {polls} polls",
                100.0 * share
            );
            assert!(share >= 0.98, "{name}, {blocks} blocks: {share}");
        }
    }
}

#[test]
fn a_long_busy_time_takes_few_polls() {
    let mut rig = Rig::ready();
    rig.inject(
        0,
        Fault::Busy {
            extra_ns: 250_000_000,
        },
    );
    let before = rig.wire.card().count().busy;
    rig.write(5, &[data(1, 5)]).unwrap();
    let polls = rig.wire.card().count().busy - before;
    println!("{polls} polls during 250 ms of busy");
    assert!(polls < 1_500);
}

#[test]
fn a_read_stops_a_stream_and_the_next_block_reopens_it() {
    let mut rig = Rig::ready();
    rig.write(200, &run(2, 200, 3)).unwrap();
    rig.begin(10, 20).unwrap();
    for block in 10..30 {
        rig.push(&data(1, block)).unwrap();
        if block % 6 == 0 {
            assert!(rig.read(200, 3).unwrap() == run(2, 200, 3));
            assert!(rig.read(10, 2).unwrap()[0] == data(1, 10));
        }
    }
    assert_eq!(rig.begin(1, 1), Err(Error::StreamOpen));
    assert_eq!(rig.write(1, &run(1, 1, 1)), Err(Error::StreamOpen));
    rig.end().unwrap();
    assert_eq!(rig.end(), Err(Error::NoStream));
    assert!((10..30).all(|block| rig.stored(block) == data(1, block)));
    assert!(rig.stored(30) == [0; 512]);
}

#[test]
fn driver_and_futures_fit_into_1536_bytes() {
    let mut rig = Rig::ready();
    let driver_bytes = size_of_val(&rig.driver);
    let (block, blocks) = ([0; 512], [[0; 512]; 2]);
    let mut read = [[0; 512]; 2];
    let acquire = size_of_val(&rig.driver.acquire());
    let reading = size_of_val(&rig.driver.read(0, &mut read));
    let writing = size_of_val(&rig.driver.write(0, &blocks));
    let push = size_of_val(&rig.driver.push(&block));
    let end = size_of_val(&rig.driver.end());
    let of = [acquire, reading, writing, push, end];
    println!("driver {driver_bytes} bytes, futures to acquire, read, write, push, end {of:?}");
    let future_bytes = of.iter().max().unwrap();
    assert!(driver_bytes + future_bytes < 1536);
}

#[test]
fn other_tasks_run_while_the_card_is_busy() {
    let rig = Rig::new();
    let mut world = World::on_clock(Seed::new(1), rig.wire.card().clock().clone());
    let mut driver = rig::driver(&rig.wire, world.handle());
    let (handle, ticks) = (world.handle(), Rc::new(Cell::new(0)));
    let counter = ticks.clone();
    world.spawn("ticker", async move {
        loop {
            handle.sleep_ns(100_000).await;
            counter.set(counter.get() + 1);
        }
    });
    world.block_on(driver.acquire()).unwrap().unwrap();
    let extra_ns = 250_000_000;
    rig.inject(0, Fault::Busy { extra_ns });
    ticks.set(0);
    let block = [data(1, 5)];
    world.block_on(driver.write(5, &block)).unwrap().unwrap();
    // 2500 ticks of 100 us would be ideal: polling hardly delays the other task.
    assert!(ticks.get() >= 2_490, "{} ticks", ticks.get());
    assert!(rig.stored(5) == data(1, 5));
}
