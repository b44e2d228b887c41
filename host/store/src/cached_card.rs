//! Files on a FAT file system on a simulated card, through the crate fatfs over a window of one sector
//! (FatFs) or a page cache (Linux).

use crate::card_device::CardDevice;
use crate::fat_card::MountError;
use crate::file_buffer::{Backing, FileBuffer};
use crate::page_cache::PageCache;
use crate::volume::{self, Bytes, Disk, Layout, SharedDisk};
use crate::window::Window;
use crate::{CardClock, StoreError, format};
use cardiograph_sim_card::{Board, Card, Clock, Profile, Seed};
use cardiograph_workload::{Flush, Store};
use fatfs::{File, FileSystem, FsOptions};
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

/// A simulated card on a board, formatted and mounted; [`CachedCard::store`] is the store.
pub struct CachedCard {
    file_system: FileSystem<Bytes>,
    disk: SharedDisk,
    /// Where the file system's last write ended.
    written_to: Rc<Cell<u64>>,
    board: Board,
    clock: Clock,
}

/// The files of a [`CachedCard`].
pub struct CachedStore<'a>(&'a CachedCard);

/// An open file of a [`CachedStore`].
pub struct CachedFile<'a> {
    buffer: FileBuffer,
    raw: Raw<'a>,
}

/// A file past its buffer.
struct Raw<'a> {
    file: File<'a, Bytes>,
    was_written: bool,
}

impl CachedCard {
    /// A new card of this profile, formatted with the board's cluster size and mounted.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn new(profile: &Profile, board: &Board, seed: u64) -> Result<CachedCard, MountError> {
        CachedCard::mount(Card::new(profile, Seed::new(seed)), board)
    }

    /// A card, formatted with the board's cluster size and mounted.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn mount(mut card: Card, board: &Board) -> Result<CachedCard, MountError> {
        let library = &board.library;
        let volume =
            format::format(&mut card, library.cluster_bytes).map_err(MountError::Format)?;
        let layout = Layout::of(&card, &volume);
        let clock = Clock::default();
        let mount = |error: io::Error| MountError::Mount(StoreError::Fatfs(error));
        let device = CardDevice::new(card, board, clock.clone())
            .map_err(|error| mount(io::Error::other(error)))?;
        let disk: Box<dyn Disk> = match library.dirty_bytes_max {
            Some(bytes) => {
                let burst_blocks = board.driver.burst_blocks;
                Box::new(PageCache::new(device, layout, bytes, burst_blocks))
            }
            None => Box::new(Window::new(device, layout)),
        };
        let disk: SharedDisk = Rc::new(RefCell::new(disk));
        let bytes = Bytes::new(Rc::clone(&disk), layout);
        let written_to = bytes.written_to();
        Ok(CachedCard {
            file_system: FileSystem::new(bytes, FsOptions::new()).map_err(mount)?,
            disk,
            written_to,
            board: board.clone(),
            clock,
        })
    }

    /// Its files.
    pub fn store(&self) -> CachedStore<'_> {
        CachedStore(self)
    }

    /// The clock that everything on this card takes its time from.
    pub fn clock(&self) -> CardClock {
        CardClock(self.clock.clone())
    }

    /// How often the driver gave up on a busy card and was asked again.
    pub fn time_outs(&self) -> u64 {
        self.disk.borrow().device().time_outs()
    }

    /// Whether the card takes no more writes, because too many of its blocks have given out.
    pub fn is_worn_out(&self) -> bool {
        self.disk.borrow().device().is_worn_out()
    }

    /// Unmounts the card and gives it back.
    ///
    /// # Errors
    /// If what was not synced yet cannot be written.
    pub fn unmount(self) -> Result<Card, StoreError> {
        let unmounted = self.file_system.unmount();
        let synced = unmounted.and_then(|()| self.disk.borrow_mut().sync_all());
        synced.map_err(StoreError::Fatfs)?;
        let disk = Rc::into_inner(self.disk);
        let disk = disk.unwrap_or_else(|| unreachable!("the file system alone held it as well"));
        Ok(disk.into_inner().into_device().into_card())
    }

    fn sync(&self) -> io::Result<()> {
        let wants_fs_info = self.disk.borrow().wants_fs_info();
        if wants_fs_info {
            let free_clusters = self.file_system.stats()?.free_clusters();
            self.disk.borrow_mut().update_fs_info(free_clusters)?;
        }
        self.disk.borrow_mut().sync_all()
    }

    fn spend_call(&self) {
        self.clock.advance_ns(self.board.call_ns());
    }

    /// Looks a path up and does nothing with it; whether there is a file.
    fn walk(&self, path: &str) -> io::Result<bool> {
        match self.file_system.root_dir().open_file(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Looks a path up as often as the library does before it opens it.
    fn walks_before_open(&self, path: &str) -> io::Result<()> {
        for _ in 1..self.board.library.path_walks_per_open {
            self.walk(path)?;
        }
        Ok(())
    }

    fn opened<'a>(&self, file: File<'a, Bytes>) -> CachedFile<'a> {
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
        let mut disk = self.disk.borrow_mut();
        volume::mend_new_folder(disk.as_mut(), self.written_to.get(), is_in_root)?;
        drop(disk);
        self.sync_at_close()?;
        Ok(true)
    }

    fn create(&self, path: &str) -> io::Result<CachedFile<'_>> {
        if self.walk(path)? {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(self.opened(self.file_system.root_dir().create_file(path)?))
    }

    fn append(&self, path: &str) -> io::Result<CachedFile<'_>> {
        self.walks_before_open(path)?;
        let mut file = self.file_system.root_dir().create_file(path)?;
        // Along the cluster chain, as there is no other way.
        file.seek(SeekFrom::End(0))?;
        Ok(self.opened(file))
    }

    fn open(&self, path: &str) -> io::Result<CachedFile<'_>> {
        self.walks_before_open(path)?;
        Ok(self.opened(self.file_system.root_dir().open_file(path)?))
    }

    fn flush(&self, file: &mut CachedFile) -> io::Result<()> {
        file.settle()?;
        self.sync()
    }

    fn close(&self, mut file: CachedFile) -> io::Result<()> {
        file.settle()?;
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
        let is_due = self.disk.borrow().is_synced_at_close();
        if is_due { self.sync() } else { Ok(()) }
    }
}

