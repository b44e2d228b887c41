//! Runs the firmware of `firmware/sifive_u` in QEMU, with a card and a network or a serial port, and judges what it
//! recorded and served.

mod bench;
mod board;
mod cable;
mod clients;
mod faults;
mod kills;
mod port;
mod stalls;

use crate::firmware::image::Image;
use crate::packages;
use crate::run::{build_command, cargo, check, target};
use board::{Board, Setup};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "firmware/sifive_u/Cargo.toml";
/// Parts that several boards have in common.
const LOGGER: &str = "firmware/logger/Cargo.toml";
const PROGRAM: &str = "cardiograph-sifive-u";
const TARGET: &str = "riscv32imac-unknown-none-elf";
/// Rate of the firmware, in Hz.
const RATE_HZ: u32 = 860;
/// Number of kills in CI, and in the long run.
const KILLS: usize = 5;
const KILLS_LONG: usize = 50;

/// A build of the firmware.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    Network,
    /// Without a network: the serial port takes commands, and the ring buffer is larger.
    Port,
}

impl Firmware {
    /// Returns the path of the program below the folder of its target.
    pub fn program(self, folder: &Path) -> PathBuf {
        match self {
            Firmware::Network => folder.join(TARGET).join("release").join(PROGRAM),
            Firmware::Port => folder.join("cardiograph-sifive-u-port"),
        }
    }

    /// Returns the name of the file with the use of RAM that the board printed after a test.
    pub fn memory_file(self) -> &'static str {
        match self {
            Firmware::Network => "memory.txt",
            Firmware::Port => "memory-port.txt",
        }
    }

    /// Notes the use of RAM that the board printed, if the stack was deeper than in the tests before.
    fn note_memory(self, folder: &Path, printed: &str) -> Result<(), String> {
        let path = folder.join(self.memory_file());
        let before = fs::read_to_string(&path).unwrap_or_default();
        if stack_bytes(&before) >= stack_bytes(printed) {
            return Ok(());
        }
        fs::write(&path, printed).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns a cargo command for this build.
    fn cargo(self, command: &str) -> std::process::Command {
        let mut cargo = cargo_firmware(command);
        if self == Firmware::Port {
            cargo.arg("--no-default-features");
        }
        cargo
    }
}

/// Returns the highest level of the stack, in bytes, from what the board printed.
fn stack_bytes(printed: &str) -> Option<u64> {
    let (before, _) = printed.split_once(" B maximum stack")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Runs all tests; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    let folder = prepare()?;
    for firmware in [Firmware::Port, Firmware::Network] {
        check(firmware.cargo("clippy").args(["--", "-Dwarnings"]))?;
    }
    let passed =
        faults::all(&folder)? + clients::all(&folder)? + bench::all(&folder)? + port::all(&folder)?;
    kills::kill(&folder, KILLS)?;
    for case in &stalls::CASES {
        stalls::record(&folder, case, case.seconds)?;
    }
    Ok(passed + KILLS + stalls::CASES.len())
}

/// Runs the tests of the build without a network; returns their number.
pub fn port_only() -> Result<usize, String> {
    port::all(&prepare()?)
}

/// Runs the same tests for longer and saves a dated report.
pub fn long() -> Result<(), String> {
    let folder = prepare()?;
    faults::all(&folder)?;
    clients::long(&folder)?;
    let port = port::record(&folder, stalls::SECONDS_LONG)?;
    let mut text = String::from(stalls::TABLE);
    for case in &stalls::CASES {
        text.push_str(&stalls::record(&folder, case, stalls::SECONDS_LONG)?);
    }
    let lost_ms = kills::kill(&folder, KILLS_LONG)?;
    let _ = write!(
        text,
        "\n{KILLS_LONG} kills of QEMU at random moments: fsck.fat finds no error, earlier recordings are unchanged, and \
         at most {lost_ms:.0} ms of samples are missing at the end; the durability window is 1000 ms.\n"
    );
    let _ = write!(text, "\n{port}\n");
    crate::bench::save("network-board", &text)
}

/// Starts the board with an empty card; ends with it.
pub fn start() -> Result<(), String> {
    let folder = build()?;
    // Tests replace the card in the other folder.
    let own = folder.join("started");
    fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    let image = Image::create(&own)?;
    println!("card: {}", image.path().display());
    let mut board = Board::start(&folder, image.path(), Setup::PLAIN)?;
    println!("http://127.0.0.1:{}", board.port());
    board.print_until_end()
}

/// Installs and builds what every test needs; returns the folder for its files.
fn prepare() -> Result<PathBuf, String> {
    let folder = build()?;
    // The figures are those of these tests.
    for firmware in [Firmware::Network, Firmware::Port] {
        let _ = fs::remove_file(folder.join(firmware.memory_file()));
    }
    build_command()?;
    Ok(folder)
}

/// Builds the firmware; returns the folder of its target.
fn build() -> Result<PathBuf, String> {
    packages::install(packages::FOR_QEMU)?;
    packages::add_target(TARGET)?;
    let folder = target().join("qemu");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for manifest in [MANIFEST, LOGGER] {
        check(&mut cargo(&["fmt", "--manifest-path", manifest, "--check"]))?;
    }
    // Both builds have the same name: the first one is copied before the other one replaces it.
    check(&mut Firmware::Port.cargo("build"))?;
    let program = Firmware::Port.program(&folder);
    fs::copy(Firmware::Network.program(&folder), &program)
        .map_err(|error| format!("{}: {error}", program.display()))?;
    check(&mut Firmware::Network.cargo("build"))?;
    Ok(folder)
}

/// Returns a cargo command for the firmware, which has its own workspace and target.
fn cargo_firmware(command: &str) -> std::process::Command {
    let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
    cargo.args(["--manifest-path", MANIFEST, "--target", TARGET]);
    cargo.arg("--target-dir").arg(target().join("qemu"));
    cargo
}
