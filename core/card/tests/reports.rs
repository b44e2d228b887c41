//! Error reports of the card: its status, its count of written blocks, its checksums. A bus between card
//! and driver alters the reports.

use crate::rig::{self, OPTIONS, Rig, data, done, flash, run};
use cardiograph_card::{BlockDevice, Card, Error};
use cardiograph_sim_card::wire::crc::crc16;
use cardiograph_sim_card::wire::{ChipSelect, Delay, Fault, Kind, Options, SpiBus, Wire};
use embedded_hal::spi::{self as blocking, ErrorType};
use embedded_hal_async::spi;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// Error bit of R2: card ECC failed (7.3.2.3).
const ECC_FAILED: u8 = 1 << 2;
/// Error bit of R1: wrong checksum (7.3.2.1).
const CRC_ERROR: u8 = 1 << 3;

/// Altered reports, last first; each is used once.
#[derive(Default)]
struct Alterations {
    /// Second bytes of the responses to CMD13.
    status: Vec<u8>,
    /// Responses to ACMD22.
    written: Vec<u32>,
    /// Capacity that the CSD register states, in units of 512 KiB, less one.
    size: Option<u16>,
    /// Response to every CMD8.
    interface: Option<[u8; 4]>,
    /// CMD59 arrives at the card with a flipped bit: it disables checksums.
    disables_checksums: bool,
    /// Number of times that each received block of 512 bytes arrives with a flipped bit.
    flips: u32,
    flipped: u32,
    /// Data response to every block sent.
    data_response: Option<u8>,
    /// CMD12 is refused, and the card seems busy once an altered status has been used.
    is_stuck: bool,
    has_status: bool,
    /// Commands and their arguments.
    commands: Vec<(u8, u32)>,
}

