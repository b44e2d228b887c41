//! The whole table of a small trace, as it is printed.

use cardiograph_report::{figures_of, table};
use cardiograph_trace::{About, Loaded, Operation, OperationKind, Trace};

/// Twenty blocks of 512 B in 1 ms each; the sixth and the sixteenth stall for 50 ms.
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
    writes                 20
    payload                10.2 kB
    elapsed                118 ms
    clock resolution       40 ns
    measuring overhead     60 ns a write

  Write time
    shortest               1 ms
    mean                   5.9 ms
    median                 1 ms
    90 %                   1 ms
    99 %                   50 ms
    99.9 %                 50 ms
    99.99 %                50 ms
    longest                50 ms

  Throughput
    average                86.8 kB/s
    guaranteed             10.2 kB/s
    operations a second    169

  Peaks
    threshold              10 ms (given)
    peaks                  2
    median height          50.1 ms
    median spacing         5.15 kB
    most frequent spacing  5.25 kB ± 250 B

  Lossless rate
    with 1 KiB of RAM      10.2 kB/s
    with 2 KiB of RAM      30.7 kB/s
    with 4 KiB of RAM      71.7 kB/s
    with 8 KiB of RAM      86.8 kB/s
    with 16 KiB of RAM     86.8 kB/s
    with 32 KiB of RAM     86.8 kB/s
    with 64 KiB of RAM     86.8 kB/s
    with 128 KiB of RAM    86.8 kB/s
    with 256 KiB of RAM    86.8 kB/s
    with 512 KiB of RAM    86.8 kB/s
    with 1 MiB of RAM      86.8 kB/s

  note: Two stalls.

Half of the writes take up to 1 ms, the longest 50 ms. With 64 KiB of RAM in front, 86.8 kB/s went through without loss.
";
    assert_eq!(table::text(&report), expected);
}

#[test]
fn markdown_has_the_same_figures() {
    let report = figures_of(Loaded::Trace(trace()), Some(10_000_000));
    let markdown = table::markdown(&report);
    assert!(markdown.starts_with("## by hand on a card\n"));
    for row in [
        "| writes | 20 |",
        "| longest | 50 ms |",
        "| with 2 KiB of RAM | 30.7 kB/s |",
    ] {
        assert!(markdown.contains(row), "{row} is missing in\n{markdown}");
    }
}
