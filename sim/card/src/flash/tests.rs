use super::ftl::Ftl;
use super::hybrid::reserved_blocks;
use super::reference;
use crate::profile::{self, Mapping, Victim};
use crate::state::{Reader, Writer};
use crate::{BLOCK_BYTES, Profile};
use cardiograph_sim_world::{Random, Seed};

/// Operation times in us of a chip without spread, and the sizes that the rules depend on.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) units: u32,
    pub(super) blocks: u32,
    pub(super) pages_per_unit: u32,
    pub(super) log_pages_per_block: usize,
    pub(super) blocks_per_page: u64,
    pub(super) entries_per_page: u32,
    pub(super) map_journal_entries: u32,
    pub(super) open_units: usize,
    pub(super) ram_pages: usize,
    pub(super) part_blocks: usize,
    pub(super) log_limit: usize,
    pub(super) gc_log_blocks: u32,
    pub(super) wear_levelling_erases: u64,
    pub(super) commit_us: u64,
    pub(super) read_us: u64,
    pub(super) program_us: u64,
    pub(super) log_program_us: u64,
    pub(super) erase_us: u64,
}

impl Rules {
    fn of(profile: &Profile) -> Rules {
        let (flash, controller) = (&profile.flash, profile.controller);
        let for_log = flash.spare_blocks.saturating_sub(reserved_blocks(profile));
        Rules {
            units: profile.units(),
            blocks: profile.blocks() as u32,
            pages_per_unit: flash.pages_per_block,
            log_pages_per_block: flash.pages_per_block as usize / flash.program_us.len(),
            blocks_per_page: profile.page_bytes() / BLOCK_BYTES as u64,
            entries_per_page: profile.page_bytes() as u32 / 4,
            map_journal_entries: profile.ftl().map_journal_entries,
            open_units: controller.open_units as usize,
            ram_pages: controller.ram_pages as usize,
            part_blocks: match profile.ftl().part_blocks {
                0 => usize::MAX,
                blocks => blocks as usize,
            },
            log_limit: controller.log_blocks.min(for_log) as usize,
            gc_log_blocks: controller.gc_log_blocks,
            wear_levelling_erases: controller.wear_levelling_erases.into(),
            commit_us: profile.ftl().commit_us.into(),
            read_us: flash.read_us.into(),
            program_us: flash.program_us[0].into(),
            log_program_us: flash.log_program_us.into(),
            erase_us: flash.erase_us.into(),
        }
    }
}

/// Returns an empty card of 2048 units of 16 pages of 2 KiB, without spread and without stall limit.
fn profile(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.model = 2;
    profile.ftl = Some(profile::Ftl {
        commit_us: 300,
        map_journal_entries: 100,
        read_retry_percent: 0,
        fill_percent: [0, 0],
        log_percent: [0, 0],
        ..profile::Ftl::default()
    });
    profile.flash.page_bytes = 2048;
    profile.flash.pages_per_block = 16;
    profile.capacity_bytes = 64 << 20;
    profile.flash.spread_percent = 0;
    profile.flash.erase_wear_percent = 0;
    profile.flash.program_us = vec![700];
    profile.flash.log_program_us = 500;
    profile.flash.spare_blocks = 20;
    profile.controller.stall_limit_us = u32::MAX;
    profile.controller.wear_levelling_erases = u32::MAX;
    change(&mut profile);
    profile
}

fn ftl_of(profile: &mut Profile) -> &mut profile::Ftl {
    profile.ftl.get_or_insert_default()
}

fn write_us(ftl: &mut Ftl, start: u64, count: u64) -> u64 {
    ftl.begin_command();
    ftl.write(start, count).work.ns / 1000
}

/// Returns a random write: small or large, sequential or rewriting.
fn random_write(random: &mut Random, units: u64) -> (u64, u64) {
    let unit_blocks = 16 * 4;
    let blocks = units * unit_blocks;
    match random.below(4) {
        0 => (random.below(blocks), 1),
        1 => (random.below(40), 1 + random.below(10)),
        2 => (
            random.below(units) * unit_blocks,
            4 * (1 + random.below(20)),
        ),
        _ => (random.below(blocks / 4) * 4, 4),
    }
}

