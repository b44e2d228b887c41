//! Error reports of the card: its status, its count of written blocks, its checksums. A bus between card
//! and driver alters the reports.

mod rig;

use cardiograph_card::{Card, Error};
use cardiograph_sim_card::wire::crc::crc16;
use cardiograph_sim_card::wire::{ChipSelect, Delay, Fault, SpiBus};
use embedded_hal::spi::{self as blocking, ErrorType};
use embedded_hal_async::spi;
use rig::{Rig, data, done, run};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// Error bit of R2: card ECC failed (7.3.2.3).
const ECC_FAILED: u8 = 1 << 2;

/// Altered reports, last first; each is used once.
#[derive(Default)]
struct Alterations {
    /// Second bytes of the responses to CMD13.
    status: Vec<u8>,
    /// Responses to ACMD22.
    written: Vec<u32>,
}

struct AlteringBus {
    bus: SpiBus,
    alterations: Rc<RefCell<Alterations>>,
    /// The last command, until its response has been seen.
    command: u8,
    has_responded: bool,
    sum: Option<u16>,
}

impl AlteringBus {
    fn alter(&mut self, response: &mut [u8]) {
        match (self.command, self.has_responded, &mut *response) {
            (13 | 22, false, [byte]) => self.has_responded = *byte & 0x80 == 0,
            (13, true, [status]) => {
                if let Some(other) = self.alterations.borrow_mut().status.pop() {
                    *status = other;
                }
                self.command = 0;
            }
            (22, true, [_, _, _, _]) => {
                if let Some(other) = self.alterations.borrow_mut().written.pop() {
                    response.copy_from_slice(&other.to_be_bytes());
                    self.sum = Some(crc16(response));
                }
            }
            (22, true, [_, _]) => {
                if let Some(sum) = self.sum.take() {
                    response.copy_from_slice(&sum.to_be_bytes());
                }
                self.command = 0;
            }
            _ => (),
        }
    }
}

impl ErrorType for AlteringBus {
    type Error = Infallible;
}

impl spi::SpiBus for AlteringBus {
    async fn read(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("the driver must choose the bytes it sends while it receives");
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        if let [0xFF, command, _, _, _, _, _] = words {
            (self.command, self.has_responded) = (command & 0x3F, false);
        }
        blocking::SpiBus::write(&mut self.bus, words)
    }

