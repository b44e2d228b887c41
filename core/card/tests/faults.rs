//! Behaviour of the driver under injected faults, at every byte of a workload.

use crate::rig::{self, OPTIONS, Rig, data, flash, run};
use cardiograph_card::Error;
use cardiograph_sim_card::wire::{Fault, Options};
use cardiograph_sim_card::{Card as Flash, Seed};

/// Blocks 0 to 10 hold known data; the workload during which the fault occurs writes blocks 5, 8 and 9.
const BLOCKS: u32 = 11;

fn prepared() -> Rig {
    let mut rig = Rig::ready();
    rig.write(0, &run(0, 0, BLOCKS)).unwrap();
    rig
}

/// Prepares the same card again, with the old blocks.
fn reset(rig: &mut Rig) {
    rig.acquire().unwrap();
    rig.write(0, &run(0, 0, BLOCKS)).unwrap();
}

/// Writes a single block, then a stream with a checkpoint; returns the blocks reported as durable, with
/// their versions.
fn workload(rig: &mut Rig) -> (Vec<(u32, u8)>, Result<(), rig::Error>) {
    let mut durable = Vec::new();
    let done = work(rig, 1, &mut durable);
    (durable, done)
}

fn work(rig: &mut Rig, version: u8, durable: &mut Vec<(u32, u8)>) -> Result<(), rig::Error> {
    rig.write(5, &run(version, 5, 1))?;
    durable.push((5, version));
    rig.begin(8, 2)?;
    for block in 8..10 {
        rig.push(&data(version + 1, block))?;
    }
    rig.end()?;
    durable.extend((8..10).map(|block| (block, version + 1)));
    Ok(())
}

fn now_ns(rig: &Rig) -> u64 {
    rig.wire.card().clock().now_ns()
}

/// Clocks filler bytes past the given byte, so that the fault injected there has happened.
fn pass(rig: &Rig, byte: u64) {
    let mut card = rig.wire.card();
    card.select(false);
    while card.count().bytes <= byte {
        card.exchange(0xFF);
    }
}

/// Asserts that each block is entirely old or entirely new, and new if it was reported as durable.
fn check(rig: &mut Rig, durable: &[(u32, u8)], what: &str) {
    let mut versions = [0; BLOCKS as usize];
    for (block, version) in durable {
        versions[*block as usize] = *version;
    }
    for (block, read) in (0..).zip(rig.read(0, BLOCKS as usize).unwrap()) {
        let durable_version = versions[block as usize];
        let may_be_new = match block {
            5 => 1,
            8..10 => 2,
            _ => 0,
        };
        let is_old = durable_version == 0 && read == data(0, block);
        assert!(
            is_old || read == data(may_be_new, block),
            "{what}: block {block}"
        );
    }
}

fn bytes_of_workload() -> u64 {
    let mut rig = prepared();
    let before = rig.bytes();
    workload(&mut rig).1.unwrap();
    rig.bytes() - before
}

#[test]
fn a_power_cut_at_any_byte_loses_no_durable_block() {
    let mut rig = prepared();
    for cut in 0..bytes_of_workload() - 1 {
        let byte = rig.bytes() + cut;
        rig.inject(cut, Fault::PowerCut);
        let (durable, done) = workload(&mut rig);
        // Busy times vary: the workload may end before the cut.
        if done.is_err() {
            assert_eq!(done, Err(Error::NoCard), "cut {cut}");
            assert_eq!(rig.read(0, 1), Err(Error::NotReady));
            assert_eq!(rig.acquire(), Err(Error::NoCard));
        }
        pass(&rig, byte);
        rig.wire.card().power_on();
        rig.acquire().unwrap();
        check(&mut rig, &durable, &format!("cut {cut}"));
        reset(&mut rig);
    }
}

#[test]
fn a_card_pulled_and_reinserted_is_not_written_before_acquire() {
    let mut rig = prepared();
    for pull in (0..bytes_of_workload() - 20).step_by(3) {
        let out_ns = [1_000, 90_000_000][pull as usize % 2];
        let byte = rig.bytes() + pull;
        rig.inject(pull, Fault::Pull { out_ns });
        let (durable, done) = workload(&mut rig);
        if done.is_err() {
            assert_eq!(rig.write(0, &run(9, 0, 1)), Err(Error::NotReady));
        }
        pass(&rig, byte);
        rig.wire.card().clock().advance_ns(out_ns);
        rig.acquire().unwrap();
        check(&mut rig, &durable, &format!("pulled at {pull}"));
        reset(&mut rig);
    }
}

