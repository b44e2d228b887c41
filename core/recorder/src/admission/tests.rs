use super::*;

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
