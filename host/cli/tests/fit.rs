//! `fit`: a card from a trace, and errors for unusable traces.

use crate::common;

use common::{assert_self_contained, data, directory, done, json, names, refused, run};
use std::fs;
use tempfile::TempDir;

/// A directory with a trace of a workload that opens and closes its file for every line.
fn with_trace() -> TempDir {
    let own = directory();
    let args = ["bench", "sim:class10-16g@esp32", "--workload", "magod2-4.7"];
    done(own.path(), &[&args[..], &["--trace", "t.parquet"]].concat());
    own
}

#[test]
fn the_fitted_profile_can_be_measured() {
    let own = with_trace();
    let args = ["fit", "t.parquet", "--trials", "50"];
    let files = ["--profile", "p.toml", "--html", "f.html"];
    let table = done(own.path(), &[args, files].concat());
    for words in [
        "Fitted with a host that ",
        "measured",
        "fitted",
        "stall latency",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    assert_eq!(names(own.path()), ["f.html", "p.toml", "t.parquet"]);
    assert_self_contained(&fs::read_to_string(own.path().join("f.html")).unwrap());
    let profile = fs::read_to_string(own.path().join("p.toml")).unwrap();
    assert!(
        profile.contains("about = \"fitted to t.parquet\""),
        "{profile}"
    );
    // The present flash model, with the stall limit of the SD specification.
    for line in [
        "model = 2",
        "stall_limit_us = 250000",
        "# those of generic-16g-class10.",
    ] {
        assert!(profile.contains(line), "no {line} in:\n{profile}");
    }
    let figures = json(
        own.path(),
        &["bench", "sim:p.toml@esp32", "--workload", "magod2-4.7"],
    );
    assert!(figures["writes"].as_u64() > Some(0));
    assert!(done(own.path(), &["cards", "p.toml"]).starts_with("p.toml: fitted to t.parquet\n"));

    // Existing files are not overwritten, and the page cannot go to standard output.
    refused(own.path(), &[args, files].concat(), &["p.toml", "exists"]);
    refused(
        own.path(),
        &["fit", "t.parquet", "--html", "-"],
        &["--html needs a file"],
    );
}

#[test]
fn a_profile_on_standard_output_is_alone_there() {
    let own = with_trace();
    let args = ["fit", "t.parquet", "--trials", "2", "--profile", "-"];
    let run = run(own.path(), &args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.starts_with("# ") && run.stdout.contains("# Fitted to write latencies"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("fitted"), "{}", run.stderr);
    fs::write(own.path().join("p.toml"), run.stdout).unwrap();
    done(own.path(), &["cards", "p.toml"]);
}

#[test]
fn unusable_traces_are_rejected() {
    let own = directory();
    let recording = data("magod/f2_1.csv").display().to_string();
    let writes = data("traces/cardiograph.csv").display().to_string();
    for (args, words) in [
        (
            &["fit", &recording][..],
            &["f2_1.csv", "contains no individual writes"][..],
        ),
        (&["fit", "none.parquet"], &["none.parquet"]),
        (&["fit", "."], &["."]),
        (
            &["fit", &writes, "--like", "best"],
            &["no card named \"best\"", "generic-16g-class10"],
        ),
        (&["fit", &writes, "--profile", "no/p.toml"], &["no/p.toml"]),
    ] {
        refused(own.path(), args, words);
    }
}

#[test]
fn a_trace_of_three_writes_is_no_card() {
    let own = directory();
    let trace = "index,start_us,end_us\n0,0,272\n1,272,586\n2,600,90600\n";
    fs::write(own.path().join("three.csv"), trace).unwrap();
    let args = ["fit", "three.csv", "--trials", "2", "--profile", "-"];
    let run = run(own.path(), &args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let warning = "the trace has 3 writes and 1 stall, too few to determine a card";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    assert!(run.stdout.contains(warning), "{}", run.stdout);
    fs::write(own.path().join("p.toml"), run.stdout).unwrap();
    done(own.path(), &["cards", "p.toml"]);
}
