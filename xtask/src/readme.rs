//! Runs every command of the README, so that the README stays correct.
//!
//! Commands are in fenced blocks marked `sh`, one per line. They run in an empty folder with links to the
//! repository's test data and documents; a subfolder stands in for `/media/card`, the reader's card.

use crate::run::{root, target};
use std::path::Path;
use std::process::Command;

/// Commands that are not run: `cargo xtask test` runs this check itself, and also the firmware tests.
const SKIPPED: [&str; 2] = ["cargo xtask test", "cargo xtask firmware"];

/// Runs the commands; returns their number.
pub fn commands() -> Result<usize, String> {
    let path = root().join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("README.md: {error}"))?;
    let folder = target().join("readme");
    // Commands refuse to overwrite the files of an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    prepare(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let commands = commands_in(&text);
    for command in &commands {
        if !SKIPPED.contains(command) {
            run(command, &folder)?;
        }
    }
    Ok(commands.len())
}

fn prepare(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join("card"))?;
    std::os::unix::fs::symlink(root().join("tests"), folder.join("tests"))?;
    std::os::unix::fs::symlink(root().join("docs"), folder.join("docs"))
}

fn commands_in(text: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        match line {
            "```sh" => in_block = true,
            "```" => in_block = false,
            line if in_block && !line.is_empty() => commands.push(line),
            _ => {}
        }
    }
    commands
}

fn run(command: &str, folder: &Path) -> Result<(), String> {
    let manifest = root().join("Cargo.toml");
    let here = command
        .replace("/media/card", &folder.join("card").display().to_string())
        .replace(
            "cargo run --release",
            &format!("cargo run --release --manifest-path {}", manifest.display()),
        )
        .replace(
            "--path host/cli",
            &format!(
                "--path {} --root installed",
                root().join("host/cli").display()
            ),
        );
    eprintln!("\nREADME: {command}");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.join("installed/bin").display());
    let status = Command::new("sh")
        .args(["-ec", &here])
        .current_dir(folder)
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", target())
        .status()
        .map_err(|error| format!("README: {command}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("README: `{command}` failed ({status})"))
    }
}
