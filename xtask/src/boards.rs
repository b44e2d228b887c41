//! Builds the firmware of `firmware/esp32`, which no emulator runs here, and prints its flash and static RAM.

use crate::packages;
use crate::run::{cargo, check, output_of, target};
use std::process::Command;

const MANIFEST: &str = "firmware/esp32/Cargo.toml";
const PROGRAM: &str = "cardiograph-esp32";

/// A chip, with its feature and its target.
struct Chip {
    feature: &'static str,
    target: &'static str,
}

const CHIPS: [Chip; 2] = [
    Chip {
        feature: "esp32c3",
        target: "riscv32imc-unknown-none-elf",
    },
    Chip {
        feature: "esp32c6",
        target: "riscv32imac-unknown-none-elf",
    },
];

const FLASH_BYTES_MAX: u64 = 1408 << 10;
const RAM_BYTES_MAX: u64 = 288 << 10;
/// The recorder, the server and the networks run on this stack.
const STACK_BYTES_MIN: u64 = 48 << 10;

/// Sections that stay in flash.
const IN_FLASH: [&str; 5] = [
    ".flash.appdesc",
    ".rodata_merge",
    ".rodata",
    ".rodata.wifi",
    ".text",
];
/// Sections that the boot loader copies from flash to RAM.
const COPIED: [&str; 5] = [".trap", ".rwtext", ".rwtext.wifi", ".data", ".data.wifi"];
const IN_RAM: [&str; 2] = [".bss", ".noinit"];
/// RAM between the static memory and that of the boot loader.
const STACK: &str = ".stack";

/// Checks and builds the firmware for every chip; returns the number of chips.
pub fn all() -> Result<usize, String> {
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    for chip in &CHIPS {
        packages::add_target(chip.target)?;
        check(chip.cargo("clippy").args(["--", "-Dwarnings"]))?;
        chip.build()?;
    }
    Ok(CHIPS.len())
}

/// Builds the firmware for one of the chips.
pub fn slice(turn: u64) -> Result<usize, String> {
    let chip = &CHIPS[turn as usize % CHIPS.len()];
    packages::add_target(chip.target)?;
    chip.build()?;
    Ok(1)
}

/// Checks the firmware for the first chip without building it: `network` builds for the same family of processors.
pub fn one() -> Result<usize, String> {
    packages::add_target(CHIPS[0].target)?;
    check(CHIPS[0].cargo("clippy").args(["--", "-Dwarnings"]))?;
    Ok(1)
}

impl Chip {
    fn build(&self) -> Result<(), String> {
        check(&mut self.cargo("build"))?;
        let folder = target().join("esp32").join(self.target);
        let program = folder.join("release").join(PROGRAM);
        let text = output_of(Command::new("size").arg("-A").arg(&program))?;
        let sizes = Sizes::of(&text)
            .ok_or_else(|| format!("{}: unexpected sections\n{text}", program.display()))?;
        println!(
            "{}: {} B of flash, {} B of static RAM, {} B left for the stack",
            self.feature, sizes.flash_bytes, sizes.ram_bytes, sizes.stack_bytes
        );
        sizes
            .check()
            .map_err(|error| format!("{}: {error}", self.feature))?;
        println!("ok: the firmware for {} is built", self.feature);
        Ok(())
    }

    /// Returns a cargo command for the firmware, which has its own workspace and target.
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
        cargo.args(["--manifest-path", MANIFEST, "--target", self.target]);
        cargo.args(["--features", self.feature, "--target-dir"]);
        cargo.arg(target().join("esp32"));
        cargo
    }
}

struct Sizes {
    flash_bytes: u64,
    ram_bytes: u64,
    stack_bytes: u64,
}

impl Sizes {
    /// Adds up the sections that `size -A` lists, one per line with its length. `None` if an essential one is missing.
    fn of(text: &str) -> Option<Sizes> {
        let sections: Vec<(&str, u64)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                Some((words.next()?, words.next()?.parse().ok()?))
            })
            .collect();
        let sum = |names: &[&str]| {
            let found = sections.iter().filter(|(name, _)| names.contains(name));
            found.map(|(_, bytes)| bytes).sum::<u64>()
        };
        let is_known = |name| sections.iter().any(|(found, _)| *found == name);
        let is_complete = [".text", ".rodata", ".data", ".bss", STACK]
            .into_iter()
            .all(is_known);
        is_complete.then(|| Sizes {
            flash_bytes: sum(&IN_FLASH) + sum(&COPIED),
            ram_bytes: sum(&COPIED) + sum(&IN_RAM),
            stack_bytes: sum(&[STACK]),
        })
    }

    fn check(&self) -> Result<(), String> {
        for (what, bytes, bytes_max) in [
            ("flash", self.flash_bytes, FLASH_BYTES_MAX),
            ("static RAM", self.ram_bytes, RAM_BYTES_MAX),
        ] {
            if bytes > bytes_max {
                return Err(format!(
                    "the firmware takes {bytes} B of {what}; the limit is {bytes_max} B"
                ));
            }
        }
        match self.stack_bytes >= STACK_BYTES_MIN {
            true => Ok(()),
            false => Err(format!(
                "{} B are left for the stack; it needs {STACK_BYTES_MIN} B",
                self.stack_bytes
            )),
        }
    }
}
