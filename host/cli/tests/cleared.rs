//! Folders that `bench` and `check` create in a directory: removed in every case that permits it, and named otherwise.

#![cfg(target_os = "linux")]

use crate::common;

use common::signals::{end, wait_for_handler, wait_until};
use common::{
    Run, assert_refused, command, directory, json_with_code, names, refused, results_in, run, tree,
};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command};

/// A short check, which calls no card genuine.
const CHECK: [&str; 4] = ["check", "--allow-root-file-system", "--limit", "1MiB"];

/// Writes for the given number of hundredths of a second.
fn paced(writes: u32) -> String {
    format!("name = \"paced\"\n[[phase]]\ncalls_per_file = {writes}\ndelay_us = 10000\n")
}

/// Starts a run in the directory `card`, and waits until it has written.
fn start(own: &Path, card: &str, writes: u32, folder: &str) -> Child {
    fs::write(own.join("paced.toml"), paced(writes)).unwrap();
    let args = [
        "bench",
        card,
        "--workload",
        "paced.toml",
        "--io",
        "buffered",
    ];
    let child = command(own, &args).spawn().unwrap();
    wait_for_handler(&child);
    let file = own.join(card).join(folder).join("test_0/temp_0.txt");
    wait_until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    child
}

fn finished(child: Child) -> Run {
    Run::from(child.wait_with_output().unwrap())
}

fn warning(card: &str, folder: &str, command: &str, remedy: &str) -> String {
    format!(
        "warning: {card}/{folder} is from another run of `cardiograph {command}`, which is running or was killed; if none is \
         running, remove it: {remedy}\n"
    )
}

#[test]
fn a_killed_bench_is_named_by_the_next_bench_and_check() {
    let own = directory();
    // A name that `rm` would take for options.
    let card = own.path().join("-my card");
    fs::create_dir(&card).unwrap();
    fs::write(card.join("mine"), "mine").unwrap();
    let mut child = start(own.path(), "./-my card", 10_000, "writeTimeTemp");
    child.kill().unwrap();
    child.wait().unwrap();
    let before = tree(&card);
    let remedy = "rm -r './-my card/writeTimeTemp'";
    let named = warning("-my card", "writeTimeTemp", "bench", remedy);
    fs::write(own.path().join("quick.toml"), paced(2)).unwrap();
    let args = ["bench", "-q", "--workload", "quick.toml", "--", "-my card"];
    let bench = run(own.path(), &args);
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    assert_eq!(bench.stderr, named);
    let check = run(
        own.path(),
        &[&CHECK[..], &["-q", "--", "-my card"]].concat(),
    );
    assert_eq!(check.code, Some(6), "{}", check.stderr);
    assert_eq!(check.stderr, named);
    assert!(tree(&card) == before, "nothing was removed");
    let mut shell = Command::new("sh");
    let removed = shell.args(["-c", remedy]).current_dir(own.path()).status();
    assert!(removed.unwrap().success());
    assert_eq!(names(&card), ["mine"]);
    json_with_code(own.path(), &[&CHECK[..], &["./-my card"]].concat(), 6);
}

/// The first run to begin is the first to end.
#[test]
fn runs_at_the_same_time_leave_nothing_and_do_not_disturb_each_other() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    let first = start(own.path(), "card", 100, "writeTimeTemp");
    let second = start(own.path(), "card", 200, "writeTimeTemp_1");
    let third = start(own.path(), "card", 300, "writeTimeTemp_2");
    for child in [first, second, third] {
        let run = finished(child);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    assert_eq!(names(&own.path().join("card")), [""; 0]);
}

#[test]
fn a_link_in_place_of_the_folder_is_not_followed() {
    let own = directory();
    let (card, elsewhere) = (own.path().join("card"), own.path().join("elsewhere"));
    fs::create_dir(&card).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, card.join("writeTimeTemp")).unwrap();
    let child = start(own.path(), "card", 20, "writeTimeTemp_1");
    assert_eq!(names(&elsewhere), [""; 0]);
    let run = finished(child);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(names(&card), ["writeTimeTemp"]);
}

