//! Builds the library for C, links it into a program in C and a sketch in C++ for this computer and into an image for a
//! board in QEMU, and checks what they recorded.

use crate::firmware::{self, FSCK};
use crate::packages::{self, DEVICE_TARGET};
use crate::run::{capture, cargo, check, output_of, root, target};
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = "bindings/c/Cargo.toml";
/// The same number as in `bindings/c/tests/record.c`.
const SAMPLES: usize = 20_000;
/// Time limit of the program, in s; a normal run takes less than one.
const RUN_S_MAX: &str = "60";

/// Targets for which the library is built, besides this computer.
const TARGETS: [&str; 4] = [
    DEVICE_TARGET,
    "thumbv6m-none-eabi",
    "thumbv7em-none-eabihf",
    "riscv32imc-unknown-none-elf",
];
/// Programs that record: compiler, standard, source.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("gcc", "-std=c99", "record.c"),
    ("g++", "-std=c++11", "sketch.cpp"),
];

/// Runs everything; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_C)?;
    let folder = target().join("c");
    check(&mut cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    library(&folder, "clippy", &["--", "-Dwarnings"])?;
    library(&folder, "build", &[])?;
    for target in TARGETS {
        packages::add_target(target)?;
        library(&folder, "build", &["--target", target])?;
    }
    let card = ["build", "--quiet", "--release", "-p", "cardiograph-wasm"];
    check(&mut cargo(&card))?;
    for (compiler, standard, source) in PROGRAMS {
        let program = compile(&folder, compiler, standard, source)?;
        let image = empty_card(&folder)?;
        let mut run = Command::new("timeout");
        run.arg(RUN_S_MAX).arg(program).arg(&image);
        record(source, &image, run.arg("team-8g-class10"))?;
    }
    let program = compile_board(&folder)?;
    let image = empty_card(&folder)?;
    record("board.c", &image, &mut firmware::qemu(&image, &program))?;
    Ok(PROGRAMS.len() + 1 + TARGETS.len())
}

fn library(folder: &Path, command: &str, end: &[&str]) -> Result<(), String> {
    let mut cargo = cargo(&[command, "--quiet", "--release", "--locked"]);
    cargo.args(["--manifest-path", MANIFEST, "--target-dir"]);
    check(cargo.arg(folder).args(end))
}

/// Creates an empty card; returns the path of its image.
fn empty_card(folder: &Path) -> Result<PathBuf, String> {
    let image = folder.join("card.img");
    let _ = std::fs::remove_file(&image);
    check(Command::new("truncate").args(["-s", "64M"]).arg(&image))?;
    let mut format = Command::new("/usr/sbin/mkfs.fat");
    check(format.args(["-F", "16"]).arg(&image))?;
    Ok(image)
}

/// Runs a program, and checks what it recorded.
fn record(source: &str, image: &Path, run: &mut Command) -> Result<(), String> {
    if !capture(run)?.0 {
        return Err(String::from("the program failed; see the output above"));
    }
    check(Command::new(FSCK).arg("-n").arg(image))?;
    let lines = lines_of(image)?;
    let expected = (0..SAMPLES as u32).map(|i| format!("{i},{}", i.wrapping_mul(2_654_435_769)));
    if !lines.iter().cloned().eq(expected) {
        return Err(format!(
            "{} lines on the card differ from the samples",
            lines.len()
        ));
    }
    println!("ok: {source} recorded {SAMPLES} samples, each once and in order");
    Ok(())
}

/// Compiles the image for a board; returns its path.
fn compile_board(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("board.elf");
    let mut compile = Command::new("arm-none-eabi-gcc");
    compile.args(["-mcpu=cortex-m3", "-mthumb", "-std=gnu99", "-ffreestanding"]);
    compile.args(["-nostdlib", "-Wall", "-Wextra", "-Werror", "-Os"]);
    compile.args(["-Ibindings/c/include", "-Tbindings/c/tests/board/board.ld"]);
    compile.args(["-Wl,-z,noexecstack", "bindings/c/tests/board/board.c"]);
    compile.arg(folder.join(DEVICE_TARGET).join("release/libcardiograph.a"));
    compile.arg("-lgcc").arg("-o").arg(&program);
    check(compile.current_dir(root()))?;
    Ok(program)
}

/// Compiles a program and links it with the library and the simulated card; returns its path.
fn compile(folder: &Path, compiler: &str, standard: &str, source: &str) -> Result<PathBuf, String> {
    let release = target().join("release");
    let program = folder.join(source).with_extension("");
    let mut compile = Command::new(compiler);
    compile.args([standard, "-Wall", "-Wextra", "-Werror", "-O1"]);
    compile.args(["-Ibindings/c/include", "-Ibindings/c/tests/arduino"]);
    compile
        .arg(format!("bindings/c/tests/{source}"))
        .arg(folder.join("release/libcardiograph.a"))
        .arg(release.join("libcardiograph_wasm.so"))
        .arg(format!("-Wl,-rpath,{}", release.display()));
    check(compile.arg("-o").arg(&program).current_dir(root()))?;
    Ok(program)
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
