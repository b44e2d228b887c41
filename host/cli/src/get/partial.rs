//! A download in progress on this computer.
//!
//! `FILE.part` contains the bytes received, `FILE.part.tag` the address and the entity tag that they had. Both
//! together let another run continue.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The partial file of a download.
pub struct Partial {
    output: PathBuf,
    part: PathBuf,
    tag_file: PathBuf,
    file: File,
    /// Bytes received.
    pub bytes: u64,
    /// Entity tag that they had.
    pub tag: Option<String>,
}

impl Partial {
    /// Opens or creates the partial file. Bytes of an earlier download from another address are discarded.
    pub fn open(output: &Path, url: &str) -> Result<Partial, Failure> {
        let part = with_suffix(output, ".part");
        let tag_file = with_suffix(output, ".part.tag");
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
            bytes: 0,
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

    /// Notes the entity tag of the bytes that follow.
    pub fn set_tag(&mut self, url: &str, tag: Option<&str>) -> Result<(), Failure> {
        if self.tag.as_deref() == tag {
            return Ok(());
        }
        self.tag = tag.map(str::to_string);
        let written = match tag {
            Some(tag) => fs::write(&self.tag_file, format!("{url}\n{tag}\n")),
            None => remove(&self.tag_file),
        };
        written.map_err(|error| failure(&self.tag_file, &error))
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| failure(&self.part, &error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Removes the partial file if nothing has been received.
    pub fn leave(self) {
        if self.bytes == 0 {
            // The file is harmless if this fails.
            let _ = remove(&self.part);
            let _ = remove(&self.tag_file);
        }
    }

    /// Makes the file durable and gives it its name.
    pub fn finish(self) -> Result<(), Failure> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.part, &self.output))
            .and_then(|()| remove(&self.tag_file))
            .map_err(|error| failure(&self.output, &error))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
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
