//! `cardiograph sweep`: answers, continuation, comparisons and bad input.

use crate::common;

use common::signals::{end, wait_for_handler};
use common::{command, directory, done, json, number, run};
use std::fs;
use std::path::Path;

const SMALL: &str = r#"
about = "A small <sweep>"
mode = "card"
cards = ["class10-16g"]
rates_hz = [860]
sample_bytes = 100
buffers_bytes = [1024, 65536]
run_s = 60
seeds = 4
seeds_per_task = 1
"#;

fn specify(folder: &Path, text: &str) {
    fs::write(folder.join("small.toml"), text).unwrap();
}

#[test]
fn the_outputs_name_the_mode_and_bounds_instead_of_zero() {
    let own = directory();
    let own = own.path();
    specify(own, SMALL);
    let quiet = [
        "sweep",
        "small.toml",
        "--quiet",
        "--html",
        "s.html",
        "--markdown",
        "s.md",
    ];
    let table = done(own, &quiet);
    assert!(table.contains("sweep · mode card · 4 tasks"), "{table}");
    assert!(table.contains("A small <sweep>"), "{table}");
    // 1 - 0.025^(1/4)
    assert!(table.contains("fewer than 60.2 %"), "{table}");
    let page = fs::read_to_string(own.join("s.html")).unwrap();
    assert!(page.contains("A small &lt;sweep&gt;") && page.contains("fewer than 60.2 %"));
    assert!(!page.contains("http"), "the page must work offline");
    let markdown = fs::read_to_string(own.join("s.md")).unwrap();
    assert!(
        markdown.contains("| class10-16g | esp32 | stream | 860 Hz | 64 KiB | fewer than 60.2 % |")
    );
    let figures = json(own, &["sweep", "small.toml", "--check", "2", "--quiet"]);
    assert_eq!(figures["mode"], "card");
    assert_eq!(number(&figures, "tasks"), 4);
    assert_eq!(number(&figures["check"], "runs"), 2);
    assert!(figures["plan_differences"].is_null());
}

#[test]
fn a_second_run_computes_nothing_and_another_specification_is_refused() {
    let own = directory();
    let own = own.path();
    specify(own, SMALL);
    done(own, &["sweep", "small.toml", "-o", "r", "--quiet"]);
    let files = || {
        let folder = own.join("r/results/card=class10-16g");
        let modified = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.unwrap();
            (
                entry.file_name(),
                entry.metadata().unwrap().modified().unwrap(),
            )
        };
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(modified).collect();
        files.sort();
        files
    };
    let before = files();
    assert_eq!(before.len(), 4);
    done(own, &["sweep", "small.toml", "-o", "r", "--quiet"]);
    assert_eq!(files(), before);
    specify(own, &SMALL.replace("seeds = 4", "seeds = 5"));
    let refused = run(own, &["sweep", "small.toml", "-o", "r"]);
    assert_eq!(refused.code, Some(2));
    let sentence = "error: r: holds results of another sweep: `seeds` is 4 there, and 5 here; choose another folder\n";
    assert_eq!(refused.stderr, sentence);
}

#[test]
fn bad_input_has_exit_code_2_and_creates_no_folder() {
    let own = directory();
    let own = own.path();
    for (text, args, expected) in [
        ("", &[][..], "missing field `mode`"),
        (
            SMALL,
            &["--jobs", "0"][..],
            "use a whole number from 1 to 1024",
        ),
        (
            SMALL,
            &["--json", "-", "--markdown", "-"],
            "only one result can go to standard output",
        ),
        (
            SMALL,
            &["--html", "no/such/place.html"],
            "the directory does not exist",
        ),
    ] {
        specify(own, text);
        let run = run(own, &[&["sweep", "small.toml"], args].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(
            run.stderr.contains(expected),
            "{}\ninstead of\n{expected}",
            run.stderr
        );
        assert!(!own.join("small-results").exists());
    }
    let missing = run(own, &["sweep", "none.toml"]);
    assert_eq!(
        missing.stderr,
        "error: none.toml: no such file; check the name\n"
    );
    let recorder = SMALL
        .replace("\"card\"", "\"recorder\"")
        .replace("run_s = 60", "run_s = 1");
    specify(own, &recorder);
    let checked = run(own, &["sweep", "small.toml", "--check", "1"]);
    assert!(
        checked.stderr.contains("has mode = \"recorder\" already"),
        "{}",
        checked.stderr
    );
}

#[test]
fn ctrl_c_names_the_tasks_done_and_leaves_only_whole_files() {
    let own = directory();
    let own = own.path();
    let long = SMALL
        .replace("run_s = 60", "run_s = 8640000")
        .replace("seeds = 4", "seeds = 500");
    specify(own, &long);
    let child = command(own, &["sweep", "small.toml"]).spawn().unwrap();
    wait_for_handler(&child);
    let run = end(child, "-INT");
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    let expected = " of 500 tasks; repeat the command to continue";
    assert!(run.stderr.contains("error: interrupted after ") && run.stderr.contains(expected));
    // 100 days of 86 kB/s are 743,040 MB: at 30 us of a core per MB, 22.3 s, and 500 times that.
    let announced = "All 500 tasks take about ";
    assert!(run.stderr.starts_with(announced), "{}", run.stderr);
    // The lock is free again, and no partial file is left.
    let child = command(own, &["sweep", "small.toml"]).spawn().unwrap();
    wait_for_handler(&child);
    assert_eq!(end(child, "-TERM").code, Some(143));
    let folder = own.join("small-results/results/card=class10-16g");
    for entry in fs::read_dir(folder).into_iter().flatten() {
        assert_eq!(entry.unwrap().path().extension().unwrap(), "parquet");
    }
}
