//! Arbitrary text as a card, a board and a workload.
#![cfg_attr(fuzzing, no_main)]

use cardiograph_sim_card::{Board, Profile, parse_toml};
use cardiograph_workload::{Phase, Workload};
use serde::Deserialize;

#[derive(Deserialize)]
struct Phases {
    phase: Vec<Phase>,
}

cardiograph_fuzz::target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
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
