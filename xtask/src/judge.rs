//! Judges the card of an emulated board with fsck.fat, mtools and `cardiograph`.

use crate::firmware::FSCK;
use crate::firmware::image::partition;
use crate::firmware::recording::{OTHERS, others};
use crate::run::{output_of, target};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of channels of a sample, as in `firmware/logger/src/samples.rs`.
const CHANNELS: usize = 22;
/// Part of the result of `cardiograph export`, before the number of lost samples.
const LOST: &str = "Lost samples, according to the gaps in the recording: ";
/// Beginning of the note about a gap, after the commas.
const GAP: &str = "#gap ";

/// A recording in which every sample has been checked.
pub struct Recording {
    /// Number of the first sample, which may be missing.
    pub first: u32,
    /// Number of samples.
    pub samples: u32,
    /// Number of samples that are missing, each in a gap that says so.
    pub lost: u32,
    /// Number of gaps.
    pub gaps: u32,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Time of the last sample, in us of the board's clock.
    pub last_us: f64,
    /// Sample timing, by `cardiograph analyze`.
    cadence: Value,
}

impl Recording {
    /// Checks a recording in which no sample is missing.
    pub fn read(folder: &Path, image: &str, file: &str, first: u32) -> Result<Recording, String> {
        let recording = Recording::read_with_gaps(folder, image, file, Some(first))?;
        match recording.lost {
            0 => Ok(recording),
            lost => Err(format!("{image}: {file} lost {lost} samples")),
        }
    }

    /// Checks a recording that continues another one: it begins with any number.
    pub fn read_from_any(folder: &Path, image: &str, file: &str) -> Result<Recording, String> {
        Recording::read_with_gaps(folder, image, file, None)
    }

    /// Checks the file system of an image, and every sample of a recording in it: consecutive numbers from `first`
    /// if it is known, times that increase, and values. Where numbers are missing, a gap must state exactly these.
    pub fn read_with_gaps(
        folder: &Path,
        image: &str,
        file: &str,
        first: Option<u32>,
    ) -> Result<Recording, String> {
        let fat = check_file_system(folder, image)?;
        let (binary, csv) = (folder.join("recording.bin"), folder.join("recording.csv"));
        copy_out(&fat, file, &binary)?;
        let mut export = cardiograph("export", &binary);
        let text = output_of(export.arg("--csv").arg(&csv).arg("--force"))?;
        let rows = String::from_utf8_lossy(&read(&csv)?).into_owned();
        let rows =
            Rows::check(&rows, first).map_err(|error| format!("{image}: {file}: {error}"))?;
        if !text.contains(&format!("{LOST}{}.", rows.lost)) {
            return Err(format!(
                "{image}: {file}: {} samples are missing, but export says: {text}",
                rows.lost
            ));
        }
        let figures = folder.join("figures.json");
        let mut analyze = cardiograph("analyze", &csv);
        output_of(analyze.arg("--json").arg(&figures).arg("--force"))?;
        let result: Value = serde_json::from_slice(&read(&figures)?)
            .map_err(|error| format!("{}: {error}", figures.display()))?;
        Ok(Recording {
            first: rows.first,
            samples: rows.samples,
            lost: rows.lost,
            gaps: rows.gaps,
            bytes: read(&binary)?.len() as u64,
            last_us: rows.last_us,
            cadence: result["results"][0]["cadence"].clone(),
        })
    }

    /// Checks that `cardiograph analyze` found the same samples, none late, and the same number missing, at the given rate.
    /// After long gaps it may state a range, which has to contain this number; without a loss, it has to state 0.
    pub fn check_cadence(&self, rate_hz: u32) -> Result<(), String> {
        let found = |name: &str| self.cadence[name].as_f64().unwrap_or(f64::NAN);
        let interval_us = 1e6 / f64::from(rate_hz);
        let is_right = found("samples") == f64::from(self.samples)
            && found("missing_samples_min") <= f64::from(self.lost)
            && found("missing_samples_max") >= f64::from(self.lost)
            && self.cadence["missing_samples"]
                .as_f64()
                .map_or(self.lost > 0, |missing| missing == f64::from(self.lost))
            // The first sample after a gap is late.
            && found("late_samples") <= f64::from(self.gaps)
            && (found("median_interval_us") - interval_us).abs() < interval_us / 100.0;
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

/// Rows of an exported recording.
struct Rows {
    first: u32,
    samples: u32,
    lost: u32,
    gaps: u32,
    last_us: f64,
}

impl Rows {
    /// Checks all rows, the first of which has the number `first`, or else that of the note about the file.
    fn check(text: &str, first: Option<u32>) -> Result<Rows, String> {
        let first = first.or_else(|| first_of(text));
        let first = first.ok_or("there is no note about the file")?;
        let mut rows = Rows {
            first,
            samples: 0,
            lost: 0,
            gaps: 0,
            last_us: -1.0,
        };
        // The first line has the names of the columns.
        for line in text.lines().skip(1) {
            let next = first + rows.samples + rows.lost;
            if let Some(note) = line.strip_prefix(',') {
                if let Some(gap) = note.trim_start_matches(',').strip_prefix(GAP) {
                    let count = gap_at(gap, next);
                    rows.lost += count.ok_or_else(|| format!("at sample {next}: {gap}"))?;
                    rows.gaps += 1;
                }
                continue;
            }
            let time_us = checked_time(line, next).filter(|time_us| *time_us > rows.last_us);
            rows.last_us =
                time_us.ok_or_else(|| format!("expected sample {next}, found {line}"))?;
            rows.samples += 1;
        }
        Ok(rows)
    }
}

/// Returns the number of the first sample, according to the note about the file.
fn first_of(text: &str) -> Option<u32> {
    let note = text.lines().find(|line| line.contains("#file "))?;
    let first = note
        .split(' ')
        .find_map(|field| field.strip_prefix("first="))?;
    first.parse().ok()
}

/// Returns the number of samples in a gap, if it begins at this number.
fn gap_at(gap: &str, first: u32) -> Option<u32> {
    let mut fields = gap.split(' ');
    let mut number = |name| fields.next()?.strip_prefix(name)?.parse::<u32>().ok();
    (number("first=")? == first).then_some(())?;
    number("count=")
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
