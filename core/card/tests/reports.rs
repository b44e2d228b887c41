//! What a card reports is heeded: its status, its count of blocks, its checksums. A bus between card and
//! driver changes the reports.

mod rig;

use cardiograph_card::{Card, Error};
use cardiograph_sim_card::wire::crc::crc16;
use cardiograph_sim_card::wire::{ChipSelect, Delay, SpiBus, Strike};
use embedded_hal::spi::{self as blocking, ErrorType};
use embedded_hal_async::spi;
use rig::{Rig, data, done, run};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// Card ECC failed (7.3.2.3).
const ECC_FAILED: u8 = 1 << 2;

/// Reports that are changed, in order; each once.
#[derive(Default)]
struct Changes {
    /// Second bytes of the answers to CMD13.
    status: Vec<u8>,
    /// Answers to ACMD22.
    written: Vec<u32>,
}

/// A bus that changes reports.
struct Changing {
    bus: SpiBus,
    changes: Rc<RefCell<Changes>>,
    /// The last command, until the bytes that answer it have been seen.
    command: u8,
    has_answered: bool,
    sum: Option<u16>,
}

impl Changing {
    fn change(&mut self, answer: &mut [u8]) {
        match (self.command, self.has_answered, &mut *answer) {
            (13 | 22, false, [byte]) => self.has_answered = *byte & 0x80 == 0,
            (13, true, [status]) => {
                if let Some(other) = self.changes.borrow_mut().status.pop() {
                    *status = other;
                }
                self.command = 0;
            }
            (22, true, [_, _, _, _]) => {
                if let Some(other) = self.changes.borrow_mut().written.pop() {
                    answer.copy_from_slice(&other.to_be_bytes());
                    self.sum = Some(crc16(answer));
                }
            }
            (22, true, [_, _]) => {
                if let Some(sum) = self.sum.take() {
                    answer.copy_from_slice(&sum.to_be_bytes());
                }
                self.command = 0;
            }
            _ => (),
        }
    }
}

impl ErrorType for Changing {
    type Error = Infallible;
}

impl spi::SpiBus for Changing {
    async fn read(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("what is sent meanwhile would be left to the bus");
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        if let [0xFF, command, _, _, _, _, _] = words {
            (self.command, self.has_answered) = (command & 0x3F, false);
        }
        blocking::SpiBus::write(&mut self.bus, words)
    }

    async fn transfer(&mut self, _: &mut [u8], _: &[u8]) -> Result<(), Infallible> {
        unreachable!("not of use here");
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        blocking::SpiBus::transfer_in_place(&mut self.bus, words)?;
        self.change(words);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

type Driver = Card<Changing, ChipSelect, Delay, Box<dyn FnMut(&mut Changing, u32)>>;

/// A driver with an acquired card, and the changes of what it reports from now on.
fn changing() -> (Driver, Rc<RefCell<Changes>>) {
    let wire = Rig::new().wire;
    let changes = Rc::new(RefCell::new(Changes::default()));
    let bus = Changing {
        bus: wire.bus(),
        changes: changes.clone(),
        command: 0,
        has_answered: false,
        sum: None,
    };
    let (pin, delay) = (wire.chip_select(), wire.delay());
    let set_clock = move |_: &mut Changing, hz| wire.card().set_clock_hz(hz).unwrap();
    let mut driver: Driver = Card::new(bus, pin, delay, Box::new(set_clock), rig::CLOCK_HZ);
    done(driver.acquire()).unwrap();
    (driver, changes)
}

#[test]
fn a_status_after_a_single_block_is_an_error() {
    let (mut driver, changes) = changing();
    changes.borrow_mut().status = vec![ECC_FAILED];
    let error = done(driver.write(5, &run(1, 5, 1))).unwrap_err();
    assert_eq!(error.cause, Error::Status(ECC_FAILED));
    assert_eq!(error.kept_blocks, 0);
    assert_eq!(changes.borrow().status, []);
    done(driver.write(5, &run(1, 5, 1))).unwrap();
}

#[test]
fn a_status_after_a_stop_is_an_error_although_all_blocks_are_counted() {
    let (mut driver, changes) = changing();
    done(driver.begin(8, 3)).unwrap();
    for block in 8..11 {
        done(driver.push(&data(1, block))).unwrap();
    }
    changes.borrow_mut().status = vec![ECC_FAILED];
    let error = done(driver.end()).unwrap_err();
    assert_eq!(error.cause, Error::Status(ECC_FAILED));
    assert_eq!(error.kept_blocks, 3);
    assert_eq!(changes.borrow().status, []);
}

#[test]
fn a_card_that_counts_fewer_blocks_has_kept_only_those() {
    for counted in 0..4 {
        let (mut driver, changes) = changing();
        changes.borrow_mut().written = vec![counted];
        let error = done(driver.write(8, &run(1, 8, 4))).unwrap_err();
        assert_eq!(error.cause, Error::BlocksMissing);
        assert_eq!(error.kept_blocks, counted);
        assert_eq!(changes.borrow().written, []);
    }
}

#[test]
fn blocks_before_a_read_stay_counted_when_later_ones_are_missing() {
    let (mut driver, changes) = changing();
    done(driver.begin(8, 5)).unwrap();
    for block in 8..11 {
        done(driver.push(&data(1, block))).unwrap();
    }
    let mut read = [[0; 512]];
    done(driver.read(8, &mut read)).unwrap();
    for block in 11..13 {
        done(driver.push(&data(1, block))).unwrap();
    }
    changes.borrow_mut().written = vec![1];
    let error = done(driver.end()).unwrap_err();
    assert_eq!(error.cause, Error::BlocksMissing);
    assert_eq!(error.kept_blocks, 4);
    assert_eq!(changes.borrow().written, []);
}

#[test]
fn a_card_that_counts_more_blocks_than_it_was_sent_has_kept_what_it_was_sent() {
    let (mut driver, changes) = changing();
    done(driver.begin(8, 4)).unwrap();
    for block in 8..10 {
        done(driver.push(&data(1, block))).unwrap();
    }
    changes.borrow_mut().written = vec![9];
    done(driver.end()).unwrap();
    assert_eq!(changes.borrow().written, []);
    // One that is missing afterwards is not made up for by them.
    done(driver.begin(20, 4)).unwrap();
    done(driver.push(&data(1, 20))).unwrap();
    changes.borrow_mut().written = vec![0];
    assert_eq!(done(driver.end()).unwrap_err().kept_blocks, 0);
}

/// Returns true if the card refuses a CMD13 with a wrong checksum.
fn has_checksums(rig: &Rig) -> bool {
    let mut line = [0xFF, 0x4D, 0, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF];
    let mut card = rig.wire.card();
    card.select(true);
    card.exchange_in_place(&mut line);
    card.select(false);
    line[7..].contains(&(1 << 3))
}

#[test]
fn checksums_are_on_after_power_whatever_bit_was_flipped() {
    let mut rig = Rig::new();
    let restart = |rig: &Rig| {
        rig.wire.card().power_cut();
        rig.wire.card().power_on();
    };
    restart(&rig);
    let before = rig.bytes();
    rig.acquire().unwrap();
    let bytes = rig.bytes() - before;
    for place in 0..bytes {
        for bit in 0..8 {
            restart(&rig);
            assert!(!has_checksums(&rig), "power switches them off");
            rig.strike(place, Strike::FlipToCard { bit });
            rig.acquire().unwrap();
            let is_checked = has_checksums(&rig) || has_checksums(&rig);
            assert!(is_checked, "bit {bit} of byte {place}");
        }
    }
}
