//! Recordings through stalls of the card, while files are downloaded.

use super::RATE_HZ;
use super::board::{Board, Setup};
use crate::firmware::image::Image;
use crate::judge::Recording;
use std::fs;
use std::path::Path;

/// Blocks between stalls: 1.5 s of samples.
const BLOCKS: u32 = 270;
/// Length of a recording in the long run, in s of the board.
pub const SECONDS_LONG: u32 = 120;

/// Time after which a client gives up, in s.
const DOWNLOAD_S_MAX: u64 = 120;

/// Stalls of one length, and the samples that may be lost.
pub struct Case {
    ms: u32,
    loses: bool,
    /// Length of the recording in CI, in s of the board.
    pub seconds: u32,
}

pub const CASES: [Case; 3] = [
    Case {
        ms: 100,
        loses: false,
        seconds: 20,
    },
    Case {
        ms: 250,
        loses: false,
        seconds: 10,
    },
    Case {
        ms: 600,
        loses: true,
        seconds: 10,
    },
];

/// Head of the table of results.
pub const TABLE: &str = "The board's card is busy for the time of a stall after every 270 blocks; its stall budget is the \
same. Downloads of the first 300 kB of the file that is being recorded follow one another; with stalls that the ring \
buffer cannot absorb, all are refused. Rates are those by the computer's clock.\n\n\
| stall, ms | samples | lost | gaps | ring peak, B | downloads | complete | refused with 503 | bytes | kB/s |\n\
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

/// Downloads during a recording.
#[derive(Default)]
struct Downloads {
    /// Those that have begun.
    all: u32,
    complete: u32,
    refused: u32,
    bytes: u64,
    seconds: f64,
}

/// Records through stalls and checks every sample and every download; returns a row of the table.
pub fn record(folder: &Path, case: &Case, seconds: u32) -> Result<String, String> {
    let image = Image::create(folder)?;
    let setup = Setup {
        stall_ms: case.ms,
        stall_blocks: BLOCKS,
        ..Setup::PLAIN
    };
    let mut board = Board::start(folder, image.path(), setup)?;
    let file = board.wait_for("recording to ")?;
    let downloads = folder.join("downloads");
    let _ = fs::remove_dir_all(&downloads);
    fs::create_dir_all(&downloads).map_err(|error| error.to_string())?;
    let mut sum = Downloads::default();
    while board.samples(folder)? < seconds * RATE_HZ {
        let to = downloads.join(format!("{}.BIN", sum.all));
        let response = board.download(&format!("/{file}"), &to, DOWNLOAD_S_MAX)?;
        match response.status {
            200 | 206 | 0 => {
                sum.all += 1;
                sum.complete += u32::from(response.is_complete);
                sum.bytes += response.bytes;
                sum.seconds += response.seconds;
            }
            503 => sum.refused += 1,
            // Nothing is durable yet.
            416 => (),
            status => return Err(format!("/{file}: status {status}")),
        }
    }
    let summary = board.stop(folder)?;
    let memory = board.wait_for("RAM: ")?;
    board.kill()?;
    setup.firmware.note_memory(folder, &memory)?;

    let recording = Recording::read_with_gaps(folder, "card.img", &file, Some(0))?;
    recording.check_cadence(RATE_HZ)?;
    let Recording {
        samples,
        lost,
        gaps,
        ..
    } = recording;
    if !summary.starts_with(&format!("{samples} samples written, {lost} lost,")) {
        return Err(format!(
            "the card holds {samples} samples, and {lost} are missing; the board reported {summary}"
        ));
    }
    if (lost > 0) != case.loses {
        return Err(format!("stalls of {} ms: {lost} samples lost", case.ms));
    }
    check_downloads(folder, &downloads, sum.all)?;
    // The recorder admits no read then, and the server says so.
    if case.loses != (sum.complete == 0 && sum.refused > 0) {
        return Err(format!(
            "{} downloads were complete, and {} refused",
            sum.complete, sum.refused
        ));
    }
    let Downloads {
        all,
        complete,
        refused,
        bytes,
        seconds,
    } = sum;
    let rate = bytes as f64 / 1000.0 / seconds.max(1e-9);
    println!("{summary}; RAM: {memory}");
    println!(
        "ok: stalls of {} ms: {samples} samples written, {lost} lost in {gaps} gaps; {complete} of {all} \
         downloads complete, {bytes} B at {rate:.0} kB/s, {refused} refused",
        case.ms
    );
    let peak = summary.rsplit("ring peak ").next().unwrap_or_default();
    let peak = peak.trim_end_matches(" B");
    Ok(format!(
        "| {} | {samples} | {lost} | {gaps} | {peak} | {all} | {complete} | {refused} | {bytes} | {rate:.0} |\n",
        case.ms
    ))
}

/// Checks that each download, complete or not, is the beginning of the file on the card.
fn check_downloads(folder: &Path, downloads: &Path, count: u32) -> Result<(), String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let file = read(&folder.join("recording.bin"))?;
    for number in 0..count {
        let path = downloads.join(format!("{number}.BIN"));
        // curl creates the file with the first byte.
        if path.exists() && !file.starts_with(&read(&path)?) {
            return Err(format!(
                "{} differs from the file on the card",
                path.display()
            ));
        }
    }
    Ok(())
}
