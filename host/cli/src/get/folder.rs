//! Folders: lists, and downloads of all files.

use super::client::{Client, Entry, Found};
use super::download::{Download, Outcome, Received};
use super::names::{self, shown};
use super::partial::{Partial, finish_all, identities};
use super::url::Url;
use crate::failure::{Failure, print, print_error};
use crate::shared;
use cardiograph_report::units;
use cardiograph_trace::Existing;
use chrono::{DateTime, Local};
use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum depth of folders.
const DEPTH_MAX: u32 = 16;
/// Maximum number of files and folders of one download, so that a server cannot fill the disk with names.
const ENTRIES_MAX: usize = 200_000;
/// Number of files and lists that may fail after the longest wait for an answer. A silent server would otherwise make the
/// command wait for each of its files.
const TIMED_OUT_MAX: u32 = 3;
/// Unix time at the end of the year 9999, after which dates have another length.
const TIME_MAX_S: i64 = 253_402_300_799;
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
        let name = shown(&entry.name);
        let _ = writeln!(text, "{size:>10}  {time:23}  {name}{end}{state}");
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
        let name = shown(&name);
        let lost = match group.lost {
            0 => String::new(),
            lost => format!(", {lost} lost"),
        };
        let end = if group.growing { "  (recording)" } else { "" };
        let (day, samples) = (shown(&group.day), group.samples);
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
    fs::create_dir_all(output)
        .map_err(|error| Failure::new(format!("{}: {error}", output.display())))?;
    let mut folder = Folder {
        client,
        received: Vec::new(),
        bytes: 0,
        entries: 0,
        seen: HashSet::new(),
        timed_out: 0,
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
    received: Vec<(PathBuf, Box<Partial>, Outcome)>,
    /// Total length of these files.
    bytes: u64,
    /// Number of entries in all lists.
    entries: usize,
    /// Files of this download, with their paths in lower case.
    seen: HashSet<(String, (u64, u64))>,
    /// Number of files and lists that failed after the longest wait.
    timed_out: u32,
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
        self.entries += entries.len();
        if self.entries > ENTRIES_MAX {
            // This code ends the download, where a mere message would let it go on with the next folder.
            return Err(Failure::with_code(
                format!(
                    "{url}: more than {ENTRIES_MAX} files and folders; download the folders one by one"
                ),
                2,
            ));
        }
        for entry in entries {
            self.client.check_interrupt()?;
            let path = output.join(&entry.name);
            let url = url.entry(&entry.name);
            if let Some(reason) = &entry.unavailable {
                self.fail(Failure::new(format!("{url}: {}", shown(reason))))?;
            } else if let Err(reason) = names::check(&entry.name) {
                self.fail(Failure::new(format!(
                    "{}: the name {reason}; rename the file, or download it alone with -o",
                    shown(&url.to_string())
                )))?;
            } else if !entry.is_folder() {
                self.fetch_file(&url, path, &entry)?;
            } else if let Err(failure) = self.fetch_folder(&url, &path, depth) {
                self.fail(failure)?;
            }
        }
        Ok(())
    }

    fn fetch_folder(&mut self, url: &Url, output: &Path, depth: u32) -> Result<(), Failure> {
        if depth == 0 {
            return Err(Failure::new(format!(
                "{url}: deeper than {DEPTH_MAX} folders; download this folder alone"
            )));
        }
        let begun = Instant::now();
        let found = self.client.folder(url.path());
        if found.is_err() {
            self.check_patience(begun)?;
        }
        let Found::Folder(entries) = found? else {
            return Err(Failure::new(format!(
                "{url}: the server does not list this folder; repeat the command"
            )));
        };
        create_folder(output)?;
        self.fetch(url, output, entries, depth - 1)
    }

    /// Refuses a name that is another name of a file of this download. The list may contain a name twice, or names that
    /// differ only in case, which are the same on some file systems.
    fn check_unseen(&self, path: &Path) -> Result<(), Failure> {
        let lower = lower(path);
        let mut identities = identities(path).into_iter();
        match identities.any(|identity| self.seen.contains(&(lower.clone(), identity))) {
            false => Ok(()),
            true => Err(Failure::new(format!(
                "{}: the list has another file with this name, perhaps in another case; download one of them alone, with -o",
                path.display()
            ))),
        }
    }

    fn fetch_file(&mut self, url: &Url, path: PathBuf, entry: &Entry) -> Result<(), Failure> {
        if let Err(failure) = self.check_unseen(&path) {
            return self.fail(failure);
        }
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
        let begun = Instant::now();
        match download.to_partial(&path) {
            Ok(Received::Complete) => self.succeed(&path, &Outcome::Complete),
            Ok(Received::Partial(partial, outcome)) => {
                self.bytes += partial.bytes;
                self.seen.insert((lower(&path), partial.identity()?));
                self.received.push((path, partial, outcome));
                match self.received.len() < BATCH_FILES && self.bytes < BATCH_BYTES {
                    true => Ok(()),
                    false => self.finish(),
                }
            }
            Err(failure) => {
                self.fail(failure)?;
                self.check_patience(begun)
            }
        }
    }

    /// Ends the download if too many requests failed after a long wait.
    fn check_patience(&mut self, begun: Instant) -> Result<(), Failure> {
        self.timed_out += u32::from(begun.elapsed() >= self.client.patience());
        match self.timed_out < TIMED_OUT_MAX {
            true => Ok(()),
            false => Err(Failure::with_code(
                "the server let too many requests wait; repeat the command to continue",
                2,
            )),
        }
    }

    /// Makes the received files durable and gives them their final names.
    fn finish(&mut self) -> Result<(), Failure> {
        let (mut files, mut done) = (Vec::new(), Vec::new());
        for (path, partial, outcome) in self.received.drain(..) {
            files.push(*partial);
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
        let found = identities(path).into_iter();
        self.seen
            .extend(found.map(|identity| (lower(path), identity)));
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

/// Creates a folder, or keeps one that exists. A link is refused, because it leads out of the output directory.
fn create_folder(path: &Path) -> Result<(), Failure> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match path.symlink_metadata() {
            Ok(found) if found.is_dir() => Ok(()),
            _ => Err(Failure::new(format!(
                "{}: exists and is not a folder; remove it, or name another output with -o",
                path.display()
            ))),
        },
        created => created.map_err(|error| Failure::new(format!("{}: {error}", path.display()))),
    }
}

fn lower(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}

/// Returns a time in the zone of this computer, with the zone's offset.
fn local(unix_s: i64) -> Option<String> {
    let unix_s = Some(unix_s).filter(|s| (0..=TIME_MAX_S).contains(s))?;
    let time = DateTime::from_timestamp(unix_s, 0)?.with_timezone(&Local);
    Some(time.format("%Y-%m-%d %H:%M %:z").to_string())
}
