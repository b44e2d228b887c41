//! A download in progress on this computer.
//!
//! `FILE.part` contains the bytes received, `FILE.part.tag` their address and entity tag. Together, they let another
//! run continue. In these names, a long `FILE` is shortened. Small files need no tag file, because starting over costs
//! little.

use crate::failure::Failure;
use cardiograph_system::{identity, sync_file_system};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Longest name of a file on the usual file systems, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Number of bytes after which the tag file is written, in case this run is killed. Shorter downloads then start over.
const UNTAGGED_BYTES_MAX: u64 = 64 << 10;
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
    /// Bytes received.
    pub bytes: u64,
    /// Entity tag of these bytes.
    pub tag: Option<String>,
    /// Entity tag in the tag file.
    saved_tag: Option<String>,
}

impl Partial {
    /// Opens or creates the partial file. Keeps the bytes of an earlier download only if it came from the same address
    /// and its entity tag is known.
    pub fn open(output: &Path, url: &str) -> Result<Partial, Failure> {
        let part = temporary(output);
        let tag_file = with_suffix(&part, ".tag");
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).open(&part);
        let file = opened.map_err(|error| failure(&part, &error))?;
        if file.try_lock().is_err() {
            return Err(Failure::new(format!(
                "{}: another download writes to this file; wait until it ends",
                part.display()
            )));
        }
        let tag = fs::read_to_string(&tag_file).ok().and_then(|text| {
            let (from, tag) = text.trim_end().split_once('\n')?;
            (from == url).then(|| tag.to_string())
        });
        let mut partial = Partial {
            output: output.to_path_buf(),
            part,
            tag_file,
            file,
            url: url.to_string(),
            bytes: 0,
            saved_tag: tag.clone(),
            tag,
        };
        match partial.tag {
            Some(_) => {
                let end = partial.file.seek(SeekFrom::End(0));
                partial.bytes = end.map_err(|error| failure(&partial.part, &error))?;
            }
            None => partial.restart()?,
        }
        Ok(partial)
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
        if self.saved_tag.is_some() && self.saved_tag != self.tag {
            self.saved_tag = None;
            remove(&self.tag_file).map_err(|error| failure(&self.tag_file, &error))?;
        }
        Ok(())
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| failure(&self.part, &error))?;
        self.bytes += bytes.len() as u64;
        match self.bytes < UNTAGGED_BYTES_MAX {
            true => Ok(()),
            false => self.save_tag(),
        }
    }

    /// Writes the tag file, so that another run can continue.
    fn save_tag(&mut self) -> Result<(), Failure> {
        if let Some(tag) = self.tag.as_ref().filter(|_| self.saved_tag != self.tag) {
            let written = fs::write(&self.tag_file, format!("{}\n{tag}\n", self.url));
            written.map_err(|error| failure(&self.tag_file, &error))?;
            self.saved_tag = self.tag.clone();
        }
        Ok(())
    }

    /// Keeps the bytes received, so that another run can continue.
    pub fn leave(mut self) {
        // If this fails, the other run starts over.
        if self.bytes > 0 {
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

    /// Gives a durable file its final name.
    fn publish(self) -> Result<(), Failure> {
        fs::rename(&self.part, &self.output)
            .and_then(|()| match self.saved_tag {
                Some(_) => remove(&self.tag_file),
                None => Ok(()),
            })
            .map_err(|error| failure(&self.output, &error))
    }
}

/// Makes files durable together, which is much faster than one by one, and gives them their final names.
pub fn finish_all(files: Vec<Partial>) -> Vec<Result<(), Failure>> {
    // Sync one file of each file system: syncfs covers the others.
    let mut synced: HashMap<u64, io::Result<()>> = HashMap::new();
    let finished = files.into_iter().map(|file| {
        let device = file.file.metadata().map(|metadata| identity(&metadata).0);
        let device = device.map_err(|error| failure(&file.part, &error))?;
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
            let open = || Partial::open(&output, "http://h/a").ok().unwrap();
            let mut first = open();
            first.set_tag(Some("\"1\"")).ok().unwrap();
            first.append(b"123").ok().unwrap();
            // A different file with a name of the same length has its own partial file.
            let other = own.path().join(name.replacen(['a', 'x', '\u{e9}'], "_", 1));
            assert_eq!(Partial::open(&other, "http://h/a").ok().unwrap().bytes, 0);
            first.leave();
            let again = open();
            assert_eq!((again.bytes, again.tag.as_deref()), (3, Some("\"1\"")));
            again.finish().ok().unwrap();
            assert_eq!(fs::read(&output).unwrap(), b"123");
        }
    }
}
