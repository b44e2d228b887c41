//! Copies of files and directories, through the operations that clients use, so that the same is refused.

use super::DirectoryStorage;
use cardiograph_server::{Error, Kind, NAME_BYTES_MAX, Storage, is_protected};

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Maximum number of files and directories in a copy.
const ENTRIES_MAX: usize = 100_000;

/// Copies a file, or a directory with everything that clients can see in it. An error leaves what was copied before.
pub async fn copy(storage: &DirectoryStorage, from: &str, to: &str) -> Result<(), Error> {
    let file = storage.open(from).await?;
    if storage.stat(&file).kind == Kind::File {
        return copy_file(storage, from, to).await;
    }
    storage.make_directory(to).await?;
    // Paths below `from`, each with a leading slash.
    let mut folders = vec![String::new()];
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        let mut listing = storage.list(&format!("{from}{folder}")).await?;
        let mut buffer = [0; NAME_BYTES_MAX];
        while let Some(entry) = storage.next(&mut listing, &mut buffer).await? {
            if is_protected(entry.name) {
                continue;
            }
            entries += 1;
            if entries > ENTRIES_MAX {
                return Err(Error::TooLarge);
            }
            let path = format!("{folder}/{}", entry.name);
            let (source, copy) = (format!("{from}{path}"), format!("{to}{path}"));
            match entry.stat.kind {
                Kind::Directory => {
                    storage.make_directory(&copy).await?;
                    folders.push(path);
                }
                Kind::File => copy_file(storage, &source, &copy).await?,
            }
        }
    }
    Ok(())
}

async fn copy_file(storage: &DirectoryStorage, from: &str, to: &str) -> Result<(), Error> {
    let file = storage.open(from).await?;
    let bytes = storage.stat(&file).bytes;
    let mut upload = storage.create(to, Some(bytes)).await?;
    let mut offset = 0;
    while offset < bytes {
        let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
        let piece = storage.read(&file, offset, left.min(PIECE_BYTES)).await?;
        if piece.is_empty() {
            return Err(Error::Changed);
        }
        storage.append(&mut upload, &piece).await?;
        offset += piece.len() as u64;
    }
    storage.commit(upload, to).await.map(drop)
}
