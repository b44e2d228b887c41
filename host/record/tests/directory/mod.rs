//! Recordings in a directory: complete recordings, recordings whose process was killed, and files of other
//! programs.

mod full;
mod repairs;

use cardiograph_record::{
    Access, DirectoryError, DirectoryStream, Feed, Lines, LiveError, LiveFeed, LiveProgress,
    LiveResult, LiveSetup, LiveStreaming, Problem, block_on, line, open_directory,
    record_in_directory, stream_in_directory,
};
use cardiograph_recorder::{
    Config, Event, Format, LINE_BYTES_MAX, StreamConfig, StreamSummary, WhenFull, Window, recover,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LINE_BYTES: usize = 40;
const FILE_BYTES: u32 = 1 << 16;

fn stream(feed: LiveFeed) -> DirectoryStream {
    DirectoryStream {
        config: StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "",
                line_bytes_max: LINE_BYTES as u16,
            },
            window: Window::Us(50_000),
        },
        ring_bytes: 1 << 20,
        feed,
    }
}

fn lines(rate_hz: u32, count: u64) -> LiveFeed<'static> {
    LiveFeed::Clock(Box::new(Lines {
        rate_hz,
        line_bytes: LINE_BYTES,
        count,
    }))
}

fn log(
    directory: &Path,
    feed: LiveFeed,
    events: impl FnMut(u64, Event),
) -> Result<LiveResult<1>, LiveError> {
    log_until_full(directory, WhenFull::Wait, feed, events)
}

fn log_until_full(
    directory: &Path,
    when_full: WhenFull,
    feed: LiveFeed,
    events: impl FnMut(u64, Event),
) -> Result<LiveResult<1>, LiveError> {
    let setup = LiveSetup {
        config: Config {
            file_bytes: FILE_BYTES,
            rotate_us: None,
            when_full,
            ..Config::default()
        },
        length: None,
        is_stopped: &|| false,
        monitor: None,
    };
    record_in_directory(directory, &setup, [stream(feed)], events)
}

fn summary(result: &LiveResult<1>) -> StreamSummary {
    result.summaries[0]
}

fn sentence(result: &Result<LiveResult<1>, LiveError>) -> String {
    result.as_ref().unwrap_err().to_string()
}

/// Returns the contents of all files in a directory, by file name.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if path.is_dir() {
            let within = self::files(&path).into_iter();
            files.extend(within.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

/// Returns the indices of the samples in all recordings; asserts that the lines are as generated. Skips
/// checkpoint marks, gaps and `#file` lines; fails on anything else.
fn numbers(directory: &Path) -> Vec<u64> {
    let mut numbers = Vec::new();
    for (name, bytes) in files(directory) {
        if !name.starts_with("REC") || !name.ends_with(".CSV") {
            continue;
        }
        for found in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A busy computer may lose samples; gaps list them.
            if found.starts_with(b"#file ")
                || found.starts_with(b"#gap ")
                || found.starts_with(b"#") && found.contains(&b'@')
            {
                continue;
            }
            let text = str::from_utf8(found).unwrap();
            let number = text
                .split(',')
                .next()
                .unwrap()
                .parse()
                .unwrap_or_else(|_| panic!("{name}: {text:?}"));
            let mut expected = [0; LINE_BYTES];
            line(number, &mut expected);
            assert_eq!(found, expected, "{name}");
            numbers.push(number);
        }
    }
    numbers
}

/// Recovers a directory; returns the recovered files with their lengths.
fn recovered(directory: &Path, access: Access) -> Result<Vec<(String, u64)>, DirectoryError> {
    let (mut card, mut volume) = open_directory(directory, access)?;
    let mut found = Vec::new();
    let done = block_on(recover(&mut volume, &mut card, |_, event| {
        if let Event::Recovered { record } = event {
            found.push((record.id.to_string(), record.bytes));
        }
    }));
    done.unwrap_or_else(|error| panic!("{error}"));
    Ok(found)
}

#[test]
fn a_recording_is_complete_over_several_files() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(directory.path().join("REC00041.CSV"), "foreign").unwrap();
    let result = log(directory.path(), lines(20_000, 8000), |_, _| ()).unwrap();
    let summary = summary(&result);
    assert_eq!(
        (summary.written, summary.lost, result.pushed),
        (8000, 0, [8000])
    );
    let mut files = files(directory.path());
    assert_eq!(files.remove("REC00041.CSV").unwrap(), b"foreign");
    assert_eq!(files.remove(".cardiograph.lock").unwrap(), b"");
    let names: Vec<_> = files.keys().cloned().collect();
    assert!(names.len() > 4, "{names:?}");
    // Files of other programs do not influence the numbers of recordings.
    assert_eq!(names[0], "REC00000/REC00001.CSV");
    assert_eq!(
        *names.last().unwrap(),
        format!("REC00000/REC{:05}.CSV", names.len())
    );
    assert_eq!(
        files.values().map(|bytes| bytes.len() as u64).sum::<u64>(),
        summary.bytes
    );
    fs::remove_file(directory.path().join("REC00041.CSV")).unwrap();
    assert_eq!(numbers(directory.path()), Vec::from_iter(0..8000));
    assert_eq!(recovered(directory.path(), Access::Recover).unwrap(), []);
}

