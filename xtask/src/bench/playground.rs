//! Analysis of a long trace in the playground, in headless Chromium, compared with the command.

use super::analyze::generate;
use super::report::{Series, save, table, timed};
use super::{ROUNDS, cardiograph, scratch};
use crate::run::{output_of, root, target};
use serde_json::Value;
use std::process::Command;

const ROWS: u64 = 1_000_000;

pub fn run() -> Result<(), String> {
    let (folder, compressed) = crate::playground::build()?;
    let tools = crate::page::tools()?;
    let files = scratch(target().join("benchmark"))?;
    let csv = files.join("trace.csv");
    generate(&csv, ROWS).map_err(|error| format!("{}: {error}", csv.display()))?;
    let parquet = files.join("trace.parquet");
    let shown = |path: &std::path::Path| path.display().to_string();
    timed(
        &cardiograph(),
        &["analyze", &shown(&csv), "--trace", &shown(&parquet)],
    )?;
    let mut text = format!(
        "{ROWS} rows of `index,start_us,end_us`, generated from a fixed seed; {ROUNDS} rounds, alternating. The command \
         writes its JSON and its HTML report; the playground computes the same texts in a worker in headless Chromium, \
         from the choice of the file until the report is handed to its frame, with reading the file and instantiating \
         the module. The playground's files have {compressed} B compressed with `gzip -9`, one by one.\n"
    );
    for file in [&csv, &parquet] {
        let kind = file
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = |program: &str| format!("{program}, {kind}");
        let (mut command, mut page) = (
            Series::new(&name("command")),
            Series::new(&name("playground")),
        );
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
            let mut node = Command::new("node");
            node.arg(root().join("web/tests/million.mjs"));
            let printed = output_of(node.args([&tools, &folder, file]))?;
            let printed: Value =
                serde_json::from_str(&printed).map_err(|error| error.to_string())?;
            let page_s = printed["ms"]
                .as_f64()
                .ok_or("million.mjs printed no time")?
                / 1e3;
            if round > 0 {
                command.values.push(command_s);
                page.values.push(page_s);
            }
        }
        text += &format!(
            "\n{}\n{}",
            table("wall time in s", &[&command, &page]),
            table("ratio, round by round", &[&page.over(&command)])
        );
    }
    let _ = std::fs::remove_dir_all(&files);
    save("playground", &text)
}
