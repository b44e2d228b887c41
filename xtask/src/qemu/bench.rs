//! `cardiograph bench board:http://ADDRESS` against the board.

use super::board::{Board, Setup};
use crate::firmware::image::Image;
use crate::judge;
use crate::run::{output_of, target};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A test of 1,350 writes of a block each. The card is busy after every 270 blocks; blocks of the file system count, too.
pub const WORKLOAD: &str =
    "name = \"blocks\"\n[[phase]]\ncalls_per_file = 1350\nbytes_per_call = 512\n";
pub const WRITES: u64 = 1350;
pub const STALL_MS: u32 = 100;
pub const STALL_BLOCKS: u32 = 270;
/// Time limit for the end of a test after its last line, in s of the computer.
const WAIT_S_MAX: u64 = 300;
/// Stalls during the test.
const STALLS: std::ops::RangeInclusive<u64> = 4..=7;

/// Runs all tests; returns their number.
pub fn all(folder: &Path) -> Result<usize, String> {
    measure(folder)?;
    Ok(1)
}

/// The command is refused during a recording; after its end, it measures the stalls that the card has.
fn measure(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    let setup = Setup {
        stall_ms: STALL_MS,
        stall_blocks: STALL_BLOCKS,
        ..Setup::PLAIN
    };
    let mut board = Board::start(folder, image.path(), setup)?;
    board.wait_for("recording to ")?;
    let response = board.request("POST", "/bench", &folder.join("bench.txt"))?;
    if response.status != 423 {
        return Err(format!(
            "/bench during a recording: status {}",
            response.status
        ));
    }
    board.stop(folder)?;
    let workload = folder.join("blocks.toml");
    fs::write(&workload, WORKLOAD).map_err(|error| format!("{}: {error}", workload.display()))?;
    let mut bench = Command::new(target().join("release/cardiograph"));
    bench.args(["bench", &format!("board:http://127.0.0.1:{}", board.port())]);
    bench.args(["--stall-threshold", "50ms", "--json", "-", "--workload"]);
    let text = output_of(bench.arg(&workload))?;
    let report: Value = serde_json::from_str(&text).map_err(|_| format!("bench: {text}"))?;
    check(&report["results"][0], "the network")?;
    // The recording that was stopped is whole, and no file of the test remains.
    let (free, names) = (board.status(folder)?, folder.join("names.json"));
    board.request("GET", "/list?dir=/", &names)?;
    let names = fs::read_to_string(&names).map_err(|error| error.to_string())?;
    if names.contains("BENCH") || free["storage"].is_null() {
        return Err(format!("after the test, the card has {names}"));
    }
    wait_for_end(folder)?;
    board.kill()
}

/// Waits until the board has discarded the test's file, which it does after the last line of the trace: a kill before
/// that leaves clusters that the next start frees.
pub fn wait_for_end(folder: &Path) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
    loop {
        match judge::check_file_system(folder, "card.img") {
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(500)),
            Ok(_) => return Ok(()),
        }
    }
}

/// Checks the figures of a test whose trace came over the network or the serial port.
pub fn check(report: &Value, over: &str) -> Result<(), String> {
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64);
    let found = (
        number("/writes"),
        number("/stalls/count"),
        number("/latency_us/worst_case"),
    );
    let (Some(writes), Some(stalls), Some(longest_us)) = found else {
        return Err(format!("bench reported {report}"));
    };
    let is_right = writes as u64 == WRITES
        && STALLS.contains(&(stalls as u64))
        && longest_us >= 1000.0 * f64::from(STALL_MS);
    match is_right {
        true => {
            println!(
                "ok: bench over {over}: {writes} writes, {stalls} stalls, the longest write {longest_us} us"
            );
            Ok(())
        }
        false => Err(format!("bench reported {report}")),
    }
}
