//! Wheels of the Python package.

use crate::dist::ZIG;
use crate::packages;
use crate::run::{check, output_of, root, target};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Package with the program that builds the wheels.
const MATURIN: &str = "maturin==1.16.0";

/// Targets of the wheels; the first one is installed and imported, if it is that of this computer.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Version of the C library that the wheels need at least. Rust's standard library needs it, too.
const COMPATIBILITY: &str = "manylinux_2_17";

/// Builds all wheels, or that of one target, to `target/wheels`; installs the one for this computer in a new environment.
pub fn build(only: Option<&str>) -> Result<(), String> {
    let tools = target().join("wheel-tools");
    packages::install_python_to(&tools, &[MATURIN, ZIG])?;
    let out = target().join("wheels");
    let _ = fs::remove_dir_all(&out);
    for name in TARGETS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        packages::add_target(name)?;
        let mut maturin = Command::new(tools.join("bin/maturin"));
        maturin.args(["build", "--release", "--locked", "--zig"]);
        maturin.args(["--manifest-path", "python/Cargo.toml"]);
        maturin.args(["--target", name, "--compatibility", COMPATIBILITY]);
        maturin.arg("--out").arg(&out).current_dir(root());
        check(maturin.env("PATH", path_with(&tools.join("bin"))))?;
    }
    let is_own = |name: &str| name.starts_with(std::env::consts::ARCH);
    match TARGETS.into_iter().find(|name| is_own(name)) {
        Some(own) if only.is_none_or(|only| only == own) => import(&out),
        _ => Ok(()),
    }
}

/// Returns the search path with a folder before all others.
fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Installs the wheel without any other package, and uses it.
fn import(wheels: &Path) -> Result<(), String> {
    let environment = target().join("wheel-test");
    let _ = fs::remove_dir_all(&environment);
    check(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )?;
    let mut install = Command::new(environment.join("bin/pip"));
    install.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ]);
    check(install.arg("--find-links").arg(wheels).arg("cardiograph"))?;
    let program = "import cardiograph; print(cardiograph.__version__, len(cardiograph.simulate(progress=False)))";
    let mut python = Command::new(environment.join("bin/python3"));
    let printed = output_of(python.args(["-c", program]).current_dir(wheels))?;
    println!("imported; version, and writes of a simulated run: {printed}");
    Ok(())
}
