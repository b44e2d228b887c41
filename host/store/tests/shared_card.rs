//! A download at the same time as a workload: its effect on latencies, its throughput and its data.

mod common;

use cardiograph_sim_card::{Board, Card, Profile, Seed};
use cardiograph_store::{Download, DownloadError, Downloaded, SharedCard, run_on_card};
use cardiograph_workload::{
    Activity, Clock, Flush, Observer, Operation, Phase, Span, Store, Workload,
};
use common::{fsck, image};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::rc::Rc;

const CALL_NS: u64 = 1_000_000;
const READ_NS: u64 = 4_000_000;
const PIECE_BYTES: u32 = 1000;
/// Throughput of the network: a piece of [`PIECE_BYTES`] takes 0.5 ms.
const NETWORK_BYTES_PER_S: u32 = 2_000_000;
const SEND_NS: u64 = 500_000;

fn download(piece_bytes: u32) -> Download {
    Download {
        piece_bytes: NonZeroU32::new(piece_bytes).unwrap(),
        network_bytes_per_s: NonZeroU32::new(NETWORK_BYTES_PER_S).unwrap(),
    }
}

/// A clock that only moves when paused.
#[derive(Clone, Default)]
struct Ticks(Rc<Cell<u64>>);

impl Clock for Ticks {
    fn now_ns(&mut self) -> u64 {
        self.0.get()
    }

    fn pause_ns(&mut self, ns: u64) {
        self.0.set(self.0.get() + ns);
    }
}

/// Files in memory; a read takes [`READ_NS`], every other call [`CALL_NS`].
#[derive(Default)]
struct Memory {
    ticks: Ticks,
    files: BTreeMap<String, Vec<u8>>,
    reads: Vec<u64>,
    fails_after: Option<usize>,
}

impl Memory {
    fn spend(&mut self, ns: u64) {
        self.ticks.pause_ns(ns);
    }
}

impl Store for Memory {
    type File = String;
    type Error = &'static str;

    fn has_long_names(&self) -> bool {
        false
    }

    fn mkdir(&mut self, _path: &str) -> Result<bool, &'static str> {
        self.spend(CALL_NS);
        Ok(true)
    }

    fn create(&mut self, path: &str) -> Result<String, &'static str> {
        self.append(path)
    }

    fn append(&mut self, path: &str) -> Result<String, &'static str> {
        self.spend(CALL_NS);
        self.files.entry(path.to_string()).or_default();
        Ok(path.to_string())
    }

    fn open(&mut self, path: &str, _writable: bool) -> Result<String, &'static str> {
        self.append(path)
    }

    fn write(&mut self, file: &mut String, at: u64, data: &[u8]) -> Result<(), &'static str> {
        self.spend(CALL_NS);
        let file = self.files.get_mut(file).ok_or("no file")?;
        file.truncate(at as usize);
        file.extend_from_slice(data);
        Ok(())
    }

    fn read(
        &mut self,
        file: &mut String,
        at: u64,
        buffer: &mut [u8],
    ) -> Result<usize, &'static str> {
        self.reads.push(self.ticks.now_ns());
        self.spend(READ_NS);
        if self
            .fails_after
            .is_some_and(|reads| self.reads.len() > reads)
        {
            return Err("broken");
        }
        let rest = &self.files[file][at as usize..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn flush(&mut self, _file: &mut String, _how: Flush) -> Result<(), &'static str> {
        self.spend(CALL_NS);
        Ok(())
    }

    fn close(&mut self, _file: String) -> Result<(), &'static str> {
        self.spend(CALL_NS);
        Ok(())
    }

    fn remove(&mut self, _path: &str) -> Result<(), &'static str> {
        self.spend(CALL_NS);
        Ok(())
    }
}

#[test]
fn without_a_workload_reading_and_sending_limit_the_download() {
    let mut memory = Memory::default();
    let mut ticks = memory.ticks.clone();
    let shared = SharedCard::new(&mut memory, &mut ticks, download(PIECE_BYTES)).unwrap();
    // These pieces are more than the whole file, which the server then reads again from its start.
    let pieces = 2500;
    shared.clock().pause_ns(pieces * (READ_NS + SEND_NS));
    let downloaded = shared.finish().unwrap();
    let expected = Downloaded {
        bytes: pieces * u64::from(PIECE_BYTES),
        duration_ns: pieces * (READ_NS + SEND_NS),
    };
    assert_eq!(downloaded, expected);
}

