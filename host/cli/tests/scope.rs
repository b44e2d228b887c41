//! `analyze --scope`: energy of a trace, and energy alone.

use crate::common;

use common::{Source, assert_schema, data, directory, done, json, refused, tree};
use std::fs;

fn example() -> (String, String) {
    let path = |name| data(name).to_str().unwrap().to_string();
    (
        path("traces/energy_writes.csv"),
        path("traces/energy_scope.csv"),
    )
}

#[test]
fn the_example_shows_the_energy_it_was_generated_with() {
    let own = directory();
    let (writes, scope) = example();
    let args = ["analyze", &writes, "--scope", &scope];
    let figures = json(own.path(), &args);
    assert_schema(&figures, Source::WritesAndScope);
    let energy = &figures["energy"];
    let near = |found: &serde_json::Value, due: f64, most: f64| {
        let found = found.as_f64().unwrap();
        assert!((found / due - 1.0).abs() < most, "{found}, expected {due}");
    };
    // Ten writes of about 2 ms at 60 mA and 3.27 V, two of 30 ms at 100 mA and 3.25 V.
    let (short_ns, long_ns) = (20_360_000.0, 61_300_000.0);
    let due_uj = (short_ns * 60.0 * 3.27 + long_ns * 100.0 * 3.25) / 1e6;
    near(&energy["per_write_uJ"], due_uj / 12.0, 0.02);
    near(&energy["per_kB_uJ"], due_uj / 6.144, 0.02);
    near(&energy["power_mW"]["max"], 325.0, 0.02);
    near(&energy["in_stalls"]["time_ratio"], 61.3 / 163.38, 1e-3);
    // Idle power is below the resolution of 8 bits.
    assert!(energy["power_mW"]["between_writes"].as_f64().unwrap() < 15.0);

    let table = done(own.path(), &[&args[..], &["--shunt", "500mohm"]].concat());
    assert!(table.contains("\n  Energy\n"), "{table}");
    let twice = json(own.path(), &[&args[..], &["--shunt", "500mohm"]].concat());
    let total = |figures: &serde_json::Value| figures["energy"]["total_uJ"].as_f64().unwrap();
    near(&twice["energy"]["total_uJ"], 2.0 * total(&figures), 1e-6);
}

#[test]
fn a_scope_shifted_off_the_trace_is_reported() {
    let own = directory();
    let (writes, scope) = example();
    let args = ["analyze", &writes, "--scope", &scope, "--scope-offset"];
    let moved = done(own.path(), &[&args[..], &["-20ms"]].concat());
    assert!(moved.contains("is 20 ms before the start"), "{moved}");
    let away = done(own.path(), &[&args[..], &["1h"]].concat());
    assert!(
        away.contains("warning: the scope covers no part of the trace"),
        "{away}"
    );
}

#[test]
fn a_scope_alone_has_energy_only() {
    let own = directory();
    let (_, scope) = example();
    let args = ["analyze", "--scope", &scope, "--html", "e.html"];
    let table = done(own.path(), &args);
    assert!(table.contains("The card drew"), "{table}");
    assert!(!table.contains("payload"), "{table}");
    assert!(own.path().join("e.html").exists());
    let figures = json(own.path(), &args[..3]);
    assert_eq!(figures["writes"], 0);
    assert!(figures["energy"]["total_uJ"].as_f64().unwrap() > 0.0);
    assert!(figures["energy"]["per_write_uJ"].is_null());
}

#[test]
fn unusable_scope_files_are_rejected() {
    let own = directory();
    let (writes, scope) = example();
    let recording = data("magod/f2_1.csv");
    let recording = recording.to_str().unwrap();
    fs::write(own.path().join("bad.csv"), "time,V1,V2\n0,3,3\n1,3,x\n").unwrap();
    for (args, words) in [
        (
            &[writes.as_str(), &writes, "--scope", &scope][..],
            &["--scope applies to a single trace", "pass one file"][..],
        ),
        (
            &[recording, "--scope", &scope],
            &["f2_1.csv", "no individual writes", "--scope alone"],
        ),
        (
            &[&writes, "--scope", "bad.csv"],
            &["bad.csv, line 3: V2 is \"x\"", "correct the row"],
        ),
        (
            &[&writes, "--scope", "none.csv", "--html", "e.html"],
            &["none.csv: no such file", "check the name"],
        ),
        (
            &["--scope", &writes],
            &["energy_writes.csv: contains no rows of time, V1 and V2"],
        ),
    ] {
        refused(own.path(), &[&["analyze"], args].concat(), words);
    }
    let before = tree(own.path());
    for args in [
        &["--shunt", "0ohm"][..],
        &["--shunt", "one"],
        &["--scope-offset", "-later"],
    ] {
        let args = [&["analyze", &writes, "--scope", &scope], args].concat();
        let run = common::run(own.path(), &args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert_eq!(tree(own.path()), before);
    }
}
