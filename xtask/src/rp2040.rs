//! Runs the firmware of `firmware/rp2040` on an emulated Raspberry Pi Pico with a simulated card, and judges the
//! recordings with other programs.

mod long;

pub use long::long;

use crate::firmware::image::{BLOCK_BYTES, CARD_BLOCKS, Image};
use crate::judge::{self, Recording};
use crate::packages;
use crate::run::{build_command, capture, cargo, check, root, target};
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
/// Ring of the firmware, in KiB.
const RING_KIB: u32 = 128;
/// Rate of the recording with stalls, in Hz: 400 kB/s, so that it takes less than a minute of the board's time.
const STALLS_RATE_HZ: u32 = 4000;
/// Number of stalls to record.
const STALLS: u64 = 3;
/// Default rate of the firmware, in Hz.
const RATE_HZ: u32 = 860;
/// Number of power cuts in CI.
const CUTS: usize = 5;
const CUTS_SEED: u64 = 1;
/// Durability window of the firmware, in us.
const WINDOW_US: f64 = 1e6;
/// Time limit of the emulator, in s; a run in CI takes about a minute.
const NODE_S_MAX: &str = "7200";

/// A board, its card and its firmware.
#[derive(Clone)]
struct Setup {
    folder: PathBuf,
    profile: &'static str,
    /// Seed of the aged card.
    seed: u32,
    card_blocks: usize,
    rate_hz: u32,
    ring_kib: u32,
}

/// Runs all tests; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    let setup = prepare()?;
    check(setup.cargo("clippy").args(["--", "-Dwarnings"]))?;
    setup.age_card()?;
    record_stalls(&Setup {
        rate_hz: STALLS_RATE_HZ,
        ..setup.clone()
    })?;
    let passed = cut_power(&setup, CUTS)?;
    setup.run(&["repairs"])?;
    judge::check_file_system(&setup.folder, "recorded.img")?;
    println!("ok: the board waits for a usable card, and goes on when a pulled card is back");
    Ok(passed + 2)
}

/// Installs and builds what every run needs.
fn prepare() -> Result<Setup, String> {
    packages::install(packages::FOR_RP2040)?;
    packages::add_target(TARGET)?;
    packages::add_target(WASM_TARGET)?;
    let folder = target().join("rp2040");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    packages::install_npm(&folder, "rp2040js", packages::RP2040JS_VERSION)?;
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    build_command()?;
    build_card(&folder)?;
    Ok(Setup {
        folder,
        profile: PROFILE,
        seed: 1,
        card_blocks: CARD_BLOCKS,
        rate_hz: RATE_HZ,
        ring_kib: RING_KIB,
    })
}

/// Records through stalls of an aged card and checks every sample. Returns the length of the files, in bytes, and the
/// number of samples.
fn record_stalls(setup: &Setup) -> Result<(u64, u32), String> {
    let result = setup.run(&["stalls", &STALLS.to_string()])?;
    let stalls = result["count"].as_u64().unwrap_or(0);
    if stalls < STALLS {
        return Err(format!("only {stalls} stalls of {STALLS}"));
    }
    let (mut bytes, mut samples, mut last_us) = (0, 0, 0.0);
    for file in result["files"].as_array().into_iter().flatten() {
        let file = file.as_str().unwrap_or_default();
        let recording = Recording::read(&setup.folder, "recorded.img", file, samples)?;
        recording.check_cadence(setup.rate_hz)?;
        bytes += recording.bytes;
        samples += recording.samples;
        last_us = recording.last_us;
    }
    let pressed_us = result["pressed_us"].as_f64().unwrap_or(f64::MAX);
    if last_us < pressed_us {
        return Err(String::from(
            "samples before the end of the recording are missing",
        ));
    }
    println!(
        "ok: {samples} samples through {stalls} stalls of up to {:.0} ms, none lost",
        result["longestMs"].as_f64().unwrap_or(0.0)
    );
    Ok((bytes, samples))
}

/// Cuts the power and checks the card after each restart; returns the number of cuts.
fn cut_power(setup: &Setup, wanted: usize) -> Result<usize, String> {
    let (count, seed) = (wanted.to_string(), CUTS_SEED.to_string());
    let result = setup.run(&["cuts", &count, &seed])?;
    let cuts = result["cuts"].as_array().cloned().unwrap_or_default();
    for (at, cut) in cuts.iter().enumerate() {
        let image = format!("cut-{}.img", at + 1);
        // A later start must not damage an earlier recording.
        for earlier in &cuts[..at] {
            check_cut(&setup.folder, &image, earlier)?;
        }
        let lost_ms = check_cut(&setup.folder, &image, cut)? / 1000.0;
        println!("ok: power cut {} lost the last {lost_ms:.0} ms", at + 1);
    }
    match cuts.len() == wanted {
        true => Ok(wanted),
        false => Err(format!("{} power cuts instead of {wanted}", cuts.len())),
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
    let file = cut["file"].as_str().unwrap_or_default();
    let recording = Recording::read(folder, image, file, 0)?;
    recording.check_cadence(RATE_HZ)?;
    let lost_us = cut_us - recording.last_us;
    match lost_us <= WINDOW_US + 1e6 / f64::from(RATE_HZ) {
        true => Ok(lost_us),
        false => Err(format!(
            "{image}: the power cut at {cut_us} us destroyed {lost_us} us of samples; only {WINDOW_US} us may be lost"
        )),
    }
}

impl Setup {
    /// Runs a task of the emulator on a new image and the aged card; returns its result.
    fn run(&self, task: &[&str]) -> Result<Value, String> {
        let folder = &self.folder;
        check(&mut self.cargo("build"))?;
        let program = folder.join(TARGET).join("release").join(PROGRAM);
        copy(&program, &folder.join("firmware.elf"))?;
        Image::of_size(folder, self.card_blocks)?;
        let mut node = Command::new("timeout");
        node.args([NODE_S_MAX, "node"]);
        node.arg(root().join("firmware/rp2040/emulator/run.mjs"));
        node.args([folder, Path::new(self.profile)]).args(task);
        let (succeeded, _) = capture(&mut node)?;
        if !succeeded {
            return Err(String::from(
                "the emulated board failed; see the output above",
            ));
        }
        let path = folder.join("result.json");
        let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| at(&error))?;
        serde_json::from_str(&text).map_err(|error| at(&error))
    }

    /// Ages a card natively.
    fn age_card(&self) -> Result<(), String> {
        let mut age = cargo(&["run", "--quiet", "--release", "--package"]);
        age.args(["cardiograph-sim-card", "--bin", "age", "--"]);
        age.args([self.profile, &self.capacity_bytes(), &self.seed.to_string()]);
        // Otherwise, the simulated card would be built twice.
        check(age.arg(self.state()))
    }

    fn capacity_bytes(&self) -> String {
        (self.card_blocks * BLOCK_BYTES).to_string()
    }

    /// Returns the path of the aged card's state.
    fn state(&self) -> PathBuf {
        self.folder.join("card.state")
    }

    /// Returns a cargo command for the firmware, which has its own workspace and target.
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
        cargo.args(["--manifest-path", MANIFEST, "--target", TARGET]);
        cargo.arg("--target-dir").arg(target().join("rp2040"));
        cargo.env("CARDIOGRAPH_RATE_HZ", self.rate_hz.to_string());
        cargo.env("CARDIOGRAPH_RING_KIB", self.ring_kib.to_string());
        cargo
    }
}

/// Builds the simulated card as WebAssembly.
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
    copy(&module, &folder.join("card.wasm"))
}

fn copy(from: &Path, to: &PathBuf) -> Result<(), String> {
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}