#[test]
fn hybrid_times_match_the_reference_model() {
    for seed in 0..20 {
        let mut random = Seed::new(seed).stream("writes");
        let profile = profile(|profile| {
            profile.flash.program_us = vec![700; 1 + random.below(2) as usize];
            profile.controller.log_blocks = 1 + random.below(6) as u32;
            profile.controller.open_units = random.below(4) as u32;
            let log_blocks = profile.controller.log_blocks.into();
            profile.controller.gc_log_blocks = 1 + random.below(log_blocks) as u32;
            profile.controller.ram_pages = 1 + random.below(4) as u32;
            profile.controller.wear_levelling_erases = 50;
            profile.flash.spare_blocks = 10 + random.below(3) as u32;
            ftl_of(profile).part_blocks = random.below(4) as u32;
        });
        let mut ftl = Ftl::new(&profile, Seed::new(seed));
        let left = ftl.chip.table.entries_left;
        let mut reference = reference::Hybrid::new(Rules::of(&profile), left, ftl.next_wear_move);
        for write in 0..3000 {
            let (start, count) = random_write(&mut random, 12);
            if random.below(20) == 0 {
                reference.discard(start, count * 9);
                ftl.discard(start, count * 9);
                // The next write runs the erases.
                ftl.chip.debt.run_all();
                continue;
            }
            assert_eq!(
                write_us(&mut ftl, start, count),
                reference.write_us(start, count),
                "seed {seed}, write {write}: {count} blocks from {start}"
            );
        }
        assert_eq!(ftl.erases(), reference.erases());
    }
}

#[test]
fn paged_times_match_the_reference_model() {
    for seed in 0..12 {
        let is_fifo = seed % 2 == 0;
        let mut random = Seed::new(seed).stream("writes");
        let profile = profile(|profile| {
            // 256 blocks of 16 pages.
            profile.flash.page_bytes = 16_384;
            profile.flash.spare_blocks = 3 + random.below(3) as u32;
            profile.controller.ram_pages = 1 + random.below(4) as u32;
            let ftl = ftl_of(profile);
            ftl.part_blocks = random.below(40) as u32;
            ftl.mapping = Mapping::Page;
            ftl.victim = match is_fifo {
                true => Victim::Fifo,
                false => Victim::Greedy,
            };
        });
        let mut ftl = Ftl::new(&profile, Seed::new(seed));
        let left = ftl.chip.table.entries_left;
        let mut reference =
            reference::Paged::new(Rules::of(&profile), left, ftl.next_wear_move, is_fifo);
        for write in 0..4000 {
            // Fill the card first; then the blocks must be collected.
            let (start, count) = match write < 256 {
                true => (write * 512, 512),
                false => random_write(&mut random, 2030),
            };
            if write > 256 && random.below(100) == 0 {
                reference.discard(start, count * 9);
                ftl.discard(start, count * 9);
                continue;
            }
            assert_eq!(
                write_us(&mut ftl, start, count),
                reference.write_us(start, count),
                "seed {seed}, write {write}: {count} blocks from {start}"
            );
        }
        assert_eq!(ftl.erases(), reference.erases());
        assert!(ftl.erases() > 100);
    }
}

fn state(ftl: &Ftl) -> Vec<u8> {
    let mut to = Writer::default();
    ftl.write_state(&mut to);
    to.0
}

/// A profile with hybrid and one with page mapping, with the spread of a real chip.
fn real_profiles() -> [Profile; 2] {
    [Mapping::Hybrid, Mapping::Page].map(|mapping| {
        profile(|profile| {
            profile.flash.spread_percent = 10;
            profile.flash.program_us = vec![400, 1000];
            profile.controller.stall_limit_us = 250_000;
            profile.controller.wear_levelling_erases = 100;
            profile.controller.idle_free_blocks = 2;
            profile.controller.log_blocks = 6;
            let ftl = ftl_of(profile);
            (ftl.fill_percent, ftl.log_percent) = ([60, 90], [0, 100]);
            if mapping == Mapping::Page {
                (ftl.mapping, ftl.victim) = (mapping, Victim::Greedy);
                profile.controller.open_units = 0;
            }
        })
    })
}

