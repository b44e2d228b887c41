//! A small card on a wire, for tests of faults, and data that tell where they belong.
#![allow(dead_code)]

use crate::reference;
use cardiograph_sim_card::wire::{
    ChipSelect, Delay, Options, SpiBus, SpiCard, SpiDevice, Strike, Wire,
};
use cardiograph_sim_card::{Block, Card, Clock, Defects, Profile, Seed};
use embedded_sdmmc::SdCard;
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use std::sync::LazyLock;

/// Of [`ready`].
pub const CLOCK_HZ: u32 = 25_000_000;
pub const BYTE_NS: u64 = 320;
/// CMD13 with its checksum.
pub const STATUS: [u8; 6] = [0x4D, 0, 0, 0, 0, 0x0D];

/// Eight blocks a page; as few pages as can be, since each takes time to make.
pub static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 16 << 20;
    profile
});

pub fn card(defects: Defects) -> Card {
    Card::with_defects(&PROFILE, defects, Seed::new(1))
}

/// On a bus of this clock. Ready at once: only what is tested takes bytes.
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

/// A driver of ours; the card is not initialised.
pub fn driver(wire: &Wire, crc: bool) -> reference::Driver<SpiBus, ChipSelect> {
    reference::Driver::new(wire.bus(), wire.chip_select(), crc)
}

/// A driver that was not written for this card, after the clocks that it cannot send.
pub fn embedded_sdmmc(wire: &Wire, use_crc: bool) -> SdCard<SpiDevice, Delay> {
    wire.power_up();
    let options = AcquireOpts {
        use_crc,
        acquire_retries: 2,
    };
    SdCard::new_with_options(wire.device(), wire.delay(), options)
}

/// What a block holds: no two blocks or versions are alike at any byte.
pub fn data(version: u8, block: u64) -> Block {
    std::array::from_fn(|at| {
        (at as u8)
            .wrapping_add(version * 61)
            .wrapping_add(block as u8)
    })
}

pub fn held(wire: &Wire, block: u64) -> Block {
    let mut data = [[0; 512]];
    wire.card().card().load(block, &mut data);
    data[0]
}

pub fn promised(wire: &Wire, block: u64) -> Block {
    let mut data = [[0; 512]];
    wire.card().card().promised(block, &mut data);
    data[0]
}

/// A card that a driver of ours has initialised, selected.
pub fn ready(crc: bool) -> Wire {
    let wire = wire(CLOCK_HZ);
    driver(&wire, crc).init().unwrap();
    wire.card().select(true);
    wire
}

pub fn bytes(wire: &Wire) -> u64 {
    wire.card().count().bytes
}

/// A strike so many bytes from now.
pub fn strike(wire: &Wire, after: u64, strike: Strike) {
    let byte = bytes(wire) + after;
    wire.card().strike(byte, strike);
}

/// Sends bytes and so many of silence; what comes back.
pub fn line(wire: &Wire, sent: &[u8], silence: usize) -> Vec<u8> {
    let mut line = [sent, &vec![0xFF; silence]].concat();
    wire.card().exchange_in_place(&mut line);
    line
}

/// CMD24 of block 5 with its block, checksums off; the data response is the last byte.
pub fn write_5(version: u8) -> Vec<u8> {
    let command = [0x58, 0, 0, 0, 5, 0xFF];
    let block = data(version, 5);
    [&command[..], &[0xFF; 3], &[0xFE], &block, &[0, 0, 0xFF]].concat()
}
