//! `record` in directories, in real time: files, figures, inputs, and a full directory.

use crate::common;

use common::mount::run_mounted;
use common::{Run, command, directory, done, fed, json, json_with_code, names, number, refused};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Returns the lines in the files of a recording, without the recorder's checkpoint marks.
fn recorded(directory: &Path, prefix: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let folder = directory.join(format!("{prefix}00000"));
    for name in names(&folder) {
        assert!(name.starts_with(prefix) && name.ends_with(".CSV"), "{name}");
        let text = fs::read_to_string(folder.join(name)).unwrap();
        lines.extend(text.split_inclusive('\n').map(str::to_string));
    }
    let is_mark = |line: &String| line.starts_with('#') && line.contains('@');
    lines.retain(|line| !line.starts_with("#file ") && !is_mark(line));
    lines
}

/// Returns the sample index at the beginning of each line.
fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.split(',').next().unwrap().parse().unwrap();
    lines.iter().map(number).collect()
}

/// A buffer that holds seconds of samples, so that a busy disk causes no loss.
const LARGE: [&str; 2] = ["--buffer", "4MiB"];

#[test]
fn a_directory_contains_every_sample_in_order() {
    let own = directory();
    let args = ["record", ".", "--rate", "500", "--for", "1s"];
    let figures = json(own.path(), &[&args[..], &LARGE].concat());
    assert_eq!(number(&figures, "samples_pushed"), 500);
    assert_eq!(number(&figures, "samples_written"), 500);
    assert_eq!(number(&figures, "samples_lost"), 0);
    assert_eq!(number(&figures, "files"), 1);
    assert_eq!(figures["verified"], true);
    assert_eq!(figures["policy"], "stream");
    for nothing in ["sustained_bound_bytes_per_s", "seed"] {
        assert!(figures[nothing].is_null(), "{nothing}");
    }
    let card = json(own.path(), &["record", "--for", "1s"]);
    let fields = |figures: &Value| Vec::from_iter(figures.as_object().unwrap().keys().cloned());
    assert_eq!(fields(&figures), fields(&card));
    // The last of 500 lines is due after 499 periods.
    assert!(number(&figures, "duration_us") >= 998_000);
    assert_eq!(names(own.path()), [".cardiograph.lock", "REC00000"]);
    assert_eq!(names(&own.path().join("REC00000")), ["REC00001.CSV"]);
    let lines = recorded(own.path(), "REC");
    assert_eq!(numbers(&lines), Vec::from_iter(0..500));
    assert!(
        lines
            .iter()
            .all(|line| line.len() == 100 && line.ends_with("\r\n"))
    );
}

#[test]
fn streams_and_files_in_a_directory_follow_each_other() {
    let own = directory();
    let args = ["record", ".", "--rate", "2000", "--for", "1s"];
    let args = [
        &args[..],
        &["--streams", "2", "--format", "csv", "--file-size", "64KiB"],
    ]
    .concat();
    let table = done(own.path(), &[&args[..], &LARGE].concat());
    assert!(
        table.contains("\n. · stream · 2 streams\n"),
        "expected no seed, because nothing is random:\n{table}"
    );
    assert!(
        table.contains("Verified: every sample read back, none lost."),
        "{table}"
    );
    assert!(!table.contains("virtual"), "{table}");
    for prefix in ["REA", "REB"] {
        // 200 kB of lines in files of 65,536 B.
        assert!(names(&own.path().join(format!("{prefix}00000"))).len() >= 4);
        assert_eq!(
            numbers(&recorded(own.path(), prefix)),
            Vec::from_iter(0..2000)
        );
    }
    // Existing files stay, and the next recording has other names.
    let before = common::tree(own.path()).len();
    let args = ["record", ".", "--rate", "100", "--for", "100ms"];
    done(own.path(), &args);
    // The new recording consists of a folder and a file.
    assert_eq!(common::tree(own.path()).len(), before + 2);
    assert_eq!(numbers(&recorded(own.path(), "REC")), Vec::from_iter(0..10));
}

