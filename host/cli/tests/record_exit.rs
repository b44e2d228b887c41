//! Exit codes of `record`: each exit code alone, and the precedence among them.

use crate::common;

use common::signals::{PATIENCE, end, end_within, wait_for_handler, wait_until};
use common::{Run, command, directory, names, run};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Starts a long recording, in files of 64 KiB unless the options contain another size.
fn recording(directory: &Path, options: &[&str]) -> Child {
    let size = match options.contains(&"--file-size") {
        true => &[][..],
        false => &["--file-size", "64KiB"],
    };
    let args = ["record", ".", "--for", "10min"];
    let child = command(directory, &[&args[..], size, options].concat()).spawn();
    let child = child.unwrap();
    wait_for_handler(&child);
    child
}

/// Options with which nothing is lost: the buffer holds seconds of samples.
const LOSSLESS: [&str; 4] = ["--rate", "4000", "--buffer", "4MiB"];
/// Options with which most samples are lost: the buffer holds ten samples.
const LOSSY: [&str; 4] = ["--rate", "1000000", "--buffer", "1KiB"];

/// Waits until the first two files are closed; returns the path of the first.
fn closed_file(directory: &Path) -> PathBuf {
    let [first, second] =
        ["REC00001.CSV", "REC00002.CSV"].map(|name| directory.join("REC00000").join(name));
    wait_until(|| second.exists());
    first
}

/// Waits until the file contains data.
fn wait_until_written(path: &Path) {
    wait_until(|| fs::read(path).is_ok_and(|bytes| bytes.first().is_some_and(|byte| *byte != 0)));
}

