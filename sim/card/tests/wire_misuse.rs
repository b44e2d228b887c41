//! Misuse of the wire: no bytes make the card panic, and bytes in one go are the same as one by one.

mod script;

/// SplitMix64 (Steele, Lea, Flood, 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[test]
fn a_random_host_is_answered() {
    let (mut state, mut busy) = (1, 0);
    for _ in 0..600 {
        let length = random(&mut state) % 300;
        // Powered up first, mostly: clocks with chip select high, chip select low, initialisation.
        let mut bytes = vec![random(&mut state) as u8, 11, 2, 0, 1, 3, 12];
        bytes.extend((0..length).map(|_| random(&mut state) as u8));
        busy += u64::from(script::play(&bytes).busy > 0);
    }
    // Enough of these hosts come as far as writing something.
    assert!(busy > 60, "{busy} of 600");
}

#[test]
fn a_random_line_is_answered() {
    let mut state = 2;
    for _ in 0..300 {
        let length = random(&mut state) % 2000;
        let bytes: Vec<u8> = (0..length).map(|_| random(&mut state) as u8).collect();
        script::play(&bytes);
    }
}
