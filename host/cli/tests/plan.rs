//! `plan`: buffer sizes and risk, and errors for unusable input.

use crate::common;

use common::{data, directory, done, json, names, refused, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LOGGER: [&str; 4] = ["--rate", "860", "--sample-bytes", "100"];

fn plan<'a>(source: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", source][..], &LOGGER, more].concat()
}

/// Writes Cardiograph CSV with writes of 512 B: fast writes of 1 ms, and a stall after every 50 fast writes.
fn write_trace(path: &Path, stalls_us: impl IntoIterator<Item = u64>) {
    let mut text = "operation,file,offset,length,start_ns,end_ns\n".to_string();
    let (mut offset, mut now_ns) = (0, 0);
    for stall_us in stalls_us {
        for us in std::iter::repeat_n(1000, 50).chain([stall_us]) {
            let end_ns = now_ns + us * 1000;
            text += &format!("write,0,{offset},512,{now_ns},{end_ns}\n");
            (offset, now_ns) = (offset + 512, end_ns);
        }
    }
    fs::write(path, text).unwrap();
}

/// Returns 300 stall latencies in us, longest first, distributed exponentially above 20 ms with a mean excess
/// of 8 ms.
fn falling_stalls() -> impl Iterator<Item = u64> {
    (1..=300u64).map(|i| 20_000 + (8000.0 * (300.5 / i as f64).ln()) as u64)
}

fn buffers(plan: &Value) -> &Vec<Value> {
    plan["buffers"].as_array().unwrap()
}

#[test]
fn a_plan_for_a_simulated_card() {
    let own = directory();
    let table = done(own.path(), &plan("sim:class10-16g@esp32", &[]));
    for words in [
        "860 samples/s of 100 B = 86 kB/s for 24 h",
        "Cardiograph's recorder: one open file, written as one stream (CMD25)",
        "buffer by risk",
        "J per day",
        "erases per day",
        "A sketch that writes with SD.h or SdFat sustains less",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    assert!(!table.contains("warning"), "{table}");
    // 86 kB/s times 250 ms and 500 ms.
    let answer = table.lines().next().unwrap();
    assert!(
        answer.starts_with(
            "64 KiB holds what was measured and what is specified at 86 kB/s with Cardiograph's recorder: the card needed "
        )
    );
    let of_specification = "and the SD specification allows a stall that needs 21.5 kB (250 ms; SDXC cards: 500 ms, 43 kB).";
    assert!(answer.ends_with(of_specification), "{answer}");
    let figures = json(own.path(), &plan("sim:class10-16g@esp32", &[]));
    assert_eq!(figures["rate_bytes_per_s"], 86_000.0);
    assert_eq!(buffers(&figures).len(), 11);
    assert!(figures["energy_J_per_day"].as_f64() > Some(0.0));
    assert!(figures["wear"]["lifetime_years"].as_f64() > Some(0.0));
    let recommended = figures["recommended_buffer_bytes"].as_u64();
    assert!(recommended.unwrap() as f64 > figures["peak_backlog_bytes"].as_f64().unwrap());
    assert!(names(own.path()).is_empty());
}

#[test]
fn a_plan_for_a_trace_has_no_energy() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), falling_stalls());
    let table = done(own.path(), &plan("t.csv", &["--json", "p.json"]));
    for words in [
        "that of the trace, 512 B at a time",
        "energy              not available from a trace",
        "a generalised Pareto distribution fits",
        "64 KiB holds what was measured and what is specified at 86 kB/s with the trace's way of writing: the card needed ",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    let figures = common::results_in(&own.path().join("p.json"));
    assert!(figures["energy_J_per_day"].is_null() && figures["wear"].is_null());
    // The fit covers stalls above 20 ms; at 86 kB/s, plus the block that was waiting, this is 2232 B.
    assert!(figures["tail"]["threshold_bytes"].as_f64() >= Some(2232.0));
    let risks: Vec<f64> = buffers(&figures)
        .iter()
        .map(|size| size["risk"]["high"].as_f64().unwrap())
        .collect();
    assert!(risks[0] == 1.0 && risks[10] < 1e-3, "{risks:?}");
    assert!(risks.is_sorted_by(|a, b| a >= b), "{risks:?}");

    // A longer run has a higher risk, and the requested size has its own row.
    let args = ["--for", "25h", "--buffer", "5000B"];
    let longer = json(own.path(), &plan("t.csv", &args));
    assert_eq!(buffers(&longer).len(), 12);
    let risk = |of: &Value| {
        buffers(of)
            .iter()
            .find(|s| s["buffer_bytes"] == 8192)
            .unwrap()["risk"]["likely"]
            .as_f64()
    };
    assert!(risk(&longer) > risk(&figures));
    assert!(done(own.path(), &plan("t.csv", &args)).starts_with("5000 B "));
    refused(
        own.path(),
        &plan("t.csv", &["--json", "p.json"]),
        &["p.json", "exists"],
    );
}

