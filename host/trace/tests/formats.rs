//! Every supported format, from real or hand-made files.

use cardiograph_trace::{Loaded, Operation, OperationKind, ReadOptions, Recording, Trace, read};
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../tests/data", name]
        .iter()
        .collect()
}

fn load(name: &str) -> Loaded {
    match read(&data(name), &ReadOptions::default()) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{error}"),
    }
}

fn trace(name: &str) -> Trace {
    match load(name) {
        Loaded::Trace(trace) => trace,
        _ => panic!("{name} is no trace"),
    }
}

fn durations_ns(trace: &Trace) -> impl Iterator<Item = u64> {
    let operations: Vec<Operation> = trace.operations().collect();
    operations.into_iter().map(|o| o.end_ns - o.start_ns)
}

fn recording(name: &str) -> Recording {
    match load(name) {
        Loaded::Recording(recording) => recording,
        _ => panic!("{name} is no recording"),
    }
}

fn times_us(trace: &Trace) -> Vec<(u64, u64)> {
    trace
        .operations()
        .map(|operation| (operation.start_ns / 1000, operation.end_ns / 1000))
        .collect()
}

#[test]
fn index_start_end() {
    let trace = trace("traces/index_start_end.csv");
    assert_eq!(times_us(&trace), [(0, 272), (272, 586), (600, 90_600)]);
    assert_eq!(trace.runs().len(), 1);
    assert_eq!(trace.runs()[0].length_bytes, 512);
    assert_eq!(
        trace.about.notes,
        ["The file contains no lengths; each write is assumed to be 512 B."]
    );
}

#[test]
fn the_block_size_is_an_option() {
    let options = ReadOptions::with_block_bytes(4096);
    let Ok(Loaded::Trace(trace)) = read(&data("traces/times-1.csv"), &options) else {
        panic!("not read");
    };
    let places: Vec<_> = trace
        .operations()
        .map(|operation| (operation.offset_bytes, operation.length_bytes))
        .collect();
    assert_eq!(places, [(0, 4096), (4096, 4096), (8192, 4096)]);
}

#[test]
fn cardiograph_csv() {
    let operations: Vec<_> = trace("traces/cardiograph.csv").operations().collect();
    assert_eq!(
        operations,
        [
            Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: 0,
                length_bytes: 512,
                start_ns: 0,
                end_ns: 272_000,
            },
            Operation {
                kind: OperationKind::Read,
                file: 1,
                offset_bytes: 512,
                length_bytes: 512,
                start_ns: 272_000,
                end_ns: 586_000,
            },
        ]
    );
}

/// The times wrap between two lines of file 0 and again within a line; file 1 follows file 0.
#[test]
fn thesis_results_and_their_copies() {
    let wrap = 1 << 32;
    for name in ["", "_underscores", "_commas"] {
        let trace = trace(&format!("traces/magod2_results{name}.csv"));
        assert_eq!(
            times_us(&trace),
            [
                (4_294_720_000, 4_294_742_000),
                (4_294_850_000, 4_294_920_500),
                (4_294_960_000, wrap + 14_704),
                (wrap + 118_000, wrap + 140_100),
                (wrap + 250_000, wrap + 272_000),
                (wrap + 380_000, wrap + 402_300),
            ]
        );
        let places: Vec<_> = trace
            .operations()
            .map(|operation| (operation.file, operation.offset_bytes))
            .collect();
        assert_eq!(
            places,
            [(0, 0), (0, 100), (0, 200), (1, 0), (1, 100), (1, 200)]
        );
        assert_eq!(trace.about.workload, "magod2");
        assert!(trace.about.notes.is_empty());
    }
}

#[test]
fn library_comparison() {
    let Loaded::Aggregate(aggregate) = load("traces/library_comparison.csv") else {
        panic!("not read as figures of whole files");
    };
    let row = aggregate.rows[0];
    assert_eq!(
        (row.iteration, row.file_size_bytes, row.block_bytes),
        (1, 65_536, 512)
    );
    assert!((row.throughput_bytes_per_s - 3.9 * 1_048_576.0).abs() < 1e-6);
    assert_eq!(
        (row.latency_ns_mean, row.latency_ns_min, row.latency_ns_max),
        (125_000, 50_000, 2_500_000)
    );
    assert!((row.iops - 7987.2).abs() < 1e-9);
}

#[test]
fn times_in_milliseconds() {
    let trace = trace("traces/times-1.csv");
    assert_eq!(
        times_us(&trace),
        [(0, 500), (500, 130_500), (130_500, 142_750)]
    );
}

/// The log was written by fio 3.33 with `--rw=write --bs=512`; its fifth field is a priority.
#[test]
fn fio_without_offsets() {
    let trace = trace("traces/fio_lat.log");
    assert_eq!(trace.len(), 40);
    assert_eq!(trace.runs().len(), 1);
    let first: Vec<_> = durations_ns(&trace).take(3).collect();
    assert_eq!(first, [51_591, 4162, 803]);
    assert!(trace.about.notes[0].contains("whole milliseconds"));
    assert!(trace.about.notes[1].contains("no offsets"));
}

/// The log was written by fio 3.33 with `--rw=randrw --bs=4k --log_offset=1`.
#[test]
fn fio_with_offsets() {
    let trace = trace("traces/fio_lat_offsets.log");
    assert_eq!(trace.len(), 64);
    let first = trace.operations().next().unwrap();
    assert_eq!(first.kind, OperationKind::Read);
    assert_eq!((first.offset_bytes, first.length_bytes), (12_288, 4096));
    assert!(trace.operations().any(|o| o.kind == OperationKind::Write));
    assert_eq!(trace.about.notes.len(), 1);
}

#[test]
fn magod_recording() {
    let recording = recording("magod/f2_1.csv");
    assert_eq!(recording.samples, 1001);
    assert_eq!(recording.trace.len(), 1000);
    assert_eq!(
        (&*recording.time_column, recording.time_unit),
        ("Time[ms]", "ms")
    );
    let first = recording.trace.operations().next().unwrap();
    assert_eq!(
        (first.start_ns, first.end_ns),
        (145_153_000_000, 145_296_000_000)
    );
    // The header has 112 bytes and a line 83 bytes, including line ends.
    assert_eq!((first.offset_bytes, first.length_bytes), (195, 83));
    let longest = durations_ns(&recording.trace).max();
    assert_eq!(longest, Some(391_000_000));
}

/// The header ends in fields that the rows lack.
#[test]
fn magod_recording_with_free_fields() {
    let recording = recording("magod/f119_5.csv");
    assert_eq!(recording.samples, 10_001);
    let mut steps: Vec<_> = durations_ns(&recording.trace).collect();
    steps.sort_unstable();
    assert_eq!(steps[steps.len() / 2], 316_000_000);
}
