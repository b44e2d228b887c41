//! Recordings on simulated cards, compared with the studies' workloads and read by another FAT library.

use crate::common::{fsck, image};
use cardiograph_compare::{LoggerConfig, LoggerResult, Policy, run_logger, run_logger_on_card};
use cardiograph_sim_card::{Board, Card, Profile, Seed};
use cardiograph_store::{FatCard, run_on_card};
use cardiograph_workload::{Activity, Fill, Observer, Operation, Phase, Span, Store, Workload};
use std::fs::File;
use std::io::Read;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

const LINES: u32 = 2000;
const LINE_BYTES: u32 = 100;

#[derive(Default)]
struct Seen(Vec<Operation>);

impl Observer for Seen {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push(*operation);
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Returns a card of 1 GiB, small enough to write as an image.
fn card(seed: u64) -> Card {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 1 << 30;
    Card::new(&profile, Seed::new(seed))
}

fn recording(rate_hz: u32, policy: Policy) -> LoggerConfig {
    LoggerConfig {
        rate_hz: NonZeroU32::new(rate_hz).unwrap(),
        sample_bytes: LINE_BYTES,
        samples: LINES.into(),
        buffer_bytes: u64::from(LINES * LINE_BYTES),
        policy,
    }
}

/// Fills a line like the workloads of MagOD2.
fn tildes(_line: u64, bytes: &mut [u8]) {
    bytes.fill(b'~');
}

fn numbers(line: u64, bytes: &mut [u8]) {
    bytes.fill(b'.');
    let digits = line.to_string();
    bytes[..digits.len()].copy_from_slice(digits.as_bytes());
}

/// Runs a MagOD2 workload with one file and the given delay between lines; returns the timed operations.
fn workload_times(span: Span, delay_us: u32, board: &Board) -> Vec<Operation> {
    let phases = [Phase {
        calls_per_file: LINES,
        bytes_per_call: LINE_BYTES,
        span,
        delay_us,
        fill: Fill::Line,
        ..Phase::WRITE
    }];
    let workload = Workload {
        name: "lines",
        study: "",
        about: "",
        phases: &phases,
    };
    let mut seen = Seen::default();
    let mut buffer = vec![0; workload.buffer_bytes()];
    let (run, _) = run_on_card(card(1), board, &workload, &mut seen, &mut buffer).unwrap();
    run.result.unwrap();
    seen.0
}

/// Records to a file in the folder that the workload uses; returns the timed operations.
fn recorded_times(recording: &LoggerConfig, board: &Board) -> Vec<Operation> {
    let mut store = FatCard::mount(card(1), board).unwrap();
    let mut clock = store.clock();
    store.mkdir("WRITETMP").unwrap();
    store.mkdir("WRITETMP/TEST_0").unwrap();
    let path = "WRITETMP/TEST_0/TEMP_0.TXT";
    let mut seen = Seen::default();
    let recorded = run_logger(
        recording, path, true, &mut store, &mut clock, &mut seen, tildes,
    );
    assert_eq!(recorded.unwrap().lost, 0);
    seen.0
}

#[test]
fn without_pauses_the_policies_equal_the_workloads_of_magod2() {
    let board = Board::named("esp32").unwrap();
    for (policy, span) in [
        (Policy::Naive, Span::OpenToClose),
        (Policy::KeepOpen, Span::Call),
    ] {
        // At this rate, all lines arrive before the first is written.
        let recorded = recorded_times(&recording(u32::MAX, policy), &board);
        assert!(recorded == workload_times(span, 0, &board), "{policy:?}");
    }
}

#[test]
fn at_the_pace_of_magod2_latencies_equal_those_of_the_workloads() {
    let board = Board::named("esp32").unwrap();
    for (policy, span) in [
        (Policy::Naive, Span::OpenToClose),
        (Policy::KeepOpen, Span::Call),
    ] {
        let recorded = recorded_times(&recording(8, policy), &board);
        let workload = workload_times(span, 100_000, &board);
        let durations =
            |all: &[Operation]| -> Vec<u64> { all.iter().map(Operation::duration_ns).collect() };
        // A line arrives every 125 ms, while the workload waits 100 ms after each line; pauses do not change
        // the latencies of this card.
        assert_eq!(recorded[2].start_ns - recorded[1].start_ns, 125_000_000);
        assert!(durations(&recorded) == durations(&workload), "{policy:?}");
    }
}

/// Reads a file with another FAT library, after fsck.fat has found no error in the file system.
fn file_of(card: &Card, name: &str) -> Vec<u8> {
    let path = image(card, name);
    fsck(&path);
    let volume = File::options().read(true).write(true).open(&path).unwrap();
    let volume = fatfs::FileSystem::new(volume, fatfs::FsOptions::new()).unwrap();
    let mut content = Vec::new();
    let mut file = volume.root_dir().open_file("RECORD.CSV").unwrap();
    file.read_to_end(&mut content).unwrap();
    std::fs::remove_file(path).unwrap();
    content
}

/// Returns the lines that are in no gap.
fn expected(recorded: &LoggerResult) -> Vec<u8> {
    assert_eq!(recorded.gaps_total, recorded.gaps.len() as u64);
    let is_lost = |line| {
        let mut gaps = recorded.gaps.iter();
        gaps.any(|gap| (gap.first..gap.first + gap.count).contains(&line))
    };
    let mut content = Vec::new();
    for line in (0..recorded.pushed).filter(|line| !is_lost(*line)) {
        let mut bytes = [0; LINE_BYTES as usize - 2];
        numbers(line, &mut bytes);
        content.extend_from_slice(&bytes);
        content.extend_from_slice(b"\r\n");
    }
    content
}

#[test]
#[ignore = "needs mkfs.fat"]
fn files_contain_every_line_except_those_in_gaps_with_every_library() {
    let after_session = Policy::AfterSession {
        session_ns: 500_000_000,
    };
    for board in ["esp32", "lpc43xx", "linux-reader"] {
        for policy in [Policy::Naive, Policy::KeepOpen, after_session] {
            let recording = LoggerConfig {
                buffer_bytes: 4096,
                ..recording(860, policy)
            };
            let board_there = Board::named(board).unwrap();
            let mut seen = Seen::default();
            let (run, card) = run_logger_on_card(
                card(2),
                &board_there,
                &recording,
                "RECORD.CSV",
                &mut seen,
                numbers,
            )
            .unwrap();
            let recorded = run.result.unwrap();
            assert_eq!(recorded.written + recorded.lost, u64::from(LINES));
            assert_eq!(recorded.written, seen.0.len() as u64);
            if policy == after_session || (policy == Policy::Naive && board == "esp32") {
                assert!(recorded.lost > 0, "{board}, {policy:?}");
            }
            if policy == Policy::KeepOpen || board == "linux-reader" {
                assert_eq!(recorded.at_risk_max_us, recorded.duration_ns / 1000);
            } else {
                assert!(recorded.at_risk_max_us < recorded.duration_ns / 1000);
            }
            let content = file_of(&card.unwrap(), &format!("record-{board}.img"));
            assert!(content == expected(&recorded), "{board}, {policy:?}");
        }
    }
}
