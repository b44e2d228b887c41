//! `serve`, and `record --serve`: files and live data while the recorder writes.

use crate::common;

use common::server::Serving;
use common::{command, directory, names, refused, run};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// A buffer that lasts for seconds, so that a busy disk causes no loss.
const RECORD: &[&str] = &[
    "--rate",
    "860",
    "--buffer",
    "4MiB",
    "--durability-window",
    "100ms",
];

fn recording(own: &std::path::Path, more: &[&str]) -> Serving {
    Serving::recording(own, &[RECORD, more].concat())
}

#[test]
#[ignore = "needs curl"]
fn a_served_directory_is_read_and_changed_until_ctrl_c() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let own = directory();
        fs::write(own.path().join("a.txt"), "contents").unwrap();
        let serving = Serving::start(own.path(), &[]);
        assert_eq!(serving.curl(&[], "/a.txt"), b"contents");
        serving.curl(
            &["-T", own.path().join("a.txt").to_str().unwrap()],
            "/b.txt",
        );
        assert_eq!(names(own.path()), ["a.txt", "b.txt"]);
        assert_eq!(serving.json("/status")["recorder"], Value::Null);
        let run = serving.end(signal);
        assert_eq!((run.code, &*run.stderr), (Some(code), ""));
    }
}

#[test]
fn other_computers_can_only_read_unless_permitted() {
    let own = directory();
    let is_read_only = |args: &[&str]| {
        let args = [&["serve", ".", "--listen"], args].concat();
        let child = command(own.path(), &args).spawn().unwrap();
        common::signals::wait_for_handler(&child);
        std::thread::sleep(Duration::from_millis(200));
        common::signals::end(child, "-INT")
            .stdout
            .contains("read-only")
    };
    assert!(is_read_only(&["0.0.0.0:0"]));
    assert!(!is_read_only(&["127.0.0.1:0"]));
    assert!(!is_read_only(&["0.0.0.0:0", "--write"]));
    assert!(!is_read_only(&["0.0.0.0:0", "--auth", "ada:secret"]));
    // Others come through a proxy on this computer.
    assert!(is_read_only(&[
        "127.0.0.1:0",
        "--host",
        "logger.example.org"
    ]));
    assert!(is_read_only(&[
        "127.0.0.1:0",
        "--trusted-proxy",
        "127.0.0.1"
    ]));
    assert!(!is_read_only(&[
        "127.0.0.1:0",
        "--host",
        "a",
        "--host",
        "b",
        "--write"
    ]));
}