#[test]
fn too_few_writes_report_how_many_are_needed() {
    let own = directory();
    let writes = "operation,file,offset,length,start_ns,end_ns\n\
        write,0,0,512,0,1000000\nwrite,0,512,512,1000000,3000000\n";
    fs::write(own.path().join("t.csv"), writes).unwrap();
    let table = done(own.path(), &plan("t.csv", &["--for", "10s"]));
    let words = "it contains 2 of the 33 busy periods needed (in a busy period, a backlog builds up and drains); measure at least 16.9 kB";
    assert!(table.contains(words), "{table}");
}

/// 1024 B at 86 kB/s are 11.9 ms, of which 24 h are 7,256,250.
#[test]
fn beyond_a_thousand_measurements_no_probability_is_stated() {
    let own = directory();
    let writes = "operation,file,offset,length,start_ns,end_ns\n\
        write,0,0,512,0,1000000\nwrite,0,512,512,1000000,3000000\n";
    fs::write(own.path().join("t.csv"), writes).unwrap();
    let table = done(own.path(), &plan("t.csv", &["--json", "p.json"]));
    let words = "a run of 24 h is 7,256,250 times as long as the measurement, and beyond 1,000 times no probability is stated; \
                 measure 86.4 s of logging (7.43 MB), or use the buffer of the specification, 21.5 kB (250 ms; SDXC cards: \
                 500 ms, 43 kB)";
    assert!(table.contains(words), "{table}");
    assert!(!table.contains("that lose samples"), "{table}");
    let figures = common::results_in(&own.path().join("p.json"));
    assert!(figures["recommended_buffer_bytes"].is_null() && figures["rank"].is_null());
    for row in buffers(&figures) {
        assert_eq!(row["risk"]["low"], 0.0);
        assert_eq!(row["risk"]["high"], 1.0);
    }
}

