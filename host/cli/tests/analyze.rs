//! `analyze`: figures of traces and recordings, compared with independent calculations.

use crate::common;

use common::{Source, assert_schema, data, directory, done, json, names, run};
use serde_json::{Value, json as literal};
use std::fs;

/// Removes the fields that not every trace format contains.
fn unnamed(mut figures: Value) -> Value {
    for name in ["target", "workload", "notes"] {
        figures.as_object_mut().unwrap().remove(name).unwrap();
    }
    figures
}

#[test]
fn a_trace_has_the_figures_of_its_measurement() {
    for workload in ["magod2-4.7", "blinky-interleaved", "byte-single-read"] {
        let directory = directory();
        let args = ["bench", "--workload", workload];
        let kept = ["--trace", "t.parquet", "--csv", "t.csv"];
        let measured = json(directory.path(), &[&args[..], &kept[..]].concat());
        let parquet = json(directory.path(), &["analyze", "t.parquet"]);
        let csv = json(directory.path(), &["analyze", "t.csv"]);
        // Parquet traces also contain the names of target and workload.
        assert_eq!(parquet, measured, "{workload}");
        assert_eq!(unnamed(csv), unnamed(measured), "{workload}");
    }
}

#[test]
fn a_trace_of_a_directory_has_the_figures_of_its_measurement() {
    let directory = directory();
    let args = ["bench", ".", "--io", "buffered", "--workload", "magod2-4.7"];
    let kept = ["--for", "1s", "--trace", "t.parquet", "--csv", "t.csv"];
    let measured = json(directory.path(), &[&args[..], &kept[..]].concat());
    let parquet = json(directory.path(), &["analyze", "t.parquet"]);
    let csv = json(directory.path(), &["analyze", "t.csv"]);
    // The trace has the measurement's notes, but not the warnings about its circumstances.
    let mut measured = measured;
    let notes = measured["notes"].as_array_mut().unwrap();
    let before = notes.len();
    notes.retain(|note| !note.as_str().unwrap().starts_with("Warning: "));
    assert!(notes.len() < before, "the page cache deserves a warning");
    // Nor does it have what was observed of clock and computer meanwhile.
    let trust = measured.as_object_mut().unwrap().remove("trust");
    assert!(trust.is_some_and(|trust| trust.is_object()));
    assert_eq!(parquet, measured);
    assert_eq!(unnamed(csv), unnamed(measured));
}

#[test]
fn a_trace_survives_being_read_and_written() {
    let directory = directory();
    done(
        directory.path(),
        &["bench", "--workload", "magod2-4.1", "--csv", "a.csv"],
    );
    done(
        directory.path(),
        &["analyze", "a.csv", "--trace", "b.parquet"],
    );
    done(
        directory.path(),
        &["analyze", "b.parquet", "--csv", "c.csv"],
    );
    let read = |name| fs::read(directory.path().join(name)).unwrap();
    assert!(read("a.csv") == read("c.csv"));
}

/// Returns the time column of a recording in ms, and the bytes of all lines except header and first sample.
fn samples(text: &str) -> (Vec<u64>, usize) {
    let rows = || text.split_inclusive('\n').skip(1);
    let times = rows().map(|row| row.split(',').next().unwrap().parse().unwrap());
    (times.collect(), rows().skip(1).map(str::len).sum())
}

/// Three runs of 50 samples each, of which the second lacks two; the numbers of the samples count on.
fn runs() -> String {
    let mut text = String::from("millis,n\n");
    for n in (0..150).filter(|n| ![70, 90].contains(n)) {
        text += &format!("{},{n}\n", 500 + n % 50 * 100 + n % 3);
    }
    text
}

#[test]
fn each_run_of_a_clock_has_figures_of_its_own() {
    let directory = directory();
    fs::write(directory.path().join("runs.csv"), runs()).unwrap();
    let figures = json(directory.path(), &["analyze", "runs.csv"]);
    let cadence = &figures["cadence"];
    assert_eq!(
        (&cadence["samples"], &cadence["missing_samples"]),
        (&literal!(148), &literal!(2))
    );
    let of_runs: Vec<_> = cadence["runs"].as_array().unwrap().iter().collect();
    assert_eq!(
        of_runs[1],
        &literal!({
            "label": "run 2 (from line 52)",
            "samples": 48,
            "median_interval_us": 101_000.0,
            "late_samples": 2,
            "missing_samples_min": 2,
            "missing_samples_max": 2,
            "longest_gap_us": 202_000.0,
        })
    );
    assert_eq!(
        (of_runs.len(), &of_runs[2]["missing_samples_max"]),
        (3, &literal!(0))
    );
    let shown = run(directory.path(), &["analyze", "runs.csv"]);
    assert!(
        shown
            .stdout
            .contains("3 runs of 148 samples in total: a sample every 100 ms"),
        "{}",
        shown.stdout
    );
    let numbered = json(
        directory.path(),
        &["analyze", "runs.csv", "--sequence-column", "n"],
    );
    assert_eq!(
        numbered["cadence"]["sequence"],
        literal!({"column": "n", "lost_samples": 2, "repeated_samples": 0})
    );
}

