//! The plain stream, compared with the same card without a bus.

use cardiograph_compare::{PlainError, plain_stream, sustained_rate_bytes_per_s};
use cardiograph_sim_card::{Block, Card, Profile, Seed};

const START: u32 = 8192;
const BLOCKS: u32 = 20_000;
/// Bytes on the bus per block: token, data, checksum and data response.
const BLOCK_WIRE_BYTES: u64 = 516;

fn profile(name: &str) -> Profile {
    let mut profile = Profile::named(name).unwrap();
    profile.capacity_bytes = 64 << 20;
    profile
}

fn card(name: &str) -> Card {
    Card::new(&profile(name), Seed::new(3))
}

fn content(block: u32, data: &mut Block) {
    for (at, byte) in data.iter_mut().enumerate() {
        *byte = (block as usize * 7 + at) as u8;
    }
}

#[test]
fn every_block_is_on_the_card() {
    let (times, card) =
        plain_stream(card("kingston-8g"), 25_000_000, START, 1000, content).unwrap();
    assert_eq!(times.len(), 1000);
    let (mut held, mut due) = ([[0; 512]], [0; 512]);
    for block in 0..1000 {
        card.load(u64::from(START + block), &mut held);
        content(block, &mut due);
        assert!(held[0] == due, "block {block}");
    }
}

#[test]
fn a_block_takes_its_bytes_plus_busy() {
    for (name, byte_ns, clock_hz) in [
        ("kingston-8g", 320, 25_000_000),
        ("apacer-1g-slc", 2000, 4_000_000),
    ] {
        let (times, _) = plain_stream(card(name), clock_hz, START, BLOCKS, |_, _| {}).unwrap();
        // An identical card without a bus receives each block at the time at which the bus had transferred it.
        let mut alone = card(name);
        let mut longest_ns = 0;
        for (block, &(start_ns, end_ns)) in (u64::from(START)..).zip(&times) {
            let there_ns = start_ns + (BLOCK_WIRE_BYTES - 1) * byte_ns;
            let busy_ns = alone.stream_write(there_ns, block, &[0; 512]).unwrap();
            longest_ns = longest_ns.max(busy_ns);
            let answered_ns = start_ns + BLOCK_WIRE_BYTES * byte_ns;
            let least_ns = (there_ns + busy_ns).max(answered_ns);
            let more_ns = end_ns.checked_sub(least_ns).unwrap();
            // Busy may begin with the data response; the loop then polls until busy ends, plus one byte.
            assert!(more_ns <= 3 * byte_ns, "{name}, block {block}: {more_ns}");
        }
        assert!(longest_ns > 1_000_000, "no block with a long busy");
        assert!(times.windows(2).all(|two| two[0].1 == two[1].0));
    }
}

#[test]
fn a_card_that_is_never_busy_is_written_at_the_limit_of_the_wire() {
    let mut profile = profile("apacer-1g-slc");
    profile.flash.program_us = vec![0];
    profile.flash.log_program_us = 0;
    profile.flash.erase_us = 0;
    profile.flash.read_us = 0;
    profile.controller.command_us = 0;
    let card = Card::new(&profile, Seed::new(1));
    let (times, _) = plain_stream(card, 25_000_000, START, 100, |_, _| {}).unwrap();
    assert!(
        times
            .iter()
            .all(|(start_ns, end_ns)| end_ns - start_ns == 517 * 320)
    );
    // The bus transfers 512 B in 517 bytes of 320 ns each.
    let rate = sustained_rate_bytes_per_s(&times, 65_536);
    assert!((rate - 512e9 / (517.0 * 320.0)).abs() < 1.0, "{rate}");
}

#[test]
fn rejected_blocks_are_reported() {
    let blocks = card("kingston-8g").blocks() as u32;
    let past = plain_stream(card("kingston-8g"), 25_000_000, blocks, 1, |_, _| {});
    assert!(matches!(past, Err(PlainError::Refused { command: 25, .. })));
    let across = plain_stream(card("kingston-8g"), 25_000_000, blocks - 1, 2, |_, _| {});
    assert!(matches!(across, Err(PlainError::Block { block: 1, .. })));
    let clock = plain_stream(card("kingston-8g"), 1, 0, 1, |_, _| {});
    assert!(matches!(clock, Err(PlainError::Options(_))));
}
