use super::reference::{Reference, Rules};
use super::*;
use cardiograph_sim_world::Random;

const BLOCKS_PER_PAGE: u64 = 8;
const UNIT_BLOCKS: u64 = 64 * BLOCKS_PER_PAGE;
const PAGE_US: u64 = 700;
const LOG_US: u64 = 500;
const READ_US: u64 = 50;
const ERASE_US: u64 = 3000;

/// Returns a translation layer without spread and without stall limit, with equal program times for all
/// pages.
fn translation(change: impl FnOnce(&mut Profile)) -> Translation {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.flash.spread_percent = 0;
    profile.flash.program_us = vec![PAGE_US as u32];
    profile.flash.erase_wear_percent = 0;
    profile.controller.stall_limit_us = u32::MAX;
    profile.controller.wear_levelling_erases = u32::MAX;
    change(&mut profile);
    Translation::new(&profile, Seed::new(1))
}

impl Translation {
    fn write_us(&mut self, start: u64, count: u64) -> u64 {
        self.write(start, count).work.ns / 1000
    }
}

#[test]
fn complete_pages_in_order_cost_one_program_each_and_one_erase_per_unit() {
    let mut card = translation(|_| ());
    let times: Vec<u64> = (0..64)
        .map(|page| card.write_us(page * BLOCKS_PER_PAGE, BLOCKS_PER_PAGE))
        .collect();
    assert!(times[..63].iter().all(|&us| us == PAGE_US));
    assert_eq!(times[63], PAGE_US + ERASE_US);
}

#[test]
fn single_blocks_go_to_the_log_until_their_page_is_complete() {
    let mut card = translation(|_| ());
    let times: Vec<u64> = (0..8).map(|block| card.write_us(block, 1)).collect();
    assert_eq!(times[0], READ_US + LOG_US);
    assert!(times[1..7].iter().all(|&us| us == LOG_US));
    assert_eq!(times[7], PAGE_US);
}

#[test]
fn a_merge_follows_when_all_log_blocks_are_full_and_copies_the_unit() {
    let mut card = translation(|profile| profile.controller.log_blocks = 3);
    // The first page stays valid in the oldest log block; rewriting the other page fills the log repeatedly.
    card.write_us(1, 1);
    let mut writes = 1;
    let merge_us = loop {
        let us = card.write_us(1000 * UNIT_BLOCKS, 1);
        if us > 10_000 {
            break us;
        }
        writes += 1;
    };
    assert_eq!(writes, 3 * 64);
    assert_eq!(merge_us, 64 * (READ_US + PAGE_US) + 2 * ERASE_US + LOG_US);
    // From now on, the log holds no old valid page, so freeing a log block takes only one erase.
    let worst = (0..1000)
        .map(|_| card.write_us(1000 * UNIT_BLOCKS, 1))
        .max();
    assert!(worst.unwrap() < 64 * PAGE_US);
}

#[test]
fn opening_a_unit_beyond_the_limit_closes_the_oldest() {
    let mut card = translation(|_| ());
    for unit in 0..2 {
        assert_eq!(card.write_us(unit * UNIT_BLOCKS, BLOCKS_PER_PAGE), PAGE_US);
    }
    let third_us = card.write_us(2 * UNIT_BLOCKS, BLOCKS_PER_PAGE);
    assert_eq!(third_us, 63 * (READ_US + PAGE_US) + ERASE_US + PAGE_US);
}

#[test]
fn reading_a_page_in_ram_does_not_access_flash() {
    let mut card = translation(|_| ());
    card.write_us(0, 1);
    assert_eq!(card.read(1, 1).ns, 0);
    assert_eq!(card.read(8, 1).ns / 1000, READ_US);
    assert_eq!(card.read(7, 10).ns / 1000, 2 * READ_US);
    card.power_cut();
    assert_eq!(card.read(1, 1).ns / 1000, READ_US);
}

