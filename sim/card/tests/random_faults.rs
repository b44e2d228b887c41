//! Random faults: the same seed gives the same trace to the last bit, on any number of threads.

use crate::rig::{self, data};
use cardiograph_sim_card::wire::{FaultMix, FaultSchedule, Wire};
use cardiograph_sim_card::{Block, Defects, Seed};
use embedded_sdmmc::{BlockDevice, BlockIdx};
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 200;
const CLOCK_HZ: u32 = 4_000_000;
const WRITES: u8 = 20;

const MIX: FaultMix = FaultMix {
    power_cuts: 1,
    pulls: 2,
    out_ns_max: 2_000_000,
    lost_commands: 2,
    flips_to_card: 20,
    flips_to_host: 20,
    long_busies: 2,
    extra_ns_max: 200_000_000,
};

/// Trace of one run: time, bytes and result of each write and read, and the final contents of the card.
#[derive(PartialEq)]
struct Trace {
    events: Vec<(u64, u64, String)>,
    stored: Vec<Block>,
    is_wrong: bool,
}

/// Runs a host that reinitialises the card after each error.
fn trace_of(seed: u64) -> Trace {
    let wire = rig::wire_of(rig::card(Defects::default()), CLOCK_HZ);
    let faults = FaultSchedule::random(Seed::new(seed), &MIX, 0..60_000);
    wire.card().schedule(&faults);
    let card = rig::embedded_sdmmc(&wire, true);
    let (mut events, mut is_wrong) = (Vec::new(), false);
    let mut log_event = |wire: &Wire, failure: Option<String>| {
        let now_ns = wire.card().clock().now_ns();
        let bytes = wire.card().count().bytes;
        let is_failed = failure.is_some();
        events.push((now_ns, bytes, failure.unwrap_or_default()));
        if is_failed {
            wire.card().power_on();
            wire.power_up();
            card.mark_card_uninit();
        }
    };
    for number in 0..WRITES {
        let (block, version) = (u64::from(number % 7), number % 4);
        let contents = data(version, block);
        let written = card.write(
            &[embedded_sdmmc::Block { contents }],
            BlockIdx(block as u32),
        );
        let is_written = written.is_ok();
        log_event(&wire, written.err().map(|error| format!("{error:?}")));
        let mut back = [embedded_sdmmc::Block::new()];
        let read = card.read(&mut back, BlockIdx(block as u32));
        is_wrong |= is_written && read.is_ok() && back[0].contents != contents;
        log_event(&wire, read.err().map(|error| format!("{error:?}")));
    }
    let mut stored = vec![[0; 512]; 16];
    wire.card().card().load(0, &mut stored);
    Trace {
        events,
        stored,
        is_wrong,
    }
}

#[test]
fn one_thread_and_eight_threads_give_the_same_traces() {
    let alone: Vec<Trace> = (0..SEEDS).map(trace_of).collect();
    let next = AtomicU64::new(0);
    let work = || {
        let seeds = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        for seed in seeds.take_while(|seed| *seed < SEEDS) {
            assert!(trace_of(seed) == alone[seed as usize], "seed {seed}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(work);
        }
    });
    // Traces of different seeds differ, and most runs meet faults that a driver reports.
    let mut events: Vec<_> = alone.iter().map(|trace| &trace.events).collect();
    events.sort();
    events.dedup();
    assert_eq!(events.len() as u64, SEEDS);
    let failures = |trace: &&Trace| {
        trace
            .events
            .iter()
            .filter(|event| !event.2.is_empty())
            .count()
    };
    assert!(alone.iter().filter(|trace| failures(trace) > 2).count() as u64 > SEEDS / 2);
    // Every write and read without an error was correct.
    for (seed, trace) in alone.iter().enumerate() {
        assert!(!trace.is_wrong, "seed {seed}");
    }
}
