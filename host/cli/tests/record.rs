//! `record` on simulated cards: figures, gaps, external samples and messages.

use crate::common;

use common::{data, directory, done, fed, json, json_with_code, names, number, refused, run};
use std::fs;

/// The first fields of the JSON, in their order.
const FIELDS: [&str; 8] = [
    "samples_pushed",
    "samples_written",
    "samples_lost",
    "gaps",
    "buffer_peak_bytes",
    "sustained_bound_bytes_per_s",
    "file_rate_bytes_per_s",
    "durability_window_exceeded",
];

#[test]
fn no_sample_is_lost_on_the_built_in_card() {
    let own = directory();
    let args = [
        "record",
        "--rate",
        "860",
        "--sample-bytes",
        "100",
        "--for",
        "30s",
    ];
    let figures = json(own.path(), &args);
    assert_eq!(number(&figures, "samples_pushed"), 25_800);
    assert_eq!(number(&figures, "samples_written"), 25_800);
    assert_eq!(number(&figures, "samples_lost"), 0);
    assert_eq!(figures["gaps"].as_array().unwrap().len(), 0);
    // At most this many samples arrive during the longest stall of this card, 90 ms.
    let peak = number(&figures, "buffer_peak_bytes");
    assert!((100..=16_384).contains(&peak), "{peak}");
    let achieved = figures["file_rate_bytes_per_s"].as_f64().unwrap();
    assert!((80_000.0..=86_000.0).contains(&achieved), "{achieved}");
    let bound = figures["sustained_bound_bytes_per_s"].as_f64().unwrap();
    // A block takes 517 bytes on the bus for 512 bytes of data, at 4 MHz.
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
    let places = FIELDS.map(|name| run.stdout.find(&format!("\n      \"{name}\": ")).unwrap());
    assert!(places.is_sorted(), "{}", run.stdout);
    assert!(
        run.stderr
            .contains("Verified: every sample read back, none lost.")
    );
}