    async fn transfer(&mut self, _: &mut [u8], _: &[u8]) -> Result<(), Infallible> {
        unreachable!("not used by the driver");
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        blocking::SpiBus::transfer_in_place(&mut self.bus, words)?;
        self.alter(words);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

type Driver = Card<AlteringBus, ChipSelect, Delay, Box<dyn FnMut(&mut AlteringBus, u32)>>;

/// Returns a driver with an initialised card, and the alterations of its reports from now on.
fn altered_driver() -> (Driver, Rc<RefCell<Alterations>>) {
    let wire = Rig::new().wire;
    let alterations = Rc::new(RefCell::new(Alterations::default()));
    let bus = AlteringBus {
        bus: wire.bus(),
        alterations: alterations.clone(),
        command: 0,
        has_responded: false,
        sum: None,
    };
    let (pin, delay) = (wire.chip_select(), wire.delay());
    let set_clock = move |_: &mut AlteringBus, hz| wire.card().set_clock_hz(hz).unwrap();
    let mut driver: Driver = Card::new(bus, pin, delay, Box::new(set_clock), rig::CLOCK_HZ);
    done(driver.acquire()).unwrap();
    (driver, alterations)
}

#[test]
fn a_status_error_after_a_single_block_is_an_error() {
    let (mut driver, alterations) = altered_driver();
    alterations.borrow_mut().status = vec![ECC_FAILED];
    let error = done(driver.write(5, &run(1, 5, 1))).unwrap_err();
    assert_eq!(error.cause, Error::Status(ECC_FAILED));
    assert_eq!(error.durable_blocks, 0);
    assert_eq!(alterations.borrow().status, []);
    done(driver.write(5, &run(1, 5, 1))).unwrap();
}

#[test]
fn a_status_error_after_a_stop_is_an_error_even_if_all_blocks_are_counted() {
    let (mut driver, alterations) = altered_driver();
    done(driver.begin(8, 3)).unwrap();
    for block in 8..11 {
        done(driver.push(&data(1, block))).unwrap();
    }
    alterations.borrow_mut().status = vec![ECC_FAILED];
    let error = done(driver.end()).unwrap_err();
    assert_eq!(error.cause, Error::Status(ECC_FAILED));
    assert_eq!(error.durable_blocks, 3);
    assert_eq!(alterations.borrow().status, []);
}

#[test]
fn only_the_blocks_that_the_card_counts_are_durable() {
    for counted in 0..4 {
        let (mut driver, alterations) = altered_driver();
        alterations.borrow_mut().written = vec![counted];
        let error = done(driver.write(8, &run(1, 8, 4))).unwrap_err();
        assert_eq!(error.cause, Error::BlocksMissing);
        assert_eq!(error.durable_blocks, counted);
        assert_eq!(alterations.borrow().written, []);
    }
}

#[test]
fn blocks_before_a_read_stay_durable_when_later_ones_are_missing() {
    let (mut driver, alterations) = altered_driver();
    done(driver.begin(8, 5)).unwrap();
    for block in 8..11 {
        done(driver.push(&data(1, block))).unwrap();
    }
    let mut read = [[0; 512]];
    done(driver.read(8, &mut read)).unwrap();
    for block in 11..13 {
        done(driver.push(&data(1, block))).unwrap();
    }
    alterations.borrow_mut().written = vec![1];
    let error = done(driver.end()).unwrap_err();
    assert_eq!(error.cause, Error::BlocksMissing);
    assert_eq!(error.durable_blocks, 4);
    assert_eq!(alterations.borrow().written, []);
}

#[test]
fn a_card_that_counts_more_blocks_than_sent_wrote_only_those_sent() {
    let (mut driver, alterations) = altered_driver();
    done(driver.begin(8, 4)).unwrap();
    for block in 8..10 {
        done(driver.push(&data(1, block))).unwrap();
    }
    alterations.borrow_mut().written = vec![9];
    done(driver.end()).unwrap();
    assert_eq!(alterations.borrow().written, []);
    // A surplus in this block count does not offset a block missing from a later count.
    done(driver.begin(20, 4)).unwrap();
    done(driver.push(&data(1, 20))).unwrap();
    alterations.borrow_mut().written = vec![0];
    assert_eq!(done(driver.end()).unwrap_err().durable_blocks, 0);
}

/// Returns true if the card refuses a CMD13 with a wrong checksum.
fn has_checksums(rig: &Rig) -> bool {
    let mut frame = [0xFF, 0x4D, 0, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF];
    let mut card = rig.wire.card();
    card.select(true);
    card.exchange_in_place(&mut frame);
    card.select(false);
    frame[7..].contains(&(1 << 3))
}

#[test]
fn checksums_are_enabled_after_power_on_whichever_bit_is_flipped() {
    let mut rig = Rig::new();
    let restart = |rig: &Rig| {
        rig.wire.card().power_cut();
        rig.wire.card().power_on();
    };
    restart(&rig);
    let before = rig.bytes();
    rig.acquire().unwrap();
    let bytes = rig.bytes() - before;
    for byte in 0..bytes {
        for bit in 0..8 {
            restart(&rig);
            assert!(!has_checksums(&rig), "power-on disables checksums");
            rig.inject(byte, Fault::FlipToCard { bit });
            rig.acquire().unwrap();
            let checks_checksums = has_checksums(&rig) || has_checksums(&rig);
            assert!(checks_checksums, "bit {bit} of byte {byte}");
        }
    }
}
