//! Files on a FAT file system on a simulated card, through embedded-sdmmc and its driver.

use crate::card_device::CardDevice;
use crate::format::{self, FormatError};
use crate::{CardClock, StoreError};
use cardiograph_sim_card::{BLOCK_BYTES, Board, Card, Clock, Profile, Seed};
use cardiograph_workload::{Flush, Phase, Store};
use embedded_sdmmc::{
    Mode, RawDirectory, RawFile, RawVolume, TimeSource, Timestamp, VolumeIdx, VolumeManager,
};
use std::cell::Cell;
use std::rc::Rc;

/// Folders that can be open at once: the deepest path of a workload, with room.
const DIRS_MAX: usize = 8;
const FILES_MAX: usize = Phase::OPEN_FILES_MAX as usize;

type Manager = VolumeManager<CardDevice, Noon, DIRS_MAX, FILES_MAX, 1>;

/// A simulated card on a board, formatted and mounted, as a store in virtual time.
pub struct FatCard {
    manager: Manager,
    volume: RawVolume,
    board: Board,
    clock: Clock,
    time_outs: Rc<Cell<u64>>,
}

/// An open file of a [`FatCard`].
pub struct FatFile {
    raw: RawFile,
    /// Bytes of one block that are not yet handed to the library; empty if the board has no buffer.
    buffer: Vec<u8>,
    /// Place of the first of them in the file.
    buffer_at: u64,
    /// The block read last, with its place in the file; the board's buffer holds one or the other.
    read_block: Option<(u64, Vec<u8>)>,
}

/// Every file is of noon, 1 January 2026: the real date would make runs differ.
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

/// Why a simulated card could not be brought up.
#[derive(Debug)]
pub enum MountError {
    /// It could not be formatted.
    Format(FormatError),
    /// The driver or the FAT library did not take it.
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
    /// A new card of this profile, formatted with the board's cluster size and mounted.
    ///
    /// # Errors
    /// [`MountError`] if no FAT file system of that cluster size fits the card.
    pub fn new(profile: &Profile, board: &Board, seed: u64) -> Result<FatCard, MountError> {
        let mut card = Card::new(profile, Seed::new(seed));
        format::format(&mut card, board.library.cluster_bytes).map_err(MountError::Format)?;
        let clock = Clock::default();
        let device = CardDevice::new(card, board, clock.clone())
            .map_err(|error| MountError::Mount(embedded_sdmmc::Error::DeviceError(error).into()))?;
        let time_outs = device.time_outs();
        let manager = Manager::new_with_limits(device, Noon, 1);
        let volume = manager
            .open_raw_volume(VolumeIdx(0))
            .map_err(|error| MountError::Mount(error.into()))?;
        Ok(FatCard {
            manager,
            volume,
            board: board.clone(),
            clock,
            time_outs,
        })
    }

    /// The clock that everything on this card takes its time from.
    pub fn clock(&self) -> CardClock {
        CardClock(self.clock.clone())
    }

    /// How often the driver gave up on a busy card and was asked again.
    pub fn time_outs(&self) -> u64 {
        self.time_outs.get()
    }

    /// Unmounts the card and gives it back.
    ///
    /// # Errors
    /// If a file is open, or the last block cannot be written.
    pub fn unmount(self) -> Result<Card, StoreError> {
        self.manager.close_volume(self.volume)?;
        let (device, _) = self.manager.free();
        let card = device.into_card();
        Ok(card.unwrap_or_else(|| unreachable!("the driver alone held the wire, and it is gone")))
    }

    fn spend_call(&self, payload_bytes: usize) {
        self.clock
            .advance_ns(self.board.call_ns(payload_bytes as u64));
    }

