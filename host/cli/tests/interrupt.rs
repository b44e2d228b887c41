//! Ctrl-C and closed pipes: an early end is clean, and shows what was measured.

use crate::common;

use common::signals::{end, wait_for_handler, wait_until};
use common::{Run, Source, assert_schema, command, directory, names};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A workload that takes minutes on any storage device.
const SLOW: &str = r#"
name = "slow"
[[phase]]
files = 2
calls_per_file = 10000
delay_us = 10000
folder_per_file = true
order = "round-robin"
"#;

/// A workload that keeps a simulated card busy for minutes of real time, without a pause.
const LONG: &str = r#"
name = "long"
[[phase]]
files = 100
calls_per_file = 4000000
"#;

fn figures(path: &Path) -> Value {
    common::results_in(path)
}

fn assert_interrupted(run: &Run) {
    assert_ended(run, 130);
}

fn assert_ended(run: &Run, code: i32) {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    assert_eq!(run.stderr, "");
    let table = &run.stdout;
    assert!(table.contains("warning: interrupted with "), "{table}");
    assert!(table.contains("  writes  "), "{table}");
}

#[test]
fn ctrl_c_on_a_directory_removes_the_test_files_and_keeps_the_figures() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let (own, medium) = (directory(), directory());
        fs::write(own.path().join("slow.toml"), SLOW).unwrap();
        let name = medium.path().to_str().unwrap();
        let args = ["bench", name, "--workload", "slow.toml"];
        let outputs = ["--json", "f.json", "--trace", "t.parquet"];
        let mut bench = command(own.path(), &[&args[..], &outputs[..]].concat());
        let child = bench.spawn().unwrap();
        // Both files exist and the first has been written to, so at least one write has been timed.
        let folder = medium.path().join("writeTimeTemp/test_0");
        let length = |name| fs::metadata(folder.join(name)).map_or(0, |file| file.len());
        wait_until(|| length("dir_0/temp_0.txt") >= 1024 && length("dir_1/temp_1.txt") >= 512);
        let run = end(child, signal);
        assert_ended(&run, code);
        assert!(names(medium.path()).is_empty(), "{signal}");
        let figures = figures(&own.path().join("f.json"));
        assert_schema(&figures, Source::Writes);
        let writes = figures["writes"].as_u64().unwrap();
        assert!((2..20_000).contains(&writes), "{writes}");
        assert_eq!(names(own.path()), ["f.json", "slow.toml", "t.parquet"]);
    }
}

#[test]
fn a_hangup_under_nohup_does_not_end_the_run() {
    let (own, medium) = (directory(), directory());
    fs::write(own.path().join("slow.toml"), SLOW).unwrap();
    let mut nohup = Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_cardiograph")).arg("bench");
    nohup.arg(medium.path()).args(["--workload", "slow.toml"]);
    nohup.current_dir(own.path()).stdin(Stdio::null());
    nohup.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = nohup.spawn().unwrap();
    wait_for_handler(&child);
    let file = medium.path().join("writeTimeTemp/test_0/dir_0/temp_0.txt");
    let length = || fs::metadata(&file).map_or(0, |file| file.len());
    wait_until(|| length() >= 1024);
    let hangup = Command::new("kill")
        .args(["-HUP", &child.id().to_string()])
        .status();
    assert!(hangup.unwrap().success());
    let before = length();
    wait_until(|| length() >= before + 2048);
    assert_interrupted(&end(child, "-INT"));
}

#[test]
fn ctrl_c_on_a_simulated_card_keeps_the_figures() {
    let own = directory();
    fs::write(own.path().join("long.toml"), LONG).unwrap();
    let args = ["bench", "--workload", "long.toml", "--json", "f.json"];
    let child = command(own.path(), &args).spawn().unwrap();
    wait_for_handler(&child);
    // Long enough for a first write, and for a progress bar if standard error were a terminal.
    std::thread::sleep(Duration::from_millis(1200));
    let run = end(child, "-INT");
    assert_interrupted(&run);
    let figures = figures(&own.path().join("f.json"));
    assert_schema(&figures, Source::Writes);
    assert!(figures["writes"].as_u64().unwrap() < 400_000_000);
    assert_eq!(names(own.path()), ["f.json", "long.toml"]);
}

