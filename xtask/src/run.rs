//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the checkout.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => PathBuf::from(path),
        None => root().join("target"),
    }
}

/// A cargo of the toolchain that runs us, in the root of the checkout.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Runs a command that must succeed.
pub fn check(command: &mut Command) -> Result<(), String> {
    eprintln!("\n$ {}", shown(command));
    let status = command
        .status()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed: {} ({status})", shown(command)))
    }
}

/// Runs a command; returns whether it succeeded and what it printed to standard output, which is
/// shown as well.
pub fn capture(command: &mut Command) -> Result<(bool, String), String> {
    eprintln!("\n$ {}", shown(command));
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    Ok((output.status.success(), text))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
