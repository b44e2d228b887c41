//! Blocks of tar archives (POSIX ustar; pax headers for long names).

use core::fmt::{self, Write};

/// Size of a block.
pub(crate) const BLOCK_BYTES: usize = 512;
/// Blocks of zeros at the end of an archive.
pub(crate) const END_BLOCKS: u64 = 2;
/// Longest name that needs no pax header.
const NAME_BYTES_MAX: usize = 100;
/// Largest size in 11 octal digits.
const OCTAL_MAX: u64 = 8_589_934_591;

/// Name of a file in an archive: a folder, which may be empty, and a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) folder: &'a str,
    pub(crate) name: &'a str,
    pub(crate) bytes: u64,
    pub(crate) modified_s: u64,
}

impl Member<'_> {
    fn name_bytes(&self) -> usize {
        match self.folder {
            "" => self.name.len(),
            folder => folder.len() + 1 + self.name.len(),
        }
    }

    fn write_name(&self, out: &mut impl Write) -> fmt::Result {
        if !self.folder.is_empty() {
            write!(out, "{}/", self.folder)?;
        }
        out.write_str(self.name)
    }

    /// Returns the number of blocks ahead of the contents.
    pub(crate) fn head_blocks(&self) -> u64 {
        match self.name_bytes() {
            ..=NAME_BYTES_MAX => 1,
            _ => 2 + self.record_bytes().div_ceil(BLOCK_BYTES) as u64,
        }
    }

    /// Returns the number of blocks of the contents.
    pub(crate) fn data_blocks(&self) -> u64 {
        self.bytes.div_ceil(BLOCK_BYTES as u64)
    }

    /// Writes block `index` of the head.
    pub(crate) fn head_block(&self, index: u64, block: &mut [u8; BLOCK_BYTES]) {
        let last = self.head_blocks() - 1;
        if index == last {
            self.header(block, b'0', self.bytes);
        } else if index == 0 {
            self.header(block, b'x', self.record_bytes() as u64);
        } else {
            block.fill(0);
            let mut out = Window {
                skip: (index as usize - 1) * BLOCK_BYTES,
                bytes: block,
                len: 0,
            };
            // Writing to a window never fails.
            let _ = write!(out, "{} path=", self.record_bytes());
            let _ = self.write_name(&mut out);
            let _ = out.write_str("\n");
        }
    }

    /// Returns the length of the pax record with the name. It counts its own digits: three, because the name has
    /// more than 100 bytes and fewer than 600.
    fn record_bytes(&self) -> usize {
        3 + " path=\n".len() + self.name_bytes()
    }

    fn header(&self, block: &mut [u8; BLOCK_BYTES], kind: u8, bytes: u64) {
        block.fill(0);
        let mut name = Window {
            skip: 0,
            bytes: &mut block[..NAME_BYTES_MAX],
            len: 0,
        };
        let _ = self.write_name(&mut name);
        octal(&mut block[100..107], 0o644);
        octal(&mut block[108..115], 0);
        octal(&mut block[116..123], 0);
        match bytes {
            ..=OCTAL_MAX => octal(&mut block[124..135], bytes),
            // GNU: a size in binary, marked by the first bit.
            _ => {
                block[124] = 0x80;
                block[128..136].copy_from_slice(&bytes.to_be_bytes());
            }
        }
        octal(&mut block[136..147], self.modified_s.min(OCTAL_MAX));
        block[156] = kind;
        block[257..265].copy_from_slice(b"ustar\x0000");
        octal(&mut block[329..336], 0);
        octal(&mut block[337..344], 0);
        block[148..156].fill(b' ');
        let sum = block.iter().map(|byte| u64::from(*byte)).sum();
        octal(&mut block[148..154], sum);
        block[154] = 0;
    }
}

/// Writes octal digits into the whole slice.
fn octal(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number & 7) as u8;
        number >>= 3;
    }
}

/// A part of a text: skips the first bytes and drops those that do not fit.
struct Window<'a> {
    skip: usize,
    bytes: &'a mut [u8],
    len: usize,
}

impl Write for Window<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let skipped = self.skip.min(text.len());
        self.skip -= skipped;
        let text = &text.as_bytes()[skipped..];
        let room = &mut self.bytes[self.len..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text[..count]);
        self.len += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::string::String;

    /// Sizes beyond 11 octal digits are read by the system's tar.
    #[test]
    fn large_files() {
        for bytes in [OCTAL_MAX, OCTAL_MAX + 1, 1 << 40] {
            let member = Member {
                folder: "card",
                name: "large.bin",
                bytes,
                modified_s: 1_000_000_000,
            };
            let mut block = [0; BLOCK_BYTES];
            member.head_block(0, &mut block);
            let mut tar = Command::new("tar")
                .args(["--utc", "-tvf", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            tar.stdin.take().unwrap().write_all(&block).unwrap();
            let output = tar.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let fields: std::vec::Vec<&str> = text.split_whitespace().collect();
            assert_eq!(fields[2], std::format!("{bytes}"));
            assert_eq!(fields[3..], ["2001-09-09", "01:46", "card/large.bin"]);
        }
    }
}
