//! A disk without a file system as a store of a workload.

use crate::error::remedy;
use crate::medium::{Aligned, Medium};
use crate::pattern;
use crate::{DiskError, RawDisk};
use cardiograph_system::is_of_medium;
use cardiograph_workload::{Flush, Store, Workload};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::ControlFlow;

/// Regions begin at multiples of this length: where allocation units of cards may begin.
const REGION_ALIGNMENT_BYTES: u64 = 4 << 20;

/// Alignment of the regions of files that are smaller than that.
const SMALL_ALIGNMENT_BYTES: u64 = 4 << 10;

/// Length of the writes before the measurement.
const PRECONDITION_BYTES: u64 = 1 << 20;

/// Number of blocks that may fail before the run ends.
const FAILED_MAX: usize = 64;

/// A whole disk whose files are regions of equal length, the lowest free one for each new file.
///
/// A write that fails with an I/O error is recorded with its address, and the run goes on: its data are remembered, so
/// that reading back can go on as well.
pub struct RawStore<M = RawDisk> {
    disk: M,
    region_bytes: u64,
    /// Path and length of the file in each region.
    regions: Vec<Option<(String, u64)>>,
    /// Writes that failed, by address: their errors and data.
    failed: BTreeMap<u64, (String, Vec<u8>)>,
    /// True once the disk has been compared with the identity shown.
    is_checked: bool,
    check: fn(&M) -> Result<(), DiskError>,
}

/// A block that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedBlock {
    /// Address on the disk.
    pub offset_bytes: u64,
    /// Error of the operating system.
    pub error: String,
}

/// Error of an operation on a disk.
#[derive(Debug)]
pub enum RawStoreError {
    /// The disk is smaller than the workload.
    Full {
        /// Capacity that the workload needs.
        needed_bytes: u64,
    },
    /// The disk is not the one shown.
    Disk(Box<DiskError>),
    /// An access failed.
    Io {
        /// Address on the disk.
        offset_bytes: u64,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A payload is not a whole number of blocks.
    NotWholeBlocks {
        /// Size of a block.
        block_bytes: u32,
    },
    /// The runner asked for a file that does not exist, or one that does.
    Path,
}

impl std::error::Error for RawStoreError {}

impl fmt::Display for RawStoreError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RawStoreError::Full { needed_bytes } => write!(
                f,
                "the disk ends before byte {needed_bytes}; choose a workload that writes less"
            ),
            RawStoreError::Disk(error) => error.fmt(f),
            RawStoreError::Io {
                offset_bytes,
                source,
            } => {
                let remedy = remedy(source);
                write!(f, "byte {offset_bytes} of the disk: {source}; {remedy}")
            }
            RawStoreError::NotWholeBlocks { block_bytes } => write!(
                f,
                "the payload is not a multiple of the disk's blocks of {block_bytes} B; choose a workload with whole blocks"
            ),
            RawStoreError::Path => f.write_str("no such file"),
        }
    }
}

/// An open file of a [`RawStore`].
pub struct Region {
    index: usize,
}

impl RawStore {
    /// Uses a disk that may be overwritten; its identity is compared once more before the first write.
    pub fn new(disk: RawDisk, workload: &Workload) -> RawStore {
        RawStore::on(disk, workload, RawDisk::check_unchanged)
    }
}

impl<M: Medium> RawStore<M> {
    pub(crate) fn on(
        disk: M,
        workload: &Workload,
        check: fn(&M) -> Result<(), DiskError>,
    ) -> RawStore<M> {
        let files = workload.phases.iter().map(|phase| phase.file_bytes());
        RawStore {
            disk,
            region_bytes: region_bytes(files.max().unwrap_or(1)),
            regions: Vec::new(),
            failed: BTreeMap::new(),
            is_checked: false,
            check,
        }
    }

    /// Returns the disk.
    pub fn into_disk(self) -> M {
        self.disk
    }

    /// Returns the disk.
    pub fn disk(&self) -> &M {
        &self.disk
    }

