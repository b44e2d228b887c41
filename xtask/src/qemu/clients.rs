//! Clients that abandon their requests: the board ends their connections, and serves others.

use super::board::{Board, Setup};
use super::{RATE_HZ, bench, faults, kills};
use crate::firmware::image::Image;
use crate::judge::{self, Recording};
use crate::run::output_of;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Space that the file to be downloaded leaves on the card, in bytes: it does not fit into buffers on the way.
const LEFT_BYTES: u64 = 16 << 20;
/// Longest time for which abandoned connections may keep others out, in us of the board. `docs/boards/sifive_u.md` has the
/// parts of it.
const LOCKED_US_MAX: u64 = 45_000_000;
/// Time limit for anything that the board does, in s of the computer.
const WAIT_S_MAX: u64 = 600;
/// Time in which nothing moves once buffers are full, in us of the board.
const SATURATION_US: u64 = 2_000_000;
/// Time for an answer, in s of the computer.
const ANSWER_S_MAX: u64 = 60;
/// A test of writes that lasts longer than the client stays, and one that is soon over.
const LONG_BENCH: &str = "POST /bench?bytes=512&writes=20000";
const SHORT_BENCH: &str = "/bench?bytes=512&writes=100";
/// Longest time from the beginning of a test to the kill, in ms.
const KILL_MS_MAX: u64 = 3000;
/// Longest cluster of the card.
const CLUSTER_BYTES_MAX: u64 = 32 << 10;
/// Kills of the board during a test of writes.
const KILLS: u32 = 2;
/// Attempts in the long run.
const KILLS_LONG: u32 = 12;

/// Runs all tests; returns their number.
pub fn all(folder: &Path) -> Result<usize, String> {
    stopped_readers(folder)?;
    vanished_clients(folder)?;
    abandoned_bench(folder)?;
    killed_bench(folder, KILLS)?;
    Ok(4)
}

/// Runs the tests with kills for longer.
pub fn long(folder: &Path) -> Result<(), String> {
    killed_bench(folder, KILLS_LONG)
}

/// Starts a board with a large file on its card, which records.
fn recording(folder: &Path, setup: Setup) -> Result<(Board, String), String> {
    let image = Image::create(folder)?;
    faults::fill(folder, &image, LEFT_BYTES)?;
    let mut board = Board::start(folder, image.path(), setup)?;
    let file = board.wait_for("recording to ")?;
    Ok((board, file))
}

/// Two clients request a file, and read nothing of it. With stalls that the ring buffer cannot absorb, the recorder admits no
/// reads, so that a response does not even begin.
fn stopped_readers(folder: &Path) -> Result<(), String> {
    let hopeless = Setup {
        stall_ms: 600,
        stall_blocks: bench::STALL_BLOCKS,
        ..Setup::PLAIN
    };
    for setup in [Setup::PLAIN, hopeless] {
        let (mut board, file) = recording(folder, setup)?;
        board.wait_for_samples(folder, RATE_HZ)?;
        let clients = match setup.stall_ms {
            0 => {
                let clients = [
                    board.begin_request("GET /FULL.BIN")?,
                    board.begin_request("GET /FULL.BIN")?,
                ];
                wait_for_full_buffers(&board)?;
                clients
            }
            _ => [
                board.hold_request("GET /FULL.BIN")?,
                board.hold_request("GET /FULL.BIN")?,
            ],
        };
        let locked_us = wait_for_service(folder, &board)?;
        drop(clients);
        board.stop(folder)?;
        board.kill()?;
        let recording = Recording::read_with_gaps(folder, "card.img", &file, Some(0))?;
        if setup.stall_ms == 0 && recording.lost > 0 {
            return Err(format!("{} samples are lost", recording.lost));
        }
        println!(
            "ok: stalls of {} ms: two clients that read nothing locked others out for {} ms",
            setup.stall_ms,
            locked_us / 1000
        );
    }
    Ok(())
}

/// Waits until the buffers of this computer accept no more bytes from the board: QEMU's buffers are full then.
fn wait_for_full_buffers(board: &Board) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
    let mut before = String::new();
    while Instant::now() < end {
        let buffers = board.order("info usernet")?;
        let is_full = |line: &&str| {
            let mut words = line.split_whitespace().rev();
            // The last two columns are the lengths of the receive queue and the send queue.
            let waiting = words.nth(1).and_then(|word| word.parse().ok());
            line.contains("ESTABLISHED") && waiting.is_some_and(|bytes: u64| bytes > 0)
        };
        if buffers == before && buffers.lines().filter(is_full).count() == 2 {
            return Ok(());
        }
        before = buffers;
        wait_us(board, SATURATION_US)?;
    }
    Err(format!("the buffers are never full: {before}"))
}