#[test]
fn several_pages_in_one_step_are_the_same_as_one_after_the_other() {
    for profile in real_profiles() {
        for seed in 0..5 {
            let mut quick = Ftl::new(&profile, Seed::new(seed));
            let mut slow = quick.clone();
            slow.is_slow = true;
            let mut random = Seed::new(seed).stream("writes");
            let mut next = 0;
            for write in 0..3000 {
                // Mostly a stream of 86 kB between stops; sometimes a write elsewhere, or a pause.
                let (start, count) = match random.below(8) {
                    0 => random_write(&mut random, 256),
                    1 => (random.below(1000), 1 + random.below(300)),
                    _ => (next, 168),
                };
                next = (start + count) % (131_072 - 1000);
                let works = [&mut quick, &mut slow].map(|ftl| {
                    ftl.begin_command();
                    (ftl.write(start, count), ftl.idle(100_000 * (write % 3)))
                });
                assert_eq!(works[0], works[1], "seed {seed}, write {write}");
            }
            assert_eq!(state(&quick), state(&slow));
            assert_eq!(quick.pages_programmed(), slow.pages_programmed());
        }
    }
}

#[test]
fn after_a_gigabyte_of_a_data_logger_times_and_state_are_those_of_one_page_after_the_other() {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.model = 2;
    let mut quick = Ftl::new(&profile, Seed::new(1));
    let mut slow = quick.clone();
    slow.is_slow = true;
    let (mut block, mut times_ns) = (65_536, [0, 0]);
    for stop in 0..1_000_000_000 / 86_016 {
        // A new file each minute: a block of the FAT and one of the folder.
        let writes = [(stop / 60, 1), (32_768, 1), (block, 168)];
        let skipped = 2 * usize::from(stop % 60 != 0);
        for (ftl, time_ns) in [&mut quick, &mut slow].into_iter().zip(&mut times_ns) {
            for (start, count) in writes.into_iter().skip(skipped) {
                ftl.begin_command();
                *time_ns += ftl.write(start, count).work.ns;
            }
            ftl.idle(700_000_000);
        }
        assert_eq!(times_ns[0], times_ns[1], "stop {stop}");
        block += 168;
    }
    assert!(block * 512 > 1_000_000_000);
    assert_eq!(state(&quick), state(&slow));
}

/// Each part of a page may need room, which must not add up to more than one stall.
#[test]
fn a_page_programmed_in_parts_waits_no_longer_than_one_at_once() {
    let longest_us = |part_blocks| {
        let profile = profile(|profile| {
            profile.controller.stall_limit_us = 250_000;
            // A log of four pages: each block of it is freed at once, and costs a merge.
            (profile.flash.pages_per_block, profile.flash.page_bytes) = (4, 32_768);
            profile.flash.program_us = vec![60_000];
            profile.controller.log_blocks = 1;
            profile.controller.open_units = 0;
            let ftl = ftl_of(profile);
            ftl.part_blocks = part_blocks;
            ftl.fill_percent = [100, 100];
        });
        let mut ftl = Ftl::new(&profile, Seed::new(1));
        let mut random = Seed::new(1).stream("writes");
        let writes = (0..300).map(|_| write_us(&mut ftl, random.below(1000) * 64, 40));
        writes.max().unwrap()
    };
    let (whole_us, parts_us) = (longest_us(0), longest_us(2));
    // A read, a commit and a program of the log for each part, and the limit twice: for room, and for what is overdue.
    let most_us = |parts: u64| 50 + parts * (300 + 500) + 2 * 250_000;
    assert!(whole_us > 250_000 && whole_us <= most_us(1), "{whole_us}");
    assert!(parts_us > 250_000 && parts_us <= most_us(20), "{parts_us}");
}

#[test]
fn a_loaded_state_continues_like_the_saved_card() {
    for profile in real_profiles() {
        let mut card = Ftl::new(&profile, Seed::new(7));
        let mut random = Seed::new(7).stream("writes");
        for _ in 0..2000 {
            let (start, count) = random_write(&mut random, 256);
            write_us(&mut card, start, count);
        }
        card.power_cut();
        let saved = state(&card);
        let mut loaded = Ftl::new(&profile, Seed::new(8));
        loaded.read_state(&mut Reader::of(&saved)).unwrap();
        assert_eq!(state(&loaded), saved);
        for _ in 0..2000 {
            let (start, count) = random_write(&mut random, 256);
            assert_eq!(
                write_us(&mut card, start, count),
                write_us(&mut loaded, start, count)
            );
        }
        for length in 0..saved.len().min(3000) {
            assert!(
                loaded
                    .read_state(&mut Reader::of(&saved[..length]))
                    .is_err()
            );
        }
    }
}

