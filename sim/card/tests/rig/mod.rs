//! A small card on a wire, for tests of faults, and data that tell where they belong.
#![allow(dead_code)]

use crate::reference;
use cardiograph_sim_card::wire::{ChipSelect, Delay, Options, SpiBus, SpiCard, SpiDevice, Wire};
use cardiograph_sim_card::{Block, Card, Clock, Defects, Profile, Seed};
use embedded_sdmmc::SdCard;
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use std::sync::LazyLock;

/// Eight blocks a page; as few pages as can be, since each takes time to make.
static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
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
