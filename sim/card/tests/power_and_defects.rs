//! Contents of a card after a power cut, and behaviour of cards with defects.

use cardiograph_sim_card::{
    BitErrors, Block, Card, CardError, Counterfeit, Defects, Profile, Seed, TornPage,
};
use std::num::NonZeroU64;

fn profile() -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 64 << 20;
    profile
}

fn card(defects: Defects) -> Card {
    Card::with_defects(&profile(), defects, Seed::new(1))
}

fn stored(card: &Card, block: u64) -> Block {
    let mut data = [[0; 512]];
    card.load(block, &mut data);
    data[0]
}

fn ideal(card: &Card, block: u64) -> Block {
    let mut data = [[0; 512]];
    card.load_ideal(block, &mut data);
    data[0]
}

#[test]
fn written_blocks_are_read_back_and_all_others_are_zero() {
    let mut card = card(Defects::default());
    card.write(0, 100, &[7; 512]).unwrap();
    let mut data = [1; 512];
    card.read(1_000_000_000, 100, true, &mut data).unwrap();
    assert_eq!(data, [7; 512]);
    card.read(1_000_000_000, 101, true, &mut data).unwrap();
    assert_eq!(data, [0; 512]);
}

#[test]
fn a_page_in_flight_is_old_before_busy_ends_and_new_after() {
    for (after_ns, expected) in [(0, 1), (-1, 1), (1, 2)] {
        let mut card = card(Defects::default());
        let busy_ns = card.write(0, 5, &[1; 512]).unwrap();
        let start_ns = busy_ns + 1;
        let busy_ns = card.write(start_ns, 5, &[2; 512]).unwrap();
        let cut_ns = match after_ns {
            0 => start_ns,
            _ => (start_ns + busy_ns).saturating_add_signed(after_ns),
        };
        card.power_cut(cut_ns);
        assert_eq!(stored(&card, 5), [expected; 512]);
        assert_eq!(ideal(&card, 5), [expected; 512]);
    }
}

#[test]
fn a_stream_that_is_not_ended_leaves_its_last_page_unchanged() {
    let mut card = card(Defects::default());
    let mut now_ns = 0;
    for block in 0..10 {
        now_ns += card.stream_write(now_ns, block, &[9; 512]).unwrap();
    }
    card.power_cut(now_ns);
    assert_eq!(stored(&card, 7), [9; 512]);
    assert_eq!(stored(&card, 8), [0; 512]);
}

#[test]
fn a_stream_is_busy_only_at_the_end_of_each_page() {
    let mut card = card(Defects::default());
    let busy_ns: Vec<u64> = (0..16)
        .map(|block| card.stream_write(0, block, &[9; 512]).unwrap())
        .collect();
    // The first block takes the command time; then every eighth block completes a page.
    assert_eq!(busy_ns[0], 100_000);
    assert!(busy_ns[1..7].iter().all(|&ns| ns == 0));
    assert!(busy_ns[7] > 300_000 && busy_ns[15] > 300_000);
    assert_eq!(card.stream_end(0), 0);
}

#[test]
fn torn_pages_damage_neighbouring_blocks_but_not_the_ideal_contents() {
    for torn_page in [TornPage::Mixed, TornPage::Garbage, TornPage::Unreadable] {
        let mut card = card(Defects {
            torn_page,
            ..Defects::default()
        });
        let mut now_ns = 0;
        for block in 0..16 {
            now_ns += card.write(now_ns, block, &[1; 512]).unwrap();
        }
        let busy_ns = card.write(now_ns, 3, &[2; 512]).unwrap();
        card.power_cut(now_ns + busy_ns - 100_000);
        for block in 0..16 {
            assert_eq!(ideal(&card, block), [1; 512], "{torn_page:?}");
            let mut data = [0; 512];
            let read = card.read(1 << 40, block, true, &mut data);
            match (block < 8, torn_page) {
                (false, _) => assert_eq!((read.is_ok(), data), (true, [1; 512])),
                (true, TornPage::Unreadable) => {
                    assert_eq!(read, Err(CardError::Unreadable { block }));
                }
                (true, TornPage::Garbage) => assert_ne!(data, [1; 512]),
                // Most of the page has been programmed; its last bytes have not.
                (true, _) if block == 7 => assert_eq!(data[511], 0xFF),
                (true, _) => assert!(data == [1; 512] || data == [2; 512] || block > 3),
            }
        }
        card.write(1 << 41, 5, &[3; 512]).unwrap();
        let mut data = [0; 512];
        card.read(1 << 42, 5, true, &mut data).unwrap();
        assert_eq!(data, [3; 512]);
    }
}

#[test]
fn a_card_with_a_volatile_cache_loses_the_newest_blocks_it_reported_as_durable() {
    let mut card = card(Defects {
        volatile_blocks: 3,
        ..Defects::default()
    });
    let mut now_ns = 0;
    for value in 1..=10 {
        now_ns += card.write(now_ns, value.into(), &[value; 512]).unwrap();
    }
    card.power_cut(now_ns + 1_000_000_000);
    for value in 1..=10 {
        assert_eq!(ideal(&card, value.into()), [value; 512]);
        let is_lost = value > 7;
        let expected = if is_lost { 0 } else { value };
        assert_eq!(stored(&card, value.into()), [expected; 512]);
    }
}

