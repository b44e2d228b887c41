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
Median write 1 ms, worst case 50 ms. A 64 KiB buffer sustains 86.8 kB/s without loss.

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
    median spacing         5.12 kB

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

/// Figures that say nothing are absent: an overhead of 0, a bin around 5 kB that begins at 0, a drift of 0.
#[test]
fn figures_that_say_nothing_are_left_out() {
    let mut quick = Trace::new(About {
        clock_overhead_ns: Some(0),
        ..About::default()
    });
    let mut now_ns = 0;
    for i in 0..400u64 {
        // Two stalls, 8 writes apart, and then a pause of 100 writes.
        let ms = if i % 100 < 16 && i % 8 == 0 { 50 } else { 1 };
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: i * 512,
            length_bytes: 512,
            start_ns: now_ns,
            end_ns: now_ns + ms * 1_000_000,
        };
        quick.push(&operation).unwrap();
        now_ns = operation.end_ns;
    }
    let report = figures_of(Loaded::Trace(quick), Some(10_000_000));
    let text = table::text(&report);
    assert!(!text.contains("measurement overhead"), "{text}");
    // 8 writes of 512 B, exactly.
    assert_eq!(report.summary.stalls.spacing_bytes.median, Some(4096));
    assert!(text.contains("median spacing         4.1 kB"), "{text}");
    for line in text.lines().filter(|line| line.contains(" ± ")) {
        let (centre, half) = line.rsplit_once(" ± ").unwrap();
        assert!(!centre.ends_with(half), "{line}");
    }
}

#[test]
fn the_first_line_answers_for_the_buffer_that_was_asked_for() {
    let mut report = figures_of(Loaded::Trace(trace()), Some(10_000_000));
    report.answer_buffer_bytes = 2048;
    let text = table::text(&report);
    let first =
        "Median write 1 ms, worst case 50 ms. A 2 KiB buffer sustains 30.7 kB/s without loss.";
    assert_eq!(text.lines().next(), Some(first));
}