#[test]
fn bad_arguments_are_refused() {
    let own = directory();
    fs::write(own.path().join("file"), "").unwrap();
    for (args, part) in [
        (
            &["serve", "none", "--listen", "127.0.0.1:0"][..],
            "none: no such directory, card or image; check the name",
        ),
        (
            &["serve", "file", "--listen", "127.0.0.1:0"],
            "file: not a card",
        ),
        (
            &["serve", "sim:class10-16g@esp32-s3-sd4"],
            "the board has an SD bus",
        ),
        (
            &["serve", ".", "--listen", "nonsense"],
            "nonsense: expected an IP address",
        ),
        (
            &["serve", ".", "--listen", "192.0.2.1:80"],
            "192.0.2.1:80: ",
        ),
        (&["serve", ".", "--auth", "nobody"], "--auth: expected"),
        (&["record", ".", "--host", "logger"], "add --serve ADDR"),
        (
            &["record", "--serve", "127.0.0.1:0"],
            "--serve works only with directories",
        ),
        (
            &["record", ".", "--serve", "x"],
            "x: expected an IP address",
        ),
    ] {
        refused(own.path(), args, &[part]);
    }
    for (option, value, part) in [
        ("--host", "https://logger", "use a name without scheme"),
        ("--trusted-proxy", "logger", "invalid IP address"),
        ("--keep-free", "1", "a size needs a unit"),
    ] {
        let run = run(own.path(), &["serve", ".", option, value]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
}

/// A recording keeps the space for all of its samples, however large the disk is; a name needs no other option.
#[test]
#[ignore = "needs curl"]
fn uploads_leave_the_space_of_a_recording() {
    let own = directory();
    let upload = own.path().join("upload");
    fs::write(&upload, "x").unwrap();
    let upload = [
        "-T",
        upload.to_str().unwrap(),
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
    ];
    let serving = recording(own.path(), &["--for", "100000h"]);
    assert_eq!(serving.curl(&upload, "/a.txt"), b"507");
    serving.end("-INT");
    let more = [
        "--for",
        "1h",
        "--keep-free",
        "1MiB",
        "--host",
        "logger",
        "--auth",
        "a:b",
    ];
    let serving = recording(own.path(), &more);
    let as_logger = ["-u", "a:b", "-H", "Host: logger"];
    let put = [&upload[..], &as_logger].concat();
    assert_eq!(serving.curl(&put, "/a.txt"), b"201");
    serving.end("-INT");
}

#[test]
#[ignore = "needs curl"]
fn a_growing_file_is_downloaded_continued_and_followed() {
    let own = directory();
    let serving = recording(own.path(), &["--for", "4s"]);
    serving.wait_for_samples(600);
    let path = "/REC00000/REC00001.CSV";
    let list = serving.json("/list?dir=/REC00000");
    assert_eq!(list[0]["name"], "REC00001.CSV");
    assert_eq!(list[0]["growing"], true);
    let first = serving.curl(&["--fail"], path);
    let part = own.path().join("part.csv");
    fs::write(&part, &first).unwrap();
    serving.wait_for_samples(1800);
    serving.curl(&["--fail", "-C", "-", "-o", part.to_str().unwrap()], path);
    let continued = fs::read(&part).unwrap();
    assert!(
        continued.len() > first.len() + 50_000,
        "{}",
        continued.len()
    );
    let followed = serving.curl(&["--fail", "-N"], &format!("{path}?follow=1"));
    let run = serving.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let finished = fs::read(own.path().join("REC00000/REC00001.CSV")).unwrap();
    assert!(finished.starts_with(&continued) && continued.starts_with(&first));
    assert!(followed == finished);
    assert!(
        run.stdout
            .contains("Verified: every sample read back, none lost.")
    );
}

#[test]
#[ignore = "needs curl"]
fn the_file_being_recorded_is_neither_removed_nor_replaced() {
    let own = directory();
    let serving = recording(own.path(), &["--for", "3s"]);
    serving.wait_for_samples(300);
    let status = ["-o", "/dev/null", "-w", "%{http_code}"];
    let file = "/REC00000/REC00001.CSV";
    for (args, path) in [
        (&["-X", "DELETE"][..], "/edit?dir=/REC00000/REC00001.CSV"),
        (&["-X", "DELETE"], "/edit?dir=/REC00000"),
        (&["-X", "DELETE"], file),
        (&["-X", "PUT", "-d", "new"], file),
        (&["-X", "MOVE", "-H", "Destination: /x.csv"], file),
        (&["-X", "MOVE", "-H", "Destination: /x"], "/REC00000"),
    ] {
        let code = serving.curl(&[&status[..], args].concat(), path);
        assert_eq!(String::from_utf8_lossy(&code), "423", "{args:?} {path}");
    }
    let run = serving.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("none lost"), "{}", run.stdout);
}

/// Returns the number of each sample in an event stream.
fn numbers(events: &[u8]) -> Vec<u64> {
    let text = str::from_utf8(events).unwrap();
    let is_sample = |line: &&str| line.starts_with("data: ") && line.contains(',');
    let number = |line: &str| line[6..].split(',').next()?.parse().ok();
    text.lines().filter(is_sample).filter_map(number).collect()
}

#[test]
#[ignore = "needs curl"]
fn every_sample_is_sent_live_once() {
    let own = directory();
    let serving = recording(own.path(), &["--for", "5s"]);
    serving.wait_for_samples(100);
    let begun = Instant::now();
    let [one, two] = std::thread::scope(|scope| {
        let clients = [(); 2].map(|()| {
            scope.spawn(|| serving.curl(&["-N", "--max-time", "3"], "/live?all=1&from=0"))
        });
        clients.map(|client| client.join().unwrap())
    });
    assert!(begun.elapsed() < Duration::from_secs(30));
    for events in [one, two] {
        let numbers = numbers(&events);
        assert!(numbers.len() > 2000, "{}", numbers.len());
        assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u64));
    }
    let status = serving.json("/status");
    let recorder = &status["recorder"];
    assert_eq!(recorder["recording"], true);
    assert_eq!(recorder["lost"], 0);
    assert!(recorder["written_bytes"].as_u64() > Some(100_000));
    let run = serving.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
