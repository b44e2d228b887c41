//! The files of a directory.
//!
//! ```text
//!   Storage ──┬── file.rs: look up, read            from the page cache at once, else in a helper thread
//!             ├── listing.rs: entries of a directory
//!             ├── upload.rs: temporary file ── fsync ── rename
//!             ├── room.rs: space that uploads leave to the recorder
//!             ├── change.rs: rename, remove, create a directory
//!             ├── copy.rs: copy a file or directory
//!             └── recordings.rs: sessions and days
//! ```

mod change;
mod copy;
mod file;
mod listing;
mod recordings;
mod room;
mod upload;

use crate::beneath::{Root, error_of};
use cardiograph_record::LiveFiles;
use cardiograph_server::{Entry, Error, NameBuffer, Position, Recording, Space, Stat, Storage};
pub use file::OpenFile;
use file::{Piece, Pool};
use listing::Listing;
use recordings::Index;
use room::Room;
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::task::yield_now;
use upload::Upload;

/// The files of a directory of this computer.
pub struct DirectoryStorage {
    root: Arc<Root>,
    /// Files that a recorder in this process is writing.
    live: LiveFiles,
    pool: Pool,
    index: Index,
    room: Arc<Room>,
}

impl DirectoryStorage {
    /// Opens a directory.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn open(path: &Path, live: LiveFiles) -> io::Result<DirectoryStorage> {
        Ok(DirectoryStorage {
            root: Arc::new(Root::open(path)?),
            live,
            pool: Pool::default(),
            index: Index::default(),
            room: Arc::default(),
        })
    }

    /// Sets the space that clients leave free, in bytes. The default is 64 MiB, or an eighth of a small storage device.
    #[must_use]
    pub fn keeping_free(mut self, bytes: Option<u64>) -> DirectoryStorage {
        self.room = Arc::new(Room::keeping(bytes));
        self
    }

    /// Removes what uploads left behind that were interrupted by a crash, in a thread of its own. Uploads in progress, of
    /// this server or another one, are not affected.
    pub fn remove_leftovers(&self) -> JoinHandle<()> {
        let root = Arc::clone(&self.root);
        std::thread::spawn(move || {
            change::remove_leftovers(root.directory(), change::DEPTH_MAX);
        })
    }
}

impl Storage for DirectoryStorage {
    type File = OpenFile;
    type Listing = Listing;
    type Upload = Upload;
    type Bytes<'a> = Piece<'a>;

    async fn open(&self, path: &str) -> Result<OpenFile, Error> {
        // Yield, because a connection may open thousands of files in a row, for example for an archive.
        yield_now().await;
        OpenFile::open(&self.root, &self.live, path).await
    }

    fn stat(&self, file: &OpenFile) -> Stat {
        file.stat()
    }

    async fn refresh(&self, file: &mut OpenFile) -> Result<(), Error> {
        file.refresh().await
    }

    async fn read<'a>(
        &'a self,
        file: &OpenFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Piece<'a>, Error> {
        self.pool.read(file, offset, bytes_max).await
    }

    fn as_any<'f>(&self, file: &'f OpenFile) -> Option<&'f dyn Any> {
        Some(file)
    }

    async fn list(&self, directory: &str) -> Result<Listing, Error> {
        Listing::open(&self.root, &self.live, directory).await
    }

    async fn next<'n>(
        &self,
        listing: &mut Listing,
        name: &'n mut NameBuffer,
    ) -> Result<Option<Entry<'n>>, Error> {
        yield_now().await;
        listing.next(name)
    }

    async fn create(&self, path: &str, bytes: Option<u64>) -> Result<Upload, Error> {
        self.check_not_recorded(path)?;
        Upload::create(&self.root, &self.room, path, bytes).await
    }

    async fn append(&self, upload: &mut Upload, bytes: &[u8]) -> Result<(), Error> {
        upload.append(bytes).await
    }

    async fn commit(&self, upload: Upload, path: &str) -> Result<bool, Error> {
        self.check_not_recorded(path)?;
        upload.commit().await
    }

    async fn discard(&self, upload: Upload) {
        drop(upload);
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.check_not_recorded(from)?;
        self.check_not_recorded(to)?;
        change::rename(&self.root, from, to).await
    }

    async fn remove(&self, path: &str, is_recursive: bool) -> Result<(), Error> {
        self.check_not_recorded(path)?;
        change::remove(&self.root, path, is_recursive).await
    }

    fn copies(&self) -> bool {
        true
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), Error> {
        copy::copy(self, from, to).await
    }

    async fn set_modified(&self, path: &str, modified_s: u64) -> Result<bool, Error> {
        self.check_not_recorded(path)?;
        change::set_modified(&self.root, path, modified_s).await
    }

    async fn make_directory(&self, path: &str) -> Result<(), Error> {
        self.check_not_recorded(path)?;
        change::make_directory(&self.root, &self.room, path).await
    }

    async fn record(&self, position: &mut Position) -> Result<Option<Recording>, Error> {
        yield_now().await;
        self.index.next(&self.root, &self.live, position).await
    }

    fn space(&self) -> Option<Space> {
        let space = rustix::fs::fstatvfs(self.root.directory()).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Some(Space {
            total_bytes: bytes(space.f_blocks),
            free_bytes: Some(bytes(space.f_bavail)),
        })
    }
}

impl DirectoryStorage {
    /// Refuses to change a file that is being recorded, a directory with such a file, and names that the recorder may use.
    fn check_not_recorded(&self, path: &str) -> Result<(), Error> {
        match self.live.is_used(path.trim_start_matches('/')) {
            true => Err(Error::Recording),
            false => Ok(()),
        }
    }
}

/// Runs an operation that may wait for the storage device in a helper thread. The operation completes even if
/// the caller stops waiting for it.
pub(crate) async fn aside<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, rustix::io::Errno> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(operation).await {
        Ok(done) => done.map_err(error_of),
        Err(_) => Err(Error::CardFailed),
    }
}
