//! A disk in memory that claims more than it keeps: writes beyond its real capacity are lost without an error.

use super::fuse::Disk;

/// Contents of the whole disk at the beginning; later writes beyond the real capacity change nothing.
pub struct Fake {
    content: Vec<u8>,
    real_bytes: usize,
}

impl Fake {
    /// Returns a disk with this content.
    pub fn new(content: Vec<u8>, real_bytes: usize) -> Fake {
        Fake {
            content,
            real_bytes,
        }
    }
}

impl Disk for Fake {
    fn bytes(&self) -> u64 {
        self.content.len() as u64
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        let at = offset_bytes as usize;
        buffer.copy_from_slice(&self.content[at..at + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        let at = offset_bytes as usize;
        let kept = data.len().min(self.real_bytes.saturating_sub(at));
        self.content[at..at + kept].copy_from_slice(&data[..kept]);
        Ok(())
    }
}
