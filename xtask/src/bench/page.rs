//! Script time of the page's live view with the latencies of an hour, in headless Chromium.

use super::cardiograph;
use super::report::{save, timed};
use crate::run::root;
use serde_json::Value;
use std::path::Path;

/// Number of latencies; the page keeps no more.
const WRITES: &str = "1048576";

pub fn run() -> Result<(), String> {
    let folder = crate::page::tools()?;
    let script = root().join("web/tests/hour.mjs").display().to_string();
    let program = cardiograph().display().to_string();
    let folder = folder.display().to_string();
    let json = timed(Path::new("node"), &[&script, &folder, &program, WRITES])?.stdout;
    let figures: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    let row = |what: &str, state: &str, clock: &str| {
        let it = &figures[state][clock];
        let ms = |name: &str| it[name].as_f64().unwrap_or(f64::NAN);
        format!(
            "| {what} | {clock} | {} | {:.1} | {:.1} | {:.1} |\n",
            it["frames"],
            ms("median_ms"),
            ms("p99_ms"),
            ms("worst_ms")
        )
    };
    let rows: String = [
        ("while they arrive at once", "arriving"),
        ("afterwards", "steady"),
    ]
    .iter()
    .flat_map(|(what, state)| ["processor", "wall"].map(|clock| row(what, state, clock)))
    .collect();
    let usable_ms = &figures["usable_ms"];
    save(
        "page",
        &format!(
            "Live view of an hour with {WRITES} write latencies, 1280 by 900 pixels: script time per frame, drawing and \
             garbage collection included, from Chromium's trace. Wall time contains the time of other programs.\n\n\
             | | time | frames | median, ms | 99 %, ms | worst, ms |\n|---|---|---:|---:|---:|---:|\n{rows}\n\
             The list of files can be used {:.0} ms after the request (median of 7, worst {:.0} ms) at 1 MB/s, the \
             rate of a board's network.\n",
            usable_ms["median"].as_f64().unwrap_or(f64::NAN),
            usable_ms["worst"].as_f64().unwrap_or(f64::NAN)
        ),
    )
}
