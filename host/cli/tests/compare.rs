//! `compare`: verdicts on traces whose difference is known, and errors for input without writes.

use crate::common;

use common::{data, directory, done, json, names, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The random number generator of Numerical Recipes, so that traces do not depend on the project's own generator.
struct Noise(u64);

impl Noise {
    /// Returns a number from 0 to below 1.
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns `writes` latencies in us: quick writes of about `quick_us`, and stalls of about `stall_us` at every 50th
/// write.
fn latencies_us(writes: usize, quick_us: f64, stall_us: f64, seed: u64) -> Vec<u64> {
    let mut noise = Noise(seed);
    let latency = |i: usize| match i % 50 {
        49 => stall_us * (1.0 + noise.next()),
        _ => quick_us * (1.0 + 0.2 * noise.next()),
    };
    (0..writes).map(latency).map(|us| us as u64).collect()
}

/// Writes Cardiograph CSV, with times in ns.
fn write_trace(path: &Path, latencies_us: &[u64], block_bytes: usize) {
    let mut text = "operation,file,offset,length,start_ns,end_ns\n".to_string();
    let mut now_ns = 0;
    for (i, us) in latencies_us.iter().enumerate() {
        let end_ns = now_ns + us * 1000;
        text += &format!(
            "write,0,{},{block_bytes},{now_ns},{end_ns}\n",
            i * block_bytes
        );
        now_ns = end_ns;
    }
    fs::write(path, text).unwrap();
}

/// Returns a percentile by nearest rank.
fn percentile(latencies_us: &[u64], share: f64) -> f64 {
    let mut sorted = latencies_us.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() as f64 * share).ceil() as usize - 1] as f64
}

fn verdict<'a>(comparison: &'a Value, side: &str, figure: &str) -> &'a Value {
    let verdicts = comparison["verdicts"].as_array().unwrap();
    let is_wanted = |one: &&Value| one["side"] == side && one["figure"] == figure;
    verdicts.iter().find(is_wanted).unwrap()
}

/// Levels that persist over hundreds of writes leave too few independent writes in 3000.
#[test]
fn traces_that_drift_are_not_told_apart() {
    let own = directory();
    for (name, seed) in [("a.csv", 1), ("b.csv", 2), ("c.csv", 3)] {
        let mut noise = Noise(seed);
        let mut level = 0.0;
        let drifting = latencies_us(3000, 1000.0, 30_000.0, seed).into_iter();
        let drifting: Vec<u64> = drifting
            .map(|us| {
                level = 0.997 * level + 0.03 * (noise.next() - 0.5);
                (us as f64 * f64::exp(level)) as u64
            })
            .collect();
        write_trace(&own.path().join(name), &drifting, 512);
    }
    let comparison = json(own.path(), &["compare", "a.csv", "b.csv", "c.csv"]);
    for side in ["B", "C"] {
        let median = verdict(&comparison, side, "median");
        assert_eq!(median["verdict"], "cannot_tell", "{median}");
        let reason = median["reason"].as_str().unwrap();
        assert!(reason.contains("drift"), "{reason}");
        assert!(median["ratio"].is_f64() && median["ratio_interval"].is_null());
    }
    let latency = &comparison["sides"][0]["latency_us"];
    assert!(latency["median"]["low"].is_null());
}

/// A trace has the same intervals in first, second and third place.
#[test]
fn intervals_do_not_depend_on_the_order() {
    let own = directory();
    for (name, seed) in [("a.csv", 1), ("b.csv", 2), ("c.csv", 3)] {
        let latencies = latencies_us(5000, 1000.0, 30_000.0, seed);
        write_trace(&own.path().join(name), &latencies, 512);
    }
    let intervals = |files: [&str; 3]| -> Vec<(String, Value)> {
        let comparison = json(own.path(), &[&["compare"], &files[..]].concat());
        let sides = comparison["sides"].as_array().unwrap().iter();
        let mut intervals: Vec<_> = sides
            .map(|side| (side["target"].to_string(), side["latency_us"].clone()))
            .collect();
        intervals.sort_by(|(a, _), (b, _)| a.cmp(b));
        intervals
    };
    let first = intervals(["a.csv", "b.csv", "c.csv"]);
    assert!(first[0].1["median"]["low"].is_f64());
    assert_eq!(first, intervals(["c.csv", "a.csv", "b.csv"]));
}