#[test]
fn a_directory_that_is_renamed_is_cleared_where_it_is() {
    let own = directory();
    let check = ["check", "--allow-root-file-system", "--limit", "64MiB"];
    for (args, folder, code) in [
        (
            &["bench", "--workload", "paced.toml"][..],
            "writeTimeTemp",
            0,
        ),
        (&check, "cardiograph-check-0", 6),
    ] {
        let (card, moved) = (own.path().join("card"), own.path().join("moved"));
        fs::create_dir(&card).unwrap();
        fs::write(own.path().join("paced.toml"), paced(100)).unwrap();
        let child = command(own.path(), &[args, &["card"]].concat())
            .spawn()
            .unwrap();
        wait_until(|| card.join(folder).exists());
        fs::rename(&card, &moved).unwrap();
        let run = finished(child);
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        assert_eq!(names(&moved), [""; 0], "{args:?}");
        fs::remove_dir(&moved).unwrap();
    }
}

/// Runs the command at the end of the message; returns true if it succeeds.
fn follow_remedy(directory: &Path, run: &Run) -> bool {
    let command = run.stderr.trim_end().rsplit(": ").next().unwrap();
    let mut shell = Command::new("sh");
    let done = shell.args(["-c", command]).current_dir(directory).output();
    done.unwrap().status.success()
}

/// Folders of a directory with this attribute cannot be removed.
#[test]
#[ignore = "needs root and chattr"]
fn a_folder_that_cannot_be_removed_is_named() {
    let own = directory();
    let card = own.path().join("my card");
    fs::create_dir(&card).unwrap();
    let attribute = |change: &str| {
        let mut chattr = Command::new("chattr");
        let done = chattr.arg(change).arg(&card).output();
        done.is_ok_and(|done| done.status.success())
    };
    fs::write(own.path().join("paced.toml"), paced(20)).unwrap();
    let args = [
        &["bench", "--workload", "paced.toml"][..],
        &["bench", "--workload", "paced.toml", "--precondition"],
        &CHECK,
    ];
    for args in args {
        if !attribute("+a") {
            eprintln!("no attributes of files here: not tested");
            return;
        }
        let run = run(own.path(), &[args, &["my card"]].concat());
        let left = names(&card);
        let is_followed = follow_remedy(own.path(), &run);
        assert!(attribute("-a"));
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        let [left] = &left[..] else {
            panic!("{args:?} left {left:?}");
        };
        let sentence = format!(
            "error: my card/{left}: could not be removed (Operation not permitted (os error 1)); "
        );
        assert!(run.stderr.contains(&sentence), "{}", run.stderr);
        assert!(is_followed, "{}", run.stderr);
        assert_eq!(names(&card), [""; 0], "{}", run.stderr);
    }
}

#[test]
#[ignore = "needs root and chattr"]
fn files_that_became_immutable_are_the_reason_and_not_files_of_others() {
    for locked in ["card", "card/writeTimeTemp/test_0/temp_0.txt"] {
        let own = directory();
        let card = own.path().join("card");
        fs::create_dir(&card).unwrap();
        fs::write(own.path().join("paced.toml"), paced(100)).unwrap();
        let attribute = |change: &str| {
            let mut chattr = Command::new("chattr");
            let done = chattr.args(["-R", change, locked]).current_dir(own.path());
            done.output().is_ok_and(|done| done.status.success())
        };
        let child = start(own.path(), "card", 100, "writeTimeTemp");
        if !attribute("+i") {
            eprintln!("no attributes of files here: not tested");
            finished(child);
            return;
        }
        let run = finished(child);
        let is_followed = follow_remedy(own.path(), &run);
        attribute("-i");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let cause = "writeTimeTemp: could not be removed (Operation not permitted";
        assert!(run.stderr.contains(cause), "{}", run.stderr);
        assert!(!run.stderr.contains("not empty"), "{}", run.stderr);
        assert!(is_followed, "{}", run.stderr);
        assert_eq!(names(&card), [""; 0]);
    }
}

