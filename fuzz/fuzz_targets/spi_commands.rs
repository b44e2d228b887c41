//! Any bytes and chip select as a host on the wire: the card answers, and never panics.
#![no_main]

#[path = "../../sim/card/tests/script/mod.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    script::play(bytes);
});
