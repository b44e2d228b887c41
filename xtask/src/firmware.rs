//! Runs the firmware of `firmware/lm3s6965` in QEMU and checks the contents of the card afterwards.

pub mod image;
pub mod recording;

use crate::packages::{self, DEVICE_TARGET};
use crate::run::{capture, cargo, check, target};
use image::{BLOCK_BYTES, Image};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MANIFEST: &str = "firmware/lm3s6965/Cargo.toml";
const PROGRAM: &str = "cardiograph-lm3s6965";

/// Full paths, because `/usr/sbin` is not in the path of ordinary users.
const MKFS: &str = "/usr/sbin/mkfs.fat";
pub const FSCK: &str = "/usr/sbin/fsck.fat";

/// Time limit for QEMU, in s; a normal run takes a few seconds.
const QEMU_S_MAX: &str = "120";
/// First block and minimum number of blocks that the firmware writes: see `firmware/lm3s6965/src/card.rs`.
const START: usize = 80 << 10;
const BLOCKS_MIN: u32 = 513;

/// Builds and runs the firmware and checks the card; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_FIRMWARE)?;
    packages::add_device_target()?;
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    check(&mut cargo_firmware("clippy", &["--", "-Dwarnings"]))?;
    check(&mut cargo_firmware("build", &[]))?;
    let card = Image::create(&folder())?;
    let program = folder().join(DEVICE_TARGET).join("release").join(PROGRAM);
    let (succeeded, text) = capture(&mut qemu(card.path(), &program))?;
    let passed = text.lines().filter(|line| line.starts_with("ok: ")).count();
    if !succeeded || passed == 0 {
        return Err(String::from("a firmware test failed; see the output above"));
    }
    let blocks = blocks_of_test(&text).ok_or("the firmware wrote fewer blocks than expected")?;
    card.check_blocks(START, &blocks)?;
    println!("ok: the card holds the blocks written");
    recording::check_files(&card, &folder())?;
    println!("ok: another program reads the recording, and nothing else has changed");
    Ok(passed + 2)
}

/// Returns the blocks that the firmware has written, from the block count that it prints.
fn blocks_of_test(text: &str) -> Option<Vec<[u8; BLOCK_BYTES]>> {
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("written: ")?.strip_suffix(" blocks"))?;
    let count = count.parse().ok().filter(|count| *count >= BLOCKS_MIN)?;
    Some((0..count).map(block_of_test).collect())
}

fn folder() -> PathBuf {
    target().join("firmware")
}

/// Returns a cargo command for the firmware, which has its own workspace and target.
fn cargo_firmware(command: &str, end: &[&str]) -> Command {
    let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
    cargo.args(["--manifest-path", MANIFEST, "--target", DEVICE_TARGET]);
    cargo.arg("--target-dir").arg(folder()).args(end);
    cargo
}

/// Returns the command that runs QEMU. Every instruction takes 64 ns of virtual time, so every run is the
/// same on any host, and no host time passes while the firmware sleeps.
pub fn qemu(card: &Path, program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args([QEMU_S_MAX, "qemu-system-arm", "-M", "lm3s6965evb"]);
    command.args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
    command.args(["-semihosting-config", "enable=on,target=native"]);
    command.args(["-icount", "shift=6,sleep=off"]);
    let drive = format!("if=sd,format=raw,file={}", card.display());
    command.args(["-drive", &drive, "-kernel"]);
    command.arg(program).stdin(Stdio::null());
    command
}

/// Returns the contents of a block that the test writes: each word is its index over all blocks, multiplied
/// by a constant.
fn block_of_test(index: u32) -> [u8; BLOCK_BYTES] {
    let words = BLOCK_BYTES / 4;
    std::array::from_fn(|i| {
        let word = index * words as u32 + (i / 4) as u32;
        word.wrapping_mul(0x9E37_79B1).to_le_bytes()[i % 4]
    })
}
