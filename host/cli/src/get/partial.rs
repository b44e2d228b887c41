//! A download in progress on this computer.
//!
//! `FILE.part` contains the bytes received, `FILE.part.tag` their address, entity tag and number. Together, they let
//! another run continue. In these names, a long `FILE` is shortened. Small files need no tag file, because starting over
//! costs little.

use super::names::NAME_BYTES_MAX;
use crate::failure::Failure;
use cardiograph_system::{identity, rename_without_replacing, space, sync_file_system};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Number of bytes after which the tag file is first written, in case this run is killed. Shorter downloads then start
/// over.
const UNTAGGED_BYTES_MAX: u64 = 64 << 10;
/// Number of bytes after which the file becomes durable and the tag file is written again.
const SAVED_EVERY_BYTES: u64 = 16 << 20;
/// Maximum length of a tag file.
const TAG_FILE_BYTES_MAX: u64 = 64 << 10;
/// Number of bytes from the start of a long name that its temporary name keeps.
const START_BYTES: usize = 100;
/// Number of bytes that are compared at once.
const COMPARED_BYTES: usize = 64 << 10;

/// The partial file of a download.
pub struct Partial {
    output: PathBuf,
    part: PathBuf,
    tag_file: PathBuf,
    file: File,
    /// Address that the bytes come from.
    url: String,
    /// Treatment of a file with the final name.
    at_end: AtEnd,
    /// Bytes received.
    pub bytes: u64,
    /// Entity tag of these bytes.
    pub tag: Option<String>,
    /// Entity tag and number of bytes in the tag file.
    saved: Option<(String, u64)>,
    /// Time of the last change on the server.
    pub modified: Option<SystemTime>,
}

/// Treatment of a file with the final name when the download is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// No such file existed; one that has appeared in the meantime is kept.
    Create,
    /// The download replaces it.
    Replace,
}

impl Partial {
    /// Opens or creates the partial file. Keeps the bytes of an earlier download only if it came from the same address
    /// and its entity tag is known.
    pub fn open(output: &Path, url: &str, at_end: AtEnd) -> Result<Partial, Failure> {
        let part = temporary(output);
        let tag_file = with_suffix(&part, ".tag");
        for path in [&part, &tag_file] {
            check_ordinary(path)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let opened = options.open(&part);
        let file = opened.map_err(|error| failure(&part, &error))?;
        if file.try_lock().is_err() {
            return Err(Failure::new(format!(
                "{}: another download writes to this file; wait until it ends",
                part.display()
            )));
        }
        let saved = read_tag_file(&tag_file, url);
        let mut partial = Partial {
            output: output.to_path_buf(),
            part,
            tag_file,
            file,
            url: url.to_string(),
            at_end,
            bytes: 0,
            tag: None,
            saved,
            modified: None,
        };
        partial.resume()?;
        Ok(partial)
    }

    /// Returns numbers that no other file on this computer has.
    pub fn identity(&self) -> Result<(u64, u64), Failure> {
        let metadata = self.file.metadata();
        metadata
            .map(|metadata| identity(&metadata))
            .map_err(|error| failure(&self.part, &error))
    }

    /// Keeps the bytes that the tag file describes. Later bytes may be missing or wrong after a power loss.
    fn resume(&mut self) -> Result<(), Failure> {
        let end = self.file.seek(SeekFrom::End(0));
        let end = end.map_err(|error| failure(&self.part, &error))?;
        match self.saved.clone() {
            Some((tag, bytes)) if bytes <= end => {
                let kept = self.file.set_len(bytes);
                kept.and_then(|()| self.file.seek(SeekFrom::Start(bytes)))
                    .map_err(|error| failure(&self.part, &error))?;
                (self.bytes, self.tag) = (bytes, Some(tag));
                Ok(())
            }
            _ => self.restart(),
        }
    }

    /// Discards the bytes received.
    pub fn restart(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        self.tag = None;
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| failure(&self.part, &error))
    }

    /// Stores the entity tag of the bytes that follow.
    pub fn set_tag(&mut self, tag: Option<&str>) -> Result<(), Failure> {
        self.tag = tag.map(str::to_string);
        // The tag file must never describe bytes other than those received.
        if let Some((saved, bytes)) = &self.saved
            && (Some(saved) != self.tag.as_ref() || *bytes > self.bytes)
        {
            self.saved = None;
            remove(&self.tag_file).map_err(|error| failure(&self.tag_file, &error))?;
        }
        Ok(())
    }