#[test]
fn lines_are_recorded_as_they_arrive() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let long = "x".repeat(1000);
    let text = format!("a,1\r\n{long}\nb,2\nthe end");
    let feed = LiveFeed::Lines(Box::new(Cursor::new(text)));
    let mut gaps = Vec::new();
    let result = log(directory.path(), feed, |_, event| {
        if let Event::Lost { gap, .. } = event {
            gaps.push((gap.first, gap.count, gap.cause.word()));
        }
    })
    .unwrap();
    assert_eq!((summary(&result).written, summary(&result).lost), (3, 1));
    assert_eq!(gaps, [(1, 1, "bad-sample")]);
    let text = fs::read_to_string(directory.path().join("REC00000/REC00001.CSV")).unwrap();
    let kept: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(kept, ["a,1", "b,2", "the end"]);
}

/// Process that records until the next test kills it.
#[test]
fn process() {
    if let Some(directory) = std::env::var_os("CARDIOGRAPH_TEST_DIRECTORY") {
        log(directory.as_ref(), lines(20_000, 10_000_000), |_, event| {
            if let Event::Checkpoint { samples, .. } = event {
                println!("\ndurable {samples}");
            }
        })
        .unwrap();
    }
}

/// Runs the helper process, kills it after the given number of checkpoints, and returns the last checkpoint
/// that the process printed.
fn kill_after(directory: &Path, checkpoints: usize) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["directory::process", "--exact", "--nocapture"])
        .env("CARDIOGRAPH_TEST_DIRECTORY", directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let checkpoints_printed = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let checkpoints_printed =
        checkpoints_printed.filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
    let mut durable = 0;
    let mut left = checkpoints;
    for samples in checkpoints_printed {
        durable = samples;
        left = left.saturating_sub(1);
        if left == 0 {
            // Sends SIGKILL. Checkpoints printed before the process ended are read too.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert_eq!(left, 0, "the process ended before the kill");
    durable
}

#[test]
fn durable_samples_survive_a_kill() {
    for checkpoints in [1, 3, 12] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let durable = kill_after(directory.path(), checkpoints);
        let before = files(directory.path());
        let seen = recovered(directory.path(), Access::DryRun).unwrap();
        assert!(!seen.is_empty());
        assert_eq!(files(directory.path()), before, "the dry run changed files");
        assert_eq!(recovered(directory.path(), Access::Recover).unwrap(), seen);
        for (name, bytes) in &seen {
            let length = fs::metadata(directory.path().join(name)).map(|metadata| metadata.len());
            match bytes {
                0 => assert!(length.is_err(), "{name} is still there"),
                bytes => assert_eq!(length.unwrap(), *bytes, "{name}"),
            }
        }
        let numbers = numbers(directory.path());
        assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u64));
        assert!(
            numbers.len() as u64 >= durable,
            "{} of {durable}",
            numbers.len()
        );
        assert_eq!(recovered(directory.path(), Access::Recover).unwrap(), []);
    }
}

#[test]
fn a_recorder_repairs_a_killed_recording_and_continues() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let durable = kill_after(directory.path(), 2);
    let mut found = Vec::new();
    let result = log(directory.path(), lines(20_000, 1000), |_, event| {
        if let Event::Recovered { record } = event {
            found.push((record.id.to_string(), record.bytes));
        }
    })
    .unwrap();
    assert_eq!(summary(&result).written, 1000);
    assert!(found.iter().any(|(_, bytes)| *bytes > 0), "{found:?}");
    let numbers = numbers(directory.path());
    let (old, new) = numbers.split_at(numbers.len() - 1000);
    assert!(old.len() as u64 >= durable);
    assert_eq!(new, Vec::from_iter(0..1000));
}

