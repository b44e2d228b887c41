//! Invalid input: one sentence with the file, the location and the remedy, exit code 2, and no change in the
//! directory.

use crate::common;

use common::{directory, done, refused, run, tree};
use std::fs;

#[test]
fn targets_that_cannot_be_measured() {
    let own = directory();
    fs::write(own.path().join("card.raw"), "not a directory").unwrap();
    let card = include_str!("../../../sim/card/profiles/class10-16g.toml");
    let board = include_str!("../../../sim/card/boards/esp32.toml");
    let files = [
        ("card.toml", card.to_string()),
        (
            "big.toml",
            card.replace("page_bytes = 4096", "page_bytes = 5000"),
        ),
        (
            "zero.toml",
            card.replace("log_blocks = 40", "log_blocks = 0"),
        ),
        ("odd.toml", card.replace("[flash]", "[flash]\ncolour = 3")),
        ("half.toml", card[..card.len() / 2].to_string()),
        ("fast.toml", board.replace("4_000_000", "0")),
    ];
    for (name, text) in files {
        fs::write(own.path().join(name), text).unwrap();
    }
    for (target, words) in [
        ("no/card", &["no/card: no such directory", "create it"][..]),
        (
            "card.raw",
            &["card.raw: not a directory", "cardiograph analyze"],
        ),
        ("two\nlines", &["two\\nlines: no such directory"]),
        ("", &["the name of the target is empty", "name a directory"]),
        ("sim:", &["there is no card named", "generic-16g-class10"]),
        (
            "sim:best@esp32",
            &["no card named \"best\"", "generic-16g-class10", "TOML file"],
        ),
        (
            "sim:class10-16g@pdp11",
            &["no board named \"pdp11\"", "esp32", "TOML file"],
        ),
        (
            "sim:none.toml",
            &["none.toml: no such file", "check the name"],
        ),
        (
            "sim:big.toml",
            &[
                "big.toml",
                "`flash.page_bytes` is 5000; it must be a power of two",
            ],
        ),
        (
            "sim:zero.toml",
            &["zero.toml", "`controller.log_blocks` is 0", "must be 1 to"],
        ),
        (
            "sim:odd.toml",
            &["odd.toml, line ", "unknown field `colour`", "expected"],
        ),
        ("sim:half.toml", &["half.toml"]),
        (
            "sim:card.toml@fast.toml",
            &["fast.toml", "`spi.clock_hz` is 0"],
        ),
    ] {
        refused(own.path(), &["bench", target], words);
    }
}

#[test]
fn workloads_that_cannot_be_run() {
    let own = directory();
    let cases: &[(&str, &[u8], &[&str])] = &[
        (
            "unknown-key",
            b"name = \"x\"\n[[phase]]\nfils = 3\n",
            &["line 3", "`fils`", "`files`"],
        ),
        (
            "top-key",
            b"name = \"x\"\ncolour = 3\n[[phase]]\n",
            &["line 2", "`colour`", "`phase`"],
        ),
        (
            "wrong-type",
            b"name = \"x\"\n[[phase]]\n\nfiles = \"3\"\n",
            &["line 4", "expected a whole number from 0"],
        ),
        (
            "negative",
            b"name = \"x\"\n[[phase]]\nfiles = -1\n",
            &["line 3", "`-1`"],
        ),
        (
            "word",
            b"name = \"x\"\n[[phase]]\nspan = \"week\"\n",
            &["line 3", "`week`", "`call`"],
        ),
        (
            "zero",
            b"name = \"x\"\n[[phase]]\nfiles = 0\n",
            &["phase 1: `files` must be 1 to"],
        ),
        (
            "second",
            b"name = \"x\"\n[[phase]]\n[[phase]]\nbytes_per_call = 2000000\n",
            &["phase 2: `bytes_per_call` must be 1 to 1048576"],
        ),
        (
            "huge",
            b"name = \"x\"\n[[phase]]\nbytes_per_call = 1048576\ncalls_per_file = 4294967295\n",
            &["phase 1: `calls_per_file` must be", "4 GiB"],
        ),
        ("empty", b"", &["missing field `name`"]),
        ("no-phase", b"name = \"x\"\n", &["missing field `phase`"]),
        (
            "phases",
            b"name = \"x\"\nphase = []\n",
            &["contains no [[phase]]", "docs/workloads.md"],
        ),
        (
            "twice",
            b"name = \"x\"\nname = \"y\"\n",
            &["line 2", "duplicate key"],
        ),
        ("no-toml", b"files: 3\n", &["line 1"]),
        ("nul", b"name = \"x\"\n\0\0\0\0", &["line 2"]),
        (
            "junk",
            b"\x7FELF\x80\x81\xFF\0junk",
            &["not a text file; use a TOML file"],
        ),
    ];
    for (name, text, words) in cases {
        let file = format!("{name}.toml");
        fs::write(own.path().join(&file), text).unwrap();
        let words = [&[file.as_str()], *words].concat();
        refused(own.path(), &["bench", "--workload", &file], &words);
    }
    fs::create_dir(own.path().join("folder.toml")).unwrap();
    for (name, words) in [
        (
            "magod3",
            &["no workload named magod3", "magod2-kept-open", "TOML file"][..],
        ),
        ("none.toml", &["none.toml: no such file", "check the name"]),
        ("folder.toml", &["folder.toml: ", "TOML file"]),
    ] {
        refused(own.path(), &["bench", "--workload", name], words);
    }
}

