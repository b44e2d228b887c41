//! Totals of recordings, compared with those that the recorder itself reports.

use cardiograph_record::{
    BinarySamples, DirectoryStream, Feed, Lines, LiveFeed, LiveSetup, Monitor, RecordingTotals,
    record_in_directory, totals_of,
};
use cardiograph_recorder::{Config, Event, FileRecord, StreamConfig, Window};
use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Records in `N` streams with rings of `ring_bytes`; returns the records of the closed files.
fn record<const N: usize>(
    directory: &Path,
    ring_bytes: usize,
    feed: &(dyn Fn() -> Box<dyn Feed + Send> + Sync),
) -> Vec<FileRecord> {
    let monitor = Monitor::default();
    let setup = LiveSetup {
        config: Config {
            file_bytes: 1 << 16,
            ..Config::default()
        },
        length: None,
        is_stopped: &|| false,
        monitor: Some(&monitor),
    };
    let streams = core::array::from_fn::<_, N, _>(|_| DirectoryStream {
        config: StreamConfig {
            prefix: *b"REC",
            format: feed().format(),
            window: Window::Us(20_000),
        },
        ring_bytes,
        feed: LiveFeed::Clock(feed()),
    });
    let mut records = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            monitor.begin_session("run-2", "gain=4").unwrap();
        });
        record_in_directory(directory, &setup, streams, |_, event| {
            if let Event::Closed { record, .. } = event {
                records.push(record);
            }
        })
        .unwrap();
    });
    records
}

fn assert_totals(directory: &Path, records: &[FileRecord]) {
    for record in records {
        let session = record.session.as_str();
        let name = match session {
            "" => record.id.to_string(),
            session => record.id.to_string().replace('.', &format!(" {session}.")),
        };
        let file = File::open(directory.join(name)).unwrap();
        let found = totals_of(&file, record.id, record.bytes).unwrap();
        // The last mark is removed when a file is closed.
        let difference_us = record.last_us - found.last_us.min(record.last_us);
        assert!(difference_us < 1_000_000, "{found:?} {record:?}");
        let expected = RecordingTotals {
            session: session.to_string(),
            first_us: record.first_us,
            last_us: found.last_us,
            samples: record.samples,
            gaps: record.gaps,
            lost: record.lost,
        };
        assert_eq!(found, expected, "{}", record.id);
    }
    let sessions = records.iter().map(|record| record.session.as_str());
    assert!(sessions.clone().any(str::is_empty) && sessions.clone().any(|it| it == "run-2"));
}

#[test]
fn totals_of_text_are_those_of_the_recorder() {
    for rate_hz in [20, 3000] {
        let own = tempfile::tempdir().unwrap();
        let feed = || -> Box<dyn Feed + Send> {
            Box::new(Lines {
                rate_hz,
                line_bytes: 50,
                count: u64::from(rate_hz),
            })
        };
        assert_totals(own.path(), &record::<1>(own.path(), 1 << 20, &feed));
    }
}

#[test]
fn totals_with_gaps_are_those_of_the_recorder() {
    let own = tempfile::tempdir().unwrap();
    let feed = || -> Box<dyn Feed + Send> {
        Box::new(Lines {
            rate_hz: 200_000,
            line_bytes: 50,
            count: 120_000,
        })
    };
    let records = record::<1>(own.path(), 4096, &feed);
    assert_totals(own.path(), &records);
    assert!(records.iter().any(|record| record.lost > 0));
}

#[test]
fn totals_of_binary_streams_are_those_of_the_recorder() {
    let own = tempfile::tempdir().unwrap();
    let feed = || -> Box<dyn Feed + Send> { Box::new(BinarySamples::new(3000, 50, 3000)) };
    assert_totals(own.path(), &record::<2>(own.path(), 1 << 20, &feed));
}
