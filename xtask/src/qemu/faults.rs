//! Cards that cannot be used, a card that is pulled, a full card, and a missing network.

use super::board::{Board, Setup};
use super::{RATE_HZ, kills};
use crate::firmware::image::{BLOCK_BYTES, CARD_BLOCKS, Image};
use crate::judge::{self, Recording};
use crate::run::output_of;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// First lines of messages about cards that cannot be used.
const NO_FILE_SYSTEM: &str = "no recording yet: the card has no file system";
const EXFAT: &str = "no recording yet: the card is formatted as exFAT";
const NO_CARD: &str = "no recording yet: no card responds";
const WRITE_PROTECTED: &str = "no recording yet: the card is write-protected";
const FULL: &str = "the card is full";
const NO_JOURNAL: &str = "no recording yet: the card is full";
/// Requests for a state that is expected soon.
const ATTEMPTS_MAX: usize = 50;
/// Space that remains on a full card, in bytes: too little for the recorder's journal.
const NOTHING_BYTES: u64 = 16 << 10;
/// Space for the journal, but too little for a recording.
const TOO_LITTLE_BYTES: u64 = 112 << 10;
/// Space for a few seconds.
const LITTLE_BYTES: u64 = 512 << 10;

/// Time during which a card is pulled, by the clock of the board. The ring buffer holds less.
const WITHOUT_CARD_MS: u64 = 3000;
/// Time to record without a network, by the clock of the computer: several seconds of samples.
const WITHOUT_NETWORK: Duration = Duration::from_secs(15);

/// Runs all tests; returns their number.
pub fn all(folder: &Path) -> Result<usize, String> {
    unusable_cards(folder)?;
    pulled_card(folder)?;
    full_at_start(folder)?;
    full_card(folder)?;
    write_protected_card(folder)?;
    no_network(folder)?;
    Ok(6)
}

/// The board names what is wrong with each card, serves requests meanwhile, and records on the first usable one.
fn unusable_cards(folder: &Path) -> Result<(), String> {
    let other = folder.join("unusable.img");
    let mut bytes = vec![0; CARD_BLOCKS * BLOCK_BYTES];
    write(&other, &bytes)?;
    let mut board = Board::start(folder, &other, Setup::PLAIN)?;
    board.wait_for(NO_FILE_SYSTEM)?;
    expect_fault(folder, &board, Some("the card has no file system"))?;
    board.order("eject -f sd0")?;
    board.wait_for(NO_CARD)?;
    expect_no_storage(folder, &board)?;
    expect_fault(folder, &board, Some("no card responds"))?;
    // The boot sector of exFAT: its jump, its name, and the signature.
    bytes[..11].copy_from_slice(b"\xEB\x76\x90EXFAT   ");
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    write(&other, &bytes)?;
    board.order(&format!("change sd0 {} raw", other.display()))?;
    board.wait_for(EXFAT)?;
    expect_fault(folder, &board, Some("the card is formatted as exFAT"))?;
    let image = Image::create(folder)?;
    board.order(&format!("change sd0 {} raw", image.path().display()))?;
    let file = board.wait_for("recording to ")?;
    board.wait_for_samples(folder, RATE_HZ)?;
    expect_fault(folder, &board, None)?;
    board.stop(folder)?;
    board.kill()?;
    Recording::read(folder, "card.img", &file, 0)?.check_cadence(RATE_HZ)?;
    println!(
        "ok: the board names the fault of each unusable card, and records on the first usable one"
    );
    Ok(())
}

