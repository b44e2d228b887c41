//! Targets of a measurement: a simulated card on a board, or a directory.

use crate::disk;
use crate::failure::Failure;
use cardiograph_sim_card::{Board, Profile};
use cardiograph_store::{Directory, Io, StorageInfo};
use cardiograph_trace::quoted_path;
use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Returns the parser of a target's name.
pub fn parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(name)
}

fn name(name: OsString) -> Result<String, &'static str> {
    let not_utf8 = "the name is not UTF-8; rename it, or change into the directory and name it .";
    name.into_string().map_err(|_| not_utf8)
}

/// Refuses an empty name, which a script passes if a variable is not set.
pub fn check_name(name: &str) -> Result<(), Failure> {
    match name.is_empty() {
        true => Err(Failure::new(
            "the name of the target is empty; name a directory, such as . or /media/card",
        )),
        false => Ok(()),
    }
}

/// Target of a measurement if the command line names none.
///
/// Study 5 published its stalls: 130 to 170 ms, with blocks of 512 B.
pub const DEFAULT_TARGET: &str = "sim:team-8g@esp32";

/// Way in which writes to a directory reach the storage device.
#[derive(Clone, Copy, ValueEnum)]
pub enum IoArg {
    /// Through the page cache, which hides the device's latency
    Buffered,
    /// Bypassing the page cache (O_DIRECT), whole blocks only
    Direct,
    /// Each write returns when the data is on the device (O_DSYNC)
    Dsync,
    /// fsync after each write
    FsyncWrite,
    /// fsync before a file is closed
    FsyncFile,
}

/// The target of a measurement.
pub enum Target {
    /// A simulated card on a board.
    Simulated { profile: Box<Profile>, board: Board },
    /// A directory on a storage device of this computer.
    Directory(Directory, StorageInfo),
}

const PREFIX: &str = "sim:";
const DEFAULT_BOARD: &str = "esp32";

impl Target {
    /// Parses `sim:CARD@BOARD`, or opens a directory.
    pub fn named(name: &str, io: IoArg) -> Result<Target, Failure> {
        match name.strip_prefix(PREFIX) {
            Some(set_up) => {
                let (profile, board) = simulated(set_up)?;
                let profile = Box::new(profile);
                Ok(Target::Simulated { profile, board })
            }
            None => directory(name, io),
        }
    }
}

/// Returns card and board of `sim:CARD@BOARD`, or `None` for any other name.
pub fn simulated_set_up(name: &str) -> Result<Option<(Profile, Board)>, Failure> {
    name.strip_prefix(PREFIX).map(simulated).transpose()
}

fn simulated(set_up: &str) -> Result<(Profile, Board), Failure> {
    let (card, board) = set_up.split_once('@').unwrap_or((set_up, DEFAULT_BOARD));
    let profile = match toml_text(card)? {
        Some(text) => Profile::from_toml(card, &text),
        None => Profile::named(card),
    };
    let board = match toml_text(board)? {
        Some(text) => Board::from_toml(board, &text),
        None => Board::named(board),
    };
    Ok((profile.map_err(Failure::new)?, board.map_err(Failure::new)?))
}

/// Reads the text of a card or board that is given as a TOML file.
pub fn toml_text(name: &str) -> Result<Option<String>, Failure> {
    if !name.ends_with(".toml") {
        return Ok(None);
    }
    read_text(Path::new(name)).map(Some)
}

/// Reads a small text file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    const BYTES_MAX: u64 = 1 << 20;
    let name = path.display();
    let length = std::fs::metadata(path).map(|metadata| metadata.len());
    if length.is_ok_and(|length| length > BYTES_MAX) {
        return Err(Failure::new(format!(
            "{name}: larger than 1 MiB; use a TOML file"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::new(format!("{name}: no such file; check the name")),
        ErrorKind::InvalidData => Failure::new(format!("{name}: not a text file; use a TOML file")),
        _ => Failure::new(format!("{name}: {error}; use a readable TOML file")),
    })
}

/// Returns a failure that names the folder of a run, if the run could not remove it.
pub fn check_cleared(directory: &Directory) -> Result<(), Failure> {
    match directory.left() {
        None => Ok(()),
        Some((folder, refusal)) => {
            let is_empty = || Some(folder.read_dir().ok()?.next().is_none());
            // A folder with files stays, and the error is the reason.
            let of_files = || {
                (is_empty() == Some(false))
                    .then(|| std::fs::remove_dir(&folder).err())
                    .flatten()
            };
            let reason = refusal.or_else(of_files).map(|error| match error.kind() {
                ErrorKind::DirectoryNotEmpty => {
                    io::Error::other("it is not empty: move files that are yours elsewhere first")
                }
                _ => error,
            });
            Err(disk::not_removed(&folder, reason.as_ref()))
        }
    }
}

/// Returns true for the image of a card: by its name, or by the signature of a partition table or of FAT.
fn is_image(path: &Path) -> bool {
    let is_named = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("img"));
    let has_signature = || {
        let mut sector = [0; 512];
        let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut sector));
        read.is_ok() && sector.ends_with(&[0x55, 0xAA])
    };
    is_named || has_signature()
}

fn directory(name: &str, io: IoArg) -> Result<Target, Failure> {
    check_name(name)?;
    let path = Path::new(name);
    let io = match io {
        IoArg::Buffered => Io::Buffered,
        IoArg::Direct => Io::Direct,
        IoArg::Dsync => Io::Dsync,
        IoArg::FsyncWrite => Io::FsyncWrite,
        IoArg::FsyncFile => Io::FsyncFile,
    };
    let directory = Directory::open(path, io).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::new(format!(
            "{name}: no such directory; create it, or name a simulated card as sim:CARD@BOARD \
             (`cardiograph cards` lists them)"
        )),
        ErrorKind::NotADirectory if is_image(path) => Failure::new(format!(
            "{name}: the image of a card, not a directory; mount it and name the mount point: mount -o loop {} DIRECTORY",
            quoted_path(path)
        )),
        ErrorKind::NotADirectory => Failure::new(format!(
            "{name}: not a directory; name a directory on the storage device, or read a trace with \
             `cardiograph analyze`"
        )),
        _ => Failure::new(format!(
            "{name}: {error}; use a directory with read and write permission"
        )),
    })?;
    Ok(Target::Directory(directory, StorageInfo::of(path)))
}
