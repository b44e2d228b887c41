//! `bench` on simulated cards: figures, files and messages.

use crate::common;

use common::{
    Source, assert_schema, assert_self_contained, command, data, directory, done, json, names, run,
};
use serde_json::Value;
use std::fs;

/// Returns the data that a report page embeds.
fn data_of(html: &str) -> Value {
    let begin = html
        .find(r#"{"tool":"#)
        .expect("the page contains its data");
    let mut values = serde_json::Deserializer::from_str(&html[begin..]).into_iter();
    values.next().unwrap().unwrap()
}

#[test]
fn without_arguments_the_default_workload_runs_and_no_report_is_overwritten() {
    let directory = directory();
    let table = done(directory.path(), &[]);
    for words in [
        "blinky-stream-512 · sim:team-8g@esp32",
        "Write latency",
        "Throughput",
        "Stalls",
        "Sustained rate",
        "Report: cardiograph-report.html\n",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
    // The first line shows the problem: a stall as long as those that study 5 published, or longer.
    let first_line = table.lines().next().unwrap();
    assert!(first_line.starts_with("Median write 6."), "{first_line}");
    let worst_ms = first_line
        .split_once("worst case ")
        .and_then(|(_, rest)| rest.split_once(" ms"));
    let worst_ms: f64 = worst_ms.unwrap().0.parse().unwrap();
    assert!((130.0..=500.0).contains(&worst_ms), "{first_line}");
    let first = fs::read_to_string(directory.path().join("cardiograph-report.html")).unwrap();

    let table = done(directory.path(), &[]);
    assert!(table.contains("Report: cardiograph-report-2.html\n"));
    assert_eq!(
        names(directory.path()),
        ["cardiograph-report-2.html", "cardiograph-report.html"]
    );
    let again = fs::read_to_string(directory.path().join("cardiograph-report.html")).unwrap();
    assert!(again == first, "the first report was modified");
}

#[test]
fn the_report_is_one_file_that_contains_the_figures() {
    let directory = directory();
    let figures = json(directory.path(), &["bench", "--html", "card.html"]);
    let html = fs::read_to_string(directory.path().join("card.html")).unwrap();
    assert_self_contained(&html);
    let data = data_of(&html);
    assert_eq!(data["runs"].as_array().unwrap().len(), 1);
    assert_eq!(data["runs"][0]["summary"], figures);
    assert_eq!(data["runs"][0]["points"]["total"], figures["writes"]);
}

/// A shell that runs the command of the report receives the same arguments.
#[test]
fn the_report_contains_the_command_that_made_it() {
    let directory = directory();
    let args = [
        "bench",
        "--stall-threshold",
        "50ms",
        "--html",
        "it's a card.html",
    ];
    done(directory.path(), &args);
    let html = fs::read_to_string(directory.path().join("it's a card.html")).unwrap();
    let command = data_of(&html)["command"].as_str().unwrap().to_string();
    let script = format!("cardiograph() {{ printf '%s\\n' \"$@\"; }}; {command}");
    let shell = std::process::Command::new("sh")
        .args(["-c", &script])
        .output();
    assert_eq!(
        String::from_utf8(shell.unwrap().stdout).unwrap(),
        args.join("\n") + "\n"
    );
}

#[test]
fn a_name_cannot_break_out_of_the_report() {
    let directory = directory();
    let name = "</script><img src=x onerror=alert(1)><!--";
    let workload = format!("name = \"{name}\"\n[[phase]]\ncalls_per_file = 9\n");
    fs::write(directory.path().join("odd.toml"), workload).unwrap();
    let args = ["bench", "--workload", "odd.toml", "--html", "odd.html"];
    done(directory.path(), &args);
    let html = fs::read_to_string(directory.path().join("odd.html")).unwrap();
    assert!(!html.contains("<img"));
    assert_eq!(data_of(&html)["runs"][0]["summary"]["workload"], name);
}

#[test]
fn the_json_of_a_simulated_card_follows_the_schema() {
    let directory = directory();
    let figures = json(directory.path(), &["bench"]);
    assert_schema(&figures, Source::Writes);
    assert_eq!(figures["target"], "sim:team-8g@esp32");
    assert_eq!(figures["workload"], "blinky-stream-512");
    assert_eq!(figures["writes"], 16_384);
    assert_eq!(figures["payload_bytes"], 8 << 20);
    assert!(names(directory.path()).is_empty());
}

#[test]
fn repeats_are_an_array_of_different_cards() {
    let directory = directory();
    let figures = json(directory.path(), &["bench", "--repeat", "3"]);
    let runs = figures.as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for run in runs {
        assert_schema(run, Source::Writes);
    }
    assert_ne!(runs[0]["elapsed_us"], runs[1]["elapsed_us"]);
    assert_ne!(runs[1]["elapsed_us"], runs[2]["elapsed_us"]);
    // The first repetition uses the same card as a single run.
    assert_eq!(runs[0], json(directory.path(), &["bench"]));
}

#[test]
fn every_repeat_has_a_trace_of_its_own() {
    let directory = directory();
    let args = ["bench", "--repeat", "2", "--workload", "magod2-4.1"];
    let args = [&args[..], &["--trace", "t.parquet", "--csv", "t"]].concat();
    done(directory.path(), &args);
    assert_eq!(
        names(directory.path()),
        ["t-1", "t-1.parquet", "t-2", "t-2.parquet"]
    );
}

#[test]
fn opening_and_closing_for_every_line_shows_the_published_stalls() {
    let directory = directory();
    let card = "sim:generic-16g-class10@esp32";
    let workload = ["--workload", "magod2", "--stall-threshold", "50ms"];
    let args = [&["bench", card], &workload[..]].concat();
    let figures = json(directory.path(), &args);
    let stalls = &figures["stalls"];
    assert_eq!(stalls["threshold_us"], 50_000.0);
    let latency_us = stalls["latency_us"]["median"].as_f64().unwrap();
    let spacing_bytes = stalls["spacing_bytes"]["median"].as_u64().unwrap();
    assert!((50_000.0..=90_000.0).contains(&latency_us), "{stalls}");
    assert!((70_000..=95_000).contains(&spacing_bytes), "{stalls}");
}

#[test]
fn files_kept_open_take_less_than_a_millisecond_per_line() {
    let directory = directory();
    let figures = json(
        directory.path(),
        &[
            "bench",
            "sim:generic-16g-class10@esp32",
            "--workload",
            "magod2-kept-open",
        ],
    );
    let mean_us = figures["latency_us"]["mean"].as_f64().unwrap();
    assert!(mean_us < 1000.0, "{mean_us}");
    assert_eq!(figures["payload_bytes"], 1_000_000);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let directory = directory();
    let args = ["bench", "--workload", "magod2-4.7", "--json", "-"];
    let first = run(directory.path(), &args);
    let second = run(directory.path(), &args);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout == second.stdout);
    assert!(first.stderr == second.stderr);
}

#[test]
fn a_result_on_standard_output_is_alone_there() {
    let directory = directory();
    for option in ["--json", "--markdown", "--csv"] {
        let run = run(
            directory.path(),
            &["bench", "--workload", "magod2-4.1", option, "-"],
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains("magod2-4.1 · sim:"), "{option}");
        assert!(!run.stdout.contains("magod2-4.1 · sim:") || option == "--markdown");
    }
    let csv = done(directory.path(), &["workloads"]);
    assert!(csv.contains("magod2-kept-open") && csv.contains("(default)"));
    let cards = done(directory.path(), &["cards"]);
    for name in [
        "generic-16g-class10",
        "esp32",
        "mega2560-hw",
        "linux-reader",
    ] {
        assert!(cards.contains(&format!("  {name} ")), "{name} in {cards}");
    }
}

#[test]
fn a_workload_runs_on_every_library() {
    let directory = directory();
    for (board, has_long_names) in [
        ("esp32", false),
        ("esp32-s3-sd4", true),
        ("mega2560", false),
        ("linux-reader", true),
    ] {
        let target = format!("sim:class10-16g@{board}");
        let args = ["bench", &target, "--workload", "byte-multi-write"];
        let figures = json(directory.path(), &args);
        assert_eq!(figures["writes"], 16_384, "{board}");
        let table = run(
            directory.path(),
            &[&args[..], &["--markdown", "-"]].concat(),
        )
        .stdout;
        let notes_short_names = table.contains("has no long file names");
        assert_eq!(notes_short_names, !has_long_names, "{board}: {table}");
    }
}

#[test]
fn a_card_and_a_board_may_be_files() {
    let directory = directory();
    let card = include_str!("../../../sim/card/profiles/team-8g.toml");
    let board = include_str!("../../../sim/card/boards/esp32.toml");
    fs::write(directory.path().join("card.toml"), card).unwrap();
    fs::write(directory.path().join("board.toml"), board).unwrap();
    let from_files = json(directory.path(), &["bench", "sim:card.toml@board.toml"]);
    let by_name = json(directory.path(), &["bench"]);
    assert_eq!(from_files["target"], "sim:card.toml@board.toml");
    assert_eq!(from_files["latency_us"], by_name["latency_us"]);
}

#[test]
fn every_help_shows_examples() {
    let directory = directory();
    for command in [
        "",
        "bench",
        "analyze",
        "record",
        "reproduce",
        "fit",
        "workloads",
        "cards",
    ] {
        let args: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let help = done(directory.path(), &args);
        assert!(help.contains("Examples:\n  cardiograph"), "{help}");
    }
}

#[test]
fn a_full_standard_error_does_not_abort_the_command() {
    let directory = directory();
    let full = || fs::File::create("/dev/full").unwrap();
    let mut bench = command(directory.path(), &["bench", "--json", "-"]);
    let output = bench.stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let figures = common::results(str::from_utf8(&output.stdout).unwrap());
    assert_schema(&figures, Source::Writes);
    let mut bench = command(directory.path(), &["bench", "no such directory"]);
    let status = bench.stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn options_without_effect_are_refused() {
    let own = directory();
    let args = ["bench", "sim:class10-16g", "--io", "direct"];
    common::refused(own.path(), &args, &["--io applies to directories only"]);
}

#[test]
fn a_seed_selects_the_card_of_a_repetition() {
    let own = directory();
    let both = json(own.path(), &["bench", "--repeat", "2"]);
    let second = json(own.path(), &["bench", "--seed", "2"]);
    assert_eq!(both[1]["latency_us"], second["latency_us"]);
    assert_ne!(both[0]["latency_us"], second["latency_us"]);
}

#[test]
fn the_workloads_in_docs_run_on_a_simulated_card() {
    let examples = data("../../docs/examples");
    let own = directory();
    let mut count = 0;
    for file in fs::read_dir(examples).unwrap() {
        let path = file.unwrap().path();
        if path.ends_with("sweep.toml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let figures = json(own.path(), &["bench", "--workload", path.to_str().unwrap()]);
        assert!(figures["writes"].as_u64() > Some(0), "{}", path.display());
        let is_template = path.ends_with("my-logger.toml");
        assert!(
            is_template || text.contains("# Source: "),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count >= 4, "{count}");
}