#[test]
fn a_recording_stops_at_once_and_keeps_all_samples() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let begun = Instant::now();
    let setup = LiveSetup {
        config: Config::default(),
        length: None,
        is_stopped: &|| begun.elapsed() > Duration::from_millis(300),
        monitor: None,
    };
    // One stream has a line per minute, the other reads a pipe that never ends.
    let (reader, _writer) = std::io::pipe().unwrap();
    let slow = stream(LiveFeed::Clock(Box::new(Slow)));
    let mut never = stream(LiveFeed::Lines(Box::new(reader)));
    never.config.prefix = *b"PIP";
    let result = record_in_directory(directory.path(), &setup, [slow, never], |_, _| ()).unwrap();
    assert_eq!(result.pushed, [1, 0]);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(numbers(directory.path()), [0]);
}

#[test]
fn the_length_counts_from_the_start_of_sampling() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let length = Duration::from_millis(100);
    let setup = LiveSetup {
        config: Config::default(),
        length: Some(length),
        is_stopped: &|| false,
        monitor: None,
    };
    // The input never ends, and the start of the recorder takes longer than the recording may last.
    let (reader, _writer) = std::io::pipe().unwrap();
    let streams = [stream(LiveFeed::Lines(Box::new(reader)))];
    let slow = |_, event| {
        if matches!(event, Event::Opened { .. }) {
            std::thread::sleep(3 * length);
        }
    };
    let result = record_in_directory(directory.path(), &setup, streams, slow).unwrap();
    let recorded_ns = result.ended_ns - result.started_ns.unwrap();
    assert!(
        u128::from(recorded_ns) >= length.as_nanos(),
        "{recorded_ns}"
    );
}

/// Generated lines, one of which differs each time it is generated.
struct Changing(AtomicU64);

impl Feed for Changing {
    fn count(&self) -> u64 {
        100
    }

    fn due_ns(&self, index: u64) -> u64 {
        index * 1000
    }

    fn make(&self, index: u64, made: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let changed = match index {
            42 => 1_000_000 + self.0.fetch_add(1, Ordering::Relaxed),
            index => index,
        };
        line(changed, &mut made[..LINE_BYTES]);
        LINE_BYTES
    }

    fn bytes(&self) -> u64 {
        self.count() * LINE_BYTES as u64
    }

    fn format(&self) -> Format {
        Format::Lines {
            header: "",
            line_bytes_max: LINE_BYTES as u16,
        }
    }
}

#[test]
fn a_file_with_other_contents_is_detected() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let streaming = LiveStreaming {
        buffer_bytes: 1 << 20,
        window: Window::Us(50_000),
        setup: LiveSetup {
            config: Config::default(),
            length: None,
            is_stopped: &|| false,
            monitor: None,
        },
        progress: &LiveProgress::default(),
    };
    let lines = Changing(AtomicU64::new(0));
    let streamed = stream_in_directory::<1>(directory.path(), &streaming, &lines);
    let result = streamed.unwrap();
    // The recorder's statistics are reported even though the files differ from the samples.
    assert_eq!(result.streams[0].summary.written, 100);
    assert!(result.unverified.is_some());
    match result.problems.as_slice() {
        [Problem::Differs(sentence)] => {
            let words = "REC00000/REC00001.CSV: expected sample 42 at byte ";
            assert!(sentence.starts_with(words), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
}

struct Slow;

impl Feed for Slow {
    fn count(&self) -> u64 {
        60
    }

    fn due_ns(&self, index: u64) -> u64 {
        index * 60_000_000_000
    }

    fn make(&self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        line(index, &mut sample[..LINE_BYTES]);
        LINE_BYTES
    }

    fn bytes(&self) -> u64 {
        self.count() * LINE_BYTES as u64
    }

    fn format(&self) -> Format {
        Format::Lines {
            header: "",
            line_bytes_max: LINE_BYTES as u16,
        }
    }
}

#[test]
fn errors_are_sentences_with_a_remedy() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let missing = directory.path().join("missing");
    let result = log(&missing, lines(1000, 1), |_, _| ());
    assert!(
        sentence(&result).ends_with("create it, or check the name"),
        "{}",
        sentence(&result)
    );

    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let result = log(&file, lines(1000, 1), |_, _| ());
    assert!(
        sentence(&result).ends_with("use a directory"),
        "{}",
        sentence(&result)
    );

    let held = open_directory(directory.path(), Access::Record).unwrap();
    let result = log(directory.path(), lines(1000, 1), |_, _| ());
    assert!(
        sentence(&result).contains("another program"),
        "{}",
        sentence(&result)
    );
    drop(held);

    fs::remove_file(directory.path().join(".cardiograph.lock")).unwrap();
    let refused = recovered(directory.path(), Access::Recover).unwrap_err();
    assert!(
        matches!(refused, DirectoryError::NoRecording(_)),
        "{refused}"
    );
    assert_eq!(files(directory.path()).len(), 1, "files were created");
}
