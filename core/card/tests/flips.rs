//! Every bit on the bus flipped in turn: corrupted data is never written and never accepted.

use crate::rig::{self, Rig, data, run};
use cardiograph_card::Error;
use cardiograph_sim_card::wire::Fault;

/// Blocks 0 to 10 hold known data; the workload during which the fault occurs writes blocks 5, 8 and 9.
const BLOCKS: u32 = 11;

fn prepared() -> Rig {
    let mut rig = Rig::ready();
    rig.write(0, &run(0, 0, BLOCKS)).unwrap();
    rig
}

/// Writes a single block, then a stream.
fn work(rig: &mut Rig, version: u8) -> Result<(), rig::Error> {
    rig.write(5, &run(version, 5, 1))?;
    rig.write(8, &run(version + 1, 8, 2))
}

fn bytes_of_work() -> u64 {
    let mut rig = prepared();
    let before = rig.bytes();
    work(&mut rig, 1).unwrap();
    rig.bytes() - before
}

/// Flips every bit in turn; returns the number of flips and the number of resulting errors. No flip may
/// cause wrong data.
fn flips(flip: fn(u8) -> Fault) -> (u64, u64) {
    let (mut flips, mut errors) = (0, 0);
    let mut rig = prepared();
    for bit in 0..8 * bytes_of_work() {
        let version = 1 + 2 * (bit % 2) as u8;
        rig.inject(bit / 8, flip((bit % 8) as u8));
        let done = work(&mut rig, version);
        flips += 1;
        if let Err(error) = done {
            errors += 1;
            assert!(matches!(error, Error::Status(_)), "bit {bit}: {error:?}");
            continue;
        }
        for block in 0..BLOCKS {
            let version = match block {
                5 => version,
                8..10 => version + 1,
                _ => 0,
            };
            assert!(
                rig.stored(block) == data(version, block),
                "bit {bit}: block {block}"
            );
        }
    }
    (flips, errors)
}

#[test]
fn a_bit_flipped_towards_the_card_is_never_written() {
    let (flips, errors) = flips(|bit| Fault::FlipToCard { bit });
    println!("{flips} flips, {errors} errors");
    assert_eq!(errors, 0);
}

#[test]
fn a_bit_flipped_towards_the_host_never_hides_a_failure() {
    let (flips, errors) = flips(|bit| Fault::FlipToHost { bit });
    println!("{flips} flips, {errors} errors");
    // The driver does report an error when the flip sets an error bit of the status.
    assert!(errors * 500 < flips);
}

#[test]
fn a_read_with_a_flipped_bit_is_retried() {
    let mut rig = prepared();
    let before = rig.bytes();
    rig.read(4, 1).unwrap();
    rig.read(4, 3).unwrap();
    let bytes = rig.bytes() - before;
    for bit in 0..8 * bytes {
        for fault in [
            Fault::FlipToCard {
                bit: (bit % 8) as u8,
            },
            Fault::FlipToHost {
                bit: (bit % 8) as u8,
            },
        ] {
            rig.inject(bit / 8, fault);
            assert!(rig.read(4, 1).unwrap() == run(0, 4, 1), "bit {bit}");
            assert!(rig.read(4, 3).unwrap() == run(0, 4, 3), "bit {bit}");
        }
    }
}

/// Returns true if the card rejects a CMD13 with a wrong checksum.
fn has_checksums(rig: &Rig) -> bool {
    let mut frame = [0xFF, 0x4D, 0, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF];
    let mut card = rig.wire.card();
    card.select(true);
    card.exchange_in_place(&mut frame);
    card.select(false);
    frame[7..].contains(&(1 << 3))
}

#[test]
fn acquire_survives_any_flipped_bit_and_any_lost_command() {
    let mut rig = prepared();
    let before = rig.bytes();
    rig.acquire().unwrap();
    let bytes = rig.bytes() - before;
    for bit in 0..8 * bytes {
        let (byte, bit) = (bit / 8, (bit % 8) as u8);
        for fault in [
            Fault::FlipToCard { bit },
            Fault::FlipToHost { bit },
            Fault::LoseCommand,
        ] {
            rig.inject(byte, fault);
            rig.acquire().unwrap();
            let blocks = rig.driver.blocks();
            assert_eq!(blocks, 32 * 1024, "{fault:?} at {byte}");
            // The fault that is still pending may corrupt the first command, so the check is repeated.
            let checks_checksums = has_checksums(&rig) || has_checksums(&rig);
            assert!(checks_checksums, "{fault:?} at {byte}");
        }
    }
}