#[test]
fn a_counterfeit_card_wraps_or_discards() {
    let real_blocks = NonZeroU64::new(1000).unwrap();
    for (counterfeit, expected) in [
        (Counterfeit::Wraps { real_blocks }, 2),
        (Counterfeit::Vanishes { real_blocks }, 1),
    ] {
        let mut card = card(Defects {
            counterfeit: Some(counterfeit),
            ..Defects::default()
        });
        card.write(0, 4, &[1; 512]).unwrap();
        card.write(1 << 40, 5004, &[2; 512]).unwrap();
        assert_eq!(stored(&card, 4), [expected; 512]);
        assert_eq!(ideal(&card, 4), [1; 512]);
        assert_eq!(ideal(&card, 5004), [2; 512]);
        let mut data = [9; 512];
        card.read(1 << 41, 5004, true, &mut data).unwrap();
        assert_eq!(data, [if expected == 2 { 2 } else { 0 }; 512]);
        card.erase(1 << 41, 900, 3000).unwrap();
        card.read(1 << 41, 4, true, &mut data).unwrap();
        // If addresses wrap, the writes to blocks 1000 to 3900 cover the whole card.
        assert_eq!(data, [if expected == 2 { 0 } else { 1 }; 512]);
    }
}

#[test]
fn bit_errors_occur_at_the_configured_rates() {
    let mut card = card(Defects {
        bit_errors: BitErrors {
            corrected_ppm: 100_000,
            unreadable_ppm: 100_000,
            silent_ppm: 100_000,
        },
        ..Defects::default()
    });
    card.write(0, 5, &[7; 512]).unwrap();
    // Writing eight other blocks evicts the page from the controller's RAM.
    for block in 1..9 {
        card.write(1 << 40, block * 64, &[1; 512]).unwrap();
    }
    let (mut failed, mut wrong, mut slow) = (0, 0, 0);
    for _ in 0..10_000 {
        let mut data = [0; 512];
        match card.read(1 << 41, 5, true, &mut data) {
            Ok(ns) => {
                slow += u32::from(ns > 300_000);
                let bits: u32 = data.iter().map(|byte| (byte ^ 7).count_ones()).sum();
                assert!(bits <= 1);
                wrong += bits;
            }
            Err(_) => failed += 1,
        }
    }
    // Six standard deviations of a binomial distribution (n = 10,000, p = 0.1) are 180.
    for (count, expected) in [(failed, 1000_u32), (wrong, 900), (slow, 900)] {
        assert!(count.abs_diff(expected) < 180, "{count}");
    }
    assert_eq!(stored(&card, 5), [7; 512]);
}

#[test]
fn erased_blocks_are_zero_and_their_neighbours_are_unchanged() {
    let mut card = card(Defects::default());
    for block in 0..40 {
        card.write(0, block, &[7; 512]).unwrap();
    }
    card.erase(0, 3, 30).unwrap();
    for block in 0..40 {
        let value = if (3..33).contains(&block) { 0 } else { 7 };
        assert_eq!(stored(&card, block), [value; 512], "block {block}");
    }
}

#[test]
fn blocks_past_the_end_are_rejected() {
    let mut card = card(Defects::default());
    let blocks = card.blocks();
    let refused = CardError::OutOfRange {
        block: blocks,
        blocks,
    };
    assert_eq!(card.write(0, blocks, &[1; 512]), Err(refused));
    assert!(card.read(0, u64::MAX, true, &mut [0; 512]).is_err());
    assert!(card.erase(0, blocks - 1, 2).is_err());
}

#[test]
fn an_unreadable_block_stays_unreadable_if_power_fails_before_it_is_rewritten() {
    let mut card = card(Defects::default());
    card.make_unreadable(5);
    let busy_ns = card.write(0, 5, &[1; 512]).unwrap();
    card.power_cut(busy_ns - 1);
    let mut data = [0; 512];
    let unreadable = Err(CardError::Unreadable { block: 5 });
    assert_eq!(card.read(busy_ns, 5, true, &mut data), unreadable);
}

#[test]
fn a_leaked_bit_damages_the_block_but_not_the_ideal_contents() {
    let mut card = card(Defects::default());
    let now_ns = card.write(0, 5, &[7; 512]).unwrap();
    card.write(now_ns, 6, &[8; 512]).unwrap();
    card.flip_bit(5, 8 * 100 + 3);
    let mut damaged = [7; 512];
    damaged[100] ^= 8;
    assert_eq!(stored(&card, 5), damaged);
    assert_eq!(ideal(&card, 5), [7; 512]);
    // Data that was in flight is rolled back in the stored and in the ideal contents.
    card.power_cut(now_ns);
    assert_eq!((stored(&card, 6), ideal(&card, 6)), ([0; 512], [0; 512]));
    card.write(1 << 40, 5, &[9; 512]).unwrap();
    assert_eq!((stored(&card, 5), ideal(&card, 5)), ([9; 512], [9; 512]));
}

#[test]
fn releasing_memory_zeroes_blocks_without_changing_the_timing() {
    let mut cards = [0, 1].map(|_| card(Defects::default()));
    let mut times_ns = [Vec::new(), Vec::new()];
    for ((card, times_ns), forgets) in cards.iter_mut().zip(&mut times_ns).zip([false, true]) {
        let mut now_ns = 0;
        for round in 1..=3 {
            for block in 0..2000 {
                let busy_ns = card.write(now_ns, block, &[round; 512]).unwrap();
                times_ns.push(busy_ns);
                now_ns += busy_ns + 1;
            }
            if forgets {
                card.release_memory(3, 1990);
            }
        }
    }
    let [unchanged, released] = &cards;
    assert_eq!(times_ns[0], times_ns[1]);
    for (block, left) in [(2, 3), (3, 0), (1992, 0), (1993, 3)] {
        assert_eq!(stored(released, block), [left; 512], "block {block}");
        assert_eq!(stored(unchanged, block), [3; 512]);
    }
}
