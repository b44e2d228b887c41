//! The tests of the Python package, on the unoptimised extension.

use crate::packages;
use crate::run::{capture, cargo, check, root, target};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Library that cargo builds, and the module that Python imports.
const LIBRARY: &str = "libcardiograph_native.so";
const MODULE: &str = "cardiograph_native.abi3.so";

/// Builds the extension and the command with the profile of the tests, and runs the tests of the package; returns their
/// number.
pub fn tests() -> Result<usize, String> {
    let environment = target().join("python-package/environment");
    packages::install_python_to(&environment, packages::PYTHON_FOR_PACKAGE)?;
    // The command has the features of the tests, so that it is there already.
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--package",
        "cardiograph-python",
    ]))?;
    let package = stage()?;
    let mut pytest = Command::new(environment.join("bin/python3"));
    pytest.args(["-m", "pytest", "-q", "--color=no"]);
    pytest.args(["-p", "no:cacheprovider", "python/tests"]);
    pytest
        .current_dir(root())
        .env("PYTHONPATH", &package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CARDIOGRAPH", target().join("debug/cardiograph"));
    let (succeeded, text) = capture(&mut pytest)?;
    match succeeded {
        true => passed(&text).ok_or_else(|| String::from("pytest printed no number of tests")),
        false => Err(String::from(
            "the tests of the Python package failed; see above",
        )),
    }
}

/// Copies the package and the extension to a folder that Python can import from.
fn stage() -> Result<PathBuf, String> {
    let folder = target().join("python-package");
    let package = folder.join("cardiograph");
    let copy = || -> std::io::Result<()> {
        let _ = fs::remove_dir_all(&package);
        fs::create_dir_all(&package)?;
        for entry in fs::read_dir(root().join("python/cardiograph"))? {
            let path = entry?.path();
            if path.is_file() {
                fs::copy(&path, package.join(path.file_name().unwrap_or_default()))?;
            }
        }
        fs::copy(target().join("debug").join(LIBRARY), package.join(MODULE))?;
        Ok(())
    };
    copy().map_err(|error| format!("{}: {error}", package.display()))?;
    Ok(folder)
}

/// Returns the number of passed tests in the last line of pytest.
fn passed(text: &str) -> Option<usize> {
    let line = text.lines().rev().find(|line| line.contains(" passed"))?;
    let before = line.split(" passed").next()?;
    before.rsplit(' ').next()?.parse().ok()
}
