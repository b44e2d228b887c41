//! Helpers that the tests of the command share.

#![allow(dead_code, reason = "each file of tests uses a part")]

pub mod hostile;
pub mod loop_disk;
pub mod mount;
pub mod promise;
pub mod server;
pub mod signals;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Exit code and output of the command.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).expect("the command speaks UTF-8");
        Run {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// The command, about to run in `directory`. SIGHUP ends it even if the tests run under nohup.
pub fn command(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP");
    command.arg(env!("CARGO_BIN_EXE_cardiograph"));
    command.args(args).current_dir(directory);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub fn run(directory: &Path, args: &[&str]) -> Run {
    Run::from(command(directory, args).output().unwrap())
}

/// Runs the command; it must succeed and print nothing to standard error.
pub fn done(directory: &Path, args: &[&str]) -> String {
    let run = run(directory, args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    assert_eq!(run.stderr, "", "{args:?}");
    run.stdout
}

/// Runs the command with `--json -`; the table goes to standard error.
pub fn json(directory: &Path, args: &[&str]) -> Value {
    json_with_code(directory, args, 0)
}

/// Runs the command with `--json -` and expects the given exit code.
pub fn json_with_code(directory: &Path, args: &[&str], code: i32) -> Value {
    let run = run(directory, &[args, &["--json", "-"]].concat());
    assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
    results(&run.stdout)
}

/// Returns the results in an envelope: the only one, or an array.
pub fn results(text: &str) -> Value {
    let mut envelope: Value = serde_json::from_str(text).unwrap();
    assert_eq!(envelope["schema"], 1);
    match envelope["results"].take() {
        Value::Array(mut all) if all.len() == 1 => all.pop().unwrap(),
        many => many,
    }
}

/// Returns the results in an envelope, or null if the command wrote none.
pub fn results_or_null(text: &str) -> Value {
    match text.is_empty() {
        true => Value::Null,
        false => results(text),
    }
}

/// Returns the results in a file of JSON.
pub fn results_in(path: &Path) -> Value {
    results(&fs::read_to_string(path).unwrap())
}

/// Returns a whole number from the JSON figures.
pub fn number(figures: &Value, name: &str) -> u64 {
    let value = figures[name].as_u64();
    value.unwrap_or_else(|| panic!("{name} is {}", figures[name]))
}

/// Runs the command with `input` on standard input.
pub fn fed(directory: &Path, args: &[&str], input: &[u8]) -> Run {
    let mut child = command(directory, args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that rejects its arguments may exit before it has read all of its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    Run::from(child.wait_with_output().unwrap())
}

/// Creates an empty directory on the storage device of the build directory; it is removed at the end of the
/// test.
pub fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Returns the path of a test data file.
pub fn data(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("tests/data").join(name).canonicalize().unwrap()
}

/// Returns path and content of everything in a directory; the content is `None` for folders and broken links.
pub fn tree(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(tree(&path));
            all.push((path, None));
        } else {
            all.push((path.clone(), fs::read(&path).ok()));
        }
    }
    all.sort();
    all
}

/// Returns the names of the files and folders directly in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the type of the file system, such as `tmpfs`.
pub fn file_system(directory: &Path) -> String {
    let mut stat = Command::new("stat");
    let output = stat.args(["-f", "-c", "%T"]).arg(directory).output();
    Run::from(output.unwrap()).stdout.trim().to_string()
}

/// Types of the JSON values. A question mark: null if the trace does not provide the value.
const SCHEMA: &[(&str, &str)] = &[
    ("target", "text"),
    ("workload", "text"),
    ("input", "text"),
    ("notes", "texts"),
    ("writes", "integer"),
    ("payload_bytes", "integer"),
    ("elapsed_us", "number?"),
    ("latency_us.min", "number?"),
    ("latency_us.mean", "number?"),
    ("latency_us.median", "number?"),
    ("latency_us.p90", "number?"),
    ("latency_us.p99", "number?"),
    ("latency_us.p99_9", "number?"),
    ("latency_us.p99_99", "number?"),
    ("latency_us.worst_case", "number?"),
    ("throughput_bytes_per_s.mean", "number?"),
    ("throughput_bytes_per_s.worst_case", "number?"),
    ("operations_per_s", "number?"),
    ("stalls.threshold_us", "number?"),
    ("stalls.count", "integer?"),
    ("stalls.spacing_bytes.median", "integer?"),
    ("stalls.spacing_bytes.mode", "integer?"),
    ("stalls.latency_us.median", "number?"),
];

/// Types of the values for a trace without a scope recording: `energy` is null.
const NO_ENERGY: &[(&str, &str)] = &[("energy", "null")];

const ENERGY: &[(&str, &str)] = &[
    ("energy.total_uJ", "number"),
    ("energy.duration_us", "number"),
    ("energy.bin_us", "number"),
    ("energy.power_mW.mean", "number"),
    ("energy.power_mW.max", "number"),
    ("energy.power_mW.in_writes", "number"),
    ("energy.power_mW.between_writes", "number"),
    ("energy.per_write_uJ", "number"),
    ("energy.per_kB_uJ", "number"),
    ("energy.trace_covered_ratio", "number"),
    ("energy.in_writes.energy_ratio", "number"),
    ("energy.in_writes.time_ratio", "number"),
    ("energy.in_stalls.energy_ratio", "number"),
    ("energy.in_stalls.time_ratio", "number"),
];

const SUSTAINED_RATES: &[(&str, &str)] = &[
    ("sustained_rates[].buffer_bytes", "integer"),
    ("sustained_rates[].rate_bytes_per_s", "number"),
];

const CADENCE: &[(&str, &str)] = &[
    ("cadence.samples", "integer"),
    ("cadence.median_interval_us", "number"),
    ("cadence.period_us", "number?"),
    ("cadence.duplicate_samples", "integer"),
    ("cadence.late_samples", "integer"),
    ("cadence.missing_samples", "integer?"),
    ("cadence.missing_samples_min", "integer?"),
    ("cadence.missing_samples_max", "integer?"),
    ("cadence.room_for_samples", "integer?"),
    ("cadence.longest_gap_us", "number"),
    ("cadence.mean_interval_us", "number"),
    ("cadence.drift_us", "number?"),
    ("cadence.gaps[].at_us", "number"),
    ("cadence.gaps[].length_us", "number"),
    ("cadence.gaps[].missing_samples", "integer?"),
    ("cadence.gaps[].room_for_samples", "integer"),
    ("cadence.sequence", "null"),
    ("cadence.runs", "empty"),
];

/// Kind of file that the figures come from.
#[derive(Clone, Copy, PartialEq)]
pub enum Source {
    /// Individual writes: only figures about stalls may be null.
    Writes,
    /// Individual writes, and a scope recording that covers them.
    WritesAndScope,
    /// Statistics of whole files.
    Aggregate,
    /// A recording with a time column.
    Recording,
}

/// Checks that exactly the expected keys are present, and the type of each value.
pub fn assert_schema(figures: &Value, from: Source) {
    let expected: Vec<_> = match from {
        Source::Writes => [SCHEMA, SUSTAINED_RATES, NO_ENERGY].concat(),
        Source::WritesAndScope => [SCHEMA, SUSTAINED_RATES, ENERGY].concat(),
        Source::Aggregate => [SCHEMA, NO_ENERGY, &[("sustained_rates", "empty")]].concat(),
        Source::Recording => [SCHEMA, CADENCE, NO_ENERGY, &[("sustained_rates", "empty")]].concat(),
    };
    let has_writes = matches!(from, Source::Writes | Source::WritesAndScope);
    let mut found = Vec::new();
    leaves("", figures, &mut found);
    // tests/trust.rs and tests/schemas.rs check this object, which only real storage devices have.
    found.retain(|(key, _)| !key.starts_with("trust."));
    let keys = |leaves: &[(String, &str)]| -> BTreeSet<String> {
        leaves.iter().map(|(key, _)| key.clone()).collect()
    };
    let due: BTreeSet<_> = expected.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys(&found), due);
    for (key, kind) in found {
        let due = expected.iter().find(|(name, _)| *name == key).unwrap().1;
        let is_bare = !has_writes || key.contains("stalls") || lacks_writes(&key, figures);
        let may_be_null = due.ends_with('?') && is_bare;
        let is_right = kind == due.trim_end_matches('?') || (kind == "null" && may_be_null);
        assert!(is_right, "{key} is {kind}, expected {due}");
    }
}

/// Returns true for a percentile that none of the writes exceeds.
fn lacks_writes(key: &str, figures: &Value) -> bool {
    let needed = match key {
        "latency_us.p90" => 10,
        "latency_us.p99" => 100,
        "latency_us.p99_9" => 1_000,
        "latency_us.p99_99" => 10_000,
        _ => 0,
    };
    number(figures, "writes") < needed
}

/// Collects paths and types of all leaf values.
fn leaves(path: &str, value: &Value, out: &mut Vec<(String, &'static str)>) {
    let kind = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(&format!("{path}{dot}{name}"), value, out);
            }
            return;
        }
        Value::Array(items) if path == "notes" && items.iter().all(Value::is_string) => "texts",
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                leaves(&format!("{path}[]"), item, out);
            }
            return;
        }
        Value::Array(_) => "empty",
        Value::Null => "null",
        Value::Bool(_) => "truth",
        Value::String(_) => "text",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
    };
    out.push((path.to_string(), kind));
}

