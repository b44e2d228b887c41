//! Analysis of a long trace in the playground, in headless Chromium, compared with the command.

use super::analyze::generate;
use super::report::{Series, save, table, timed};
use super::{ROUNDS, cardiograph, scratch};
use crate::run::{output_of, root, target};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ROWS: u64 = 1_000_000;

pub fn run() -> Result<(), String> {
    let (folder, compressed) = crate::playground::build()?;
    let tools = crate::page::tools()?;
    let files = scratch(target().join("benchmark"))?;
    let csv = files.join("trace.csv");
    generate(&csv, ROWS).map_err(|error| format!("{}: {error}", csv.display()))?;
    let parquet = files.join("trace.parquet");
    let shown = |path: &Path| path.display().to_string();
    timed(
        &cardiograph(),
        &["analyze", &shown(&csv), "--trace", &shown(&parquet)],
    )?;
    let mut text = format!(
        "{ROWS} rows of `index,start_us,end_us`, generated from a fixed seed; {ROUNDS} rounds, alternating. The command \
         writes its JSON and its HTML report; the playground computes the same texts in a worker in headless Chromium, \
         from the choice of the file until the report is handed to its frame, with reading the file and instantiating \
         the module. After it was opened, the page warms up by analysing small tables; `at once` means that the file is \
         chosen before that, which ends the warm-up. The playground's files have {compressed} B compressed with `gzip -9`, one by one.\n"
    );
    for file in [&csv, &parquet] {
        let kind = file
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = |program: &str| format!("{program}, {kind}");
        let names = ["command", "playground", "playground at once"];
        let mut series = names.map(|program| Series::new(&name(program)));
        for round in 0..=ROUNDS {
            let (json, html) = (
                shown(&files.join("out.json")),
                shown(&files.join("out.html")),
            );
            let args = [
                "analyze",
                &shown(file),
                "--json",
                &json,
                "--html",
                &html,
                "--force",
            ];
            let command_s = timed(&cardiograph(), &args)?.wall_s;
            let taken = [
                command_s,
                page_s(&tools, &folder, file, None)?,
                page_s(&tools, &folder, file, Some("at-once"))?,
            ];
            if round > 0 {
                for (series, taken) in series.iter_mut().zip(taken) {
                    series.values.push(taken);
                }
            }
        }
        let [command, page, at_once] = &series;
        text += &format!(
            "\n{}\n{}",
            table("wall time in s", &[command, page, at_once]),
            table(
                "ratio, round by round",
                &[&page.over(command), &at_once.over(command)]
            )
        );
    }
    let _ = std::fs::remove_dir_all(&files);
    save("playground", &text)
}

/// Analyses a file in the playground, in a browser of its own; returns the time in s.
fn page_s(tools: &Path, folder: &Path, file: &Path, when: Option<&str>) -> Result<f64, String> {
    let mut node = Command::new("node");
    node.arg(root().join("web/tests/million.mjs"));
    let printed = output_of(node.args([tools, folder, file]).args(when))?;
    let printed: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
    let ms = printed["ms"].as_f64();
    Ok(ms.ok_or("million.mjs printed no time")? / 1e3)
}
