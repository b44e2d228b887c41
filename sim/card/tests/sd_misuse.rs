//! Misuse of the SD bus: nothing that a host does makes the card panic, and time is clocks throughout.

mod sd_script;

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
    let (mut state, mut writing, mut reading) = (1, 0, 0);
    for _ in 0..1000 {
        let length = random(&mut state) % 300;
        // Initialised first.
        let mut bytes = vec![random(&mut state) as u8, 4, 5];
        bytes.extend((0..length).map(|_| random(&mut state) as u8));
        let outcome = sd_script::play(&bytes);
        writing += u32::from(outcome.written > 0);
        reading += u32::from(outcome.read > 0);
    }
    // Enough of these hosts come as far as that.
    assert!(
        writing > 50 && reading > 50,
        "{writing} and {reading} of 1000"
    );
}

#[test]
fn a_random_line_is_answered() {
    let (mut state, mut answered) = (2, 0);
    for _ in 0..1000 {
        let length = random(&mut state) % 1000;
        let bytes: Vec<u8> = (0..length).map(|_| random(&mut state) as u8).collect();
        answered += u32::from(sd_script::play(&bytes).responses > 0);
    }
    assert!(answered > 500, "{answered} of 1000");
}
