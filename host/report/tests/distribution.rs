//! The distribution in the terminal, compared with counts by brute force.

use cardiograph_report::distribution::{Bucket, buckets, text};
use cardiograph_report::{Report, figures_of};
use cardiograph_trace::{About, Loaded, Operation, OperationKind, Trace};

/// A report of writes with these latencies.
fn report(latencies_ns: &[u64]) -> Report {
    let mut trace = Trace::new(About::default());
    let mut start_ns = 0;
    for &ns in latencies_ns {
        let write = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: 0,
            length_bytes: 512,
            start_ns,
            end_ns: start_ns + ns,
        };
        start_ns = write.end_ns;
        trace.push(&write).unwrap();
    }
    figures_of(Loaded::Trace(trace), Some(10_000_000))
}

/// Latencies on both sides of every power of two, and others.
fn latencies() -> Vec<u64> {
    let powers = (4..=30).map(|power| 1_u64 << power);
    let edges = powers.flat_map(|ns| [ns - 1, ns, ns + 1, ns + ns / 2]);
    let others = (1..40_000_u64).map(|i| 1_000_000 + i * i % 1_048_573);
    edges.chain(others).chain([0, 0, 1, 1 << 36]).collect()
}

#[test]
fn every_bucket_has_the_count_of_its_limits() {
    let all = latencies();
    let found = buckets(&report(&all));
    for bucket in &found {
        let is_within = |ns: &&u64| (bucket.from_ns..bucket.below_ns()).contains(*ns);
        assert_eq!(
            bucket.count,
            all.iter().filter(is_within).count() as u64,
            "{bucket:?}"
        );
    }
    assert_eq!(
        found.iter().map(|bucket| bucket.count).sum::<u64>(),
        all.len() as u64
    );
    assert_eq!((found[0].from_ns, found[1].from_ns), (0, 1));
    assert!(found.is_sorted_by(|a: &Bucket, b: &Bucket| a.below_ns() == b.from_ns));
}

#[test]
fn a_single_stall_is_visible_and_lines_fit() {
    let report = report(&latencies());
    for columns in [40, 80, 200] {
        let shown = text(&report, columns, |end| format!("<{end}>"));
        let rows: Vec<&str> = shown.lines().skip(2).collect();
        assert_eq!(rows.len(), buckets(&report).len());
        for row in &rows {
            // The markers of the style take no columns.
            let width = row.chars().filter(|c| !"<>".contains(*c)).count();
            // The bars have at least 4 columns, and the marks stay readable.
            assert!(width <= columns.max(52), "{width} of {columns}: {row}");
        }
        assert!(rows.last().unwrap().ends_with("  <▏ stalls>"), "{shown}");
        let mark = "stalls above 10 ms>";
        assert_eq!(rows.iter().filter(|row| row.ends_with(mark)).count(), 1);
        let longest = rows.iter().map(|row| row.matches('█').count()).max();
        assert!(longest >= Some(4) && longest <= Some(40), "{shown}");
    }
    assert_eq!(text(&self::report(&[]), 80, str::to_string), "");
}