    /// Fails if the file system has no room for this number of further bytes.
    pub fn check_room(&self, bytes: u64) -> Result<(), Failure> {
        let folder = self.part.parent().filter(|path| path != &Path::new(""));
        match space(folder.unwrap_or(Path::new("."))) {
            Ok(space) if space.free_bytes < bytes => {
                let text = |bytes: u64| cardiograph_report::units::bytes(bytes as f64);
                Err(Failure::new(format!(
                    "{}: the server announced {}, and {} are free; free some space or choose another location",
                    self.output.display(),
                    text(bytes),
                    text(space.free_bytes),
                )))
            }
            // If the space is not known, writing fails when it is full.
            _ => Ok(()),
        }
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| failure(&self.part, &error))?;
        self.bytes += bytes.len() as u64;
        let next_bytes = match &self.saved {
            Some((_, saved)) => saved.saturating_add(SAVED_EVERY_BYTES),
            None => UNTAGGED_BYTES_MAX,
        };
        match self.bytes < next_bytes {
            true => Ok(()),
            false => self.save_tag(),
        }
    }

    /// Returns up to the given number of bytes from the end.
    pub fn tail(&mut self, bytes_max: u64) -> Result<Vec<u8>, Failure> {
        let start = self.bytes.saturating_sub(bytes_max);
        let mut tail = Vec::new();
        // Reading to the end leaves the position where writing continues.
        self.file
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.file.read_to_end(&mut tail))
            .map_err(|error| failure(&self.part, &error))?;
        Ok(tail)
    }

    /// Makes the bytes durable and writes the tag file, so that another run can continue.
    fn save_tag(&mut self) -> Result<(), Failure> {
        let Some(tag) = self.tag.clone() else {
            return Ok(());
        };
        let synced = self.file.sync_data();
        synced.map_err(|error| failure(&self.part, &error))?;
        let written = fs::write(
            &self.tag_file,
            format!("{}\n{tag}\n{}\n", self.url, self.bytes),
        );
        written.map_err(|error| failure(&self.tag_file, &error))?;
        self.saved = Some((tag, self.bytes));
        Ok(())
    }

    /// Keeps the bytes received, so that another run can continue. Without an entity tag, it could not.
    pub fn leave(mut self) {
        // If this fails, the other run starts over.
        if self.bytes > 0 && self.tag.is_some() {
            let _ = self.save_tag();
        } else {
            self.discard();
        }
    }

    /// Returns true if the bytes received begin with the contents of the output, which exists.
    pub fn continues_output(&self) -> Result<bool, Failure> {
        let open = |path: &Path| File::open(path).map_err(|error| failure(path, &error));
        let (mut old, mut new) = (open(&self.output)?, open(&self.part)?);
        let (mut of_old, mut of_new) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
        loop {
            let read = old.read(&mut of_old);
            let bytes = read.map_err(|error| failure(&self.output, &error))?;
            if bytes == 0 {
                return Ok(true);
            }
            let is_there = new.read_exact(&mut of_new[..bytes]).is_ok();
            if !is_there || of_old[..bytes] != of_new[..bytes] {
                return Ok(false);
            }
        }
    }

    /// Removes the bytes received.
    pub fn discard(self) {
        let _ = remove(&self.part);
        let _ = remove(&self.tag_file);
    }

    /// Makes the file durable and gives it its final name.
    pub fn finish(self) -> Result<(), Failure> {
        let synced = self.file.sync_all();
        synced.map_err(|error| failure(&self.part, &error))?;
        self.publish()
    }

    /// Gives a durable file the time of the server and its final name.
    fn publish(self) -> Result<(), Failure> {
        if let Some(modified) = self.modified {
            // A file system that cannot represent the time keeps its own.
            let _ = self.file.set_modified(modified);
        }
        let renamed = match self.at_end {
            AtEnd::Create => rename_without_replacing(&self.part, &self.output),
            AtEnd::Replace => {
                check_ordinary(&self.output)?;
                fs::rename(&self.part, &self.output)
            }
        };
        renamed.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::new(format!(
                "{}: appeared during the download, which is in {}; rename one of them",
                self.output.display(),
                self.part.display()
            )),
            _ => failure(&self.output, &error),
        })?;
        match self.saved {
            Some(_) => remove(&self.tag_file).map_err(|error| failure(&self.tag_file, &error)),
            None => Ok(()),
        }
    }
}

/// Returns numbers that no other file has for the output and for its partial file, if they exist.
pub fn identities(output: &Path) -> Vec<(u64, u64)> {
    let found = [output, &temporary(output)].map(|path| path.symlink_metadata().ok());
    let found = found.iter().flatten();
    found.map(identity).collect()
}