#[test]
fn a_card_that_was_not_measured_needs_what_the_specification_allows() {
    let own = directory();
    let run = run(
        own.path(),
        &[&["plan"], &LOGGER[..], &["--json", "p.json"]].concat(),
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // 86 kB/s times 250 ms and 500 ms.
    let answer = "A card that was not measured needs a buffer of at least 21.5 kB (250 ms; SDXC cards: 500 ms, 43 kB) at 86 kB/s: \
                  the longest stall that the SD specification allows.";
    assert_eq!(run.stdout.lines().next(), Some(answer));
    let figures = common::results_in(&own.path().join("p.json"));
    assert_eq!(figures["specification"]["sdhc_buffer_bytes"], 21_500);
    assert_eq!(figures["specification"]["sdxc_buffer_bytes"], 43_000);
    assert_eq!(figures["answer"], answer);
}

/// 16 GB at 860 kB/s are full after 5 hours.
#[test]
fn a_card_that_is_full_or_worn_out_within_the_run_is_named() {
    let own = directory();
    let card = "capacity_bytes";
    let profile = data("../../sim/card/profiles/class10-16g.toml");
    let profile = fs::read_to_string(profile).unwrap();
    let line = profile.lines().find(|line| line.starts_with(card)).unwrap();
    let bytes = line.split(' ').nth(2).unwrap().replace('_', "");
    let bytes: f64 = bytes.parse().unwrap();
    let args = [
        "plan",
        "sim:class10-16g@esp32",
        "--rate",
        "860",
        "--sample-bytes",
        "100",
    ];
    let figures = json(own.path(), &[&args[..], &["--for", "30days"]].concat());
    let full_s = figures["full_after_s"].as_f64().unwrap();
    assert!((full_s - bytes / 86_000.0).abs() < 1e-6, "{full_s}");
    let table = done(own.path(), &[&args[..], &["--for", "30days"]].concat());
    let hours = format!(
        "warning: the card is full after {:.1} days, before a run of 30 days ends",
        full_s / 86_400.0
    );
    assert!(table.contains(&hours), "{hours} in {table}");
    let years = figures["wear"]["lifetime_years"].as_f64().unwrap();
    let longer = format!("{}days", (years * 400.0) as u64);
    let table = done(own.path(), &[&args[..], &["--for", &longer]].concat());
    assert!(
        table.contains("warning: the card is worn out after "),
        "{table}"
    );
}

/// The worst of the nine members needs more than their median.
#[test]
fn the_worst_member_of_an_ensemble_answers() {
    let own = directory();
    let args = plan("sim:team-8g@esp32", &["--buffer", "8KiB"]);
    let figures = json(own.path(), &args);
    let worst = figures["ensemble"]["peak_backlog_bytes"]["high"]
        .as_f64()
        .unwrap();
    assert!(
        worst > 8192.0
            && worst
                > figures["ensemble"]["peak_backlog_bytes"]["median"]
                    .as_f64()
                    .unwrap()
    );
    let answer = figures["answer"].as_str().unwrap();
    let words = "8 KiB is too small for 86 kB/s with Cardiograph's recorder: the worst of 9 members needed ";
    assert!(answer.starts_with(words), "{answer}");
}

/// Without a fitted distribution, only the rule of three applies.
#[test]
fn stalls_without_spread_allow_no_prediction() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), [30_000; 600]);
    let table = done(own.path(), &plan("t.csv", &[]));
    for words in [
        "longer runs cannot be predicted",
        "all equal",
        "64 KiB holds what was measured and what is specified at 86 kB/s",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    let figures = json(own.path(), &plan("t.csv", &[]));
    assert!(figures["tail"].is_null() && figures["recommended_buffer_bytes"].is_null());
    // Rule of three: 1 - exp(-3 T), where T is the length of the run divided by the measured time.
    let times = 86_400.0 / figures["measured"]["run_s"].as_f64().unwrap();
    let high = buffers(&figures)[10]["risk"]["high"].as_f64().unwrap();
    assert!((high - (1.0 - (-3.0 * times).exp())).abs() < 1e-9);
}

#[test]
fn a_rate_above_the_average_has_no_ram() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), falling_stalls());
    let args = ["plan", "t.csv", "--rate", "10000", "--sample-bytes", "100"];
    let table = done(own.path(), &args);
    assert!(
        table.contains("1 MB/s exceeds the mean throughput of"),
        "{table}"
    );
    assert!(
        table.contains("no buffer suffices; lower the rate"),
        "{table}"
    );
    let answer =
        "No buffer is enough for 1 MB/s with the trace's way of writing: the card sustains ";
    assert!(table.starts_with(answer), "{table}");
    let figures = json(own.path(), &args);
    assert!(figures["peak_backlog_bytes"].is_null());
    assert!(
        buffers(&figures)
            .iter()
            .all(|size| size["risk"]["low"] == 1.0)
    );
}

#[test]
fn a_workload_that_opens_and_closes_is_not_what_a_recorder_does() {
    let own = directory();
    let bench = ["bench", "sim:class10-16g@esp32", "--workload", "magod2-4.7"];
    done(
        own.path(),
        &[&bench[..], &["--trace", "t.parquet"]].concat(),
    );
    let args = ["plan", "t.parquet", "--rate", "8", "--sample-bytes", "81"];
    let table = done(own.path(), &args);
    assert!(table.contains("opens and closes its file"), "{table}");
}

