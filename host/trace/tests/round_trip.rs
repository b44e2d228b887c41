//! Writing and reading a trace yields the same trace.

use cardiograph_trace::{
    About, Loaded, Operation, OperationKind, PhaseLabel, ReadOptions, Trace, read, read_from,
    write_csv, write_csv_to, write_parquet,
};
use proptest::prelude::*;

/// Difference between an operation and the previous one.
#[derive(Clone, Debug)]
struct Step {
    read: bool,
    file: u32,
    offset_bytes: Option<u64>,
    length_bytes: u64,
    idle_ns: u64,
    duration_ns: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let times = prop_oneof![0..1_000_000_u64, Just(u64::from(u32::MAX)), 0..1_u64 << 40];
    let step = (
        prop::bool::weighted(0.1),
        prop_oneof![Just(0), 0..3_u32, Just(u32::MAX)],
        prop::option::weighted(0.2, 0..1_u64 << 62),
        prop_oneof![Just(512), Just(0), 0..1_u64 << 40],
        times.clone(),
        times,
    )
        .prop_map(
            |(read, file, offset_bytes, length_bytes, idle_ns, duration_ns)| Step {
                read,
                file,
                offset_bytes,
                length_bytes,
                idle_ns,
                duration_ns,
            },
        );
    prop::collection::vec(step, 1..300)
}

fn trace_of(steps: &[Step], start_ns: u64, about: About) -> Trace {
    let mut trace = Trace::new(about);
    let mut now_ns = start_ns;
    let mut next_offset = 0;
    for step in steps {
        let start_ns = now_ns + step.idle_ns;
        now_ns = start_ns + step.duration_ns;
        let operation = Operation {
            kind: if step.read {
                OperationKind::Read
            } else {
                OperationKind::Write
            },
            file: step.file,
            offset_bytes: step.offset_bytes.unwrap_or(next_offset),
            length_bytes: step.length_bytes,
            start_ns,
            end_ns: now_ns,
        };
        next_offset = operation.offset_bytes + operation.length_bytes;
        trace.push(&operation).expect("times go forward");
    }
    trace
}

fn loaded(loaded: Result<Loaded, impl std::fmt::Display>) -> Trace {
    match loaded {
        Ok(Loaded::Trace(trace)) => trace,
        Ok(_) => panic!("not a trace"),
        Err(error) => panic!("{error}"),
    }
}

fn about() -> impl Strategy<Value = About> {
    (
        ".{0,20}",
        ".{0,20}",
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        // Control characters in notes are escaped.
        prop::collection::vec("\\PC{0,20}", 0..12),
        prop::collection::btree_map(any::<u32>(), ".{0,20}", 0..12),
    )
        .prop_map(
            |(target, workload, resolution, overhead, notes, phases)| About {
                target,
                workload,
                clock_resolution_ns: resolution,
                clock_overhead_ns: overhead,
                notes,
                phases: phases
                    .into_iter()
                    .map(|(first_file, label)| PhaseLabel { first_file, label })
                    .collect(),
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn csv(steps in steps(), start_ns in 0..1_u64 << 62) {
        let trace = trace_of(&steps, start_ns, About::default());
        let mut csv = Vec::new();
        write_csv_to(&trace, &mut csv).unwrap();
        let again = loaded(read_from("csv", &csv[..], &ReadOptions::default()));
        prop_assert!(again.operations().eq(trace.operations()));
        prop_assert_eq!(again.runs(), trace.runs());
    }

    #[test]
    fn parquet(steps in steps(), start_ns in 0..1_u64 << 62, about in about()) {
        let trace = trace_of(&steps, start_ns, about);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.parquet");
        write_parquet(&trace, &path).unwrap();
        let again = loaded(read(&path, &ReadOptions::default()));
        prop_assert!(again.operations().eq(trace.operations()));
        prop_assert_eq!(again.runs(), trace.runs());
        prop_assert_eq!(&again.about, &trace.about);
        // Read the same bytes through a pipe.
        let bytes = std::fs::read(&path).unwrap();
        let again = loaded(read_from("pipe", &bytes[..], &ReadOptions::default()));
        prop_assert!(again.operations().eq(trace.operations()));
    }
}

fn even_trace(count: u64) -> Trace {
    let mut trace = Trace::new(About::default());
    for index in 0..count {
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: 512 * index,
            length_bytes: 512,
            start_ns: 1000 * index,
            end_ns: 1000 * index + 900,
        };
        trace.push(&operation).expect("times go forward");
    }
    trace
}

/// A perfectly regular trace takes the fewest bytes per row; the reader's limit on rows per byte must accept
/// it.
#[test]
fn several_row_groups_of_a_regular_trace() {
    let trace = even_trace((1 << 20) + 100_000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("even.parquet");
    write_parquet(&trace, &path).unwrap();
    let bytes = path.metadata().unwrap().len();
    assert!(bytes < trace.len() as u64 / 8, "{bytes} bytes");
    let again = loaded(read(&path, &ReadOptions::default()));
    assert!(again.operations().eq(trace.operations()));
}

#[test]
fn existing_files_are_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("there");
    std::fs::write(&path, "before").unwrap();
    let trace = even_trace(1);
    assert!(write_parquet(&trace, &path).is_err());
    assert!(write_csv(&trace, &path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(directory.path().read_dir().unwrap().count(), 1);
}

/// A number that Parquet cannot represent must not leave a partial file.
#[test]
fn a_failed_write_leaves_no_file() {
    let mut trace = even_trace(1);
    let operation = Operation {
        kind: OperationKind::Write,
        file: 0,
        offset_bytes: u64::MAX,
        length_bytes: 1,
        start_ns: 1000,
        end_ns: 2000,
    };
    trace.push(&operation).expect("times go forward");
    let directory = tempfile::tempdir().unwrap();
    assert!(write_parquet(&trace, &directory.path().join("new")).is_err());
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}
