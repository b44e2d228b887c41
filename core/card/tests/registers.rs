//! CID and CSD of the card, read by the driver.

use crate::rig::{OPTIONS, Rig, data, done, flash};
use cardiograph_card::{Cid, Error};
use cardiograph_sim_card::wire::{Fault, Kind, Options};

const SERIAL: u32 = 0x1234_5678;

fn rig(kind: Kind) -> Rig {
    let options = Options {
        kind,
        serial: SERIAL,
        ..OPTIONS
    };
    let mut rig = Rig::with(flash(), options);
    assert_eq!(done(rig.driver.read_cid()), Err(Error::NotReady));
    rig.acquire().unwrap();
    rig
}

fn assert_is_ours(cid: &Cid) {
    let text = format!("manufacturer 0x00, CG CARDI 1.0, serial {SERIAL:#010x}, made 2026-01");
    assert_eq!(cid.to_string(), text);
}

#[test]
fn every_kind_of_card_identifies_itself() {
    for kind in [Kind::Version1, Kind::Standard, Kind::High] {
        let mut rig = rig(kind);
        assert_is_ours(&done(rig.driver.read_cid()).unwrap());
        let version = done(rig.driver.read_csd()).unwrap()[0] >> 6;
        assert_eq!(version, u8::from(kind == Kind::High));
        rig.write(5, &[data(1, 5)]).unwrap();
        assert_eq!(rig.read(5, 1).unwrap(), [data(1, 5)]);
    }
}

#[test]
fn an_open_stream_is_ended_first_and_reopens() {
    let mut rig = rig(Kind::High);
    rig.begin(8, 0).unwrap();
    rig.push(&data(1, 8)).unwrap();
    assert_is_ours(&done(rig.driver.read_cid()).unwrap());
    assert_eq!(rig.stored(8), data(1, 8));
    rig.push(&data(1, 9)).unwrap();
    rig.end().unwrap();
    assert_eq!(rig.stored(9), data(1, 9));
}

#[test]
fn a_fault_at_any_byte_is_retried() {
    let mut rig = rig(Kind::High);
    let before = rig.bytes();
    let cid = done(rig.driver.read_cid()).unwrap();
    let bytes = rig.bytes() - before;
    let flips = (0..8).flat_map(|bit| [Fault::FlipToHost { bit }, Fault::FlipToCard { bit }]);
    for fault in flips.chain([Fault::LoseCommand]) {
        for byte in 0..bytes {
            rig.inject(byte, fault);
            assert_eq!(done(rig.driver.read_cid()), Ok(cid), "{fault:?} at {byte}");
        }
    }
}

#[test]
fn a_pulled_card_is_not_taken_for_the_next_one() {
    let mut rig = rig(Kind::High);
    rig.inject(0, Fault::Pull { out_ns: 1_000_000 });
    assert_eq!(done(rig.driver.read_cid()), Err(Error::NoCard));
    assert_eq!(done(rig.driver.read_csd()), Err(Error::NotReady));
    rig.acquire().unwrap();
    assert_is_ours(&done(rig.driver.read_cid()).unwrap());
}