    /// Runs `act` in the folder that holds `path`, with the last name of it.
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
        self.spend_call(0);
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
            buffer: Vec::new(),
            buffer_at: 0,
            read_block: None,
        })
    }

    fn empty_buffer(&self, file: &mut FatFile) -> Result<(), StoreError> {
        if file.buffer.is_empty() {
            return Ok(());
        }
        self.hand_over(file.raw, file.buffer_at, &file.buffer)?;
        file.buffer.clear();
        Ok(())
    }

    /// Reads within one block through the file's buffer; returns the bytes read.
    fn read_in_block(
        &self,
        file: &mut FatFile,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        let within = (offset_bytes % BLOCK_BYTES as u64) as usize;
        let block_at = offset_bytes - within as u64;
        let block = match file.read_block.take() {
            Some((at, block)) if at == block_at => block,
            _ => {
                let mut block = vec![0; BLOCK_BYTES];
                self.seek(file.raw, block_at)?;
                let length = self.manager.read(file.raw, &mut block)?;
                block.truncate(length);
                block
            }
        };
        let rest = block.get(within..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        file.read_block = Some((block_at, block));
        Ok(length)
    }

    fn hand_over(&self, file: RawFile, at: u64, data: &[u8]) -> Result<(), StoreError> {
        self.seek(file, at)?;
        Ok(self.manager.write(file, data)?)
    }

    fn seek(&self, file: RawFile, at: u64) -> Result<(), StoreError> {
        let at = u32::try_from(at).map_err(|_| embedded_sdmmc::Error::InvalidOffset)?;
        // Seeking to where the file is would make the library look its cluster up anew.
        if self.manager.file_offset(file)? != at {
            self.manager.file_seek_from_start(file, at)?;
        }
        Ok(())
    }
}

impl Store for FatCard {
    type File = FatFile;
    type Error = StoreError;

    fn has_long_names(&self) -> bool {
        false
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, StoreError> {
        self.spend_call(0);
        self.in_folder(path, |folder, name| {
            match self.manager.make_dir_in_dir(folder, name) {
                Ok(()) => Ok(true),
                Err(embedded_sdmmc::Error::DirAlreadyExists) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn create(&mut self, path: &str) -> Result<FatFile, StoreError> {
        self.open_file(path, Mode::ReadWriteCreate)
    }

    fn append(&mut self, path: &str) -> Result<FatFile, StoreError> {
        self.open_file(path, Mode::ReadWriteCreateOrAppend)
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<FatFile, StoreError> {
        // The library cannot open for writing in place, but an appended file can be sought.
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
        self.spend_call(data.len());
        file.read_block = None;
        if self.board.library.file_buffer_bytes == 0 {
            return self.hand_over(file.raw, offset_bytes, data);
        }
        if file.buffer_at + file.buffer.len() as u64 != offset_bytes {
            self.empty_buffer(file)?;
        }
        let (mut at, mut rest) = (offset_bytes, data);
        while !rest.is_empty() {
            let within = (at % BLOCK_BYTES as u64) as usize;
            let taken = if within == 0 && rest.len() >= BLOCK_BYTES {
                // Whole blocks need no buffer.
                let whole = rest.len() / BLOCK_BYTES * BLOCK_BYTES;
                self.hand_over(file.raw, at, &rest[..whole])?;
                whole
            } else {
                if file.buffer.is_empty() {
                    file.buffer_at = at;
                }
                let taken = rest.len().min(BLOCK_BYTES - within);
                file.buffer.extend_from_slice(&rest[..taken]);
                if within + taken == BLOCK_BYTES {
                    self.empty_buffer(file)?;
                }
                taken
            };
            at += taken as u64;
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn read(
        &mut self,
        file: &mut FatFile,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        self.spend_call(buffer.len());
        self.empty_buffer(file)?;
        let within = (offset_bytes % BLOCK_BYTES as u64) as usize;
        let is_buffered = self.board.library.file_buffer_bytes > 0;
        if is_buffered && within + buffer.len() <= BLOCK_BYTES && buffer.len() < BLOCK_BYTES {
            if offset_bytes >= u64::from(self.manager.file_length(file.raw)?) {
                return Ok(0);
            }
            return self.read_in_block(file, offset_bytes, buffer);
        }
        self.seek(file.raw, offset_bytes)?;
        Ok(self.manager.read(file.raw, buffer)?)
    }

    fn flush(&mut self, file: &mut FatFile, how: Flush) -> Result<(), StoreError> {
        self.spend_call(0);
        if how == Flush::Wait {
            self.empty_buffer(file)?;
            self.manager.flush_file(file.raw)?;
        }
        Ok(())
    }

    fn close(&mut self, mut file: FatFile) -> Result<(), StoreError> {
        self.spend_call(0);
        let emptied = self.empty_buffer(&mut file);
        let closed = self.manager.close_file(file.raw);
        emptied?;
        Ok(closed?)
    }

    /// The library takes the name away and leaves the file's clusters allocated.
    fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        self.spend_call(0);
        self.in_folder(path, |folder, name| {
            Ok(self.manager.delete_entry_in_dir(folder, name)?)
        })
    }
}
