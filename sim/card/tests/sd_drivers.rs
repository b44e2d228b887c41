//! An independent driver on the SD bus: the crate sdio 0.5, unmodified.
//!
//! These tests avoid known bugs of this driver:
//!
//! - it treats the missing response of a version 1 card to CMD8 as an error;
//! - it reports half the capacity of a standard card above 1 GiB, whose CSD counts 1024-byte blocks;
//! - it reads four error bits of the card status one bit off, and reports out of range as another error;
//! - after an error it sends CMD12 first: if the card is in `tran` already (a block out of range, a wrong checksum of
//!   CMD24), the driver gets no response and never recovers;
//! - to reinitialise a card, it sends CMD55 with the address that CMD0 has cleared.

use crate::controller::{self, BLOCKS, Controller};
use crate::mmc_bus::{Bus, Delay, block_on};
use aligned::{A4, Aligned};
use block_device_driver::BlockDevice as _;
use cardiograph_sim_card::wire::{Kind, Options, SpiCard, Wire};
use cardiograph_sim_card::{Block, Clock};
use embedded_sdmmc::{Block as SpiBlock, BlockDevice as _, BlockIdx, SdCard};
use sdio::sd::{Card as Registers, SDEraseDataStatus, SDSpecVersion, SDStatus};
use sdio::{BlockDevice, BusWidth};
use std::cell::RefCell;
use std::rc::Rc;

const SEED: u64 = 7;

type Device = BlockDevice<Registers, Bus, Delay, 512>;
type Buffer = Aligned<A4, Block>;

/// Returns the driver with an initialised card, and the bus between them.
fn acquired(kind: Kind, width: BusWidth, clock_hz: u32) -> (Device, Bus) {
    let options = Options {
        kind,
        serial: 0x1234_5678,
        ..Options::default()
    };
    let controller = Controller::new(controller::card(SEED), options, 400_000);
    let delay = Delay(controller.card.clock().clone());
    let bus = Bus {
        controller: Rc::new(RefCell::new(controller)),
        width,
        clock_hz_max: clock_hz,
    };
    let device = block_on(Device::new_sd_card(bus.clone(), clock_hz, delay));
    (device.unwrap(), bus)
}

/// Runs a test with both card types, on one line and on four, with and without high speed.
fn each(test: impl Fn(Device, Bus)) {
    for kind in [Kind::Standard, Kind::High] {
        for width in [BusWidth::W1, BusWidth::W4] {
            for clock_hz in [25_000_000, 50_000_000] {
                let (device, bus) = acquired(kind, width, clock_hz);
                test(device, bus);
            }
        }
    }
}

/// Returns blocks with different contents, in each of which the bytes vary.
fn pattern(seed: u32, count: u32) -> Vec<Buffer> {
    let block = |number: u32| {
        Aligned(std::array::from_fn(|at| {
            (seed ^ number.wrapping_mul(0x9E37_79B9) ^ (at as u32).wrapping_mul(0x85EB_CA6B))
                .to_be_bytes()[at % 4]
        }))
    };
    (0..count).map(block).collect()
}

fn stored(bus: &Bus, start: u64, count: usize) -> Vec<Block> {
    let mut data = vec![[0; 512]; count];
    bus.controller.borrow().card.card().load(start, &mut data);
    data
}

/// Writes of single and of several blocks, as first block and count; some cross pages, and some overlap
/// earlier writes.
const WRITES: [(u32, u32); 7] = [
    (0, 1),
    (1, 2),
    (100, 64),
    (130, 1),
    (131, 8),
    (4095, 3),
    (BLOCKS - 1, 1),
];

#[test]
fn the_registers_are_read_correctly() {
    each(|mut device, bus| {
        let Registers {
            ocr, cid, csd, scr, ..
        } = *device.card();
        assert_eq!(csd.card_size(), u64::from(BLOCKS) * 512);
        assert_eq!(block_on(device.size()).unwrap(), u64::from(BLOCKS) * 512);
        assert_eq!(csd.version(), ocr.high_capacity().into());
        assert_eq!(csd.erase_size_blocks(), 1);
        assert_eq!((cid.oem_id(), cid.product_name()), ("CG", "CARDI"));
        assert_eq!(cid.serial(), 0x1234_5678);
        assert_eq!(cid.manufacturing_date(), (1, 2026));
        assert!(scr.bus_width_one() && scr.bus_width_four() && !scr.supports_cmd23());
        assert_eq!(scr.version(), SDSpecVersion::V2);
        assert_eq!(scr.data_after_erase(), SDEraseDataStatus::Zero);
        assert_eq!(device.freq(), bus.clock_hz_max);
    });
}

