//! The JSON of every command, validated against docs/schemas by an independent validator.

use crate::common;

use common::loop_disk::LoopDisk;
use common::{data, directory, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SIMULATED: &str = "sim:class10-16g@esp32";

/// Validates every `COMMAND-N.json`, and looks for keys of the schemas that none of them has.
const SCRIPT: &str = r#"
import json, pathlib, sys
from jsonschema import Draft202012Validator

def walk(schema, value, path, seen):
    if value is not None or schema.get("type") == "null":
        seen.add(path)
    if isinstance(value, dict):
        for name, one in value.items():
            walk(schema["properties"][name], one, f"{path}.{name}", seen)
    if isinstance(value, list):
        for one in value:
            walk(schema["items"], one, f"{path}[]", seen)

def keys(schema, path):
    # Not every computer has a disk to spare, and none has one that fails on demand.
    if schema.get("$comment", "").startswith("Needs a "):
        return
    yield path
    for name, one in schema.get("properties", {}).items():
        assert one.get("description"), f"{path}.{name} has no description"
        yield from keys(one, f"{path}.{name}")
    if "items" in schema:
        yield from keys(schema["items"], f"{path}[]")
    if "properties" in schema:
        assert schema["additionalProperties"] is False, path

problems, schemas = [], sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
for file in schemas:
    schema = json.loads(file.read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["title"], file
    validator, seen = Draft202012Validator(schema), set()
    for output in sorted(pathlib.Path(sys.argv[2]).glob(f"{file.stem}-*.json")):
        value = json.loads(output.read_text())
        errors = [f"{output.name}{e.json_path}: {e.message}" for e in validator.iter_errors(value)]
        problems += errors
        if not errors:
            walk(schema, value, file.stem, seen)
    never = set(keys(schema, file.stem)) - seen
    problems += [f"{key}: no output has it" for key in sorted(never)]
print(" ".join(file.stem for file in schemas))
print("\n".join(problems[:50]), file=sys.stderr)
sys.exit(bool(problems))
"#;

/// Runs a command and keeps its JSON as `COMMAND-N.json`.
struct Outputs {
    folder: PathBuf,
    count: usize,
}

impl Outputs {
    fn add(&mut self, directory: &Path, args: &[&str], code: i32) {
        self.count += 1;
        let file = self.folder.join(format!("{}-{}.json", args[0], self.count));
        let json = ["--json", file.to_str().unwrap()];
        let run = run(directory, &[args, &json].concat());
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        assert!(file.exists(), "{args:?} wrote no JSON");
    }
}

fn analyze(outputs: &mut Outputs, own: &Path) {
    let file = |name: &str| data(name).display().to_string();
    let (writes, scope) = (
        file("traces/energy_writes.csv"),
        file("traces/energy_scope.csv"),
    );
    let fio = file("foreign/fio_plus.json");
    let (library, recording) = (
        file("traces/library_comparison.csv"),
        file("magod/f2_1.csv"),
    );
    let hgrm = file("foreign/percentiles.hgrm");
    // A recording that a period fits, with 3 samples missing.
    let times = (0..200).map(|index| 10 * (index + if index < 100 { 0 } else { 3 }));
    let rows: String = times.map(|ms| format!("{ms}\n")).collect();
    fs::write(own.join("steady.csv"), format!("time_ms\n{rows}")).unwrap();
    let runs: String = (0..40).map(|n| format!("{},{n}\n", n % 20 * 10)).collect();
    fs::write(own.join("runs.csv"), format!("time_ms,n\n{runs}")).unwrap();
    for args in [
        &["analyze", "runs.csv", "--sequence-column", "n"][..],
        &["analyze", "t.parquet"],
        &["analyze", "steady.csv", "--rate", "100"],
        &["analyze", "t.parquet", "t.parquet", &recording, &library],
        &["analyze", &fio],
        &["analyze", &hgrm, "--time-unit", "us"],
        &["analyze", &writes, "--scope", &scope],
        &["analyze", "--scope", &scope],
    ] {
        outputs.add(own, args, 0);
    }
    let failing = ["analyze", "t.parquet", "--fail-if", "max > 1us"];
    outputs.add(own, &failing, 5);
}

fn record(outputs: &mut Outputs, own: &Path) {
    fs::create_dir(own.join("card")).unwrap();
    let lossy = [
        "--rate",
        "2200",
        "--for",
        "2s",
        "--buffer",
        "4KiB",
        "--streams",
        "2",
    ];
    outputs.add(own, &["record", "--for", "1s"], 0);
    outputs.add(own, &[&["record"], &lossy[..]].concat(), 3);
    outputs.add(own, &["record", "--compare", "--for", "1s"], 0);
    let live = ["record", "card", "--rate", "100", "--for", "200ms"];
    outputs.add(own, &live, 0);
}

fn plan_and_compare(outputs: &mut Outputs, own: &Path) {
    let logger = ["--rate", "8", "--sample-bytes", "81"];
    let of = |cards: &[&'static str]| [&["plan"], cards, &logger].concat();
    outputs.add(own, &of(&["t.parquet"]), 0);
    outputs.add(own, &of(&[]), 0);
    let ensemble = ["plan", "sim:generic-16g-class10@esp32"];
    let quick = ["--rate", "100", "--sample-bytes", "100"];
    outputs.add(own, &[&ensemble[..], &quick].concat(), 0);
    outputs.add(own, &of(&[SIMULATED, "t.parquet", "--simulated"]), 0);
    let fast = ["--rate", "100000", "--sample-bytes", "81"];
    outputs.add(own, &[&["plan", "t.parquet"], &fast[..]].concat(), 0);
    let list: String = (0..50)
        .map(|i| format!("{}\n", 1000 + i * 7 % 50))
        .collect();
    fs::write(own.join("short.csv"), format!("latency_us\n{list}")).unwrap();
    let latency_us = |i: u64| match i % 100 {
        0 => 20_000 + i * i % 9_973 * 3,
        _ => 1000 + i % 7,
    };
    let list: String = (0..20_000)
        .map(|i| format!("{}\n", latency_us(i)))
        .collect();
    fs::write(own.join("long.csv"), format!("latency_us\n{list}")).unwrap();
    for cards in [
        [SIMULATED, "sim:kingston-8g@esp32"],
        ["t.parquet", "short.csv"],
        ["t.parquet", "long.csv"],
    ] {
        outputs.add(own, &[&["compare"], &cards[..]].concat(), 0);
    }
    let of_rate = ["compare", "t.parquet", "long.csv"];
    outputs.add(own, &[&of_rate[..], &logger].concat(), 0);
}

/// Checks a directory, and a whole disk if this computer permits one.
fn check(outputs: &mut Outputs, own: &Path) {
    fs::create_dir(own.join("checked")).unwrap();
    let part = [
        "check",
        "checked",
        "--allow-root-file-system",
        "--limit",
        "4MiB",
    ];
    outputs.add(own, &part, 6);
    if let Some(disk) = LoopDisk::new(8 << 20) {
        let device = disk.device.as_str();
        outputs.add(own, &["check", device, "--destroy", device], 0);
        outputs.add(own, &["bench", device, "--for", "100ms"], 0);
    }
    flash_benchmark(outputs, own);
}

/// Runs a part of study 2 in a directory, and on a whole disk if this computer permits one.
fn flash_benchmark(outputs: &mut Outputs, own: &Path) {
    fs::create_dir(own.join("study")).unwrap();
    let small = ["--limit", "1MB", "--repeat", "2"];
    outputs.add(
        own,
        &[&["flash-benchmark", "study"], &small[..]].concat(),
        0,
    );
    // A single repetition always has a most frequent value.
    let once = [
        "flash-benchmark",
        "study",
        "--limit",
        "1MB",
        "--repeat",
        "1",
    ];
    outputs.add(own, &once, 0);
    if let Some(disk) = LoopDisk::new(48 << 20) {
        let device = disk.device.as_str();
        let whole = ["flash-benchmark", device, "--destroy", device];
        outputs.add(own, &[&whole, &small[..]].concat(), 0);
    }
}

fn recover(outputs: &mut Outputs, own: &Path) {
    let interrupted = data("recordings/cut-off");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&interrupted, &own.join("cut-off")])
        .status();
    assert!(copied.unwrap().success());
    outputs.add(own, &["recover", "cut-off", "--dry-run"], 0);
    fs::create_dir(own.join("foreign")).unwrap();
    fs::create_dir(own.join("foreign/REC00000")).unwrap();
    fs::write(own.join("foreign/REC00000/REC00001.CSV.part"), "mine").unwrap();
    outputs.add(own, &["recover", "foreign"], 0);
}

/// Sweeps in which a mode, and `plan`, disagree, and one with losses.
fn sweep(outputs: &mut Outputs, own: &Path) {
    let spec = |cards: &str, buffers: &str, run_s: u32, seeds: u32| {
        format!(
            "mode = \"card\"\ncards = {cards}\nrates_hz = [860]\nsample_bytes = 100\nbuffers_bytes = {buffers}\n\
             run_s = {run_s}\nseeds = {seeds}\n"
        )
    };
    let short = spec(
        r#"["class10-16g", "kingston-8g"]"#,
        "[2048, 10240]",
        60,
        100,
    );
    fs::write(own.join("short.toml"), short).unwrap();
    outputs.add(own, &["sweep", "short.toml", "--plan"], 0);
    // The recorder loses samples in steps of the file system, which mode `card` leaves out.
    let small = spec(r#"["class10-16g"]"#, "[1024]", 60, 8);
    fs::write(own.join("small.toml"), small).unwrap();
    outputs.add(own, &["sweep", "small.toml", "--check", "8"], 0);
    let long = spec(r#"["class10-16g"]"#, "[2048]", 7200, 2);
    fs::write(own.join("long.toml"), long).unwrap();
    outputs.add(own, &["sweep", "long.toml"], 0);
    // With the small buffer, every member of an ensemble loses samples; with the large one, none does.
    let ensemble = spec(r#"["team-8g"]"#, "[2048, 1048576]", 7200, 4);
    let ensemble = ensemble.replace("[860]", "[3000]");
    fs::write(own.join("ensemble.toml"), ensemble).unwrap();
    outputs.add(own, &["sweep", "ensemble.toml"], 0);
}

#[test]
#[ignore = "needs python3 and its packages"]
fn the_json_of_every_command_follows_its_schema() {
    let own = directory();
    let mut outputs = Outputs {
        folder: own.path().join("json"),
        count: 0,
    };
    fs::create_dir(&outputs.folder).unwrap();
    let own = own.path();
    outputs.add(own, &["bench", "--trace", "t.parquet"], 0);
    let repeated = ["bench", "--workload", "magod2-4.7", "--repeat", "2"];
    outputs.add(own, &repeated, 0);
    let paced = ["bench", "--rate", "100"];
    outputs.add(own, &paced, 0);
    fs::create_dir(own.join("medium")).unwrap();
    let real = ["bench", "medium", "--for", "2s", "--io", "buffered"];
    let trust = ["--precondition", "--warm-up", "10", "--until-stable"];
    outputs.add(own, &[&real[..], &trust].concat(), 0);
    check(&mut outputs, own);
    analyze(&mut outputs, own);
    record(&mut outputs, own);
    plan_and_compare(&mut outputs, own);
    recover(&mut outputs, own);
    sweep(&mut outputs, own);
    outputs.add(own, &["probe", "sim:apacer-1g-slc@linux-reader"], 0);
    outputs.add(own, &["reproduce", "arduino-bytes"], 0);
    outputs.add(own, &["reproduce", "library-comparison"], 0);

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/python/bin/python3");
    assert!(
        python.exists(),
        "Python packages are missing; run `cargo xtask test`, which installs them"
    );
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .args([&root.join("docs/schemas"), &outputs.folder])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let help = run(own, &["--help"]).stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| {
            *command != "help" && run(own, &[command, "--help"]).stdout.contains("--json <")
        })
        .collect();
    let mut commands = commands;
    commands.sort_unstable();
    // Every command that has --json has a schema.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        commands.join(" ")
    );
}
