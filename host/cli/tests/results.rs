//! The results files of studies 1 and 3: written by `bench`, read again by `analyze`.

use crate::common;

use common::{directory, done, json, refused};
use std::fs;

/// Latencies by file, from Cardiograph's own CSV.
fn latencies_ns(text: &str) -> Vec<Vec<u64>> {
    let mut files: Vec<Vec<u64>> = Vec::new();
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let number = |index: usize| fields[index].parse::<u64>().unwrap();
        let file = number(1) as usize;
        files.resize_with(files.len().max(file + 1), Vec::new);
        files[file].push(number(5) - number(4));
    }
    files
}

#[test]
fn the_library_comparison_has_the_figures_of_its_trace() {
    let own = directory();
    let bench = ["bench", "--workload", "library-comparison", "--csv"];
    let args = [&bench[..], &["r.csv", "--csv-format", "library-comparison"]].concat();
    let measured = json(own.path(), &args);
    let read = json(own.path(), &["analyze", "r.csv"]);
    assert_eq!(read["input"], "summary");
    for key in ["writes", "payload_bytes"] {
        assert_eq!(read[key], measured[key], "{key}");
    }
    for key in [
        "/latency_us/min",
        "/latency_us/mean",
        "/latency_us/worst_case",
        "/throughput_bytes_per_s/mean",
        "/throughput_bytes_per_s/worst_case",
        "/operations_per_s",
    ] {
        let [read, measured] =
            [&read, &measured].map(|figures| figures.pointer(key).unwrap().as_f64().unwrap());
        // Both are rounded to thousandths.
        assert!(
            (read - measured).abs() < 0.0011,
            "{key}: {read}, {measured}"
        );
    }

    done(own.path(), &[&bench[..], &["t.csv"]].concat());
    let files = latencies_ns(&fs::read_to_string(own.path().join("t.csv")).unwrap());
    let text = fs::read_to_string(own.path().join("r.csv")).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|row| row.split(',').map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!((rows.len(), files.len()), (30, 30));
    for (index, (row, ns)) in rows.iter().zip(&files).enumerate() {
        let size_kib = [64, 256, 1024][index % 3];
        assert_eq!(
            row[..3],
            [(index / 3 + 1) as f64, f64::from(size_kib), 512.0]
        );
        let (sum_s, count) = (ns.iter().sum::<u64>() as f64 / 1e9, ns.len() as f64);
        let expected = [
            f64::from(size_kib) / 1024.0 / sum_s,
            sum_s * 1e3 / count,
            *ns.iter().min().unwrap() as f64 / 1e6,
            *ns.iter().max().unwrap() as f64 / 1e6,
            count / sum_s,
        ];
        for (found, expected) in row[3..].iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{row:?}");
        }
    }
}

#[test]
fn the_results_of_magod2_have_the_figures_of_their_trace() {
    let own = directory();
    for (workload, reopens) in [("magod2", 1), ("magod2-kept-open", 0)] {
        let bench = ["bench", "--workload", workload, "--csv"];
        let name = format!("{workload}.csv");
        let args = [&bench[..], &[&name, "--csv-format", "magod2"]].concat();
        let measured = json(own.path(), &args);
        let text = fs::read_to_string(own.path().join(&name)).unwrap();
        let lines = [
            "Bytes per line,100".to_string(),
            "Lines per file,1000".to_string(),
            "Amount of files,10".to_string(),
            "Delay between writes,100".to_string(),
            format!("Open and close file between writes [0/1],{reopens}"),
        ];
        assert_eq!(text.lines().skip(1).take(5).collect::<Vec<_>>(), lines);
        let read = json(own.path(), &["analyze", &name]);
        assert_eq!(read["workload"], workload);
        for key in ["writes", "payload_bytes"] {
            assert_eq!(read[key], measured[key], "{key}");
        }
        // Whole microseconds, rounded down.
        for key in ["min", "mean", "worst_case"] {
            let [read, measured] =
                [&read, &measured].map(|figures| figures["latency_us"][key].as_f64().unwrap());
            assert!((read - measured).abs() <= 1.0, "{key}: {read}, {measured}");
        }
    }
}

#[test]
fn a_trace_that_does_not_fit_is_refused() {
    let own = directory();
    done(
        own.path(),
        &[
            "bench",
            "--workload",
            "blinky-interleaved",
            "--csv",
            "t.csv",
        ],
    );
    for (format, why) in [
        ("magod2", "returns to a file"),
        ("library-comparison", "KiB"),
    ] {
        let csv = ["analyze", "t.csv", "--csv", "r.csv", "--csv-format", format];
        let args = [&csv[..], &["--json", "f.json"]].concat();
        let run = common::run(own.path(), &args);
        common::assert_refused(&run, &["t.csv: ", why, "use --csv-format cardiograph"]);
        assert_eq!(common::names(own.path()), ["t.csv"]);
    }
    let recording = common::data("magod/f2_1.csv").display().to_string();
    let args = ["analyze", &recording, "--csv", "r.csv"];
    let run = common::run(
        own.path(),
        &[&args[..], &["--csv-format", "magod2"]].concat(),
    );
    common::assert_refused(&run, &["f2_1.csv: contains no individual writes"]);
    let run = common::run(own.path(), &["bench", "--csv-format", "magod2"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--csv <FILE>"), "{}", run.stderr);
    refused(
        own.path(),
        &[
            "analyze",
            "t.csv",
            "--csv",
            "t.csv",
            "--csv-format",
            "magod2",
        ],
        &["t.csv: is an input of this command"],
    );
}