#[test]
fn gaps_contain_all_samples_lost_in_a_directory() {
    let own = directory();
    // Ten samples fit in the buffer, and a sleep of the computer lasts longer than ten sample periods.
    let args = ["record", ".", "--rate", "1000000", "--for", "20ms"];
    let options = ["--buffer", "1KiB", "--durability-window", "sample"];
    let figures = json_with_code(own.path(), &[&args[..], &options].concat(), 3);
    let (pushed, lost) = (
        number(&figures, "samples_pushed"),
        number(&figures, "samples_lost"),
    );
    assert_eq!(pushed, 20_000);
    assert!(lost > 0);
    assert_eq!(number(&figures, "samples_written"), pushed - lost);
    assert_eq!(figures["verified"], true);
    let gaps = figures["gaps"].as_array().unwrap();
    assert_eq!(
        gaps.iter().map(|gap| number(gap, "samples")).sum::<u64>(),
        lost
    );
    // Times count from the first sample; one sample is due per us. No sample arrives before it is due, or
    // after the end.
    for gap in gaps {
        let (first, at_us) = (number(gap, "first_sample"), number(gap, "at_us"));
        let duration_us = number(&figures, "duration_us");
        assert!((first..=duration_us).contains(&at_us), "{gap}");
    }
}

/// Records 800 kB of samples on a file system of 400 KiB.
fn on_a_small_file_system(when_full: &str, code: i32) -> (Value, String) {
    let own = directory();
    let name = own.path().to_str().unwrap();
    let args = ["record", name, "--rate", "8000", "--for", "1s"];
    let options = ["--buffer", "1MiB", "--file-size", "64KiB", "--json", "-"];
    let args = [&args[..], &options, &["--when-full", when_full]].concat();
    let (run, left) = run_mounted("tmpfs", "size=400k", own.path(), &args);
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    assert!(left.iter().any(|name| name.ends_with(".CSV")), "{left:?}");
    let figures = common::results(&run.stdout);
    let known = number(&figures, "samples_written") + number(&figures, "samples_lost");
    assert_eq!(known, number(&figures, "samples_pushed"));
    (figures, run.stderr)
}

#[test]
fn a_full_directory_ends_the_recording() {
    let (figures, table) = on_a_small_file_system("stop", 4);
    assert!(number(&figures, "samples_lost") > 0);
    // At least half of the samples that fit are in complete files.
    assert!((2_000..4_096).contains(&number(&figures, "samples_written")));
    assert_eq!(figures["verified"], true);
    assert!(
        table.contains("Verified: every written sample read back; the gaps account for the "),
        "{table}"
    );
    assert!(table.contains("the storage device is full"), "{table}");
}

#[test]
fn the_oldest_files_of_a_full_directory_are_removed_on_request() {
    let (figures, table) = on_a_small_file_system("remove-oldest", 0);
    assert_eq!(number(&figures, "samples_pushed"), 8_000);
    assert_eq!(number(&figures, "samples_lost"), 0);
    assert_eq!(figures["verified"], false);
    let words = "Not verified: the oldest files were removed during the recording.";
    assert!(table.contains(words), "{table}");
}

