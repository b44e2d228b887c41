//! A saved card continues as if it had only lost power.

use cardiograph_sim_card::{Block, Card, Profile, Seed, StateError};

/// Profiles that differ in page size, logs, open units, and garbage collection while idle.
const PROFILES: [&str; 5] = [
    "class10-16g",
    "kingston-8g",
    "team-8g-class10",
    "panasonic-1g-slc",
    "sandisk-edge-8g",
];

fn profile(name: &str) -> Profile {
    let mut profile = Profile::named(name).unwrap();
    profile.capacity_bytes = 64 << 20;
    // Garbage collection while idle, so that a power cut can interrupt it.
    profile.controller.idle_free_blocks = profile.controller.log_blocks;
    // Garbage collection is spread over several writes, so that a power cut leaves debt.
    profile.controller.stall_limit_us = 30_000;
    profile.controller.gc_log_blocks = 2;
    profile
}

/// Writes streams and single blocks at random places; returns the busy times.
fn age(card: &mut Card, now_ns: &mut u64, seed: u64, streams: u32) -> Vec<u64> {
    let mut random = Seed::new(seed).stream("age");
    let mut times = Vec::new();
    for _ in 0..streams {
        let start = random.below(card.blocks() - 600);
        let data: Block = [random.next_u64() as u8; 512];
        for block in start..start + random.below(600) {
            times.push(card.stream_write(*now_ns, block, &data).unwrap());
            *now_ns += times.last().unwrap() + 200_000;
        }
        times.push(card.stream_end(*now_ns));
        *now_ns += times.last().unwrap() + random.below(2_000_000_000);
        let mut read = [0; 512];
        let read_ns = card.read(*now_ns, start, true, &mut read).unwrap();
        assert_eq!(read[..4], card_data(card, start)[..4]);
        times.push(read_ns);
        *now_ns += read_ns;
    }
    times
}

/// Writes single blocks until the first part of a garbage collection is done; returns the time.
fn begin_garbage_collection(card: &mut Card, mut now_ns: u64) -> u64 {
    let mut random = Seed::new(5).stream("blocks");
    loop {
        let block = random.below(card.blocks());
        let busy_ns = card.write(now_ns, block, &[2; 512]).unwrap();
        now_ns += busy_ns;
        if busy_ns > 30_000_000 {
            return now_ns;
        }
    }
}

fn card_data(card: &Card, block: u64) -> Block {
    let mut data = [[0; 512]];
    card.load(block, &mut data);
    data[0]
}

#[test]
fn a_saved_card_continues_like_the_original() {
    for (name, is_idle) in PROFILES.into_iter().zip([true, false].into_iter().cycle()) {
        let profile = profile(name);
        let mut original = Card::new(&profile, Seed::new(7));
        let mut now_ns = 0;
        age(&mut original, &mut now_ns, 1, 300);
        if !is_idle {
            now_ns = begin_garbage_collection(&mut original, now_ns);
        }
        // The power fails during an unfinished stream, or during garbage collection while idle.
        original.stream_write(now_ns, 9, &[1; 512]).unwrap();
        if is_idle {
            now_ns += u64::from(profile.controller.idle_after_us) * 1000 + 15_000_000;
        }
        let state = original.to_state(&profile, now_ns).unwrap();
        let mut loaded = Card::from_state(&profile, &state).unwrap();
        assert!(loaded.holds_same(&original), "{name}");
        assert!(loaded.to_state(&profile, 0).unwrap() == state, "{name}");
        original.power_cut(now_ns);
        original.power_on(now_ns);
        let mut loaded_ns = 0;
        let expected = age(&mut original, &mut now_ns, 2, 300);
        assert!(expected.iter().max() > Some(&20_000_000), "{name}");
        assert!(
            expected == age(&mut loaded, &mut loaded_ns, 2, 300),
            "{name}"
        );
        assert!(loaded.holds_same(&original), "{name}");
        let erases = original.controller().erases();
        assert_eq!(loaded.controller().erases(), erases);
    }
}

#[test]
fn every_damaged_state_is_rejected() {
    let profile = profile("sandisk-edge-8g");
    let state = Card::new(&profile, Seed::new(1))
        .to_state(&profile, 0)
        .unwrap();
    let load = |state: &[u8]| Card::from_state(&profile, state).map(drop);
    assert_eq!(load(&[]), Err(StateError::NotAState));
    assert_eq!(load(b"something else"), Err(StateError::NotAState));
    let mut newer = state.clone();
    newer[8] = 3;
    assert_eq!(load(&newer), Err(StateError::Version(3)));
    for length in (16..state.len()).step_by(997) {
        assert_eq!(load(&state[..length]), Err(StateError::Damaged));
    }
    for at in (12..state.len()).step_by(991) {
        let mut flipped = state.clone();
        flipped[at] ^= 1;
        assert_eq!(load(&flipped), Err(StateError::Damaged), "byte {at}");
    }
    let other = self::profile("apacer-1g-slc");
    let error = Card::from_state(&other, &state).map(drop);
    assert_eq!(error, Err(StateError::OtherProfile));
}

#[test]
fn a_card_with_defects_is_not_saved() {
    let profile = profile("apacer-1g-slc");
    let mut card = Card::new(&profile, Seed::new(1));
    card.flip_bit(1, 1);
    assert_eq!(
        card.to_state(&profile, 0).map(drop),
        Err(StateError::Defects)
    );
}
