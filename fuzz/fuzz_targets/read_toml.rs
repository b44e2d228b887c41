//! Arbitrary text as a card, a board and a workload.
#![no_main]

use cardiograph_sim_card::{Board, Profile, parse_toml};
use cardiograph_workload::{Phase, Workload};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;

#[derive(Deserialize)]
struct Phases {
    phase: Vec<Phase>,
}

fuzz_target!(|text: &str| {
    let _ = Profile::from_toml("card.toml", text);
    let _ = Board::from_toml("board.toml", text);
    if let Ok(Phases { phase }) = parse_toml::<Phases>("workload.toml", text) {
        let workload = Workload {
            name: "",
            study: "",
            about: "",
            phases: &phase,
        };
        if workload.check().is_ok() {
            assert!(workload.bytes() > 0);
            assert!(workload.buffer_bytes() >= 2);
        }
    }
});