#[ignore = "needs curl"]
fn samples_that_left_the_memory_come_from_the_files() {
    let own = directory();
    // More samples than the server keeps in memory: 20,000 per second, for two seconds at least.
    let args = ["--rate", "20000", "--for", "6s", "--sample-bytes", "50"];
    let args = [&args[..], &["--buffer", "8MiB", "--file-size", "1MiB"]].concat();
    let serving = Serving::recording(own.path(), &args);
    serving.wait_for_samples(60_000);
    let events = serving.curl(&["-N", "--max-time", "2"], "/live?all=1&from=0");
    let numbers = numbers(&events);
    assert!(numbers.len() > 20_000, "{}", numbers.len());
    assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u64));
    serving.finish();
}

#[test]
#[ignore = "needs curl"]
fn a_recording_is_verified_across_sessions_and_stopped_on_request() {
    let own = directory();
    let serving = recording(own.path(), &["--for", "60s"]);
    serving.wait_for_samples(300);
    let post = |form: &str| serving.curl(&["--fail", "-d", form], "/record");
    post("action=rotate&session=run-1&settings=gain%3D4");
    serving.wait_for_samples(800);
    post("action=rotate");
    serving.wait_for_samples(1200);
    post("action=stop");
    let run = serving.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout
            .contains("Verified: every sample read back, none lost."),
        "{}",
        run.stdout
    );
    let files = names(&own.path().join("REC00000"));
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(
        files[0].ends_with("1.CSV") && files[1].ends_with("2 run-1.CSV"),
        "{files:?}"
    );
}

#[test]
#[ignore = "needs curl"]
fn gaps_are_listed_and_a_session_begins_on_request() {
    let own = directory();
    let args = [
        "--rate",
        "200000",
        "--for",
        "3s",
        "--buffer",
        "4KiB",
        "--sample-bytes",
        "50",
    ];
    let serving = Serving::recording(own.path(), &args);
    serving.wait_for_samples(100_000);
    let gaps = serving.json("/gaps");
    let gaps = gaps.as_array().unwrap();
    assert!(!gaps.is_empty());
    assert_eq!(gaps[0]["cause"], "busy");
    let form = [
        "--fail",
        "-d",
        "action=rotate",
        "-d",
        "session=run-2",
        "-d",
        "settings=gain%3D4",
    ];
    serving.curl(&form, "/record");
    let run = serving.finish();
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let files = names(&own.path().join("REC00000"));
    assert!(
        files.iter().any(|name| name.contains(" run-2.")),
        "{files:?}"
    );
    let serving = Serving::start(own.path(), &[]);
    let sessions = serving.json("/sessions");
    let sessions = sessions.as_array().unwrap();
    assert!(sessions.iter().any(|session| session["session"] == "run-2"));
    let lost = |session: &Value| session["lost"].as_u64().unwrap();
    assert!(sessions.iter().map(lost).sum::<u64>() > 0);
}