#[test]
fn a_check_that_is_ended_names_what_it_could_not_remove() {
    let own = directory();
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    let child = command(
        own.path(),
        &["check", "card", "-q", "--allow-root-file-system"],
    )
    .spawn()
    .unwrap();
    wait_for_handler(&child);
    wait_until(|| card.join("cardiograph-check-0/00000.bin").exists());
    fs::rename(card.join("cardiograph-check-0"), own.path().join("moved")).unwrap();
    let run = end(child, "-INT");
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    for words in ["moved: could not be removed", "remove it: rm -r /"] {
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
    assert_eq!(names(&own.path().join("moved")), [""; 0]);
}

/// The folder of a run is moved, and a link or folder with the user's files takes its place.
#[test]
fn a_bench_removes_nothing_in_place_of_its_folder() {
    let replacements = [
        ("writeTimeTemp", "link"),
        ("writeTimeTemp", "folder"),
        ("writeTimeTemp/test_0", "link"),
    ];
    for (place, kind) in replacements {
        for signal in [None, Some("-INT")] {
            println!("{place} {kind} {signal:?}");
            let own = directory();
            let (card, moved) = (own.path().join("card"), own.path().join("moved"));
            fs::create_dir(&card).unwrap();
            let thesis = match place.contains('/') {
                true => "mine/temp_0.txt",
                false => "mine/test_0/temp_0.txt",
            };
            let thesis = own.path().join(thesis);
            fs::create_dir_all(thesis.parent().unwrap()).unwrap();
            fs::write(&thesis, "thesis").unwrap();
            let child = start(own.path(), "card", 100, "writeTimeTemp");
            fs::rename(card.join(place), &moved).unwrap();
            let mine = own.path().join("mine");
            match kind {
                "link" => std::os::unix::fs::symlink(&mine, card.join(place)).unwrap(),
                _ => fs::rename(&mine, card.join(place)).unwrap(),
            }
            let run = match signal {
                Some(signal) => end(child, signal),
                None => finished(child),
            };
            let found = match kind {
                "link" => thesis,
                _ => card.join("writeTimeTemp/test_0/temp_0.txt"),
            };
            assert_eq!(fs::read(found).unwrap(), b"thesis");
            assert_ne!(run.code, Some(0), "{}", run.stderr);
            // A folder within that of the run was moved: nobody knows where.
            if place == "writeTimeTemp" {
                for words in ["could not be removed", "remove it: rm -r "] {
                    assert!(run.stderr.contains(words), "{}", run.stderr);
                }
            }
        }
    }
}

/// A file of the run is moved, and one of the user's takes its place.
#[test]
fn a_file_in_place_of_one_of_the_run_stays() {
    let check = ["check", "-q", "--allow-root-file-system"];
    for args in [&["bench", "--workload", "paced.toml"][..], &check] {
        for signal in [None, Some("-INT")] {
            // A check of all the free space takes too long.
            if args[0] == "check" && signal.is_none() {
                continue;
            }
            let own = directory();
            let card = own.path().join("card");
            fs::create_dir(&card).unwrap();
            fs::write(own.path().join("paced.toml"), paced(100)).unwrap();
            fs::write(own.path().join("mine"), "mine").unwrap();
            let child = command(own.path(), &[args, &["card"]].concat()).spawn();
            let child = child.unwrap();
            let folder = match args[0] {
                "bench" => card.join("writeTimeTemp"),
                _ => card.join("cardiograph-check-0"),
            };
            let mine = match args[0] {
                "bench" => folder.join("test_0/temp_0.txt"),
                _ => folder.join("00000.bin"),
            };
            wait_for_handler(&child);
            wait_until(|| fs::metadata(&mine).is_ok_and(|file| file.len() > 0));
            fs::rename(&mine, own.path().join("moved")).unwrap();
            fs::rename(own.path().join("mine"), &mine).unwrap();
            let run = match signal {
                Some(signal) => end(child, signal),
                None => finished(child),
            };
            assert_ne!(run.code, Some(0), "{args:?}: {}", run.stderr);
            assert!(!run.stderr.contains("do not use"), "{}", run.stderr);
            for words in ["could not be removed (it ", "move", "elsewhere first"] {
                assert!(run.stderr.contains(words), "{args:?}: {}", run.stderr);
            }
            assert_eq!(fs::read(&mine).unwrap(), b"mine", "{args:?} {signal:?}");
        }
    }
}

/// The files of a directory that is removed meanwhile are gone as well.
#[test]
fn a_directory_that_is_removed_ends_the_run_with_one_sentence() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    let child = start(own.path(), "card", 200, "writeTimeTemp");
    fs::remove_dir_all(own.path().join("card")).unwrap();
    let run = finished(child);
    assert_refused(&run, &["card", "writeTimeTemp/test_0/temp_0.txt"]);
}

