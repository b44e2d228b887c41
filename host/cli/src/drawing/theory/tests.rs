//! Theory beside numbers by hand and beside simulated cards.

use super::*;
use cardiograph_sim_card::{CARDS, Controller, Seed};

#[test]
fn the_card_that_comes_along_has_the_numbers_one_gets_by_hand() {
    let profile = Profile::named("class10-16g").unwrap();
    let theory = of_card(&profile);
    let value = |name: &str| {
        let found = theory.iter().find(|derived| derived.name.starts_with(name));
        found.map(|derived| derived.value.clone()).unwrap()
    };
    // 64 × (50 + 700) us and two erases of 3 ms.
    assert_eq!(value("A peak"), "54 ms");
    assert_eq!(value("A small write"), "650 µs");
    assert_eq!(value("From peak to peak"), "2 560 log pages");
    assert_eq!(value("Size of the log"), "10 MiB");
    assert_eq!(value("Whole pages in order"), "5.85 MB/s");
    assert_eq!(value("Endurance, written"), "48 TB");
}

#[test]
fn a_log_that_is_freed_in_portions_goes_round_in_whole_ones() {
    let mut profile = Profile::named("class10-16g").unwrap();
    let mut round = |log_blocks, gc_log_blocks| {
        profile.controller.log_blocks = log_blocks;
        profile.controller.gc_log_blocks = gc_log_blocks;
        round_pages(&profile) / 64
    };
    assert_eq!((round(10, 1), round(10, 3), round(10, 10)), (10, 9, 10));
}

/// Busy times of small writes, in us: a file grows by a page now and then in one unit, and pages of
/// another are written again and again.
fn simulated_us(profile: &Profile, round: u64) -> Vec<f64> {
    let mut card = Controller::new(profile, Seed::new(1));
    let pages = u64::from(profile.flash.pages_per_block);
    let blocks_per_page = page_bytes(profile) / BLOCK_BYTES as u64;
    let file = u64::from(profile.controller.fast_zone_units) + 1;
    let mut now_ns = 0;
    let mut write = |at: u64| {
        let step = round / 16;
        // More pages than fit in RAM, so that each is read first.
        let page = match at.is_multiple_of(step) {
            true => file * pages + at / step % pages,
            false => (file + 1) * pages + at % 17,
        };
        let busy = card.write_by_command(now_ns, page * blocks_per_page, 1);
        now_ns += busy.total_ns;
        busy.total_ns as f64 / 1e3
    };
    (0..5 * round).map(&mut write).collect()
}

#[test]
fn peaks_come_as_high_and_as_far_apart_as_theory_says() {
    for (name, _) in CARDS {
        let mut profile = Profile::named(name).unwrap();
        if profile.controller.gc_log_blocks > 1 {
            continue;
        }
        profile.flash.spread_percent = 0;
        profile.controller.stall_limit_us = u32::MAX;
        profile.controller.wear_levelling_erases = u32::MAX;
        profile.controller.log_used_pages = 0;
        let (times, round) = (Times::of(&profile), round_pages(&profile));
        let mut peaks = Vec::new();
        for (at, us) in simulated_us(&profile, round).into_iter().enumerate() {
            let beyond_us = us - times.small_us;
            if beyond_us > times.copy_us / 2.0 {
                // Worn blocks take a little longer to erase.
                let ratio = beyond_us / times.peak_us;
                assert!((0.99..1.01).contains(&ratio), "{name}: {ratio}");
                peaks.push(at as u64);
            }
        }
        assert!(peaks.len() >= 3, "{name}: {peaks:?}");
        let most = round + round / 16 + u64::from(profile.flash.pages_per_block);
        let mut steps = peaks.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(
            steps.all(|step| (round..=most).contains(&step)),
            "{name}: {peaks:?}, {round}"
        );
    }
}