#[test]
fn what_tells_nothing_is_refused() {
    let own = directory();
    let header = "operation,file,offset,length,start_ns,end_ns\n";
    fs::write(own.path().join("empty.csv"), header).unwrap();
    fs::write(
        own.path().join("reads.csv"),
        format!("{header}read,0,0,512,0,1000\n"),
    )
    .unwrap();
    fs::write(
        own.path().join("instant.csv"),
        format!("{header}write,0,0,512,5,5\n"),
    )
    .unwrap();
    let recording = data("magod/f2_1.csv").display().to_string();
    for (source, words) in [
        ("none.csv", &["none.csv: no such file", "check"][..]),
        ("empty.csv", &["empty.csv"]),
        (
            "reads.csv",
            &["reads.csv: contains reads only", "use a trace of writes"],
        ),
        (
            "instant.csv",
            &["instant.csv: all writes have a latency of 0"],
        ),
        (
            &recording,
            &[
                "f2_1.csv: contains no individual writes",
                "use a trace of writes",
            ],
        ),
        (
            "sim:best@esp32",
            &["no card named \"best\"", "generic-16g-class10"],
        ),
        (
            "sim:class10-16g@lpc43xx",
            &["SD bus", "choose a board with SPI, such as esp32"],
        ),
    ] {
        refused(own.path(), &plan(source, &[]), words);
    }
    for line in [
        "--rate 0 --sample-bytes 100",
        "--rate -1 --sample-bytes 100",
        "--rate nan --sample-bytes 100",
        "--rate 860 --sample-bytes 0",
        "--rate 860 --sample-bytes 1048577",
        "--rate 860",
        "--rate 860 --sample-bytes 100 --for 0s",
        "--rate 860 --sample-bytes 100 --for soon",
        "--rate 860 --sample-bytes 100 --buffer 0",
        "--rate 860 --sample-bytes 100 --buffer 64Kb",
        "--rate 860 --sample-bytes 100 --buffer 99999999999MiB",
    ] {
        let args = [
            &["plan", "sim:class10-16g@esp32"][..],
            &line.split(' ').collect::<Vec<_>>(),
        ]
        .concat();
        let run = run(own.path(), &args);
        assert_eq!(run.code, Some(2), "{line}: {}", run.stderr);
        assert!(
            run.stderr.starts_with("error: ") && run.stdout.is_empty(),
            "{line}: {}",
            run.stderr
        );
    }
}

/// The rank follows the risk that a plan of each trace alone states.
#[test]
fn several_traces_are_ranked() {
    let own = directory();
    let stalls = |times: f64| falling_stalls().map(move |us| (us as f64 * times) as u64);
    for (name, times) in [("slow.csv", 2.0), ("quick.csv", 0.3), ("middle.csv", 1.0)] {
        write_trace(&own.path().join(name), stalls(times));
    }
    let logger = ["--rate", "100", "--sample-bytes", "100", "--buffer", "1KiB"];
    let names = ["slow.csv", "quick.csv", "middle.csv"];
    let ranking = json(own.path(), &[&["plan"], &names[..], &logger].concat());
    let cards = ranking.as_array().unwrap();
    let order: Vec<_> = cards
        .iter()
        .map(|card| card["target"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["quick.csv", "middle.csv", "slow.csv"]);
    for (card, rank) in cards.iter().zip(1..) {
        let target = card["target"].as_str().unwrap();
        let mut alone = json(own.path(), &[&["plan", target], &logger[..]].concat());
        assert_eq!(
            (&alone["rank"], &alone["overlaps_first"]),
            (&1.into(), &false.into())
        );
        alone["rank"] = rank.into();
        alone["overlaps_first"] = card["overlaps_first"].clone();
        assert_eq!(*card, alone);
        assert_eq!(card["simulated"], false);
    }
    let table = done(own.path(), &[&["plan"], &names[..], &logger].concat());
    let at = |name: &str| table.find(name).unwrap();
    assert!(
        at("1.  quick.csv") < at("2.  middle.csv") && at("middle.csv") < at("3.  slow.csv"),
        "{table}"
    );
}

/// A card with two writes is not the best one because nothing is known of it.
#[test]
fn a_card_with_an_unknown_risk_is_listed_apart() {
    let own = directory();
    write_trace(&own.path().join("known.csv"), falling_stalls());
    let short = "operation,file,offset,length,start_ns,end_ns\nwrite,0,0,512,0,1000\nwrite,0,512,512,1000,2000\n";
    fs::write(own.path().join("short.csv"), short).unwrap();
    let args = [&["plan", "short.csv", "known.csv"], &LOGGER[..]].concat();
    let ranking = json(own.path(), &args);
    let cards = ranking.as_array().unwrap();
    assert_eq!(
        (&cards[0]["target"], &cards[0]["rank"]),
        (&"known.csv".into(), &1.into())
    );
    assert_eq!(cards[1]["target"], "short.csv");
    assert!(cards[1]["rank"].is_null());
    let table = done(own.path(), &args);
    assert!(
        table.starts_with("Take known.csv: with a buffer of 64 KiB, at most "),
        "{table}"
    );
    let at = |words: &str| table.find(words).unwrap();
    assert!(at("  1.  known.csv") < at("Not ranked") && at("Not ranked") < at("      short.csv"));
}

#[test]
fn conditions_on_a_plan_decide_the_exit_code() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), falling_stalls());
    let figures = json(own.path(), &plan("t.csv", &[]));
    let needed = figures["peak_backlog_bytes"].as_f64().unwrap() as u64;
    let row = buffers(&figures)
        .iter()
        .find(|row| row["buffer_bytes"] == 65_536);
    let rate = row.unwrap()["sustained_bytes_per_s"].as_f64().unwrap() as u64;
    let (smaller, larger) = (
        format!("needed > {}B", needed - 1),
        format!("needed > {}B", needed + 1),
    );
    let (faster, slower) = (
        format!("sustained < {}B/s", rate + 1),
        format!("sustained < {rate}B/s"),
    );
    for (condition, code) in [
        (smaller.as_str(), 5),
        (&larger, 0),
        (&faster, 5),
        (&slower, 0),
        ("risk > 2%", 0),
        ("risk > 1%", 5),
        ("risk >= 0%", 5),
    ] {
        let run = run(own.path(), &plan("t.csv", &["--fail-if", condition]));
        assert_eq!(run.code, Some(code), "{condition}: {}", run.stderr);
        let words = format!("t.csv: --fail-if '{condition}' holds: the figure is ");
        assert_eq!(run.stderr.contains(&words), code == 5, "{}", run.stderr);
    }
    // Years are beyond what 91 s show.
    let long = run(
        own.path(),
        &plan("t.csv", &["--for", "400days", "--fail-if", "risk > 1%"]),
    );
    assert_eq!(long.code, Some(5), "{}", long.stderr);
    assert!(
        long.stderr
            .contains("cannot be decided: the measurement is too short")
    );
    let bare = [&["plan"], &LOGGER[..]].concat();
    let fits = run(
        own.path(),
        &[&bare[..], &["--fail-if", "needed > 43000B"]].concat(),
    );
    assert_eq!(fits.code, Some(0), "{}", fits.stderr);
    let fails = run(
        own.path(),
        &[&bare[..], &["--fail-if", "needed > 42999B"]].concat(),
    );
    assert_eq!(fails.code, Some(5), "{}", fails.stderr);
}

