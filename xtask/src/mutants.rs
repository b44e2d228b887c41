//! `cargo xtask mutants`: plants small bugs in the device crates with cargo-mutants, one at a time, and
//! lists the bugs that no test detects.
//!
//! The mutants are split into shards. The outcome of a shard remains in `target/mutants/` until the code or
//! its tests change, so a run can be interrupted and continued, or split across machines.

use crate::run::{cargo, check, root, target};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the mutated crates.
const CRATES: [&str; 2] = ["core/card", "core/recorder"];
const PACKAGES: [&str; 4] = ["-p", "cardiograph-card", "-p", "cardiograph-recorder"];
/// Time limit for the tests of a mutant, in s. A mutant that loops forever counts as detected.
const TIMEOUT_S: &str = "300";
/// Number of shards; each takes a few minutes.
const SHARDS: usize = 100;
/// File that lists reviewed surviving mutants, each with the reason why it is equivalent to the original.
const ACCEPTED: &str = "xtask/mutants.txt";
const USAGE: &str = "usage: cargo xtask mutants [SHARD | FIRST..END] [--file PATH] [--report]";

/// Parsed command-line arguments.
struct Request {
    shards: Range<usize>,
    /// File whose mutants run as one shard, instead of all shards.
    file: Option<String>,
    /// True to report known outcomes without running anything.
    is_report: bool,
}

/// Runs the mutants selected by the arguments.
pub fn with(args: &[&str]) -> Result<(), String> {
    let request = parsed(args).ok_or(USAGE)?;
    let tool = tool()?;
    let folder = target().join("mutants").join(fingerprint()?);
    create_folder(&folder)?;
    if !request.is_report {
        // Tests that fail without a mutant would count every mutant as detected.
        check(cargo(&["test", "--quiet"]).args(PACKAGES))?;
    }
    if let Some(file) = &request.file {
        let name = format!("file-{}", file.replace('/', "-"));
        run(&tool, &folder.join(name), &["--file", file])?;
    } else if !request.is_report {
        for shard in request.shards {
            let number = format!("{shard}/{SHARDS}");
            run(
                &tool,
                &folder.join(format!("shard-{shard}")),
                &["--shard", &number],
            )?;
        }
    }
    report(&folder)
}

fn parsed(args: &[&str]) -> Option<Request> {
    let mut request = Request {
        shards: 0..SHARDS,
        file: None,
        is_report: false,
    };
    match args {
        [] => (),
        ["--report"] => request.is_report = true,
        ["--file", path] => request.file = Some((*path).to_string()),
        [range] => {
            let (first, end) = match range.split_once("..") {
                Some((first, end)) => (first.parse().ok()?, end.parse().ok()?),
                None => (range.parse().ok()?, range.parse::<usize>().ok()? + 1),
            };
            request.shards = first..end;
        }
        _ => return None,
    }
    (request.shards.end <= SHARDS).then_some(request)
}

/// Returns the path of cargo-mutants; installs it if necessary.
fn tool() -> Result<PathBuf, String> {
    let tools = target().join("tools");
    let path = tools.join("bin/cargo-mutants");
    if !path.exists() {
        let mut install = cargo(&["install", "--locked", "cargo-mutants", "--root"]);
        check(install.arg(&tools))?;
    }
    Ok(path)
}

/// Returns a hash of the mutated crates' code and tests, without their comments.
fn fingerprint() -> Result<String, String> {
    const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;
    let mut files = vec![root().join(".cargo/mutants.toml")];
    for folder in CRATES {
        files_of(&root().join(folder), &mut files)?;
    }
    files.sort();
    let mut hash = FNV_OFFSET;
    for path in files {
        let bytes = read(&path)?;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let code = lines.filter(|line| !line.trim_ascii_start().starts_with(b"//"));
        for byte in code.flatten() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }
    Ok(format!("{hash:016x}"))
}