#[test]
fn a_stall_limit_spreads_garbage_collection_over_later_writes() {
    let run = |limit_us| {
        let mut card = translation(|profile| {
            profile.controller.log_blocks = 3;
            profile.controller.stall_limit_us = limit_us;
        });
        // Worst case: every page of the log belongs to a different unit.
        (0..64 * 20)
            .map(|write| card.write_us(write * 37 % 1000 * UNIT_BLOCKS, 1))
            .collect::<Vec<u64>>()
    };
    let (unlimited, limited) = (run(u32::MAX), run(100_000));
    let merges_us = 64 * (64 * (READ_US + PAGE_US) + ERASE_US) + ERASE_US;
    assert_eq!(
        unlimited.iter().max(),
        Some(&(merges_us + LOG_US + READ_US))
    );
    assert_eq!(limited.iter().max(), Some(&(100_000 + LOG_US + READ_US)));
    // The total work is the same with and without the limit, except for the remaining garbage-collection
    // debt.
    let (all, done): (u64, u64) = (unlimited.iter().sum(), limited.iter().sum());
    assert!(done <= all && all - done <= merges_us);
}

#[test]
fn a_log_collected_as_a_whole_is_fast_until_it_is_full_and_after_a_pause() {
    let mut card = translation(|profile| {
        profile.controller.open_units = 0;
        profile.controller.log_blocks = 8;
        profile.controller.gc_log_blocks = 8;
        profile.controller.idle_free_blocks = 8;
        profile.controller.stall_limit_us = 500_000;
    });
    let mut unit = 0;
    for _ in 0..2 {
        for _ in 0..8 {
            unit += 1;
            let us = card.write_us(unit * UNIT_BLOCKS, UNIT_BLOCKS);
            assert_eq!(us, 64 * LOG_US, "unit {unit}");
        }
        card.idle(60_000_000_000);
    }
    // Even the log block that was being written to has been freed.
    assert_eq!(card.log.blocks(), 0);
    assert_eq!(card.write_us(0, 1), READ_US + LOG_US);
    card.idle(60_000_000_000);
    // Twelve units do not fit into the eight log blocks, so writes stall.
    let times = (0..12).map(|at| card.write_us((unit + at) * UNIT_BLOCKS, UNIT_BLOCKS));
    let slow = times.filter(|&us| us > 64 * LOG_US).count();
    assert!(slow >= 1 && card.gc_debt.ns < 8 * 64 * (READ_US + PAGE_US) * 1000);
}

#[test]
fn a_log_that_is_partly_used_stalls_earlier() {
    let first_us = |log_used_pages| {
        let mut card = translation(|profile| {
            profile.controller.log_blocks = 3;
            profile.controller.log_used_pages = log_used_pages;
        });
        card.write_us(0, 1)
    };
    assert_eq!(first_us(0), READ_US + LOG_US);
    assert_eq!(first_us(3 * 64 - 1), READ_US + LOG_US);
    let merge_us = 64 * (READ_US + PAGE_US) + 2 * ERASE_US;
    assert_eq!(first_us(3 * 64), merge_us + READ_US + LOG_US);
}

#[test]
fn garbage_collection_that_cannot_be_postponed_exceeds_the_limit() {
    let mut card = translation(|profile| {
        profile.controller.log_blocks = 3;
        profile.controller.stall_limit_us = 1;
    });
    let worst = (0..64 * 20)
        .map(|write| card.write_us(write * 37 % 1000 * UNIT_BLOCKS, 1))
        .max();
    assert!(worst.unwrap() > 1_000_000);
}

#[test]
fn an_idle_controller_collects_garbage_before_the_next_write() {
    let run = |idle_free_blocks| {
        let mut card = translation(|profile| {
            profile.controller.log_blocks = 8;
            profile.controller.idle_free_blocks = idle_free_blocks;
        });
        let mut longest_us = 0;
        let mut in_the_background = Work::default();
        for write in 0..64 * 100 {
            longest_us = longest_us.max(card.write_us(write * 37 % 1000 * UNIT_BLOCKS, 1));
            in_the_background += card.idle(1_000_000_000);
        }
        (longest_us, in_the_background.ns)
    };
    let (longest_us, background_ns) = run(0);
    assert!(longest_us > 1_000_000);
    assert_eq!(background_ns, 0);
    let (longest_us, background_ns) = run(2);
    assert_eq!(longest_us, LOG_US + READ_US);
    assert!(background_ns > 1_000_000_000);
}

