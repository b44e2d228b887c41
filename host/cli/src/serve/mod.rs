//! `cardiograph serve`: the files of a directory over HTTP.

mod access;

pub use access::Access;

use crate::failure::{Failure, print};
use crate::interrupt::Interrupt;
use cardiograph_record::LiveFiles;
use cardiograph_serve::DirectoryStorage;
use cardiograph_server::NoInstrument;
use std::path::Path;

/// Serve the files of a directory over HTTP.
#[derive(clap::Args)]
#[command(after_help = "\
Browsers, curl and `cardiograph get` can list, download, upload, rename and remove files, and download all files of a
session or a day at once. Hidden files, unfinished recordings and links are not served. Ctrl-C ends the server.
The address is that of this computer only unless --listen says otherwise; other computers can then read, and write
only with --write or --auth. The connection is not encrypted: use it in networks that you trust.

Examples:
  cardiograph serve /media/card                             http://127.0.0.1:8080/
  cardiograph serve /media/card --listen 0.0.0.0:8080       for other computers, read-only
  cardiograph serve /media/card --listen 0.0.0.0:8080 --auth ada:secret
  cardiograph record /media/card --serve 127.0.0.1:8080     a directory that is being recorded to")]
pub struct Serve {
    /// Directory, such as the mount point of a card
    #[arg(value_name = "DIR")]
    pub target: String,

    /// Address to listen at, as IP address and port; port 0 selects a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Allow other computers to change files
    #[arg(long)]
    pub write: bool,

    /// User name and password that every request needs; allows other computers to change files
    #[arg(long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,
}

/// Serves until Ctrl-C.
pub fn run(args: &Serve) -> Result<(), Failure> {
    let storage = open(&args.target)?;
    let access = Access::new(&args.listen, args.write, args.auth.as_deref())?;
    let interrupt = Interrupt::catch()?;
    print(&format!("Serving {} at {}\n", args.target, access.urls()))?;
    let is_stopped = || interrupt.is_raised();
    access.serve(&storage, &NoInstrument, &is_stopped)?;
    match interrupt.exit_code() {
        Some(code) => Err(Failure::AlreadyPrinted(code)),
        None => Ok(()),
    }
}

fn open(target: &str) -> Result<DirectoryStorage, Failure> {
    let path = Path::new(target);
    if target.starts_with("sim:") || path.is_file() || is_device(path) {
        return Err(Failure::new(format!(
            "{target}: only directories can be served; mount the card or its image, and serve its mount point"
        )));
    }
    DirectoryStorage::open(path, LiveFiles::default())
        .map_err(|error| Failure::new(format!("{target}: {error}; use a readable directory")))
}

fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_block_device())
}
