//! `analyze`: figures and report of a trace or recording.

use super::Progress;
use super::file::{Options, Refusal};
use super::value::{of, optional};
use cardiograph_report::{figures_of, json, page, table, values::duration};
use cardiograph_trace::quoted;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// A request.
#[derive(Deserialize)]
pub struct Request {
    #[serde(flatten)]
    options: Options,
    #[serde(default)]
    stall_threshold: String,
}

/// Results of a file.
#[derive(Serialize)]
pub struct Response {
    /// Output of `--json`.
    json: String,
    /// Output on the terminal.
    text: String,
    /// Output of `--html`.
    html: String,
    /// The command that gives the same results.
    shell: String,
}

impl Request {
    /// Reads the file and computes its figures.
    pub fn run(&self, file: &[u8], progress: Progress) -> Result<Response, String> {
        let threshold = of(
            "--stall-threshold",
            optional(&self.stall_threshold, duration),
        )?;
        let threshold_ns = threshold.map(|time| time.as_nanos() as u64);
        let loaded = self.options.read(file, progress);
        let loaded = loaded.map_err(Refusal::with_options)?;
        let report = figures_of(loaded, threshold_ns);
        let reports = [report];
        let shell = self.shell();
        let shown = |error: serde_json::Error| error.to_string();
        let [report] = &reports;
        Ok(Response {
            json: json("analyze", &[report.summary_with_warnings()]).map_err(shown)?,
            text: table::text(report),
            html: page::html(&reports, None, Some(&shell)).map_err(shown)?,
            shell,
        })
    }

    /// Returns the command that gives the same results.
    fn shell(&self) -> String {
        let Options {
            name,
            block_bytes,
            time_unit,
            time_column,
            latency_column,
        } = &self.options;
        let mut shell = format!("cardiograph analyze {}", quoted(OsStr::new(name)));
        for (option, value) in [
            ("--block-bytes", block_bytes),
            ("--time-unit", time_unit),
            ("--time-column", time_column),
            ("--latency-column", latency_column),
            ("--stall-threshold", &self.stall_threshold),
        ] {
            if let Some(value) = super::value::is_given(value) {
                shell += &format!(" {option} {}", quoted(OsStr::new(value)));
            }
        }
        shell
    }
}
