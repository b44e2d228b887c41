//! Compares the theory with hand calculations and with simulated cards.

use super::*;
use cardiograph_sim_card::{CARDS, Controller, FIXTURES, Seed};

#[test]
fn the_figures_of_the_default_card_match_a_hand_calculation() {
    let profile = Profile::named("class10-16g").unwrap();
    let theory = of_card(&profile);
    let value = |name: &str| {
        let found = theory.iter().find(|derived| derived.name.starts_with(name));
        found.map(|derived| derived.value.clone()).unwrap()
    };
    // 64 × (50 + 700) us and two erases of 3 ms.
    assert_eq!(value("Stall: merge"), "54 ms");
    assert_eq!(value("Small write"), "650 µs");
    assert_eq!(value("Stall spacing within"), "2,560 log pages");
    assert_eq!(value("Total size of log blocks"), "10 MiB");
    assert_eq!(value("Sequential whole pages"), "5.85 MB/s");
    assert_eq!(value("Endurance, sequential"), "48 TB");
}

#[test]
fn log_blocks_are_reused_in_whole_garbage_collections() {
    let mut profile = Profile::named("class10-16g").unwrap();
    let mut cycle_blocks = |log_blocks, gc_log_blocks| {
        profile.controller.log_blocks = log_blocks;
        profile.controller.gc_log_blocks = gc_log_blocks;
        cycle_pages(&profile) / 64
    };
    assert_eq!(
        (
            cycle_blocks(10, 1),
            cycle_blocks(10, 3),
            cycle_blocks(10, 10)
        ),
        (10, 9, 10)
    );
}

/// Returns the busy times of small writes in us: a file in one unit grows by a page from time to time, while pages of
/// another unit are rewritten repeatedly.
fn simulated_us(profile: &Profile, cycle: u64) -> Vec<f64> {
    let mut card = Controller::new(profile, Seed::new(1));
    let pages = u64::from(profile.flash.pages_per_block);
    let blocks_per_page = page_bytes(profile) / BLOCK_BYTES as u64;
    let file = u64::from(profile.controller.fast_zone_units) + 1;
    let mut now_ns = 0;
    let mut write = |at: u64| {
        let step = cycle / 16;
        // The 17 pages of the other unit do not fit in the card's RAM, so each page has to be read first.
        let page = match at.is_multiple_of(step) {
            true => file * pages + at / step % pages,
            false => (file + 1) * pages + at % 17,
        };
        let busy = card.write_by_command(now_ns, page * blocks_per_page, 1);
        now_ns += busy.total_ns;
        busy.total_ns as f64 / 1e3
    };
    (0..5 * cycle).map(&mut write).collect()
}

#[test]
fn latency_and_spacing_of_simulated_stalls_match_the_theory() {
    for (name, _) in CARDS.iter().chain(FIXTURES) {
        let mut profile = Profile::named(name).unwrap();
        if profile.controller.gc_log_blocks > 1 {
            continue;
        }
        profile.flash.spread_percent = 0;
        profile.controller.stall_limit_us = u32::MAX;
        profile.controller.wear_levelling_erases = u32::MAX;
        profile.controller.log_used_pages = 0;
        if let Some(ftl) = &mut profile.ftl {
            (ftl.fill_percent, ftl.log_percent) = ([100, 100], [0, 0]);
            ftl.step_pages = 0;
            (ftl.read_retry_percent, ftl.map_journal_entries) = (0, 1 << 24);
        }
        let (times, cycle) = (Times::of(&profile), cycle_pages(&profile));
        let mut stalls = Vec::new();
        for (at, us) in simulated_us(&profile, cycle).into_iter().enumerate() {
            let beyond_us = us - times.small_us;
            if beyond_us > times.copy_us / 2.0 {
                // Worn blocks take slightly longer to erase.
                let ratio = beyond_us / times.stall_us;
                assert!((0.99..1.01).contains(&ratio), "{name}: {ratio}");
                stalls.push(at as u64);
            }
        }
        assert!(stalls.len() >= 3, "{name}: {stalls:?}");
        let most = cycle + cycle / 16 + u64::from(profile.flash.pages_per_block);
        let mut steps = stalls.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(
            steps.all(|step| (cycle..=most).contains(&step)),
            "{name}: {stalls:?}, {cycle}"
        );
    }
}
