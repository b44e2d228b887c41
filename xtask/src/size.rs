//! Flash and static RAM of the firmware, with limits.

use crate::packages::DEVICE_TARGET;
use crate::qemu::Firmware;
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

/// RAM is static memory; the stack comes on top, unless the linker sets it aside.
const FIRMWARE: [Limits; 3] = [
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
    Limits {
        name: "sifive_u: recorder, server and network",
        program: &[
            "qemu",
            "riscv32imac-unknown-none-elf",
            "release",
            "cardiograph-sifive-u",
        ],
        flash_bytes_max: 512 << 10,
        // With the stack, for which the linker sets aside the rest.
        ram_bytes_max: 64 << 10,
    },
];

/// Static variables of `sifive_u`, as parts of their names, and their use.
type Variables = [(&'static str, &'static str)];
const COMMON: &Variables = &[
    ("take::RING", "ring buffer"),
    ("take::BLOCKS", "read buffer"),
    ("take::DESK", "requests to the recorder, and its gaps"),
    ("recorder::RECORDER", "recorder, file system and driver"),
    ("log::POOL", "task of the recorder"),
];
const OF_NETWORK: &Variables = &[
    ("start::MEMORY", "connections: sockets and buffers"),
    ("serve::POOL", "tasks of the server"),
    ("ethernet::DMA", "frames of the Ethernet MAC"),
    ("sampling::NEWEST", "newest samples, for live clients"),
];
const OF_PORT: &Variables = &[("obey::POOL", "task of the serial port")];

/// A build of `sifive_u`, whose static variables and stack have to fit into RAM.
struct Build {
    name: &'static str,
    firmware: Firmware,
    /// Static variables that only this build has.
    variables: &'static Variables,
}

const BUILDS: [Build; 2] = [
    Build {
        name: "sifive_u",
        firmware: Firmware::Network,
        variables: OF_NETWORK,
    },
    Build {
        name: "sifive_u without a network",
        firmware: Firmware::Port,
        variables: OF_PORT,
    },
];
/// RAM of `sifive_u`, for static variables and stack.
const MEMORY_BYTES: u64 = 64 << 10;
/// Stack that has to stay free: a reserve for what the tests did not reach.
const STACK_RESERVE_BYTES: u64 = 512;

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
    BUILDS.iter().try_for_each(check_memory)?;
    println!("ok: the firmware fits into flash and RAM");
    Ok(1)
}

/// Prints the uses of the RAM of a build, and checks that the highest level of the stack during the tests fits.
fn check_memory(build: &Build) -> Result<(), String> {
    let folder = target().join("qemu");
    let program = build.firmware.program(&folder);
    let symbols = output_of(Command::new("nm").args(["-S", "-C"]).arg(program))?;
    let memory = folder.join(build.firmware.memory_file());
    let memory = std::fs::read_to_string(&memory)
        .map_err(|error| format!("{}: {error}; run cargo xtask network", memory.display()))?;
    let number_before = |unit: &str| {
        let before = memory.split(unit).next()?;
        before.rsplit([' ', '\n']).next()?.parse::<u64>().ok()
    };
    let numbers = (number_before(" B static"), number_before(" B maximum"));
    let (Some(static_bytes), Some(stack_bytes)) = numbers else {
        return Err(format!("the board printed {memory}"));
    };
    println!("{}: RAM", build.name);
    let mut named_bytes = 0;
    for (name, usage) in COMMON.iter().chain(build.variables) {
        let bytes = size_of_symbol(&symbols, name).ok_or_else(|| format!("no symbol {name}"))?;
        println!("  {usage}: {bytes} B");
        named_bytes += bytes;
    }
    println!("  the rest: {} B", static_bytes - named_bytes);
    println!("  highest level of the stack: {stack_bytes} B");
    let used_bytes = static_bytes + stack_bytes;
    println!("  unused: {} B", MEMORY_BYTES.saturating_sub(used_bytes));
    match used_bytes + STACK_RESERVE_BYTES <= MEMORY_BYTES {
        true => Ok(()),
        false => Err(format!(
            "{}: static memory and stack take {static_bytes} B and {stack_bytes} B; {STACK_RESERVE_BYTES} B of \
             {MEMORY_BYTES} B have to stay free",
            build.name
        )),
    }
}

/// Returns the size of a static variable from the output of `nm -S -C`.
fn size_of_symbol(symbols: &str, name: &str) -> Option<u64> {
    let line = symbols.lines().find(|line| line.ends_with(name))?;
    u64::from_str_radix(line.split(' ').nth(1)?, 16).ok()
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