/// Waits until the board serves another client; returns this time, in us of the board.
fn wait_for_service(folder: &Path, board: &Board) -> Result<u64, String> {
    let begun_us = board.now_us()?;
    let to = folder.join("status.json");
    loop {
        let is_served = board.answers("/status", &to, ANSWER_S_MAX)?;
        let us = board.now_us()? - begun_us;
        match is_served {
            _ if us > LOCKED_US_MAX => {
                return Err(format!("two clients locked others out for {us} us"));
            }
            true => return Ok(us),
            false => thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// The cable is unplugged during two downloads: the board ends them although the clients say nothing.
fn vanished_clients(folder: &Path) -> Result<(), String> {
    let (mut board, file) = recording(folder, Setup::PLAIN)?;
    let clients = [
        board.begin_request("GET /FULL.BIN")?,
        board.begin_request("GET /FULL.BIN")?,
    ];
    board.plug(false)?;
    wait_us(&board, LOCKED_US_MAX)?;
    board.plug(true)?;
    let is_served = board.answers("/status", &folder.join("status.json"), ANSWER_S_MAX)?;
    drop(clients);
    if !is_served {
        return Err(String::from("clients that vanished keep their connections"));
    }
    board.stop(folder)?;
    board.kill()?;
    Recording::read(folder, "card.img", &file, 0)?.check_cadence(RATE_HZ)?;
    println!("ok: the board ends the connections of clients that vanished");
    Ok(())
}

/// Waits for a time of the board.
fn wait_us(board: &Board, us: u64) -> Result<(), String> {
    let end_us = board.now_us()? + us;
    let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
    while board.now_us()? < end_us {
        if Instant::now() > end {
            return Err(String::from("the board's clock is too slow"));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// A client leaves in the middle of a test of writes: the board discards the test's file, and begins the next test.
fn abandoned_bench(folder: &Path) -> Result<(), String> {
    let card = folder.join("card.img");
    let (mut board, _) = recording(folder, Setup::PLAIN)?;
    board.stop(folder)?;
    let free_bytes = faults::free_bytes(&card)?;
    drop(board.begin_request(LONG_BENCH)?);
    // Refused with 423 while the test is in progress.
    let end_us = board.now_us()? + LOCKED_US_MAX;
    while board
        .request("POST", SHORT_BENCH, &folder.join("bench.txt"))?
        .status
        != 200
    {
        if board.now_us()? > end_us {
            return Err(String::from("a test without a client does not end"));
        }
    }
    let trace = fs::read_to_string(folder.join("bench.txt")).map_err(|error| error.to_string())?;
    if !trace.contains("CG1 E 100") {
        return Err(format!("the next test printed {trace}"));
    }
    while faults::free_bytes(&card)? != free_bytes {
        if board.now_us()? > end_us {
            return Err(String::from("the file of an abandoned test is not freed"));
        }
        thread::sleep(Duration::from_millis(200));
    }
    bench::wait_for_end(folder)?;
    board.kill()?;
    check_no_test(folder)?;
    println!("ok: a test of writes ends with its client, and its file is freed");
    Ok(())
}

/// Kills the board at random moments of a test of writes: the next start frees its file, and records.
fn killed_bench(folder: &Path, count: u32) -> Result<(), String> {
    let card = folder.join("card.img");
    let mut random = u64::from(count);
    let (mut board, _) = recording(folder, Setup::PLAIN)?;
    for number in 1..=count {
        board.stop(folder)?;
        let free_bytes = faults::free_bytes(&card)?;
        let client = board.begin_request(LONG_BENCH)?;
        thread::sleep(Duration::from_millis(
            kills::next(&mut random) % KILL_MS_MAX,
        ));
        board.kill()?;
        drop(client);
        board = Board::start(folder, &card, Setup::PLAIN)?;
        let file = board.wait_for("recording to ")?;
        board.wait_for_samples(folder, RATE_HZ)?;
        board.stop(folder)?;
        let found_bytes = faults::free_bytes(&card)?;
        board.kill()?;
        check_no_test(folder)?;
        let recording = Recording::read(folder, "card.img", &file, 0)?;
        recording.check_cadence(RATE_HZ)?;
        let used_bytes = free_bytes.saturating_sub(found_bytes);
        // The recording takes whole clusters.
        if !(recording.bytes..recording.bytes + CLUSTER_BYTES_MAX).contains(&used_bytes) {
            return Err(format!(
                "kill {number}: {used_bytes} B are used for a recording of {} B",
                recording.bytes
            ));
        }
        println!("ok: kill {number} during a test of writes: its file is freed, the board records");
        board = Board::start(folder, &card, Setup::PLAIN)?;
        board.wait_for("recording to ")?;
    }
    board.kill()
}

/// Checks that the file system has no error, and no file of a test.
fn check_no_test(folder: &Path) -> Result<(), String> {
    let fat = judge::check_file_system(folder, "card.img")?;
    let names = output_of(Command::new("mdir").args(["-a", "-b", "-i"]).arg(fat))?;
    match names.contains("BENCH") || names.contains(".TMP") {
        false => Ok(()),
        true => Err(format!("after the test, the card has {names}")),
    }
}