#[test]
fn a_pause_ends_on_time_and_a_call_waits_for_a_read_in_progress() {
    let mut memory = Memory::default();
    let mut ticks = memory.ticks.clone();
    let shared = SharedCard::new(&mut memory, &mut ticks, download(PIECE_BYTES)).unwrap();
    let (mut store, mut clock) = (shared.store(), shared.clock());
    let begin_ns = clock.now_ns();
    // The server's first read starts immediately, the second one 4.5 ms later.
    for slice_ns in [1_000_000, 4_000_000] {
        let before_ns = clock.now_ns();
        clock.pause_ns(slice_ns);
        assert_eq!(clock.now_ns(), before_ns + slice_ns);
    }
    let mut file = store.create("A.TXT").unwrap();
    assert_eq!(clock.now_ns() - begin_ns, 2 * READ_NS + SEND_NS + CALL_NS);
    // Sending took less time than the call, so the third read comes before the write.
    store.write(&mut file, 0, b"line").unwrap();
    let end_ns = 3 * READ_NS + SEND_NS + 2 * CALL_NS;
    assert_eq!(clock.now_ns() - begin_ns, end_ns);
    store.close(file).unwrap();
    shared.finish().unwrap();
    assert_eq!(memory.files["A.TXT"], b"line");
}

#[test]
fn a_server_that_is_sending_does_not_occupy_the_card() {
    let mut memory = Memory::default();
    let mut ticks = memory.ticks.clone();
    let shared = SharedCard::new(&mut memory, &mut ticks, download(PIECE_BYTES)).unwrap();
    let (mut store, mut clock) = (shared.store(), shared.clock());
    clock.pause_ns(READ_NS + SEND_NS / 2);
    let before_ns = clock.now_ns();
    store.mkdir("A").unwrap();
    assert_eq!(clock.now_ns() - before_ns, CALL_NS);
}

#[test]
fn a_failed_download_does_not_stop_the_workload_and_is_reported_at_the_end() {
    let mut memory = Memory {
        fails_after: Some(1),
        ..Memory::default()
    };
    let mut ticks = memory.ticks.clone();
    let shared = SharedCard::new(&mut memory, &mut ticks, download(PIECE_BYTES)).unwrap();
    shared.clock().pause_ns(100 * READ_NS);
    shared.store().mkdir("A").unwrap();
    let error = shared.finish().unwrap_err();
    assert!(matches!(error, DownloadError::Store("broken")), "{error}");
    assert_eq!(memory.reads.len(), 2);
}

#[derive(Default)]
struct Operations(Vec<Operation>);

impl Observer for Operations {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push(*operation);
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Writes 40 lines of 100 B on a board, with a pause after each line.
fn lines(board: &str, download: Option<Download>) -> (Vec<Operation>, Option<Downloaded>, Card) {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 256 << 20;
    let mut board = Board::named(board).unwrap();
    board.library.cluster_bytes = 8192;
    let phases = [Phase {
        calls_per_file: 40,
        bytes_per_call: 100,
        delay_us: 25_000,
        span: Span::OpenToClose,
        ..Phase::default()
    }];
    let workload = Workload {
        phases: &phases,
        ..*cardiograph_workload::workload("magod2").unwrap()
    };
    let mut buffer = vec![0; workload.buffer_bytes()];
    let mut operations = Operations::default();
    let card = Card::new(&profile, Seed::new(1));
    let (run, card) = run_on_card(
        card,
        &board,
        &workload,
        download,
        &mut operations,
        &mut buffer,
    )
    .unwrap();
    assert_eq!(run.result.unwrap().verified_bytes, 4000);
    let downloaded = run.downloaded.map(Result::unwrap);
    (operations.0, downloaded, card.unwrap())
}

fn mean_ns(operations: &[Operation]) -> u64 {
    let sum: u64 = operations.iter().map(Operation::duration_ns).sum();
    sum / operations.len() as u64
}

#[test]
fn with_every_library_a_download_slows_writes_and_data_is_correct() {
    for board in ["esp32", "lpc43xx", "linux-reader"] {
        let (alone, none, _) = lines(board, None);
        let (beside, downloaded, card) = lines(board, Some(download(1360)));
        let (again, same, _) = lines(board, Some(download(1360)));
        assert_eq!((&beside, downloaded), (&again, same), "{board}");
        assert_eq!((none, alone.len()), (None, beside.len()));
        let downloaded = downloaded.unwrap();
        let rate = downloaded.bytes as f64 / downloaded.duration_ns as f64 * 1e9;
        assert!(mean_ns(&beside) > mean_ns(&alone), "{board}");
        assert!(
            rate > 0.0 && rate < f64::from(NETWORK_BYTES_PER_S),
            "{board}: {rate}"
        );
        assert!(
            beside
                .windows(2)
                .all(|pair| pair[1].start_ns == pair[0].end_ns + 25_000_000),
            "{board}"
        );
        let path = image(&card, &format!("shared-{board}.img"));
        // embedded-sdmmc leaves the clusters of removed files allocated, which fsck.fat reports.
        if board != "esp32" {
            fsck(&path);
        }
        let file_system =
            fatfs::FileSystem::new(std::fs::File::open(&path).unwrap(), fatfs::FsOptions::new());
        let mut bytes = Vec::new();
        let file_system = file_system.unwrap();
        let mut file = file_system.root_dir().open_file("DOWNLOAD.BIN").unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 1_000_000);
        assert!(
            (0..)
                .zip(&bytes)
                .all(|(at, byte)| at % 251 == u64::from(*byte))
        );
        std::fs::remove_file(path).unwrap();
    }
}
