//! Builds the library for C, links it into a program for this computer, and checks what that program recorded.

use crate::firmware::FSCK;
use crate::run::{capture, cargo, check, output_of, root, target};
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = "bindings/c/Cargo.toml";
/// The same number as in `bindings/c/tests/record.c`.
const SAMPLES: usize = 20_000;
/// Time limit of the program, in s; a normal run takes less than one.
const RUN_S_MAX: &str = "60";

/// Runs everything; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    let folder = target().join("c");
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    for (command, end) in [("clippy", &["--", "-Dwarnings"][..]), ("build", &[])] {
        let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
        cargo.args(["--manifest-path", MANIFEST, "--target-dir"]);
        check(cargo.arg(&folder).args(end))?;
    }
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "-p",
        "cardiograph-wasm",
    ]))?;
    compile(&folder)?;
    let image = folder.join("card.img");
    let _ = std::fs::remove_file(&image);
    check(Command::new("truncate").args(["-s", "64M"]).arg(&image))?;
    check(
        Command::new("/usr/sbin/mkfs.fat")
            .args(["-F", "16"])
            .arg(&image),
    )?;
    let mut run = Command::new("timeout");
    run.arg(RUN_S_MAX).arg(folder.join("record")).arg(&image);
    if !capture(run.arg("team-8g-class10"))?.0 {
        return Err(String::from(
            "the program in C failed; see the output above",
        ));
    }
    check(Command::new(FSCK).arg("-n").arg(&image))?;
    let lines = lines_of(&image)?;
    let expected = (0..SAMPLES as u32).map(|i| format!("{i},{}", i.wrapping_mul(2_654_435_769)));
    if !lines.iter().cloned().eq(expected) {
        return Err(format!(
            "{} lines on the card differ from the samples",
            lines.len()
        ));
    }
    println!("ok: a program in C recorded {SAMPLES} samples, each once and in order");
    Ok(1)
}

fn compile(folder: &Path) -> Result<(), String> {
    let release = target().join("release");
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-Ibindings/c/include",
    ]);
    gcc.arg("bindings/c/tests/record.c")
        .arg(folder.join("release/libcardiograph.a"));
    gcc.arg(release.join("libcardiograph_wasm.so"));
    gcc.arg(format!("-Wl,-rpath,{}", release.display()));
    check(gcc.arg("-o").arg(folder.join("record")).current_dir(root()))
}

/// Returns the samples in the files of the card, as mtools reads them.
fn lines_of(image: &Path) -> Result<Vec<String>, String> {
    let list = output_of(
        Command::new("mdir")
            .args(["-/", "-b", "-i"])
            .arg(image)
            .arg("::"),
    )?;
    let mut names: Vec<_> = list.lines().filter(|name| name.ends_with(".CSV")).collect();
    names.sort();
    let mut lines = Vec::new();
    for name in names {
        let text = output_of(Command::new("mtype").arg("-i").arg(image).arg(name))?;
        let is_sample = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
        lines.extend(text.lines().filter(is_sample).map(String::from));
    }
    Ok(lines)
}
