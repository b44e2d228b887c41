//! Files on a FAT file system on a simulated card, through embedded-sdmmc.

use crate::card_device::CardDevice;
use crate::fatfs_device::{FatFsDevice, LibraryDevice};
use crate::file_buffer::{Backing, FileBuffer};
use crate::format::{self, FormatError};
use crate::volume::Layout;
use crate::{CardClock, StoreError};
use cardiograph_sim_card::{BLOCK_BYTES, Board, Card, Clock, Profile, Seed};
use cardiograph_workload::{Flush, Phase, Store};
use embedded_sdmmc::{
    Mode, RawDirectory, RawFile, RawVolume, TimeSource, Timestamp, VolumeIdx, VolumeManager,
};
use std::rc::Rc;

/// Folders that can be open at the same time: more than the deepest path of a workload needs.
const DIRS_MAX: usize = 8;
/// Files that can be open at the same time: those of a workload, and one that another task reads.
const FILES_MAX: usize = Phase::OPEN_FILES_MAX as usize + 1;

type Manager = VolumeManager<LibraryDevice, Noon, DIRS_MAX, FILES_MAX, 1>;

/// A simulated card on a board, formatted and mounted, as a store in virtual time.
pub struct FatCard {
    manager: Manager,
    volume: RawVolume,
    board: Board,
    clock: Clock,
    /// The card as FatFs accesses it; `None` if the accesses are those of embedded-sdmmc.
    fatfs: Option<Rc<FatFsDevice>>,
    /// Buffer shared by all files, with the file whose data it holds; `None` if each file has its own buffer.
    shared: Option<(FileBuffer, Option<RawFile>)>,
}

/// An open file of a [`FatCard`].
pub struct FatFile {
    raw: RawFile,
    buffer: FileBuffer,
    /// True if the file is new, or was written to.
    is_modified: bool,
}

/// A time source that dates every file to noon on 1 January 2026: with the real date, runs would differ.
struct Noon;

impl TimeSource for Noon {
    fn get_timestamp(&self) -> Timestamp {
        Timestamp {
            year_since_1970: 56,
            zero_indexed_month: 0,
            zero_indexed_day: 0,
            hours: 12,
            minutes: 0,
            seconds: 0,
        }
    }
}

/// Error while preparing a simulated card.
#[derive(Debug)]
pub enum MountError {
    /// Formatting failed.
    Format(FormatError),
    /// The driver or the FAT library failed to mount the card.
    Mount(StoreError),
}

impl std::error::Error for MountError {}

impl std::fmt::Display for MountError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            MountError::Format(error) => error.fmt(f),
            MountError::Mount(error) => write!(f, "mounting the card: {error}"),
        }
    }
}