/// Checks that the command reported an error, or one for each output: a line each, and exit code 2.
pub fn assert_refused(run: &Run, parts: &[&str]) {
    let Run { code, stderr, .. } = run;
    assert_eq!(*code, Some(2), "{stderr}");
    assert!(
        stderr.ends_with('\n') && stderr.lines().all(|line| line.starts_with("error: ")),
        "{stderr}"
    );
    for part in parts {
        assert!(stderr.contains(part), "no \"{part}\" in: {stderr}");
    }
}

/// Checks that the command fails with a message that contains `words`, and changes nothing in the directory.
pub fn refused(directory: &Path, args: &[&str], words: &[&str]) {
    let before = tree(directory);
    let run = run(directory, args);
    assert_refused(&run, words);
    assert_eq!(run.stdout, "", "{args:?}");
    assert!(tree(directory) == before, "{args:?} left something");
}

/// Checks that a browser showing the page would fetch nothing from elsewhere.
pub fn assert_self_contained(html: &str) {
    for scheme in ["http://", "https://", "src=\"//", "href=\"//", "@import"] {
        for (at, _) in html.match_indices(scheme) {
            // An XML namespace looks like a URL, but browsers do not fetch it.
            let is_namespace = html[at..].starts_with("http://www.w3.org/");
            assert!(is_namespace, "{}", &html[at..html.len().min(at + 60)]);
        }
    }
}
