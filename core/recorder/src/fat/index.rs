//! The index of a folder: a hidden file of 1,000 records, one for each number. docs/formats.md documents it
//! byte by byte.
//!
//! A record is written before its file is closed and is not valid until then: a mount clears the records of
//! unfinished files. The number determines a record's position, so writing it again changes nothing.

use super::folder::Found;
use super::record::{File, Kind, get, put};
use super::{DosTime, Error, FatVolume};
use crate::crc32::crc32;
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, FileRecord, ShortText};
use cardiograph_card::BLOCK_BYTES;

/// Size of a record in bytes.
pub const INDEX_RECORD_BYTES: usize = 128;
const RECORDS_OF_BLOCK: u32 = (BLOCK_BYTES / INDEX_RECORD_BYTES) as u32;
const _: () = assert!(BLOCK_BYTES.is_multiple_of(INDEX_RECORD_BYTES));
// Every folder begins with a whole block.
const _: () = assert!(FOLDER_RECORDINGS_MAX.is_multiple_of(RECORDS_OF_BLOCK));
/// Number of blocks of an index.
pub(crate) const INDEX_BLOCKS: u32 = FOLDER_RECORDINGS_MAX.div_ceil(RECORDS_OF_BLOCK);

const CRC_AT: usize = 0;
const VERSION_AT: usize = 4;
const FLAGS_AT: usize = 5;
const SESSION_BYTES_AT: usize = 6;
const PREFIX_AT: usize = 8;
const EXTENSION_AT: usize = 11;
const PLACE_AT: usize = 14;
const NUMBER_AT: usize = 16;
const FIRST_AT: usize = 20;
const ORDER_AT: usize = 24;
const DATE_AT: usize = 28;
const TIME_AT: usize = 30;
const BYTES_AT: usize = 32;
const FIRST_US_AT: usize = 40;
const LAST_US_AT: usize = 48;
const SAMPLES_AT: usize = 56;
const LOST_AT: usize = 64;
const GAPS_AT: usize = 72;
const SESSION_AT: usize = 80;
const _: () = assert!(SESSION_AT + ShortText::BYTES_MAX <= INDEX_RECORD_BYTES);

const VERSION: u8 = 2;
const IS_RECOVERED: u8 = 1;

/// A record of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRecord {
    /// The recording.
    pub record: FileRecord,
    /// Date and time at which the recording began; `None` if the device had no clock.
    pub created: Option<DosTime>,
    /// The file's first cluster; 0 if the file is empty.
    pub(super) first: u32,
    /// Position of its entry in the folder's directory.
    pub(super) place: u16,
    /// Number of epochs used when the recording was closed: lowest for the oldest recording.
    pub(super) order: u32,
}

