//! A disk in memory with blocks that fail.

use super::fuse::Disk;

const EIO: i32 = 5;

pub struct Faulty {
    memory: Vec<u8>,
    /// Addresses of bytes, whose calls fail.
    bad: Vec<u64>,
}

impl Faulty {
    pub fn new(bytes: u64, bad: &[u64]) -> Faulty {
        Faulty {
            memory: vec![0; bytes as usize],
            bad: bad.to_vec(),
        }
    }

    fn check(&self, offset_bytes: u64, length: usize) -> Result<(), i32> {
        let range = offset_bytes..offset_bytes + length as u64;
        match self.bad.iter().any(|bad| range.contains(bad)) {
            true => Err(EIO),
            false => Ok(()),
        }
    }
}

impl Disk for Faulty {
    fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        self.check(offset_bytes, buffer.len())?;
        let at = offset_bytes as usize;
        buffer.copy_from_slice(&self.memory[at..at + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        self.check(offset_bytes, data.len())?;
        let at = offset_bytes as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}