/// The file system holds less than what arrives in 20 s. Several streams must not remove all recordings for one file.
#[test]
fn several_streams_continue_on_a_file_system_that_is_smaller_than_their_files() {
    let own = directory();
    let name = own.path().to_str().unwrap();
    let args = ["record", name, "--rate", "2500", "--sample-bytes", "200"];
    let streams = ["--for", "3s", "--streams", "2", "--format", "csv"];
    let options = ["--buffer", "1MiB", "--when-full", "remove-oldest"];
    let args = [&args[..], &streams, &options, &["--json", "-"]].concat();
    let (run, left) = run_mounted("tmpfs", "size=2m", own.path(), &args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(left.iter().any(|name| name.ends_with(".CSV")), "{left:?}");
    let figures = common::results(&run.stdout);
    assert_eq!(number(&figures, "samples_written"), 15_000);
}

/// The buffer has room for a few gaps only. Lines of a pipe wait until the recorder has taken them.
#[test]
fn lines_after_many_bad_ones_are_not_lost() {
    let own = directory();
    let bad = "y".repeat(500);
    let lines = (0..1000).map(|line| match line % 5 {
        0 => format!("{bad}\n"),
        _ => format!("good {line}\n"),
    });
    let input: String = lines.collect();
    let args = ["record", ".", "--samples", "-", "--json", "-"];
    let run = fed(own.path(), &args, input.as_bytes());
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let figures = common::results(&run.stdout);
    assert_eq!(number(&figures, "samples_lost"), 200);
    assert_eq!(number(&figures, "samples_written"), 800);
}

#[test]
fn lines_of_another_program_are_recorded_to_a_directory_as_they_arrive() {
    let own = directory();
    let input = format!("time_ms,value\r\n# a remark\n{}\nlast", "x".repeat(500));
    let args = ["record", ".", "--samples", "-", "--json", "-"];
    let run = fed(own.path(), &args, input.as_bytes());
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let figures = common::results(&run.stdout);
    assert_eq!(number(&figures, "samples_pushed"), 4);
    assert_eq!(number(&figures, "samples_written"), 3);
    assert_eq!(figures["gaps"][0]["cause"], "bad-sample");
    assert_eq!(figures["verified"], false);
    assert!(
        run.stderr
            .contains("Not verified: the input cannot be read twice."),
        "{}",
        run.stderr
    );
    let mut lines = recorded(own.path(), "REC");
    lines.retain(|line| !line.starts_with("#gap "));
    assert_eq!(lines.concat(), "time_ms,value\r\n# a remark\nlast\n");
}

#[test]
fn an_endless_input_is_recorded_for_the_requested_time() {
    let own = directory();
    let args = ["record", ".", "--samples", "-", "--for", "300ms"];
    let mut child = command(own.path(), &args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    // The pipe stays open until the command has ended.
    let run = Run::from(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(recorded(own.path(), "REC"), ["one\n"]);
}

#[test]
fn a_recording_is_replayed_into_a_directory_in_real_time() {
    let own = directory();
    let path = own.path().join("short.csv");
    let line = |number: u64| format!("{}.{},{number}\r\n", number / 10, number % 10);
    let text: String = (0..8).map(line).collect();
    let text = format!("time_s,value\r\n{text}");
    fs::write(&path, &text).unwrap();
    let figures = json(own.path(), &["record", ".", "--samples", "short.csv"]);
    assert_eq!(number(&figures, "samples_written"), 8);
    assert_eq!(figures["verified"], true);
    // The last line of the input is due 0.7 s after the first.
    assert!(number(&figures, "duration_us") >= 700_000);
    assert_eq!(recorded(own.path(), "REC").concat(), text);
}

#[test]
fn options_that_directories_do_not_support_are_rejected() {
    let own = directory();
    fs::write(own.path().join("file"), "").unwrap();
    for (args, words) in [
        (&["file"][..], &["file: not a directory"][..]),
        (
            &["/proc", "--for", "1s"],
            &["/proc: files cannot be created here"],
        ),
        (
            &[".", "--compare"],
            &[
                ".: ",
                "policies other than stream are simulated",
                "sim:CARD@BOARD",
            ],
        ),
        (
            &[".", "--policy", "naive"],
            &["policies other than stream are simulated"],
        ),
        (
            &[".", "--samples", "-", "--rate", "5"],
            &["as they arrive", "remove --rate"],
        ),
        (
            &[".", "--samples", "-", "--streams", "2"],
            &["a single stream", "remove --streams"],
        ),
        (&[".", "--for", "0s"], &["no samples to record"]),
    ] {
        refused(own.path(), &[&["record"], args].concat(), words);
    }
}
