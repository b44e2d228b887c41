//! Finished recordings, from the indices of their folders: no recording is opened.

use super::reader::OnDesk;
use super::{CardFiles, FileError};
use crate::ReadError;
use crate::fat::{DirCursor, INDEX_BLOCKS, INDEX_RECORD_BYTES, IndexRecord, Layout, Walk};
use crate::recover::Reader;
use crate::volume::FOLDER_RECORDINGS_MAX;
use cardiograph_card::BLOCK_BYTES;

/// Records of the index in one block.
const RECORDS_OF_BLOCK: u32 = (BLOCK_BYTES / INDEX_RECORD_BYTES) as u32;

/// Position in the list of finished recordings.
#[derive(Clone, Copy, Debug)]
pub struct RecordingPosition {
    cursor: DirCursor,
    generation: u32,
    /// Number of folders begun.
    folders: u32,
    /// First block of the current folder's index, and the number of the next record in it.
    index: Option<(u32, u32)>,
}

impl RecordingPosition {
    /// Returns the number of folders begun, and of records passed in the last one, from which
    /// [`recordings`](CardFiles::recordings) can continue.
    pub fn place(&self) -> (u32, u32) {
        (self.folders, self.index.map_or(0, |(_, number)| number))
    }
}

impl CardFiles<'_, '_> {
    /// Begins to list the finished recordings, at a [`place`](RecordingPosition::place); (0, 0) is the beginning.
    ///
    /// # Errors
    /// [`FileError::Damaged`], or a failed read.
    pub async fn recordings(&self, place: (u32, u32)) -> Result<RecordingPosition, FileError> {
        let layout = self.layout()?;
        let generation = self.desk.generation();
        let reader = OnDesk::new(self.desk, generation);
        let cursor = Walk::new(reader, &layout).open(&crate::fat::Node::Root)?;
        let mut position = RecordingPosition {
            cursor,
            generation,
            folders: 0,
            index: None,
        };
        while position.folders < place.0 {
            let Some((start, _)) = self.next_folder(&mut position, &layout).await? else {
                break;
            };
            position.index = Some((start, place.1));
        }
        Ok(position)
    }

    /// Returns the next finished recording, or `None` after the last one: folders in the order of the root
    /// directory, and in each folder by number. Another program may have deleted a recording in the meantime.
    ///
    /// # Errors
    /// [`FileError::Damaged`], or a failed read.
    pub async fn next_recording(
        &self,
        position: &mut RecordingPosition,
    ) -> Result<Option<IndexRecord>, FileError> {
        let layout = self.layout()?;
        loop {
            // Removals meanwhile move neither folders nor records, so only the last step is repeated.
            position.generation = self.follow(position.generation)?;
            if position.index.is_none() {
                position.index = self.next_folder(position, &layout).await?;
            }
            let Some((start, number)) = &mut position.index else {
                return Ok(None);
            };
            if *number >= FOLDER_RECORDINGS_MAX {
                position.index = None;
                continue;
            }
            let (block, at) = (
                *start + *number / RECORDS_OF_BLOCK,
                *number % RECORDS_OF_BLOCK,
            );
            let mut reader = OnDesk::new(self.desk, position.generation);
            let left = INDEX_BLOCKS - *number / RECORDS_OF_BLOCK;
            match reader.read_ahead(block, left).await {
                Err(ReadError::Changed) => continue,
                read => read?,
            }
            *number += 1;
            let block = reader.block();
            let (records, _) = block.as_chunks::<INDEX_RECORD_BYTES>();
            if let Some(record) = records.get(at as usize).and_then(IndexRecord::decode) {
                return Ok(Some(record));
            }
        }
    }

    /// Returns the index of the next folder of recordings in the root directory.
    async fn next_folder(
        &self,
        position: &mut RecordingPosition,
        layout: &Layout,
    ) -> Result<Option<(u32, u32)>, FileError> {
        loop {
            position.generation = self.follow(position.generation)?;
            let mut walk = Walk::new(OnDesk::new(self.desk, position.generation), layout);
            let mut cursor = position.cursor;
            let found = async {
                let Some((entry, _)) = walk.next(&mut cursor, &mut [0; 16]).await? else {
                    return Ok(None);
                };
                Ok(Some(walk.index_of(&entry).await?))
            };
            let found = found.await;
            let found = match found.map_err(|error: crate::fat::Error<ReadError>| error.into()) {
                Err(FileError::Changed) => continue,
                found => found?,
            };
            position.cursor = cursor;
            let Some(index) = found else {
                return Ok(None);
            };
            if let Some(start) = index {
                position.folders += 1;
                return Ok(Some((start, 0)));
            }
        }
    }
}