    /// Returns the distance of two files on the disk.
    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// Returns the blocks that could not be written, by ascending address.
    pub fn failed_blocks(&self) -> Vec<FailedBlock> {
        let failed = self.failed.iter();
        failed
            .map(|(&offset_bytes, (error, _))| FailedBlock {
                offset_bytes,
                error: error.clone(),
            })
            .collect()
    }

    /// Overwrites the regions that the workload will use, in ascending order. `go_on` gets the number of bytes written so
    /// far; `Break` ends the writes. Returns the number of bytes.
    ///
    /// # Errors
    /// If the disk is too small, is not the one shown, or failed as a whole.
    pub fn precondition(
        &mut self,
        workload: &Workload,
        mut go_on: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<u64, RawStoreError> {
        let files = workload.phases.iter().map(|phase| phase.files).max();
        let needed_bytes = u64::from(files.unwrap_or(0)) * self.region_bytes;
        if needed_bytes > self.disk.capacity_bytes() {
            return Err(RawStoreError::Full { needed_bytes });
        }
        self.check_identity()?;
        let mut memory = Aligned::zeros(PRECONDITION_BYTES as usize);
        let mut written_bytes = 0;
        while written_bytes < needed_bytes {
            let length = PRECONDITION_BYTES.min(needed_bytes - written_bytes);
            let data = &mut memory.bytes()[..length as usize];
            pattern::fill(0, written_bytes, data);
            if let Err(error) = self.disk.write_at(written_bytes, data) {
                // The workload reads back only what it has written itself.
                self.record(written_bytes, &[], error)?;
            }
            written_bytes += length;
            if go_on(written_bytes).is_break() {
                break;
            }
        }
        self.disk.flush().map_err(|source| RawStoreError::Io {
            offset_bytes: 0,
            source,
        })?;
        Ok(written_bytes)
    }

    /// Compares the disk with the identity shown, before the first write.
    fn check_identity(&mut self) -> Result<(), RawStoreError> {
        if !self.is_checked {
            (self.check)(&self.disk).map_err(|error| RawStoreError::Disk(Box::new(error)))?;
            self.is_checked = true;
        }
        Ok(())
    }

    fn find(&self, path: &str) -> Option<usize> {
        let is_it = |region: &Option<(String, u64)>| region.as_ref().is_some_and(|r| r.0 == path);
        self.regions.iter().position(is_it)
    }

    fn address(&self, region: usize, offset_bytes: u64) -> u64 {
        region as u64 * self.region_bytes + offset_bytes
    }

    fn check_blocks(&self, length: usize) -> Result<(), RawStoreError> {
        let block_bytes = self.disk.block_bytes();
        match length.is_multiple_of(block_bytes as usize) {
            true => Ok(()),
            false => Err(RawStoreError::NotWholeBlocks { block_bytes }),
        }
    }

    /// Records a failed write; an error if the disk as a whole has failed, or if the disk is not to blame.
    #[cold]
    fn record(
        &mut self,
        address: u64,
        data: &[u8],
        source: io::Error,
    ) -> Result<(), RawStoreError> {
        let is_of_block = is_of_medium(&source) && (self.check)(&self.disk).is_ok();
        if self.failed.len() >= FAILED_MAX || !is_of_block {
            return Err(RawStoreError::Io {
                offset_bytes: address,
                source,
            });
        }
        self.failed
            .insert(address, (source.to_string(), data.to_vec()));
        Ok(())
    }
}

/// Returns the length of a region for files of the given length.
fn region_bytes(file_bytes: u64) -> u64 {
    match file_bytes >= REGION_ALIGNMENT_BYTES {
        true => file_bytes.next_multiple_of(REGION_ALIGNMENT_BYTES),
        false => file_bytes.next_multiple_of(SMALL_ALIGNMENT_BYTES),
    }
}

impl<M: Medium> Store for RawStore<M> {
    type File = Region;
    type Error = RawStoreError;

    fn has_long_names(&self) -> bool {
        true
    }

    fn mkdir(&mut self, _: &str) -> Result<bool, RawStoreError> {
        Ok(true)
    }

