//! Reading directories and files that another program has written, undamaged and damaged.

use crate::fat_rig;

mod damaged;
mod trees;

use cardiograph_recorder::{DirEntry, ENTRY_NAME_BYTES_MAX, Node};
use fat_rig::*;
use std::collections::BTreeMap;
use std::io::Cursor;

type FileSystem<'b> = fatfs::FileSystem<Cursor<&'b mut [u8]>>;

/// Returns a volume as the crate fatfs formats it, after `fill` has written to it.
fn written<T>(kind: fatfs::FatType, fill: impl FnOnce(&FileSystem) -> T) -> (Vec<u8>, T) {
    let blocks = match kind {
        fatfs::FatType::Fat32 => 70_000,
        _ => 12_000,
    };
    let mut bytes = vec![0; blocks * 512];
    let options = fatfs::FormatVolumeOptions::new()
        .bytes_per_cluster(512)
        .fat_type(kind);
    fatfs::format_volume(Cursor::new(&mut bytes[..]), options).unwrap();
    let volume = FileSystem::new(Cursor::new(&mut bytes), fatfs::FsOptions::new()).unwrap();
    let filled = fill(&volume);
    volume.unmount().unwrap();
    (bytes, filled)
}

/// Returns the card with this volume, mounted.
fn mounted(bytes: &[u8]) -> Rig {
    let blocks = bytes.as_chunks::<512>().0.to_vec();
    let count = blocks.len() as u32;
    Rig::mounted(Disk::new(blocks, count))
}

/// A file's contents, or `None` for a directory.
type Tree = BTreeMap<String, Option<Vec<u8>>>;

fn list(rig: &mut Rig, node: &Node) -> Result<Vec<(DirEntry, String)>, Error> {
    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
    let mut cursor = volume.open_directory(disk, node)?;
    let mut name = [0; ENTRY_NAME_BYTES_MAX];
    let mut all = Vec::new();
    let is_end = done(
        volume.list_directory(disk, &mut cursor, &mut name, |entry, name| {
            all.push((*entry, name.to_owned()));
            true
        }),
    )?;
    assert!(is_end);
    Ok(all)
}

fn lookup(rig: &mut Rig, path: &str) -> Result<Node, Error> {
    done(rig.volume.lookup(&mut rig.disk, path))
}

fn entry_at(rig: &mut Rig, path: &str) -> DirEntry {
    match lookup(rig, path) {
        Ok(Node::Entry(entry)) => entry,
        other => panic!("{path}: {other:?}"),
    }
}

/// Reads a file in pieces of up to this number of blocks.
fn read(rig: &mut Rig, entry: &DirEntry, piece: u32) -> Result<Vec<u8>, Error> {
    let mut position = entry.contents();
    let mut bytes = Vec::new();
    let end = entry.bytes.div_ceil(512);
    let mut at = 0;
    while at < end {
        let (volume, disk) = (&mut rig.volume, &mut rig.disk);
        let most = piece.min(end - at);
        let extent = done(volume.extent_at(disk, &mut position, at, most))?;
        assert!((1..=most).contains(&extent.blocks));
        bytes.extend(disk.bytes(extent.start..extent.start + extent.blocks));
        at += extent.blocks;
    }
    bytes.truncate(entry.bytes as usize);
    Ok(bytes)
}

/// Returns all visible files and directories.
fn walk(rig: &mut Rig) -> Result<Tree, Error> {
    let mut tree = Tree::new();
    let mut todo = vec![(String::new(), Node::Root)];
    while let Some((path, node)) = todo.pop() {
        for (entry, name) in list(rig, &node)? {
            let path = format!("{path}{name}");
            if entry.is_hidden {
                continue;
            }
            if entry.is_directory() {
                todo.push((format!("{path}/"), Node::Entry(entry)));
                tree.insert(path, None);
            } else {
                tree.insert(path, Some(read(rig, &entry, 16)?));
            }
        }
    }
    Ok(tree)
}
