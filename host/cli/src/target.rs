//! Target of a measurement: a simulated card on a board, or a directory.

use crate::args::IoArg;
use crate::failure::Failure;
use cardiograph_sim_card::{Board, Profile};
use cardiograph_store::{Directory, Io, StorageInfo};
use std::io::ErrorKind;
use std::path::Path;

/// Target of a measurement.
pub enum Target {
    /// A simulated card on a board.
    Simulated { profile: Profile, board: Board },
    /// A directory of the host.
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
                Ok(Target::Simulated { profile, board })
            }
            None => directory(name, io),
        }
    }
}

/// Returns card and board of `sim:CARD@BOARD`, or `None` for other names.
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

/// Returns the text of a card or board file, or `None` if the name does not end in `.toml`.
pub fn toml_text(name: &str) -> Result<Option<String>, Failure> {
    if !name.ends_with(".toml") {
        return Ok(None);
    }
    read_text(Path::new(name)).map(Some)
}

/// Reads a text file of at most 1 MiB.
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
        ErrorKind::InvalidData => Failure::new(format!("{name}: not text; use a TOML file")),
        _ => Failure::new(format!("{name}: {error}; use a readable TOML file")),
    })
}

fn directory(name: &str, io: IoArg) -> Result<Target, Failure> {
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
            "{name}: no such directory; create it, or use a simulated card as sim:CARD@BOARD \
             (`cardiograph cards` lists them)"
        )),
        ErrorKind::NotADirectory => Failure::new(format!(
            "{name}: not a directory; use a directory on the card or disk to measure. `cardiograph \
             analyze` reads trace files"
        )),
        _ => Failure::new(format!("{name}: {error}; use a directory you may access")),
    })?;
    Ok(Target::Directory(directory, StorageInfo::of(path)))
}
