//! Arbitrary bytes as a trace in any format: errors are fine, panics and inconsistent traces are not.

#![cfg_attr(fuzzing, no_main)]

use cardiograph_trace::{Loaded, ReadOptions, Trace, read_from, write_csv_to};

cardiograph_fuzz::target!(|bytes: &[u8]| {
    match read_from("fuzz", bytes, &ReadOptions::default()) {
        Ok(Loaded::Trace(trace)) => check(&trace),
        Ok(Loaded::Recording(recording)) => {
            let operations = recording.trace.len() + recording.runs.len();
            assert_eq!(recording.samples, operations as u64);
            check(&recording.trace);
        }
        Ok(Loaded::Histogram(histogram)) => {
            assert!(histogram.writes() > 0);
            let (median, p99) = (
                histogram.percentile_ns(500_000),
                histogram.percentile_ns(990_000),
            );
            assert!(median.is_some() && median <= p99);
        }
        Ok(Loaded::Aggregate(_)) => {}
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.starts_with("fuzz"), "{sentence}");
            assert!(!sentence.contains(char::is_control), "{sentence}");
        }
    }
});

/// Checks that a trace is in order, survives being written and read again, and has printable notes.
fn check(trace: &Trace) {
    for note in &trace.about.notes {
        assert!(!note.contains(char::is_control), "{note}");
    }
    let mut before_ns = 0;
    for operation in trace.operations() {
        assert!(before_ns <= operation.start_ns && operation.start_ns <= operation.end_ns);
        before_ns = operation.end_ns;
    }
    let mut csv = Vec::new();
    write_csv_to(trace, &mut csv).expect("writing to memory cannot fail");
    let Ok(Loaded::Trace(again)) = read_from("again", &csv[..], &ReadOptions::default()) else {
        panic!("cannot read the CSV written by write_csv_to");
    };
    assert!(again.operations().eq(trace.operations()));
}
