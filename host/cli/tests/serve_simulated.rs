//! `serve sim:CARD@BOARD`: a virtual data logger in real time.

use crate::common;

use common::server::Serving;
use common::{directory, done, results_in};
use serde_json::Value;
use std::fs;

#[test]
#[ignore = "needs curl"]
fn a_virtual_logger_records_and_serves_in_real_time() {
    let own = directory();
    let serving = Serving::target(own.path(), "sim:class10-16g@esp32-26m", &[]);
    serving.wait_for_samples(4000);
    // An upload in several pieces, while the recorder writes.
    let sent: Vec<u8> = (0..300_000_u32).flat_map(|n| n.to_be_bytes()).collect();
    fs::write(own.path().join("up.bin"), &sent).unwrap();
    serving.curl(
        &["-T", own.path().join("up.bin").to_str().unwrap()],
        "/up.bin",
    );
    assert_eq!(serving.curl(&[], "/up.bin"), sent);
    let folder = serving.json("/list?dir=/REC00000");
    let name = folder[0]["name"].as_str().unwrap();
    let rows = serving.curl(&[], &format!("/REC00000/{name}"));
    fs::write(own.path().join("recording.csv"), rows).unwrap();
    // A slice has every row of its time, although rows are written after they were sampled.
    for to_ms in (500_u32..3500).step_by(300) {
        let path = format!("/REC00000/{name}?from=0.2&to={}", f64::from(to_ms) / 1e3);
        let slice = String::from_utf8(serving.curl(&[], &path)).unwrap();
        let times = slice
            .lines()
            .filter_map(|row| row.split(',').next()?.parse::<u64>().ok());
        let end_us = u64::from(to_ms - 10) * 1000;
        let inside = times.filter(|us| (300_000..end_us).contains(us)).count();
        let expected = (end_us * 860).div_ceil(1_000_000) - 258;
        assert_eq!(inside as u64, expected, "rows at 860 Hz up to {end_us} us");
    }
    let status = serving.json("/status")["recorder"].clone();
    assert_eq!(status["lost"], 0, "{status}");
    assert_eq!(status["windows_exceeded"], 0, "{status}");
    let run = serving.end("-INT");
    assert_eq!((run.code, &*run.stderr), (Some(130), ""));
    done(
        own.path(),
        &["analyze", "recording.csv", "--json", "f.json"],
    );
    let figures = results_in(&own.path().join("f.json"));
    assert_eq!(figures["cadence"]["missing_samples"], 0, "{figures}");
    assert!(figures["cadence"]["samples"].as_u64().unwrap() > 800);
}

#[test]
#[ignore = "needs curl"]
fn a_recording_ends_on_request_and_stays_readable() {
    let own = directory();
    let serving = Serving::target(own.path(), "sim:class10-16g@esp32-26m", &[]);
    serving.wait_for_samples(500);
    let stop = ["-d", "action=stop", "-w", "%{http_code}"];
    let answer = serving.curl(&stop, "/record");
    assert!(
        answer.ends_with(b"200") || answer.ends_with(b"204"),
        "{answer:?}"
    );
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while serving.json("/status")["recorder"]["recording"] != false {
        assert!(std::time::Instant::now() < until);
    }
    let folder = serving.json("/list?dir=/REC00000");
    assert_eq!(folder.as_array().unwrap().len(), 1, "{folder}");
    assert!(folder[0]["size"].as_u64().unwrap() > 1000, "{folder}");
    // Another recording, on the same card, after a restart of the device.
    let start = ["-d", "action=start&session=second", "-w", "%{http_code}"];
    let answer = serving.curl(&start, "/record");
    assert!(answer.ends_with(b"204"), "{answer:?}");
    let is_recording = || {
        let status = serving.curl(&["--retry", "3", "--retry-connrefused"], "/status");
        String::from_utf8_lossy(&status).contains("\"recording\":true")
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !is_recording() {
        assert!(std::time::Instant::now() < until);
    }
    serving.wait_for_samples(500);
    let list = serving.curl(&[], "/list?dir=/REC00000");
    let list = String::from_utf8_lossy(&list).into_owned();
    assert!(
        list.contains("REC00001.CSV") && list.contains("second"),
        "{list}"
    );
    let running = serving.curl(&start, "/record");
    assert!(running.ends_with(b"409"), "{running:?}");
    assert_eq!(serving.end("-TERM").code, Some(143));
}

#[test]
#[ignore = "needs curl"]
fn folders_are_listed_while_files_are_uploaded_and_removed() {
    let own = directory();
    fs::write(own.path().join("small"), "contents").unwrap();
    let serving = Serving::target(own.path(), "sim:class10-16g@esp32-26m", &[]);
    serving.wait_for_samples(1);
    let upload = |name: &str| {
        let file = own.path().join("small");
        serving.curl(&["-T", file.to_str().unwrap()], name);
    };
    // Without a recording, clients need not wait for checkpoints.
    serving.curl(&["-d", "action=stop"], "/record");
    serving.curl(&["-X", "MKCOL"], "/f");
    (0..20).for_each(|number| upload(&format!("/f/kept-{number:02}.txt")));
    // The folder changes until all lists have been read, whether they are right or not.
    let lists = std::thread::scope(|scope| {
        let (end, is_over) = std::sync::mpsc::channel::<()>();
        let (upload, serving) = (&upload, &serving);
        scope.spawn(move || {
            while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                upload("/f/new.txt");
                serving.curl(&["-X", "DELETE"], "/f/new.txt");
            }
        });
        let lists = [(); 15].map(|()| {
            let sessions = serving.curl(&[], "/sessions");
            (serving.curl(&[], "/list?dir=/f"), sessions)
        });
        drop(end);
        lists
    });
    for (list, sessions) in lists {
        let list: Value = serde_json::from_slice(&list).unwrap();
        let names = list
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|row| row["name"].as_str());
        assert_eq!(
            names.filter(|name| name.starts_with("kept")).count(),
            20,
            "{list}"
        );
        let sessions: Value = serde_json::from_slice(&sessions).unwrap();
        assert_eq!(sessions.as_array().unwrap().len(), 1);
    }
}
