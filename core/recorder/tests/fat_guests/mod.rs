//! Changes by guests, next to the recorder's own: results, power cuts at every block, and random
//! sequences, checked by fsck.fat, the crate fatfs and an independent checker.

use crate::fat_rig;

mod cuts;
mod names;
mod operations;
mod random;
mod records;

use cardiograph_recorder::{Blocks, DirEntry, DosTime, ENTRY_NAME_BYTES_MAX, Node, Upload};
use fat_rig::*;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};

/// Time of all uploads.
const TIME: DosTime = DosTime {
    date: 46 << 9 | 11 << 5 | 22,
    time: 10 << 11 | 30 << 5 | 7,
};

/// Returns different contents for each number.
fn data(number: u64, bytes: usize) -> Vec<u8> {
    let mut random = cardiograph_sim_world::Seed::new(number).stream("data");
    let mut data = vec![0; bytes];
    data.fill_with(|| random.next_u64() as u8);
    data
}

/// Operations of guests.
trait Guest {
    fn begin(&mut self, bytes: u64) -> Result<Upload, Error>;
    fn grow(&mut self, upload: &mut Upload, bytes: u64) -> Result<(), Error>;
    fn write(&mut self, upload: &mut Upload, data: &[u8]) -> Result<(), Error>;
    fn commit(
        &mut self,
        upload: &mut Upload,
        path: &str,
        bytes: usize,
        replaces: bool,
    ) -> Result<(), Error>;
    fn drop_upload(&mut self, upload: Upload) -> Result<(), Error>;
    fn put(&mut self, path: &str, data: &[u8], replaces: bool) -> Result<(), Error>;
    fn remove(&mut self, path: &str) -> Result<(), Error>;
    fn rename(&mut self, from: &str, to: &str, replaces: bool) -> Result<(), Error>;
    fn make_directory(&mut self, path: &str) -> Result<(), Error>;
    fn find(&mut self, path: &str) -> Result<Node, Error>;
    fn names(&mut self, path: &str) -> Vec<String>;
}

impl Guest for Rig {
    fn begin(&mut self, bytes: u64) -> Result<Upload, Error> {
        done(self.volume.begin_upload(&mut self.disk, bytes))
    }

    fn grow(&mut self, upload: &mut Upload, bytes: u64) -> Result<(), Error> {
        done(self.volume.grow_upload(&mut self.disk, upload, bytes))
    }

    fn write(&mut self, upload: &mut Upload, data: &[u8]) -> Result<(), Error> {
        let end = data.len().div_ceil(512);
        let mut at = 0;
        while at < end {
            let (volume, disk) = (&mut self.volume, &mut self.disk);
            let most = (end - at).min(16) as u32;
            let extent = done(volume.upload_extent(disk, upload, at as u32, most))?;
            let make = &mut |index: u32, out: &mut [u8; 512]| {
                let part = &data[(at + index as usize) * 512..];
                let part = &part[..part.len().min(512)];
                out.fill(0);
                out[..part.len()].copy_from_slice(part);
            };
            let written = done(Blocks::write(disk, extent.start, extent.blocks, make));
            written.map_err(Error::Card)?;
            at += extent.blocks as usize;
        }
        Ok(())
    }

    fn commit(
        &mut self,
        upload: &mut Upload,
        path: &str,
        bytes: usize,
        replaces: bool,
    ) -> Result<(), Error> {
        let (volume, disk) = (&mut self.volume, &mut self.disk);
        done(volume.commit_upload(disk, upload, path, bytes as u32, TIME, replaces))
    }

    fn drop_upload(&mut self, upload: Upload) -> Result<(), Error> {
        done(self.volume.discard_upload(&mut self.disk, upload))
    }

    fn put(&mut self, path: &str, data: &[u8], replaces: bool) -> Result<(), Error> {
        let mut upload = self.begin(data.len() as u64)?;
        self.write(&mut upload, data)?;
        let committed = self.commit(&mut upload, path, data.len(), replaces);
        match committed {
            Err(Error::Card(error)) => return Err(Error::Card(error)),
            Err(_) => self.drop_upload(upload)?,
            Ok(()) => (),
        }
        committed
    }

    fn remove(&mut self, path: &str) -> Result<(), Error> {
        done(self.volume.remove(&mut self.disk, path))
    }

    fn rename(&mut self, from: &str, to: &str, replaces: bool) -> Result<(), Error> {
        done(self.volume.rename(&mut self.disk, from, to, replaces))
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Error> {
        done(self.volume.make_directory(&mut self.disk, path))
    }

    fn find(&mut self, path: &str) -> Result<Node, Error> {
        done(self.volume.lookup(&mut self.disk, path))
    }

    fn names(&mut self, path: &str) -> Vec<String> {
        let node = self.find(path).unwrap();
        let (volume, disk) = (&mut self.volume, &mut self.disk);
        let mut cursor = volume.open_directory(disk, &node).unwrap();
        let mut name = [0; ENTRY_NAME_BYTES_MAX];
        let mut names = Vec::new();
        let show = |entry: &DirEntry, name: &str| {
            if !entry.is_hidden {
                names.push(name.to_owned());
            }
            true
        };
        done(volume.list_directory(disk, &mut cursor, &mut name, show)).unwrap();
        names
    }
}

/// A file's contents, or `None` for a directory.
type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// Returns everything on a volume except hidden files, as the crate fatfs reads it.
fn tree(disk: &Disk, start: u32) -> Tree {
    let mut bytes = disk.bytes(start..disk.used());
    bytes.resize((disk.count() - start) as usize * 512, 0);
    let volume = fatfs::FileSystem::new(Cursor::new(bytes), fatfs::FsOptions::new()).unwrap();
    let (mut tree, mut todo) = (Tree::new(), vec![(String::new(), volume.root_dir())]);
    while let Some((path, directory)) = todo.pop() {
        for file in directory.iter().map(Result::unwrap) {
            let name = format!("{path}{}", file.file_name());
            let is_hidden = file.attributes().contains(fatfs::FileAttributes::HIDDEN);
            if file.short_file_name().starts_with('.') || is_hidden {
                continue;
            }
            if file.is_dir() {
                todo.push((format!("{name}/"), file.to_dir()));
                tree.insert(name, None);
                continue;
            }
            let mut data = Vec::new();
            file.to_file().read_to_end(&mut data).unwrap();
            tree.insert(name, Some(data));
        }
    }
    tree
}
