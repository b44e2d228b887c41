//! Folders: lists, and downloads of all files.

use super::client::{Client, Entry, Found};
use super::download::{Download, Outcome};
use super::url::{Url, is_safe};
use crate::failure::{Failure, print, print_error};
use cardiograph_report::units;
use chrono::{DateTime, Local};
use std::fmt::Write;
use std::path::Path;

/// Maximum depth of folders.
const DEPTH_MAX: u32 = 16;

/// Returns the entries of a folder as text, sorted by name.
pub fn list(entries: &[Entry]) -> String {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::new();
    for entry in sorted {
        let size = match (entry.is_folder(), entry.size) {
            (false, Some(size)) => units::bytes(size as f64),
            _ => String::new(),
        };
        let time = entry.time.and_then(local).unwrap_or_default();
        let end = match (entry.is_folder(), entry.growing) {
            (true, _) => "/",
            (false, true) => "  (recording)",
            (false, false) => "",
        };
        let name = printable(&entry.name);
        let _ = writeln!(text, "{size:>10}  {time:16}  {name}{end}");
    }
    text
}

/// Returns the sessions or days as text.
pub fn group_list(client: &Client, kind: &str) -> Result<String, Failure> {
    let mut text = String::new();
    for group in client.groups(kind)? {
        let size = units::bytes(group.size as f64);
        let files = match group.recordings {
            1 => "1 file".to_string(),
            files => format!("{files} files"),
        };
        let name = match (kind, group.session.as_str()) {
            ("days", _) => files,
            (_, "") => group.first,
            (_, session) => format!("{session}, {files}"),
        };
        let name = printable(&name);
        let lost = match group.lost {
            0 => String::new(),
            lost => format!(", {lost} lost"),
        };
        let end = if group.growing { "  (recording)" } else { "" };
        let (day, samples) = (printable(&group.day), group.samples);
        let _ = writeln!(
            text,
            "{size:>10}  {day}  {name}, {samples} samples{lost}{end}"
        );
    }
    Ok(text)
}

/// Downloads all files of a folder and its subfolders. Files that are already there with the same length are
/// skipped.
pub fn fetch_all(
    client: &Client,
    url: &Url,
    output: &Path,
    entries: Vec<Entry>,
) -> Result<(), Failure> {
    let mut failed = 0;
    let mut fetched = 0;
    fetch_folder(
        client,
        url,
        output,
        entries,
        DEPTH_MAX,
        &mut |path, done| {
            match done {
                Ok(outcome) => {
                    fetched += 1;
                    print(&super::summary(path, &outcome))
                }
                // One file that cannot be downloaded must not keep the others from it.
                Err(Failure::Message(message)) => {
                    failed += 1;
                    print_error(&format!("error: {message}\n"));
                    Ok(())
                }
                Err(failure) => Err(failure),
            }
        },
    )?;
    match failed {
        0 => Ok(()),
        failed => Err(Failure::new(format!(
            "{url}: {failed} of {} files were not downloaded; repeat the command to continue",
            failed + fetched
        ))),
    }
}

/// Receives the path and the result of each download.
type Report<'r> = dyn FnMut(&Path, Result<Outcome, Failure>) -> Result<(), Failure> + 'r;

fn fetch_folder(
    client: &Client,
    url: &Url,
    output: &Path,
    entries: Vec<Entry>,
    depth: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    std::fs::create_dir_all(output)
        .map_err(|error| Failure::new(format!("{}: {error}", output.display())))?;
    for entry in entries {
        let path = output.join(&entry.name);
        let url = url.entry(&entry.name);
        if !is_safe(&entry.name) {
            let failure = Failure::new(format!("{url}: not a name of a file; ignored"));
            report(&path, Err(failure))?;
        } else if !entry.is_folder() {
            let download = Download {
                client,
                url: &url,
                follows: false,
            };
            report(&path, download.to_file(&path))?;
        } else if depth > 0
            && let Found::Folder(entries) = client.folder(url.path())?
        {
            fetch_folder(client, &url, &path, entries, depth - 1, report)?;
        }
    }
    Ok(())
}

/// Replaces characters that could control the terminal.
fn printable(text: &str) -> String {
    let shown = |character: char| {
        if character.is_control() {
            '?'
        } else {
            character
        }
    };
    text.chars().map(shown).collect()
}

fn local(unix_s: i64) -> Option<String> {
    let time = DateTime::from_timestamp(unix_s, 0)?.with_timezone(&Local);
    Some(time.format("%Y-%m-%d %H:%M").to_string())
}