/// A card is pulled during a recording, and comes back.
fn pulled_card(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    let mut board = Board::start(folder, image.path(), Setup::PLAIN)?;
    let first = board.wait_for("recording to ")?;
    let taken = board.wait_for_samples(folder, 2 * RATE_HZ)?;
    board.order("eject -f sd0")?;
    board.wait_for("the card does not respond")?;
    expect_no_storage(folder, &board)?;
    expect_fault(folder, &board, Some("the card does not respond"))?;
    board.wait_for_unsaved(folder, WITHOUT_CARD_MS)?;
    board.order(&format!("change sd0 {} raw", image.path().display()))?;
    board.wait_for("the card is back")?;
    let second = board.wait_for("recording to ")?;
    board.wait_for_samples(folder, taken + 2 * RATE_HZ)?;
    expect_fault(folder, &board, None)?;
    let summary = board.stop(folder)?;
    board.kill()?;
    let first = Recording::read(folder, "card.img", &first, 0)?;
    let second = Recording::read_from_any(folder, "card.img", &second)?;
    // Recovery may find samples that count as lost.
    if first.samples + RATE_HZ < taken || second.first > first.samples || second.lost == 0 {
        return Err(format!(
            "{} samples before and {} from {} on, {} lost; the board had taken {taken}",
            first.samples, second.samples, second.first, second.lost
        ));
    }
    println!("ok: a pulled card came back; {summary}");
    Ok(())
}

/// A card that is full at the start: the board says so, serves its files, and records once a client has removed one, or
/// another card is there.
fn full_at_start(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    let empty = folder.join("empty.img");
    fs::copy(image.path(), &empty).map_err(|error| format!("{}: {error}", empty.display()))?;
    fill(folder, &image, TOO_LITTLE_BYTES)?;
    let mut board = Board::start(folder, image.path(), Setup::PLAIN)?;
    board.wait_for(FULL)?;
    expect_fault(folder, &board, Some(FULL))?;
    let file = folder.join("served.bin");
    let response = board.download("/FULL.BIN", &file, 120)?;
    if response.status != 206 {
        return Err(format!("a full card: status {}", response.status));
    }
    remove_filler(folder, &board)?;
    let file = board.wait_for("recording to ")?;
    board.wait_for_samples(folder, RATE_HZ)?;
    expect_fault(folder, &board, None)?;
    board.stop(folder)?;
    board.kill()?;
    Recording::read(folder, "card.img", &file, 0)?.check_cadence(RATE_HZ)?;
    for (left_bytes, message) in [(TOO_LITTLE_BYTES, FULL), (NOTHING_BYTES, NO_JOURNAL)] {
        let image = Image::create(folder)?;
        fill(folder, &image, left_bytes)?;
        let mut board = Board::start(folder, image.path(), Setup::PLAIN)?;
        board.wait_for(message)?;
        expect_fault(folder, &board, Some(FULL))?;
        board.order(&format!("change sd0 {} raw", empty.display()))?;
        let file = board.wait_for("recording to ")?;
        board.wait_for_samples(folder, RATE_HZ)?;
        expect_fault(folder, &board, None)?;
        board.stop(folder)?;
        board.kill()?;
        Recording::read(folder, "empty.img", &file, 0)?.check_cadence(RATE_HZ)?;
        Image::create(folder)?;
        fs::copy(folder.join("card.img"), &empty)
            .map_err(|error| format!("{}: {error}", empty.display()))?;
    }
    println!("ok: the board records once a full card has room, or another one is there");
    Ok(())
}

/// Removes the file with which `fill` has filled the card.
fn remove_filler(folder: &Path, board: &Board) -> Result<(), String> {
    let response = board.request("DELETE", "/FULL.BIN", &folder.join("removed.txt"))?;
    match response.status {
        204 => Ok(()),
        status => Err(format!("DELETE: status {status}")),
    }
}

/// A card that becomes full: the board says so, and the recording goes on once a client has removed a file.
fn full_card(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    fill(folder, &image, LITTLE_BYTES)?;
    let mut board = Board::start(folder, image.path(), Setup::PLAIN)?;
    let first = board.wait_for("recording to ")?;
    board.wait_for("the card is full")?;
    expect_fault(folder, &board, Some("the card is full"))?;
    remove_filler(folder, &board)?;
    let taken = board.samples(folder)?;
    board.wait_for_samples(folder, taken + RATE_HZ)?;
    let summary = board.stop(folder)?;
    board.kill()?;
    Recording::read(folder, "card.img", &first, 0)?;
    println!("ok: the recording goes on once a file is removed from a full card; {summary}");
    Ok(())
}