#[test]
fn the_json_is_determined_by_the_seed() {
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
fn gaps_contain_all_lost_samples_and_do_not_overlap() {
    let own = directory();
    // Each ring buffer of 2 KiB is full after 5 ms.
    let args = [
        "record",
        "sim:class10-16g@esp32",
        "--rate",
        "4000",
        "--for",
        "10s",
        "--buffer",
        "2KiB",
    ];
    let figures = json_with_code(own.path(), &args, 3);
    let (pushed, lost) = (
        number(&figures, "samples_pushed"),
        number(&figures, "samples_lost"),
    );
    assert_eq!(pushed, 40_000);
    assert!(lost > 0);
    assert_eq!(number(&figures, "samples_written"), pushed - lost);
    let gaps = figures["gaps"].as_array().unwrap();
    let (mut counted, mut end) = (0, 0);
    for gap in gaps {
        let (first, count) = (number(gap, "first_sample"), number(gap, "samples"));
        assert!(first >= end && count > 0, "{gap}");
        (counted, end) = (counted + count, first + count);
        // The arrival time of the first lost sample is its index divided by the rate.
        assert_eq!(number(gap, "at_us"), first * 250, "{gap}");
        assert_eq!(gap["cause"], "busy");
    }
    assert!(end <= pushed);
    assert_eq!(counted, lost);
    let table = run(own.path(), &args).stdout;
    assert!(
        table.contains("Verified: every written sample read back; the gaps account for the "),
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
    assert_eq!(policies, ["naive", "keep-open", "after-session", "stream"]);
    for one in all {
        assert_eq!(number(one, "samples_pushed"), 8_600);
        assert_eq!(
            one["sustained_bound_bytes_per_s"],
            all[3]["sustained_bound_bytes_per_s"]
        );
    }
    assert!(number(&all[0], "samples_lost") > 0 && number(&all[2], "samples_lost") > 0);
    assert_eq!(number(&all[3], "samples_lost"), 0);
    let alone = json(own.path(), &["record", "--for", "10s"]);
    assert_eq!(alone, all[3]);
    let table = done(own.path(), &args);
    for words in [
        "  stream ",
        "samples lost",
        "power cut loses",
        "No samples lost with stream; samples lost with naive, keep-open and after-session.",
    ] {
        assert!(table.contains(words), "no \"{words}\" in:\n{table}");
    }
}

#[test]
fn streams_share_buffer_and_card() {
    let own = directory();
    let args = ["record", "--streams", "4", "--rate", "200", "--for", "5s"];
    let figures = json(own.path(), &args);
    assert_eq!(number(&figures, "samples_pushed"), 4_000);
    assert_eq!(number(&figures, "samples_lost"), 0);
    assert_eq!(figures["format"], "binary");
    assert_eq!(number(&figures, "files"), 1);
    let table = done(own.path(), &args);
    assert!(table.contains("64 KiB, 16 KiB per stream"), "{table}");
    let figures = json(own.path(), &[&args[..], &["--format", "csv"]].concat());
    assert_eq!(number(&figures, "samples_lost"), 0);
    assert_eq!(number(&figures, "files"), 4);
}

#[test]
fn new_files_begin_when_one_is_full_and_at_an_interval() {
    let own = directory();
    let files = |option: &str, value: &str| {
        let figures = json(own.path(), &["record", "--for", "10s", option, value]);
        assert_eq!(number(&figures, "samples_lost"), 0);
        number(&figures, "files")
    };
    // 860 kB of samples plus checkpoint marks, in files of 65,536 B.
    assert_eq!(files("--file-size", "64KiB"), 14);
    assert_eq!(files("--rotate-every", "3s"), 4);
}

#[test]
fn lines_of_another_program_are_recorded_unchanged() {
    let own = directory();
    // Empty lines, comments, and a last line without a line end.
    let input = b"time_ms,value\r\n\n# a remark\n#gap is none\n  spaces \nlast";
    let args = ["record", "--samples", "-", "--rate", "10", "--json", "-"];
    let run = fed(own.path(), &args, input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures = common::results(&run.stdout);
    assert_eq!(number(&figures, "samples_written"), 6);
    assert!(
        run.stderr
            .contains("Verified: every sample read back, none lost.")
    );
    // Five lines arrive in half a second.
    let run = fed(
        own.path(),
        &[&args[..], &["--for", "500ms"]].concat(),
        input,
    );
    let figures = common::results(&run.stdout);
    assert_eq!(number(&figures, "samples_pushed"), 5);
}

/// The limit is that of a line in a text file, 405 B, including the line end.
#[test]
fn a_line_that_is_too_long_is_lost_and_the_others_are_recorded() {
    let line = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
    let fitting = [&b"first\r\n"[..], &line(404), b"last"].concat();
    let too_long = [&b"first\n"[..], &line(405), &line(1 << 20), b"last"].concat();
    let endless = vec![b'z'; 1 << 20];
    let without_end = vec![b'z'; 405];
    for (input, recorded, lost) in [
        (&fitting, [&fitting[..], b"\n"].concat(), 0),
        (&too_long, b"first\nlast\n".to_vec(), 2),
        (&endless, Vec::new(), 1),
        (&without_end, Vec::new(), 1),
    ] {
        let own = directory();
        for target in ["sim:generic-16g-class10@esp32", "."] {
            let args = ["record", target, "--samples", "-", "--json", "-"];
            let run = fed(own.path(), &args, input);
            let code = if lost > 0 { 3 } else { 0 };
            assert_eq!(run.code, Some(code), "{target}: {}", run.stderr);
            let figures = common::results(&run.stdout);
            let lines = recorded.iter().filter(|byte| **byte == b'\n').count() as u64;
            assert_eq!(number(&figures, "samples_written"), lines, "{target}");
            assert_eq!(number(&figures, "samples_lost"), lost, "{target}");
            for gap in figures["gaps"].as_array().unwrap() {
                assert_eq!(gap["cause"], "bad-sample", "{target}");
            }
            // The files of a simulated card are compared by the command.
            assert_eq!(figures["verified"], target != ".");
        }
        let file = own.path().join("REC00000/REC00001.CSV");
        let text = fs::read(file).unwrap_or_default();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let samples: Vec<&[u8]> = lines.filter(|line| line[0] != b'#').collect();
        assert_eq!(samples.concat(), recorded);
    }
}

#[test]
fn an_input_without_lines_is_an_error() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    for target in ["sim:generic-16g-class10@esp32", "card"] {
        let run = fed(own.path(), &["record", target, "--samples", "-"], b"");
        assert_eq!(run.code, Some(2), "{target}: {}", run.stderr);
        let words = "no lines arrived from standard input; check the program that writes them";
        assert!(run.stderr.contains(words), "{target}: {}", run.stderr);
    }
}

#[test]
fn a_recording_is_replayed_at_its_own_times() {
    let own = directory();
    let recording = data("magod/f2_1.csv").display().to_string();
    let figures = json(own.path(), &["record", "--samples", &recording]);
    assert_eq!(number(&figures, "samples_written"), 1_001);
    // By its time column, the recording lasts from 25.3 to 172.2 s; then the files are closed.
    let audit = json(own.path(), &["analyze", &recording]);
    let elapsed_us = audit["elapsed_us"].as_f64().unwrap();
    let duration_us = number(&figures, "duration_us") as f64;
    assert!(
        (elapsed_us..elapsed_us + 3e6).contains(&duration_us),
        "{duration_us}"
    );
    // Before the second line is due, only the first has been recorded.
    let first = json(
        own.path(),
        &["record", "--samples", &recording, "--for", "1ms"],
    );
    assert_eq!(number(&first, "samples_written"), 1);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_option_and_the_range() {
    let own = directory();
    let whole = "use a whole number from";
    let time = "use a number and a unit, such as 50ms, 60s or 2min";
    let window = "too short; use at least 1ms, or `sample` for only the newest sample";
    for (option, value, remedy) in [
        ("--rate <HZ>", "0", format!("{whole} 1 to 1000000")),
        ("--rate <HZ>", "-1", format!("{whole} 1 to 1000000")),
        ("--sample-bytes <BYTES>", "0", format!("{whole} 8 to 405")),
        ("--sample-bytes <BYTES>", "406", format!("{whole} 8 to 405")),
        ("--streams <N>", "0", format!("{whole} 1 to 4")),
        ("--streams <N>", "5", format!("{whole} 1 to 4")),
        (
            "--for <TIME>",
            "-5s",
            format!("a time cannot be negative; {time}"),
        ),
        ("--rotate-every <TIME>", "5", time.to_string()),
        (
            "--buffer <SIZE>",
            "-1KiB",
            "a size cannot be negative; use".to_string(),
        ),
        (
            "--durability-window <TIME|sample>",
            "0s",
            window.to_string(),
        ),
        (
            "--durability-window <TIME|sample>",
            "999us",
            window.to_string(),
        ),
    ] {
        let name = option.split(' ').next().unwrap();
        let run = common::run(own.path(), &["record", name, value]);
        let sentence = format!("error: invalid value '{value}' for '{option}': {remedy}");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.starts_with(&sentence), "{}", run.stderr);
    }
    let args = ["record", "--for", "1s", "--durability-window", "1ms"];
    common::json(own.path(), &args);
}

#[test]
fn unusable_options_are_rejected() {
    let own = directory();
    let trace = data("traces/times-1.csv").display().to_string();
    for (args, words) in [
        (
            &["--sample-bytes", "13"][..],
            &["--sample-bytes is 13", "14", "405"][..],
        ),
        (
            &["--buffer", "1023B"],
            &["--buffer gives each stream 1023 B", "1024 B (two blocks)"],
        ),
        (
            &["--buffer", "3KiB", "--streams", "4"],
            &["gives each stream 768 B", "1024 B"],
        ),
        (
            &["--file-size", "65535B"],
            &["--file-size is 65535 B", "64 KiB to 4 GiB - 1 B"],
        ),
        (
            &["--rotate-every", "0s"],
            &["--rotate-every is less than 1us"],
        ),
        (&["--for", "0s"], &["no samples to record", "--for"]),
        (
            &["--rate", "4952"],
            &["the bus carries at most 495 kB/s", "reduce --rate"],
        ),
        (
            &["--rate", "1300", "--streams", "4"],
            &["samples need 520 kB/s", "reduce --rate"],
        ),
        (
            &["sim:apacer-1g-slc@esp32", "--for", "24h"],
            &["samples take 7.43 GB", "990 MB", "reduce --for"],
        ),
        (
            &["sim:class10-16g@linux-reader"],
            &["SD bus", "use a board with SPI", "esp32"],
        ),
        (
            &["sim:class10-16g@linux-reader", "--compare"],
            &["SD bus", "esp32"],
        ),
        (
            &["no/card"],
            &["no/card: no such directory", "sim:CARD@BOARD"],
        ),
        (
            &["--samples", "none.csv"],
            &["none.csv: ", "use a readable recording"],
        ),
        (
            &["--samples", &trace],
            &["a trace, not a recording", "cardiograph analyze"],
        ),
        (
            &["--samples", "-", "--policy", "naive"],
            &["--samples works only with --policy stream"],
        ),
        (
            &["--samples", "-", "--compare"],
            &["--samples works only with --policy stream"],
        ),
        (
            &["--samples", "-", "--sample-bytes", "20"],
            &["--sample-bytes cannot be combined with --samples"],
        ),
        (
            &["--samples", &trace, "--rate", "20"],
            &["--rate cannot be combined with a recording, which has its own times; remove --rate"],
        ),
        (
            &["--streams", "2", "--compare"],
            &["--streams works only with --policy stream"],
        ),
        (
            &["--json", "no/such"],
            &["no/such: the directory does not exist"],
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
        "--sample-bytes 4294967296000000000000",
        "--buffer 64Q",
        "--buffer KiB",
        "--buffer 99999999999GiB",
        "--durability-window never",
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
    let kib = json(own.path(), &["record", "--for", "1s", "--buffer", "64KiB"]);
    let plain = json(own.path(), &["record", "--for", "1s", "--buffer", "65536B"]);
    assert_eq!(kib, plain);
}

#[test]
fn a_bound_above_the_rate_that_lost_samples_is_qualified() {
    let own = directory();
    let card = ["record", "sim:class10-16g@esp32", "--for", "5s"];
    let lossy = [&card[..], &["--seed", "2", "--buffer", "1KiB"]].concat();
    let lossy = run(own.path(), &lossy);
    assert_eq!(lossy.code, Some(3), "{}", lossy.stderr);
    let words = "this run lost samples";
    assert!(lossy.stdout.contains(words), "{}", lossy.stdout);
    // A buffer of the advised size loses nothing.
    let advised = lossy.stdout.split("to lose none").nth(1).unwrap();
    let advised = advised.split(';').next().unwrap();
    let advised = advised.trim().trim_start_matches("about ").replace(' ', "");
    let enough = run(
        own.path(),
        &[&card[..], &["--seed", "2", "--buffer", &advised]].concat(),
    );
    assert_eq!(enough.code, Some(0), "{advised}: {}", enough.stdout);
    assert!(!enough.stdout.contains("to lose none"), "{}", enough.stdout);
    let lossless = run(own.path(), &card);
    assert_eq!(lossless.code, Some(0), "{}", lossless.stderr);
    assert!(!lossless.stdout.contains(words), "{}", lossless.stdout);
    let remedy = "with --format binary, all streams share one file";
    assert!(!lossy.stdout.contains(remedy), "{}", lossy.stdout);
    let apart = "record sim:team-8g-class10@esp32 --rate 944 --for 5s --streams 2 --format csv";
    let apart = run(own.path(), &Vec::from_iter(apart.split(' ')));
    assert_eq!(apart.code, Some(3), "{}", apart.stderr);
    let shown = apart.stdout.split_once(words);
    assert!(
        shown.is_some_and(|(_, after)| after.contains(remedy)),
        "{}",
        apart.stdout
    );
    let together = "record sim:team-8g-class10@esp32 --rate 944 --for 5s --streams 2";
    let together = run(own.path(), &Vec::from_iter(together.split(' ')));
    assert_eq!(together.code, Some(0), "{}", together.stdout);
}
