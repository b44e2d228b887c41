//! Any bytes as a host on the SD bus: the card answers, and never panics.
#![no_main]

#[path = "../../sim/card/tests/sd_script/mod.rs"]
mod sd_script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sd_script::play(bytes);
});
