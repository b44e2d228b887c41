//! Reads the lines that the page draws in headless Chromium, and compares them with the latencies of the trace.

use crate::browser;

use cardiograph_report::{figures_of, page};
use cardiograph_trace::{About, Loaded, Operation, OperationKind, Recording, Trace};
use serde_json::Value;

/// Latencies in us, and the number of writes with each: far apart, so that the shares between them are known.
const LATENCIES_US: [(u64, u64); 5] = [
    (900, 5000),
    (2_000, 4000),
    (12_000, 940),
    (14_000, 45),
    (85_000, 15),
];

fn trace() -> Loaded {
    trace_of(&LATENCIES_US)
}

fn trace_of(latencies_us: &[(u64, u64)]) -> Loaded {
    let mut trace = Trace::new(About::default());
    let mut operation = Operation {
        kind: OperationKind::Write,
        file: 0,
        offset_bytes: 0,
        length_bytes: 512,
        start_ns: 0,
        end_ns: 0,
    };
    for &(us, count) in latencies_us {
        for _ in 0..count {
            operation.start_ns = operation.end_ns;
            operation.end_ns += us * 1000;
            trace.push(&operation).unwrap();
            operation.offset_bytes += operation.length_bytes;
        }
    }
    Loaded::Trace(trace)
}

/// Returns the fraction of the writes that take at least `us`.
fn share_of(latencies_us: &[(u64, u64)], us: f64) -> f64 {
    let (mut slow, mut total) = (0, 0);
    for &(latency_us, count) in latencies_us {
        total += count;
        slow += if latency_us as f64 >= us { count } else { 0 };
    }
    slow as f64 / total as f64
}

/// Returns the lines and texts that the page draws in the plot whose label starts with `title`.
fn plot(html: &str, title: &str) -> Value {
    let pen = format!("<script>{}</script>", include_str!("browser/pen.js"));
    let markup = browser::markup(&html.replacen("<head>", &format!("<head>{pen}"), 1));
    let (_, rest) = markup.split_once("<pre id=\"drawn\">").unwrap();
    let (json, _) = rest.split_once("</pre>").unwrap();
    let plots: Vec<Value> = serde_json::from_str(json).unwrap();
    let is_wanted = |plot: &&Value| plot["label"].as_str().unwrap().starts_with(title);
    let found = plots.iter().find(is_wanted);
    found
        .unwrap_or_else(|| panic!("no plot {title}: {json}"))
        .clone()
}

/// A logarithmic axis, recovered from its tick labels.
struct Axis {
    pixel: f64,
    log: f64,
    log_per_pixel: f64,
}

impl Axis {
    /// Creates an axis from the labels with the given alignment that `value` can parse.
    fn of(plot: &Value, align: &str, along: &str, value: impl Fn(&str) -> Option<f64>) -> Axis {
        let texts = plot["texts"].as_array().unwrap().iter();
        let ticks: Vec<(f64, f64)> = texts
            .filter(|text| text["align"] == align)
            .filter_map(|text| {
                let log = value(text["text"].as_str().unwrap())?.ln();
                Some((text[along].as_f64().unwrap(), log))
            })
            .collect();
        assert!(ticks.len() >= 3, "{ticks:?}");
        // The last label may be moved so that it fits in the plot.
        let (first, last) = (ticks[0], ticks[ticks.len() - 2]);
        Axis {
            pixel: first.0,
            log: first.1,
            log_per_pixel: (last.1 - first.1) / (last.0 - first.0),
        }
    }

    fn value(&self, pixel: &Value) -> f64 {
        (self.log + (pixel.as_f64().unwrap() - self.pixel) * self.log_per_pixel).exp()
    }
}

