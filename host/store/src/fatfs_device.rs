//! The card accesses of ChaN's FatFs below embedded-sdmmc, which has another cache and another order of writes.
//!
//! ```text
//!   sectors of FAT and directories ── window of one sector   written when another one is needed, or at a sync
//!   FSInfo ────────────────────────── in memory              written at a sync if the FAT has changed
//!   sectors of a file ─────────────── one sector per file    written at once; a new one is not read before; read one by one
//! ```
//!
//! `tests/fatfs` compares the accesses with those of FatFs itself.

use crate::card_device::{CardDevice, DriverError};
use crate::volume::Layout;
use crate::window::Window;
use cardiograph_sim_card::Card;
use embedded_sdmmc::{Block, BlockCount, BlockDevice, BlockIdx, RawFile};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Purpose of an access, which embedded-sdmmc does not pass on.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// Directories, FAT and FSInfo.
    Volume,
    /// Data of a file, and the FAT that leads to it.
    File {
        /// The file.
        file: RawFile,
        /// True if the first block is beyond the end of the file.
        is_new: bool,
    },
}

/// A card below embedded-sdmmc, accessed as by FatFs.
pub(crate) struct FatFsDevice {
    access: Cell<Access>,
    state: RefCell<State>,
}

struct State {
    window: Window,
    layout: Layout,
    /// The newest contents of the FSInfo sector, once it has been read.
    fs_info: Option<Block>,
    /// True if the card has older contents.
    is_fs_info_old: bool,
    /// The sector in the buffer of each open file.
    held: Vec<(RawFile, u32, Block)>,
    /// Consecutive blocks of a file that are not written yet, and the first of them.
    burst: (u32, Vec<Block>),
}

impl FatFsDevice {
    pub(crate) fn new(device: CardDevice, layout: Layout) -> FatFsDevice {
        FatFsDevice {
            access: Cell::new(Access::Volume),
            state: RefCell::new(State {
                window: Window::new(device, layout),
                layout,
                fs_info: None,
                is_fs_info_old: false,
                held: Vec::new(),
                burst: (0, Vec::new()),
            }),
        }
    }

    /// Calls `act`, which reads or writes a file; then writes the blocks that were gathered for a burst. `is_new` is true if
    /// the first block is beyond the end of the file.
    pub(crate) fn access_file<T, E: From<DriverError>>(
        &self,
        file: RawFile,
        is_new: bool,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.access.set(Access::File { file, is_new });
        let done = act();
        self.access.set(Access::Volume);
        self.state.borrow_mut().write_burst()?;
        done
    }

    /// Writes the window, and FSInfo if the FAT has changed.
    pub(crate) fn sync(&self) -> Result<(), DriverError> {
        self.state.borrow_mut().sync()
    }

    /// Writes what is left when a card is unmounted: embedded-sdmmc updates FSInfo last.
    pub(crate) fn unmount(&self) -> Result<(), DriverError> {
        let state = &mut *self.state.borrow_mut();
        state.sync()?;
        match state.is_fs_info_old {
            true => state.write_fs_info(),
            false => Ok(()),
        }
    }

    /// Discards the buffer of a file that has been closed.
    pub(crate) fn close(&self, file: RawFile) {
        self.state.borrow_mut().held.retain(|(of, ..)| *of != file);
    }
}

impl State {
    fn read_of_file(
        &mut self,
        file: RawFile,
        is_new: bool,
        block: &mut Block,
        at: u32,
    ) -> Result<(), DriverError> {
        let held = self
            .held
            .iter()
            .find(|(of, held_at, _)| (*of, *held_at) == (file, at));
        match held {
            Some((.., data)) => *block = data.clone(),
            None if is_new => *block = Block::new(),
            None => {
                self.write_burst()?;
                self.window.card().read(at, std::slice::from_mut(block))?;
            }
        }
        self.hold(file, at, block);
        Ok(())
    }

    fn hold(&mut self, file: RawFile, at: u32, block: &Block) {
        self.held.retain(|(of, ..)| *of != file);
        self.held.push((file, at, block.clone()));
    }

    fn write_of_file(&mut self, file: RawFile, block: &Block, at: u32) -> Result<(), DriverError> {
        self.hold(file, at, block);
        let (first, blocks) = &self.burst;
        if at != first + blocks.len() as u32 {
            self.write_burst()?;
            self.burst.0 = at;
        }
        self.burst.1.push(block.clone());
        Ok(())
    }

