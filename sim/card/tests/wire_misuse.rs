//! Misuse of the SPI bus: no bytes make the card panic, and runs of bytes give the same result as single
//! bytes.

use crate::script;
use cardiograph_sim_card::Seed;

/// Enough hosts that more than 60 get as far as writing.
const HOSTS: u32 = 700;

#[test]
fn a_random_host_gets_responses() {
    let (mut random, mut busy) = (Seed::new(1).stream("hosts"), 0);
    for _ in 0..HOSTS {
        let length = random.next_u64() % 300;
        // Usually the script first powers up the card: clocks with chip select high, then chip select low,
        // then initialisation.
        let mut bytes = vec![random.next_u64() as u8, 11, 2, 0, 1, 3, 12];
        bytes.extend((0..length).map(|_| random.next_u64() as u8));
        busy += u64::from(script::play(&bytes).busy > 0);
    }
    // Enough of these random hosts get as far as writing.
    assert!(busy > 60, "{busy} of {HOSTS}");
}

#[test]
fn random_bytes_get_responses() {
    let mut random = Seed::new(2).stream("lines");
    for _ in 0..300 {
        let length = random.next_u64() % 2000;
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        script::play(&bytes);
    }
}
