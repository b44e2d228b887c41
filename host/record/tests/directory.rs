//! Recordings in a directory: complete recordings, recordings whose process was killed, and files of other
//! programs.

use cardiograph_record::{
    Access, DirectoryError, DirectoryStream, Feed, Lines, LiveError, LiveFeed, LiveProgress,
    LiveResult, LiveSetup, LiveStreaming, Problem, Repair, block_on, line, open_directory,
    record_in_directory, stream_in_directory,
};
use cardiograph_recorder::{
    Config, Event, Format, LINE_BYTES_MAX, StreamConfig, StreamSummary, WhenFull, Window, recover,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Write};
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

/// Returns the names of the unfinished files of a directory.
fn unfinished(directory: &Path) -> Vec<String> {
    let names = files(directory).into_keys();
    names.filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn files_of_other_programs_are_not_mistaken_for_unfinished_ones() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    kill_after(directory.path(), 2);
    let parts = unfinished(directory.path());
    assert!(parts.len() > 2, "{parts:?}");
    // Another program overwrote a prepared file, and created a file whose name is that of an unfinished
    // recording.
    let prepared = parts.iter().find(|name| name.starts_with('.')).unwrap();
    let foreign = "REC00000/REC00077.CSV.part";
    // A slow process may have been killed before its first file received its number.
    fs::create_dir_all(directory.path().join("REC00000")).unwrap();
    for name in [prepared, foreign] {
        fs::write(directory.path().join(name), "foreign, without a line end").unwrap();
    }
    let before = numbers_in_parts(directory.path());
    let found = recovered(directory.path(), Access::Recover).unwrap();
    assert_eq!(found.iter().filter(|(_, bytes)| *bytes > 0).count(), before);
    let mut left = unfinished(directory.path());
    left.sort();
    assert_eq!(left, [prepared, foreign]);
    for name in left {
        let bytes = fs::read(directory.path().join(&name)).unwrap();
        assert_eq!(bytes, b"foreign, without a line end", "{name}");
    }
}

/// Recovers a directory; returns the names in the list of repairs.
fn repairs(directory: &Path, access: Access) -> Vec<Repair> {
    let (mut card, mut volume) = open_directory(directory, access).unwrap();
    block_on(recover(&mut volume, &mut card, |_, _| ())).unwrap();
    volume.take_repairs()
}

#[test]
fn only_provable_recordings_are_renamed_or_removed() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("REC00000")).unwrap();
    let mut behind = vec![0; 1 << 20];
    behind[700_000] = 1;
    let ours = "time_us,x\r\n,,\"#file number=2 first=0 at_us=1 settings=a,b\"\r\n1,2\r\n";
    for (name, bytes) in [
        ("REC00000/REC00001.CSV.part", &b"a user report\n"[..]),
        ("REC00000/REC00002.CSV.part", ours.as_bytes()),
        ("REC00000/REC00003.CSV.part", &[0; 2048]),
        ("REC00000/REC00005.CSV.part", &behind),
        (".cardiograph-0-REC-CSV.part", &behind),
        (".cardiograph-1-REC-CSV.part", &[0; 2048]),
        (".cardiograph-01-REC-CSV.part", &[0; 2048]),
        (".cardiograph-2-REC-CSV.part", &[0; 2047]),
    ] {
        fs::write(at(name), bytes).unwrap();
    }
    for name in ["REC00000/REC00004.CSV.part", ".cardiograph-3-REC-CSV.part"] {
        std::os::unix::fs::symlink(at(".cardiograph-1-REC-CSV.part"), at(name)).unwrap();
    }
    let before = files(directory.path());
    let expected = [
        Repair::LeftAlone(".cardiograph-0-REC-CSV.part".to_string()),
        Repair::LeftAlone(".cardiograph-2-REC-CSV.part".to_string()),
        Repair::LeftAlone(".cardiograph-3-REC-CSV.part".to_string()),
        Repair::LeftAlone("REC00000/REC00001.CSV.part".to_string()),
        Repair::LeftAlone("REC00000/REC00005.CSV.part".to_string()),
        Repair::Renamed("REC00000/REC00002.CSV".to_string(), ours.len() as u64),
        Repair::Removed(".cardiograph-1-REC-CSV.part".to_string()),
        Repair::Removed("REC00000/REC00003.CSV.part".to_string()),
    ];
    assert_eq!(repairs(directory.path(), Access::DryRun), expected);
    assert_eq!(files(directory.path()), before, "the dry run changed files");
    assert_eq!(repairs(directory.path(), Access::Recover), expected);
    for name in ["REC00000/REC00004.CSV.part", ".cardiograph-3-REC-CSV.part"] {
        assert!(at(name).is_symlink(), "{name}");
        fs::remove_file(at(name)).unwrap();
    }
    let mut left = before;
    left.retain(|name, _| !name.contains("04.") && !name.contains("-3-"));
    let renamed = left.remove("REC00000/REC00002.CSV.part").unwrap();
    left.insert("REC00000/REC00002.CSV".to_string(), renamed);
    left.remove(".cardiograph-1-REC-CSV.part");
    left.remove("REC00000/REC00003.CSV.part");
    left.insert(".cardiograph.lock".to_string(), Vec::new());
    assert_eq!(files(directory.path()), left);
}