#[test]
fn a_limit_of_file_sizes_ends_the_run_with_one_sentence() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    fs::write(
        own.path().join("short.toml"),
        "name = \"short\"\n[[phase]]\n",
    )
    .unwrap();
    for args in [
        &[
            "bench",
            "card",
            "--workload",
            "short.toml",
            "--io",
            "buffered",
        ][..],
        &[
            "check",
            "card",
            "--limit",
            "4MiB",
            "--allow-root-file-system",
        ],
    ] {
        let mut shell = Command::new("sh");
        // In blocks of 512 or 1024 B.
        shell.args(["-c", "ulimit -f 512; exec \"$@\"", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_cardiograph")).args(args);
        let run = Run::from(shell.current_dir(own.path()).output().unwrap());
        assert_refused(&run, &["card", "ulimit -f"]);
        assert_eq!(names(&own.path().join("card")), [""; 0]);
    }
}

/// A stack of 64 KiB is less than parsing the command line takes.
#[test]
fn a_limit_of_the_stack_changes_nothing() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    for args in [
        &["bench", "card", "--io", "buffered", "--for", "100ms"][..],
        &[
            "check",
            "card",
            "--limit",
            "1MiB",
            "--allow-root-file-system",
        ],
        &[
            "flash-benchmark",
            "card",
            "--experiment",
            "file-size",
            "--limit",
            "1MB",
        ],
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -s 64; exec \"$@\"", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_cardiograph")).args(args);
        let run = Run::from(shell.current_dir(own.path()).output().unwrap());
        // A part of the capacity was tested.
        let code = if args[0] == "check" { 6 } else { 0 };
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_limit_of_open_files_ends_the_run_with_one_sentence() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    for args in [
        &["bench", "card", "--io", "buffered"][..],
        &[
            "check",
            "card",
            "--limit",
            "1MiB",
            "--allow-root-file-system",
        ],
    ] {
        let mut shell = Command::new("sh");
        // Standard input, output and error, and one more.
        shell.args(["-c", "ulimit -n 4; exec \"$@\"", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_cardiograph")).args(args);
        let run = Run::from(shell.current_dir(own.path()).output().unwrap());
        assert_refused(&run, &["card", "ulimit -n"]);
        assert_eq!(names(&own.path().join("card")), [""; 0]);
    }
}

/// The writes of a part of the workload say nothing about the rest of it.
#[test]
fn a_run_that_ends_within_the_first_repeat_is_not_stable() {
    let own = directory();
    fs::write(own.path().join("paced.toml"), paced(100_000)).unwrap();
    let args = ["bench", ".", "--workload", "paced.toml", "--io", "buffered"];
    let options = ["--until-stable", "--for", "300ms", "--json", "f.json"];
    let run = run(own.path(), &[&args[..], &options].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures = results_in(&own.path().join("f.json"));
    let until_stable = &figures["trust"]["until_stable"];
    assert_eq!(until_stable["repeats"], 1);
    assert_eq!(until_stable["ended_by"], "time");
    assert_eq!(until_stable["is_stable"], false, "{until_stable}");
    let warning = "warning: the worst case is not stable: when --for ended the run, the workload had not been completed once; \
                   allow more time with --for";
    assert!(run.stdout.contains(warning), "{}", run.stdout);
    assert!(run.stdout.contains("no: the workload had not been"));
}

#[test]
fn remedies_lead_to_a_run() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    let refused = |args: &[&str], words: &[&str]| refused(own.path(), args, words);
    refused(
        &["check", "card", "--full"],
        &["card: --full applies to whole disks only", "remove it"],
    );
    for command in ["bench", "check", "flash-benchmark"] {
        refused(
            &[command, ""],
            &["the name of the target is empty; name a directory"],
        );
    }
    let small = run(own.path(), &["check", "card", "--limit", "1023KiB"]);
    assert_eq!(small.code, Some(2));
    let words = "too small for a check; use 1MiB or more";
    assert!(small.stderr.contains(words), "{}", small.stderr);
    json_with_code(own.path(), &[&CHECK[..], &["card"]].concat(), 6);
    let long = run(own.path(), &["bench", "card", "--for", "999999999999y"]);
    assert_eq!(long.code, Some(2));
    let words = "out of range; use 1ns to 584 years";
    assert!(long.stderr.contains(words), "{}", long.stderr);

    let name = OsStr::from_bytes(b"caf\xe9");
    fs::create_dir(own.path().join(name)).unwrap();
    for command in ["bench", "check", "flash-benchmark", "probe", "record"] {
        let mut cardiograph = Command::new(env!("CARGO_BIN_EXE_cardiograph"));
        cardiograph.arg(command).arg(name).current_dir(own.path());
        let run = Run::from(cardiograph.output().unwrap());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        for words in ["'caf\u{fffd}'", "the name is not UTF-8; rename it"] {
            assert!(run.stderr.contains(words), "{}", run.stderr);
        }
    }
}
