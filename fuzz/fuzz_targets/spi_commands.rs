//! Arbitrary bytes as actions of a host on the SPI bus: the card must respond and never panic.
#![no_main]

#[path = "../../sim/card/tests/script/mod.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    script::play(bytes);
});
