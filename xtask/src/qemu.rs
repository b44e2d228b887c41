//! Runs the firmware of `firmware/sifive_u` in QEMU, with a card and a network, and judges what it recorded and served.

mod bench;
mod board;
mod faults;
mod kills;
mod stalls;

use crate::firmware::image::Image;
use crate::packages;
use crate::run::{cargo, check, target};
use board::{Board, Setup};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const MANIFEST: &str = "firmware/sifive_u/Cargo.toml";
const PROGRAM: &str = "cardiograph-sifive-u";
const TARGET: &str = "riscv32imac-unknown-none-elf";
/// Rate of the firmware, in Hz.
const RATE_HZ: u32 = 860;
/// Number of kills in CI, and in the long run.
const KILLS: usize = 5;
const KILLS_LONG: usize = 50;

/// Runs all tests; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    let folder = prepare()?;
    check(cargo_firmware("clippy").args(["--", "-Dwarnings"]))?;
    let passed = faults::all(&folder)? + bench::all(&folder)?;
    kills::kill(&folder, KILLS)?;
    for case in &stalls::CASES {
        stalls::record(&folder, case, case.seconds)?;
    }
    Ok(passed + KILLS + stalls::CASES.len())
}

/// Runs the same tests for longer and saves a dated report.
pub fn long() -> Result<(), String> {
    let folder = prepare()?;
    faults::all(&folder)?;
    let mut text = String::from(stalls::TABLE);
    for case in &stalls::CASES {
        text.push_str(&stalls::record(&folder, case, stalls::SECONDS_LONG)?);
    }
    let lost_ms = kills::kill(&folder, KILLS_LONG)?;
    let _ = write!(
        text,
        "\n{KILLS_LONG} kills of QEMU at random moments: fsck.fat finds no error, earlier recordings are unchanged, and \
         at most {lost_ms:.0} ms of samples are missing at the end; the durability window is 1000 ms.\n"
    );
    crate::bench::save("network-board", &text)
}

/// Starts the board with an empty card; ends with it.
pub fn start() -> Result<(), String> {
    let folder = build()?;
    // Tests replace the card in the other folder.
    let own = folder.join("started");
    fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    let image = Image::create(&own)?;
    println!("card: {}", image.path().display());
    let mut board = Board::start(&folder, image.path(), Setup::PLAIN)?;
    println!("http://127.0.0.1:{}", board.port());
    board.print_until_end()
}

/// Installs and builds what every test needs; returns the folder for its files.
fn prepare() -> Result<PathBuf, String> {
    let folder = build()?;
    let tool = ["build", "--quiet", "--release", "--package", "cardiograph"];
    check(&mut cargo(&tool))?;
    Ok(folder)
}

/// Builds the firmware; returns the folder of its target.
fn build() -> Result<PathBuf, String> {
    packages::install(packages::FOR_QEMU)?;
    packages::add_target(TARGET)?;
    let folder = target().join("qemu");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    check(&mut cargo_firmware("build"))?;
    Ok(folder)
}

/// Returns a cargo command for the firmware, which has its own workspace and target.
fn cargo_firmware(command: &str) -> std::process::Command {
    let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
    cargo.args(["--manifest-path", MANIFEST, "--target", TARGET]);
    cargo.arg("--target-dir").arg(target().join("qemu"));
    cargo
}