impl IndexRecord {
    /// Decodes a record. Returns `None` if it is empty or damaged.
    pub fn decode(bytes: &[u8; INDEX_RECORD_BYTES]) -> Option<IndexRecord> {
        let get16 = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let get64 = |at: usize| u64::from(get(bytes, at)) | u64::from(get(bytes, at + 4)) << 32;
        let is_whole = bytes[VERSION_AT] == VERSION && get(bytes, CRC_AT) == checksum(bytes);
        let session = &bytes[SESSION_AT..][..ShortText::BYTES_MAX];
        let session = session.get(..bytes[SESSION_BYTES_AT].into())?;
        let session = core::str::from_utf8(session).ok()?;
        let three = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2]];
        let record = FileRecord {
            id: FileId {
                prefix: three(PREFIX_AT),
                extension: three(EXTENSION_AT),
                number: get(bytes, NUMBER_AT),
            },
            session: ShortText::new(session)?,
            bytes: get64(BYTES_AT),
            first_us: get64(FIRST_US_AT),
            last_us: get64(LAST_US_AT),
            samples: get64(SAMPLES_AT),
            gaps: get(bytes, GAPS_AT),
            lost: get64(LOST_AT),
            is_recovered: bytes[FLAGS_AT] & IS_RECOVERED != 0,
        };
        let (date, time) = (get16(DATE_AT), get16(TIME_AT));
        (is_whole && record.id.is_valid()).then_some(IndexRecord {
            record,
            created: (date != 0).then_some(DosTime { date, time }),
            first: get(bytes, FIRST_AT),
            place: get16(PLACE_AT),
            order: get(bytes, ORDER_AT),
        })
    }

    fn encode(&self) -> [u8; INDEX_RECORD_BYTES] {
        let mut bytes = [0; INDEX_RECORD_BYTES];
        let record = &self.record;
        let session = record.session.as_str().as_bytes();
        bytes[VERSION_AT] = VERSION;
        bytes[FLAGS_AT] = if record.is_recovered { IS_RECOVERED } else { 0 };
        bytes[SESSION_BYTES_AT] = session.len() as u8;
        bytes[PREFIX_AT..][..3].copy_from_slice(&record.id.prefix);
        bytes[EXTENSION_AT..][..3].copy_from_slice(&record.id.extension);
        bytes[PLACE_AT..][..2].copy_from_slice(&self.place.to_le_bytes());
        let DosTime { date, time } = self.created.unwrap_or(DosTime { date: 0, time: 0 });
        bytes[DATE_AT..][..2].copy_from_slice(&date.to_le_bytes());
        bytes[TIME_AT..][..2].copy_from_slice(&time.to_le_bytes());
        for (at, value) in [
            (NUMBER_AT, record.id.number),
            (FIRST_AT, self.first),
            (ORDER_AT, self.order),
            (GAPS_AT, record.gaps),
        ] {
            put(&mut bytes, at, value);
        }
        for (at, value) in [
            (BYTES_AT, record.bytes),
            (FIRST_US_AT, record.first_us),
            (LAST_US_AT, record.last_us),
            (SAMPLES_AT, record.samples),
            (LOST_AT, record.lost),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[SESSION_AT..][..session.len()].copy_from_slice(session);
        let crc = checksum(&bytes);
        put(&mut bytes, CRC_AT, crc);
        bytes
    }
}

fn checksum(bytes: &[u8; INDEX_RECORD_BYTES]) -> u32 {
    crc32(0, &bytes[CRC_AT + 4..])
}

