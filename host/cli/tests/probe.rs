//! `cardiograph probe`, and `fit` with its result.

use crate::common;

use common::signals::{PATIENCE, end_within};
use common::{command, data, directory, done, names, refused, results_in, run};
use std::fs;

const CARD: &str = "sim:apacer-1g-slc@linux-reader";

#[test]
fn a_simulated_card_is_probed_and_its_values_are_kept_by_a_fit() {
    let own = directory();
    let outputs = ["--json", "probe.json", "--markdown", "probe.md"];
    let table = run(own.path(), &[&["probe", CARD], &outputs[..]].concat());
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    // It states the limits before it begins.
    let limits = "writes at most 4 GB and takes at most 10m of virtual time";
    assert!(table.stderr.contains(limits), "{}", table.stderr);
    for line in [
        "  page                         4 KiB    99 %",
        "  unit                         128 KiB  99 %",
    ] {
        assert!(table.stdout.contains(line), "{}", table.stdout);
    }
    let markdown = fs::read_to_string(own.path().join("probe.md")).unwrap();
    assert!(markdown.contains("| open units | 2 | 95 % |"), "{markdown}");
    let card = results_in(&own.path().join("probe.json"));
    assert_eq!(card["page_bytes"]["value"], 4096);
    assert_eq!(card["log_bytes"]["value"], 524_288);
    assert_eq!(card["collects_while_idle"]["value"], false);

    let writes = data("traces/cardiograph.csv").display().to_string();
    let fit = ["fit", &writes, "--probe", "probe.json", "--trials", "20"];
    done(own.path(), &[&fit[..], &["--profile", "p.toml"]].concat());
    let profile = fs::read_to_string(own.path().join("p.toml")).unwrap();
    for line in [
        "page_bytes = 4096\n",
        "pages_per_block = 32\n",
        "open_units = 2\n",
        // Two bits per cell: a log block has half the pages of a unit, and one more is being freed.
        "log_blocks = 9\n",
        "fast_zone_units = 1\n",
    ] {
        assert!(profile.contains(line), "{line}{profile}");
    }
}

#[test]
fn targets_and_results_that_cannot_be_used_are_refused() {
    let own = directory();
    fs::write(own.path().join("file"), "text").unwrap();
    fs::create_dir(own.path().join("folder")).unwrap();
    for (args, words) in [
        (
            &["probe", "no"][..],
            &["no", "name a directory on the card"][..],
        ),
        (&["probe", "file"], &["file", "not a directory"]),
        (&["probe", "sim:none"], &["none"]),
        (
            &["probe", CARD, "--json", "-", "--markdown", "-"],
            &["only one result"],
        ),
        (
            &["probe", "folder", "--any-file-system", "--max-bytes", "1MB"],
            &["folder", "at least 32 MiB", "raise --max-bytes"],
        ),
    ] {
        refused(own.path(), args, words);
    }
    let writes = data("traces/cardiograph.csv").display().to_string();
    for (text, word) in [
        ("", "EOF"),
        (
            "{\"command\": \"bench\", \"results\": []}",
            "not the result of one probe",
        ),
        ("[1, 2]", "invalid type"),
    ] {
        fs::write(own.path().join("probe.json"), text).unwrap();
        let args = ["fit", &writes, "--probe", "probe.json"];
        refused(
            own.path(),
            &args,
            &["probe.json", word, "cardiograph probe --json"],
        );
    }
    let args = ["fit", &writes, "--probe", "folder"];
    refused(own.path(), &args, &["folder", "not a file"]);
}

#[test]
fn a_directory_is_probed_with_a_file_that_is_removed() {
    let (own, medium) = (directory(), directory());
    let name = medium.path().to_str().unwrap();
    let limits = ["--max-bytes", "80MB", "--max-time", "20s"];
    let args = [&["probe", name, "--any-file-system"], &limits[..]].concat();
    let probe = run(own.path(), &args);
    match probe.code {
        Some(0) => assert!(probe.stdout.contains("  page  "), "{}", probe.stdout),
        // Temporary directories may be in memory, or without direct access.
        code => assert!(
            code == Some(2)
                && (probe.stderr.contains("in memory") || probe.stderr.contains("direct access")),
            "{}",
            probe.stderr
        ),
    }
    assert_eq!(names(medium.path()), [""; 0]);
}

#[test]
fn ctrl_c_removes_the_file() {
    let (own, medium) = (directory(), directory());
    let name = medium.path().to_str().unwrap();
    let mut probe = command(own.path(), &["probe", name, "--any-file-system"]);
    let mut child = probe.spawn().unwrap();
    let file = medium.path().join("cardiograph-probe.tmp");
    // The command ends early if the temporary directory cannot be probed.
    let mut has_ended = || child.try_wait().unwrap().is_some();
    while !file.exists() {
        if has_ended() {
            assert_eq!(names(medium.path()), [""; 0]);
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let run = end_within(child, "-INT", PATIENCE);
    assert!(matches!(run.code, Some(2 | 130)), "{}", run.stderr);
    assert_eq!(names(medium.path()), [""; 0]);
}
