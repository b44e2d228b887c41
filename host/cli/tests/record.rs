//! `record` on simulated cards and in directories: figures, gaps, samples of others, and the words around them.

mod common;

use common::mount::run_mounted;
use common::{Run, command, data, directory, done, json, names, refused, run};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// What programs rely on, first of all.
const FIELDS: [&str; 8] = [
    "pushed",
    "written",
    "lost",
    "gaps",
    "ring_peak_bytes",
    "lossless_bound_Bps",
    "achieved_Bps",
    "window_breaches",
];

fn number(figures: &Value, name: &str) -> u64 {
    let value = figures[name].as_u64();
    value.unwrap_or_else(|| panic!("{name} is {}", figures[name]))
}

/// Runs the command with this on standard input.
fn fed(directory: &Path, args: &[&str], input: &[u8]) -> Run {
    let mut child = command(directory, args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses may have gone before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    Run::from(child.wait_with_output().unwrap())
}

#[test]
fn no_line_is_lost_on_the_card_that_comes_along() {
    let own = directory();
    let args = ["record", "--rate", "860", "--line", "100", "--for", "30s"];
    let figures = json(own.path(), &args);
    assert_eq!(number(&figures, "pushed"), 25_800);
    assert_eq!(number(&figures, "written"), 25_800);
    assert_eq!(number(&figures, "lost"), 0);
    assert_eq!(figures["gaps"].as_array().unwrap().len(), 0);
    // The most that lines of this rate leave waiting during a stall of this card, 90 ms, and then some.
    let peak = number(&figures, "ring_peak_bytes");
    assert!((100..=16_384).contains(&peak), "{peak}");
    let achieved = figures["achieved_Bps"].as_f64().unwrap();
    assert!((80_000.0..=86_000.0).contains(&achieved), "{achieved}");
    let bound = figures["lossless_bound_Bps"].as_f64().unwrap();
    // 512 of 517 bytes of a bus with 4 MHz.
    assert!(
        (achieved..4e6 / 8.0 * 512.0 / 517.0).contains(&bound),
        "{bound}"
    );
    assert!(names(own.path()).is_empty());
}

#[test]
fn the_json_has_its_fields_in_order() {
    let own = directory();
    let args = ["record", "--for", "2s", "--json", "-"];
    let run = run(own.path(), &args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let places = FIELDS.map(|name| run.stdout.find(&format!("\n  \"{name}\": ")).unwrap());
    assert!(places.is_sorted(), "{}", run.stdout);
    assert!(
        run.stderr
            .contains("verified: every line read back, none lost.")
    );
}

#[test]
fn the_same_seed_gives_the_same_json_and_another_another() {
    let own = directory();
    let of = |seed| {
        let args = ["record", "--rate", "4000", "--for", "8s", "--json", "-"];
        let run = run(own.path(), &[&args[..], &["--seed", seed]].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    };
    let first = of("1");
    assert!(first == of("1"));
    let without_seed = |text: &str| text.replace("\"seed\": 2", "\"seed\": 1");
    assert!(first != without_seed(&of("2")));
}

#[test]
fn gaps_hold_all_that_is_lost_and_do_not_overlap() {
    let own = directory();
    // A ring of 2 KiB lasts for 5 ms.
    let args = ["record", "--rate", "4000", "--for", "10s", "--ram", "2KiB"];
    let figures = json(own.path(), &args);
    let (pushed, lost) = (number(&figures, "pushed"), number(&figures, "lost"));
    assert_eq!(pushed, 40_000);
    assert!(lost > 0);
    assert_eq!(number(&figures, "written"), pushed - lost);
    let gaps = figures["gaps"].as_array().unwrap();
    let (mut counted, mut end) = (0, 0);
    for gap in gaps {
        let (first, count) = (number(gap, "first"), number(gap, "count"));
        assert!(first >= end && count > 0, "{gap}");
        (counted, end) = (counted + count, first + count);
        // The first of a gap came at its number over the rate.
        assert_eq!(number(gap, "at_us"), first * 250, "{gap}");
        assert_eq!(gap["cause"], "busy");
    }
    assert!(end <= pushed);
    assert_eq!(counted, lost);
    let table = done(own.path(), &args);
    assert!(
        table.contains("verified: every line read back; the "),
        "{table}"
    );
    assert!(table.contains("\n    and                    "), "{table}");
}

#[test]
fn policies_are_compared_on_the_same_card() {
    let own = directory();
    let args = ["record", "--compare", "--for", "10s"];
    let all = json(own.path(), &args);
    let all = all.as_array().unwrap();
    let policies: Vec<_> = all
        .iter()
        .map(|one| one["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies, ["naive", "keep-open", "after-recipe", "stream"]);
    for one in all {
        assert_eq!(number(one, "pushed"), 8_600);
        assert_eq!(one["lossless_bound_Bps"], all[3]["lossless_bound_Bps"]);
    }
    assert!(number(&all[0], "lost") > 0 && number(&all[2], "lost") > 0);
    assert_eq!(number(&all[3], "lost"), 0);
    let alone = json(own.path(), &["record", "--for", "10s"]);
    assert_eq!(alone, all[3]);
    let table = done(own.path(), &args);
    for words in [
        "  stream ",
        "lines lost",
        "a power cut takes",
        "No line is lost by keep-open, stream;",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
}

#[test]
fn streams_share_ram_and_card() {
    let own = directory();
    let args = ["record", "--streams", "4", "--rate", "200", "--for", "5s"];
    let figures = json(own.path(), &args);
    assert_eq!(number(&figures, "pushed"), 4_000);
    assert_eq!(number(&figures, "lost"), 0);
    assert_eq!(number(&figures, "files"), 4);
    assert!(done(own.path(), &args).contains("16 KiB for each stream"));
}

#[test]
fn new_files_begin_when_one_is_full_and_with_a_recipe() {
    let own = directory();
    let files = |option: &str, value: &str| {
        let figures = json(own.path(), &["record", "--for", "10s", option, value]);
        assert_eq!(number(&figures, "lost"), 0);
        number(&figures, "files")
    };
    // 860 kB, with marks, in files of 65 536 B.
    assert_eq!(files("--file-size", "64KiB"), 14);
    assert_eq!(files("--recipe", "3s"), 4);
}

#[test]
fn lines_of_another_program_are_recorded_as_they_are() {
    let own = directory();
    // Empty lines, remarks, and a last line that does not end.
    let input = b"time_ms,value\r\n\n# a remark\n#gap is none\n  spaces \nlast";
    let args = ["record", "--samples", "-", "--rate", "10", "--json", "-"];
    let run = fed(own.path(), &args, input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(number(&figures, "written"), 6);
    assert!(
        run.stderr
            .contains("verified: every line read back, none lost.")
    );
    // Half a second is as long as five of them come.
    let run = fed(
        own.path(),
        &[&args[..], &["--for", "500ms"]].concat(),
        input,
    );
    let figures: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(number(&figures, "pushed"), 5);
}

#[test]
fn lines_that_cannot_be_recorded_are_named() {
    let own = directory();
    let long = [b"short\n".to_vec(), vec![b'x'; 439], b"\n".to_vec()].concat();
    let args = ["record", "--samples", "-"];
    assert_eq!(fed(own.path(), &args, &long).code, Some(0));
    let too_long = [&long[..], &[b'y'; 440], b"\n"].concat();
    let refused = fed(own.path(), &args, &too_long);
    common::assert_refused(&refused, &["standard input, line 3: longer than 441 B"]);
    let endless = vec![b'z'; 1 << 20];
    let refused = fed(own.path(), &args, &endless);
    common::assert_refused(&refused, &["standard input, line 1: longer than 441 B"]);
    let refused = fed(own.path(), &args, b"");
    common::assert_refused(&refused, &["there are no lines to record"]);
}

#[test]
fn a_recording_is_replayed_at_its_own_times() {
    let own = directory();
    let recording = data("magod/f2_1.csv").display().to_string();
    let figures = json(own.path(), &["record", "--samples", &recording]);
    assert_eq!(number(&figures, "written"), 1_001);
    // By its time column it lasts from 25.3 to 172.2 s; closing comes after.
    let audit = json(own.path(), &["analyze", &recording]);
    let elapsed_us = audit["elapsed_us"].as_f64().unwrap();
    let duration_us = number(&figures, "duration_us") as f64;
    assert!(
        (elapsed_us..elapsed_us + 3e6).contains(&duration_us),
        "{duration_us}"
    );
    // Half a line's time before the second line only the first is there.
    let first = json(
        own.path(),
        &["record", "--samples", &recording, "--for", "1ms"],
    );
    assert_eq!(number(&first, "written"), 1);
}

/// What files of a recording hold, one after another, without the recorder's marks.
fn recorded(directory: &Path, prefix: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for name in names(directory) {
        if name.starts_with(prefix) {
            let text = fs::read_to_string(directory.join(name)).unwrap();
            lines.extend(text.split_inclusive('\n').map(str::to_string));
        }
    }
    lines.retain(|line| !(line.starts_with('#') && line.contains('@')));
    lines
}

/// The numbers that lines begin with.
fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.split(',').next().unwrap().parse().unwrap();
    lines.iter().map(number).collect()
}

/// A ring that lasts for seconds, so that a busy disk loses nothing.
const LARGE: [&str; 2] = ["--ram", "4MiB"];

#[test]
fn a_directory_holds_every_line_in_order() {
    let own = directory();
    let args = ["record", ".", "--rate", "500", "--for", "1s"];
    let figures = json(own.path(), &[&args[..], &LARGE].concat());
    assert_eq!(number(&figures, "pushed"), 500);
    assert_eq!(number(&figures, "written"), 500);
    assert_eq!(number(&figures, "lost"), 0);
    assert_eq!(number(&figures, "files"), 1);
    assert_eq!(figures["verified"], true);
    assert_eq!(figures["policy"], "stream");
    for nothing in ["lossless_bound_Bps", "seed"] {
        assert!(figures[nothing].is_null(), "{nothing}");
    }
    assert!(FIELDS.iter().all(|name| figures.get(name).is_some()));
    // The last of 500 lines is due after 499 periods.
    assert!(number(&figures, "duration_us") >= 998_000);
    assert_eq!(names(own.path()), ["CARDIOGR.DIR", "REC00001.CSV"]);
    let lines = recorded(own.path(), "REC");
    assert_eq!(numbers(&lines), Vec::from_iter(0..500));
    assert!(
        lines
            .iter()
            .all(|line| line.len() == 100 && line.ends_with("\r\n"))
    );
}

#[test]
fn streams_and_files_in_a_directory_follow_each_other() {
    let own = directory();
    let args = ["record", ".", "--rate", "2000", "--for", "1s"];
    let args = [&args[..], &["--streams", "2", "--file-size", "64KiB"]].concat();
    let table = done(own.path(), &[&args[..], &LARGE].concat());
    assert!(
        table.starts_with(". · stream · 2 streams\n"),
        "no seed, as nothing is random:\n{table}"
    );
    assert!(
        table.contains("verified: every line read back, none lost."),
        "{table}"
    );
    assert!(!table.contains("virtual"), "{table}");
    for prefix in ["REA", "REB"] {
        // 200 kB of lines in files of 65 536 B.
        let files = names(own.path());
        let files = files.iter().filter(|name| name.starts_with(prefix));
        assert!(files.count() >= 4);
        assert_eq!(
            numbers(&recorded(own.path(), prefix)),
            Vec::from_iter(0..2000)
        );
    }
    // What is there stays, and the next one has other names.
    let before = common::tree(own.path()).len();
    let args = ["record", ".", "--rate", "100", "--for", "100ms"];
    done(own.path(), &args);
    assert_eq!(common::tree(own.path()).len(), before + 1);
    assert_eq!(numbers(&recorded(own.path(), "REC")), Vec::from_iter(0..10));
}

#[test]
fn what_is_lost_in_a_directory_is_in_gaps() {
    let own = directory();
    // Ten lines fit in the ring, and a computer's sleep lasts longer than ten of these.
    let args = ["record", ".", "--rate", "1000000", "--for", "20ms"];
    let options = ["--ram", "1KiB", "--durability", "sample"];
    let figures = json(own.path(), &[&args[..], &options].concat());
    let (pushed, lost) = (number(&figures, "pushed"), number(&figures, "lost"));
    assert_eq!(pushed, 20_000);
    assert!(lost > 0);
    assert_eq!(number(&figures, "written"), pushed - lost);
    assert_eq!(figures["verified"], true);
    let gaps = figures["gaps"].as_array().unwrap();
    assert_eq!(
        gaps.iter().map(|gap| number(gap, "count")).sum::<u64>(),
        lost
    );
    // Times count from the first line, one each us: none comes before it is due, or after the end.
    for gap in gaps {
        let (first, at_us) = (number(gap, "first"), number(gap, "at_us"));
        let duration_us = number(&figures, "duration_us");
        assert!((first..=duration_us).contains(&at_us), "{gap}");
    }
}

#[test]
fn a_full_directory_stops_the_recording_or_its_oldest_files_go() {
    let own = directory();
    let name = own.path().to_str().unwrap();
    // 800 kB of lines where there is room for 400 KiB.
    let args = ["record", name, "--rate", "8000", "--for", "1s"];
    let options = ["--ram", "1MiB", "--file-size", "64KiB", "--json", "-"];
    let full = |when_full: &str| {
        let args = [&args[..], &options, &["--when-full", when_full]].concat();
        let (run, left) = run_mounted("tmpfs", "size=400k", own.path(), &args);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(left.iter().any(|name| name.ends_with(".CSV")), "{left:?}");
        let figures: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(number(&figures, "pushed"), 8_000);
        let known = number(&figures, "written") + number(&figures, "lost");
        assert_eq!(known, 8_000);
        (figures, run.stderr)
    };
    let (figures, table) = full("stop");
    // Whole files of what fits are kept, half of it at least.
    assert!((2_000..4_096).contains(&number(&figures, "written")));
    assert_eq!(figures["verified"], true);
    assert!(
        table.contains("verified: every line read back; the "),
        "{table}"
    );
    let (figures, table) = full("remove-oldest");
    assert_eq!(number(&figures, "lost"), 0);
    assert_eq!(figures["verified"], false);
    let words = "Not read back, as the oldest of its files were removed.";
    assert!(table.contains(words), "{table}");
}

#[test]
fn lines_of_another_program_reach_a_directory_as_they_come() {
    let own = directory();
    let input = format!("time_ms,value\r\n# a remark\n{}\nlast", "x".repeat(500));
    let args = ["record", ".", "--samples", "-", "--json", "-"];
    let run = fed(own.path(), &args, input.as_bytes());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(number(&figures, "pushed"), 4);
    assert_eq!(number(&figures, "written"), 3);
    assert_eq!(figures["gaps"][0]["cause"], "too-long");
    assert_eq!(figures["verified"], false);
    assert!(
        run.stderr
            .contains("Not read back, as lines of an input come once."),
        "{}",
        run.stderr
    );
    let mut lines = recorded(own.path(), "REC");
    lines.retain(|line| !line.starts_with("#gap "));
    assert_eq!(lines.concat(), "time_ms,value\r\n# a remark\nlast\n");
}

#[test]
fn an_input_without_end_is_recorded_for_as_long_as_asked() {
    let own = directory();
    let args = ["record", ".", "--samples", "-", "--for", "300ms"];
    let mut child = command(own.path(), &args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    // The pipe stays open until the command has ended.
    let run = Run::from(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(recorded(own.path(), "REC"), ["one\n"]);
}

#[test]
fn a_recording_is_replayed_into_a_directory_in_real_time() {
    let own = directory();
    let path = own.path().join("short.csv");
    let line = |number: u64| format!("{}.{},{number}\r\n", number / 10, number % 10);
    let text: String = (0..8).map(line).collect();
    fs::write(&path, format!("time_s,value\r\n{text}")).unwrap();
    let figures = json(own.path(), &["record", ".", "--samples", "short.csv"]);
    assert_eq!(number(&figures, "written"), 8);
    assert_eq!(figures["verified"], true);
    // The last comes 0.7 s after the first.
    assert!(number(&figures, "duration_us") >= 700_000);
    assert_eq!(recorded(own.path(), "REC").concat(), text);
}

#[test]
fn what_a_directory_cannot_do_is_refused() {
    let own = directory();
    fs::write(own.path().join("file"), "").unwrap();
    for (args, words) in [
        (&["file"][..], &["file: not a directory"][..]),
        (&["/proc", "--for", "1s"], &["/proc/CARDIOGR.DIR: "]),
        (
            &[".", "--compare"],
            &[".: ", "--policy stream alone", "sim:CARD@BOARD"],
        ),
        (&[".", "--policy", "naive"], &["--policy stream alone"]),
        (
            &[".", "--samples", "-", "--rate", "5"],
            &["as they come", "leave --rate away"],
        ),
        (
            &[".", "--samples", "-", "--streams", "2"],
            &["one stream", "leave --streams away"],
        ),
        (&[".", "--for", "0s"], &["no lines to record"]),
    ] {
        refused(own.path(), &[&["record"], args].concat(), words);
    }
    fs::write(own.path().join("CARDIOGR.DIR"), "my own notes").unwrap();
    let args = ["record", ".", "--for", "1s"];
    refused(
        own.path(),
        &args,
        &["CARDIOGR.DIR: no record of it is whole"],
    );
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let own = directory();
    let trace = data("traces/times-1.csv").display().to_string();
    for (args, words) in [
        (
            &["--rate", "0"][..],
            &["--rate is 0", "1 line a second"][..],
        ),
        (&["--line", "0"], &["--line is 0", "14", "441"]),
        (&["--line", "13"], &["--line is 13", "14", "441"]),
        (&["--line", "442"], &["--line is 442", "14", "441"]),
        (&["--streams", "0"], &["--streams is 0", "1 to 4"]),
        (&["--streams", "5"], &["--streams is 5", "1 to 4"]),
        (
            &["--ram", "1023"],
            &["--ram is 1023 B", "1024 B, two blocks"],
        ),
        (
            &["--ram", "3KiB", "--streams", "4"],
            &["768 B for each stream", "1024 B"],
        ),
        (
            &["--file-size", "65535"],
            &["--file-size is 65535 B", "64KiB"],
        ),
        (
            &["--durability", "0s"],
            &["--durability is less than 1us", "`sample`"],
        ),
        (&["--recipe", "0s"], &["--recipe is less than 1us"]),
        (&["--for", "0s"], &["no lines to record", "--for"]),
        (&["--rate", "4952"], &["495 kB/s at most", "lower --rate"]),
        (
            &["--rate", "1300", "--streams", "4"],
            &["lines are 520 kB/s", "lower --rate"],
        ),
        (
            &["sim:apacer-1g-slc@esp32", "--for", "24h"],
            &["7.43 GB of lines", "1.01 GB", "lower --for"],
        ),
        (
            &["sim:class10-16g@linux-reader"],
            &["SD bus", "name a board with SPI", "esp32"],
        ),
        (
            &["sim:class10-16g@linux-reader", "--compare"],
            &["SD bus", "esp32"],
        ),
        (
            &["no/card"],
            &["no/card: there is no such directory", "sim:CARD@BOARD"],
        ),
        (
            &["--samples", "none.csv"],
            &["none.csv: ", "give a recording"],
        ),
        (
            &["--samples", &trace],
            &["not a recording", "cardiograph analyze"],
        ),
        (
            &["--samples", "-", "--policy", "naive"],
            &["--samples works with --policy stream alone"],
        ),
        (
            &["--samples", "-", "--compare"],
            &["--samples works with --policy stream alone"],
        ),
        (
            &["--samples", "-", "--line", "20"],
            &["--line is told by the lines"],
        ),
        (
            &["--samples", &trace, "--rate", "20"],
            &["--rate is told by the lines"],
        ),
        (
            &["--streams", "2", "--compare"],
            &["--streams works with --policy stream alone"],
        ),
        (
            &["--json", "no/such"],
            &["no/such: its directory does not exist"],
        ),
    ] {
        refused(own.path(), &[&["record"], args].concat(), words);
    }
}

#[test]
fn options_are_numbers_with_units() {
    let own = directory();
    for line in [
        "--rate -1",
        "--rate fast",
        "--line 4294967296000000000000",
        "--ram 64Q",
        "--ram KiB",
        "--ram 99999999999GiB",
        "--durability never",
        "--policy best",
        "--when-full panic",
        "--streams many",
    ] {
        let args: Vec<_> = ["record"].into_iter().chain(line.split(' ')).collect();
        let run = run(own.path(), &args);
        assert_eq!(run.code, Some(2), "{line}: {}", run.stderr);
        assert!(
            run.stdout.is_empty() && !run.stderr.contains("panicked"),
            "{line}: {}",
            run.stderr
        );
    }
    let kib = json(own.path(), &["record", "--for", "1s", "--ram", "64KiB"]);
    let plain = json(own.path(), &["record", "--for", "1s", "--ram", "65536"]);
    assert_eq!(kib, plain);
}