#[test]
fn simulated_cards_are_ranked_only_on_request_and_labelled() {
    let own = directory();
    write_trace(&own.path().join("t.csv"), falling_stalls());
    let card = "sim:class10-16g@esp32";
    let args = [&["plan", "t.csv", card], &LOGGER[..]].concat();
    let refused = run(own.path(), &args);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("add --simulated"),
        "{}",
        refused.stderr
    );
    let table = done(own.path(), &[&args[..], &["--simulated"]].concat());
    assert!(table.contains(&format!("{card} (simulated)")), "{table}");
    assert!(!table.contains("t.csv (simulated)"), "{table}");
    // A trace of a simulated card is labelled, too.
    done(own.path(), &["bench", card, "--trace", "card.parquet"]);
    let args = [&["plan", "t.csv", "card.parquet"], &LOGGER[..]].concat();
    assert_eq!(run(own.path(), &args).code, Some(2));
    let table = done(own.path(), &[&args[..], &["--simulated"]].concat());
    assert!(table.contains("card.parquet (simulated)"), "{table}");
}

#[test]
fn a_trace_without_a_unit_can_be_converted() {
    let own = directory();
    let times: String = (0..300).map(|n| format!("{}\n", 800 + n % 7)).collect();
    std::fs::write(own.path().join("times.txt"), times).unwrap();
    let load = ["--rate", "100", "--sample-bytes", "64"];
    let words = [
        "add --time-unit ms or --time-unit us to analyze",
        "then convert the file with cardiograph analyze",
    ];
    refused(
        own.path(),
        &[&["plan", "times.txt"], &load[..]].concat(),
        &words,
    );
    done(
        own.path(),
        &[
            "analyze",
            "times.txt",
            "--time-unit",
            "us",
            "--trace",
            "t.parquet",
        ],
    );
    done(own.path(), &[&["plan", "t.parquet"], &load[..]].concat());
}
