//! `--fail-if` on every command: exit code 5, and the condition with its figure on standard error.

use crate::common;

use common::{data, directory, json, names, run};
use std::fs;

const CARD: &str = "sim:class10-16g@esp32";

/// Runs the command; returns standard error.
fn failed(args: &[&str], code: i32) -> String {
    let own = directory();
    let run = run(own.path(), args);
    assert_eq!(
        run.code,
        Some(code),
        "{args:?}: {}{}",
        run.stdout,
        run.stderr
    );
    run.stderr
}

/// Percentiles in the JSON are rounded, by up to 0.8 %.
#[test]
fn conditions_agree_with_the_json() {
    let own = directory();
    let figures = json(own.path(), &["bench", CARD]);
    let us = |name: &str| figures["latency_us"][name].as_f64().unwrap();
    let rate = figures["sustained_rates"].as_array().unwrap().iter();
    let of_64_kib = rate
        .clone()
        .find(|row| row["buffer_bytes"] == 65_536)
        .unwrap();
    let of_64_kib = of_64_kib["rate_bytes_per_s"].as_f64().unwrap();
    let stalls = figures["stalls"]["count"].as_u64().unwrap();
    let ns = |us: f64, more: f64| format!("{}ns", (us * 1e3 + more) as u64);
    for (below, above) in [
        (
            format!("median > {}", ns(us("median") * 0.99, 0.0)),
            format!("median > {}", ns(us("median") * 1.01, 0.0)),
        ),
        (
            format!("p99 >= {}", ns(us("p99") * 0.99, 0.0)),
            format!("p99 >= {}", ns(us("p99") * 1.01, 0.0)),
        ),
        (
            format!("latency_us.worst_case <= {}", ns(us("worst_case"), 0.0)),
            format!("max < {}", ns(us("worst_case"), 0.0)),
        ),
        (
            format!("sustained(64KiB) < {}B/s", of_64_kib as u64 + 1),
            format!("sustained(64KiB) < {}B/s", of_64_kib as u64),
        ),
        (format!("stalls >= {stalls}"), format!("stalls > {stalls}")),
    ] {
        let message = failed(&["bench", CARD, "--fail-if", &below], 5);
        assert!(
            message.contains(&format!("--fail-if '{below}' holds")),
            "{message}"
        );
        failed(&["bench", CARD, "--fail-if", &above], 0);
    }
}

/// A buffer size that is not in the table has a rate between those of the neighbouring sizes.
#[test]
fn the_sustained_rate_of_any_buffer_is_computed() {
    let own = directory();
    let figures = json(own.path(), &["bench", CARD]);
    let rates = figures["sustained_rates"].as_array().unwrap();
    let rate = |bytes: u64| {
        let row = rates
            .iter()
            .find(|row| row["buffer_bytes"] == bytes)
            .unwrap();
        row["rate_bytes_per_s"].as_f64().unwrap() as u64
    };
    let low = format!("sustained(100KiB) < {}B/s", rate(65_536));
    let high = format!("sustained(100KiB) > {}B/s", rate(131_072) + 1);
    failed(&["bench", CARD, "--fail-if", &low, "--fail-if", &high], 0);
    let least = format!("sustained(100KiB) >= {}B/s", rate(65_536));
    failed(&["bench", CARD, "--fail-if", &least], 5);
}

#[test]
fn a_condition_that_cannot_be_decided_fails() {
    let own = directory();
    let list: String = (0..50)
        .map(|i| format!("{}\n", 1000 + i * 7 % 50))
        .collect();
    fs::write(own.path().join("short.csv"), format!("latency_us\n{list}")).unwrap();
    let recording = data("magod/f2_1.csv").display().to_string();
    for (file, condition, why) in [
        ("short.csv", "p99 > 20ms", "50 writes are too few"),
        ("short.csv", "late > 0", "not a recording"),
        (&recording, "missing > 0", "no sample period fits"),
        (
            &recording,
            "p99 > 20ms",
            "a recording does not show how long writes took",
        ),
    ] {
        let run = run(own.path(), &["analyze", file, "--fail-if", condition]);
        assert_eq!(run.code, Some(5), "{}", run.stderr);
        let words = format!("--fail-if '{condition}' cannot be decided");
        assert!(
            run.stderr.contains(&words) && run.stderr.contains(why),
            "{}",
            run.stderr
        );
    }
}