impl FatCard {
    /// Creates a new card of this profile, formats it with the board's cluster size and mounts it.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn new(profile: &Profile, board: &Board, seed: u64) -> Result<FatCard, MountError> {
        FatCard::mount(Card::new(profile, Seed::new(seed)), board)
    }

    /// Formats a card with the board's cluster size and mounts it.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn mount(mut card: Card, board: &Board) -> Result<FatCard, MountError> {
        let library = &board.library;
        let volume =
            format::format(&mut card, library.cluster_bytes).map_err(MountError::Format)?;
        let layout = Layout::of(&card, &volume);
        let clock = Clock::default();
        let card = CardDevice::new(card, board, clock.clone())
            .map_err(|error| MountError::Mount(embedded_sdmmc::Error::DeviceError(error).into()))?;
        let (device, fatfs) = match library.window {
            true => {
                let device = Rc::new(FatFsDevice::new(card, layout));
                (LibraryDevice::FatFs(Rc::clone(&device)), Some(device))
            }
            false => (LibraryDevice::Plain(card), None),
        };
        let manager = Manager::new_with_limits(device, Noon, 1);
        let volume = manager
            .open_raw_volume(VolumeIdx(0))
            .map_err(|error| MountError::Mount(error.into()))?;
        Ok(FatCard {
            manager,
            volume,
            shared: library
                .shared_buffer
                .then(|| (FileBuffer::new(library.file_buffer_bytes), None)),
            board: board.clone(),
            clock,
            fatfs,
        })
    }

    /// Returns the virtual clock of the card and its board.
    pub fn clock(&self) -> CardClock {
        CardClock(self.clock.clone())
    }

    /// Returns how many times the driver timed out on a busy card and was called again.
    pub fn timeouts(&self) -> u64 {
        self.with_card(CardDevice::timeouts)
    }

    /// Returns true if the card rejects writes because too many of its blocks are worn out.
    pub fn is_worn_out(&self) -> bool {
        self.with_card(CardDevice::is_worn_out)
    }

    fn with_card<T>(&self, act: impl FnOnce(&CardDevice) -> T) -> T {
        self.manager.device(|device| device.with_card(act))
    }

    /// Writes what FatFs writes at a sync, if the accesses are those of FatFs.
    fn sync_window(&self) -> Result<(), StoreError> {
        let synced = self.fatfs.as_ref().map_or(Ok(()), |device| device.sync());
        Ok(synced?)
    }

    /// Unmounts the card and returns it.
    ///
    /// # Errors
    /// If a file is open, or the last block cannot be written.
    pub fn unmount(mut self) -> Result<Card, StoreError> {
        self.manager.close_volume(self.volume)?;
        if let Some(device) = self.fatfs.take() {
            device.unmount()?;
        }
        let (device, _) = self.manager.free();
        Ok(device.into_card())
    }

    fn charge_call(&self) {
        self.clock.advance_ns(self.board.call_ns());
    }

    /// Calls `act` with the open parent folder of `path` and the last name of the path.
    fn in_folder<T>(
        &self,
        path: &str,
        act: impl FnOnce(RawDirectory, &str) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut folder = self.manager.open_root_dir(self.volume)?;
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        for step in folders.split('/').filter(|step| !step.is_empty()) {
            let inner = self.manager.open_dir(folder, step);
            self.manager.close_dir(folder)?;
            folder = inner?;
        }
        let result = act(folder, name);
        self.manager.close_dir(folder)?;
        result
    }

    fn open_file(&mut self, path: &str, mode: Mode) -> Result<FatFile, StoreError> {
        self.charge_call();
        for _ in 1..self.board.library.path_walks_per_open {
            self.in_folder(path, |folder, name| {
                match self.manager.find_directory_entry(folder, name) {
                    Ok(_) | Err(embedded_sdmmc::Error::NotFound) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            })?;
        }
        let raw = self.in_folder(path, |folder, name| {
            Ok(self.manager.open_file_in_dir(folder, name, mode)?)
        })?;
        Ok(FatFile {
            raw,
            buffer: FileBuffer::new(self.board.library.file_buffer_bytes),
            is_modified: self.manager.file_length(raw)? == 0,
        })
    }

    /// Calls `act` with the buffer of a file, which is either its own or shared by all files. If another
    /// file's data is in the shared buffer, writes it back first.
    fn with_buffer<T>(
        &mut self,
        file: &mut FatFile,
        act: impl FnOnce(&mut FileBuffer, &mut Raw) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (manager, fatfs) = (&self.manager, self.fatfs.as_deref());
        let raw = &mut Raw {
            manager,
            fatfs,
            file: file.raw,
        };
        let Some((buffer, owner)) = &mut self.shared else {
            return act(&mut file.buffer, raw);
        };
        if let Some(file) = owner.replace(file.raw)
            && file != raw.file
        {
            buffer.write_back(&mut Raw { file, ..*raw })?;
        }
        act(buffer, raw)
    }
}

/// Unbuffered access to an open file.
struct Raw<'a> {
    manager: &'a Manager,
    fatfs: Option<&'a FatFsDevice>,
    file: RawFile,
}

