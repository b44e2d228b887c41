//! `cardiograph serve`: the files of a directory or a card over HTTP.

mod access;

pub use access::{Access, AccessArgs, PublicArgs};

use crate::failure::{Failure, print};
use crate::interrupt::Interrupt;
use crate::target::simulated_set_up;
#[cfg(target_os = "linux")]
use cardiograph_record::LiveFiles;
#[cfg(target_os = "linux")]
use cardiograph_serve::DirectoryStorage;
use cardiograph_serve::ServedCard;
#[cfg(target_os = "linux")]
use cardiograph_server::NoInstrument;
use cardiograph_sim_card::{Card, Seed};
use cardiograph_virtual::VirtualLogger;
use std::path::Path;

/// Seed of a simulated card.
const SEED: u64 = 1;

/// Serve the files of a directory or a card over HTTP.
#[derive(clap::Args)]
#[command(after_help = "\
Browsers, curl and `cardiograph get` can list files, and download single files or all files of a session or a day as one
tar file. Browsers and curl can also upload, rename and remove files. Names that begin with a dot, system files, links, and interrupted recordings that have not been repaired yet are not served. Ctrl-C ends the server.
By default, only this computer can connect, and it can change files. With --listen, other computers can read files, and with --write or
--auth also change them. The connection is not encrypted; use it only on networks that you trust.
A card or a card image is served without mounting it, and is not written to at all without --write or --auth.
A simulated card runs in real time in a virtual data logger, which records 860 samples per second and serves them.
The card and its files are gone when the command ends.

Examples:
  cardiograph serve /media/card                             http://127.0.0.1:8080/
  cardiograph serve /media/card --listen 0.0.0.0:8080       for other computers, read-only
  cardiograph serve /media/card --listen 0.0.0.0:8080 --auth ada:secret
  cardiograph serve card.img                                a card image, or a card such as /dev/sdb
  cardiograph serve sim:generic-16g-class10@esp32                   a virtual data logger
  cardiograph record /media/card --serve 127.0.0.1:8080     a directory that is being recorded to")]
pub struct Serve {
    /// Directory, such as the mount point of a card; a card that is not mounted, or its image; or a simulated card as
    /// sim:CARD@BOARD
    #[arg(value_name = "DIR|DEVICE|IMAGE|sim:CARD@BOARD")]
    pub target: String,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Serves until Ctrl-C.
pub fn run(args: &Serve) -> Result<(), Failure> {
    let virtual_logger = logger(&args.target)?;
    let path = Path::new(&args.target);
    let mut access = Access::new(&args.access)?;
    let interrupt = Interrupt::catch()?;
    let is_stopped = || interrupt.is_raised();
    if let Some(logger) = virtual_logger {
        announce(args, &access)?;
        access.serve_virtual(logger, &is_stopped)?;
    } else if path.is_file() || is_device(path) {
        access.protect(args.access.write);
        let card = ServedCard::open(path, access.is_read_only()).map_err(Failure::new)?;
        announce(args, &access)?;
        access.serve_card(card, &is_stopped)?;
    } else {
        serve_directory(args, access, &is_stopped)?;
    }
    match interrupt.exit_code() {
        Some(code) => Err(Failure::AlreadyPrinted(code)),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn serve_directory(
    args: &Serve,
    access: Access,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let storage = DirectoryStorage::open(Path::new(&args.target), LiveFiles::default());
    let storage = storage.map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "no such directory, card or image; check the name, or name a simulated card as \
                 sim:CARD@BOARD (`cardiograph cards` lists them)"
                    .to_string()
            }
            _ => format!("{error}; use a readable directory"),
        };
        Failure::new(format!("{}: {reason}", args.target))
    })?;
    let storage = storage.keeping_free(args.access.keep_free);
    if !access.is_read_only() {
        storage.remove_leftovers();
    }
    announce(args, &access)?;
    access.serve(&storage, &NoInstrument, is_stopped)
}

#[cfg(not(target_os = "linux"))]
fn serve_directory(args: &Serve, _: Access, _: &dyn Fn() -> bool) -> Result<(), Failure> {
    Err(Failure::new(format!(
        "{}: directories are served on Linux only; name a card image, or a simulated card as sim:CARD@BOARD",
        args.target
    )))
}

fn announce(args: &Serve, access: &Access) -> Result<(), Failure> {
    print(&format!("Serving {} at {}\n", args.target, access.urls()))
}

/// Returns the virtual data logger of a simulated card, or `None` for other targets.
pub fn logger(target: &str) -> Result<Option<VirtualLogger>, Failure> {
    let Some((profile, board)) = simulated_set_up(target)? else {
        return Ok(None);
    };
    let seed = Seed::new(SEED);
    let logger = VirtualLogger::new(Card::new(&profile, seed), board, seed).ok_or_else(|| {
        Failure::new(format!(
            "{target}: the board has an SD bus, but the recorder drives cards over SPI; use a board with SPI, such as esp32"
        ))
    })?;
    Ok(Some(logger))
}

fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| cardiograph_system::is_block_device(&metadata))
}
