//! Folders: lists, and downloads of all files.

use super::client::{Client, Entry, Found};
use super::download::{Download, Outcome, Received};
use super::partial::{Partial, finish_all};
use super::url::{Url, is_safe};
use crate::failure::{Failure, print, print_error};
use crate::shared;
use cardiograph_report::units;
use cardiograph_trace::Existing;
use chrono::{DateTime, Local};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum depth of folders.
const DEPTH_MAX: u32 = 16;
/// Number of files that become durable together; all of them are open until then.
const BATCH_FILES: usize = 256;
/// Number of bytes after which files become durable, so that a power loss destroys little.
const BATCH_BYTES: u64 = 64 << 20;

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
        let end = if entry.is_folder() { "/" } else { "" };
        let state = match (entry.growing, &entry.unavailable) {
            (true, _) => "  (recording)",
            (false, Some(_)) => "  (cannot be requested)",
            (false, None) => "",
        };
        let name = printable(&entry.name);
        let _ = writeln!(text, "{size:>10}  {time:16}  {name}{end}{state}");
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

/// Downloads all files of a folder and its subfolders. Skips files that already exist with the same length, and
/// replaces those that the server's files continue.
pub fn fetch_all(
    client: &Client,
    url: &Url,
    output: &Path,
    entries: Vec<Entry>,
) -> Result<(), Failure> {
    let mut folder = Folder {
        client,
        received: Vec::new(),
        bytes: 0,
        fetched: 0,
        failed: 0,
    };
    let fetched = folder.fetch(url, output, entries, DEPTH_MAX);
    // Finish the received files even after Ctrl-C: they are complete.
    folder.finish()?;
    fetched?;
    match folder.failed {
        0 => Ok(()),
        failed => Err(Failure::new(format!(
            "{url}: {failed} of {} files were not downloaded; repeat the command to continue",
            failed + folder.fetched
        ))),
    }
}

/// A download of all files of a folder. Small files become durable together.
struct Folder<'a> {
    client: &'a Client<'a>,
    /// Files whose bytes have been received, with their final paths.
    received: Vec<(PathBuf, Partial, Outcome)>,
    /// Total length of these files.
    bytes: u64,
    fetched: u64,
    failed: u64,
}

impl Folder<'_> {
    fn fetch(
        &mut self,
        url: &Url,
        output: &Path,
        entries: Vec<Entry>,
        depth: u32,
    ) -> Result<(), Failure> {
        std::fs::create_dir_all(output)
            .map_err(|error| Failure::new(format!("{}: {error}", output.display())))?;
        for entry in entries {
            let path = output.join(&entry.name);
            let url = url.entry(&entry.name);
            if let Some(reason) = &entry.unavailable {
                self.fail(Failure::new(format!("{url}: {}", printable(reason))))?;
            } else if !is_safe(&entry.name) {
                self.fail(Failure::new(format!(
                    "{url}: not a valid file name; ignored"
                )))?;
            } else if !entry.is_folder() {
                self.fetch_file(&url, path, &entry)?;
            } else if depth > 0
                && let Found::Folder(entries) = self.client.folder(url.path())?
            {
                self.fetch(&url, &path, entries, depth - 1)?;
            }
        }
        Ok(())
    }

    fn fetch_file(&mut self, url: &Url, path: PathBuf, entry: &Entry) -> Result<(), Failure> {
        self.client.check_interrupt()?;
        // The list states the length of a finished file, so a file that already exists needs no request.
        let is_there = path
            .symlink_metadata()
            .is_ok_and(|found| found.is_file() && Some(found.len()) == entry.size);
        if is_there && !entry.growing && shared::existing() == Existing::Keep {
            return self.succeed(&path, &Outcome::Complete);
        }
        let download = Download {
            client: self.client,
            url,
            follows: false,
        };
        match download.to_partial(&path) {
            Ok(Received::Complete) => self.succeed(&path, &Outcome::Complete),
            Ok(Received::Partial(partial, outcome)) => {
                self.bytes += partial.bytes;
                self.received.push((path, partial, outcome));
                match self.received.len() < BATCH_FILES && self.bytes < BATCH_BYTES {
                    true => Ok(()),
                    false => self.finish(),
                }
            }
            Err(failure) => self.fail(failure),
        }
    }

    /// Makes the received files durable and gives them their final names.
    fn finish(&mut self) -> Result<(), Failure> {
        let (mut files, mut done) = (Vec::new(), Vec::new());
        for (path, partial, outcome) in self.received.drain(..) {
            files.push(partial);
            done.push((path, outcome));
        }
        self.bytes = 0;
        for (finished, (path, outcome)) in finish_all(files).into_iter().zip(done) {
            match finished {
                Ok(()) => self.succeed(&path, &outcome)?,
                Err(failure) => self.fail(failure)?,
            }
        }
        Ok(())
    }

    fn succeed(&mut self, path: &Path, outcome: &Outcome) -> Result<(), Failure> {
        self.fetched += 1;
        match shared::is_quiet() {
            true => Ok(()),
            false => print(&super::summary(path, outcome)),
        }
    }

    /// Reports a file that cannot be downloaded, so that the download of the others continues.
    fn fail(&mut self, failure: Failure) -> Result<(), Failure> {
        let Failure::Message(message) = failure else {
            return Err(failure);
        };
        self.failed += 1;
        print_error(&format!("error: {message}\n"));
        Ok(())
    }
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
