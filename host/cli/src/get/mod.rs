//! `cardiograph get`: lists and downloads files of a server.
//!
//! ```text
//!   URL ──┬── folder ────────── list, or with -o: every file in it
//!         ├── file ──────────── FILE.part ── continued after interruptions ── renamed to FILE
//!         └── session or day ── list, or one tar file
//! ```

mod answer;
pub mod client;
mod download;
mod error;
mod folder;
mod names;
mod partial;
mod reading;
pub mod url;

use crate::failure::{Failure, print};
use crate::interrupt::Interrupt;
use crate::outputs::is_standard_output;
use crate::shared::{self, Shared};
use cardiograph_report::values::duration;
use client::{Client, Found};
use download::{Download, Outcome};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// List and download files from a Cardiograph server.
#[derive(clap::Args)]
#[command(after_help = "\
A download goes to a file whose name ends with .part until it is complete. After an interruption, the same command continues it, even if the file has grown in the meantime. If the connection is lost, the download resumes automatically. An existing file is skipped if it is complete, and replaced only if the server's file begins with its contents, as after another download during the recording. Files get the time of the server's files.

Servers are not trusted: redirects and symbolic links are not followed, and names that begin with a dot, lead to another folder or contain control characters are refused.

Examples:
  cardiograph get 192.168.4.1                                    list the files of a logger
  cardiograph get 192.168.4.1/REC00000/REC00001.CSV              download a file
  cardiograph get 192.168.4.1/REC00000 -o recordings             download all files of a folder
  cardiograph get 192.168.4.1/REC00000/REC00002.CSV --follow -o -  print samples as they are recorded
  cardiograph get 192.168.4.1 --session run-3                    all files of a session, as one tar file
  cardiograph get 192.168.4.1 --day 2026-11-22                   all files of a day
  cardiograph get 192.168.4.1 --session                          list the sessions")]
pub struct Get {
    /// Address of a server, with the path of a file or folder
    #[arg(value_name = "URL")]
    pub url: String,

    /// File or directory to write; - is standard output [default: the file's own name]
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,

    /// Continue until the recorder finishes the file
    #[arg(long, conflicts_with_all = ["session", "day"])]
    pub follow: bool,

    /// Download all files of a session; without NAME, list the sessions
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with = "day")]
    pub session: Option<String>,

    /// Download all files of a day; without DATE, list the days
    #[arg(long, value_name = "DATE", num_args = 0..=1, default_missing_value = "")]
    pub day: Option<String>,

    /// User name and password for the server [default: none]
    #[arg(long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,

    /// Longest wait for an answer or for its next bytes
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub timeout: Duration,

    #[command(flatten)]
    pub shared: Shared,
}

/// Lists or downloads.
pub fn run(args: &Get) -> Result<(), Failure> {
    args.shared.apply([""; 0]);
    let url = Url::parse(&args.url).map_err(Failure::new)?;
    let interrupt = Interrupt::catch()?;
    let auth = args.auth.as_deref();
    let client = Client::new(url.origin(), auth, args.timeout, &interrupt);
    for (wanted, kind) in [(&args.session, "sessions"), (&args.day, "days")] {
        match wanted.as_deref() {
            Some("") => return print(&folder::group_list(&client, kind)?),
            Some(name) => {
                if args.output.is_none()
                    && let Err(reason) = names::check(name)
                {
                    return Err(Failure::new(format!(
                        "{name}: this name {reason}; name the output with -o"
                    )));
                }
                let url = url.at(&format!("/{kind}/{}", url::encoded(name)));
                return fetch(args, &client, &url, &format!("{name}.tar"));
            }
            None => (),
        }
    }
    match client.folder(url.path())? {
        Found::Folder(entries) => match &args.output {
            Some(output) if !is_standard_output(output) => {
                folder::fetch_all(&client, &url, output, entries)
            }
            _ if args.follow => Err(Failure::new(format!(
                "{url}: a folder; --follow needs the path of a file"
            ))),
            _ => print(&folder::list(&entries)),
        },
        Found::File => fetch(args, &client, &url, &url.file_name().map_err(Failure::new)?),
    }
}

/// Downloads one file; `name` is its name on this computer unless the arguments say otherwise.
fn fetch(args: &Get, client: &Client, url: &Url, name: &str) -> Result<(), Failure> {
    let output = match &args.output {
        Some(output) if output.is_dir() => output.join(name),
        Some(output) => output.clone(),
        None => PathBuf::from(name),
    };
    let download = Download {
        client,
        url,
        follows: args.follow,
    };
    if is_standard_output(&output) {
        return download.to_standard_output();
    }
    let outcome = download.to_file(&output)?;
    if shared::is_quiet() {
        return Ok(());
    }
    print(&summary(&output, &outcome))
}

fn summary(output: &Path, outcome: &Outcome) -> String {
    let mut text = String::new();
    let bytes = |bytes: u64| cardiograph_report::units::bytes(bytes as f64);
    let _ = match outcome {
        Outcome::Complete => writeln!(text, "{}: already complete", output.display()),
        Outcome::Fetched { total, continued } => {
            let _ = write!(text, "{}: {}", output.display(), bytes(*total));
            match continued {
                0 => writeln!(text),
                continued => writeln!(text, ", of which {} were there before", bytes(*continued)),
            }
        }
    };
    text
}
