//! `plan`: buffer size and risk of a data logger.

use super::Progress;
use super::file::{Options, Refusal};
use super::record::set_up;
use super::value::{of, optional, or};
use cardiograph_plan::{Logger, Ranking, plan_file, plan_simulated, text};
use cardiograph_report::{json, values};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Default length of a recording.
const RUN: Duration = Duration::from_secs(24 * 60 * 60);
/// Default buffer size.
const BUFFER_BYTES: u64 = 64 << 10;

/// A request. The file is a trace; without one, `target` is a simulated card on a board.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct Request {
    #[serde(flatten)]
    options: Options,
    target: String,
    rate: String,
    sample_bytes: String,
    #[serde(rename = "for")]
    run: String,
    buffer: String,
}

/// A plan.
#[derive(Serialize)]
pub struct Response {
    /// Output of `--json`.
    json: String,
    /// Output on the terminal.
    text: String,
}

impl Request {
    /// Plans for a file or for a simulated card.
    pub fn run(&self, file: &[u8], progress: Progress) -> Result<Response, String> {
        let logger = self.logger()?;
        let planned = match self.target.is_empty() {
            true => {
                let loaded = self.options.read(file, progress);
                let loaded = loaded.map_err(Refusal::without_options)?;
                plan_file(&self.options.name, &loaded, &logger)?
            }
            false => {
                let (profile, board) = set_up(&self.target)?;
                let plan = plan_simulated(&self.target, (&profile, &board), &logger);
                let plan = plan.map_err(|error| format!("{}: {error}", self.target))?;
                (plan, true)
            }
        };
        let ranking = Ranking::of(vec![planned], logger.buffer_bytes);
        let text = ranking.cards.first();
        let text = text.map(|card| text::text(&card.plan, logger.buffer_bytes));
        Ok(Response {
            json: json("plan", &ranking.cards).map_err(|error| error.to_string())?,
            text: text.unwrap_or_default(),
        })
    }

    fn logger(&self) -> Result<Logger, String> {
        let rate_hz = of("--rate", values::sample_rate_hz(self.rate.trim()))?;
        let parse = values::whole::<u64>(1..=1 << 20);
        let sample_bytes = of("--sample-bytes", parse(self.sample_bytes.trim()))?;
        let run = of("--for", optional(&self.run, values::run_time))?.unwrap_or(RUN);
        Ok(Logger {
            sample_rate_hz: rate_hz,
            sample_bytes,
            run_s: run.as_secs_f64(),
            buffer_bytes: of(
                "--buffer",
                or(&self.buffer, BUFFER_BYTES, values::buffer_bytes),
            )?,
        })
    }
}
