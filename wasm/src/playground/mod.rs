//! Commands for a browser. Each gives the text that the command of the same name writes with `--json`.
//!
//! ```text
//!   request (JSON), file ──> analyze ──┐
//!                            record  ──┼──> response (JSON): results as text, report, course
//!                            plan    ──┘
//! ```

mod analyze;
mod file;
mod lists;
mod plan;
mod record;
mod value;

use serde::Deserialize;

/// Receives the share of the work that is done, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// A request. Values are text with units, as on the command line; empty text selects the default.
#[derive(Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
enum Request {
    Lists,
    Analyze(analyze::Request),
    Record(record::Request),
    Plan(plan::Request),
}

/// Carries out a request; `file` is the content of the file that it names, if it names one.
///
/// # Errors
/// One sentence, as the command of the same name prints it.
pub fn respond(request: &[u8], file: &[u8], progress: Progress) -> Result<String, String> {
    let request: Request = serde_json::from_slice(request)
        .map_err(|error| format!("the request: {error}; load the page again"))?;
    let response = match request {
        Request::Lists => serde_json::to_string(&lists::all()?),
        Request::Analyze(request) => serde_json::to_string(&request.run(file, progress)?),
        Request::Record(request) => serde_json::to_string(&request.run(progress)?),
        Request::Plan(request) => serde_json::to_string(&request.run(file, progress)?),
    };
    response.map_err(|error| error.to_string())
}
