//! Arbitrary bytes as actions of a host on the SD bus: the card must respond and never panic.
#![no_main]

#[path = "../../sim/card/tests/sd_script/mod.rs"]
mod sd_script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sd_script::play(bytes);
});