#[test]
fn known_differences_are_found_and_equal_cards_are_not_told_apart() {
    let own = directory();
    let base = latencies_us(8000, 1000.0, 30_000.0, 1);
    let same = latencies_us(8000, 1000.0, 30_000.0, 2);
    let stalls_longer = latencies_us(8000, 1000.0, 60_000.0, 3);
    let quicker = latencies_us(8000, 900.0, 30_000.0, 4);
    for (name, latencies) in [
        ("base.csv", &base),
        ("same.csv", &same),
        ("longer.csv", &stalls_longer),
        ("quicker.csv", &quicker),
    ] {
        write_trace(&own.path().join(name), latencies, 512);
    }
    let args = [
        "compare",
        "base.csv",
        "same.csv",
        "longer.csv",
        "quicker.csv",
    ];
    let found = json(own.path(), &args);
    for (side, median, p99) in [
        ("B", "cannot_tell", "cannot_tell"),
        ("C", "cannot_tell", "slower"),
        ("D", "faster", "cannot_tell"),
    ] {
        assert_eq!(verdict(&found, side, "median")["verdict"], median, "{side}");
        assert_eq!(verdict(&found, side, "p99")["verdict"], p99, "{side}");
    }
    for (side, latencies) in [&base, &same, &stalls_longer, &quicker]
        .into_iter()
        .enumerate()
    {
        let side = &found["sides"][side];
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure = &side["latency_us"][name];
            assert_eq!(figure["value"], percentile(latencies, share), "{name}");
            assert!(figure["low"].as_f64() <= figure["value"].as_f64());
            assert!(figure["high"].as_f64() >= figure["value"].as_f64());
        }
        assert_eq!(side["latency_us"]["worst_case"], percentile(latencies, 1.0));
        assert_eq!(side["writes"], 8000);
        assert_eq!(side["stalls"]["count"], 160);
        let sum_us: u64 = latencies.iter().sum();
        assert_eq!(side["elapsed_us"], sum_us as f64);
    }
    let ratio = percentile(&stalls_longer, 0.99) / percentile(&base, 0.99);
    let found_ratio = verdict(&found, "C", "p99")["ratio"].as_f64().unwrap();
    assert!((found_ratio / ratio - 1.0).abs() < 1e-9);
    let again = json(own.path(), &args);
    assert_eq!(found, again, "the seed is fixed");
    let table = done(own.path(), &args);
    for words in [
        "p99: C is slower than A",
        "Median: D is faster than A",
        "seed 1",
    ] {
        assert!(table.contains(words), "no {words:?} in:\n{table}");
    }
}

#[test]
fn with_few_stalls_only_the_medians_are_told_apart() {
    let own = directory();
    write_trace(
        &own.path().join("a.csv"),
        &latencies_us(8000, 1000.0, 30_000.0, 1),
        512,
    );
    // Nine stalls, and writes that take twice as long.
    write_trace(
        &own.path().join("b.csv"),
        &latencies_us(450, 2000.0, 90_000.0, 2),
        512,
    );
    let found = json(own.path(), &["compare", "a.csv", "b.csv"]);
    let p99 = verdict(&found, "B", "p99");
    assert_eq!(p99["verdict"], "cannot_tell");
    assert_eq!(p99["ratio_interval"], Value::Null);
    let reason = p99["reason"].as_str().unwrap();
    assert!(reason.contains("B has 9 stalls"), "{p99}");
    // The median does not depend on the stalls.
    assert_eq!(verdict(&found, "B", "median")["verdict"], "slower");
    assert_ne!(
        found["sides"][0]["latency_us"]["median"]["low"],
        Value::Null
    );
}

/// Writes that last three times as long in every eighth, although both traces drift.
#[test]
fn a_difference_larger_than_the_drift_is_told() {
    let own = directory();
    let drifting = |quick_us: f64, seed| -> Vec<u64> {
        let all = latencies_us(3000, quick_us, 30_000.0, seed)
            .into_iter()
            .enumerate();
        all.map(|(i, us)| us + us * i as u64 / 6000).collect()
    };
    write_trace(&own.path().join("a.csv"), &drifting(2000.0, 1), 512);
    write_trace(&own.path().join("b.csv"), &drifting(6000.0, 2), 512);
    let found = json(own.path(), &["compare", "a.csv", "b.csv"]);
    let median = verdict(&found, "B", "median");
    assert_eq!(median["verdict"], "slower", "{median}");
    assert!(median["ratio_interval"].is_null());
    assert!(
        median["reason"].as_str().unwrap().contains("every eighth"),
        "{median}"
    );
}

