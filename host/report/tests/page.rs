//! The HTML page in headless Chromium: runs the page's script and checks the resulting markup.

use crate::browser;

use cardiograph_report::{Report, figures_of, page};
use cardiograph_trace::{
    About, Loaded, Operation, OperationKind, ReadOptions, Trace, read, read_scope,
};
use std::path::Path;

fn trace(writes: u64, uneven_payload: bool) -> Loaded {
    let mut trace = Trace::new(About {
        target: "</script><b>card".into(),
        workload: "by hand".into(),
        ..About::default()
    });
    let (mut now_ns, mut offset_bytes) = (0, 0);
    for i in 0..writes {
        let length_bytes = if uneven_payload { 100 + i % 7 } else { 512 };
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes,
            length_bytes,
            start_ns: now_ns,
            end_ns: now_ns
                + if i % 160 == 99 {
                    70_000_000
                } else {
                    1_600_000 + i % 1000
                },
        };
        trace.push(&operation).unwrap();
        now_ns = operation.end_ns;
        offset_bytes += length_bytes;
    }
    Loaded::Trace(trace)
}

fn data(name: &str) -> Loaded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(name);
    read(&path, &ReadOptions::default()).unwrap()
}

/// Returns the markup that the page's script generates for the reports.
fn rendered(reports: &[Report]) -> String {
    browser::markup(&page::html(reports, None, None).unwrap())
}

#[test]
#[ignore = "needs chromium"]
fn every_kind_of_report_is_drawn_without_failures() {
    let reports = [
        figures_of(trace(5000, false), None),
        figures_of(trace(3000, true), Some(50_000_000)),
        // A trace without stalls; below, a trace with a single write.
        figures_of(trace(50, false), None),
        figures_of(trace(1, false), None),
        figures_of(data("magod/f2_1.csv"), None),
        figures_of(data("traces/library_comparison.csv"), None),
    ];
    for report in reports {
        let headline = report.headline();
        let markup = rendered(&[report]);
        assert!(markup.contains(&headline), "{headline} is missing");
        assert!(!markup.contains("class=\"failure\"><"), "{headline}");
        assert!(
            !markup.contains("<b>card"),
            "the target's name became markup"
        );
    }
}

#[test]
#[ignore = "needs chromium"]
fn a_trace_has_all_plots() {
    let markup = rendered(&[figures_of(trace(5000, false), Some(50_000_000))]);
    for plot in [
        "Write latency over bytes written",
        "Distribution",
        "Stall spacing",
        "Backlog",
        "Sustained rate",
    ] {
        assert!(markup.contains(plot), "{plot} is missing");
    }
    assert!(markup.matches("<canvas").count() >= 5);
    // One in every 160 writes of 512 B is a stall, so stalls are 81,920 B apart.
    assert!(markup.contains("31 stalls"));
    assert!(markup.contains("median 81.9 kB"));
}

/// Adds the energy from the example scope file to a report.
fn with_energy(mut report: Report) -> Report {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/traces/energy_scope.csv");
    let mut meter = report.energy_meter(0);
    let scope = read_scope(&path, 1.0, &mut |_| {}, |step| meter.add(step)).unwrap();
    let energy = meter.finish().unwrap();
    report.add_energy(energy, &scope, None);
    report
}

#[test]
#[ignore = "needs chromium"]
fn energy_shares_the_time_axis_of_the_writes() {
    let writes = figures_of(data("traces/energy_writes.csv"), None);
    let markup = rendered(&[with_energy(writes)]);
    assert!(!markup.contains("class=\"failure\"><"));
    for text in [
        "Write latency over time",
        "Energy in each 10 ms over time",
        "including 12 of 12 writes completely",
        "stalls use 81.3 % of the trace's energy",
    ] {
        assert!(markup.contains(text), "{text} is missing");
    }
    let uneven = with_energy(figures_of(trace(3000, true), None));
    assert!(!rendered(&[uneven]).contains("<p>This plot cannot"));

    let alone = rendered(&[with_energy(Report::of_energy("scope.csv"))]);
    assert!(alone.contains("The card drew"), "{alone}");
    assert_eq!(alone.matches("class=\"over\"").count(), 1);
    assert!(!alone.contains("<p>This plot cannot"));
}

#[test]
#[ignore = "needs chromium"]
fn several_runs_share_a_page() {
    let reports = [
        figures_of(trace(500, false), None),
        figures_of(trace(700, false), None),
    ];
    let markup = rendered(&reports);
    assert!(markup.contains("500") && markup.contains("700"));
}

#[test]
fn the_page_makes_no_network_requests() {
    let html = page::html(&[figures_of(trace(10, false), None)], None, None).unwrap();
    for sign in [
        "src=\"http",
        "href=\"http",
        "url(http",
        "@import",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!html.contains(sign), "{sign}");
    }
}
