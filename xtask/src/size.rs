//! Flash and static RAM of the firmware, with limits.

use crate::packages::DEVICE_TARGET;
use crate::run::{output_of, target};
use std::path::PathBuf;
use std::process::Command;

/// A firmware, and the most that it may take.
struct Limits {
    name: &'static str,
    /// Path of the program below cargo's target folder.
    program: &'static [&'static str],
    flash_bytes_max: u64,
    ram_bytes_max: u64,
}

/// RAM is static memory; the stack comes on top.
const FIRMWARE: [Limits; 2] = [
    Limits {
        name: "lm3s6965: tests of driver and recorder",
        program: &["firmware", DEVICE_TARGET, "release", "cardiograph-lm3s6965"],
        flash_bytes_max: 256 << 10,
        ram_bytes_max: 40 << 10,
    },
    Limits {
        name: "rp2040: recorder",
        program: &[
            "rp2040",
            "thumbv6m-none-eabi",
            "release",
            "cardiograph-rp2040",
        ],
        flash_bytes_max: 240 << 10,
        ram_bytes_max: 144 << 10,
    },
];

/// Prints the sizes of the firmware that the other checks have built; returns their number.
pub fn all() -> Result<usize, String> {
    for firmware in &FIRMWARE {
        let path = firmware
            .program
            .iter()
            .fold(target(), |path: PathBuf, part| path.join(part));
        let text = output_of(Command::new("size").arg(&path))?;
        let (flash_bytes, ram_bytes) =
            sizes(&text).ok_or_else(|| format!("{}: size printed {text}", path.display()))?;
        let name = firmware.name;
        println!("{name}: {flash_bytes} B of flash, {ram_bytes} B of static RAM");
        for (what, bytes, bytes_max) in [
            ("flash", flash_bytes, firmware.flash_bytes_max),
            ("static RAM", ram_bytes, firmware.ram_bytes_max),
        ] {
            if bytes > bytes_max {
                return Err(format!(
                    "{name} takes {bytes} B of {what}; the limit is {bytes_max} B"
                ));
            }
        }
    }
    println!("ok: the firmware fits into flash and RAM");
    Ok(1)
}

/// Returns flash and RAM from the output of `size`: text and data, data and bss.
fn sizes(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text
        .lines()
        .nth(1)?
        .split_whitespace()
        .map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (text, data, bss) = (next()?, next()?, next()?);
    Some((text + data, data + bss))
}