#[test]
fn the_largest_workload_that_is_allowed_does_not_overflow() {
    let own = directory();
    let text = "name = \"x\"\n[[phase]]\nfiles = 100000\npasses = 100000\n\
        bytes_per_call = 1048576\ncalls_per_file = 4095\n";
    fs::write(own.path().join("all.toml"), text).unwrap();
    let args = ["bench", "--workload", "all.toml", "--for", "1s"];
    assert!(done(own.path(), &args).contains("stopped after 1s"));
}

#[test]
fn results_that_cannot_be_written() {
    let own = directory();
    fs::write(own.path().join("there"), "older").unwrap();
    fs::write(own.path().join("t-2.csv"), "older").unwrap();
    std::os::unix::fs::symlink("nowhere", own.path().join("link")).unwrap();
    let trace = "index,start_us,end_us\n0,0,272\n1,272,586\n";
    fs::write(own.path().join("trace"), trace).unwrap();
    for command in [&["bench"][..], &["analyze", "trace"]] {
        for option in ["--json", "--html", "--markdown", "--trace", "--csv"] {
            for (path, words) in [
                (
                    "there",
                    &["there: already exists", "choose another name"][..],
                ),
                (
                    "link",
                    &[
                        "link: exists and is not an ordinary file",
                        "choose another name",
                    ],
                ),
                (
                    "no/such",
                    &["no/such: the directory does not exist", "create it"],
                ),
                ("there/x", &["there/x: ", "choose another location"]),
            ] {
                refused(own.path(), &[command, &[option, path]].concat(), words);
            }
        }
        for (outputs, words) in [
            (
                &["--json", "a", "--csv", "a"][..],
                &["a: requested twice", "to its own file"][..],
            ),
            (
                &["--html", "a", "--trace", "./a"],
                &["./a: requested twice", "to its own file"],
            ),
            (
                &["--json", "-", "--csv", "-"],
                &["only one", "write the others to files"],
            ),
            (&["--html", "-"], &["--html and --trace need a file"]),
            (&["--trace", "-"], &["--html and --trace need a file"]),
        ] {
            refused(own.path(), &[command, outputs].concat(), words);
        }
    }
    for (outputs, words) in [
        (
            ["--csv", "t.csv"],
            &["t-2.csv: already exists", "choose another name"][..],
        ),
        (
            ["--csv", "-"],
            &["CSV of a single run only", "pass a file name to --csv"],
        ),
    ] {
        let args = [&["bench", "--repeat", "3"], &outputs[..]].concat();
        refused(own.path(), &args, words);
        let args = [&["analyze", "trace", "trace", "trace"], &outputs[..]].concat();
        refused(own.path(), &args, words);
    }
}

#[test]
fn options_that_make_no_sense() {
    let own = directory();
    for line in [
        "bench --repeat 0",
        "bench --repeat -1",
        "bench --repeat 1001",
        "bench --for soon",
        "bench --for 5",
        "bench --for -5s",
        "bench --for 600years",
        "bench --stall-threshold 50",
        "bench --io fast",
        "bench . --seed 2",
        "record --compare --policy naive",
        "bench --json",
        "bench a b",
        "analyze",
        "analyze x --block-bytes 0",
        "analyze x --block-bytes 99999999999",
        "frobnicate",
    ] {
        let run = run(own.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, Some(2), "{line}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{line}: {}", run.stderr);
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{line}");
    }
    assert!(tree(own.path()).is_empty());
}

#[test]
fn every_output_that_cannot_be_written_is_named() {
    let own = directory();
    fs::write(own.path().join("times.csv"), "latency_us\n812\n790\n").unwrap();
    let outputs = ["--json", "no/a", "--csv", "no/b", "--html", "c"];
    let output = run(
        own.path(),
        &[&["analyze", "times.csv"], &outputs[..]].concat(),
    );
    assert_eq!(output.code, Some(2));
    let errors = output.stderr;
    for path in ["no/a", "no/b"] {
        let start = format!("error: {path}: the directory does not exist");
        assert!(
            errors.lines().any(|line| line.starts_with(&start)),
            "{errors}"
        );
    }
    assert_eq!(errors.lines().count(), 2, "{errors}");
}

/// An image has no directory to record to until it is mounted.
#[test]
fn the_image_of_a_card_is_named_with_the_command_that_mounts_it() {
    let own = directory();
    let mut sector = vec![0; 512];
    sector[510..].copy_from_slice(&[0x55, 0xAA]);
    fs::write(own.path().join("my card"), &sector).unwrap();
    fs::write(own.path().join("card.img"), "").unwrap();
    for (file, quoted) in [("my card", "'my card'"), ("card.img", "card.img")] {
        let words = format!(
            "{file}: the image of a card, not a directory; mount it and name the mount point: mount -o loop {quoted} DIRECTORY"
        );
        for command in ["record", "bench"] {
            refused(own.path(), &[command, file], &[&words]);
        }
    }
}
