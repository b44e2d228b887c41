//! The monitor of a recording, read from another thread while the recording is in progress.

use cardiograph_record::{
    BinarySamples, DirectoryStream, Feed, Lines, LiveFeed, LiveSetup, Monitor, Monitored, line,
    record_in_directory,
};
use cardiograph_recorder::{Config, Format, StreamConfig, Window};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const RATE_HZ: u32 = 2000;
const SAMPLES: u64 = 3000;

/// Records in `N` streams, and calls `read` repeatedly in another thread until the recording has ended.
fn record<const N: usize>(
    directory: &Path,
    monitor: &Monitor,
    feed: &(dyn Fn() -> Box<dyn Feed + Send> + Sync),
    mut read: impl FnMut() + Send,
) {
    let format = feed().format();
    let setup = LiveSetup {
        config: Config {
            file_bytes: 1 << 16,
            ..Config::default()
        },
        length: None,
        is_stopped: &|| false,
        monitor: Some(monitor),
    };
    let streams = core::array::from_fn::<_, N, _>(|_| DirectoryStream {
        config: StreamConfig {
            prefix: *b"REC",
            format,
            window: Window::Us(20_000),
        },
        ring_bytes: 1 << 20,
        feed: LiveFeed::Clock(feed()),
    });
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                read();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let recorded = record_in_directory(directory, &setup, streams, |_, _| ());
        is_over.store(true, Ordering::Relaxed);
        let summaries = recorded.unwrap().summaries;
        assert!(summaries.iter().all(|summary| summary.written == SAMPLES));
    });
}

fn text() -> Box<dyn Feed + Send> {
    Box::new(Lines {
        rate_hz: RATE_HZ,
        line_bytes: 50,
        count: SAMPLES,
    })
}

fn binary() -> Box<dyn Feed + Send> {
    Box::new(BinarySamples::new(RATE_HZ, 50, SAMPLES))
}

/// Up to every durable length that a reader sees, the growing file has the same contents as the finished
/// file.
fn growing_files_are_prefixes<const N: usize>(feed: &(dyn Fn() -> Box<dyn Feed + Send> + Sync)) {
    let own = tempfile::tempdir().unwrap();
    let monitor = Monitor::default();
    let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
    record::<N>(own.path(), &monitor, feed, || {
        for index in (0..SAMPLES).step_by(100) {
            let Some(file) = monitor.files().with_sample(*b"REC", 0, index) else {
                continue;
            };
            let bytes = file.durable_bytes();
            let part = own.path().join(format!("{}.part", file.path));
            if let Ok(mut contents) = fs::read(part) {
                contents.truncate(bytes as usize);
                assert_eq!(contents.len() as u64, bytes);
                seen.push((file.path.clone(), contents));
            }
        }
    });
    let mut lengths: Vec<_> = seen
        .iter()
        .map(|(path, bytes)| (path, bytes.len()))
        .collect();
    lengths.sort();
    lengths.dedup();
    assert!(lengths.len() > 10, "{lengths:?}");
    for (path, bytes) in &seen {
        let finished = fs::read(own.path().join(path)).unwrap();
        assert!(finished.starts_with(bytes), "{path} at {} B", bytes.len());
    }
}

#[test]
fn growing_text_is_a_prefix_of_the_finished_file() {
    growing_files_are_prefixes::<1>(&text);
}

#[test]
fn a_growing_binary_file_is_a_prefix_of_the_finished_file() {
    growing_files_are_prefixes::<2>(&binary);
}

#[test]
fn samples_come_from_memory_or_from_the_named_file() {
    let own = tempfile::tempdir().unwrap();
    let monitor = Monitor::default();
    let mut next = 0;
    record::<1>(own.path(), &monitor, &text, || {
        while let Monitored::Row(row) = monitor.sample(0, next) {
            let mut expected = [0; 50];
            line(next, &mut expected);
            assert_eq!(row, expected[..48]);
            next += 1;
        }
        if next > 0 {
            assert_eq!(monitor.sample(0, SAMPLES), Monitored::Later);
            assert_eq!(monitor.sample(1, 0), Monitored::None);
        }
    });
    let figures = monitor.figures();
    assert_eq!(
        (figures.samples, figures.lost, figures.gaps),
        (SAMPLES, 0, 0)
    );
    assert!(!figures.is_recording);
    assert!(figures.writes.bytes > 50 * SAMPLES);
    assert!(figures.writes.longest_ns >= figures.writes.median_ns);
    assert!(figures.ring_bytes_max >= 50 && figures.ring_capacity_bytes == 1 << 20);
    let last = monitor
        .files()
        .with_sample(*b"REC", 0, SAMPLES - 1)
        .unwrap();
    // 150 kB of samples in files of 64 KiB need at least three files.
    assert!(last.id.number >= 3);
    let contents = fs::read_to_string(own.path().join(&last.path)).unwrap();
    let first = format!("{:011},", last.first(0).unwrap());
    let lines = contents.lines().filter(|line| !line.contains('#'));
    assert!(lines.clone().next().unwrap().starts_with(&first));
}

#[test]
fn columns_and_rows_of_binary_samples_are_text() {
    let own = tempfile::tempdir().unwrap();
    let monitor = Monitor::default();
    assert_eq!(monitor.columns(0), "");
    let mut next = 0;
    let mut rows = Vec::new();
    record::<1>(own.path(), &monitor, &binary, || {
        // On a busy computer, this thread may come too late for some samples, which are then only in the file.
        let end = monitor.figures().samples;
        for index in next..end {
            if let Monitored::Row(row) = monitor.sample(0, index) {
                rows.push((index, String::from_utf8(row).unwrap()));
            }
        }
        next = end;
    });
    let Format::Binary(schemas) = binary().format() else {
        unreachable!()
    };
    let names = Vec::from_iter(schemas[0].columns().iter().map(|column| column.name));
    assert_eq!(monitor.columns(0), names.join(","));
    assert!(rows.len() > 10);
    for (index, row) in &rows {
        assert!(row.starts_with(&format!("{index},")), "{row}");
        assert_eq!(row.split(',').count(), names.len());
    }
}
