//! Arbitrary bytes as actions of a host on the SD bus: the card must respond and never panic.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../sim/card/tests/sd_script/mod.rs"]
mod sd_script;

cardiograph_fuzz::target!(|bytes: &[u8]| {
    sd_script::play(bytes);
});
