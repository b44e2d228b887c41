//! Guarantees of the recorder in directories: signals, removed files, full file systems, foreign files.

use crate::common;

use common::promise::{assert_accounted, assert_nothing_lost, code, record, spawn};
use common::{Run, command, directory, names, number};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Timeout of all waits, far longer than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "timeout");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the recordings in a directory and its folders, including unfinished ones.
fn recordings(directory: &Path) -> Vec<std::path::PathBuf> {
    let files = common::tree(directory).into_iter();
    let is_one = |path: &Path| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("REC")
    };
    let files = files.filter(|(path, bytes)| bytes.is_some() && is_one(path));
    files.map(|(path, _)| path).collect()
}

/// Returns true if a file contains samples.
fn has_begun(directory: &Path) -> bool {
    let is_begun = |path: &std::path::PathBuf| {
        fs::read(path)
            .is_ok_and(|bytes| bytes.windows(14).any(|it| it.starts_with(b"00000000001,")))
    };
    recordings(directory).iter().any(is_begun)
}

fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args([name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn ended(child: Child) -> (Run, Value) {
    let run = Run::from(child.wait_with_output().unwrap());
    let figures = common::results_or_null(&run.stdout);
    (run, figures)
}

#[test]
fn each_signal_ends_a_recording_in_order_with_its_own_code() {
    for (name, code) in [
        ("-INT", code::INTERRUPTED),
        ("-TERM", code::TERMINATED),
        ("-HUP", code::HANGUP),
    ] {
        println!("{name}");
        let own = directory();
        let child = spawn(
            own.path(),
            ". --rate 500 --for 10min --buffer 4MiB --file-size 1MiB",
        );
        wait_until(|| has_begun(own.path()));
        signal(&child, name);
        let (run, figures) = ended(child);
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        assert_accounted(&run, &figures);
        assert_eq!(number(&figures, "samples_lost"), 0);
    }
}

#[test]
fn foreign_files_do_not_end_a_recording() {
    let own = directory();
    for name in ["IMG99988.JPG", "DSC99999.JPG", "REC99990.TXT"] {
        fs::write(own.path().join(name), name).unwrap();
    }
    let words = ". --rate 10000 --for 1s --buffer 4MiB --file-size 64KiB";
    let (run, figures) = record(own.path(), words);
    assert_nothing_lost(&run, &figures);
    assert!(number(&figures, "files") >= 14);
    for name in ["IMG99988.JPG", "DSC99999.JPG", "REC99990.TXT"] {
        assert_eq!(fs::read(own.path().join(name)).unwrap(), name.as_bytes());
    }
    // Files are numbered consecutively from 1.
    let files = recordings(own.path());
    let files = files.iter().filter(|path| !path.ends_with("REC99990.TXT"));
    let mut numbers: Vec<u32> = files
        .map(|path| {
            path.file_name().unwrap().to_str().unwrap()[3..8]
                .parse()
                .unwrap()
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        Vec::from_iter(1..=number(&figures, "files") as u32)
    );
}

#[test]
fn a_recording_whose_directory_is_removed_is_not_reported_as_complete() {
    for whole in [true, false] {
        println!("the whole directory: {whole}");
        let own = directory();
        let target = own.path().join("target");
        fs::create_dir(&target).unwrap();
        let words = "target --rate 500 --for 10min --buffer 4MiB --file-size 1MiB";
        let child = spawn(own.path(), words);
        wait_until(|| has_begun(&target));
        if whole {
            fs::remove_dir_all(&target).unwrap();
        } else {
            recordings(&target)
                .iter()
                .for_each(|path| fs::remove_file(path).unwrap());
        }
        signal(&child, "-INT");
        let (run, figures) = ended(child);
        println!("{}", run.stderr);
        assert!(!run.stderr.contains("none lost"), "{}", run.stderr);
        let expected = [code::UNACCOUNTED, code::REFUSED, code::LOST].map(Some);
        assert!(expected.contains(&run.code), "{:?}", run.code);
        if !figures.is_null() {
            // Samples of removed files do not count as written.
            let there = names(own.path()).contains(&"target".to_string())
                && !recordings(&target).is_empty();
            let is_whole =
                number(&figures, "samples_written") == number(&figures, "samples_pushed");
            assert!(!is_whole, "{there}: {figures}");
        }
    }
}

/// Returns true if a checkpoint mark in a file lists earlier blocks as durable.
fn is_durable(path: &std::path::PathBuf) -> bool {
    let is_mark = |bytes: &[u8]| {
        let hex =
            |at: usize| u32::from_str_radix(str::from_utf8(&bytes[at..at + 8]).ok()?, 16).ok();
        let is_one = bytes[0] == b'@' && bytes[9] == b' ' && bytes[18] == b' ' && bytes[27] == b' ';
        is_one && hex(1).is_some() && hex(10).is_some() && hex(19).is_some_and(|blocks| blocks > 0)
    };
    fs::read(path).is_ok_and(|bytes| bytes.windows(28).any(is_mark))
}

#[test]
fn samples_of_a_removed_unfinished_file_are_unaccounted_for() {
    let own = directory();
    let words = ". --rate 500 --for 10min --buffer 4MiB --file-size 1MiB --durability-window 100ms";
    let child = spawn(own.path(), words);
    wait_until(|| recordings(own.path()).iter().any(is_durable));
    for path in recordings(own.path()) {
        fs::remove_file(path).unwrap();
    }
    // Wait until the recording continues in another file.
    wait_until(|| recordings(own.path()).iter().any(is_durable));
    signal(&child, "-INT");
    let (run, figures) = ended(child);
    assert_eq!(run.code, Some(code::UNACCOUNTED), "{}", run.stderr);
    assert!(run.stderr.contains("unaccounted for"), "{}", run.stderr);
    assert_eq!(figures["verified"], false);
    let number = |name| number(&figures, name);
    let known = number("samples_written") + number("samples_lost");
    assert!(number("samples_written") > 0, "{figures}");
    assert!(known < number("samples_pushed"), "{figures}");
}

/// The lines of the table add up to the samples that were produced.
#[test]
fn the_table_counts_samples_of_a_removed_folder() {
    let own = directory();
    let words =
        "record . --rate 500 --for 10min --buffer 4MiB --file-size 1MiB --durability-window 100ms";
    let child = command(own.path(), &Vec::from_iter(words.split(' ')));
    let child = { child }.spawn().unwrap();
    wait_until(|| recordings(own.path()).iter().any(is_durable));
    fs::remove_dir_all(own.path().join("REC00000")).unwrap();
    wait_until(|| recordings(own.path()).iter().any(is_durable));
    signal(&child, "-INT");
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(code::UNACCOUNTED), "{}", run.stderr);
    let row = |name: &str| {
        let mut lines = run.stdout.lines();
        let rest = lines.find_map(|line| line.trim_start().strip_prefix(name));
        let rest = rest.unwrap_or_else(|| panic!("{name}: {}", run.stdout));
        let digits = rest.trim_start().replace(',', "");
        let digits = digits.split(' ').next().unwrap();
        digits.parse().unwrap_or(0_u64)
    };
    let parts = row("written") + row("lost") + row("unaccounted for");
    assert!(row("unaccounted for") > 0, "{}", run.stdout);
    assert_eq!(parts, row("produced"), "{}", run.stdout);
}

/// Runs `record` on a tmpfs of the given size; the last result is the contents of the files left on the
/// tmpfs.
fn on_small(size: &str, words: &str) -> (Run, Value, String) {
    const SCRIPT: &str = r#"
        size=$1; target=$2; shift 2
        mount -t tmpfs -o "size=$size" tmpfs "$target" || exit 99
        "$@"; code=$?
        echo "left:"; find "$target" -name 'REC*' -type f -exec cat {} +
        exit $code"#;
    let own = directory();
    let target = own.path().to_str().unwrap();
    let mut command = Command::new("unshare");
    command.args(common::mount::namespace(own.path()));
    command.args(["sh", "-c", SCRIPT, "sh", size, target]);
    command.args([env!("CARGO_BIN_EXE_cardiograph"), "record", target]);
    command.args(words.split(' ')).args(["--json", "-"]);
    let mut run = Run::from(command.output().unwrap());
    let (stdout, left) = run.stdout.rsplit_once("left:\n").expect("the script ran");
    let (stdout, left) = (stdout.to_string(), left.to_string());
    run.stdout = stdout;
    let figures = common::results_or_null(&run.stdout);
    (run, figures, left)
}

/// Returns the sample index of each line in the files. No line may be torn.
fn numbers(left: &str) -> Vec<u64> {
    let lines = left.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| {
        assert_eq!(
            line.trim_end_matches('\r').len(),
            98,
            "a torn line: {line:?}"
        );
        line[..11].parse().unwrap()
    });
    let mut numbers = Vec::from_iter(lines);
    numbers.sort_unstable();
    numbers
}

#[test]
fn the_only_file_that_fits_in_a_directory_contains_all_samples() {
    let words = "--rate 860 --sample-bytes 100 --for 3s --file-size 1MiB";
    let (run, figures, left) = on_small("1080k", words);
    assert_nothing_lost(&run, &figures);
    assert_eq!(numbers(&left), Vec::from_iter(0..2580));
}

#[test]
fn a_full_directory_has_its_exit_code_and_accounts_for_all_samples() {
    // 800 kB of samples on a file system of 400 KiB.
    let words = "--rate 8000 --for 1s --buffer 1MiB --file-size 64KiB";
    let (run, figures, left) = on_small("400k", words);
    assert_eq!(run.code, Some(code::FULL), "{}", run.stderr);
    assert_accounted(&run, &figures);
    let causes = figures["gaps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| &gap["cause"]);
    assert_eq!(Vec::from_iter(causes), ["card-full"], "{}", run.stderr);
    assert_eq!(
        numbers(&left).len() as u64,
        number(&figures, "samples_written")
    );
}

#[test]
fn every_stream_has_a_file_on_a_small_file_system() {
    for streams in ["2", "3", "4"] {
        let words = format!("--streams {streams} --format csv --rate 100 --for 1s --buffer 4MiB");
        let (run, figures, _) = on_small("2m", &words);
        assert_nothing_lost(&run, &figures);
    }
}
