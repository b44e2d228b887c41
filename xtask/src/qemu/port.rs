//! The firmware without a network: long stalls, and `cardiograph bench board:PORT` over its serial port.

use super::board::{Board, Setup};
use super::{Firmware, RATE_HZ, bench};
use crate::firmware::image::Image;
use crate::judge::{self, Recording};
use crate::run::{output_of, target};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// Stalls that the larger ring absorbs.
const STALL_MS: u32 = 500;
/// Length of the recording with these stalls in CI, in s of the board.
const SECONDS: u32 = 12;
/// Time limit for the recording, in s of the computer.
const WAIT_S_MAX: u64 = 600;
/// The lossy cable loses one byte in this number.
const LOSES_EACH: usize = 997;
/// Noise: control characters, the beginning of a command, one with a wrong checksum, and a long line.
const NOISE: &[u8] =
    b"\x00\xFF\x80CG1 T bytes=\n\nCG1 T bytes=512&writes=8 *0000\nstopp\rCG1 Q *\n";
const NOISE_LONG: [u8; 1000] = [b'~'; 1000];

const PORT: Setup = Setup {
    firmware: Firmware::Port,
    has_network: false,
    ..Setup::PLAIN
};

/// Runs all tests; returns their number.
pub fn all(folder: &Path) -> Result<usize, String> {
    println!("{}", record(folder, SECONDS)?);
    measure(folder)?;
    Ok(2)
}

/// Records through stalls of 500 ms without losing a sample; returns a sentence about it.
pub fn record(folder: &Path, seconds: u32) -> Result<String, String> {
    let image = Image::create(folder)?;
    let setup = Setup {
        stall_ms: STALL_MS,
        stall_blocks: bench::STALL_BLOCKS,
        ..PORT
    };
    let mut board = Board::start(folder, image.path(), setup)?;
    let file = board.wait_for("recording to ")?;
    wait_for_samples(&mut board, seconds * RATE_HZ)?;
    board.send(b"stop\n")?;
    let summary = board.wait_for("stopped: ")?;
    let memory = board.wait_for("RAM: ")?;
    board.kill()?;
    let recording = Recording::read(folder, "card.img", &file, 0)?;
    recording.check_cadence(RATE_HZ)?;
    let samples = recording.samples;
    match summary.starts_with(&format!("{samples} samples written, 0 lost,")) {
        true => Ok(format!(
            "ok: without a network, stalls of {STALL_MS} ms: {summary}; RAM: {memory}"
        )),
        false => Err(format!(
            "the card holds {samples} samples; the board reported {summary}"
        )),
    }
}

/// Asks for the number of samples until the board has taken this many.
fn wait_for_samples(board: &mut Board, samples: u32) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
    while Instant::now() < end {
        if taken(board)? >= samples {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(200));
    }
    Err(format!("the board has not taken {samples} samples"))
}

fn taken(board: &mut Board) -> Result<u32, String> {
    board.send(b"\nstatus\n")?;
    let status = board.wait_for("status: ")?;
    let number = status.split(' ').next().unwrap_or_default().parse();
    number.map_err(|_| format!("the board printed {status}"))
}

/// The command is refused during a recording, which noise does not disturb. After its end, it measures the stalls that the
/// card has, also over a cable that loses bytes.
fn measure(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    let setup = Setup {
        stall_ms: bench::STALL_MS,
        stall_blocks: bench::STALL_BLOCKS,
        ..PORT
    };
    let workload = folder.join("blocks.toml");
    fs::write(&workload, bench::WORKLOAD)
        .map_err(|error| format!("{}: {error}", workload.display()))?;
    let run = |port: &str| {
        let mut bench = Command::new(target().join("release/cardiograph"));
        bench.args(["bench", &format!("board:{port}"), "--json", "-"]);
        bench.args(["--stall-threshold", "50ms", "--workload"]);
        bench.arg(&workload).output()
    };
    let mut board = Board::start(folder, image.path(), setup)?;
    let file = board.wait_for("recording to ")?;
    let refused = board.with_cable(0, run)?;
    let refused = refused.map_err(|error| format!("bench: {error}"))?;
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    if refused.status.code() != Some(2) || !message.contains("a recording is in progress") {
        return Err(format!("bench during a recording: {message}"));
    }
    board.send(NOISE)?;
    board.send(&NOISE_LONG)?;
    let before = taken(&mut board)?;
    wait_for_samples(&mut board, before + RATE_HZ)?;
    board.send(b"stop\n")?;
    board.wait_for("stopped: ")?;

    let report = report_of(board.with_cable(0, run)?)?;
    bench::check(&report, "the serial port")?;
    let report = report_of(board.with_cable(LOSES_EACH, run)?)?;
    check_losses(&report)?;
    bench::wait_for_end(folder)?;
    // The deepest stack is that of a test.
    board.printed_so_far();
    taken(&mut board)?;
    let memory = board.wait_for("RAM: ")?;
    setup.firmware.note_memory(folder, &memory)?;
    println!("ok: without a network, RAM: {memory}");
    board.kill()?;
    // The recording is whole, and no file of the tests remains.
    Recording::read(folder, "card.img", &file, 0)?.check_cadence(RATE_HZ)?;
    let fat = judge::check_file_system(folder, "card.img")?;
    let names = output_of(Command::new("mdir").args(["-a", "-b", "-i"]).arg(fat))?;
    match names.contains("BENCH") {
        false => Ok(()),
        true => Err(format!("after the test, the card has {names}")),
    }
}

fn report_of(output: std::io::Result<Output>) -> Result<Value, String> {
    let output = output.map_err(|error| format!("bench: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text)
        .map_err(|_| format!("bench: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(report["results"][0].clone())
}

/// Checks that lost bytes cost lines, that the report counts their writes, and that it has the others.
fn check_losses(report: &Value) -> Result<(), String> {
    let writes = report["writes"].as_u64().unwrap_or(0);
    let text = report.to_string();
    let missing = bench::WRITES.saturating_sub(writes);
    let says = format!("Missing: {missing} of {} writes", bench::WRITES);
    match missing > 0 && writes > bench::WRITES / 2 && text.contains(&says) {
        true => {
            println!("ok: bench over a cable that loses bytes: {writes} writes, {missing} missing");
            Ok(())
        }
        false => Err(format!(
            "bench over a cable that loses bytes reported {text}"
        )),
    }
}