#[test]
fn the_sd_status_reports_the_bus_width() {
    each(|device, bus| {
        let status: SDStatus = device.card().status;
        let reported = status.bus_width().map(|width| width as u8);
        assert_eq!(reported, Some(bus.width as u8));
        // The card reports speed class 10 and allocation units of 4 MiB.
        assert_eq!(
            (status.speed_class(), status.allocation_unit_size()),
            (4, 9)
        );
    });
}

#[test]
fn written_blocks_are_stored_and_read_back() {
    each(|mut device, bus| {
        for (seed, (start, count)) in WRITES.into_iter().enumerate() {
            let data = pattern(seed as u32, count);
            block_on(device.write(start, &data)).unwrap();
            let mut read = vec![Aligned([0; 512]); data.len()];
            block_on(device.read(start, &mut read)).unwrap();
            let plain = |blocks: &[Buffer]| blocks.iter().map(|block| **block).collect::<Vec<_>>();
            assert_eq!(plain(&read), plain(&data));
            assert_eq!(stored(&bus, start.into(), data.len()), plain(&data));
        }
    });
}

#[test]
fn the_driver_continues_after_a_read_across_the_end() {
    each(|mut device, _| {
        let mut two = pattern(0, 2);
        assert!(block_on(device.read(BLOCKS - 1, &mut two)).is_err());
        block_on(device.write(3, &pattern(5, 1))).unwrap();
        let mut read = [Aligned([0; 512])];
        block_on(device.read(3, &mut read)).unwrap();
        assert_eq!(*read[0], *pattern(5, 1)[0]);
    });
}

#[test]
fn four_lines_and_high_speed_are_faster() {
    let took_ns = |width, clock_hz| {
        let (mut device, bus) = acquired(Kind::High, width, clock_hz);
        let data = pattern(1, 64);
        let clock = bus.controller.borrow().card.clock().clone();
        let start_ns = clock.now_ns();
        block_on(device.read(0, &mut data.clone())).unwrap();
        clock.now_ns() - start_ns
    };
    let one = took_ns(BusWidth::W1, 25_000_000);
    let four = took_ns(BusWidth::W4, 25_000_000);
    let four_fast = took_ns(BusWidth::W4, 50_000_000);
    // 64 blocks take 4114 clocks each on one line, 1042 on four lines, or half that time with high speed. A
    // clock is 40 ns. All other time is the card's.
    assert_eq!(one - four, 64 * (4114 - 1042) * 40);
    assert!(four - four_fast > 64 * 1042 * 19, "{four} {four_fast}");
}

#[test]
fn embedded_sdmmc_over_spi_leaves_the_same_contents() {
    let (mut device, bus) = acquired(Kind::High, BusWidth::W4, 25_000_000);
    let options = Options::default();
    let card = controller::card(SEED);
    let card = SpiCard::new(card, options, Clock::default(), 25_000_000).unwrap();
    let wire = Wire::new(card);
    wire.power_up();
    let spi = SdCard::new(wire.device(), wire.delay());
    spi.num_blocks().unwrap();
    for (seed, (start, count)) in WRITES.into_iter().enumerate() {
        let data = pattern(seed as u32, count);
        block_on(device.write(start, &data)).unwrap();
        let blocks: Vec<_> = data
            .iter()
            .map(|data| SpiBlock { contents: **data })
            .collect();
        spi.write(&blocks, BlockIdx(start)).unwrap();
        // The SPI driver does not wait after a stop token, and would take the busy signal for the response
        // to its next command.
        wire.card().clock().advance_ns(1_000_000_000);
    }
    let mut over_spi = vec![[0; 512]; BLOCKS as usize];
    wire.card().card().load(0, &mut over_spi);
    assert!(stored(&bus, 0, BLOCKS as usize) == over_spi);
    let written = over_spi.iter().filter(|block| **block != [0; 512]).count();
    let distinct: u32 = WRITES.iter().map(|(_, count)| count).sum();
    // Two of the writes overwrote earlier blocks: one block and eight blocks.
    assert_eq!(written as u32, distinct - 1 - 8);
}
