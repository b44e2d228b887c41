//! Arbitrary bytes as actions of a host on the SPI bus: the card must respond and never panic.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../sim/card/tests/script/mod.rs"]
mod script;

cardiograph_fuzz::target!(|bytes: &[u8]| {
    script::play(bytes);
});
