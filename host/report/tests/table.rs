//! The complete table of a small trace.

use cardiograph_report::{figures_of, table};
use cardiograph_trace::{About, Loaded, Operation, OperationKind, Trace};

/// Twenty blocks of 512 B in 1 ms each, except that the sixth and the sixteenth stall for 50 ms.
fn trace() -> Trace {
    let mut trace = Trace::new(About {
        target: "a card".into(),
        workload: "by hand".into(),
        clock_resolution_ns: Some(40),
        clock_overhead_ns: Some(60),
        notes: vec!["Two stalls.".into()],
        ..About::default()
    });
    let mut now_ns = 0;
    for i in 0..20u64 {
        let ms = if i % 10 == 5 { 50 } else { 1 };
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: i * 512,
            length_bytes: 512,
            start_ns: now_ns,
            end_ns: now_ns + ms * 1_000_000,
        };
        trace.push(&operation).unwrap();
        now_ns = operation.end_ns;
    }
    trace
}

#[test]
fn the_table_of_a_small_trace() {
    let report = figures_of(Loaded::Trace(trace()), Some(10_000_000));
    let expected = "\
by hand · a card

  Measured
    input                  writes
    writes                 20
    payload                10.2 kB
    elapsed                118 ms
    clock resolution       40 ns
    measurement overhead   60 ns per write

  Write latency
    min                    1 ms
    mean                   5.9 ms
    median                 1 ms
    p90                    1 ms
    worst case             50 ms

  Throughput
    mean                   86.8 kB/s
    worst case             10.2 kB/s
    writes per second      169

  Stalls
    threshold              10 ms (given)
    stalls                 2
    median latency         50 ms
    median spacing         5.15 kB

  Sustained rate
    1 KiB buffer           10.2 kB/s
    2 KiB buffer           30.7 kB/s
    4 KiB buffer           71.7 kB/s
    8 KiB buffer           86.8 kB/s
    16 KiB buffer          86.8 kB/s
    32 KiB buffer          86.8 kB/s
    64 KiB buffer          86.8 kB/s
    128 KiB buffer         86.8 kB/s
    256 KiB buffer         86.8 kB/s
    512 KiB buffer         86.8 kB/s
    1 MiB buffer           86.8 kB/s

  note: Two stalls.

Median write 1 ms, worst case 50 ms. A 64 KiB buffer sustains 86.8 kB/s without loss.
";
    assert_eq!(table::text(&report), expected);
}

/// A figure that the number of writes does not support is absent.
#[test]
fn percentiles_need_a_write_beyond_them() {
    for (writes, last) in [
        (9, "median"),
        (10, "p90"),
        (99, "p90"),
        (100, "p99"),
        (1000, "p99.9"),
    ] {
        let mut long = Trace::new(About::default());
        for at in 0..writes {
            let operation = Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: at * 512,
                length_bytes: 512,
                start_ns: at * 1000,
                end_ns: at * 1000 + 900,
            };
            long.push(&operation).unwrap();
        }
        let text = table::text(&figures_of(Loaded::Trace(long), None));
        let names = ["median", "p90", "p99", "p99.9", "p99.99"];
        let is_shown = |name: &&&str| text.contains(&format!("    {name} "));
        assert_eq!(names.iter().rfind(is_shown), Some(&last), "{text}");
    }
}

#[test]
fn markdown_has_the_same_figures() {
    let report = figures_of(Loaded::Trace(trace()), Some(10_000_000));
    let markdown = table::markdown(&report);
    assert!(markdown.starts_with("## by hand on a card\n"));
    for row in [
        "| writes | 20 |",
        "| worst case | 50 ms |",
        "| 2 KiB buffer | 30.7 kB/s |",
    ] {
        assert!(markdown.contains(row), "{row} is missing in\n{markdown}");
    }
}