fn assert_code(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{}\n{}", run.stdout, run.stderr);
    for word in words {
        assert!(
            run.stderr.contains(word),
            "no \"{word}\" in: {}",
            run.stderr
        );
    }
    if words.is_empty() {
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn a_recording_that_loses_nothing_ends_with_0_or_the_code_of_its_signal() {
    let own = directory();
    let whole = run(own.path(), &["record", ".", "--for", "100ms"]);
    assert_code(&whole, 0, &[]);
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let own = directory();
        let child = recording(own.path(), &LOSSLESS);
        closed_file(own.path());
        let run = end(child, signal);
        assert_code(&run, code, &[]);
        assert!(run.stdout.contains("none lost"), "{}", run.stdout);
    }
}

#[test]
fn a_signal_ends_a_recording_on_a_simulated_card_with_its_code() {
    let own = directory();
    let args = ["record", "--for", "3h", "--rate", "200", "--json", "f"];
    let child = command(own.path(), &args).spawn().unwrap();
    wait_for_handler(&child);
    // The command may still be computing the sustained bound, so allow it more time to end.
    assert_code(&end_within(child, "-TERM", PATIENCE), 143, &[]);
    let text = fs::read_to_string(own.path().join("f")).unwrap();
    assert!(text.contains("\"interrupted\": true"), "{text}");
}

/// The time between two samples of a simulated recording passes without samples that could notice the signal.
#[test]
fn a_signal_ends_a_long_wait_for_a_sample() {
    let own = directory();
    let rows = "time_us,a\n0,1\n999999999999999,2\n";
    fs::write(own.path().join("jump.csv"), rows).unwrap();
    let args = ["record", "--samples", "jump.csv"];
    let child = command(own.path(), &args).spawn().unwrap();
    wait_for_handler(&child);
    assert_code(&end_within(child, "-TERM", PATIENCE), 143, &[]);
}

#[test]
fn samples_lost_in_gaps_end_with_3_even_after_a_signal() {
    let own = directory();
    let child = recording(own.path(), &LOSSY);
    closed_file(own.path());
    let run = end(child, "-TERM");
    assert_code(&run, 3, &[]);
    assert!(run.stdout.contains("the gaps") || run.stdout.contains("of the gaps"));
}

#[test]
fn samples_of_a_removed_file_are_unaccounted_for_which_takes_precedence() {
    for options in [LOSSLESS, LOSSY] {
        let own = directory();
        let child = recording(own.path(), &options);
        let first = closed_file(own.path());
        fs::remove_file(&first).unwrap();
        let run = end(child, "-INT");
        let words = [
            "error: .: REC00000/REC00001.CSV: removed, moved or changed by another program",
            "unaccounted for",
        ];
        assert_code(&run, 1, &words);
        assert!(
            !run.stdout.contains("every sample read back"),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn a_file_truncated_by_another_program_is_detected() {
    let own = directory();
    let child = recording(own.path(), &LOSSLESS);
    let first = closed_file(own.path());
    File::options()
        .write(true)
        .open(&first)
        .unwrap()
        .set_len(1000)
        .unwrap();
    assert_code(&end(child, "-HUP"), 1, &["REC00001.CSV"]);
}

#[test]
fn a_file_with_changed_bytes_ends_with_2() {
    let own = directory();
    let json = ["--json", "figures.json"];
    let child = recording(own.path(), &[&LOSSLESS[..], &json].concat());
    let first = closed_file(own.path());
    let mut bytes = fs::read(&first).unwrap();
    bytes[5] ^= 1;
    fs::write(&first, bytes).unwrap();
    let words = ["REC00001.CSV", "do not trust this storage device"];
    assert_code(&end(child, "-INT"), 2, &words);
    let figures = common::results_in(&own.path().join("figures.json"));
    assert_eq!(figures["verified"], false);
}

#[test]
fn removal_of_the_file_in_progress_is_reported() {
    let own = directory();
    let child = recording(
        own.path(),
        &[&LOSSLESS[..], &["--file-size", "16MiB"]].concat(),
    );
    let first = own.path().join("REC00000/REC00001.CSV.part");
    wait_until_written(&first);
    fs::remove_file(&first).unwrap();
    // The recorder continues in the next file once a checkpoint has detected the removal.
    let folder = own.path().join("REC00000");
    let is_written = |name: &String| {
        let bytes = fs::read(folder.join(name)).unwrap_or_default();
        bytes.first().is_some_and(|byte| *byte != 0)
    };
    wait_until(|| names(&folder).iter().any(is_written));
    let words = ["REC00001.CSV.part: removed or moved by another program"];
    let run = end(child, "-INT");
    // Samples that were durable in the removed file are unaccounted for; if no sample was durable yet, gaps
    // list all samples of the file.
    let code = match run.stderr.contains("unaccounted for") {
        true => 1,
        false => 2,
    };
    assert_code(&run, code, &words);
}

#[test]
fn removal_of_the_directory_is_never_a_success() {
    let own = directory();
    let target = own.path().join("target");
    fs::create_dir(&target).unwrap();
    let args = [
        "record",
        "target",
        "--samples",
        "-",
        "--durability-window",
        "10ms",
    ];
    let mut child = command(own.path(), &args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"one\ntwo\n").unwrap();
    wait_until_written(&target.join("REC00000/REC00001.CSV.part"));
    fs::remove_dir_all(&target).unwrap();
    input.write_all(b"three\nfour\n").unwrap();
    drop(input);
    let run = Run::from(child.wait_with_output().unwrap());
    assert!(matches!(run.code, Some(1 | 2)), "{}", run.stdout);
    assert!(run.stderr.contains("removed or moved"), "{}", run.stderr);
}

#[test]
fn an_input_that_cannot_be_read_to_its_end_ends_with_2() {
    let own = directory();
    let input = File::open(own.path()).unwrap();
    let args = ["record", ".", "--samples", "-"];
    let run = command(own.path(), &args).stdin(input).output().unwrap();
    assert_code(
        &Run::from(run),
        2,
        &["the input could not be read to the end"],
    );
}

#[test]
fn the_help_states_the_precedence_of_the_codes() {
    let own = directory();
    let help = run(own.path(), &["record", "--help"]).stdout;
    let order =
        "the first in the order 1, 2, 4, 3, 5 is returned, and the code of a signal only if none";
    assert!(help.contains(order), "{help}");
}

/// 19 options in one list are not found by anybody.
#[test]
fn the_help_of_record_has_four_groups() {
    let own = directory();
    let help = run(own.path(), &["record", "--help"]).stdout;
    let at = |heading: &str| help.find(&format!("\n{heading}:\n")).unwrap();
    let groups = ["Samples", "Writing", "Results", "Server"].map(at);
    assert!(groups.is_sorted(), "{help}");
    let ends = groups.iter().skip(1).copied().chain([help.len()]);
    for ((start, end), options) in groups.iter().zip(ends).zip([
        &["--rate", "--samples <", "--for"][..],
        &["--buffer", "--policy", "--compare"],
        &["--json", "--fail-if", "--quiet"],
        &["--serve", "--auth"],
    ]) {
        for option in options {
            assert!(help[*start..end].contains(option), "{option} in {help}");
        }
    }
}
