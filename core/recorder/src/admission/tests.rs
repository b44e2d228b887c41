use super::*;
use crate::limits::ROOM_PART;

/// 100 kB/s.
fn rate() -> Rate {
    let mut rate = Rate::new();
    rate.observe(1_000_000, 100_000);
    rate
}

/// A card whose longest block took `stall_us`, and whose longest file-system step took `step_us`.
fn costs(stall_us: u32, step_us: u32) -> Costs {
    let mut costs = Costs::new(0);
    costs.observe_block(stall_us, 1);
    costs.observe_step(step_us);
    costs
}

/// A ring that cannot absorb the specification's limit: 25 kB at this rate.
const CAPACITY: usize = 20_000;

#[test]
fn a_cost_rises_at_most_twofold_per_measurement_and_falls_by_quarters() {
    let mut cost = Cost::new();
    assert_eq!(cost.us(), 20_000);
    cost.observe(30_000);
    assert_eq!(cost.us(), 30_000);
    cost.observe(1_000_000);
    assert_eq!(cost.us(), 60_000);
    // A quarter of the difference.
    cost.observe(20_000);
    assert_eq!(cost.us(), 50_000);
    cost.observe(50_000);
    assert_eq!(cost.us(), 50_000);
    cost.fade();
    assert_eq!(cost.us(), 25_000);
    for _ in 0..100 {
        cost.observe(0);
    }
    assert!(cost.us() < 4);
    // A cost near 0 rises to 1 ms at once.
    cost.observe(999);
    assert_eq!(cost.us(), 999);
    (0..20).for_each(|_| cost.fade());
    assert_eq!(cost.us(), 0);
    cost.observe(5_000);
    assert_eq!(cost.us(), 1_000);
}

#[test]
fn a_rate_rises_at_once_and_falls_by_an_eighth() {
    let mut rate = Rate::new();
    assert_eq!(rate.us_for(1), None);
    // 20 ms have to pass.
    rate.observe(19_999, 8_000);
    assert_eq!(rate.bytes_in(1_000_000), 0);
    rate.observe(20_000, 8_000);
    assert_eq!(rate.bytes_in(1_000_000), 400_000);
    rate.observe(1_020_000, 8_000);
    assert_eq!(rate.bytes_in(1_000_000), 350_000);
    rate.observe(1_520_000, 208_000);
    assert_eq!(rate.bytes_in(1_000_000), 400_000);
    assert_eq!(rate.bytes_in(1), 1, "rounded up");
    assert_eq!(rate.us_for(100_000), Some(250_000));
    // Clocks and heads wrap around.
    let mut rate = Rate {
        bytes_per_s: 0,
        since_us: u32::MAX - 49_999,
        head: u32::MAX - 999,
    };
    rate.observe((1 << 32) + 50_000, 9_000);
    assert_eq!(rate.bytes_in(1_000_000), 100_000);
}

#[test]
fn the_time_to_write_is_that_of_the_mean_block() {
    let mut costs = Costs::new(7);
    assert_eq!(costs.us_to_write(5_000), 0, "nothing is known");
    assert_eq!((costs.longest_us, costs.stall_us()), (7, 250_000));
    costs.observe_block(3_000, 2);
    costs.observe_block(1_000, 2);
    assert_eq!(costs.us_to_write(512), 1_000);
    assert_eq!(costs.us_to_write(513), 2_000);
    assert_eq!((costs.longest_us, costs.stall_us()), (3_000, 250_000));
    costs.observe_block(300_000, 0);
    assert_eq!((costs.longest_us, costs.stall_us()), (300_000, 300_000));
}

#[test]
fn older_blocks_count_less_in_the_mean() {
    let mut costs = Costs::new(0);
    for _ in 0..BLOCKS_MAX {
        costs.observe_block(1_000, 1);
    }
    assert_eq!(costs.us_to_write(512_000), 1_000_000);
    // As many blocks as remain after halving.
    for _ in 0..BLOCKS_MAX / 2 - 1 {
        costs.observe_block(3_000, 1);
    }
    let us = costs.us_to_write(512_000);
    assert!(us.abs_diff(2_000_000) < 100, "{us} us");
}

#[test]
fn a_ring_absorbs_an_operation_and_the_longest_stall_after_it() {
    // 100 kB/s; 60 ms of stall take 6 kB of 20 kB.
    let costs = costs(60_000, 0);
    for (level, us, is_absorbed) in [
        (0, 140_000, true),
        (0, 140_010, false),
        (10_000, 40_000, true),
        (10_000, 40_010, false),
        (14_000, 0, true),
        (14_001, 0, false),
    ] {
        let absorbs = costs.absorbs(rate(), level, CAPACITY, us, ROOM_PART);
        assert_eq!(absorbs, is_absorbed, "{level} bytes, {us} us");
    }
    // A stall alone would fill the ring: a sixteenth of it counts as room.
    let costs = Costs::new(1_000_000);
    assert!(costs.absorbs(rate(), 1_250, CAPACITY, 0, ROOM_PART));
    assert!(!costs.absorbs(rate(), 1_251, CAPACITY, 0, ROOM_PART));
    assert!(costs.absorbs(rate(), 250, CAPACITY, 10_000, ROOM_PART));
    assert!(!costs.absorbs(rate(), 251, CAPACITY, 10_000, ROOM_PART));
}

#[test]
fn half_a_small_ring_absorbs_a_step_and_the_longest_stall() {
    // Half of the ring lasts 100 ms.
    for (stall_us, step_us, is_absorbed) in [
        (60_000, 40_000, true),
        (60_001, 40_000, false),
        (60_000, 40_001, false),
        // At least 40 ms are assumed for the stall.
        (0, 60_000, true),
        (0, 60_001, false),
    ] {
        let absorbs = costs(stall_us, step_us).absorbs_step(rate(), 0, CAPACITY);
        assert_eq!(absorbs, is_absorbed, "{stall_us} us, {step_us} us");
    }
}

#[test]
fn a_small_ring_has_to_be_nearly_empty_before_a_step() {
    let costs = costs(10_000, 10_000);
    assert!(costs.absorbs_step(rate(), CAPACITY / 16, CAPACITY));
    assert!(!costs.absorbs_step(rate(), CAPACITY / 16 + 1, CAPACITY));
}

#[test]
fn a_large_ring_absorbs_a_step_at_any_level_that_leaves_room_for_garbage_collection() {
    let costs = costs(200_000, 10_000);
    // Twice the longest stall: 40 kB.
    assert!(costs.absorbs_step(rate(), 60_000, 100_000));
    assert!(!costs.absorbs_step(rate(), 60_001, 100_000));
}