#[test]
fn a_recording_is_audited_for_cadence() {
    let file = data("magod/f2_1.csv");
    let (times_ms, bytes) = samples(&fs::read_to_string(&file).unwrap());
    let steps: Vec<u64> = times_ms.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = steps.clone();
    sorted.sort_unstable();
    // The median of an even number of intervals is the lower of the two middle ones.
    let median_ms = sorted[(sorted.len() - 1) / 2];
    let late: Vec<u64> = steps
        .iter()
        .copied()
        .filter(|step| 2 * step > 3 * median_ms)
        .collect();
    let samples_due = |step: &u64| (*step as f64 / median_ms as f64).round() as u64;
    // The intervals vary by nature: late ones have room for samples, but nothing shows that samples were lost.
    let room: u64 = late.iter().map(|step| samples_due(step) - 1).sum();
    let longest_ms = *sorted.last().unwrap();
    // The expected counts are published, so this test cannot repeat an error of the command.
    assert_eq!(
        (times_ms.len(), late.len(), longest_ms, room),
        (1001, 18, 391, 19)
    );

    let directory = directory();
    let figures = json(directory.path(), &["analyze", file.to_str().unwrap()]);
    assert_schema(&figures, Source::Recording);
    let elapsed_ms = times_ms.last().unwrap() - times_ms[0];
    let gaps = steps.iter().zip(&times_ms);
    let gaps = gaps.filter(|(step, _)| late.contains(step));
    let gaps = gaps.map(|(step, at_ms)| {
        literal!({
            "at_us": (at_ms - times_ms[0]) as f64 * 1e3,
            "length_us": *step as f64 * 1e3,
            "missing_samples": null,
            "room_for_samples": samples_due(step) - 1,
        })
    });
    assert_eq!(
        figures["cadence"],
        literal!({
            "samples": times_ms.len(),
            "median_interval_us": median_ms as f64 * 1e3,
            "late_samples": late.len(),
            "period_us": null,
            "duplicate_samples": 0,
            "missing_samples": null,
            "missing_samples_min": null,
            "missing_samples_max": null,
            "room_for_samples": room,
            "longest_gap_us": longest_ms as f64 * 1e3,
            "mean_interval_us": elapsed_ms as f64 * 1e3 / steps.len() as f64,
            "drift_us": null,
            "gaps": gaps.collect::<Vec<_>>(),
            "sequence": null,
            "runs": [],
        })
    );
    // A recording does not show how fast the card was.
    for figure in [
        "/throughput_bytes_per_s/mean",
        "/operations_per_s",
        "/stalls/count",
    ] {
        assert!(figures.pointer(figure).unwrap().is_null(), "{figure}");
    }
    assert_eq!(figures["writes"], steps.len());
    assert_eq!(figures["payload_bytes"], bytes);
    assert_eq!(figures["elapsed_us"], elapsed_ms as f64 * 1e3);
    assert_eq!(figures["latency_us"]["worst_case"], longest_ms as f64 * 1e3);
    assert_eq!(figures["latency_us"]["min"], sorted[0] as f64 * 1e3);
}

#[test]
fn several_files_are_an_array_in_their_order() {
    let directory = directory();
    let files = [
        data("traces/index_start_end.csv"),
        data("magod/f2_1.csv"),
        data("traces/library_comparison.csv"),
    ];
    let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let figures = json(directory.path(), &[&["analyze"], &files[..]].concat());
    let figures = figures.as_array().unwrap();
    assert_eq!(figures.len(), 3);
    for (figures, file) in figures.iter().zip(&files) {
        assert_eq!(figures["target"], *file);
    }
    assert_schema(&figures[0], Source::Writes);
    assert_schema(&figures[1], Source::Recording);
    assert_schema(&figures[2], Source::Aggregate);
    assert_eq!(
        figures[0],
        json(directory.path(), &["analyze", files[0]]),
        "a file alone has the same figures, as an object"
    );
}

#[test]
fn three_writes_have_hand_calculated_figures() {
    let directory = directory();
    let trace = "index,start_us,end_us\n0,0,272\n1,272,586\n2,600,90600\n";
    fs::write(directory.path().join("three.csv"), trace).unwrap();
    let args = ["analyze", "three.csv", "--block-bytes", "100"];
    let figures = json(directory.path(), &args);
    assert_eq!(figures["writes"], 3);
    assert_eq!(figures["payload_bytes"], 300);
    assert_eq!(figures["elapsed_us"], 90_600.0);
    let times = &figures["latency_us"];
    assert_eq!(
        (&times["min"], &times["worst_case"]),
        (&literal!(272.0), &literal!(90_000.0))
    );
    // The file took 90586 us for three writes with 300 B in total.
    assert_eq!(times["mean"], 30_195.333);
    assert_eq!(figures["throughput_bytes_per_s"]["mean"], 3311.77);
    assert_eq!(figures["throughput_bytes_per_s"]["worst_case"], 1111.111);
    assert_eq!(figures["operations_per_s"], 33.118);
    assert_eq!(figures["stalls"]["count"], 1);
    // For a trace format without lengths, the assumed length is reported.
    let table = done(directory.path(), &["analyze", "three.csv"]);
    assert!(table.contains("512 B"), "{table}");
    assert_eq!(names(directory.path()), ["three.csv"]);
}