impl CachedFile<'_> {
    /// Hands over what is held back, and brings the directory entry up to date.
    fn settle(&mut self) -> io::Result<()> {
        self.buffer.empty(&mut self.raw)?;
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
        self.0.spend_call();
        self.0.mkdir(path).map_err(StoreError::Fatfs)
    }

    fn create(&mut self, path: &str) -> Result<CachedFile<'a>, StoreError> {
        self.0.spend_call();
        self.0.create(path).map_err(StoreError::Fatfs)
    }

    fn append(&mut self, path: &str) -> Result<CachedFile<'a>, StoreError> {
        self.0.spend_call();
        self.0.append(path).map_err(StoreError::Fatfs)
    }

    fn open(&mut self, path: &str, _writable: bool) -> Result<CachedFile<'a>, StoreError> {
        self.0.spend_call();
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

    /// A sync that is only begun is done with the next one that is waited for.
    fn flush(&mut self, file: &mut CachedFile<'a>, how: Flush) -> Result<(), StoreError> {
        self.0.spend_call();
        match how {
            Flush::Start => Ok(()),
            Flush::Wait => self.0.flush(file).map_err(StoreError::Fatfs),
        }
    }

    fn close(&mut self, file: CachedFile<'a>) -> Result<(), StoreError> {
        self.0.spend_call();
        self.0.close(file).map_err(StoreError::Fatfs)
    }

    fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        self.0.spend_call();
        self.0.remove(path).map_err(StoreError::Fatfs)
    }
}