fn files_of(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    for entry in entries {
        let path = entry.map_err(at(folder))?.path();
        match path.is_dir() {
            true => files_of(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(at(path))
}

fn create_folder(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(at(folder))
}

/// Runs a shard unless its outcome is known. Mutants that survive are not an error at this point.
fn run(tool: &Path, folder: &Path, which: &[&str]) -> Result<(), String> {
    if folder.join("done").exists() {
        return Ok(());
    }
    let _ = std::fs::remove_dir_all(folder);
    create_folder(folder)?;
    let mut command = Command::new(tool);
    command.args([
        "mutants",
        "--no-shuffle",
        "--baseline",
        "skip",
        "--timeout",
        TIMEOUT_S,
    ]);
    command.args(PACKAGES).arg("--output").arg(folder);
    command.args(which).current_dir(root());
    eprintln!("\nmutants: {}", which.join(" "));
    let status = command.status().map_err(at(tool))?;
    match status.code() {
        // These exit codes mean: all mutants were detected, some were missed, or some timed out.
        Some(0 | 2 | 3) => std::fs::write(folder.join("done"), "").map_err(at(folder)),
        _ => Err(format!(
            "cargo-mutants failed ({status}); see {}",
            folder.display()
        )),
    }
}

/// Counts of the mutants' outcomes.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, usize>,
    survivors: Vec<String>,
    shards: usize,
}

impl Tally {
    /// Adds the outcomes of a shard.
    fn add(&mut self, folder: &Path) -> Result<(), String> {
        let path = folder.join("mutants.out/outcomes.json");
        let outcomes: Value = match path.exists() {
            true => serde_json::from_slice(&read(&path)?).map_err(|error| error.to_string())?,
            // The shard has no mutants.
            false => Value::Null,
        };
        for outcome in outcomes["outcomes"].as_array().into_iter().flatten() {
            let Some(name) = outcome["scenario"]["Mutant"]["name"].as_str() else {
                continue;
            };
            let summary = outcome["summary"].as_str().unwrap_or("unknown");
            *self.counts.entry(summary.to_string()).or_default() += 1;
            if summary == "MissedMutant" {
                self.survivors.push(name.to_string());
            }
        }
        Ok(())
    }
}

/// Reports the known outcomes for the current code. Surviving mutants that are not accepted are an error.
fn report(folder: &Path) -> Result<(), String> {
    let mut tally = Tally::default();
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    for entry in entries {
        let path = entry.map_err(at(folder))?.path();
        let is_shard = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("shard-"));
        if path.join("done").exists() {
            tally.shards += usize::from(is_shard);
            tally.add(&path)?;
        }
    }
    tally.survivors.sort();
    tally.survivors.dedup();
    let mut accepted = accepted()?;
    let mut new = Vec::new();
    for name in &tally.survivors {
        match accepted.iter().position(|it| *it == without_position(name)) {
            Some(at) => drop(accepted.swap_remove(at)),
            None => new.push(name.clone()),
        }
    }
    let text = page(&tally, &new, &accepted);
    println!("{text}");
    if tally.shards == SHARDS {
        crate::bench::save("mutants", &text)?;
        if !accepted.is_empty() {
            return Err(format!(
                "{ACCEPTED} lists mutants that no longer survive; remove them"
            ));
        }
    }
    match new.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} mutants survive; write tests, or list them in {ACCEPTED}"
        )),
    }
}

fn page(tally: &Tally, new: &[String], unused: &[String]) -> String {
    let mut text = format!("{} of {SHARDS} shards.\n\n", tally.shards);
    let mut line = |words: String| writeln!(text, "{words}").unwrap_or_default();
    for (summary, count) in &tally.counts {
        line(format!("- {count} {summary}"));
    }
    line(format!(
        "- {} survivors accepted",
        tally.survivors.len() - new.len()
    ));
    for name in new {
        line(format!("- survives: `{name}`"));
    }
    if tally.shards == SHARDS {
        for name in unused {
            line(format!("- accepted, but no longer survives: `{name}`"));
        }
    }
    text
}

/// Returns the name of a mutant without line and column, which change too often.
fn without_position(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(change)) => format!("{file}:{change}"),
        _ => name.to_string(),
    }
}

/// Returns the names of accepted surviving mutants. A name that is listed twice accepts two mutants.
fn accepted() -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(&read(&root().join(ACCEPTED))?).into_owned();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| match line.split_once(" -- ") {
            Some((name, reason)) if !reason.is_empty() => Ok(name.to_string()),
            _ => Err(format!(
                "{ACCEPTED}, line {}: missing ` -- ` and a reason",
                number + 1
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_line_and_column() {
        let name = "core/card/src/crc.rs:12:5: replace crc7 -> u8 with 0";
        assert_eq!(
            without_position(name),
            "core/card/src/crc.rs: replace crc7 -> u8 with 0"
        );
    }

    #[test]
    fn shard_ranges_are_parsed() {
        let shards = |args: &[&str]| parsed(args).map(|request| request.shards);
        assert_eq!(shards(&[]), Some(0..SHARDS));
        assert_eq!(shards(&["7"]), Some(7..8));
        assert_eq!(shards(&["3..9"]), Some(3..9));
        assert_eq!(shards(&["3..101"]), None);
        assert_eq!(shards(&["3.."]), None);
    }
}
