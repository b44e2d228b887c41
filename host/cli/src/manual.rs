//! `cardiograph completions` and `cardiograph man`: help for shells and `man`.

use crate::args;
use crate::failure::{Failure, print};
use clap_complete::Shell;
use std::path::PathBuf;

/// Print completions for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cardiograph completions bash > ~/.local/share/bash-completion/completions/cardiograph")]
pub struct Completions {
    /// Shell
    pub shell: Shell,
}

/// Write a manual page for each command.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cardiograph man ~/.local/share/man/man1")]
pub struct Man {
    /// Existing directory for the pages: cardiograph.1, cardiograph-bench.1 and so on
    pub directory: PathBuf,
}

/// Prints the completions.
pub fn completions(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = args::command();
    clap_complete::generate(args.shell, &mut command, "cardiograph", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes the pages.
pub fn pages(args: &Man) -> Result<(), Failure> {
    clap_mangen::generate_to(args::command(), &args.directory)
        .map_err(|error| Failure::new(format!("{}: {error}", args.directory.display())))
}