/// A buffer of 64 KiB absorbs the stalls of A, and not those of B; the third trace would fit into ten such buffers.
#[test]
fn the_first_line_decides_for_a_data_logger() {
    let own = directory();
    let traces = [
        ("a.csv", latencies_us(8000, 1000.0, 30_000.0, 1)),
        ("b.csv", latencies_us(8000, 1000.0, 600_000.0, 2)),
        ("c.csv", latencies_us(1000, 500.0, 600.0, 3)),
    ];
    for (name, latencies) in &traces {
        write_trace(&own.path().join(name), latencies, 512);
    }
    let args = ["compare", "c.csv", "a.csv", "b.csv"];
    let found = json(own.path(), &args);
    let rate = |side: usize| {
        let rows = found["sides"][side]["sustained_rates"]
            .as_array()
            .unwrap()
            .iter();
        let row = rows.clone().find(|row| row["buffer_bytes"] == 65_536);
        row.unwrap()["rate_bytes_per_s"].as_f64().unwrap()
    };
    assert!(rate(1) > 2.0 * rate(2));
    let kb = |rate: f64| format!("{:.0} kB/s", rate / 1e3);
    let answer = found["decision"]["answer"].as_str().unwrap();
    let begin = format!("B: a 64 KiB buffer sustains {}, C ", kb(rate(1)));
    assert!(
        answer.starts_with(&begin)
            && answer.contains(": take B; A is not known: 512 kB were measured"),
        "{answer}"
    );
    assert_eq!(found["decision"]["take"], serde_json::json!(["B"]));
    assert_eq!(found["decision"]["unknown"], serde_json::json!(["A"]));
    let table = done(own.path(), &args);
    assert_eq!(table.lines().next(), Some(answer));
    assert!(!table.contains("no distribution fits"), "{table}");
    // Every pair: B and C, too.
    let pairs = found["verdicts"].as_array().unwrap().iter();
    let pairs: Vec<String> = pairs
        .map(|one| {
            format!(
                "{}{}",
                one["base"].as_str().unwrap(),
                one["side"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(pairs, ["AB", "AB", "AC", "AC", "BC", "BC"]);
    // A rate that only B sustains, and one that none does.
    let need = ["--sample-bytes", "1000", "--rate"];
    let of = |rate: f64| {
        let hz = format!("{}", (rate / 1e3) as u64);
        json(own.path(), &[&args[..], &need, &[&hz]].concat())
    };
    assert_eq!(
        of(rate(1) * 0.9)["decision"]["take"],
        serde_json::json!(["B"])
    );
    let none = of(rate(1) * 1.1);
    assert_eq!(none["decision"]["take"], serde_json::json!([]));
    assert!(
        none["decision"]["answer"]
            .as_str()
            .unwrap()
            .contains(": take none for ")
    );
}

/// With a clock of 1 ms, medians of 1 and 2 ms may both be 1.5 ms.
#[test]
fn a_difference_within_the_resolution_is_none() {
    let own = directory();
    let in_ms = |latencies: Vec<u64>| {
        latencies
            .iter()
            .map(|us| us / 1000 * 1000)
            .collect::<Vec<_>>()
    };
    write_trace(
        &own.path().join("a.csv"),
        &in_ms(latencies_us(8000, 1500.0, 30_000.0, 1)),
        512,
    );
    write_trace(
        &own.path().join("b.csv"),
        &in_ms(latencies_us(8000, 2100.0, 30_000.0, 2)),
        512,
    );
    let found = json(own.path(), &["compare", "a.csv", "b.csv"]);
    let median = verdict(&found, "B", "median");
    assert_eq!(median["verdict"], "cannot_tell");
    assert!(
        median["reason"].as_str().unwrap().contains("resolution"),
        "{median}"
    );
    assert_eq!(found["sides"][0]["resolution_us"], 1000.0);
}

#[test]
fn different_block_sizes_and_origins_are_noted() {
    let own = directory();
    write_trace(
        &own.path().join("a.csv"),
        &latencies_us(1000, 1000.0, 30_000.0, 1),
        512,
    );
    write_trace(
        &own.path().join("b.csv"),
        &latencies_us(1000, 1000.0, 30_000.0, 2),
        4096,
    );
    let table = done(
        own.path(),
        &["compare", "a.csv", "b.csv", "sim:class10-16g@esp32"],
    );
    for words in [
        "the bytes per write differ (A: 512 B, B: 4 KiB, C: ",
        "the origins differ (A: trace or real card, B: trace or real card, C: simulated card)",
    ] {
        assert!(table.contains(words), "no {words:?} in:\n{table}");
    }
}

#[test]
fn simulated_cards_are_measured_and_every_output_is_written() {
    let own = directory();
    let cards = ["compare", "sim:class10-16g@esp32", "sim:kingston-8g@esp32"];
    let outputs = ["--json", "c.json", "--markdown", "c.md", "--html", "c.html"];
    let table = done(own.path(), &[&cards[..], &outputs].concat());
    assert_eq!(names(own.path()), ["c.html", "c.json", "c.md"]);
    let json = common::results_in(&own.path().join("c.json"));
    // The side has the same figures as a run of `bench`.
    let bench = common::json(own.path(), &["bench", "sim:kingston-8g@esp32"]);
    let side = &json["sides"][1];
    assert_eq!(
        side["latency_us"]["worst_case"],
        bench["latency_us"]["worst_case"]
    );
    assert_eq!(side["stalls"]["count"], bench["stalls"]["count"]);
    assert_eq!(side["sustained_rates"], bench["sustained_rates"]);
    let median = side["latency_us"]["median"]["value"].as_f64().unwrap();
    let of_bench = bench["latency_us"]["median"].as_f64().unwrap();
    assert!((median / of_bench - 1.0).abs() < 0.008);
    let markdown = fs::read_to_string(own.path().join("c.md")).unwrap();
    for verdict in json["verdicts"].as_array().unwrap() {
        let side = verdict["side"].as_str().unwrap();
        let begin = match (verdict["figure"].as_str(), verdict["verdict"].as_str()) {
            (Some("median"), Some("cannot_tell")) => {
                format!("Median: cannot tell whether {side} is")
            }
            (Some("median"), _) => format!("Median: {side} is"),
            (_, Some("cannot_tell")) => format!("p99: cannot tell whether {side} is"),
            _ => format!("p99: {side} is"),
        };
        assert!(
            table.contains(&begin) && markdown.contains(&begin),
            "{begin}"
        );
    }
}

#[test]
fn input_without_writes_is_refused() {
    let own = directory();
    let trace = data("traces/fio_lat.log").display().to_string();
    for (file, words) in [
        (
            data("magod/f2_1.csv").display().to_string(),
            "contains samples; the intervals between them do not show how long writes took",
        ),
        (
            data("foreign/fio_plus.json").display().to_string(),
            "contains a histogram, which does not show the order of the writes",
        ),
        (
            data("traces/library_comparison.csv").display().to_string(),
            "contains no individual writes",
        ),
        ("absent.csv".to_string(), "absent.csv"),
        ("sim:absent@esp32".to_string(), "absent"),
    ] {
        let run = run(own.path(), &["compare", &trace, &file]);
        assert_eq!(run.code, Some(2), "{file}: {}", run.stdout);
        assert!(
            run.stderr.contains(words) && run.stderr.lines().count() == 1,
            "{}",
            run.stderr
        );
    }
    for args in [
        &["compare", "a.csv"][..],
        &["compare", &trace, &trace, "--io", "direct"],
        &["compare", &trace, &trace, "--json", "-", "--markdown", "-"],
        &["compare", &trace, &trace, "--html", "-"],
    ] {
        assert_eq!(run(own.path(), args).code, Some(2), "{args:?}");
    }
    assert!(names(own.path()).is_empty());
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    write_trace(
        &own.path().join("a.csv"),
        &latencies_us(1000, 1000.0, 30_000.0, 1),
        512,
    );
    let found = json(
        own.path(),
        &[
            "compare",
            "a.csv",
            "card",
            "--workload",
            "blinky-stream-512",
            "--for",
            "100ms",
        ],
    );
    assert_eq!(found["sides"][1]["target"], "card");
    assert_eq!(found["sides"][1]["block_bytes"], 512);
    assert_eq!(found["sides"][1]["simulated"], false);
    assert!(found["sides"][1]["writes"].as_u64() > Some(0));
    assert!(names(&own.path().join("card")).is_empty());
}