#[test]
fn a_lost_command_is_retried() {
    let mut rig = prepared();
    for byte in 0..bytes_of_workload() {
        rig.inject(byte, Fault::LoseCommand);
        let (durable, done) = workload(&mut rig);
        done.unwrap();
        check(&mut rig, &durable, &format!("lost at {byte}"));
        reset(&mut rig);
    }
}

#[test]
fn two_seconds_of_busy_are_tolerated_and_ten_are_an_error() {
    for byte in (0..bytes_of_workload()).step_by(50) {
        let mut rig = prepared();
        rig.inject(
            byte,
            Fault::Busy {
                extra_ns: 2_000_000_000,
            },
        );
        workload(&mut rig).1.unwrap();
    }
    let mut rig = prepared();
    let extra_ns = 10_000_000_000;
    rig.inject(0, Fault::Busy { extra_ns });
    let began_ns = now_ns(&rig);
    assert_eq!(rig.write(5, &run(1, 5, 1)), Err(Error::Busy));
    assert!(now_ns(&rig) - began_ns < 3_100_000_000);
    assert_eq!(rig.read(5, 1), Err(Error::Busy));
    rig.wire.card().clock().advance_ns(extra_ns);
    assert!(rig.read(5, 1).unwrap() == run(1, 5, 1));
    rig.inject(0, Fault::Busy { extra_ns: u64::MAX });
    rig.begin(1, 4).unwrap();
    rig.push(&data(1, 1)).unwrap();
    assert_eq!(rig.end(), Err(Error::Busy));
    assert_eq!(rig.acquire(), Err(Error::Busy));
}

#[test]
fn write_protection_range_and_unreadable_blocks_are_errors() {
    let mut rig = Rig::with(
        flash(),
        Options {
            write_protected: true,
            ..OPTIONS
        },
    );
    rig.acquire().unwrap();
    assert_eq!(rig.write(5, &run(1, 5, 1)), Err(Error::WriteProtected));
    assert_eq!(rig.begin(5, 1), Err(Error::WriteProtected));
    assert_eq!(rig.read(32 * 1024, 1), Err(Error::OutOfRange));
    assert_eq!(rig.read(u32::MAX, 2), Err(Error::OutOfRange));

    let mut card = flash();
    card.store(0, &run(1, 0, 3));
    card.make_unreadable(1);
    let mut rig = Rig::with(card, OPTIONS);
    rig.acquire().unwrap();
    assert_eq!(rig.read(0, 3), Err(Error::ReadFailed(4)));
    assert_eq!(rig.read(1, 1), Err(Error::ReadFailed(4)));
    assert!(rig.read(2, 1).unwrap() == run(1, 2, 1));
    // A stream that runs past the end of the card.
    rig.begin(32 * 1024 - 1, 2).unwrap();
    rig.push(&data(1, 0)).unwrap();
    assert_eq!(rig.push(&data(1, 0)), Err(Error::OutOfRange));
    rig.end().unwrap();
}

#[test]
fn a_worn_out_card_reports_the_number_of_durable_blocks() {
    let mut profile = rig::PROFILE.clone();
    profile.flash.endurance_cycles = 1;
    profile.flash.endurance_spread_percent = 0;
    profile.flash.spare_blocks = 0;
    let mut rig = Rig::with(Flash::new(&profile, Seed::new(1)), OPTIONS);
    rig.acquire().unwrap();
    let unit = vec![[1; 512]; 1024];
    let error = (0..100).find_map(|at| rig::done(rig.driver.write(at % 32 * 1024, &unit)).err());
    let error = error.unwrap();
    assert!(matches!(error.cause, Error::Status(4)), "{error:?}");
    assert!(error.durable_blocks < 1024);
    assert!(rig.read(5, 1).unwrap() == [[1; 512]]);
}
