//! `reproduce`: published figures next to simulated ones, for the study that runs fastest.

use crate::common;

use common::{assert_self_contained, directory, done, refused, run};
use std::collections::BTreeSet;
use std::fs;

const STUDY: &str = "arduino-bytes";
const VERDICTS: [&str; 6] = [
    "not published",
    "not a card",
    "no result",
    "within 25 %",
    "within a factor of 2",
    "beyond a factor of 2",
];

fn is_verdict(line: &&str) -> bool {
    VERDICTS.iter().any(|verdict| line.ends_with(verdict))
}

/// Returns the number of rows in the study's file.
fn rows_published() -> usize {
    let study = include_str!("../../../studies/arduino-bytes.toml");
    study.lines().filter(|line| *line == "[[row]]").count()
}

#[test]
fn an_unknown_study_is_refused_with_those_there_are() {
    let words = [
        "magod3",
        "magod2",
        "flash-benchmark",
        "library-comparison",
        STUDY,
        "blinky",
    ];
    refused(directory().path(), &["reproduce", "magod3"], &words);
}

#[test]
fn rows_have_their_keys_and_come_out_the_same_twice() {
    let own = directory();
    let args = ["reproduce", STUDY, "--json", "-", "--html", "s.html"];
    let first = run(own.path(), &args);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let rows = common::results(&first.stdout);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), rows_published());
    let keys = [
        "study",
        "figure",
        "quantity",
        "unit",
        "role",
        "set_aside",
        "published",
        "is_upper_bound",
        "published_range",
        "simulated",
        "interval",
        "range",
        "ratio",
        "driver_timeouts",
    ];
    for row in rows {
        let found: BTreeSet<_> = row
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(found, BTreeSet::from(keys));
        assert_eq!(row["study"], STUDY);
        assert!(row["role"] == "fit" || row["role"] == "prediction", "{row}");
        assert!(row["simulated"].as_f64() > Some(0.0), "{row}");
        assert_eq!(row["interval"].as_array().map(Vec::len), Some(2), "{row}");
        assert_eq!(row["ratio"].is_null(), row["published"].is_null(), "{row}");
        if row["figure"] == "our stand-in on an emulated Mega" {
            assert!(row["range"].is_null() && row["role"] != "fit", "{row}");
            continue;
        }
        // All cards of this study are ensembles.
        let [low, high] = [0, 1].map(|at| row["range"][at].as_f64().unwrap());
        let simulated = row["simulated"].as_f64().unwrap();
        assert!(low <= simulated && simulated <= high, "{row}");
    }
    let table = &first.stderr;
    assert!(table.contains("Arduino Mega 2560"), "{table}");
    assert_eq!(
        table.lines().filter(is_verdict).count(),
        rows.len(),
        "{table}"
    );

    let html = fs::read_to_string(own.path().join("s.html")).unwrap();
    assert_self_contained(&html);
    assert!(html.contains("four files of 4096 B written in turn"));

    // If the rows go to a file, standard output contains only the table.
    let again = done(own.path(), &["reproduce", STUDY, "--json", "rows.json"]);
    assert_eq!(again, first.stderr);
    let rows = fs::read_to_string(own.path().join("rows.json")).unwrap();
    assert_eq!(rows, first.stdout);
}

#[test]
fn results_go_where_they_can_and_overwrite_nothing() {
    let own = directory();
    fs::write(own.path().join("s.html"), "mine").unwrap();
    for (option, file, words) in [
        ("--html", "-", &["--html needs a file"][..]),
        ("--html", "s.html", &["s.html", "exists"]),
        ("--json", "s.html", &["s.html", "exists"]),
        ("--json", "no/rows.json", &["no/rows.json"]),
    ] {
        refused(own.path(), &["reproduce", STUDY, option, file], words);
    }
}