impl Raw<'_> {
    fn seek(&self, at: u64) -> Result<(), StoreError> {
        let at = u32::try_from(at).map_err(|_| embedded_sdmmc::Error::InvalidOffset)?;
        // Even a seek to the current offset would make the library follow the cluster chain again.
        if self.manager.file_offset(self.file)? != at {
            self.manager.file_seek_from_start(self.file, at)?;
        }
        Ok(())
    }

    /// Calls `act`, which reads or writes the file from offset `at` on.
    fn access<T>(
        &self,
        at: u64,
        act: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(device) = self.fatfs else {
            return act();
        };
        let length = u64::from(self.manager.file_length(self.file)?);
        let block = at - at % BLOCK_BYTES as u64;
        device.access_file(self.file, block >= length, act)
    }
}

impl Backing for Raw<'_> {
    type Error = StoreError;

    fn write_at(&mut self, at: u64, data: &[u8]) -> Result<(), StoreError> {
        self.access(at, || {
            self.seek(at)?;
            Ok(self.manager.write(self.file, data)?)
        })
    }

    fn read_at(&mut self, at: u64, data: &mut [u8]) -> Result<usize, StoreError> {
        if at >= u64::from(self.manager.file_length(self.file)?) {
            return Ok(0);
        }
        self.access(at, || {
            self.seek(at)?;
            Ok(self.manager.read(self.file, data)?)
        })
    }
}

impl Store for FatCard {
    type File = FatFile;
    type Error = StoreError;

    fn has_long_names(&self) -> bool {
        false
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, StoreError> {
        self.charge_call();
        let made = self.in_folder(path, |folder, name| {
            match self.manager.make_dir_in_dir(folder, name) {
                Ok(()) => Ok(true),
                Err(embedded_sdmmc::Error::DirAlreadyExists) => Ok(false),
                Err(error) => Err(error.into()),
            }
        });
        self.sync_window()?;
        made
    }

    fn create(&mut self, path: &str) -> Result<FatFile, StoreError> {
        self.open_file(path, Mode::ReadWriteCreate)
    }

    fn append(&mut self, path: &str) -> Result<FatFile, StoreError> {
        self.open_file(path, Mode::ReadWriteCreateOrAppend)
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<FatFile, StoreError> {
        // The library has no mode for writing in place, but a file opened for appending can also seek.
        let mode = if writable {
            Mode::ReadWriteAppend
        } else {
            Mode::ReadOnly
        };
        self.open_file(path, mode)
    }

    fn write(
        &mut self,
        file: &mut FatFile,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let call_ns = self.board.write_call_ns(data.len() as u64);
        self.clock.advance_ns(call_ns);
        file.is_modified = true;
        self.with_buffer(file, |buffer, raw| buffer.write(raw, offset_bytes, data))
    }

    fn read(
        &mut self,
        file: &mut FatFile,
        offset_bytes: u64,
        data: &mut [u8],
    ) -> Result<usize, StoreError> {
        let call_ns = self.board.read_call_ns(data.len() as u64);
        self.clock.advance_ns(call_ns);
        self.with_buffer(file, |buffer, raw| buffer.read(raw, offset_bytes, data))
    }

    fn flush(&mut self, file: &mut FatFile, how: Flush) -> Result<(), StoreError> {
        self.charge_call();
        if how == Flush::Wait {
            self.with_buffer(file, |buffer, raw| buffer.write_back(raw))?;
            self.manager.flush_file(file.raw)?;
            self.sync_window()?;
        }
        Ok(())
    }

    fn close(&mut self, mut file: FatFile) -> Result<(), StoreError> {
        self.charge_call();
        let written = self.with_buffer(&mut file, |buffer, raw| buffer.write_back(raw));
        if let Some((_, owner)) = &mut self.shared {
            *owner = None;
        }
        let closed = self.manager.close_file(file.raw);
        if let Some(device) = &self.fatfs {
            device.close(file.raw);
        }
        written?;
        closed?;
        match file.is_modified {
            true => self.sync_window(),
            false => Ok(()),
        }
    }

    /// Removes the directory entry; the library leaves the file's clusters allocated.
    fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        self.charge_call();
        self.in_folder(path, |folder, name| {
            Ok(self.manager.delete_entry_in_dir(folder, name)?)
        })?;
        self.sync_window()
    }
}