fn write_protected_card(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    let before = fs::read(image.path()).map_err(|error| error.to_string())?;
    let setup = Setup {
        is_write_protected: true,
        ..Setup::PLAIN
    };
    let mut board = Board::start(folder, image.path(), setup)?;
    board.wait_for(WRITE_PROTECTED)?;
    expect_fault(folder, &board, Some("the card is write-protected"))?;
    board.kill()?;
    let after = fs::read(image.path()).map_err(|error| error.to_string())?;
    match before == after {
        true => println!("ok: the board names write protection, and changes nothing"),
        false => return Err(String::from("a write-protected card has changed")),
    }
    Ok(())
}

/// Without a network, the board records; the next start recovers the recording.
fn no_network(folder: &Path) -> Result<(), String> {
    let image = Image::create(folder)?;
    let setup = Setup {
        has_network: false,
        ..Setup::PLAIN
    };
    let mut board = Board::start(folder, image.path(), setup)?;
    board.wait_for("recording to ")?;
    thread::sleep(WITHOUT_NETWORK);
    board.kill()?;
    let recovered = kills::restart(folder, &image)?;
    judge::check_file_system(folder, "card.img")?;
    match recovered {
        Some(killed) => {
            println!("ok: recorded {} samples without a network", killed.samples);
            kills::check(folder, &killed)
        }
        None => Err(String::from("nothing was recorded without a network")),
    }
}

/// Checks that /status answers, and that it has no storage.
fn expect_no_storage(folder: &Path, board: &Board) -> Result<(), String> {
    let status = board.status(folder)?;
    match status["storage"].is_null() {
        true => Ok(()),
        false => Err(format!("without a card, /status has {}", status["storage"])),
    }
}

/// Checks that /status and /live report a fault that begins with this text, or none. The board polls the card, so that
/// a report may arrive late.
fn expect_fault(folder: &Path, board: &Board, expected: Option<&str>) -> Result<(), String> {
    let is_expected = |fault: &Value| match expected {
        Some(text) => fault.as_str().is_some_and(|fault| fault.starts_with(text)),
        None => fault.is_null(),
    };
    for _ in 0..ATTEMPTS_MAX {
        let status = board.status(folder)?;
        if is_expected(&status["recorder"]["fault"]) {
            let live = board.live(folder)?;
            return match is_expected(&live["fault"]) {
                true => Ok(()),
                false => Err(format!("/live reports {live} instead of {expected:?}")),
            };
        }
        thread::sleep(Duration::from_millis(200));
    }
    let fault = &board.status(folder)?["recorder"]["fault"];
    Err(format!("/status reports {fault} instead of {expected:?}"))
}

/// Fills a card with a file, except for some bytes.
pub fn fill(folder: &Path, image: &Image, left_bytes: u64) -> Result<(), String> {
    let partition = partition_of(image.path());
    let free = free_bytes(image.path())?;
    let file: PathBuf = folder.join("FULL.BIN");
    write(&file, &vec![0xA5; free.saturating_sub(left_bytes) as usize])?;
    output_of(
        Command::new("mcopy")
            .args(["-i", &partition])
            .arg(&file)
            .arg("::"),
    )
    .map(drop)
}

/// Returns the free space of a card.
pub fn free_bytes(card: &Path) -> Result<u64, String> {
    let free = output_of(Command::new("mdir").args(["-i", &partition_of(card), "::"]))?;
    let digits: String = free
        .lines()
        .find_map(|line| line.strip_suffix(" bytes free"))
        .ok_or_else(|| format!("mdir printed {free}"))?
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().map_err(|_| format!("mdir printed {free}"))
}

/// Returns the partition of a card, as mtools name it.
fn partition_of(card: &Path) -> String {
    format!("{}@@{}", card.display(), 2048 * BLOCK_BYTES)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