/// With 4 recordings without a loss, the upper limit is 60.2 % (Clopper and Pearson): 1 - 0.025^(1/4).
#[test]
fn conditions_on_a_sweep_decide_the_exit_code() {
    let own = directory();
    let spec = "mode = \"card\"\ncards = [\"class10-16g\"]\nrates_hz = [860]\nsample_bytes = 100\n\
                buffers_bytes = [65536]\nrun_s = 60\nseeds = 4\n";
    fs::write(own.path().join("s.toml"), spec).unwrap();
    for (condition, code) in [("risk > 60.3%", 0), ("risk > 60.2%", 5), ("risk > 0%", 5)] {
        let run = run(
            own.path(),
            &["sweep", "s.toml", "-q", "--fail-if", condition],
        );
        assert_eq!(run.code, Some(code), "{condition}: {}", run.stderr);
        let words =
            format!("sim:class10-16g@esp32, stream, 860 Hz, 64 KiB: --fail-if '{condition}' holds");
        assert_eq!(run.stderr.contains(&words), code == 5, "{}", run.stderr);
    }
    let wrong = run(own.path(), &["sweep", "s.toml", "--fail-if", "p99 > 20ms"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("sweep has the figure risk"),
        "{}",
        wrong.stderr
    );
}

/// The report rounds percentiles, by up to 0.8 %; a condition does not depend on it.
#[test]
fn percentiles_near_the_limit_are_exact() {
    let own = directory();
    let list: String = (0..1001)
        .map(|i| format!("{}\n", 100_000 + i * 500 % 1001))
        .collect();
    fs::write(own.path().join("near.csv"), format!("latency_us\n{list}")).unwrap();
    for (condition, code) in [
        ("median > 100.499ms", 5),
        ("median > 100.5ms", 0),
        ("median < 100.5ms", 0),
        ("median < 100.501ms", 5),
        ("p99 >= 100990us", 5),
        ("p99 > 100991us", 0),
    ] {
        let run = run(own.path(), &["analyze", "near.csv", "--fail-if", condition]);
        assert_eq!(run.code, Some(code), "{condition}: {}", run.stderr);
        let is_exact = run.stderr.contains("100500 us") || run.stderr.contains("100990 us");
        assert_eq!(is_exact, code == 5, "{}", run.stderr);
    }
}

#[test]
fn a_recording_has_late_and_missing_samples() {
    let own = directory();
    // 860 Hz on a clock of 1 ms, with 7 samples missing.
    let times = (0..4000u64).map(|index| index + if index < 2000 { 0 } else { 7 });
    let rows: String = times
        .map(|index| format!("{}\n", index * 1000 / 860))
        .collect();
    let file = own.path().join("coarse.csv");
    fs::write(&file, format!("time_ms\n{rows}")).unwrap();
    let recording = file.display().to_string();
    let figures = json(own.path(), &["analyze", &recording]);
    assert_eq!(figures["cadence"]["missing_samples"], 7, "{figures}");
    let message = failed(&["analyze", &recording, "--fail-if", "missing <= 7"], 5);
    assert!(message.contains("coarse.csv: --fail-if"), "{message}");
    failed(&["analyze", &recording, "--fail-if", "missing < 7"], 0);
    failed(&["analyze", &recording, "--fail-if", "missing > 7"], 0);
}

/// A loop of just over 1 s on a clock of 1 s shows a step of 2 s now and then, and so does a lost sample.
#[test]
fn an_uncertain_number_of_missing_samples_decides_what_its_range_decides() {
    let own = directory();
    let rows: String = (0..600)
        .map(|index| format!("{}\n", index + index / 300))
        .collect();
    let file = own.path().join("slow.csv");
    fs::write(&file, format!("time_s\n{rows}")).unwrap();
    let recording = file.display().to_string();
    let figures = json(own.path(), &["analyze", &recording]);
    let cadence = &figures["cadence"];
    let range = (
        &cadence["missing_samples_min"],
        &cadence["missing_samples_max"],
    );
    assert_eq!(
        (range.0.as_u64(), range.1.as_u64()),
        (Some(0), Some(1)),
        "{cadence}"
    );
    assert!(cadence["missing_samples"].is_null() && cadence["drift_us"].is_null());
    failed(&["analyze", &recording, "--fail-if", "missing > 1"], 0);
    let args = ["analyze", &recording, "--fail-if", "missing > 0"];
    let message = failed(&args, 5);
    assert!(
        message.contains("cannot be decided: 0 to 1 samples"),
        "{message}"
    );
    assert!(message.contains("--rate"), "{message}");
    let message = failed(&[&args[..], &["--rate", "1"]].concat(), 5);
    assert!(message.contains("holds: the figure is 1"), "{message}");
}

#[test]
fn record_and_compare_have_conditions() {
    let recorded = ["record", "--rate", "860", "--for", "2s"];
    failed(&[&recorded[..], &["--fail-if", "lost > 0"]].concat(), 0);
    failed(&[&recorded[..], &["--fail-if", "lost >= 0"]].concat(), 5);
    let message = failed(&[&recorded[..], &["--fail-if", "max > 1ms"]].concat(), 5);
    assert!(message.contains("cannot be decided"), "{message}");
    let compared = ["compare", CARD, "sim:kingston-8g@esp32"];
    let message = failed(&[&compared[..], &["--fail-if", "max > 1us"]].concat(), 5);
    assert!(message.starts_with("sim:kingston-8g@esp32: "), "{message}");
    assert_eq!(
        message.lines().count(),
        1,
        "the first card is the reference: {message}"
    );
    failed(&[&compared[..], &["--fail-if", "max > 1h"]].concat(), 0);
}

#[test]
fn errors_of_the_command_come_first() {
    // Samples are lost, which is code 3.
    let lossy = [
        "record", CARD, "--rate", "4000", "--for", "2s", "--buffer", "2KiB",
    ];
    let message = failed(&[&lossy[..], &["--fail-if", "lost > 0"]].concat(), 3);
    assert!(message.contains("--fail-if 'lost > 0' holds"), "{message}");
    failed(&["analyze", "absent.csv", "--fail-if", "max > 1us"], 2);
}

#[test]
fn a_wrong_condition_is_refused_before_anything_is_measured() {
    let own = directory();
    for (command, condition) in [
        (&["bench", CARD][..], "p98 > 20ms"),
        (&["bench", CARD], "p99 > 20"),
        (&["bench", CARD], "lost > 0"),
        (&["compare", CARD, CARD], "missing > 0"),
        (&["record"], "p99 > 20ms"),
        (&["analyze", "absent.csv"], "sustained(64K) > 1kB/s"),
    ] {
        let args = [command, &["--json", "out.json", "--fail-if", condition]].concat();
        let run = run(own.path(), &args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(
            run.stderr.contains(condition) && run.stdout.is_empty(),
            "{}",
            run.stderr
        );
    }
    assert!(names(own.path()).is_empty());
}

#[test]
fn the_help_lists_the_figures() {
    let own = directory();
    for (command, figure) in [
        ("bench", "sustained(SIZE)"),
        ("analyze", "late, missing"),
        ("compare", "p99.9"),
        ("record", "lost > 0"),
    ] {
        let help = run(own.path(), &[command, "--help"]).stdout;
        let words: Vec<_> = help.split_whitespace().collect();
        assert!(words.join(" ").contains(figure), "{help}");
        assert!(words.join(" ").contains("code 5"), "{help}");
    }
}