#[test]
fn ctrl_c_ends_the_repeats_too() {
    let own = directory();
    fs::write(own.path().join("long.toml"), LONG).unwrap();
    let args = ["bench", "--workload", "long.toml", "--repeat", "3"];
    let outputs = ["--json", "f.json", "--trace", "t.parquet"];
    let mut bench = command(own.path(), &[&args[..], &outputs[..]].concat());
    let child = bench.spawn().unwrap();
    wait_for_handler(&child);
    std::thread::sleep(Duration::from_millis(500));
    assert_interrupted(&end(child, "-INT"));
    let figures = figures(&own.path().join("f.json"));
    assert!(figures.is_object());
    assert_eq!(
        names(own.path()),
        ["f.json", "long.toml", "t-1.parquet"],
        "numbered as if the others had followed"
    );
}

/// A run on a directory that is interrupted once its file has this length.
fn interrupted_in_file(workload: &str, length: u64) -> Run {
    let (own, medium) = (directory(), directory());
    fs::write(own.path().join("w.toml"), workload).unwrap();
    let name = medium.path().to_str().unwrap();
    let args = ["bench", name, "--workload", "w.toml"];
    let child = command(own.path(), &args).spawn().unwrap();
    let file = medium.path().join("writeTimeTemp/test_0/temp_0.txt");
    wait_until(|| fs::metadata(&file).is_ok_and(|file| file.len() >= length));
    let run = end(child, "-INT");
    assert!(names(medium.path()).is_empty());
    run
}

#[test]
fn ctrl_c_during_a_long_pause_is_felt_at_once() {
    let workload = "name = \"pause\"\n[[phase]]\ndelay_us = 4000000000\n";
    assert_interrupted(&interrupted_in_file(workload, 512));
}

#[test]
fn ctrl_c_while_preparing_has_nothing_to_show() {
    let workload = "name = \"read\"\n[[phase]]\noperation = \"read\"\n\
        calls_per_file = 8000000\n";
    let run = interrupted_in_file(workload, 512);
    assert_eq!(run.code, Some(130));
    assert_eq!((run.stdout, run.stderr), (String::new(), String::new()));
}

#[test]
fn ctrl_c_within_a_file_timed_as_a_whole_is_felt_at_once() {
    let workload = "name = \"whole\"\n[[phase]]\nspan = \"file\"\ncalls_per_file = 8000000\n";
    let run = interrupted_in_file(workload, 512);
    assert_eq!(run.code, Some(130));
}

/// Runs the command with a standard output whose reader has closed the pipe.
fn run_unread(directory: &Path, args: &[&str]) -> Run {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(directory, args);
    let child = command.stdout(writer).spawn().unwrap();
    Run::from(child.wait_with_output().unwrap())
}

#[test]
fn a_closed_pipe_ends_the_output_without_a_word() {
    let own = directory();
    let trace = "index,start_us,end_us\n0,0,272\n1,272,586\n";
    fs::write(own.path().join("t.csv"), trace).unwrap();
    for args in [
        &["workloads"][..],
        &["cards"],
        &["--help"],
        &["bench", "--help"],
        &["bench"],
        &["analyze", "t.csv"],
    ] {
        let run = run_unread(own.path(), args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
    for output in ["--json", "--csv", "--markdown"] {
        let run = run_unread(own.path(), &["analyze", "t.csv", output, "-"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
    assert_eq!(names(own.path()), ["t.csv"]);
}

#[test]
fn a_closed_pipe_does_not_cost_the_files_asked_for() {
    let own = directory();
    let args = ["bench", "--json", "f.json", "--html", "f.html"];
    let run = run_unread(own.path(), &args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(names(own.path()), ["f.html", "f.json"]);
}

#[test]
fn a_recording_in_a_directory_ends_properly() {
    let own = directory();
    let args = ["record", ".", "--rate", "500", "--for", "10min"];
    let options = [
        "--buffer",
        "4MiB",
        "--file-size",
        "4MiB",
        "--json",
        "figures.json",
    ];
    let args = [&args[..], &options].concat();
    let child = command(own.path(), &args).spawn().unwrap();
    let file = own.path().join("REC00000/REC00001.CSV");
    // The file has its full length from the start; it contains lines as soon as its first block is written.
    let part = own.path().join("REC00000/REC00001.CSV.part");
    wait_until(|| fs::read(&part).is_ok_and(|bytes| bytes.starts_with(b"#file ")));
    let run = end(child, "-INT");
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    for words in [
        "interrupted",
        "Verified: every sample read back, none lost.",
    ] {
        assert!(run.stdout.contains(words), "{}", run.stdout);
    }
    let figures = figures(&own.path().join("figures.json"));
    assert_eq!(figures["interrupted"], true);
    assert_eq!(figures["samples_written"], figures["samples_pushed"]);
    assert!(figures["samples_written"].as_u64().unwrap() > 0);
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(
        Some(lines.count() as u64),
        figures["samples_written"].as_u64()
    );
}
