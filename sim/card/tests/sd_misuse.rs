//! Misuse of the SD bus: no host makes the card panic, and elapsed time is always the sum of all clocks.

use crate::sd_script;
use cardiograph_sim_card::Seed;

#[test]
fn a_random_host_gets_responses() {
    let mut random = Seed::new(1).stream("hosts");
    let (mut writing, mut reading) = (0, 0);
    for _ in 0..1000 {
        let length = random.next_u64() % 300;
        // Each script first initialises the card.
        let mut bytes = vec![random.next_u64() as u8, 4, 5];
        bytes.extend((0..length).map(|_| random.next_u64() as u8));
        let outcome = sd_script::play(&bytes);
        writing += u32::from(outcome.written > 0);
        reading += u32::from(outcome.read > 0);
    }
    // Enough of these random hosts get as far as transferring blocks.
    assert!(
        writing > 50 && reading > 50,
        "{writing} and {reading} of 1000"
    );
}

#[test]
fn random_bytes_get_responses() {
    let (mut random, mut answered) = (Seed::new(2).stream("lines"), 0);
    for _ in 0..1000 {
        let length = random.next_u64() % 1000;
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        answered += u32::from(sd_script::play(&bytes).responses > 0);
    }
    assert!(answered > 500, "{answered} of 1000");
}