    fn create(&mut self, path: &str) -> Result<Region, RawStoreError> {
        if self.find(path).is_some() {
            return Err(RawStoreError::Path);
        }
        let free = self.regions.iter().position(Option::is_none);
        let index = free.unwrap_or(self.regions.len());
        let needed_bytes = self.address(index, self.region_bytes);
        if needed_bytes > self.disk.capacity_bytes() {
            return Err(RawStoreError::Full { needed_bytes });
        }
        if free.is_none() {
            self.regions.push(None);
        }
        self.regions[index] = Some((path.to_string(), 0));
        Ok(Region { index })
    }

    fn append(&mut self, path: &str) -> Result<Region, RawStoreError> {
        match self.find(path) {
            Some(index) => Ok(Region { index }),
            None => self.create(path),
        }
    }

    fn open(&mut self, path: &str, _: bool) -> Result<Region, RawStoreError> {
        let index = self.find(path).ok_or(RawStoreError::Path)?;
        Ok(Region { index })
    }

    #[inline]
    fn write(
        &mut self,
        file: &mut Region,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), RawStoreError> {
        self.check_identity()?;
        self.check_blocks(data.len())?;
        let address = self.address(file.index, offset_bytes);
        if let Err(error) = self.disk.write_at(address, data) {
            self.record(address, data, error)?;
        } else if !self.failed.is_empty() {
            self.failed.retain(|&at, (_, old)| {
                at + old.len() as u64 <= address || address + data.len() as u64 <= at
            });
        }
        if let Some((_, length_bytes)) = &mut self.regions[file.index] {
            *length_bytes = (*length_bytes).max(offset_bytes + data.len() as u64);
        }
        Ok(())
    }

    fn read(
        &mut self,
        file: &mut Region,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, RawStoreError> {
        let length_bytes = self.regions[file.index]
            .as_ref()
            .map_or(0, |region| region.1);
        let left = length_bytes.saturating_sub(offset_bytes);
        let length = left.min(buffer.len() as u64) as usize;
        let address = self.address(file.index, offset_bytes);
        if let Some((_, data)) = self
            .failed
            .get(&address)
            .filter(|(_, data)| data.len() >= length)
        {
            buffer[..length].copy_from_slice(&data[..length]);
            return Ok(length);
        }
        let read = self.disk.read_at(address, &mut buffer[..length]);
        read.map_err(|source| RawStoreError::Io {
            offset_bytes: address,
            source,
        })?;
        Ok(length)
    }

    fn flush(&mut self, file: &mut Region, _: Flush) -> Result<(), RawStoreError> {
        let offset_bytes = self.address(file.index, 0);
        self.disk.flush().map_err(|source| RawStoreError::Io {
            offset_bytes,
            source,
        })
    }

    fn close(&mut self, _: Region) -> Result<(), RawStoreError> {
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), RawStoreError> {
        if let Some(index) = self.find(path) {
            self.regions[index] = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_workload::Phase;

    /// Fails every write.
    struct Failing(i32);

    impl Medium for Failing {
        fn capacity_bytes(&self) -> u64 {
            1 << 20
        }

        fn block_bytes(&self) -> u32 {
            512
        }

        fn read_at(&mut self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }

        fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(self.0))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn errors_of_the_computer_end_the_run_and_do_not_blame_the_disk() {
        const EIO: i32 = 5;
        const ENOMEM: i32 = 12;
        let phases = [Phase {
            calls_per_file: 1,
            ..Phase::WRITE
        }];
        let workload = Workload {
            name: "test",
            study: "",
            about: "",
            phases: &phases,
        };
        let written = |errno| {
            let mut store = RawStore::on(Failing(errno), &workload, |_| Ok(()));
            let mut file = store.create("a").unwrap();
            let written = store.write(&mut file, 0, &[0; 512]);
            written.map(|()| store.failed_blocks().len())
        };
        assert_eq!(written(EIO).unwrap(), 1);
        let text = written(ENOMEM).unwrap_err().to_string();
        assert!(
            text.starts_with("byte 0 of the disk: Cannot allocate memory"),
            "{text}"
        );
        assert!(!text.contains("do not trust"), "{text}");
        let source = io::Error::from_raw_os_error(EIO);
        let of_disk = RawStoreError::Io {
            offset_bytes: 0,
            source,
        };
        assert!(of_disk.to_string().contains("do not trust it with data"));
    }
}
