//! A trace returns the operations that were pushed, in any order of files and offsets, and the orders that the
//! studies use take little memory.

use cardiograph_trace::{
    About, Loaded, Operation, OperationKind, ReadOptions, Run, RunOrder, Trace, read, read_from,
    write_parquet,
};
use proptest::prelude::*;

/// Operations that go round-robin through several files; the last round may be incomplete.
fn rounds() -> impl Strategy<Value = Vec<Operation>> {
    // Few distinct values, so that a sequence often continues where the previous one ended.
    (
        prop::bool::weighted(0.9),
        prop_oneof![0..4_u32, u32::MAX - 4..u32::MAX - 1],
        prop_oneof![Just(1), 1..3_u32],
        prop_oneof![0..3_u64, Just(1 << 40)],
        prop_oneof![Just(512), Just(0), Just(1024_u64)],
        1..9_u32,
    )
        .prop_map(|(write, file, files, blocks, length_bytes, count)| {
            let operation = |i: u32| Operation {
                kind: if write {
                    OperationKind::Write
                } else {
                    OperationKind::Read
                },
                file: file + i % files,
                offset_bytes: 512 * blocks + u64::from(i / files) * length_bytes,
                length_bytes,
                start_ns: 0,
                end_ns: 0,
            };
            (0..count).map(operation).collect()
        })
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(rounds(), 1..60).prop_map(|rounds| timed(rounds.concat()))
}

/// Gives operations consecutive times; each operation takes longer than the previous one.
fn timed(mut operations: Vec<Operation>) -> Vec<Operation> {
    let mut now_ns = 0;
    for (index, operation) in (0..).zip(&mut operations) {
        operation.start_ns = now_ns;
        now_ns += index;
        operation.end_ns = now_ns;
    }
    operations
}

fn trace_of(operations: &[Operation]) -> Trace {
    let mut trace = Trace::new(About::default());
    for operation in operations {
        trace.push(operation).expect("times go forward");
    }
    trace
}

/// Expands the runs as [`Run`]'s documentation describes, without times. Only the trace knows scattered offsets.
fn of_runs(trace: &Trace) -> Vec<Operation> {
    let operation = |run: &Run, i: u64, given: Operation| Operation {
        kind: run.kind,
        file: run.file + (i % u64::from(run.files)) as u32,
        offset_bytes: match run.order {
            RunOrder::Sequential => run.offset_bytes + i / u64::from(run.files) * run.length_bytes,
            RunOrder::Scattered => given.offset_bytes,
        },
        length_bytes: run.length_bytes,
        start_ns: 0,
        end_ns: 0,
    };
    let runs = trace.runs().iter();
    runs.flat_map(|run| (0..run.count).map(move |i| (run, i)))
        .zip(trace.operations())
        .map(|((run, i), given)| operation(run, i, given))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_come_back_unchanged(operations in operations()) {
        let trace = trace_of(&operations);
        prop_assert!(trace.operations().eq(operations.iter().copied()));
        let count: u64 = trace.runs().iter().map(|run| run.count).sum();
        prop_assert_eq!(count, operations.len() as u64);
        let mut again = of_runs(&trace);
        for (again, operation) in again.iter_mut().zip(&operations) {
            (again.start_ns, again.end_ns) = (operation.start_ns, operation.end_ns);
        }
        prop_assert_eq!(again, operations);
    }

    #[test]
    fn a_replay_has_each_operation_with_its_run(operations in operations()) {
        let trace = trace_of(&operations);
        let mut replayed = Vec::new();
        trace.replay(|run, durations_ns| {
            replayed.extend(durations_ns.map(|ns| (run.kind, run.length_bytes, ns)));
        });
        let expected = operations.iter().map(|o| (o.kind, o.length_bytes, o.end_ns - o.start_ns));
        prop_assert!(replayed.into_iter().eq(expected));
    }

    /// The Parquet reader appends whole sequences and must arrive at the same runs.
    #[test]
    fn parquet_keeps_the_runs(operations in operations()) {
        let trace = trace_of(&operations);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.parquet");
        write_parquet(&trace, &path).unwrap();
        let Ok(Loaded::Trace(again)) = read(&path, &ReadOptions::default()) else {
            panic!("not read");
        };
        prop_assert!(again.operations().eq(operations));
        prop_assert_eq!(again.runs(), trace.runs());
    }
}

#[test]
fn round_robin_files_are_one_run() {
    let write = |i: u64| Operation {
        kind: OperationKind::Write,
        file: 3 + (i % 2) as u32,
        offset_bytes: i / 2 * 512,
        length_bytes: 512,
        start_ns: 0,
        end_ns: 0,
    };
    let trace = trace_of(&timed((0..1001).map(write).collect()));
    let expected = Run {
        kind: OperationKind::Write,
        order: RunOrder::Sequential,
        file: 3,
        files: 2,
        offset_bytes: 0,
        length_bytes: 512,
        count: 1001,
    };
    assert_eq!(trace.runs(), [expected]);
}

/// The reader checks the end of each file, not the sum over all files.
#[test]
fn round_robin_files_may_all_end_at_the_largest_number() {
    let csv = "operation,file,offset,length,start_ns,end_ns\n\
        write,0,9223372036854775806,1,0,9\nwrite,1,9223372036854775806,1,9,9\n";
    let loaded = read_from("run7.csv", csv.as_bytes(), &ReadOptions::default());
    assert!(loaded.is_ok());
}
