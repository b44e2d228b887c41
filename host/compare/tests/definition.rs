//! Buffer level, gaps and data at risk, compared with their definitions, on a store with random latencies.

use cardiograph_compare::{
    Cause, GAPS_MAX, LoggerConfig, LoggerError, LoggerResult, Policy, run_logger,
};
use cardiograph_sim_card::{Random, Seed};
use cardiograph_workload::{Activity, Clock, Flush, Observer, Operation, Store};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::rc::Rc;

const PATH: &str = "RECORD.CSV";

/// One file in memory. Each call takes a random time, occasionally a long one.
struct Memory {
    file: Option<Vec<u8>>,
    now_ns: Rc<Cell<u64>>,
    random: Random,
    /// Start time of each open.
    opens_ns: Vec<u64>,
    /// Time at which each close returned, in ns.
    closes_ns: Vec<u64>,
    /// Offset of a byte that the store corrupts.
    bad_byte: Option<usize>,
}

struct Ticks(Rc<Cell<u64>>);

impl Clock for Ticks {
    fn now_ns(&mut self) -> u64 {
        self.0.get()
    }

    fn pause_ns(&mut self, ns: u64) {
        self.0.set(self.0.get() + ns);
    }
}

impl Memory {
    fn new(seed: u64) -> Memory {
        Memory {
            file: None,
            now_ns: Rc::new(Cell::new(12_345)),
            random: Seed::new(seed).stream("calls"),
            opens_ns: Vec::new(),
            closes_ns: Vec::new(),
            bad_byte: None,
        }
    }

    /// Advances the clock, sometimes by whole tenths of milliseconds, so that calls return exactly when lines arrive.
    fn spend(&mut self) {
        let ns = match self.random.below(20) {
            0 => self.random.below(90_000_000),
            1..10 => 100_000 * self.random.below(40),
            _ => self.random.below(1_000_000),
        };
        self.now_ns.set(self.now_ns.get() + ns);
    }
}

impl Store for Memory {
    type File = ();
    type Error = &'static str;

    fn has_long_names(&self) -> bool {
        true
    }

    fn mkdir(&mut self, _path: &str) -> Result<bool, &'static str> {
        Err("no folders")
    }

    fn create(&mut self, path: &str) -> Result<(), &'static str> {
        assert_eq!(path, PATH);
        self.opens_ns.push(self.now_ns.get());
        self.spend();
        match self.file {
            Some(_) => Err("is there already"),
            None => {
                self.file = Some(Vec::new());
                Ok(())
            }
        }
    }

    fn append(&mut self, path: &str) -> Result<(), &'static str> {
        self.opens_ns.push(self.now_ns.get());
        self.spend();
        self.open(path, true)
    }

    fn open(&mut self, path: &str, _writable: bool) -> Result<(), &'static str> {
        assert_eq!(path, PATH);
        self.file.as_ref().map(|_| ()).ok_or("is not there")
    }

    fn write(&mut self, (): &mut (), at: u64, data: &[u8]) -> Result<(), &'static str> {
        self.spend();
        let file = self.file.as_mut().ok_or("is not open")?;
        assert_eq!(at, file.len() as u64);
        file.extend_from_slice(data);
        if let Some(byte) = self.bad_byte.and_then(|at| file.get_mut(at)) {
            *byte = 0;
        }
        Ok(())
    }

    fn read(&mut self, (): &mut (), at: u64, to: &mut [u8]) -> Result<usize, &'static str> {
        let rest = &self.file.as_ref().ok_or("is not open")?[at as usize..];
        let length = rest.len().min(to.len());
        to[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn flush(&mut self, (): &mut (), _how: Flush) -> Result<(), &'static str> {
        Err("flush is not supported")
    }

    fn close(&mut self, (): ()) -> Result<(), &'static str> {
        self.spend();
        self.closes_ns.push(self.now_ns.get());
        Ok(())
    }

    fn remove(&mut self, _path: &str) -> Result<(), &'static str> {
        Err("remove is not supported")
    }
}

/// Collects all operations; stops after a number of them.
struct Seen(Vec<Operation>, usize);