impl Alterations {
    fn is_busy(&self) -> bool {
        self.is_stuck && self.has_status
    }
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
        if let ([byte], true) = (&mut *response, self.alterations.borrow().is_busy()) {
            *byte = 0;
            return;
        }
        match (self.command, self.has_responded, &mut *response) {
            (12, false, [byte]) if *byte & 0x80 == 0 && self.alterations.borrow().is_stuck => {
                *byte = CRC_ERROR;
            }
            (8 | 13 | 22, false, [byte]) => self.has_responded = *byte & 0x80 == 0,
            (13, true, [status]) => {
                let mut alterations = self.alterations.borrow_mut();
                if let Some(other) = alterations.status.pop() {
                    (*status, alterations.has_status) = (other, true);
                }
                self.command = 0;
            }
            (8, true, [_, _, _, _]) => {
                if let Some(other) = self.alterations.borrow().interface {
                    response.copy_from_slice(&other);
                }
                self.command = 0;
            }
            (9, _, words @ [_, ..]) if words.len() == 16 => {
                if let Some(size) = self.alterations.borrow().size {
                    words[8..10].copy_from_slice(&size.to_be_bytes());
                    self.sum = Some(crc16(words));
                }
            }
            (9, _, [_, _]) => {
                if let Some(sum) = self.sum.take() {
                    response.copy_from_slice(&sum.to_be_bytes());
                }
            }
            (17 | 18, _, words) if words.len() == 512 => {
                let mut alterations = self.alterations.borrow_mut();
                alterations.flipped += 1;
                match alterations.flipped <= alterations.flips {
                    true => words[100] ^= 4,
                    false => alterations.flipped = 0,
                }
            }
            (24 | 25, _, [_, _, response]) => {
                if let Some(other) = self.alterations.borrow().data_response {
                    *response = other;
                }
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
        if let [0xFF, command, argument @ .., _] = words
            && let Ok(argument) = argument.try_into()
        {
            (self.command, self.has_responded) = (command & 0x3F, false);
            let command = (self.command, u32::from_be_bytes(argument));
            self.alterations.borrow_mut().commands.push(command);
        }
        if self.command == 59 && self.alterations.borrow().disables_checksums {
            let mut words = words.to_vec();
            if let [_, _, _, _, _, argument, _] = &mut words[..] {
                *argument &= !1;
            }
            return blocking::SpiBus::write(&mut self.bus, &words);
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
    let (mut driver, alterations) = new_driver();
    done(driver.acquire()).unwrap();
    (driver, alterations)
}

fn new_driver() -> (Driver, Rc<RefCell<Alterations>>) {
    driver_of(&Rig::new().wire)
}

fn driver_of(wire: &Wire) -> (Driver, Rc<RefCell<Alterations>>) {
    let wire = wire.clone();
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
    let driver: Driver = Card::new(bus, pin, delay, Box::new(set_clock), rig::CLOCK_HZ);
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

#[test]
fn a_card_that_does_not_accept_the_voltage_is_not_supported() {
    let (mut driver, alterations) = new_driver();
    for (echo, expected) in [
        ([0, 0, 0, 0xAA], Err(Error::Unsupported)),
        ([0, 0, 1, 0xAB], Err(Error::Garbled)),
        ([0, 0, 2, 0xAA], Err(Error::Garbled)),
        ([0, 0, 1, 0xAA], Ok(())),
    ] {
        alterations.borrow_mut().interface = Some(echo);
        assert_eq!(done(driver.acquire()), expected, "{echo:?}");
    }
}

#[test]
fn a_card_that_does_not_enable_checksums_is_refused() {
    let (mut driver, alterations) = new_driver();
    alterations.borrow_mut().disables_checksums = true;
    assert_eq!(done(driver.acquire()), Err(Error::Garbled));
    alterations.borrow_mut().disables_checksums = false;
    done(driver.acquire()).unwrap();
}

#[test]
fn a_card_without_power_is_reported_after_all_retries() {
    let mut rig = Rig::ready();
    rig.wire.card().power_cut();
    assert_eq!(rig.acquire(), Err(Error::NoCard));
    assert_eq!(rig.read(0, 1), Err(Error::NotReady));
    rig.wire.card().power_on();
    rig.acquire().unwrap();
    rig.read(0, 1).unwrap();
}

#[test]
fn each_block_of_a_long_read_has_its_own_retries() {
    let (mut driver, alterations) = altered_driver();
    done(driver.write(8, &run(1, 8, 6))).unwrap();
    let mut read = [[0; 512]; 6];
    alterations.borrow_mut().flips = 3;
    done(driver.read(8, &mut read)).unwrap();
    assert!(read.to_vec() == run(1, 8, 6));
    alterations.borrow_mut().flips = 4;
    assert!(done(driver.read(8, &mut read)).is_err());
}

#[test]
fn the_announced_number_of_blocks_has_23_bits() {
    let (mut driver, alterations) = new_driver();
    // 16 GiB.
    alterations.borrow_mut().size = Some((1 << 15) - 1);
    done(driver.acquire()).unwrap();
    alterations.borrow_mut().commands.clear();
    assert_eq!(driver.blocks(), 1 << 25);
    for (hint, announced) in [
        (2, vec![2]),
        ((1 << 23) - 1, vec![(1 << 23) - 1]),
        (1 << 23, vec![(1 << 23) - 1]),
        (u32::MAX, vec![(1 << 23) - 1]),
        // A single block is not announced.
        (1, vec![]),
    ] {
        done(driver.begin(8, hint)).unwrap();
        done(driver.end()).unwrap();
        let commands = std::mem::take(&mut alterations.borrow_mut().commands);
        let counts = commands.into_iter().filter(|(index, _)| *index == 23);
        assert!(counts.map(|(_, count)| count).eq(announced));
    }
}

/// Writes through the trait, as the recorder does.
async fn write_as_device<Device: BlockDevice>(device: &mut Device) {
    assert!(device.acquire().await.is_ok());
    assert_eq!(device.blocks(), 32 * 1024);
    assert!(device.begin(20, 3).await.is_ok());
    for block in run(1, 20, 3) {
        assert!(device.push(&block).await.is_ok());
    }
    assert!(device.end().await.is_ok());
    assert!(device.write(23, &run(1, 23, 2)).await.is_ok());
    let mut read = [[0; 512]; 5];
    assert!(device.read(20, &mut read).await.is_ok());
    assert!(read.to_vec() == run(1, 20, 5));
}

#[test]
fn the_driver_is_a_block_device() {
    done(write_as_device(&mut altered_driver().0));
    done(write_as_device(&mut Rig::new().driver));
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

/// Returns the indexes of the commands since the last call.
fn sent(alterations: &RefCell<Alterations>) -> Vec<u8> {
    let commands = std::mem::take(&mut alterations.borrow_mut().commands);
    commands.into_iter().map(|(index, _)| index).collect()
}

/// Figure 7-2 of the specification, with CMD59, and the CMD58 with a wrong checksum that follows it.
#[test]
fn each_kind_of_card_gets_the_commands_of_its_initialisation() {
    // A card of version 1 could be one of version 2 whose response was corrupted.
    let interface = |kind| if kind == Kind::Version1 { 2 } else { 1 };
    for kind in [Kind::Version1, Kind::Standard, Kind::High] {
        // Without the response to the first CMD0, the driver sends another one, and no third.
        for resets in [1, 2] {
            let options = Options { kind, ..OPTIONS };
            let rig = Rig::with(flash(), options);
            let (mut driver, alterations) = driver_of(&rig.wire);
            if resets > 1 {
                rig.inject(0, Fault::LoseCommand);
            }
            done(driver.acquire()).unwrap();
            let mut expected = vec![0; resets];
            expected.extend(vec![8; interface(kind)]);
            expected.extend([59, 58, 55, 41, 58, 9]);
            // The block length is a command of standard capacity.
            expected.extend((kind != Kind::High).then_some(16));
            assert_eq!(sent(&alterations), expected, "{kind:?}");
        }
    }
}

#[test]
fn one_block_is_read_with_cmd17_and_more_with_cmd18() {
    let (mut driver, alterations) = altered_driver();
    sent(&alterations);
    let mut read = [[0; 512]; 3];
    for (blocks, expected) in [(1, vec![17]), (2, vec![18, 12]), (3, vec![18, 12])] {
        done(driver.read(8, &mut read[..blocks])).unwrap();
        assert_eq!(sent(&alterations), expected, "{blocks} blocks");
    }
}

/// Setup: the card misses the CMD12 after three blocks, and sends more blocks.
#[test]
fn a_read_that_goes_on_is_stopped_before_the_next_command() {
    let rig = Rig::new();
    let (mut driver, alterations) = driver_of(&rig.wire);
    done(driver.acquire()).unwrap();
    done(driver.write(8, &run(1, 8, 9))).unwrap();
    let mut read = [[0; 512]; 3];
    rig.inject(1_000, Fault::LoseCommand);
    sent(&alterations);
    done(driver.read(8, &mut read)).unwrap();
    assert_eq!(sent(&alterations), [18, 12]);
    assert!(read.to_vec() == run(1, 8, 3));
    done(driver.write(5, &run(1, 5, 1))).unwrap();
    assert_eq!(sent(&alterations), [12, 13, 24, 13]);
}

/// 7.3.3.1: the upper three bits of a data response are undefined.
#[test]
fn data_responses_mean_what_the_specification_says() {
    for (response, expected) in [
        (0b0000_0101, Ok(())),
        (0b1110_0101, Ok(())),
        (0b1110_1101, Err(Error::WriteFailed)),
        (0b0000_1101, Err(Error::WriteFailed)),
        (0b1110_1011, Err(Error::Garbled)),
        (0xFF, Err(Error::Garbled)),
    ] {
        let (mut driver, alterations) = altered_driver();
        alterations.borrow_mut().data_response = Some(response);
        let written = done(driver.write(5, &run(1, 5, 1)));
        assert_eq!(
            written.map_err(|error| error.cause),
            expected,
            "{response:#x}"
        );
    }
}

/// Setup: a block arrives with a flipped bit, so that the driver recovers the card before it sends the block again. The
/// card reports the status once.
#[test]
fn a_status_that_is_read_during_recovery_belongs_to_the_stream() {
    for (statuses, expected) in [
        (vec![0], Ok(())),
        (vec![ECC_FAILED], Err(Error::Status(ECC_FAILED))),
        // A byte that is no status: the driver asks again.
        (vec![0, 0xFF], Ok(())),
        (vec![ECC_FAILED, 0xFF], Err(Error::Status(ECC_FAILED))),
        (vec![1, 0xFF], Err(Error::Status(1))),
    ] {
        let rig = Rig::new();
        let (mut driver, alterations) = driver_of(&rig.wire);
        done(driver.acquire()).unwrap();
        done(driver.begin(8, 3)).unwrap();
        done(driver.push(&data(1, 8))).unwrap();
        alterations.borrow_mut().status = statuses.clone();
        rig.inject(100, Fault::FlipToCard { bit: 3 });
        let pushed = done(driver.push(&data(1, 9)));
        assert_eq!(
            pushed.map_err(|error| error.cause),
            expected,
            "{statuses:?}"
        );
        assert_eq!(alterations.borrow().status, [], "{statuses:?}");
        let ended = done(driver.end()).map_err(|error| error.cause);
        assert_eq!(ended, expected, "the stream has failed");
    }
}

/// Setup: as above, but the card refuses CMD12, and then stays busy for longer than the driver waits.
#[test]
fn a_status_is_not_forgotten_when_a_recovery_fails() {
    let rig = Rig::new();
    let (mut driver, alterations) = driver_of(&rig.wire);
    done(driver.acquire()).unwrap();
    done(driver.begin(8, 3)).unwrap();
    done(driver.push(&data(1, 8))).unwrap();
    alterations.borrow_mut().status = vec![ECC_FAILED];
    alterations.borrow_mut().is_stuck = true;
    rig.inject(100, Fault::FlipToCard { bit: 3 });
    let pushed = done(driver.push(&data(1, 9)));
    assert_eq!(pushed.unwrap_err().cause, Error::Busy);
    assert_eq!(alterations.borrow().status, []);
    alterations.borrow_mut().is_stuck = false;
    let ended = done(driver.end()).map_err(|error| error.cause);
    assert_eq!(ended, Err(Error::Status(ECC_FAILED)));
}

/// Setup: a read stops the stream, and the card misses the CMD12 of the read.
#[test]
fn a_status_after_a_read_does_not_belong_to_the_stream() {
    let rig = Rig::new();
    let (mut driver, alterations) = driver_of(&rig.wire);
    done(driver.acquire()).unwrap();
    done(driver.write(20, &run(1, 20, 20))).unwrap();
    done(driver.begin(8, 3)).unwrap();
    done(driver.push(&data(1, 8))).unwrap();
    rig.inject(4_000, Fault::LoseCommand);
    sent(&alterations);
    done(driver.read(20, &mut [[0; 512]; 10])).unwrap();
    assert_eq!(sent(&alterations), [13, 55, 22, 18, 12]);
    alterations.borrow_mut().status = vec![ECC_FAILED];
    done(driver.push(&data(1, 9))).unwrap();
    assert_eq!(sent(&alterations), [12, 13, 55, 23, 25]);
    done(driver.end()).unwrap();
    assert_eq!(alterations.borrow().status, []);
}
