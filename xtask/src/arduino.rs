//! Compiles the Arduino library, runs it on this computer and on an emulated ATmega2560, and compares the analysed traces
//! with the latencies of the stand-in of a card.

use crate::packages;
use crate::run::{build_command, check, root, target};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Sources of the boards' core, from the Debian package arduino-core-avr.
const CORE: &str = "/usr/share/arduino/hardware/arduino/avr";
/// Time limit of the emulator, in s; a run takes about a second.
const NODE_S_MAX: &str = "120";

/// A microcontroller, and the folder with the pins of its board.
const BOARDS: [(&str, &str); 2] = [("atmega328p", "standard"), ("atmega2560", "mega")];

/// A trace that has to be read.
struct Expected {
    writes: u64,
    /// Latency of most writes, in us, and what the program adds to it at most.
    median_us: f64,
    median_tolerance_us: f64,
    worst_case_us: f64,
    stalls: u64,
    /// Part of a note.
    note: &'static str,
}

/// Runs all tests; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_ARDUINO)?;
    let folder = target().join("arduino");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    packages::install_npm(&folder, "avr8js", packages::AVR8JS_VERSION)?;
    build_command()?;
    let computer = on_computer(&folder)?;
    for (board, variant) in BOARDS {
        compile_for_avr(&folder.join(board), board, variant)?;
    }
    println!("ok: the Arduino library fits an Uno and a Mega");
    on_mega(&folder)?;
    Ok(computer + 3)
}

/// Runs the library on this computer; returns the number of tests passed.
fn on_computer(folder: &Path) -> Result<usize, String> {
    let program = folder.join("computer");
    let mut compiler = Command::new("g++");
    compiler.args([
        "-std=c++11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-pthread",
    ]);
    compiler.arg("-I").arg(arduino("tests/computer"));
    compiler.arg("-I").arg(arduino("Cardiograph/src"));
    compiler.arg(arduino("tests/computer/main.cpp"));
    compiler.arg(arduino("Cardiograph/src/CardiographTrace.cpp"));
    check(compiler.arg("-o").arg(&program))?;
    let of_stream = |writes, stalls, note| Expected {
        writes,
        median_us: 1000.0,
        median_tolerance_us: 0.0,
        worst_case_us: 85_000.0,
        stalls,
        note,
    };
    let of_lines = |extra_us| Expected {
        median_us: 1000.0 + extra_us,
        worst_case_us: 85_000.0 + extra_us,
        ..of_stream(1000, 10, "Measured on computer with stand-in.")
    };
    let tests = [
        (
            "stream",
            of_stream(1000, 10, "Measured on computer with stand-in."),
        ),
        ("kept-open", of_lines(2000.0)),
        ("open-each", of_lines(4000.0)),
        (
            "cores",
            of_stream(
                1000,
                10,
                "A load takes 820.0 ms on core 0 and 823.0 ms on core 1. On both at once, it takes 960.2 ms (1.17 times as \
                 long; 1.18 times in study 1, with arithmetic of its own). Twice on core 0: 1640.0 ms (2.00 times). Twice \
                 on core 1: 1646.0 ms (2.00 times).",
            ),
        ),
        (
            "fails",
            of_stream(699, 6, "stopped the test after 699 writes: a write failed."),
        ),
    ];
    for (name, expected) in &tests {
        let trace = folder.join(format!("{name}.txt"));
        run_into(Command::new(&program).arg(name), &trace)?;
        judge(&trace, expected)?;
        println!("ok: the Arduino library's trace of the test {name} is read");
    }
    Ok(tests.len())
}

/// Compiles the core of a board, the library and the test program.
fn compile_for_avr(folder: &Path, board: &str, variant: &str) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let core = PathBuf::from(CORE).join("cores/arduino");
    let mut objects = Vec::new();
    for entry in fs::read_dir(&core).map_err(|error| format!("{}: {error}", core.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("c") => objects.push(compile(folder, board, variant, &path, &["-w"])?),
            Some("cpp") => objects.push(compile(
                folder,
                board,
                variant,
                &path,
                &["-w", "-std=gnu++11"],
            )?),
            _ => (),
        }
    }
    let warnings = ["-Wall", "-Wextra", "-Werror", "-std=gnu++11"];
    for source in ["Cardiograph/src/CardiographTrace.cpp", "tests/avr/main.cpp"] {
        objects.push(compile(
            folder,
            board,
            variant,
            &arduino(source),
            &warnings,
        )?);
    }
    let program = folder.join("program.elf");
    let mut linker = Command::new("avr-gcc");
    linker.args([&format!("-mmcu={board}"), "-Os", "-Wl,--gc-sections"]);
    check(linker.args(&objects).arg("-lm").arg("-o").arg(&program))?;
    let mut objcopy = Command::new("avr-objcopy");
    objcopy.args(["-O", "binary"]).arg(&program);
    check(objcopy.arg(folder.join("program.bin")))
}