#[test]
fn the_fast_zone_absorbs_random_writes_without_merges() {
    let longest_us = |fast_zone_units| {
        let mut card = translation(|profile| {
            profile.controller.fast_zone_units = fast_zone_units;
            profile.controller.log_blocks = 4;
        });
        let mut random = Seed::new(5).stream("places");
        (0..20_000)
            .map(|_| card.write_us(random.below(4 * UNIT_BLOCKS), 1))
            .max()
            .unwrap()
    };
    assert!(longest_us(0) > 64 * (READ_US + PAGE_US));
    // Worst case: one block of valid pages is copied within the log and then erased.
    assert!(longest_us(4) <= 64 * (READ_US + LOG_US) + ERASE_US + LOG_US + READ_US);
}

#[test]
fn a_fast_zone_with_only_valid_pages_keeps_working() {
    let mut card = translation(|profile| profile.controller.fast_zone_units = 1);
    for write in 0..64 * 100 {
        card.write_us(write % 64 * BLOCKS_PER_PAGE, 1);
    }
    assert!(card.erases() > 90);
}

#[test]
fn blocks_wear_out_at_their_endurance_and_wear_levelling_delays_it() {
    let worn_out = |wear_levelling_erases| {
        let mut card = translation(|profile| {
            profile.capacity_bytes = 64 << 20;
            profile.flash.endurance_cycles = 40;
            profile.flash.endurance_spread_percent = 10;
            profile.flash.spare_blocks = 20;
            profile.controller.wear_levelling_erases = wear_levelling_erases;
        });
        // Rewrite a single unit until the card is worn out.
        while !card.is_worn_out() {
            card.write_us(0, UNIT_BLOCKS);
        }
        assert_eq!(card.spares_left(), 0);
        card
    };
    let (left, levelled) = (worn_out(u32::MAX), worn_out(5));
    for card in [&left, &levelled] {
        // Endurance is 36 to 44 erases per block, and one more erase fails.
        assert!((36..=45).contains(card.cycles().end()));
    }
    // Without wear levelling, only the free blocks are used in turn: the other 255 units keep their blocks.
    assert_eq!(*left.cycles().start(), 0);
    assert!(levelled.erases() > 2 * left.erases());
}

#[test]
fn planes_multiply_the_page_size_and_cost_no_time() {
    let mut card = translation(|profile| {
        profile.flash.planes = 4;
        profile.capacity_bytes = 16_013_852_672 / (1 << 20) * (1 << 20);
    });
    assert_eq!(card.blocks_per_page(), 4 * BLOCKS_PER_PAGE);
    assert_eq!(card.write_us(0, 4 * BLOCKS_PER_PAGE), PAGE_US);
}

/// Returns a random write: small or large, sequential or rewriting.
fn random_write(random: &mut Random, units: u64) -> (u64, u64) {
    let blocks = units * UNIT_BLOCKS;
    match random.below(4) {
        0 => (random.below(blocks), 1),
        // Write near the start of the card, so that pages are rewritten.
        1 => (random.below(40), 1 + random.below(10)),
        2 => (
            random.below(units) * UNIT_BLOCKS,
            8 * (1 + random.below(70)),
        ),
        _ => (random.below(blocks / 8) * 8, 8),
    }
}

#[test]
fn times_match_the_reference_model() {
    for seed in 0..20 {
        let mut random = Seed::new(seed).stream("writes");
        let log_blocks = 1 + random.below(6) as u32;
        let open_units = random.below(4) as u32;
        let gc_log_blocks = 1 + random.below(log_blocks.into()) as u32;
        let ram_pages = 1 + random.below(4) as u32;
        let mut card = translation(|profile| {
            profile.controller.log_blocks = log_blocks;
            profile.controller.open_units = open_units;
            profile.controller.gc_log_blocks = gc_log_blocks;
            profile.controller.ram_pages = ram_pages;
            profile.controller.wear_levelling_erases = 50;
        });
        let mut reference = Reference::new(Rules {
            pages_per_unit: 64,
            blocks_per_page: BLOCKS_PER_PAGE,
            open_units: open_units as usize,
            ram_pages: ram_pages as usize,
            log_blocks,
            gc_log_blocks,
            wear_levelling_erases: 50,
            read_us: READ_US,
            program_us: PAGE_US,
            log_program_us: LOG_US,
            erase_us: ERASE_US,
        });
        for write in 0..3000 {
            let (start, count) = random_write(&mut random, 12);
            assert_eq!(
                card.write_us(start, count),
                reference.write_us(start, count),
                "seed {seed}, write {write}: {count} blocks from {start}"
            );
        }
        assert_eq!(card.erases(), reference.erases);
    }
}
