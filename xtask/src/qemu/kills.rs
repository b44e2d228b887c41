//! Power cuts: QEMU is killed at random moments.

use super::RATE_HZ;
use super::board::{Board, Setup};
use crate::firmware::image::Image;
use crate::judge::{self, Recording};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Blocks of the card.
const CARD_BLOCKS: usize = 1 << 18;
/// Durability window of the firmware, in samples.
const WINDOW: u32 = RATE_HZ;
const SEED: u64 = 1;
/// Every fifth kill comes at most this time after the start, in ms: usually before the recording begins.
const START_MS: u64 = 3000;
/// The others come after at most this number of samples: up to 4 s.
const SAMPLES_MAX: u64 = 4 * RATE_HZ as u64;
/// Longest time between the last request for the number of samples and the kill, in ms.
const AFTER_MS: u64 = 300;
/// Frequent stalls, so that some kills come during one.
const STALLS: Setup = Setup {
    stall_ms: 100,
    stall_blocks: 64,
    ..Setup::PLAIN
};

/// A recording that a kill ended.
pub struct Killed {
    pub file: String,
    /// Number of samples on the card.
    pub samples: u32,
}

/// A run up to a kill.
struct Run {
    /// Name of the recording, if it had begun.
    file: Option<String>,
    /// Number of samples that the board had taken shortly before.
    taken: u32,
}

/// Kills boards that use the same card one after another, and judges the card after each next start. Returns the longest
/// time that was missing at the end of a recording, in ms.
pub fn kill(folder: &Path, count: usize) -> Result<f64, String> {
    let image = Image::of_size(folder, CARD_BLOCKS)?;
    let mut random = SEED;
    let mut all: Vec<Killed> = Vec::new();
    let mut lost_max = 0;
    for number in 1..=count {
        let run = run_and_kill(folder, &image, number, &mut random)?;
        let recovered = restart(folder, &image)?;
        judge::check_file_system(folder, "card.img")?;
        let taken = run.taken;
        let killed = match recovered {
            Some(killed) => killed,
            None if taken <= WINDOW => {
                println!(
                    "ok: kill {number} after {taken} samples, none of which had to be durable"
                );
                continue;
            }
            None => {
                return Err(format!(
                    "kill {number} after {taken} samples: none is on the card"
                ));
            }
        };
        let Killed { file, samples } = &killed;
        if run.file.as_ref() != Some(file) || samples + WINDOW < taken {
            return Err(format!(
                "kill {number} after {taken} samples in {:?}: {samples} in {file} are on the card",
                run.file
            ));
        }
        check(folder, &killed)?;
        println!("ok: kill {number} after {taken} samples, {samples} of which are on the card");
        lost_max = lost_max.max(taken.saturating_sub(*samples));
        all.push(killed);
    }
    // Later starts must not damage earlier recordings.
    for killed in &all {
        check(folder, killed)?;
    }
    match all.len() * 2 >= count {
        true => Ok(1000.0 * f64::from(lost_max) / f64::from(RATE_HZ)),
        false => Err(format!(
            "only {} of {count} kills ended a recording",
            all.len()
        )),
    }
}

/// Starts a board and kills it at a random moment: every second time during a download.
fn run_and_kill(
    folder: &Path,
    image: &Image,
    number: usize,
    random: &mut u64,
) -> Result<Run, String> {
    let mut board = Board::start(folder, image.path(), STALLS)?;
    let (file, taken) = match number % 5 {
        0 => {
            thread::sleep(Duration::from_millis(next(random) % START_MS));
            let mut lines = board.printed_so_far().iter();
            let file = lines.find_map(|line| line.strip_prefix("recording to "));
            (file.map(String::from), 0)
        }
        _ => {
            let file = board.wait_for("recording to ")?;
            let samples = (next(random) % SAMPLES_MAX) as u32;
            (Some(file), board.wait_for_samples(folder, samples)?)
        }
    };
    let curl = match &file {
        Some(file) if number.is_multiple_of(2) => Some(board.begin_download(file)?),
        _ => None,
    };
    thread::sleep(Duration::from_millis(next(random) % AFTER_MS));
    board.kill()?;
    if let Some(mut curl) = curl {
        curl.wait().map_err(|error| format!("curl: {error}"))?;
    }
    Ok(Run { file, taken })
}

/// Starts a board, which recovers the recording, and ends its own recording. Returns the recovered one.
pub fn restart(folder: &Path, image: &Image) -> Result<Option<Killed>, String> {
    let mut board = Board::start(folder, image.path(), Setup::PLAIN)?;
    board.wait_for("recording to ")?;
    board.stop(folder)?;
    let mut lines = board.printed.iter();
    let line = lines.find_map(|line| line.strip_prefix("recovered "));
    let killed = line.map(|line| {
        let (file, samples) = line.split_once(": ")?;
        Some(Killed {
            file: file.to_string(),
            samples: samples.strip_suffix(" samples")?.parse().ok()?,
        })
    });
    let killed = match killed {
        Some(None) => return Err(format!("the board printed {line:?}")),
        Some(killed) => killed,
        None => None,
    };
    board.kill()?;
    Ok(killed)
}

/// Checks every sample of a recording, and their number.
pub fn check(folder: &Path, killed: &Killed) -> Result<(), String> {
    let Killed { file, samples } = killed;
    let recording = Recording::read(folder, "card.img", file, 0)?;
    recording.check_cadence(RATE_HZ)?;
    match recording.samples == *samples {
        true => Ok(()),
        false => Err(format!(
            "{file} has {} samples; the board recovered {samples}",
            recording.samples
        )),
    }
}

/// Returns the next number of a linear congruential generator (constants by Knuth), without its low bits.
pub fn next(random: &mut u64) -> u64 {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}