/// Returns the number of unfinished files with lines.
fn numbers_in_parts(directory: &Path) -> usize {
    let parts = files(directory).into_iter();
    parts
        .filter(|(name, bytes)| name.ends_with(".part") && bytes.starts_with(b"#file"))
        .count()
}

#[test]
fn a_finished_recording_is_never_replaced() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let taken = directory.path().join("REC00000/REC00001.CSV");
    let mut is_taken = false;
    // Another program takes the final name while the file is being written.
    let result = log(directory.path(), lines(2_000, 1_000), |_, event| {
        if matches!(event, Event::Checkpoint { .. }) && !is_taken {
            fs::create_dir_all(taken.parent().unwrap()).unwrap();
            fs::write(&taken, "foreign").unwrap();
            is_taken = true;
        }
    });
    assert!(is_taken);
    assert_eq!(fs::read(&taken).unwrap(), b"foreign");
    // The conflict is reported as a failure of the storage device; no sample is silently counted as written.
    let result = result.unwrap();
    let counted = summary(&result).written + summary(&result).lost;
    assert_eq!(counted, result.pushed[0]);
    assert_eq!(unfinished(directory.path()), [""; 0]);
    fs::remove_file(&taken).unwrap();
    let kept = numbers(directory.path()).len() as u64;
    assert!(kept >= summary(&result).written, "{kept}: {result:?}");
    fs::write(&taken, "foreign").unwrap();
    assert_eq!(repairs(directory.path(), Access::Recover), []);
    assert!(
        result
            .failure
            .as_ref()
            .is_some_and(|why| why.contains("REC00001.CSV")),
        "{:?}",
        result.failure
    );
}

#[test]
fn a_recovered_recording_passes_taken_names() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let durable = kill_after(directory.path(), 2);
    let at = |name: &str| directory.path().join(name);
    let parts = unfinished(directory.path()).into_iter();
    let named = parts.filter(|name| name.starts_with("REC"));
    let finals = named.map(|name| name.strip_suffix(".part").unwrap().to_string());
    let finals = Vec::from_iter(finals);
    assert!(!finals.is_empty());
    for name in &finals {
        fs::write(at(name), "foreign").unwrap();
    }
    // Neither files nor folders that already have one of the next names are replaced.
    fs::create_dir(at("REC00000/REC00090.CSV")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("REC00000/REC00091.CSV")).unwrap();
    let seen = recovered(directory.path(), Access::DryRun).unwrap();
    assert_eq!(recovered(directory.path(), Access::Recover).unwrap(), seen);
    assert!(
        seen.iter().any(|(name, _)| name == "REC00000/REC00092.CSV"),
        "{seen:?}"
    );
    for name in &finals {
        assert_eq!(fs::read(at(name)).unwrap(), b"foreign");
        fs::remove_file(at(name)).unwrap();
    }
    assert!(at("REC00000/REC00091.CSV").is_symlink());
    fs::remove_file(at("REC00000/REC00091.CSV")).unwrap();
    let mut numbers = numbers(directory.path());
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u64));
    assert!(numbers.len() as u64 >= durable);
    assert_eq!(repairs(directory.path(), Access::Recover), []);
}

#[test]
fn numbers_pass_names_of_other_programs() {
    for taken in ["REC99999/REC99999.CSV", "REC99999/REC99998.CSV"] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(directory.path().join("REC99999")).unwrap();
        fs::write(directory.path().join(taken), "foreign").unwrap();
        for number in 1..=2 {
            log(directory.path(), lines(1_000, 10), |_, _| ()).unwrap();
            let name = format!("REC00000/REC0000{number}.CSV");
            assert!(directory.path().join(&name).is_file(), "{name}");
        }
        assert_eq!(fs::read(directory.path().join(taken)).unwrap(), b"foreign");
    }
    // A regular file has the name of the first recording folder.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(directory.path().join("REC00000"), "foreign").unwrap();
    for number in 0..2 {
        let result = log(directory.path(), lines(1_000, 10), |_, _| ()).unwrap();
        assert_eq!((summary(&result).written, result.failure), (10, None));
        let name = format!("REC00001/REC0100{number}.CSV");
        assert!(directory.path().join(&name).is_file(), "{name}");
    }
    assert_eq!(unfinished(directory.path()), [""; 0]);
    let foreign = fs::read(directory.path().join("REC00000")).unwrap();
    assert_eq!(foreign, b"foreign");
}

