//! Block access: each block is written to its file immediately, and is durable when its stream has ended.

use super::{CARD_BLOCKS, DirectoryCard, DirectoryError, Folder, NO_BLOCK, RANGE_BLOCKS};
use cardiograph_card::{BLOCK_BYTES, Block, BlockDevice, WriteError};
use cardiograph_recorder::Blocks;
use cardiograph_system::Positioned;
use std::mem::take;
use std::time::Instant;

impl Folder {
    fn read(&self, start: u32, blocks: &mut [Block]) -> Result<(), DirectoryError> {
        // The recorder reads `NO_BLOCK` in order to yield to samples; see `step` in `volume.rs`.
        if start == NO_BLOCK {
            return Ok(());
        }
        let (slot, index) = slot_and_index(start);
        let unfinished = self.unfinished(slot)?;
        let offset = u64::from(index) * BLOCK_BYTES as u64;
        let read = unfinished
            .file
            .read_exact_at(blocks.as_flattened_mut(), offset);
        read.map_err(DirectoryError::at(&unfinished.path))
    }

    fn begin(&mut self, start: u32) -> Result<(), DirectoryError> {
        self.end()?;
        self.stream = Some(slot_and_index(start));
        Ok(())
    }

    fn push(&mut self, block: &Block) -> Result<(), DirectoryError> {
        self.spent.bytes += BLOCK_BYTES as u64;
        self.timed(|folder| folder.push_to_stream(block))
    }

    fn push_to_stream(&mut self, block: &Block) -> Result<(), DirectoryError> {
        let Some((slot, index)) = self.stream else {
            return Err(DirectoryError::NotUnfinished(self.path.clone()));
        };
        let unfinished = self.unfinished(slot)?;
        let offset = u64::from(index) * BLOCK_BYTES as u64;
        let written = unfinished.file.write_all_at(block, offset);
        written.map_err(DirectoryError::at(&unfinished.path))?;
        if let Some(unfinished) = &mut self.files[slot] {
            let is_binary = unfinished.note != 0;
            unfinished.data.add(index, block, is_binary);
        }
        self.stream = Some((slot, index + 1));
        Ok(())
    }

    /// Makes the written blocks durable, and checks that the file still has its name.
    fn end(&mut self) -> Result<(), DirectoryError> {
        let ended = self.timed(Folder::end_stream);
        let spent = take(&mut self.spent);
        if let Some(writes) = &self.writes
            && spent.bytes > 0
        {
            writes.add(spent.time, spent.bytes);
        }
        ended
    }

    /// Runs an operation on the folder; if anyone reads the stream's write time, adds the duration of the
    /// operation to it.
    fn timed<T>(&mut self, operation: impl FnOnce(&mut Folder) -> T) -> T {
        if self.writes.is_none() {
            return operation(self);
        }
        let begun = Instant::now();
        let done = operation(self);
        self.spent.time += begun.elapsed();
        done
    }

    fn end_stream(&mut self) -> Result<(), DirectoryError> {
        let Some((slot, _)) = self.stream.take() else {
            return Ok(());
        };
        let unfinished = self.unfinished(slot)?;
        let synced = unfinished.file.sync_data();
        synced.map_err(DirectoryError::at(&unfinished.path))?;
        unfinished.check_is_there()?;
        if let Some(unfinished) = &mut self.files[slot] {
            unfinished.commit();
        }
        Ok(())
    }
}

/// Returns the slot of a block address, and the index of the block in the file.
fn slot_and_index(block: u32) -> (usize, u32) {
    ((block / RANGE_BLOCKS) as usize, block % RANGE_BLOCKS)
}

fn write_error(cause: DirectoryError) -> WriteError<DirectoryError> {
    WriteError {
        cause,
        durable_blocks: 0,
    }
}

impl BlockDevice for DirectoryCard {
    type Error = DirectoryError;

    async fn acquire(&mut self) -> Result<(), DirectoryError> {
        let mut folder = self.folder.borrow_mut();
        match take(&mut folder.is_fresh) {
            true => Ok(()),
            false => self.failure.note(folder.open()),
        }
    }

    fn blocks(&self) -> u32 {
        CARD_BLOCKS
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), DirectoryError> {
        self.folder.borrow().read(start, blocks)
    }

    async fn write(
        &mut self,
        start: u32,
        blocks: &[Block],
    ) -> Result<(), WriteError<DirectoryError>> {
        let mut folder = self.folder.borrow_mut();
        let written = folder.begin(start).and_then(|()| {
            blocks.iter().try_for_each(|block| folder.push(block))?;
            folder.end()
        });
        self.failure.note(written).map_err(write_error)
    }

    async fn begin(&mut self, start: u32, _: u32) -> Result<(), WriteError<DirectoryError>> {
        let done = self.folder.borrow_mut().begin(start);
        self.failure.note(done).map_err(write_error)
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<DirectoryError>> {
        let done = self.folder.borrow_mut().push(block);
        self.failure.note(done).map_err(write_error)
    }

    async fn end(&mut self) -> Result<(), WriteError<DirectoryError>> {
        let done = self.folder.borrow_mut().end();
        self.failure.note(done).map_err(write_error)
    }
}

/// Block access for a recovery without a recorder.
impl Blocks for DirectoryCard {
    type Error = DirectoryError;

    fn blocks(&self) -> u32 {
        CARD_BLOCKS
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), DirectoryError> {
        self.folder.borrow().read(start, blocks)
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), DirectoryError> {
        let mut folder = self.folder.borrow_mut();
        folder.begin(start)?;
        let mut block = [0; BLOCK_BYTES];
        for index in 0..count {
            make(index, &mut block);
            folder.push(&block)?;
        }
        folder.end()
    }
}
