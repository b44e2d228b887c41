//! Judges the card of an emulated board with fsck.fat, mtools and `cardiograph`.

use crate::firmware::FSCK;
use crate::firmware::image::partition;
use crate::firmware::recording::{OTHERS, others};
use crate::run::{output_of, target};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of channels of a sample, as in `firmware/rp2040/src/sampling.rs`.
const CHANNELS: usize = 22;
/// Part of the result of `cardiograph export`.
const NO_LOSS: &str = "Lost samples, according to the gaps in the recording: 0.";

/// A recording in which every sample has been checked.
pub struct Recording {
    /// Number of samples.
    pub samples: u32,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Time of the last sample, in us of the board's clock.
    pub last_us: f64,
    /// Sample timing, by `cardiograph analyze`.
    cadence: Value,
}

impl Recording {
    /// Checks the file system of an image, and every sample of a recording in it: consecutive numbers from `first`,
    /// times that increase, and values.
    pub fn read(folder: &Path, image: &str, file: &str, first: u32) -> Result<Recording, String> {
        let fat = check_file_system(folder, image)?;
        let (binary, csv) = (folder.join("recording.bin"), folder.join("recording.csv"));
        copy_out(&fat, file, &binary)?;
        let mut export = cardiograph("export", &binary);
        let text = output_of(export.arg("--csv").arg(&csv).arg("--force"))?;
        if !text.contains(NO_LOSS) {
            return Err(format!("{image}: {file} has gaps: {text}"));
        }
        let text = String::from_utf8_lossy(&read(&csv)?).into_owned();
        let (samples, last_us) =
            check_rows(&text, first).map_err(|error| format!("{image}: {file}: {error}"))?;
        let figures = folder.join("figures.json");
        let mut analyze = cardiograph("analyze", &csv);
        output_of(analyze.arg("--json").arg(&figures).arg("--force"))?;
        let result: Value = serde_json::from_slice(&read(&figures)?)
            .map_err(|error| format!("{}: {error}", figures.display()))?;
        Ok(Recording {
            samples,
            bytes: read(&binary)?.len() as u64,
            last_us,
            cadence: result["results"][0]["cadence"].clone(),
        })
    }

    /// Checks that `cardiograph analyze` found the same samples, none missing or late, at the given rate.
    pub fn check_cadence(&self, rate_hz: u32) -> Result<(), String> {
        let found = |name: &str| self.cadence[name].as_f64().unwrap_or(f64::NAN);
        let interval_us = 1e6 / f64::from(rate_hz);
        let is_right = found("samples") == f64::from(self.samples)
            && found("missing_samples") == 0.0
            && found("late_samples") == 0.0
            && (found("mean_interval_us") - interval_us).abs() < interval_us / 100.0;
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "expected {} samples at {rate_hz} Hz, but analyze found {}",
                self.samples, self.cadence
            )),
        }
    }
}

/// Checks the file system of an image, and the file in it that does not belong to the recorder. Returns the path of the
/// file system.
pub fn check_file_system(folder: &Path, image: &str) -> Result<PathBuf, String> {
    let fat = folder.join("recorded-fat.img");
    fs::write(&fat, partition(&folder.join(image))?)
        .map_err(|error| format!("{}: {error}", fat.display()))?;
    output_of(Command::new(FSCK).arg("-n").arg(&fat))
        .map_err(|error| format!("{image}: {error}"))?;
    let other = folder.join(OTHERS);
    copy_out(&fat, OTHERS, &other)?;
    match read(&other)? == others() {
        true => Ok(fat),
        false => Err(format!("{image}: {OTHERS} has changed")),
    }
}

/// Checks all rows of an exported recording; returns the number of samples and the time of the last one, in us.
fn check_rows(text: &str, first: u32) -> Result<(u32, f64), String> {
    let (mut samples, mut last_us) = (0, -1.0);
    // The first line has the names of the columns; lines that begin with a comma are notes.
    for line in text.lines().skip(1).filter(|line| !line.starts_with(',')) {
        let time_us = checked_time(line, first + samples).filter(|time_us| *time_us > last_us);
        last_us =
            time_us.ok_or_else(|| format!("expected sample {}, found {line}", first + samples))?;
        samples += 1;
    }
    Ok((samples, last_us))
}

/// Returns the time of a sample, in us, if its number is `index` and its values are right.
fn checked_time(line: &str, index: u32) -> Option<f64> {
    let mut fields = line.split(',');
    let time_us = fields.next()?.parse().ok()?;
    let mut value = index.wrapping_mul(0x9E37_79B1);
    let mut expected = vec![i64::from(index)];
    for _ in 0..CHANNELS {
        expected.push(i64::from(value as i32));
        value = value.rotate_left(7).wrapping_add(index);
    }
    let found = fields.map(|field| field.parse().ok());
    found.eq(expected.into_iter().map(Some)).then_some(time_us)
}

fn copy_out(fat: &Path, file: &str, to: &Path) -> Result<(), String> {
    let mut copy = Command::new("mcopy");
    copy.args(["-o", "-i"]).arg(fat);
    output_of(copy.arg(format!("::{file}")).arg(to)).map(drop)
}

fn cardiograph(command: &str, file: &Path) -> Command {
    let mut cardiograph = Command::new(target().join("release/cardiograph"));
    cardiograph.arg(command).arg(file);
    cardiograph
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