impl Observer for Seen {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push(*operation);
        match self.0.len() >= self.1 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn text(line: u64, bytes: &mut [u8]) {
    let digits = format!("{line:0width$}", width = bytes.len());
    bytes.copy_from_slice(&digits.as_bytes()[..bytes.len()]);
}

/// Result of a recording to a new store, and the times of the store calls in ns from the start.
struct Made {
    recorded: LoggerResult,
    writes_ns: Vec<(u64, u64)>,
    opens_ns: Vec<u64>,
    closes_ns: Vec<u64>,
    /// Indices of the lines in the file.
    lines: Vec<u64>,
}

fn make(recording: &LoggerConfig, seed: u64, stop_after: usize) -> Made {
    let mut store = Memory::new(seed);
    let mut clock = Ticks(store.now_ns.clone());
    let start_ns = clock.now_ns();
    let mut seen = Seen(Vec::new(), stop_after);
    let recorded = run_logger(
        recording, PATH, true, &mut store, &mut clock, &mut seen, text,
    )
    .unwrap();
    let file = store.file.unwrap_or_default();
    let lines = file.chunks(recording.sample_bytes as usize).map(|line| {
        let digits = line.strip_suffix(b"\r\n").unwrap();
        std::str::from_utf8(digits).unwrap().parse().unwrap()
    });
    Made {
        recorded,
        writes_ns: (seen.0.iter())
            .map(|seen| (seen.start_ns - start_ns, seen.end_ns - start_ns))
            .collect(),
        opens_ns: store.opens_ns.iter().map(|ns| ns - start_ns).collect(),
        closes_ns: store.closes_ns.iter().map(|ns| ns - start_ns).collect(),
        lines: lines.collect(),
    }
}

fn some_recording(random: &mut Random) -> LoggerConfig {
    let line_bytes = 20 + random.below(100) as u32;
    LoggerConfig {
        rate_hz: NonZeroU32::new([8, 100, 333, 860, 10_000][random.below(5) as usize]).unwrap(),
        sample_bytes: line_bytes,
        samples: random.below(1500),
        buffer_bytes: u64::from(line_bytes) * (1 + random.below(40)) + random.below(20),
        policy: match random.below(3) {
            0 => Policy::Naive,
            1 => Policy::KeepOpen,
            _ => Policy::AfterSession {
                session_ns: 1 + random.below(2_000_000_000),
            },
        },
    }
}

/// Checks lost lines and the buffer peak against the completion times of the written lines: a line is lost if
/// the incomplete lines before it leave no space.
fn check_ring(recording: &LoggerConfig, made: &Made) {
    let LoggerResult { pushed, .. } = made.recorded;
    let bytes = u64::from(recording.sample_bytes);
    let mut peak_bytes = 0;
    let mut lost = Vec::new();
    for line in 0..pushed {
        let arrival_ns = recording.arrival_ns(line);
        let waiting = (made.lines.iter().zip(&made.writes_ns))
            .filter(|(earlier, done)| **earlier < line && done.1 > arrival_ns)
            .count() as u64;
        let with_it = (waiting + 1) * bytes;
        let is_written = made.lines.binary_search(&line).is_ok();
        assert_eq!(is_written, with_it <= recording.buffer_bytes, "line {line}");
        match is_written {
            true => peak_bytes = peak_bytes.max(with_it),
            false => lost.push(line),
        }
    }
    assert_eq!(made.recorded.buffer_peak_bytes, peak_bytes);
    assert_eq!(made.recorded.lost, lost.len() as u64);
    let gaps: Vec<&[u64]> = lost.chunk_by(|a, b| a + 1 == *b).collect();
    assert_eq!(made.recorded.gaps_total, gaps.len() as u64);
    assert_eq!(made.recorded.gaps.len(), gaps.len().min(GAPS_MAX));
    for (reported, gap) in made.recorded.gaps.iter().zip(gaps) {
        assert_eq!((reported.first, reported.count), (gap[0], gap.len() as u64));
        assert_eq!(reported.at_us, recording.arrival_ns(gap[0]) / 1000);
    }
}

/// Checks the data at risk: the age of every line when the first close after its write returned.
fn check_risk(recording: &LoggerConfig, made: &Made) {
    let ages = made.lines.iter().zip(&made.writes_ns).map(|(line, done)| {
        let closed_ns = made.closes_ns.iter().find(|&&ns| ns >= done.1).unwrap();
        closed_ns - recording.arrival_ns(*line)
    });
    assert_eq!(made.recorded.at_risk_max_us, ages.max().unwrap_or(0) / 1000);
}

/// Checks that a write starts as soon as its policy permits.
fn check_starts(recording: &LoggerConfig, made: &Made) {
    let mut free_ns = 0;
    for ((line, &(start_ns, end_ns)), at) in made.lines.iter().zip(&made.writes_ns).zip(0..) {
        let arrival_ns = recording.arrival_ns(*line);
        match recording.policy {
            Policy::Naive => assert_eq!(start_ns, arrival_ns.max(free_ns), "write {at}"),
            // The first write waits for the open.
            Policy::KeepOpen if at == 0 => assert!(start_ns >= arrival_ns),
            Policy::KeepOpen => assert_eq!(start_ns, arrival_ns.max(free_ns), "write {at}"),
            Policy::AfterSession { .. } => assert!(start_ns >= free_ns, "write {at}"),
        }
        free_ns = end_ns;
    }
}

/// Checks that the file is opened once per session, when the session or the samples have ended and the previous
/// session is written.
fn check_sessions(recording: &LoggerConfig, made: &Made) {
    let Policy::AfterSession { session_ns } = recording.policy else {
        return;
    };
    let session_of = |line: &u64| recording.arrival_ns(*line) / session_ns;
    let sessions = made.lines.chunk_by(|a, b| session_of(a) == session_of(b));
    let sessions: Vec<u64> = sessions.map(|lines| session_of(&lines[0])).collect();
    assert_eq!(sessions.len(), made.opens_ns.len());
    let mut free_ns = 0;
    for ((session, opened_ns), closed_ns) in
        sessions.iter().zip(&made.opens_ns).zip(&made.closes_ns)
    {
        let last_ns = recording.arrival_ns(recording.samples - 1);
        let over_ns = last_ns.min((session + 1) * session_ns);
        assert_eq!(*opened_ns, over_ns.max(free_ns), "session {session}");
        free_ns = *closed_ns;
    }
}

#[test]
fn losses_buffer_and_risk_match_their_definitions() {
    let mut random = Seed::new(1).stream("recordings");
    let mut lost = [0; 3];
    for seed in 0..300 {
        let recording = some_recording(&mut random);
        let made = make(&recording, seed, usize::MAX);
        let recorded = &made.recorded;
        println!("seed {seed}: {recording:?}");
        assert_eq!(recorded.pushed, recording.samples);
        assert_eq!(recorded.written, made.lines.len() as u64);
        assert_eq!(recorded.written + recorded.lost, recorded.pushed);
        let bytes = recorded.written * u64::from(recording.sample_bytes);
        assert_eq!(recorded.verified_bytes, bytes);
        let longest_ns = made.writes_ns.iter().map(|(start, end)| end - start).max();
        assert_eq!(recorded.worst_case_write_ns, longest_ns.unwrap_or(0));
        check_ring(&recording, &made);
        check_risk(&recording, &made);
        check_starts(&recording, &made);
        check_sessions(&recording, &made);
        lost[match recording.policy {
            Policy::Naive => 0,
            Policy::KeepOpen => 1,
            Policy::AfterSession { .. } => 2,
        }] += recorded.lost;
    }
    // The tests above must have caused gaps; otherwise their checks of gaps tested nothing.
    assert!(lost.iter().all(|&lost| lost > 1000), "{lost:?}");
}

#[test]
fn a_stop_ends_sampling_and_writes_the_buffer() {
    for policy in [
        Policy::Naive,
        Policy::KeepOpen,
        Policy::AfterSession {
            session_ns: 500_000_000,
        },
    ] {
        let recording = LoggerConfig {
            rate_hz: NonZeroU32::new(860).unwrap(),
            sample_bytes: 100,
            samples: 100_000,
            buffer_bytes: 8192,
            policy,
        };
        let made = make(&recording, 5, 300);
        let recorded = &made.recorded;
        assert!(recorded.stopped && recorded.pushed < recording.samples);
        assert!(recorded.written >= 300);
        assert_eq!(recorded.written + recorded.lost, recorded.pushed);
        assert_eq!(recorded.verified_bytes, 0);
        check_ring(&recording, &made);
    }
}

#[test]
fn a_session_longer_than_its_buffer_is_the_cause_of_its_gaps() {
    let recording = LoggerConfig {
        rate_hz: NonZeroU32::new(1000).unwrap(),
        sample_bytes: 100,
        samples: 2000,
        buffer_bytes: 50_000,
        policy: Policy::AfterSession {
            session_ns: 1_000_000_000,
        },
    };
    let recorded = make(&recording, 1, usize::MAX).recorded;
    let first = recorded.gaps[0];
    assert_eq!((first.first, first.cause), (500, Cause::Session));
    assert_eq!(first.at_us, 500_000);
    // Samples of the second session arrive, and are lost, while the first session is being written.
    assert!(first.count >= 500, "{first:?}");
}

#[test]
fn existing_files_are_not_overwritten_and_differences_are_detected() {
    let recording = LoggerConfig {
        rate_hz: NonZeroU32::new(860).unwrap(),
        sample_bytes: 100,
        samples: 100,
        buffer_bytes: 8192,
        policy: Policy::Naive,
    };
    let run = |store: &mut Memory| {
        let mut clock = Ticks(store.now_ns.clone());
        let mut seen = Seen(Vec::new(), usize::MAX);
        run_logger(&recording, PATH, true, store, &mut clock, &mut seen, text)
    };
    let mut store = Memory::new(1);
    store.file = Some(b"mine".to_vec());
    let error = run(&mut store).unwrap_err();
    assert!(matches!(
        error,
        LoggerError::Store {
            doing: "creating",
            ..
        }
    ));
    assert_eq!(store.file.unwrap(), b"mine");

    let mut store = Memory::new(1);
    store.bad_byte = Some(4321);
    let error = run(&mut store).unwrap_err();
    assert!(matches!(error, LoggerError::Differs { offset_bytes: 4321 }));
}