#[test]
fn the_traces_of_several_files_are_numbered_like_the_files() {
    let directory = directory();
    // The second file contains no individual operations, so there is no second trace.
    let files = ["times-1.csv", "library_comparison.csv", "cardiograph.csv"];
    let files: Vec<_> = files.map(|name| data(&format!("traces/{name}"))).into();
    let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let args = [&["analyze"], &files[..], &["--csv", "t.csv"]].concat();
    done(directory.path(), &args);
    assert_eq!(names(directory.path()), ["t-1.csv", "t-3.csv"]);
}

#[test]
fn a_guessed_unit_is_shown_and_standard_input_is_read() {
    let directory = directory();
    let file = data("foreign/sketch_list_us.txt");
    let table = done(directory.path(), &["analyze", file.to_str().unwrap()]);
    let reason =
        "read as us, the median write takes 5.81 ms; read as ms, the median write takes 5.81 s";
    assert!(table.contains(reason), "{table}");

    let text = b"812\n790\n85012\n801\n";
    let asked = common::fed(directory.path(), &["analyze", "-"], text);
    assert_eq!(asked.code, Some(2));
    assert!(
        asked.stderr.contains("--time-unit ms or --time-unit us"),
        "{}",
        asked.stderr
    );
    let args = ["analyze", "-", "--time-unit", "us", "--json", "-"];
    let told = common::fed(directory.path(), &args, text);
    let figures = common::results(&told.stdout);
    assert_eq!(figures["latency_us"]["worst_case"], 85_012.0);
    assert_eq!(figures["target"], "standard input");
}

/// Notes are assumptions, so programs need them as much as people.
#[test]
fn the_json_names_the_class_of_the_input_and_has_the_notes_of_the_text() {
    for (file, input, note) in [
        (
            "foreign/sketch_latency_only.csv",
            "writes",
            "assumed to be 512 B",
        ),
        ("foreign/reads_too.csv", "writes", "12 reads are left out"),
        ("foreign/total_row.csv", "writes", "line 122: \"Total\""),
        (
            "foreign/iso_dates.csv",
            "recording",
            "interval between two samples",
        ),
        ("foreign/fio_plus.json", "histogram", "completion latencies"),
        ("traces/library_comparison.csv", "summary", ""),
    ] {
        let directory = directory();
        let file = data(file);
        let args = ["analyze", file.to_str().unwrap()];
        let text = done(directory.path(), &args);
        let figures = json(directory.path(), &args);
        assert_eq!(figures["input"], input);
        let shown = text
            .lines()
            .any(|line| line.trim() == format!("input                  {input}"));
        assert!(shown, "{text}");
        let notes: Vec<_> = figures["notes"].as_array().unwrap().iter().collect();
        let is_noted = notes
            .iter()
            .any(|note_| note_.as_str().unwrap().contains(note));
        assert!(is_noted || note.is_empty(), "{notes:?}");
        let notes = notes.iter().map(|note| note.as_str().unwrap());
        notes.for_each(|note| {
            let shown = note.strip_prefix("Warning: ").unwrap_or(note);
            assert!(text.contains(shown.trim_end_matches('.')), "{note}");
        });
    }
}

/// The file is the output of fio 3.33 itself, with the percentiles that it calculates.
#[test]
fn a_histogram_has_the_percentiles_that_fio_prints_and_no_sustained_rate() {
    let directory = directory();
    let file = data("foreign/fio_plus.json");
    let figures = json(directory.path(), &["analyze", file.to_str().unwrap()]);
    let text = fs::read_to_string(&file).unwrap();
    let fio: Value = serde_json::from_str(&text).unwrap();
    let write = &fio["jobs"][0]["write"];
    let by_fio = &write["clat_ns"]["percentile"];
    let us = |ns: &Value| ns.as_f64().unwrap() / 1e3;
    for (ours, name) in [
        ("median", "50.000000"),
        ("p90", "90.000000"),
        ("p99", "99.000000"),
    ] {
        assert_eq!(figures["latency_us"][ours], us(&by_fio[name]), "{name}");
    }
    assert_eq!(
        figures["latency_us"]["worst_case"],
        us(&write["clat_ns"]["max"])
    );
    assert_eq!(figures["writes"], write["total_ios"]);
    assert_eq!(figures["payload_bytes"], write["io_bytes"]);
    assert_eq!(figures["sustained_rates"], literal!([]));
    assert!(figures["stalls"]["threshold_us"].is_null());
}
