//! `cardiograph completions` and `cardiograph man`: help for shells and `man`.

use crate::args;
use crate::failure::{Failure, print};
use crate::outputs::create;
use crate::shared::Shared;
use cardiograph_trace::WriteError;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

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

    #[command(flatten)]
    pub shared: Shared,
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
    args.shared.apply([] as [&Path; 0]);
    let mut program = args::command();
    program.build();
    let commands = program.get_subcommands().cloned().collect::<Vec<_>>();
    for command in std::iter::once(program).chain(commands) {
        if command.is_hide_set() || command.get_name() == "help" {
            continue;
        }
        let page = clap_mangen::Man::new(command);
        let path = args.directory.join(page.get_filename());
        let mut file = create(&path)?;
        let written = page.render(&mut file);
        written.map_err(|error| Failure::new(WriteError::new(&path, error)))?;
        file.commit().map_err(Failure::new)?;
    }
    Ok(())
}