#[test]
fn a_trimmed_recording_passes_a_taken_name() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    log(directory.path(), lines(1_000, 10), |_, _| ()).unwrap();
    let taken = directory.path().join("REC00000/REC00001.CSV");
    let whole = fs::read(&taken).unwrap();
    fs::rename(&taken, taken.with_extension("CSV.part")).unwrap();
    fs::write(&taken, "foreign").unwrap();
    let name = "REC00000/REC00002.CSV";
    let expected = [Repair::Renamed(name.to_string(), whole.len() as u64)];
    assert_eq!(repairs(directory.path(), Access::DryRun), expected);
    assert_eq!(repairs(directory.path(), Access::Recover), expected);
    assert_eq!(fs::read(&taken).unwrap(), b"foreign");
    assert_eq!(fs::read(directory.path().join(name)).unwrap(), whole);
}

#[test]
fn an_interrupted_close_is_completed() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    log(directory.path(), lines(20_000, 3_000), |_, _| ()).unwrap();
    let whole = files(directory.path());
    let recordings: Vec<_> = whole.keys().filter(|name| name.ends_with(".CSV")).collect();
    assert!(recordings.len() >= 2, "{recordings:?}");
    // A file that was trimmed but not renamed must keep the data after its last checkpoint mark.
    for name in &recordings {
        let path = directory.path().join(name);
        fs::rename(&path, path.with_extension("CSV.part")).unwrap();
    }
    assert_eq!(recovered(directory.path(), Access::DryRun).unwrap(), []);
    recovered(directory.path(), Access::Recover).unwrap();
    assert_eq!(files(directory.path()), whole);
}

/// Process that the next test runs on a file system of 400 KiB.
#[test]
fn on_a_small_file_system() {
    let Some(directory) = std::env::var_os("CARDIOGRAPH_TEST_SMALL") else {
        return;
    };
    let directory = Path::new(&directory);
    // The recording has 320 kB of lines, and the prepared files take additional space.
    let mut removed = 0;
    let note = |_, event| removed += u64::from(matches!(event, Event::Removed { .. }));
    let twice = log_until_full(
        directory,
        WhenFull::RemoveOldest,
        lines(20_000, 16_000),
        note,
    )
    .unwrap();
    let summary = summary(&twice);
    assert_eq!((summary.written, summary.lost), (16_000, 0));
    assert!(removed > 0);
    let numbers = numbers(directory);
    assert_eq!(
        numbers,
        Vec::from_iter(16_000 - numbers.len() as u64..16_000)
    );

    // The storage device is full at the start: the oldest recordings make room. Other files stay, even if their names are
    // those of recordings, such as exports.
    let others = ["REC00000/REC00001.CSV", "REA00000/REA00001.CSV"];
    for name in others {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let row = format!("{}\n", "1,2,3".repeat(100));
        fs::write(path, format!("#file number=1 first=0 at_us=0\n{row}")).unwrap();
    }
    let filler = directory.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);
    let mut removed = 0;
    let note = |_, event| removed += u64::from(matches!(event, Event::Removed { .. }));
    let feed = lines(20_000, 1_000);
    let begun = log_until_full(directory, WhenFull::RemoveOldest, feed, note).unwrap();
    assert_eq!(
        (self::summary(&begun).written, begun.failure),
        (1_000, None)
    );
    assert!(removed > 0);
    fs::remove_file(filler).unwrap();
    for name in others {
        assert!(directory.join(name).exists(), "{name}");
    }

    let mut causes = Vec::new();
    let full = log(directory, lines(20_000, 16_000), |_, event| {
        if let Event::Lost { gap, .. } = event {
            causes.push(gap.cause.word());
        }
    });
    match &full {
        Ok(result) => {
            let [summary] = result.summaries;
            assert_eq!(summary.written + summary.lost, 16_000);
            assert!(
                summary.lost > 0 && causes.contains(&"card-full"),
                "{causes:?}"
            );
        }
        Err(error) => assert!(error.to_string().contains("remove files"), "{error}"),
    }
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(directory)
        .status();
    assert!(remounted.unwrap().success());
    let refused = log(directory, lines(1000, 1), |_, _| ());
    assert!(
        sentence(&refused).ends_with("mount it for writing"),
        "{}",
        sentence(&refused)
    );
    println!("completed");
}

#[test]
fn a_full_directory_and_a_read_only_one() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mount =
        "mount -t tmpfs -o size=400k cardiograph \"$CARDIOGRAPH_TEST_SMALL\" && exec \"$@\"";
    let run = |flags: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(flags)
            .args(["sh", "-c", mount, "sh"])
            .arg(std::env::current_exe().unwrap());
        command.args([
            "directory::on_a_small_file_system",
            "--exact",
            "--nocapture",
        ]);
        command
            .env("CARDIOGRAPH_TEST_SMALL", directory.path())
            .output()
            .unwrap()
    };
    // Mounting requires root, or user namespaces if the system permits them.
    let mut output = run(&["--mount"]);
    if output.stdout.is_empty() {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("completed"),
        "{stdout}{stderr}"
    );
}