/// Refuses links, devices and folders in place of a file: a download must not write through them.
pub fn check_ordinary(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => Err(Failure::new(format!(
            "{}: exists and is not an ordinary file; remove it, or name another output with -o",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Returns entity tag and number of bytes in a tag file that belongs to this address.
fn read_tag_file(path: &Path, url: &str) -> Option<(String, u64)> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(TAG_FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    // The last line break shows that the number is complete.
    let mut lines = text.strip_suffix('\n')?.split('\n');
    let (from, tag, bytes) = (lines.next()?, lines.next()?, lines.next()?);
    let is_valid = from == url && !tag.is_empty() && lines.next().is_none();
    is_valid.then_some((tag.to_string(), bytes.parse().ok()?))
}

/// Makes files durable together, which is much faster than one by one, and gives them their final names.
pub fn finish_all(files: Vec<Partial>) -> Vec<Result<(), Failure>> {
    // Sync one file of each file system: syncfs covers the others.
    let mut synced: HashMap<u64, io::Result<()>> = HashMap::new();
    let finished = files.into_iter().map(|file| {
        let (device, _) = file.identity()?;
        let result = synced
            .entry(device)
            .or_insert_with(|| sync_file_system(&file.file));
        if let Err(error) = result {
            return Err(failure(&file.part, error));
        }
        file.publish()
    });
    finished.collect()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns the path of the partial file. The same output always has the same one, so that a download continues.
fn temporary(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    if name.len() + ".part.tag".len() <= NAME_BYTES_MAX {
        return with_suffix(output, ".part");
    }
    // The hash distinguishes long names with the same beginning (FNV-1a).
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    });
    let start = &name[..name.floor_char_boundary(START_BYTES)];
    output.with_file_name(format!("{start}~{hash:016x}.part"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!(
        "{}: {error}; use a writable directory with enough room",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_continues_under_any_name() {
        let own = tempfile::tempdir().unwrap();
        let long = "\u{e9}".repeat(126);
        for name in [
            "a",
            &"x".repeat(246),
            &"x".repeat(247),
            &"x".repeat(255),
            &long,
        ] {
            let output = own.path().join(name);
            let open = || {
                Partial::open(&output, "http://h/a", AtEnd::Create)
                    .ok()
                    .unwrap()
            };
            let mut first = open();
            first.set_tag(Some("\"1\"")).ok().unwrap();
            first.append(b"123").ok().unwrap();
            // A different file with a name of the same length has its own partial file.
            let other = own.path().join(name.replacen(['a', 'x', '\u{e9}'], "_", 1));
            assert_eq!(
                Partial::open(&other, "http://h/a", AtEnd::Create)
                    .ok()
                    .unwrap()
                    .bytes,
                0
            );
            first.leave();
            let again = open();
            assert_eq!((again.bytes, again.tag.as_deref()), (3, Some("\"1\"")));
            again.finish().ok().unwrap();
            assert_eq!(fs::read(&output).unwrap(), b"123");
        }
    }
    #[test]
    fn only_bytes_that_the_tag_file_describes_are_kept() {
        let own = tempfile::tempdir().unwrap();
        let output = own.path().join("a");
        let (part, tag) = (own.path().join("a.part"), own.path().join("a.part.tag"));
        for (text, kept) in [
            ("http://h/a\n\"1\"\n3\n", 3),
            ("http://h/a\n\"1\"\n5\n", 5),
            // The file is shorter than it was, or the tag file is damaged, old or of another address.
            ("http://h/a\n\"1\"\n6\n", 0),
            ("http://h/a\n\"1\"\n3", 0),
            ("http://h/a\n\"1\"\n", 0),
            ("http://h/a\n\"1\"\n-3\n", 0),
            ("http://h/a\n\n3\n", 0),
            ("http://h/a\n\"1\"\n3\n3\n", 0),
            ("http://h/b\n\"1\"\n3\n", 0),
            ("", 0),
        ] {
            fs::write(&part, "12345").unwrap();
            fs::write(&tag, text).unwrap();
            let mut partial = Partial::open(&output, "http://h/a", AtEnd::Create)
                .ok()
                .unwrap();
            assert_eq!(partial.bytes, kept, "{text}");
            assert_eq!(
                partial.tail(2).ok().unwrap(),
                b"12345"[kept.saturating_sub(2) as usize..kept as usize]
            );
            partial.append(b"x").ok().unwrap();
            drop(partial);
            assert_eq!(
                fs::read(&part).unwrap(),
                [&b"12345"[..kept as usize], b"x"].concat()
            );
        }
    }

    #[test]
    fn a_file_that_appeared_is_kept() {
        let own = tempfile::tempdir().unwrap();
        let output = own.path().join("a");
        let open = |at_end| {
            let mut partial = Partial::open(&output, "http://h/a", at_end).ok().unwrap();
            partial.append(b"new").ok().unwrap();
            partial
        };
        let partial = open(AtEnd::Create);
        fs::write(&output, "mine").unwrap();
        assert!(partial.finish().is_err());
        assert_eq!(fs::read(&output).unwrap(), b"mine");
        open(AtEnd::Replace).finish().ok().unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"new");
    }
}
