//! A small card on a bus for fault tests, with data that identifies its block.

use crate::reference;
use cardiograph_sim_card::wire::{
    ChipSelect, Delay, Fault, Options, SpiBus, SpiCard, SpiDevice, Wire,
};
use cardiograph_sim_card::{Block, Card, Clock, Defects, Profile, Seed};
use embedded_sdmmc::SdCard;
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use std::sync::LazyLock;

/// Clock of the bus that [`ready`] sets up, in Hz.
pub const CLOCK_HZ: u32 = 25_000_000;
pub const BYTE_NS: u64 = 320;
/// Bytes of CMD13 with a correct checksum.
pub const STATUS: [u8; 6] = [0x4D, 0, 0, 0, 0, 0x0D];

/// A card with eight blocks per page and as few pages as possible, because creating pages takes time.
pub static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 16 << 20;
    profile
});

pub fn card(defects: Defects) -> Card {
    Card::with_defects(&PROFILE, defects, Seed::new(1))
}

/// Puts a card on a bus with a clock of `clock_hz`. The card initialises without delay, so nearly all bytes belong to
/// the test.
pub fn wire_of(card: Card, clock_hz: u32) -> Wire {
    let options = Options {
        init_us: 0,
        ..Options::default()
    };
    Wire::new(SpiCard::new(card, options, Clock::default(), clock_hz).unwrap())
}

pub fn wire(clock_hz: u32) -> Wire {
    wire_of(card(Defects::default()), clock_hz)
}

/// Returns the reference driver; the card is not initialised.
pub fn driver(wire: &Wire, crc: bool) -> reference::Driver<SpiBus, ChipSelect> {
    reference::Driver::new(wire.bus(), wire.chip_select(), crc)
}

/// Returns an independent driver, after sending the power-up clocks that this driver cannot send itself.
pub fn embedded_sdmmc(wire: &Wire, use_crc: bool) -> SdCard<SpiDevice, Delay> {
    wire.power_up();
    let options = AcquireOpts {
        use_crc,
        acquire_retries: 2,
    };
    SdCard::new_with_options(wire.device(), wire.delay(), options)
}

/// Returns the test data of a block: no two blocks or versions agree at any byte.
pub fn data(version: u8, block: u64) -> Block {
    std::array::from_fn(|at| {
        (at as u8)
            .wrapping_add(version * 61)
            .wrapping_add(block as u8)
    })
}

pub fn stored(wire: &Wire, block: u64) -> Block {
    let mut data = [[0; 512]];
    wire.card().card().load(block, &mut data);
    data[0]
}

pub fn ideal(wire: &Wire, block: u64) -> Block {
    let mut data = [[0; 512]];
    wire.card().card().load_ideal(block, &mut data);
    data[0]
}

/// Returns a selected card, initialised by the reference driver.
pub fn ready(crc: bool) -> Wire {
    let wire = wire(CLOCK_HZ);
    driver(&wire, crc).init().unwrap();
    wire.card().select(true);
    wire
}

pub fn bytes(wire: &Wire) -> u64 {
    wire.card().count().bytes
}

/// Injects a fault after `after` more bytes.
pub fn inject(wire: &Wire, after: u64, fault: Fault) {
    let byte = bytes(wire) + after;
    wire.card().inject(byte, fault);
}

/// Sends bytes, then filler; returns the bytes received.
pub fn exchange(wire: &Wire, sent: &[u8], filler: usize) -> Vec<u8> {
    let mut exchange = [sent, &vec![0xFF; filler]].concat();
    wire.card().exchange_in_place(&mut exchange);
    exchange
}

/// Returns CMD24 for block 5 with its data, checksums off; the data response is the last byte.
pub fn write_5(version: u8) -> Vec<u8> {
    let command = [0x58, 0, 0, 0, 5, 0xFF];
    let block = data(version, 5);
    [&command[..], &[0xFF; 3], &[0xFE], &block, &[0, 0, 0xFF]].concat()
}
