//! Checks that the crates for other people can be published, and used without this repository.

use crate::packages::{self, DEVICE_TARGET};
use crate::run::{capture, cargo, check, target};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates for other people.
const CRATES: [&str; 4] = [
    "cardiograph-card",
    "cardiograph-recorder",
    "cardiograph-server",
    "cardiograph-timing",
];
const VERSION: &str = "0.1.0";
const MANIFEST: &str = "tests/outsider/Cargo.toml";

/// Packages the crates, builds a workspace that uses only the packages, and runs it; returns the number of tests
/// passed.
pub fn all() -> Result<usize, String> {
    packages::add_device_target()?;
    forget_packages()?;
    // Also builds each package. Without `--allow-dirty`, uncommitted files would be an error.
    let mut publish = cargo(&["publish", "--quiet", "--dry-run", "--allow-dirty"]);
    publish.arg("--target-dir").arg(folder());
    check(publish.args(CRATES.iter().flat_map(|name| ["--package", name])))?;
    println!("ok: the crates can be published");
    check(&mut outsider(
        "clippy",
        &["--all-targets", "--", "-Dwarnings"],
    ))?;
    check(&mut outsider(
        "build",
        &["--package", "outsider-device", "--target", DEVICE_TARGET],
    ))?;
    println!("ok: the packages build for a device");
    let (succeeded, text) = capture(&mut outsider("run", &[]))?;
    match succeeded && text.lines().any(|line| line.starts_with("ok: ")) {
        true => Ok(3),
        false => Err(String::from(
            "the packaged crates do not work; see the output above",
        )),
    }
}

/// Returns the target folder of the packages.
fn folder() -> PathBuf {
    target().join("publish")
}

fn remove(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Removes the packages that an earlier run unpacked and built: cargo recognises a package by its version only, and would
/// use the old one.
fn forget_packages() -> Result<(), String> {
    remove(&folder())?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let Some(unpacked) = home.and_then(|home| home.join("registry/src").read_dir().ok()) else {
        return Ok(());
    };
    for registry in unpacked.flatten() {
        // The name of the registry of a dry run begins so, because it has no host.
        if !registry.file_name().as_encoded_bytes().starts_with(b"-") {
            continue;
        }
        for name in CRATES {
            remove(&registry.path().join(format!("{name}-{VERSION}")))?;
        }
    }
    Ok(())
}

/// Returns a cargo command for the outsider's workspace, with the packages instead of published crates.
fn outsider(command: &str, end: &[&str]) -> Command {
    let mut cargo = cargo(&[command, "--quiet", "--locked", "--manifest-path", MANIFEST]);
    cargo.arg("--target-dir").arg(target().join("outsider"));
    for name in CRATES {
        let path = folder().join(format!("package/{name}-{VERSION}"));
        let path = path.display().to_string();
        cargo.args(["--config", &format!("patch.crates-io.{name}.path={path:?}")]);
    }
    cargo.args(end);
    cargo
}
