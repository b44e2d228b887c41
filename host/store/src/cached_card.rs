//! Files on a FAT file system on a simulated card, through the crate fatfs on top of a window of one sector
//! (like FatFs) or a page cache (like Linux).

use crate::card_device::CardDevice;
use crate::fat_card::MountError;
use crate::file_buffer::{Backing, FileBuffer};
use crate::page_cache::PageCache;
use crate::volume::{self, Layout, SectorCache, SharedCache, VolumeStream};
use crate::window::Window;
use crate::{CardClock, StoreError, format};
use cardiograph_sim_card::{Board, Card, Clock, Profile, Seed};
use cardiograph_workload::{Flush, Store};
use fatfs::{File, FileSystem, FsOptions};
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::rc::Rc;

/// A simulated card on a board, formatted and mounted. [`CachedCard::store`] gives access to its files.
pub struct CachedCard {
    file_system: FileSystem<VolumeStream>,
    cache: SharedCache,
    /// Byte offset in the volume at which the file system's last write ended.
    last_write_end: Rc<Cell<u64>>,
    board: Board,
    clock: Clock,
}

/// Files of a [`CachedCard`].
pub struct CachedStore<'a>(&'a CachedCard);

/// An open file of a [`CachedStore`].
pub struct CachedFile<'a> {
    buffer: FileBuffer,
    raw: Raw<'a>,
}

/// Unbuffered access to an open file.
struct Raw<'a> {
    file: File<'a, VolumeStream>,
    was_written: bool,
}

impl CachedCard {
    /// Creates a new card with the given profile, formats it with the board's cluster size and mounts it.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn new(profile: &Profile, board: &Board, seed: u64) -> Result<CachedCard, MountError> {
        CachedCard::mount(Card::new(profile, Seed::new(seed)), board)
    }

    /// Formats a card with the board's cluster size and mounts it.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn mount(mut card: Card, board: &Board) -> Result<CachedCard, MountError> {
        let volume =
            format::format(&mut card, board.library.cluster_bytes).map_err(MountError::Format)?;
        CachedCard::insert(card, &volume, board, Clock::default())
    }

    /// Mounts a formatted card, at the current time of a clock. The volume is that which [`format()`](crate::format())
    /// returned.
    ///
    /// # Errors
    /// [`MountError`] if the card or its file system does not work.
    pub fn insert(
        mut card: Card,
        volume: &Range<u64>,
        board: &Board,
        clock: Clock,
    ) -> Result<CachedCard, MountError> {
        let library = &board.library;
        volume::clear_dirty_flag(&mut card, volume);
        let layout = Layout::of(&card, volume);
        let mount = |error: io::Error| MountError::Mount(StoreError::Fatfs(error));
        let device = CardDevice::new(card, board, clock.clone())
            .map_err(|error| mount(io::Error::other(error)))?;
        let cache: Box<dyn SectorCache> = match library.dirty_bytes_max {
            Some(bytes) => {
                let burst_blocks = board.driver.burst_blocks;
                Box::new(PageCache::new(device, layout, bytes, burst_blocks))
            }
            None => Box::new(Window::new(device, layout)),
        };
        let cache: SharedCache = Rc::new(RefCell::new(cache));
        let bytes = VolumeStream::new(Rc::clone(&cache), layout);
        let last_write_end = bytes.last_write_end();
        Ok(CachedCard {
            file_system: FileSystem::new(bytes, FsOptions::new()).map_err(mount)?,
            cache,
            last_write_end,
            board: board.clone(),
            clock,
        })
    }

    /// Returns the store for the card's files.
    pub fn store(&self) -> CachedStore<'_> {
        CachedStore(self)
    }

    /// Returns the virtual clock of the card and its board.
    pub fn clock(&self) -> CardClock {
        CardClock(self.clock.clone())
    }

    /// Returns how many times the driver timed out on a busy card or reader and was called again.
    pub fn timeouts(&self) -> u64 {
        self.cache.borrow().device().timeouts()
    }

    /// Returns true if the card rejects writes because too many flash blocks are worn out.
    pub fn is_worn_out(&self) -> bool {
        self.cache.borrow().device().is_worn_out()
    }

    /// Returns a copy of the card as a power cut at this moment would leave it; `None` if it is on an SD bus.
    pub fn interrupted_copy(&self) -> Option<Card> {
        self.cache.borrow().device().interrupted_copy()
    }

    /// Unmounts the card and returns it.
    ///
    /// # Errors
    /// If unsynced data cannot be written.
    pub fn unmount(self) -> Result<Card, StoreError> {
        let unmounted = self.file_system.unmount();
        let synced = unmounted.and_then(|()| self.cache.borrow_mut().sync_all());
        synced.map_err(StoreError::Fatfs)?;
        let cache = Rc::into_inner(self.cache);
        // The file system, which has been dropped, held the only other reference.
        let cache = cache.unwrap_or_else(|| unreachable!("the cache is still shared"));
        Ok(cache.into_inner().into_device().into_card())
    }

    fn sync(&self) -> io::Result<()> {
        let wants_fs_info = self.cache.borrow().wants_fs_info();
        if wants_fs_info {
            let free_clusters = self.file_system.stats()?.free_clusters();
            self.cache.borrow_mut().update_fs_info(free_clusters)?;
        }
        self.cache.borrow_mut().sync_all()
    }

    fn charge_call(&self) {
        self.clock.advance_ns(self.board.call_ns());
    }

    /// Looks up a path and returns true if a file with this path exists.
    fn exists(&self, path: &str) -> io::Result<bool> {
        match self.file_system.root_dir().open_file(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Repeats the path lookups that the modelled library makes before it opens a file.
    fn walk_before_open(&self, path: &str) -> io::Result<()> {
        for _ in 1..self.board.library.path_walks_per_open {
            self.exists(path)?;
        }
        Ok(())
    }

    fn opened<'a>(&self, file: File<'a, VolumeStream>) -> CachedFile<'a> {
        CachedFile {
            buffer: FileBuffer::new(self.board.library.file_buffer_bytes),
            raw: Raw {
                file,
                was_written: false,
            },
        }
    }

    fn mkdir(&self, path: &str) -> io::Result<bool> {
        let root = self.file_system.root_dir();
        match root.open_dir(path) {
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        root.create_dir(path)?;
        let is_in_root = !path.contains('/');
        let mut cache = self.cache.borrow_mut();
        volume::repair_new_folder(cache.as_mut(), self.last_write_end.get(), is_in_root)?;
        drop(cache);
        self.sync_at_close()?;
        Ok(true)
    }

    fn create(&self, path: &str) -> io::Result<CachedFile<'_>> {
        if self.exists(path)? {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(self.opened(self.file_system.root_dir().create_file(path)?))
    }

    fn append(&self, path: &str) -> io::Result<CachedFile<'_>> {
        self.walk_before_open(path)?;
        let mut file = self.file_system.root_dir().create_file(path)?;
        // FAT finds the end of a file only by following its cluster chain.
        file.seek(SeekFrom::End(0))?;
        Ok(self.opened(file))
    }

    fn open(&self, path: &str) -> io::Result<CachedFile<'_>> {
        self.walk_before_open(path)?;
        Ok(self.opened(self.file_system.root_dir().open_file(path)?))
    }

    fn flush(&self, file: &mut CachedFile) -> io::Result<()> {
        file.write_back()?;
        self.sync()
    }

    fn close(&self, mut file: CachedFile) -> io::Result<()> {
        file.write_back()?;
        match file.raw.was_written {
            true => self.sync_at_close(),
            false => Ok(()),
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.file_system.root_dir().remove(path)?;
        self.sync_at_close()
    }

    fn sync_at_close(&self) -> io::Result<()> {
        let is_due = self.cache.borrow().is_synced_at_close();
        if is_due { self.sync() } else { Ok(()) }
    }
}

