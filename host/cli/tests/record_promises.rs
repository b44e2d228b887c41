//! Guarantees of the recorder, tested through the command on simulated cards.

use crate::common;

use common::promise::{assert_nothing_lost, code, record};
use common::{directory, number, run};

#[test]
fn the_only_file_that_fits_on_a_card_contains_all_samples() {
    let own = directory();
    for words in [
        "sim:sandisk-1g-2008@esp32 --file-size 1GiB --for 5s",
        "sim:kingston-2g-2010@esp32 --file-size 3GiB --rate 860 --for 5s",
        "sim:sandisk-1g-2008@esp32 --file-size 1GiB --for 5s --when-full remove-oldest",
    ] {
        println!("{words}");
        let (run, figures) = record(own.path(), words);
        assert_nothing_lost(&run, &figures);
    }
}

#[test]
fn short_files_of_a_large_preallocation_fit_on_a_small_card() {
    let own = directory();
    let words =
        "sim:sandisk-1g-2008@esp32 --file-size 128MiB --rotate-every 1s --rate 2000 --for 20s";
    let (run, figures) = record(own.path(), words);
    assert_nothing_lost(&run, &figures);
}

#[test]
fn a_new_file_each_second_loses_nothing_at_a_quarter_of_the_bound() {
    let own = directory();
    for card in ["apacer-1g-slc", "panasonic-1g-slc", "class10-16g"] {
        let words = "--file-size 64MiB --rotate-every 1s --rate 1050 --for 15s";
        let words = format!("sim:{card}@esp32 {words}");
        println!("{words}");
        let (run, figures) = record(own.path(), &words);
        // The data rate of 105 kB/s is at most a quarter of the bound.
        assert!(figures["sustained_bound_bytes_per_s"].as_f64().unwrap() > 420_000.0);
        assert_nothing_lost(&run, &figures);
    }
    // The next file is not prepared while the ring is too short for a stall, and the output says so.
    let slow = "record sim:toshiba-8g@esp32-s3-sdfat --rotate-every 1s --rate 2750 --for 60s";
    for (words, is_late) in [
        (slow.to_string(), true),
        (slow.replace("2750", "500"), false),
        (slow.replace("--rotate-every 1s", ""), false),
    ] {
        let run = run(own.path(), &Vec::from_iter(words.split_whitespace()));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let is_said = run.stdout.contains(" on average, not 1s");
        assert_eq!(is_said, is_late, "{words}: {}", run.stdout);
    }
}

#[test]
fn losses_have_their_exit_codes() {
    let own = directory();
    let (run, figures) = record(
        own.path(),
        "sim:class10-16g@esp32 --rate 4000 --for 5s --buffer 2KiB",
    );
    assert!(number(&figures, "samples_lost") > 0);
    assert_eq!(figures["verified"], true);
    assert_eq!(run.code, Some(code::LOST), "{}", run.stderr);
}

#[test]
fn help_lists_the_exit_codes() {
    let own = directory();
    let help = run(own.path(), &["record", "--help"]).stdout;
    let (_, codes) = help.split_once("Exit codes").expect("exit codes in --help");
    for code in ["0", "1", "2", "3", "4", "129", "130", "143"] {
        let mut words = codes.split(|letter: char| !letter.is_ascii_alphanumeric());
        assert!(words.any(|word| word == code), "no {code} in: {codes}");
    }
}

#[test]
fn several_streams_reach_the_rate_of_one() {
    let own = directory();
    for words in [
        "--rate 3200",
        "--rate 1600 --streams 2",
        "--rate 800 --streams 4",
    ] {
        println!("{words}");
        let words = format!("sim:class10-16g@esp32 {words} --for 15s");
        let (run, figures) = record(own.path(), &words);
        assert_nothing_lost(&run, &figures);
    }
}

#[test]
fn the_bound_of_streams_with_separate_files_includes_their_turns() {
    let own = directory();
    let bound = |words: &str| {
        let words = format!("sim:class10-16g@esp32 {words} --for 5s");
        let (run, figures) = record(own.path(), &words);
        let bound = figures["sustained_bound_bytes_per_s"].as_f64();
        bound.unwrap_or_else(|| panic!("{}", run.stderr))
    };
    let one = bound("--rate 200 --format csv");
    let two = bound("--rate 100 --streams 2 --format csv");
    let four = bound("--rate 50 --streams 4 --format csv");
    assert!(four < 0.9 * two && two < one, "{four}, {two} of {one}");
    // Each stream has a ring buffer of 32 KiB, and the recorder writes half of it at a turn; this reaches
    // two thirds of the bound.
    let rate = (two * 0.66 / 200.0) as u32;
    let words = format!("sim:class10-16g@esp32 --rate {rate} --streams 2 --format csv --for 15s");
    let (run, figures) = record(own.path(), &words);
    assert_nothing_lost(&run, &figures);
}