#[test]
fn a_damaged_state_never_panics() {
    for profile in real_profiles() {
        let saved = state(&Ftl::new(&profile, Seed::new(7)));
        let mut random = Seed::new(7).stream("damage");
        for _ in 0..300 {
            let mut damaged = saved.clone();
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            let mut card = Ftl::new(&profile, Seed::new(8));
            let _ = card.read_state(&mut Reader::of(&damaged));
        }
    }
}

#[test]
fn reading_costs_time_only_for_pages_with_data_and_more_with_wear() {
    let read_us = |profile: &Profile, start| {
        let mut card = Ftl::new(profile, Seed::new(1));
        write_us(&mut card, 0, 4);
        card.power_cut();
        assert!(card.holds(0));
        (0..1000).map(|_| card.read(start, 1).ns).sum::<u64>() / 1000
    };
    let of_age = |cycles| {
        profile(|profile| {
            profile.flash.cycles_used = cycles;
            ftl_of(profile).read_retry_percent = 50;
        })
    };
    let (new, worn) = (of_age(0), of_age(3000));
    assert_eq!(read_us(&new, 0), 1000 * 50);
    assert_eq!(read_us(&new, 4), 0);
    // At the end of life, half of the reads are repeated once, a quarter twice.
    let worn_us = read_us(&worn, 0);
    assert!((90_000..110_000).contains(&worn_us), "{worn_us}");
}

#[test]
fn a_block_that_is_read_too_often_is_moved() {
    for mapping in [Mapping::Hybrid, Mapping::Page] {
        let profile = profile(|profile| {
            let ftl = ftl_of(profile);
            (ftl.mapping, ftl.refresh_reads) = (mapping, 1000);
        });
        let mut card = Ftl::new(&profile, Seed::new(1));
        write_us(&mut card, 0, 128);
        card.power_cut();
        (0..999).for_each(|_| {
            card.read(0, 1);
        });
        assert_eq!(card.erases(), 0);
        card.read(0, 1);
        assert_eq!(card.erases(), 1);
        // The next write waits for the copies of 16 pages.
        assert!(write_us(&mut card, 4000, 4) > 16 * 750);
    }
}

#[test]
fn cards_of_either_mapping_wear_out_and_keep_responding() {
    for mapping in [Mapping::Hybrid, Mapping::Page] {
        let profile = profile(|profile| {
            profile.flash.endurance_cycles = 20;
            profile.flash.spare_blocks = 12;
            let ftl = ftl_of(profile);
            ftl.mapping = mapping;
            if mapping == Mapping::Page {
                profile.controller.open_units = 0;
            }
        });
        let mut card = Ftl::new(&profile, Seed::new(1));
        let mut random = Seed::new(1).stream("writes");
        let mut writes = 0;
        while !card.is_worn_out() {
            let (start, count) = random_write(&mut random, 256);
            write_us(&mut card, start, count);
            writes += 1;
            assert!(writes < 1_000_000);
        }
        assert!(*card.cycles().end() >= 15);
        for _ in 0..1000 {
            let (start, count) = random_write(&mut random, 256);
            write_us(&mut card, start, count);
        }
    }
}

#[test]
fn the_fast_zone_of_every_kind_of_cells_takes_writes_when_it_is_full() {
    for bits in 1..=3 {
        let profile = profile(|profile| {
            profile.flash.program_us = vec![700; bits];
            profile.flash.spare_blocks = 40;
            profile.controller.fast_zone_units = 2;
        });
        let mut ftl = Ftl::new(&profile, Seed::new(1));
        let zone_blocks = 2 * 16 * 4;
        write_us(&mut ftl, 0, zone_blocks);
        let before = ftl.chip.programmed;
        let mut random = Seed::new(1).stream("writes");
        for _ in 0..2000 {
            write_us(&mut ftl, random.below(zone_blocks), 1);
        }
        // A copy for each write at most, because half of the zone's pages are free.
        let programmed = ftl.chip.programmed - before;
        assert!(
            (2000..=4200).contains(&programmed),
            "{programmed} pages, {bits} bits per cell"
        );
    }
}
