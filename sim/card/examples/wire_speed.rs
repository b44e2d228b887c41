//! How many single-block writes a second of real time goes through the wire, data stored.
//!
//! `cargo run --release -p cardiograph-sim-card --example wire_speed`

use cardiograph_sim_card::wire::{Options, SpiCard, Wire, crc};
use cardiograph_sim_card::{Card, Clock, Profile, Seed};
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use embedded_sdmmc::{Block, BlockDevice, BlockIdx, SdCard};
use std::time::Instant;

const WRITES: u32 = 500_000;

fn wire() -> Wire {
    let mut profile = Profile::named("class10-16g").expect("it comes along");
    profile.capacity_bytes = 1 << 30;
    let card = Card::new(&profile, Seed::new(1));
    let card = SpiCard::new(card, Options::default(), Clock::default(), 25_000_000);
    let wire = Wire::new(card.expect("these options are possible"));
    wire.power_up();
    wire
}

fn report(what: &str, wire: &Wire, act: impl FnOnce()) {
    let (before, start) = (wire.card().count(), Instant::now());
    act();
    let (took, after) = (start.elapsed().as_secs_f64(), wire.card().count());
    println!(
        "{what:<44} {:>8.0} writes/s, {:>6.1} MB/s on the wire, {:>5.1} % of it busy",
        f64::from(WRITES) / took,
        (after.bytes - before.bytes) as f64 / took / 1e6,
        (after.busy - before.busy) as f64 / (after.bytes - before.bytes) as f64 * 100.0,
    );
}

/// The command, four bytes of its argument, and its checksum.
fn frame(index: u8, argument: u32) -> [u8; 6] {
    let mut frame = [0x40 | index, 0, 0, 0, 0, 0];
    frame[1..5].copy_from_slice(&argument.to_be_bytes());
    frame[5] = crc::crc7(&frame[..5]) << 1 | 1;
    frame
}

/// CMD24 with a host that costs nothing: it knows when the card is no longer busy.
fn bare(wire: &Wire) {
    let mut card = wire.card();
    card.select(true);
    let clock = card.clock().clone();
    for place in 0..WRITES {
        card.write(&frame(24, place));
        card.write(&[0xFF; 2]);
        card.write(&[0xFE]);
        card.write(&[place as u8; 512]);
        card.write(&[0xFF; 3]);
        let left_ns = card.busy_until_ns().saturating_sub(clock.now_ns());
        clock.advance_ns(left_ns);
    }
    let mut last = [[0; 512]];
    card.card().load(u64::from(WRITES) - 1, &mut last);
    assert_eq!(last[0], [(WRITES - 1) as u8; 512]);
}

fn main() {
    for use_crc in [true, false] {
        let wire = wire();
        let options = AcquireOpts {
            use_crc,
            ..AcquireOpts::default()
        };
        let card = SdCard::new_with_options(wire.device(), wire.delay(), options);
        card.num_bytes().expect("the card answers");
        let crc = if use_crc { "on" } else { "off" };
        report(
            &format!("embedded-sdmmc, polling, checksums {crc}"),
            &wire,
            || {
                for place in 0..WRITES {
                    let contents = [place as u8; 512];
                    let written = card.write(&[Block { contents }], BlockIdx(place));
                    written.expect("the card takes the block");
                }
            },
        );
        if !use_crc {
            report("CMD24 by hand, not polling, checksums off", &wire, || {
                bare(&wire)
            });
        }
    }
}