fn time_us(label: &str) -> Option<f64> {
    let (number, unit) = label.split_once(' ')?;
    let factor = match unit {
        "\u{b5}s" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

fn share(label: &str) -> Option<f64> {
    let number = label.strip_suffix('%')?.trim_end();
    Some(number.parse::<f64>().ok()? / 100.0)
}

#[test]
#[ignore = "needs chromium"]
fn the_distribution_is_drawn_where_the_figures_are() {
    let report = figures_of(trace(), None);
    let plot = plot(
        &page::html(std::slice::from_ref(&report), None, None).unwrap(),
        "Distribution",
    );
    let (x, y) = (
        Axis::of(&plot, "center", "x", time_us),
        Axis::of(&plot, "right", "y", share),
    );
    let lines = plot["lines"].as_array().unwrap();
    let curve = lines.iter().find(|line| line["width"] == 2).unwrap();
    let points: Vec<(f64, f64)> = curve["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| (x.value(&point[0]), y.value(&point[1])))
        .collect();
    let drawn_at = |us: f64| {
        let step = points
            .windows(2)
            .find(|pair| pair[0].0 <= us && us < pair[1].0);
        step.map_or(0.0, |pair| pair[0].1)
    };
    // A latency that no write has, between each pair of latencies that occur.
    for us in [800.0, 1_300.0, 5_000.0, 13_000.0, 30_000.0] {
        let (drawn, expected) = (drawn_at(us), share_of(&LATENCIES_US, us));
        assert!(
            (drawn / expected - 1.0).abs() < 0.05,
            "{drawn} instead of {expected} at {us} us: {points:?}"
        );
    }
    // The curve passes through each percentile of the JSON. The tolerance of 5 % is wider than a pixel.
    let json = serde_json::to_value(&report.summary).unwrap();
    for (name, share) in [
        ("median", 0.5),
        ("p90", 0.1),
        ("p99", 0.01),
        ("p99_9", 1e-3),
    ] {
        let us = json["latency_us"][name].as_f64().unwrap();
        let (before, after) = (drawn_at(us * 0.95), drawn_at(us * 1.05));
        assert!(
            after < share * 1.05 && before > share * 0.95,
            "{name} is {us} us, but the curve goes from {before} to {after}"
        );
    }
}

/// In a trace with more writes than points, two neighbouring stalls are drawn as two dots, one write apart.
#[test]
#[ignore = "needs chromium"]
fn every_stall_is_drawn_where_points_are_groups() {
    let quick = (1_000, 200_000);
    let report = figures_of(trace_of(&[quick, (85_000, 1), (60_000, 1), quick]), None);
    let html = page::html(&[report], None, None);
    let html = html.unwrap().replacen(
        "<html ",
        "<html data-press=\"[aria-label='Show the worst case']\" ",
        1,
    );
    let plot = plot(&html, "Write latency");
    let y = Axis::of(&plot, "right", "y", time_us);
    let texts = plot["texts"].as_array().unwrap().iter();
    let bytes: Vec<(f64, f64)> = texts
        .filter(|text| text["align"] == "center")
        .filter_map(|text| {
            let label = text["text"].as_str().unwrap().strip_suffix(" MB")?;
            Some((
                text["x"].as_f64().unwrap(),
                label.parse::<f64>().ok()? * 1e6,
            ))
        })
        .collect();
    let (first, last) = (bytes[0], bytes[bytes.len() - 2]);
    let bytes_per_pixel = (last.1 - first.1) / (last.0 - first.0);
    let colours = plot["dots"].as_array().unwrap();
    assert_eq!(colours.len(), 2);
    let stalls = colours[1]["points"].as_array().unwrap();
    let stalls: Vec<(f64, f64)> = stalls
        .iter()
        .map(|dot| {
            let at_bytes = first.1 + (dot[0].as_f64().unwrap() - first.0) * bytes_per_pixel;
            (at_bytes, y.value(&dot[1]))
        })
        .collect();
    assert_eq!(stalls.len(), 2, "{stalls:?}");
    // Labels are drawn at whole pixels, of 1 kB here.
    assert!(
        (stalls[0].0 - 200_000.0 * 512.0).abs() < 2_000.0,
        "{stalls:?}"
    );
    assert!(
        (stalls[1].0 - stalls[0].0 - 512.0).abs() < 50.0,
        "{stalls:?}"
    );
    for ((_, us), expected_us) in stalls.iter().zip([85e3, 60e3]) {
        assert!((us / expected_us - 1.0).abs() < 0.03, "{stalls:?}");
    }
}

#[test]
#[ignore = "needs chromium"]
fn late_samples_and_missing_samples_are_drawn_where_they_are() {
    let mut trace = Trace::new(About::default());
    // 200 intervals of 1 ms; in their middle one of 5 ms, at their end one of 10 ms.
    let steps_ms = [[1; 100].as_slice(), &[5], &[1; 100], &[10]].concat();
    let mut start_ns = 0;
    for ms in &steps_ms {
        let end_ns = start_ns + ms * 1_000_000;
        let step = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: 0,
            length_bytes: 10,
            start_ns,
            end_ns,
        };
        trace.push(&step).unwrap();
        start_ns = end_ns;
    }
    let recording = Recording {
        trace,
        samples: steps_ms.len() as u64 + 1,
        runs: Vec::new(),
        sequence: None,
        time_column: "time".to_string(),
        time_unit: "ms",
    };
    let report = figures_of(Loaded::Recording(recording), None);
    let plot = plot(&page::html(&[report], None, None).unwrap(), "Late samples");
    let label = plot["label"].as_str().unwrap();
    assert!(
        label.ends_with("2 late samples with 13 missing samples."),
        "{label}"
    );
    let lines = plot["lines"].as_array().unwrap().iter();
    let curves: Vec<_> = lines.filter(|line| line["width"] == 2).collect();
    let heights = [
        ("missing", curves[0], [4.0, 13.0]),
        ("late", curves[1], [1.0, 2.0]),
    ];
    let points = |curve: &Value| -> Vec<(f64, f64)> {
        let points = curve["points"].as_array().unwrap().iter();
        let number = |value: &Value| value.as_f64().unwrap();
        points
            .map(|point| (number(&point[0]), number(&point[1])))
            .collect()
    };
    let missing = points(curves[0]);
    let (left, bottom) = missing[0];
    let (right, top) = *missing.last().unwrap();
    let (total_ms, unit) = (steps_ms.iter().sum::<u64>() as f64, (bottom - top) / 13.0);
    for (name, curve, counts) in heights {
        // The first late sample arrives at 105 ms, the second is the last one.
        let drawn = points(curve);
        let (at, height) = drawn[2];
        let ms = (at - left) / (right - left) * total_ms;
        assert!((ms - 105.0).abs() < 0.5, "{name}: {ms} ms");
        for (y, count) in [(height, counts[0]), (drawn.last().unwrap().1, counts[1])] {
            assert!(
                ((bottom - y) / unit - count).abs() < 0.05,
                "{name}: {drawn:?}"
            );
        }
    }
}

#[test]
#[ignore = "needs chromium"]
fn a_comparison_draws_every_card_where_its_figures_are() {
    const OTHER_US: [(u64, u64); 3] = [(1_500, 8000), (12_500, 1900), (40_000, 100)];
    let all = [&LATENCIES_US[..], &OTHER_US];
    let reports = all.map(|latencies_us| figures_of(trace_of(latencies_us), None));
    let text = |text: &str| text.to_string();
    let comparison = page::Comparison {
        heads: vec![text(""), text("A"), text("B")],
        rows: vec![vec![text("writes"), text("10 000"), text("10 000")]],
        sentences: vec![text("B, median: B is slower than A.")],
        notes: Vec::new(),
    };
    let html = page::html(&reports, Some(&comparison), None).unwrap();
    let plot = plot(&html, "Comparison of latencies");
    let (x, y) = (
        Axis::of(&plot, "center", "x", time_us),
        Axis::of(&plot, "right", "y", share),
    );
    let lines = plot["lines"].as_array().unwrap().iter();
    let curves: Vec<_> = lines.filter(|line| line["width"] == 2).collect();
    assert_eq!(curves.len(), 2);
    for (curve, latencies_us) in curves.iter().zip(all) {
        let points = curve["points"].as_array().unwrap().iter();
        let points: Vec<(f64, f64)> = points
            .map(|point| (x.value(&point[0]), y.value(&point[1])))
            .collect();
        for us in [1_200.0, 1_800.0, 5_000.0, 13_000.0, 30_000.0, 60_000.0] {
            let step = points
                .windows(2)
                .find(|pair| pair[0].0 <= us && us < pair[1].0);
            let (drawn, expected) = (
                step.map_or(0.0, |pair| pair[0].1),
                share_of(latencies_us, us),
            );
            assert!(
                (drawn - expected).abs() <= 0.05 * expected,
                "{drawn} instead of {expected} at {us} us: {points:?}"
            );
        }
    }
    let names = plot["texts"].as_array().unwrap().iter();
    let names: Vec<_> = names.filter_map(|text| text["text"].as_str()).collect();
    assert!(names.contains(&"A") && names.contains(&"B"), "{names:?}");
    let page = browser::markup(&html);
    assert!(page.contains("<li>B, median: B is slower than A.</li>"));
}

#[test]
fn the_report_of_an_hour_at_860_hz_has_less_than_3_mb() {
    let mut trace = Trace::new(About::default());
    let samples = 860 * 3600;
    let mut step = Operation {
        kind: OperationKind::Write,
        file: 0,
        offset_bytes: 0,
        length_bytes: 0,
        start_ns: 0,
        end_ns: 0,
    };
    for sample in 1..samples {
        let late = if sample % 10_007 == 0 { 90_000_000 } else { 0 };
        step.length_bytes = 10 + sample % 7;
        step.end_ns = step.start_ns + 1_162_791 + sample % 1_000 * 13 + late;
        trace.push(&step).unwrap();
        (step.start_ns, step.offset_bytes) = (step.end_ns, step.offset_bytes + step.length_bytes);
    }
    let recording = Recording {
        trace,
        samples,
        runs: Vec::new(),
        sequence: None,
        time_column: "time".to_string(),
        time_unit: "us",
    };
    let report = figures_of(Loaded::Recording(recording), None);
    let bytes = page::html(&[report], None, None).unwrap().len();
    assert!((1_000_000..3_000_000).contains(&bytes), "{bytes} B");
}
