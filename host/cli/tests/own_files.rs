//! `analyze` reads what the other commands write.

use crate::common;

use common::{directory, done, json, number};
use std::fs;
use std::path::Path;

fn recordings() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/recordings")
}

/// Checks the number of samples and the median interval in us.
fn check(directory: &Path, file: &str, samples: u64, step_us: f64) {
    let figures = json(directory, &["analyze", file]);
    assert_eq!(number(&figures["cadence"], "samples"), samples, "{file}");
    assert_eq!(figures["cadence"]["median_interval_us"], step_us, "{file}");
}

#[test]
fn an_export() {
    let directory = directory();
    let recording = recordings().join("REC00002.BIN");
    let recording = recording.to_str().unwrap();
    common::run(directory.path(), &["export", recording, "--csv", "r.csv"]);
    check(directory.path(), "r.csv", 160, 10_000.0);
}

#[test]
fn a_recovered_recording() {
    let directory = directory();
    let folder = directory.path().join("LOG");
    fs::create_dir_all(folder.join("REC00000")).unwrap();
    let part = "REC00000/REC00001.CSV.part";
    fs::copy(recordings().join("cut-off").join(part), folder.join(part)).unwrap();
    done(directory.path(), &["recover", "LOG"]);
    let text = fs::read_to_string(folder.join("REC00000/REC00001.CSV")).unwrap();
    let rows = text.lines().filter(|line| !line.contains('#')).count() as u64 - 1;
    check(
        directory.path(),
        "LOG/REC00000/REC00001.CSV",
        rows,
        10_000.0,
    );
}

#[test]
fn a_recording_of_given_samples() {
    for (head, header) in [
        ("time_ms,v\n", "time_ms,v"),
        ("# made by hand\r\n\r\ntime_ms;v\r\n", "time_ms;v"),
    ] {
        let directory = directory();
        let separator = if header.contains(';') { ';' } else { ',' };
        let rows = (0..50).map(|row| format!("{}{separator}7\n", row * 10));
        let text = format!("{head}{}", rows.collect::<String>());
        fs::write(directory.path().join("in.csv"), text).unwrap();
        fs::create_dir(directory.path().join("to")).unwrap();
        let run = common::run(directory.path(), &["record", "to", "--samples", "in.csv"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let path = "to/REC00000/REC00001.CSV";
        let text = fs::read_to_string(directory.path().join(path)).unwrap();
        assert_eq!(text.lines().next(), Some(header));
        check(directory.path(), path, 50, 10_000.0);
        // The resulting recording can itself be recorded again.
        fs::create_dir(directory.path().join("again")).unwrap();
        let run = common::run(directory.path(), &["record", "again", "--samples", path]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        check(
            directory.path(),
            "again/REC00000/REC00001.CSV",
            50,
            10_000.0,
        );
        let run = common::run(
            directory.path(),
            &["record", "sim:generic-8g-class4@esp32", "--samples", path],
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
}
