//! Tests of the recorder that take too long for `cargo xtask test`: searches of the planner's states, and power cuts at
//! every write to every volume.

use crate::run::{cargo, check};

/// Runs the ignored tests, optimised, with every check of the compiler in place.
pub fn all() -> Result<(), String> {
    let mut test = cargo(&["test", "--release", "--package", "cardiograph-recorder"]);
    test.args(["--lib", "--test", "all", "--", "--ignored", "--nocapture"]);
    test.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    test.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    check(&mut test)
}
