//! Uses the page of the server in headless Chromium.

use crate::packages;
use crate::playground;
use crate::run::{build_command, capture, check, root, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Time limit, in s; a normal run takes half a minute.
const NODE_S_MAX: &str = "300";

/// Installs Chromium and what drives it; returns the folder of the packages.
pub fn tools() -> Result<PathBuf, String> {
    packages::install(packages::FOR_PAGE)?;
    let folder = target().join("page");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    packages::install_npm(&folder, "playwright-core", packages::PLAYWRIGHT_VERSION)?;
    packages::install_npm(&folder, "axe-core", packages::AXE_VERSION)?;
    Ok(folder)
}

/// Builds the command; returns a command that runs a script with it.
fn script(name: &str, folder: &Path) -> Result<Command, String> {
    build_command()?;
    let mut node = Command::new("timeout");
    node.args([NODE_S_MAX, "node"]);
    node.arg(root().join("web/tests").join(name)).arg(folder);
    node.arg(target().join("release/cardiograph"));
    Ok(node)
}

/// Takes the pictures of the README.
pub fn pictures() -> Result<(), String> {
    let folder = tools()?;
    let (playground, _) = playground::build()?;
    let mut pictures = script("pictures.mjs", &folder)?;
    check(pictures.args([root().join("docs"), playground]))
}

/// Runs all tests; returns the number of tests passed. The pictures are in `target/page`.
pub fn all() -> Result<usize, String> {
    let folder = tools()?;
    let (succeeded, text) = capture(&mut script("page.mjs", &folder)?)?;
    match succeeded {
        true => Ok(text.lines().filter(|line| line.starts_with("ok: ")).count()),
        false => Err(String::from(
            "the page does not work in Chromium; see the output above",
        )),
    }
}
