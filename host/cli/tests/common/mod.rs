//! What the tests of the command share.

#![allow(dead_code, reason = "each file of tests uses a part")]

pub mod mount;
pub mod promise;
pub mod signals;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// How a run of the command ended.
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

/// The command, about to run in `directory`.
pub fn command(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cardiograph"));
    command.args(args).current_dir(directory);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub fn run(directory: &Path, args: &[&str]) -> Run {
    Run::from(command(directory, args).output().unwrap())
}

/// Runs the command, which must succeed in silence on standard error.
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

/// The same for a command that ends with this exit code.
pub fn json_with_code(directory: &Path, args: &[&str], code: i32) -> Value {
    let run = run(directory, &[args, &["--json", "-"]].concat());
    assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// A whole number of the JSON.
pub fn number(figures: &Value, name: &str) -> u64 {
    let value = figures[name].as_u64();
    value.unwrap_or_else(|| panic!("{name} is {}", figures[name]))
}

/// Runs the command with this on standard input.
pub fn fed(directory: &Path, args: &[&str], input: &[u8]) -> Run {
    let mut child = command(directory, args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses may have gone before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    Run::from(child.wait_with_output().unwrap())
}

/// An empty directory that goes away with the test, on the medium that is compiled on.
pub fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file of the test data.
pub fn data(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("tests/data").join(name).canonicalize().unwrap()
}

/// Everything in a directory: path and content, `None` for a folder or a link that leads nowhere.
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

/// Names of the files and folders right in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The type of the file system, as `tmpfs`.
pub fn file_system(directory: &Path) -> String {
    let mut stat = Command::new("stat");
    let output = stat.args(["-f", "-c", "%T"]).arg(directory).output();
    Run::from(output.unwrap()).stdout.trim().to_string()
}

/// What a value of the JSON is. A question mark: null where the trace cannot tell.
const SCHEMA: &[(&str, &str)] = &[
    ("schema", "integer"),
    ("target", "text"),
    ("workload", "text"),
    ("writes", "integer"),
    ("bytes", "integer"),
    ("elapsed_us", "number?"),
    ("write_time_us.min", "number?"),
    ("write_time_us.mean", "number?"),
    ("write_time_us.p50", "number?"),
    ("write_time_us.p90", "number?"),
    ("write_time_us.p99", "number?"),
    ("write_time_us.p99_9", "number?"),
    ("write_time_us.p99_99", "number?"),
    ("write_time_us.max", "number?"),
    ("throughput_Bps.average", "number?"),
    ("throughput_Bps.guaranteed", "number?"),
    ("iops", "number?"),
    ("peaks.threshold_us", "number?"),
    ("peaks.count", "integer"),
    ("peaks.spacing_bytes.median", "integer?"),
    ("peaks.spacing_bytes.mode", "integer?"),
    ("peaks.height_us.median", "number?"),
];

/// Without a scope.
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
    ("energy.trace_covered", "number"),
    ("energy.in_writes.energy", "number"),
    ("energy.in_writes.time", "number"),
    ("energy.in_peaks.energy", "number"),
    ("energy.in_peaks.time", "number"),
];

const FRONTIER: &[(&str, &str)] = &[
    ("frontier[].ram_bytes", "integer"),
    ("frontier[].lossless_Bps", "number"),
];

const CADENCE: &[(&str, &str)] = &[
    ("cadence.samples", "integer"),
    ("cadence.median_step_us", "number"),
    ("cadence.late", "integer"),
    ("cadence.missing", "integer"),
    ("cadence.longest_gap_us", "number"),
];

/// What was read to get the figures.
#[derive(Clone, Copy, PartialEq)]
pub enum Source {
    /// Every single write: nothing but the figures of peaks may be null.
    Writes,
    /// The same, and a scope that covers them.
    WritesAndScope,
    /// Figures of whole files.
    Aggregate,
    /// A time column.
    Recording,
}

/// Every key is there, no other is, and each value is of its type.
pub fn assert_schema(figures: &Value, from: Source) {
    let expected: Vec<_> = match from {
        Source::Writes => [SCHEMA, FRONTIER, NO_ENERGY].concat(),
        Source::WritesAndScope => [SCHEMA, FRONTIER, ENERGY].concat(),
        Source::Aggregate => [SCHEMA, NO_ENERGY, &[("frontier", "empty")]].concat(),
        Source::Recording => [SCHEMA, CADENCE, NO_ENERGY, &[("frontier", "empty")]].concat(),
    };
    let has_writes = matches!(from, Source::Writes | Source::WritesAndScope);
    let mut found = Vec::new();
    leaves("", figures, &mut found);
    let keys = |leaves: &[(String, &str)]| -> BTreeSet<String> {
        leaves.iter().map(|(key, _)| key.clone()).collect()
    };
    let due: BTreeSet<_> = expected.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys(&found), due);
    for (key, kind) in found {
        let due = expected.iter().find(|(name, _)| *name == key).unwrap().1;
        let may_be_null = due.ends_with('?') && (!has_writes || key.contains("peaks"));
        let is_right = kind == due.trim_end_matches('?') || (kind == "null" && may_be_null);
        assert!(is_right, "{key} is {kind}, due is {due}");
    }
    assert_eq!(figures["schema"], 1);
}

/// Paths and types of all values that hold no other.
fn leaves(path: &str, value: &Value, out: &mut Vec<(String, &'static str)>) {
    let kind = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(&format!("{path}{dot}{name}"), value, out);
            }
            return;
        }
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

/// The command said what is wrong: one line, and exit code 2.
pub fn assert_refused(run: &Run, parts: &[&str]) {
    let Run { code, stderr, .. } = run;
    assert_eq!(*code, Some(2), "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert!(
        stderr.ends_with('\n') && stderr.lines().count() == 1,
        "{stderr}"
    );
    for part in parts {
        assert!(stderr.contains(part), "no \"{part}\" in: {stderr}");
    }
}

/// The command is refused with these words, and nothing in the directory has changed.
pub fn refused(directory: &Path, args: &[&str], words: &[&str]) {
    let before = tree(directory);
    let run = run(directory, args);
    assert_refused(&run, words);
    assert_eq!(run.stdout, "", "{args:?}");
    assert!(tree(directory) == before, "{args:?} left something");
}

/// A browser would fetch nothing from elsewhere.
pub fn assert_self_contained(html: &str) {
    for scheme in ["http://", "https://", "src=\"//", "href=\"//", "@import"] {
        for (at, _) in html.match_indices(scheme) {
            // The name of a namespace is no address.
            let is_namespace = html[at..].starts_with("http://www.w3.org/");
            assert!(is_namespace, "{}", &html[at..html.len().min(at + 60)]);
        }
    }
}
