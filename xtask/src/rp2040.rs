//! Runs the firmware of `firmware/rp2040` on an emulated Raspberry Pi Pico with a simulated card, and judges the
//! recordings with other programs.

mod judge;

use crate::firmware::image::{BLOCK_BYTES, CARD_BLOCKS, Image};
use crate::packages;
use crate::run::{capture, cargo, check, root, target};
use judge::Recording;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = "firmware/rp2040/Cargo.toml";
const PROGRAM: &str = "cardiograph-rp2040";
const TARGET: &str = "thumbv6m-none-eabi";
const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// A card whose stalls of about 110 ms are 9 MB apart.
const PROFILE: &str = "sandisk-edge-8g";
/// Rate of the recording with stalls, in Hz: 400 kB/s, so that it takes less than a minute of the board's time.
const STALLS_RATE_HZ: u32 = 4000;
/// Number of stalls to record.
const STALLS: u64 = 3;
/// Default rate of the firmware, in Hz.
const RATE_HZ: u32 = 860;
const CUTS: usize = 5;
const CUTS_SEED: u64 = 1;
/// Durability window of the firmware, in us.
const WINDOW_US: f64 = 1e6;
/// Time limit of the emulator, in s; a normal run takes about a minute.
const NODE_S_MAX: &str = "600";

/// Runs all tests; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_RP2040)?;
    packages::add_target(TARGET)?;
    packages::add_target(WASM_TARGET)?;
    let folder = target().join("rp2040");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    packages::install_npm(&folder, "rp2040js", packages::RP2040JS_VERSION)?;
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    check(cargo_firmware("clippy", RATE_HZ).args(["--", "-Dwarnings"]))?;
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "cardiograph",
    ]))?;
    build_card(&folder)?;
    record_stalls(&folder)?;
    let passed = cut_power(&folder)?;
    run(&folder, RATE_HZ, &["repairs"])?;
    judge::check_file_system(&folder, "recorded.img")?;
    println!("ok: the board waits for a usable card, and goes on when a pulled card is back");
    Ok(passed + 2)
}

/// Records through stalls of an aged card and checks every sample.
fn record_stalls(folder: &Path) -> Result<(), String> {
    let result = run(folder, STALLS_RATE_HZ, &["stalls", &STALLS.to_string()])?;
    let stalls = result["count"].as_u64().unwrap_or(0);
    if stalls < STALLS {
        return Err(format!("only {stalls} stalls of {STALLS}"));
    }
    let recording = Recording::read(folder, "recorded.img", "REC00000/REC00001.BIN")?;
    recording.check_cadence(STALLS_RATE_HZ)?;
    let pressed_us = result["pressed_us"].as_f64().unwrap_or(f64::MAX);
    if recording.last_us < pressed_us {
        return Err(String::from(
            "samples before the end of the recording are missing",
        ));
    }
    println!(
        "ok: {} samples through {stalls} stalls of up to {:.0} ms, none lost",
        recording.samples,
        result["longestMs"].as_f64().unwrap_or(0.0)
    );
    Ok(())
}

/// Cuts the power and checks the card after each restart; returns the number of cuts.
fn cut_power(folder: &Path) -> Result<usize, String> {
    let (count, seed) = (CUTS.to_string(), CUTS_SEED.to_string());
    let result = run(folder, RATE_HZ, &["cuts", &count, &seed])?;
    let cuts = result["cuts"].as_array().cloned().unwrap_or_default();
    for (at, cut) in cuts.iter().enumerate() {
        let image = format!("cut-{}.img", at + 1);
        // A later start must not damage an earlier recording.
        for earlier in &cuts[..at] {
            check_cut(folder, &image, earlier)?;
        }
        let lost_ms = check_cut(folder, &image, cut)? / 1000.0;
        println!("ok: power cut {} lost the last {lost_ms:.0} ms", at + 1);
    }
    match cuts.len() {
        CUTS => Ok(CUTS),
        other => Err(format!("{other} power cuts instead of {CUTS}")),
    }
}

/// Checks that a power cut lost nothing older than the durability window; returns the time that is missing, in us.
fn check_cut(folder: &Path, image: &str, cut: &Value) -> Result<f64, String> {
    let began_us = cut["began_us"].as_f64().unwrap_or(0.0);
    let cut_us = cut["cut_us"].as_f64().unwrap_or(f64::MAX);
    // Nothing of a shorter recording had to be durable, and the next one may have its name.
    if cut_us - began_us < WINDOW_US {
        return judge::check_file_system(folder, image).map(|_| cut_us - began_us);
    }
    let recording = Recording::read(folder, image, cut["file"].as_str().unwrap_or_default())?;
    recording.check_cadence(RATE_HZ)?;
    let lost_us = cut_us - recording.last_us;
    match lost_us <= WINDOW_US + 1e6 / f64::from(RATE_HZ) {
        true => Ok(lost_us),
        false => Err(format!(
            "{image}: the power cut at {cut_us} us destroyed {lost_us} us of samples; only {WINDOW_US} us may be lost"
        )),
    }
}

/// Runs a task of the emulator on a new image and the aged card; returns its result.
fn run(folder: &Path, rate_hz: u32, task: &[&str]) -> Result<Value, String> {
    check(&mut cargo_firmware("build", rate_hz))?;
    let program = folder.join(TARGET).join("release").join(PROGRAM);
    copy(&program, &folder.join("firmware.elf"))?;
    Image::create(folder)?;
    let mut node = Command::new("timeout");
    node.args([NODE_S_MAX, "node"]);
    node.arg(root().join("firmware/rp2040/emulator/run.mjs"));
    node.args([folder, Path::new(PROFILE)]).args(task);
    let (succeeded, _) = capture(&mut node)?;
    if !succeeded {
        return Err(String::from(
            "the emulated board failed; see the output above",
        ));
    }
    let path = folder.join("result.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Builds the simulated card as WebAssembly, and ages one natively.
fn build_card(folder: &Path) -> Result<(), String> {
    let mut build = cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "cardiograph-wasm",
    ]);
    check(build.args(["--target", WASM_TARGET]))?;
    let module = target()
        .join(WASM_TARGET)
        .join("release/cardiograph_wasm.wasm");
    copy(&module, &folder.join("card.wasm"))?;
    let mut age = cargo(&["run", "--quiet", "--release", "--package"]);
    age.args(["cardiograph-sim-card", "--example", "age", "--", PROFILE]);
    age.args([(CARD_BLOCKS * BLOCK_BYTES).to_string(), String::from("1")]);
    check(age.arg(folder.join("card.state")))
}

/// Returns a cargo command for the firmware, which has its own workspace and target.
fn cargo_firmware(command: &str, rate_hz: u32) -> Command {
    let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
    cargo.args(["--manifest-path", MANIFEST, "--target", TARGET]);
    cargo.arg("--target-dir").arg(target().join("rp2040"));
    cargo.env("CARDIOGRAPH_RATE_HZ", rate_hz.to_string());
    cargo
}

fn copy(from: &Path, to: &PathBuf) -> Result<(), String> {
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}
