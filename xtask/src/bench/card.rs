//! Speed and memory of the simulated card: criterion's estimates compared with the required values.

use super::report::{save, timed};
use crate::run::{cargo, check, target};
use serde_json::Value;
use std::fmt::Write;

const PACKAGE: &str = "cardiograph-sim-card";

/// A benchmark: its name, its folder in criterion's output, and the required writes per second.
struct Case {
    name: &'static str,
    folder: &'static str,
    least: Option<f64>,
}

const CASES: [Case; 6] = [
    Case {
        name: "timing only, sequential",
        folder: "timing only/sequential",
        least: Some(5e6),
    },
    Case {
        name: "timing only, random",
        folder: "timing only/random",
        least: Some(3e6),
    },
    Case {
        name: "data stored, no bus",
        folder: "data stored/sequential",
        least: None,
    },
    Case {
        name: "data and bus bytes, embedded-sdmmc without checksums",
        folder: "data and wire bytes/embedded-sdmmc/no checksums",
        least: Some(500e3),
    },
    Case {
        name: "data and bus bytes, embedded-sdmmc with checksums",
        folder: "data and wire bytes/embedded-sdmmc/checksums",
        least: None,
    },
    Case {
        name: "data and bus bytes, CMD24 by hand without polling",
        folder: "data and wire bytes/CMD24 by hand, not polling",
        least: None,
    },
];

/// Number of writes per criterion iteration.
const WRITES: f64 = 10_000.0;
const MEMORY_MOST_BYTES: u64 = 64 << 20;

pub fn run() -> Result<(), String> {
    check(&mut cargo(&[
        "bench",
        "--quiet",
        "--package",
        PACKAGE,
        "--bench",
        "writes",
    ]))?;
    let mut text = String::from(
        "Simulation speed: 512 B writes per second of real time on one core. Criterion estimated \
         the mean and its 95 % confidence interval. The card is class10-16g.\n\n\
         | | low | mean | high | required |\n|---|---:|---:|---:|---:|\n",
    );
    for case in &CASES {
        let [low, mean, high] = rates(case.folder)?;
        let least = case.least.map_or(String::from("-"), millions);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {least} |",
            case.name,
            millions(low),
            millions(mean),
            millions(high)
        );
    }
    let memory = timed(&target().join("release/examples/card_memory"), &[])?;
    let _ = writeln!(
        text,
        "\nPeak memory of a program that creates a 16 GB card and writes to ten million random blocks, \
         timing only: {:.1} MB of {:.1} MB allowed.",
        memory.peak_bytes as f64 / 1e6,
        MEMORY_MOST_BYTES as f64 / 1e6
    );
    save("card", &text)
}

/// Returns criterion's low, mean and high estimates of the number of writes per second.
fn rates(folder: &str) -> Result<[f64; 3], String> {
    let path = target()
        .join("criterion")
        .join(folder)
        .join("new/estimates.json");
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    let figures: Value =
        serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
    let mean = &figures["mean"];
    let interval = &mean["confidence_interval"];
    let rate = |ns: &Value| {
        let ns = ns.as_f64().ok_or_else(|| format!("{shown}: no mean"))?;
        Ok::<f64, String>(WRITES / ns * 1e9)
    };
    Ok([
        rate(&interval["upper_bound"])?,
        rate(&mean["point_estimate"])?,
        rate(&interval["lower_bound"])?,
    ])
}

fn millions(rate: f64) -> String {
    format!("{:.2} M", rate / 1e6)
}