    fn write_burst(&mut self) -> Result<(), DriverError> {
        let (first, blocks) = std::mem::take(&mut self.burst);
        match blocks.is_empty() {
            true => Ok(()),
            false => self.window.card().write(first, &blocks),
        }
    }

    fn read_of_volume(&mut self, block: &mut Block, at: u32) -> Result<(), DriverError> {
        self.write_burst()?;
        let Some(sector) = at.checked_sub(self.layout.start) else {
            // The partition table, which FatFs does not keep.
            return self.window.card().read(at, std::slice::from_mut(block));
        };
        let is_fs_info = Some(sector) == self.layout.fs_info;
        if is_fs_info && let Some(known) = &self.fs_info {
            *block = known.clone();
            return Ok(());
        }
        *block = self.window.load(sector)?.clone();
        if is_fs_info {
            self.fs_info = Some(block.clone());
        }
        Ok(())
    }

    fn write_of_volume(&mut self, block: &Block, at: u32) -> Result<(), DriverError> {
        self.write_burst()?;
        let sector = at - self.layout.start;
        if self.layout.is_second_fat(sector) {
            // The window writes both.
            return Ok(());
        }
        if Some(sector) == self.layout.fs_info {
            self.fs_info = Some(block.clone());
            self.is_fs_info_old = true;
            return Ok(());
        }
        self.window.replace(sector, block)
    }

    fn sync(&mut self) -> Result<(), DriverError> {
        self.write_burst()?;
        self.window.write_back()?;
        match self.window.take_fat_changed() {
            true => self.write_fs_info(),
            false => Ok(()),
        }
    }

    fn write_fs_info(&mut self) -> Result<(), DriverError> {
        let fs_info = self.layout.fs_info.zip(self.fs_info.as_ref());
        if let Some((sector, block)) = fs_info {
            self.window.replace(sector, block)?;
            self.window.write_back()?;
        }
        self.is_fs_info_old = false;
        Ok(())
    }
}

impl BlockDevice for FatFsDevice {
    type Error = DriverError;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), DriverError> {
        let state = &mut *self.state.borrow_mut();
        for (at, block) in (start.0..).zip(blocks) {
            match self.access.get() {
                Access::File { file, is_new } if state.layout.is_data(at) => {
                    state.read_of_file(file, is_new, block, at)?;
                }
                _ => state.read_of_volume(block, at)?,
            }
        }
        Ok(())
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), DriverError> {
        let state = &mut *self.state.borrow_mut();
        for (at, block) in (start.0..).zip(blocks) {
            match self.access.get() {
                Access::File { file, .. } if state.layout.is_data(at) => {
                    state.write_of_file(file, block, at)?;
                }
                _ => state.write_of_volume(block, at)?,
            }
        }
        Ok(())
    }

    fn num_blocks(&self) -> Result<BlockCount, DriverError> {
        self.state.borrow().window.card().num_blocks()
    }
}

/// The card below embedded-sdmmc: with the accesses of that library, or with those of FatFs.
pub(crate) enum LibraryDevice {
    Plain(CardDevice),
    FatFs(Rc<FatFsDevice>),
}

impl LibraryDevice {
    /// Calls `act` with the card.
    pub(crate) fn with_card<T>(&self, act: impl FnOnce(&CardDevice) -> T) -> T {
        match self {
            LibraryDevice::Plain(card) => act(card),
            LibraryDevice::FatFs(device) => act(device.state.borrow().window.card()),
        }
    }

    /// Returns the card; discards unsynced data. The other owner of a [`FatFsDevice`] must be gone.
    pub(crate) fn into_card(self) -> Card {
        let device = match self {
            LibraryDevice::Plain(card) => return card.into_card(),
            LibraryDevice::FatFs(device) => Rc::into_inner(device),
        };
        let device = device.unwrap_or_else(|| unreachable!("the device is still shared"));
        device.state.into_inner().window.into_card().into_card()
    }
}

impl BlockDevice for LibraryDevice {
    type Error = DriverError;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), DriverError> {
        match self {
            LibraryDevice::Plain(card) => BlockDevice::read(card, blocks, start),
            LibraryDevice::FatFs(device) => device.read(blocks, start),
        }
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), DriverError> {
        match self {
            LibraryDevice::Plain(card) => BlockDevice::write(card, blocks, start),
            LibraryDevice::FatFs(device) => device.write(blocks, start),
        }
    }

    fn num_blocks(&self) -> Result<BlockCount, DriverError> {
        self.with_card(BlockDevice::num_blocks)
    }
}
