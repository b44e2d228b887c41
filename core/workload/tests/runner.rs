//! The runner on an in-memory store that can be made to fail at any operation.

use cardiograph_workload::{
    Activity, Clock, Fill, Flush, Observer, Operation, OperationKind, Order, Outcome, Phase,
    RunError, Span, Store, Sync, Workload, run,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

/// An operation requested of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    Create(String),
    Append(String),
    Open(String),
    Write(String, u64, usize),
    Read(String),
    Flush(String, Flush),
    Close(String),
    Remove(String),
}

#[derive(Default)]
struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    folders: Vec<String>,
    requests: Vec<Request>,
    short_names: bool,
    /// Number of store operations before the operation that fails.
    fails_after: Option<usize>,
    /// Offset of the byte that is corrupted once.
    corrupts: Option<u64>,
    now_ns: Rc<Cell<u64>>,
    bulk_bytes: usize,
    /// Content of each removed file.
    removed: Vec<(String, Vec<u8>)>,
}

#[derive(Debug)]
struct Failed;

impl Memory {
    /// Advances the clock by 1 µs, and fails if `fails_after` selects this operation.
    fn step(&mut self) -> Result<(), Failed> {
        self.now_ns.set(self.now_ns.get() + 1000);
        match &mut self.fails_after {
            Some(0) => {
                self.fails_after = None;
                Err(Failed)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Store for Memory {
    type File = String;
    type Error = Failed;

    fn has_long_names(&self) -> bool {
        !self.short_names
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, Failed> {
        self.step()?;
        if self.folders.iter().any(|folder| folder == path) {
            return Ok(false);
        }
        self.folders.push(path.to_string());
        Ok(true)
    }

    fn create(&mut self, path: &str) -> Result<String, Failed> {
        self.step()?;
        assert!(!self.files.contains_key(path), "{path} exists already");
        let folder = path.rsplit_once('/').unwrap().0;
        assert!(
            self.folders.iter().any(|known| known == folder),
            "no folder for {path}"
        );
        self.files.insert(path.to_string(), Vec::new());
        self.requests.push(Request::Create(path.to_string()));
        Ok(path.to_string())
    }

    fn append(&mut self, path: &str) -> Result<String, Failed> {
        self.step()?;
        self.files.entry(path.to_string()).or_default();
        self.requests.push(Request::Append(path.to_string()));
        Ok(path.to_string())
    }

    fn open(&mut self, path: &str, _writable: bool) -> Result<String, Failed> {
        self.step()?;
        assert!(self.files.contains_key(path), "{path} does not exist");
        self.requests.push(Request::Open(path.to_string()));
        Ok(path.to_string())
    }

    fn write(&mut self, file: &mut String, offset: u64, data: &[u8]) -> Result<(), Failed> {
        self.step()?;
        self.requests
            .push(Request::Write(file.clone(), offset, data.len()));
        let content = self.files.get_mut(file).unwrap();
        let end = offset as usize + data.len();
        assert!(offset as usize <= content.len(), "a hole in {file}");
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(data);
        if let Some(byte) = self.corrupts.and_then(|at| content.get_mut(at as usize)) {
            *byte ^= 0x40;
            self.corrupts = None;
        }
        Ok(())
    }

    fn read(&mut self, file: &mut String, offset: u64, buffer: &mut [u8]) -> Result<usize, Failed> {
        self.step()?;
        self.requests.push(Request::Read(file.clone()));
        let content = &self.files[file];
        let rest = content.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn bulk_bytes(&self) -> usize {
        self.bulk_bytes
    }

    fn flush(&mut self, file: &mut String, how: Flush) -> Result<(), Failed> {
        self.step()?;
        self.requests.push(Request::Flush(file.clone(), how));
        Ok(())
    }

    fn close(&mut self, file: String) -> Result<(), Failed> {
        self.step()?;
        self.requests.push(Request::Close(file));
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), Failed> {
        self.step()?;
        self.requests.push(Request::Remove(path.to_string()));
        let inside = format!("{path}/");
        if self.files.keys().any(|file| file.starts_with(&inside)) {
            return Err(Failed);
        }
        let content = self.files.remove(path);
        let known = content.is_some();
        let named = content.map(|content| (path.to_string(), content));
        self.removed.extend(named);
        let folders = self.folders.len();
        self.folders.retain(|folder| folder != path);
        if known || self.folders.len() < folders {
            Ok(())
        } else {
            Err(Failed)
        }
    }
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

#[derive(Default)]
struct Recorder {
    operations: Vec<Operation>,
    stop_after: Option<usize>,
    /// Number of polls before the poll that stops the run.
    stop_at_poll: Option<usize>,
}

impl Observer for Recorder {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.operations.push(*operation);
        if self.stop_after == Some(self.operations.len()) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        match &mut self.stop_at_poll {
            Some(0) => return ControlFlow::Break(()),
            Some(left) => *left -= 1,
            None => {}
        }
        ControlFlow::Continue(())
    }
}

type Ended = Result<Outcome, RunError<Failed>>;

fn run_phases(phases: &[Phase], store: &mut Memory, recorder: &mut Recorder) -> Ended {
    let workload = Workload {
        name: "test",
        study: "",
        about: "",
        phases,
    };
    let bytes = match store.bulk_bytes {
        0 => workload.buffer_bytes(),
        _ => workload.bulk_buffer_bytes(),
    };
    let mut buffer = vec![0; bytes];
    let mut clock = Ticks(Rc::clone(&store.now_ns));
    run(&workload, store, &mut clock, recorder, &mut buffer)
}

const SMALL: Phase = Phase {
    files: 2,
    calls_per_file: 3,
    bytes_per_call: 10,
    ..Phase::WRITE
};

/// Phases that together cover every path through the runner.
fn every_kind() -> Vec<Phase> {
    let read = |phase: Phase| Phase {
        operation: OperationKind::Read,
        ..phase
    };
    let jumping = Phase {
        jump_within_bytes: 100,
        jump_every_calls: 2,
        fill: Fill::Letter,
        passes: 2,
        ..SMALL
    };
    vec![
        SMALL,
        Phase {
            passes: 3,
            sync_file: Sync::Start,
            sync_end: Sync::Wait,
            ..SMALL
        },
        Phase {
            span: Span::OpenToClose,
            passes: 2,
            fill: Fill::Line,
            ..SMALL
        },
        Phase {
            span: Span::File,
            passes: 2,
            fill: Fill::Zeros,
            ..SMALL
        },
        Phase {
            order: Order::RoundRobin,
            fill: Fill::Letter,
            ..SMALL
        },
        Phase {
            order: Order::RoundRobin,
            span: Span::OpenToClose,
            ..SMALL
        },
        Phase {
            folder_per_file: true,
            write_through: true,
            ..SMALL
        },
        Phase {
            folder_per_file: true,
            span: Span::OpenToClose,
            ..SMALL
        },
        read(SMALL),
        read(Phase {
            span: Span::File,
            passes: 2,
            ..SMALL
        }),
        read(Phase {
            order: Order::RoundRobin,
            folder_per_file: true,
            ..SMALL
        }),
        jumping,
        Phase {
            span: Span::File,
            ..jumping
        },
        Phase {
            span: Span::OpenToClose,
            ..jumping
        },
        read(Phase {
            span: Span::OpenToClose,
            ..jumping
        }),
    ]
}

#[test]
fn every_kind_of_phase_is_verified_and_removes_its_files() {
    for (i, phase) in every_kind().iter().enumerate() {
        for short_names in [false, true] {
            let mut store = Memory {
                short_names,
                ..Memory::default()
            };
            let mut recorder = Recorder::default();
            let outcome = run_phases(&[*phase], &mut store, &mut recorder).unwrap();
            let bytes: u64 = recorder.operations.iter().map(|o| o.length_bytes).sum();
            assert_eq!(bytes, phase.bytes(), "phase {i}");
            assert_eq!(outcome.verified_bytes, phase.file_bytes() * 2, "phase {i}");
            assert!(
                store.files.is_empty() && store.folders.is_empty(),
                "phase {i}"
            );
            assert!(
                recorder
                    .operations
                    .windows(2)
                    .all(|o| o[0].end_ns <= o[1].start_ns)
            );
        }
    }
}

#[test]
fn a_failure_of_any_operation_removes_all_files() {
    let phases = every_kind();
    let mut failures = 0;
    for operation in 0.. {
        let mut store = Memory {
            fails_after: Some(operation),
            ..Memory::default()
        };
        match run_phases(&phases, &mut store, &mut Recorder::default()) {
            Ok(_) => break,
            Err(RunError::Store { action, .. }) => {
                failures += 1;
                // Only a file whose removal failed may be left.
                if !action.starts_with("removing") {
                    let left = (store.files, store.folders);
                    assert_eq!(
                        left,
                        (BTreeMap::new(), Vec::new()),
                        "operation {operation}, {action}"
                    );
                }
            }
            Err(error) => panic!("operation {operation}: {error:?}"),
        }
    }
    assert!(failures > 500, "only {failures} operations were tried");
}

#[test]
fn stopping_at_any_operation_removes_all_files() {
    let phases = every_kind();
    let all = phases.iter().map(|phase| match phase.span {
        Span::File => phase.files * phase.passes,
        _ => phase.files * phase.passes * phase.calls_per_file,
    });
    for stop_after in 1..=all.sum::<u32>() as usize {
        let mut store = Memory::default();
        let mut recorder = Recorder {
            stop_after: Some(stop_after),
            ..Recorder::default()
        };
        assert!(
            run_phases(&phases, &mut store, &mut recorder)
                .unwrap()
                .stopped
        );
        assert_eq!(recorder.operations.len(), stop_after);
        assert!(store.files.is_empty() && store.folders.is_empty());
    }
}

#[test]
fn stopping_at_any_poll_removes_all_files() {
    let mut stopped = 0;
    for polls in 0.. {
        let mut store = Memory::default();
        let mut recorder = Recorder {
            stop_at_poll: Some(polls),
            ..Recorder::default()
        };
        let outcome = run_phases(&every_kind(), &mut store, &mut recorder).unwrap();
        assert!(store.files.is_empty() && store.folders.is_empty());
        if !outcome.stopped {
            break;
        }
        stopped += 1;
    }
    assert!(stopped > 20, "only {stopped} polls");
}

#[test]
fn a_corrupted_byte_is_reported_with_file_and_offset() {
    for at in [0, 9, 17, 29] {
        let mut store = Memory {
            corrupts: Some(at),
            ..Memory::default()
        };
        match run_phases(&[SMALL], &mut store, &mut Recorder::default()) {
            Err(RunError::Differs { path, offset_bytes }) => {
                assert_eq!(
                    (path.as_str(), offset_bytes),
                    ("writeTimeTemp/test_0/temp_0.txt", at)
                );
            }
            other => panic!("byte {at}: {other:?}"),
        }
        assert!(store.files.is_empty());
    }
}

/// Bulk lengths below, at, between and above multiples of the payload of 10 B and of the files' lengths.
const BULK_BYTES: [usize; 7] = [1, 10, 15, 20, 35, 4096, 1 << 20];

#[test]
fn long_calls_leave_the_same_files_and_the_same_operations() {
    for (i, phase) in every_kind().iter().enumerate() {
        let run = |bulk_bytes, stop_after| {
            let mut store = Memory {
                bulk_bytes,
                ..Memory::default()
            };
            let mut recorder = Recorder {
                stop_after,
                ..Recorder::default()
            };
            let outcome = run_phases(&[*phase], &mut store, &mut recorder).unwrap();
            let place = |one: &Operation| (one.kind, one.file, one.offset_bytes, one.length_bytes);
            let places: Vec<_> = recorder.operations.iter().map(place).collect();
            (outcome, places, store)
        };
        for stop_after in [None, Some(1), Some(2), Some(5)] {
            let (outcome, places, store) = run(0, stop_after);
            for bulk_bytes in BULK_BYTES {
                let (bulk_outcome, bulk_places, bulk_store) = run(bulk_bytes, stop_after);
                assert_eq!(bulk_outcome, outcome, "phase {i}, {bulk_bytes}");
                assert_eq!(bulk_places, places, "phase {i}, {bulk_bytes}");
                assert!(
                    bulk_store.removed == store.removed,
                    "phase {i}, {bulk_bytes}"
                );
                let (calls, bulk_calls) = (store.requests.len(), bulk_store.requests.len());
                let is_longer = bulk_bytes >= 35 && stop_after.is_none();
                assert!(bulk_calls <= calls, "phase {i}, {bulk_bytes}");
                assert!(!is_longer || bulk_calls < calls, "phase {i}, {bulk_bytes}");
            }
        }
    }
}

/// Every byte of two files, written by timed calls or before them, and every length of the calls that read it back.
#[test]
fn long_calls_detect_every_corrupted_byte() {
    let rest = Phase {
        jump_within_bytes: 37,
        fill: Fill::Letter,
        ..SMALL
    };
    let reading = Phase {
        operation: OperationKind::Read,
        ..SMALL
    };
    for (phase, bulk_bytes) in [SMALL, reading, rest]
        .into_iter()
        .flat_map(|phase| BULK_BYTES.map(|bulk_bytes| (phase, bulk_bytes)))
    {
        for at in 0..phase.file_bytes() {
            let mut store = Memory {
                corrupts: Some(at),
                bulk_bytes,
                ..Memory::default()
            };
            let ended = run_phases(&[phase], &mut store, &mut Recorder::default());
            let found = match ended {
                Err(RunError::Differs { offset_bytes, .. }) => Some(offset_bytes),
                _ => None,
            };
            // A timed write may have replaced the byte, but not one at the end that no call reaches.
            let may_be_replaced = phase.jump_within_bytes > 0 && at < 30;
            assert!(
                found == Some(at) || (found.is_none() && may_be_replaced),
                "{phase:?}, byte {at}, {bulk_bytes}: {found:?}"
            );
            assert!(store.files.is_empty());
        }
    }
}

#[test]
fn data_of_timed_reads_is_compared() {
    for span in [Span::Call, Span::OpenToClose, Span::File] {
        let mut store = Memory {
            corrupts: Some(13),
            ..Memory::default()
        };
        let phase = Phase {
            operation: OperationKind::Read,
            span,
            ..SMALL
        };
        let mut recorder = Recorder::default();
        match run_phases(&[phase], &mut store, &mut recorder) {
            Err(RunError::Differs { offset_bytes, .. }) => assert_eq!(offset_bytes, 13),
            other => panic!("{span:?}: {other:?}"),
        }
        assert!(store.files.is_empty());
    }
}

#[test]
fn a_long_pause_can_be_interrupted() {
    let mut store = Memory::default();
    let mut recorder = Recorder {
        stop_at_poll: Some(3),
        ..Recorder::default()
    };
    let phase = Phase {
        delay_us: u32::MAX,
        ..SMALL
    };
    assert!(
        run_phases(&[phase], &mut store, &mut recorder)
            .unwrap()
            .stopped
    );
    assert_eq!(recorder.operations.len(), 1);
    // The run stopped after four pause slices of 50 ms, not after 72 minutes.
    assert!(store.now_ns.get() < 300_000_000);
}

#[test]
fn existing_folders_and_files_are_kept() {
    let existing = ["writeTimeTemp", "writeTimeTemp/test_0", "writeTimeTemp_1"]
        .map(String::from)
        .to_vec();
    let mut store = Memory {
        folders: existing.clone(),
        ..Memory::default()
    };
    let kept = String::from("writeTimeTemp/test_0/temp_0.txt");
    store.files.insert(kept.clone(), b"precious".to_vec());
    run_phases(&[SMALL], &mut store, &mut Recorder::default()).unwrap();
    assert!(
        store
            .requests
            .contains(&Request::Create("writeTimeTemp_2/test_0/temp_0.txt".into()))
    );
    assert_eq!(store.folders, existing);
    assert_eq!(store.files[&kept], b"precious");
}

#[test]
fn the_span_decides_what_is_timed() {
    let times = |span| {
        let mut recorder = Recorder::default();
        let phase = Phase {
            files: 1,
            span,
            ..SMALL
        };
        run_phases(&[phase], &mut Memory::default(), &mut recorder).unwrap();
        recorder
            .operations
            .iter()
            .map(|o| o.end_ns - o.start_ns)
            .collect::<Vec<_>>()
    };
    // Every operation of the store takes a microsecond.
    assert_eq!(times(Span::Call), [1000; 3]);
    assert_eq!(times(Span::OpenToClose), [3000; 3]);
    assert_eq!(times(Span::File), [5000]);
}

#[test]
fn pauses_follow_calls_and_files() {
    let mut recorder = Recorder::default();
    let phase = Phase {
        delay_us: 7,
        pause_us: 100,
        ..SMALL
    };
    run_phases(&[phase], &mut Memory::default(), &mut recorder).unwrap();
    let gaps: Vec<_> = recorder
        .operations
        .windows(2)
        .map(|o| o[1].start_ns - o[0].end_ns)
        .collect();
    // Between two files: the delay after the last call, closing, the pause, and creating the next file.
    assert_eq!(gaps, [7000, 7000, 7000 + 1000 + 100_000 + 1000, 7000, 7000]);
}

#[test]
fn round_robin_makes_one_call_to_each_file_in_turn() {
    let mut recorder = Recorder::default();
    let phase = Phase {
        order: Order::RoundRobin,
        ..SMALL
    };
    run_phases(&[phase, phase], &mut Memory::default(), &mut recorder).unwrap();
    let files: Vec<_> = recorder.operations.iter().map(|o| o.file).collect();
    // Files are numbered over the whole workload.
    assert_eq!(files, [0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3]);
}

#[test]
fn write_through_syncs_inside_every_call() {
    let mut store = Memory::default();
    let mut recorder = Recorder::default();
    let phase = Phase {
        files: 1,
        write_through: true,
        ..SMALL
    };
    run_phases(&[phase], &mut store, &mut recorder).unwrap();
    assert!(
        recorder
            .operations
            .iter()
            .all(|o| o.end_ns - o.start_ns == 2000)
    );
    let waits = |requests: &&Request| matches!(requests, Request::Flush(_, Flush::Wait));
    assert_eq!(store.requests.iter().filter(waits).count(), 3);
}

#[test]
fn random_offsets_stay_within_the_file_and_are_reproducible() {
    let offsets = || {
        let mut recorder = Recorder::default();
        let phase = Phase {
            files: 1,
            calls_per_file: 500,
            jump_within_bytes: 205,
            jump_every_calls: 3,
            fill: Fill::Letter,
            ..SMALL
        };
        run_phases(&[phase], &mut Memory::default(), &mut recorder).unwrap();
        recorder
            .operations
            .iter()
            .map(|o| o.offset_bytes)
            .collect::<Vec<_>>()
    };
    let first = offsets();
    assert!(
        first
            .iter()
            .all(|offset| offset + 10 <= 205 && offset % 10 == 0)
    );
    assert!(
        first
            .chunks(3)
            .all(|run| run.windows(2).all(|p| p[1] == p[0] + 10))
    );
    assert!(first.iter().any(|&offset| offset != first[0]));
    assert_eq!(first, offsets());
}

#[test]
fn a_short_buffer_and_invalid_phases_are_rejected() {
    let workload = Workload {
        name: "test",
        study: "",
        about: "",
        phases: &[SMALL],
    };
    let (mut store, mut recorder) = (Memory::default(), Recorder::default());
    let mut clock = Ticks(Rc::default());
    let short = run(
        &workload,
        &mut store,
        &mut clock,
        &mut recorder,
        &mut [0; 10],
    );
    assert!(matches!(short, Err(RunError::BufferTooSmall)));

    let invalid_phase = Phase {
        bytes_per_call: 0,
        ..SMALL
    };
    let rejected = run_phases(&[SMALL, invalid_phase], &mut store, &mut recorder);
    let Err(RunError::Invalid(invalid)) = rejected else {
        panic!("{rejected:?}");
    };
    assert_eq!(
        invalid.to_string(),
        "phase 2: `bytes_per_call` must be 1 to 1048576"
    );
    assert!(recorder.operations.is_empty() && store.requests.is_empty());
}

/// Returns the bytes of all files after the last write, from the requests alone.
fn bytes_written(requests: &[Request]) -> u64 {
    let is_write = |request: &Request| matches!(request, Request::Write(..));
    let last = requests.iter().rposition(is_write).unwrap();
    let mut files = BTreeMap::new();
    for request in &requests[..=last] {
        match request {
            Request::Write(path, offset, length) => {
                let bytes = files.entry(path).or_insert(0);
                *bytes = (*bytes).max(offset + *length as u64);
            }
            Request::Create(path) | Request::Remove(path) => drop(files.remove(path)),
            _ => {}
        }
    }
    files.values().sum()
}

#[test]
fn what_a_stopped_run_wrote_is_read_back() {
    let phases = every_kind().into_iter();
    for phase in phases.filter(|phase| phase.operation == OperationKind::Write) {
        let operations = match phase.span {
            Span::File => phase.files * phase.passes,
            _ => phase.files * phase.passes * phase.calls_per_file,
        };
        for stop_after in 1..=operations as usize {
            let run = |corrupts| {
                let mut store = Memory {
                    corrupts,
                    ..Memory::default()
                };
                let mut recorder = Recorder {
                    stop_after: Some(stop_after),
                    ..Recorder::default()
                };
                let ended = run_phases(&[phase], &mut store, &mut recorder);
                (ended, store)
            };
            let (ended, store) = run(None);
            let outcome = ended.unwrap();
            let expected = bytes_written(&store.requests);
            assert!(outcome.stopped);
            assert_eq!(outcome.verified_bytes, expected, "{phase:?}, {stop_after}");
            // Later passes and jumps may overwrite the corrupted byte.
            if phase.passes == 1 && phase.jump_within_bytes == 0 {
                let (ended, _) = run(Some(0));
                let is_found = matches!(ended, Err(RunError::Differs { .. }));
                assert!(is_found, "{phase:?}, {stop_after}: {ended:?}");
            }
        }
    }
}