impl FatVolume {
    /// Calls `show` for each finished recording of a folder, in the order of their numbers. Reads only the
    /// index and opens no recording. `folder` is the number in the folder's name. Also lists recordings that
    /// another program has since deleted or renamed.
    ///
    /// # Errors
    /// Card errors, and [`Error::NotMounted`].
    pub async fn list_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
        folder: u32,
        mut show: impl FnMut(&IndexRecord),
    ) -> Result<(), Error<B::Error>> {
        self.check_ready()?;
        let begin = folder.saturating_mul(FOLDER_RECORDINGS_MAX);
        let end = begin.saturating_add(FOLDER_RECORDINGS_MAX);
        let mut from = begin;
        while let Some(found) = self.next_indexed(card, prefix, from..end).await? {
            from = found.record.id.number + 1;
            show(&found);
        }
        Ok(())
    }

    /// Reads the index block of a recording and returns its block address, or `None` if the folder does not
    /// exist.
    async fn index_block<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<Option<u32>, Error<B::Error>> {
        let Found::Own(first) = self.find_folder(card, id).await? else {
            return Ok(None);
        };
        let start = self
            .layout
            .block_of(first + self.layout.directory_clusters());
        let block = start + id.number % FOLDER_RECORDINGS_MAX / RECORDS_OF_BLOCK;
        self.read(card, block).await?;
        Ok(Some(block))
    }

    fn index_record(&self, id: FileId) -> Option<IndexRecord> {
        let (records, _) = self.block.as_chunks::<INDEX_RECORD_BYTES>();
        let at = id.number % RECORDS_OF_BLOCK;
        let found = IndexRecord::decode(&records[at as usize])?;
        let is_it = (found.record.id.prefix, found.record.id.number) == (id.prefix, id.number);
        is_it.then_some(found)
    }

    /// Returns the first recording with one of these numbers in the index of one folder.
    pub(super) async fn next_indexed<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
        numbers: core::ops::Range<u32>,
    ) -> Result<Option<IndexRecord>, Error<B::Error>> {
        let mut is_read = false;
        for number in numbers {
            let id = FileId {
                prefix,
                extension: *b"   ",
                number,
            };
            let is_first = number.is_multiple_of(RECORDS_OF_BLOCK);
            if (is_first || !is_read) && self.index_block(card, id).await?.is_none() {
                return Ok(None);
            }
            is_read = true;
            if let Some(found) = self.index_record(id) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Writes a file's record to the index, or clears it. Does nothing if the folder has no index of this
    /// recorder.
    pub(super) async fn write_index<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
        record: Option<&IndexRecord>,
    ) -> Result<(), Error<B::Error>> {
        let Some(block) = self.index_block(card, id).await? else {
            return Ok(());
        };
        let (records, _) = self.block.as_chunks_mut::<INDEX_RECORD_BYTES>();
        let at = id.number % RECORDS_OF_BLOCK;
        let bytes = record.map_or([0; INDEX_RECORD_BYTES], IndexRecord::encode);
        if records[at as usize] == bytes {
            return Ok(());
        }
        records[at as usize] = bytes;
        self.write_back(card, block).await
    }

    /// Lists a file that is about to be closed.
    pub(super) async fn list<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        record: &FileRecord,
        is_dated: bool,
    ) -> Result<(), Error<B::Error>> {
        let listed = self.record_of(card, file, record, is_dated).await?;
        match &listed {
            Some(listed) => self.write_index(card, record.id, Some(listed)).await,
            None => Ok(()),
        }
    }

    /// Returns the index record of a file that is about to be closed.
    async fn record_of<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        record: &FileRecord,
        is_dated: bool,
    ) -> Result<Option<IndexRecord>, Error<B::Error>> {
        let Found::Own(folder) = self.find_folder(card, record.id).await? else {
            return Ok(None);
        };
        let Some(entry) = self.entry_of(card, &file, file.first).await? else {
            return Ok(None);
        };
        let (date, time, _) = entry.created();
        let created = DosTime { date, time };
        let block = file.place.block - self.layout.block_of(folder);
        Ok(Some(IndexRecord {
            record: *record,
            created: (is_dated && created != DosTime::NO_CLOCK).then_some(created),
            first: if record.bytes == 0 { 0 } else { file.first },
            place: block as u16 * super::record::ENTRIES_OF_BLOCK as u16
                + u16::from(file.place.index),
            order: self.record.epochs,
        }))
    }

    /// Clears the records of unfinished files.
    pub(super) async fn clear_unfinished<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<(), Error<B::Error>> {
        for slot in 0..self.record.reserved.len() {
            if let Some(file) = self.record.reserved[slot]
                && file.kind == Kind::Named
                && let Some(id) = file.id()
            {
                self.write_index(card, id, None).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_no_other_way() {
        let id = FileId {
            prefix: *b"LOG",
            extension: *b"CSV",
            number: 100_012,
        };
        let whole = IndexRecord {
            record: FileRecord {
                session: ShortText::new("first-flight_2").unwrap(),
                first_us: 1 << 40,
                last_us: u64::MAX,
                samples: 77,
                gaps: 3,
                lost: 1 << 33,
                is_recovered: true,
                ..FileRecord::of_length(id, u32::MAX.into())
            },
            created: Some(DosTime {
                date: 46 << 9 | 11 << 5 | 21,
                time: 12 << 11,
            }),
            first: 0x0ABC_DEF0,
            place: 5359,
            order: 9,
        };
        let bytes = whole.encode();
        assert_eq!(IndexRecord::decode(&bytes), Some(whole));
        for bit in 0..INDEX_RECORD_BYTES * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(IndexRecord::decode(&other), None, "bit {bit}");
        }
        assert_eq!(IndexRecord::decode(&[0; INDEX_RECORD_BYTES]), None);
    }
}
