//! Uses the page of the server in headless Chromium.

use crate::packages;
use crate::run::{capture, cargo, check, root, target};
use std::fs;
use std::process::Command;

/// Time limit, in s; a normal run takes half a minute.
const NODE_S_MAX: &str = "300";

/// Runs all tests; returns the number of tests passed. The pictures are in `target/page`.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_PAGE)?;
    let folder = target().join("page");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    packages::install_npm(&folder, "playwright-core", packages::PLAYWRIGHT_VERSION)?;
    packages::install_npm(&folder, "axe-core", packages::AXE_VERSION)?;
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "cardiograph",
    ]))?;
    let mut node = Command::new("timeout");
    node.args([NODE_S_MAX, "node"]);
    node.arg(root().join("web/tests/page.mjs")).arg(&folder);
    node.arg(target().join("release/cardiograph"));
    let (succeeded, text) = capture(&mut node)?;
    match succeeded {
        true => Ok(text.lines().filter(|line| line.starts_with("ok: ")).count()),
        false => Err(String::from(
            "the page does not work in Chromium; see the output above",
        )),
    }
}
