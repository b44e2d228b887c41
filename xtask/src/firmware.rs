//! Runs the firmware of `firmware/lm3s6965` in QEMU, and looks at what it left on the card.

mod image;
mod recording;

use crate::packages::{self, DEVICE_TARGET};
use crate::run::{capture, cargo, check, target};
use image::{BLOCK_BYTES, Image};
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = "firmware/lm3s6965/Cargo.toml";
const PROGRAM: &str = "cardiograph-lm3s6965";

/// An ordinary user's path does not look there.
const MKFS: &str = "/usr/sbin/mkfs.fat";
const FSCK: &str = "/usr/sbin/fsck.fat";

/// Longest run of QEMU, in s; it takes a few.
const QEMU_S_MAX: &str = "120";
/// Where the firmware writes, and least blocks: `firmware/lm3s6965/src/card.rs`.
const START: usize = 80 << 10;
const BLOCKS_MIN: u32 = 513;

/// Builds, runs and looks; returns how many tests passed.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_FIRMWARE)?;
    packages::add_device_target()?;
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    check(&mut of_firmware("clippy", &["--", "-Dwarnings"]))?;
    check(&mut of_firmware("build", &[]))?;
    let card = Image::make(&folder())?;
    let (succeeded, text) = capture(&mut qemu(card.path()))?;
    let passed = text.lines().filter(|line| line.starts_with("ok: ")).count();
    if !succeeded || passed == 0 {
        return Err(String::from("the firmware failed"));
    }
    let blocks = blocks_of_test(&text).ok_or("the firmware wrote too little")?;
    card.holds(START, &blocks)?;
    println!("ok: the card holds what was written");
    recording::is_complete(&card, &folder())?;
    println!("ok: another program reads what was recorded, and nothing else has changed");
    Ok(passed + 2)
}

/// What the firmware has written, by its own count.
fn blocks_of_test(text: &str) -> Option<Vec<[u8; BLOCK_BYTES]>> {
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("written: ")?.strip_suffix(" blocks"))?;
    let count = count.parse().ok().filter(|count| *count >= BLOCKS_MIN)?;
    Some((0..count).map(block_of_test).collect())
}

fn folder() -> PathBuf {
    target().join("firmware")
}

/// A command of cargo for the firmware; it has a workspace and a target of its own.
fn of_firmware(command: &str, end: &[&str]) -> Command {
    let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
    cargo.args(["--manifest-path", MANIFEST, "--target", DEVICE_TARGET]);
    cargo.arg("--target-dir").arg(folder()).args(end);
    cargo
}

/// An instruction takes 64 ns, whatever the computer: the same run every time. Sleep takes none of the
/// computer's.
fn qemu(card: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args([QEMU_S_MAX, "qemu-system-arm", "-M", "lm3s6965evb"]);
    command.args(["-display", "none", "-monitor", "none", "-serial", "none"]);
    command.args(["-semihosting-config", "enable=on,target=native"]);
    command.args(["-icount", "shift=6,sleep=off"]);
    let drive = format!("if=sd,format=raw,file={}", card.display());
    command.args(["-drive", &drive, "-kernel"]);
    command.arg(folder().join(DEVICE_TARGET).join("release").join(PROGRAM));
    command
}

/// The words of a block of the test are multiples of this, counted from the test's first.
fn block_of_test(index: u32) -> [u8; BLOCK_BYTES] {
    let words = BLOCK_BYTES / 4;
    std::array::from_fn(|i| {
        let word = index * words as u32 + (i / 4) as u32;
        word.wrapping_mul(0x9E37_79B1).to_le_bytes()[i % 4]
    })
}
