//! In place of serial ports, on systems where they are not supported.

use std::fs::File;

/// Returns an error.
pub fn open(_: &str, _: u32) -> Result<File, String> {
    Err(String::from(
        "serial ports are supported on Linux only; save the text that the board prints, and run `cardiograph analyze` \
         on it",
    ))
}

/// Returns true: there is no port.
pub fn is_gone(_: &File) -> bool {
    true
}