fn compile(
    folder: &Path,
    board: &str,
    variant: &str,
    source: &Path,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    // The core and the test program both have a main.cpp.
    let is_ours = source.starts_with(root());
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let object = folder.join(format!("{}{name}.o", if is_ours { "our-" } else { "" }));
    let mut compiler = Command::new(if is_c { "avr-gcc" } else { "avr-g++" });
    compiler.arg(format!("-mmcu={board}")).args(flags);
    // The C library of Debian does not define DECIMAL_DIG.
    compiler.args([
        "-DF_CPU=16000000L",
        "-DARDUINO=10819",
        "-DDECIMAL_DIG=17",
        "-Os",
    ]);
    compiler.args(["-ffunction-sections", "-fdata-sections"]);
    if !is_c {
        compiler.args(["-fno-exceptions", "-fno-threadsafe-statics"]);
    }
    compiler.arg("-I").arg(format!("{CORE}/cores/arduino"));
    compiler.arg("-I").arg(format!("{CORE}/variants/{variant}"));
    compiler.arg("-I").arg(arduino("Cardiograph/src"));
    check(compiler.arg("-c").arg(source).arg("-o").arg(&object))?;
    Ok(object)
}

/// Runs the test program on an emulated ATmega2560.
fn on_mega(folder: &Path) -> Result<(), String> {
    let trace = folder.join("mega.txt");
    let mut node = Command::new("timeout");
    node.args([NODE_S_MAX, "node"])
        .arg(arduino("tests/avr/mega.mjs"));
    node.arg(folder.join("atmega2560/program.bin")).arg(folder);
    run_into(&mut node, &trace)?;
    // The stand-in waits for 2 ms and 40 ms; the calls and the clock of 4 us add to that.
    let expected = Expected {
        writes: 200,
        median_us: 2000.0,
        median_tolerance_us: 60.0,
        worst_case_us: 40_000.0,
        stalls: 4,
        note: "Measured on mega2560 with stand-in.",
    };
    judge(&trace, &expected)?;
    println!("ok: an emulated Mega measures a stand-in of a card");
    let shipped = root().join("studies/traces/mega2560-stand-in.txt");
    check(Command::new("cmp").args([&shipped, &trace]))?;
    println!("ok: the trace of the emulated Mega is the one that `reproduce` shows");
    Ok(())
}

/// Runs a command with its output in a file.
fn run_into(command: &mut Command, path: &Path) -> Result<(), String> {
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    check(command.stdout(Stdio::from(file)))
}

/// Compares the analysis of a trace with what the stand-in did.
fn judge(trace: &Path, expected: &Expected) -> Result<(), String> {
    let mut analyze = Command::new(target().join("release/cardiograph"));
    let json = trace.with_extension("json");
    run_into(
        analyze
            .arg("analyze")
            .arg(trace)
            .args(["--quiet", "--json", "-"]),
        &json,
    )?;
    let text = fs::read_to_string(&json).map_err(|error| format!("{}: {error}", json.display()))?;
    let found: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let found = &found["results"][0];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let median_us = number(&found["latency_us"]["median"]);
    let worst_case_us = number(&found["latency_us"]["worst_case"]);
    let tolerance_us = expected.median_tolerance_us;
    // Percentiles are within 0.8 %.
    let is_near =
        (median_us - expected.median_us).abs() <= tolerance_us + 0.008 * expected.median_us;
    let is_worst = (worst_case_us - expected.worst_case_us).abs() <= tolerance_us;
    let counts = (found["writes"].as_u64(), found["stalls"]["count"].as_u64());
    let has_counts = counts == (Some(expected.writes), Some(expected.stalls));
    let has_note = found["notes"].to_string().contains(expected.note);
    match is_near && is_worst && has_counts && has_note {
        true => Ok(()),
        false => Err(format!("{}: analysed wrongly: {found}", trace.display())),
    }
}

fn arduino(path: &str) -> PathBuf {
    root().join("arduino").join(path)
}