impl CachedFile<'_> {
    /// Writes buffered data to the file system and updates the directory entry.
    fn write_back(&mut self) -> io::Result<()> {
        self.buffer.write_back(&mut self.raw)?;
        self.raw.file.flush()
    }
}

impl Backing for Raw<'_> {
    type Error = io::Error;

    fn write_at(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.was_written = true;
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(data)
    }

    fn read_at(&mut self, at: u64, data: &mut [u8]) -> io::Result<usize> {
        if self.file.seek(SeekFrom::Start(at))? != at {
            return Ok(0);
        }
        let mut read = 0;
        while read < data.len() {
            match self.file.read(&mut data[read..])? {
                0 => break,
                more => read += more,
            }
        }
        Ok(read)
    }
}

impl<'a> Store for CachedStore<'a> {
    type File = CachedFile<'a>;
    type Error = StoreError;

    fn has_long_names(&self) -> bool {
        true
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, StoreError> {
        self.0.charge_call();
        self.0.mkdir(path).map_err(StoreError::Fatfs)
    }

    fn create(&mut self, path: &str) -> Result<CachedFile<'a>, StoreError> {
        self.0.charge_call();
        self.0.create(path).map_err(StoreError::Fatfs)
    }

    fn append(&mut self, path: &str) -> Result<CachedFile<'a>, StoreError> {
        self.0.charge_call();
        self.0.append(path).map_err(StoreError::Fatfs)
    }

    fn open(&mut self, path: &str, _writable: bool) -> Result<CachedFile<'a>, StoreError> {
        self.0.charge_call();
        self.0.open(path).map_err(StoreError::Fatfs)
    }

    fn write(
        &mut self,
        file: &mut CachedFile<'a>,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let call_ns = self.0.board.write_call_ns(data.len() as u64);
        self.0.clock.advance_ns(call_ns);
        let written = file.buffer.write(&mut file.raw, offset_bytes, data);
        written.map_err(StoreError::Fatfs)
    }

    fn read(
        &mut self,
        file: &mut CachedFile<'a>,
        offset_bytes: u64,
        data: &mut [u8],
    ) -> Result<usize, StoreError> {
        let call_ns = self.0.board.read_call_ns(data.len() as u64);
        self.0.clock.advance_ns(call_ns);
        let read = file.buffer.read(&mut file.raw, offset_bytes, data);
        read.map_err(StoreError::Fatfs)
    }

    /// `Flush::Start` does nothing; the next `Flush::Wait` writes the data.
    fn flush(&mut self, file: &mut CachedFile<'a>, how: Flush) -> Result<(), StoreError> {
        self.0.charge_call();
        match how {
            Flush::Start => Ok(()),
            Flush::Wait => self.0.flush(file).map_err(StoreError::Fatfs),
        }
    }

    fn close(&mut self, file: CachedFile<'a>) -> Result<(), StoreError> {
        self.0.charge_call();
        self.0.close(file).map_err(StoreError::Fatfs)
    }

    fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        self.0.charge_call();
        self.0.remove(path).map_err(StoreError::Fatfs)
    }
}
