//! Script time of a pan in the report of a long recording, in headless Chromium.

use super::report::{save, timed};
use super::{cardiograph, scratch};
use crate::run::target;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Number of samples in an hour at 860 Hz.
const SAMPLES: u64 = 860 * 3600;
/// Script that pans the first plot at each zoom, and appends the times to the page.
const SCRIPT: &str = include_str!("pan.js");

pub fn run() -> Result<(), String> {
    let folder = scratch(target().join("benchmark"))?;
    let (csv, html) = (folder.join("hour.csv"), folder.join("hour.html"));
    generate(&csv).map_err(|error| format!("{}: {error}", csv.display()))?;
    let (csv, page) = (csv.display().to_string(), html.display().to_string());
    timed(&cardiograph(), &["analyze", &csv, "--html", &page])?;
    let bytes = add_script(&html).map_err(|error| format!("{page}: {error}"))?;
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1280,900",
    ];
    let url = format!("file://{page}");
    let args = [&options[..], &["--dump-dom", &profile, &url]].concat();
    let markup = timed(Path::new("chromium"), &args)?.stdout;
    let text = format!(
        "Report of {SAMPLES} samples ({:.2} MB), 1280 by 900 pixels: script time of a pan by a fifth of the view, \
         drawing included, 60 pans at each zoom.\n\n{}",
        bytes as f64 / 1e6,
        table(&markup)?
    );
    let _ = fs::remove_dir_all(&folder);
    save("pan", &text)
}

/// Generates samples that are 1.16 to 1.26 ms apart, with an additional gap of 50 to 90 ms after every 2003rd.
fn generate(path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "index,time_us")?;
    let mut now_us = 0;
    for index in 0..SAMPLES {
        writeln!(out, "{index},{now_us}")?;
        let late_us = if index % 2003 == 2002 {
            50_000 + index % 997 * 40
        } else {
            0
        };
        now_us += 1_163 + index * 7919 % 101 + late_us;
    }
    out.flush()
}

/// Adds the script to the page; returns the size of the page without it.
fn add_script(path: &Path) -> std::io::Result<usize> {
    let html = fs::read_to_string(path)?;
    fs::write(
        path,
        html.replace("</body>", &format!("<script>\n{SCRIPT}</script></body>")),
    )?;
    Ok(html.len())
}

fn table(markup: &str) -> Result<String, String> {
    let json = markup
        .split_once("<pre id=\"pans\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let (json, _) = json.ok_or("Chromium did not run the script")?;
    let levels: Vec<Value> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut out = "| zoom | median, ms | worst, ms |\n|---:|---:|---:|\n".to_string();
    for level in levels {
        let ms = |name: &str| level[name].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            out,
            "| {} | {:.1} | {:.1} |",
            level["zoom"],
            ms("median_ms"),
            ms("worst_ms")
        );
    }
    Ok(out)
}
