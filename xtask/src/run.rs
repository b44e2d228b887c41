//! Runs other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the root of the checkout.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns cargo's target folder.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => PathBuf::from(path),
        None => root().join("target"),
    }
}

/// Returns a command that runs cargo in the root of the checkout, with the toolchain that runs this program.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Builds the command as the README's commands do.
pub fn build_command() -> Result<(), String> {
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "cardiograph",
    ]))
}

/// Runs a command; returns an error if the command fails.
pub fn check(command: &mut Command) -> Result<(), String> {
    eprintln!("\n$ {}", displayed(command));
    let status = command
        .status()
        .map_err(|error| format!("{}: {error}", displayed(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed: {} ({status})", displayed(command)))
    }
}

/// Runs a command; returns its standard output, or an error with what the command printed.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", displayed(command)))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!(
            "failed: {}\n{}{}",
            displayed(command),
            text(&output.stdout),
            text(&output.stderr)
        )),
    }
}

/// Runs a command and shows its standard output; returns true if it succeeded, and the output.
pub fn capture(command: &mut Command) -> Result<(bool, String), String> {
    eprintln!("\n$ {}", displayed(command));
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", displayed(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    Ok((output.status.success(), text))
}

fn displayed(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
