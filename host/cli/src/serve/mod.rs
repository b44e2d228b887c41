//! `cardiograph serve`: the files of a directory or a card over HTTP.

mod access;

pub use access::Access;

use crate::failure::{Failure, print};
use crate::interrupt::Interrupt;
use cardiograph_record::LiveFiles;
use cardiograph_serve::{DirectoryStorage, ServedCard};
use cardiograph_server::NoInstrument;
use std::path::Path;

/// Serve the files of a directory or a card over HTTP.
#[derive(clap::Args)]
#[command(after_help = "\
Browsers, curl and `cardiograph get` can list, download, upload, rename and remove files, and download all files of a
session or a day at once. Names that begin with a dot, system files, unfinished recordings and links are not served. Ctrl-C ends the server.
The address is that of this computer only unless --listen says otherwise; other computers can then read, and write
only with --write or --auth. The connection is not encrypted: use it on networks that you trust.
A card or a card image is served without mounting it, and is not written to at all without --write or --auth.

Examples:
  cardiograph serve /media/card                             http://127.0.0.1:8080/
  cardiograph serve /media/card --listen 0.0.0.0:8080       for other computers, read-only
  cardiograph serve /media/card --listen 0.0.0.0:8080 --auth ada:secret
  cardiograph serve card.img                                a card image, or a card such as /dev/sdb
  cardiograph record /media/card --serve 127.0.0.1:8080     a directory that is being recorded to")]
pub struct Serve {
    /// Directory, such as the mount point of a card; or a card that is not mounted, or its image
    #[arg(value_name = "DIR|DEVICE|IMAGE")]
    pub target: String,

    /// Address to listen on (IP address and port); port 0 selects a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Allow other computers to change files; for a card or an image, allow any changes
    #[arg(long)]
    pub write: bool,

    /// User name and password that every request needs; allows other computers to change files [default: none]
    #[arg(long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,
}

/// Serves until Ctrl-C.
pub fn run(args: &Serve) -> Result<(), Failure> {
    if args.target.starts_with("sim:") {
        return Err(Failure::new(format!(
            "{}: a simulated card has no files; use a directory, a card or an image",
            args.target
        )));
    }
    let path = Path::new(&args.target);
    let mut access = Access::new(&args.listen, args.write, args.auth.as_deref())?;
    let interrupt = Interrupt::catch()?;
    let is_stopped = || interrupt.is_raised();
    let announce =
        |access: &Access| print(&format!("Serving {} at {}\n", args.target, access.urls()));
    if path.is_file() || is_device(path) {
        access.protect(args.write);
        let card = ServedCard::open(path, access.is_read_only()).map_err(Failure::new)?;
        announce(&access)?;
        access.serve_card(card, &is_stopped)?;
    } else {
        let storage = DirectoryStorage::open(path, LiveFiles::default()).map_err(|error| {
            Failure::new(format!(
                "{}: {error}; use a readable directory",
                args.target
            ))
        })?;
        announce(&access)?;
        access.serve(&storage, &NoInstrument, &is_stopped)?;
    }
    match interrupt.exit_code() {
        Some(code) => Err(Failure::AlreadyPrinted(code)),
        None => Ok(()),
    }
}

fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_block_device())
}
