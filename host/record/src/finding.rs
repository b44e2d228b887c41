//! Contents of a card or image without a recorder's file system, and remedies that lose no data.

mod other_fat;

use self::other_fat::OtherFat;
use cardiograph_recorder::FatError;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Number of bytes read from the start; they contain all signatures.
const HEAD_BYTES: u64 = 128 << 10;

/// Contents of a card or image in which recovery found no recordings, and which it therefore left unchanged.
#[derive(Debug)]
pub struct Finding {
    path: PathBuf,
    contents: Contents,
}

#[derive(Debug, PartialEq, Eq)]
enum Contents {
    /// The named file system, which the recorder never writes.
    FileSystem(&'static str),
    /// A FAT file system that the recorder does not use.
    OtherFat(OtherFat),
    /// Only zeros where the file system begins.
    Zeros,
    /// Text, such as a recording itself.
    Text,
    /// A compressed or packed file of the named kind.
    Packed(&'static str),
    /// The file system is longer than the image.
    Truncated { end_bytes: u64, bytes: u64 },
    /// A file system that is damaged; the text says where.
    Damaged(String),
    /// Anything else.
    Unknown,
}

impl Finding {
    /// Determines why a volume cannot be mounted; returns `None` if its contents are not the reason.
    pub(crate) fn of<Card: fmt::Display>(path: &Path, error: &FatError<Card>) -> Option<Finding> {
        let contents = match error {
            FatError::LargerThanCard { end, card_blocks } => Contents::Truncated {
                end_bytes: end * 512,
                bytes: u64::from(*card_blocks) * 512,
            },
            FatError::ExFat => Contents::FileSystem("exFAT"),
            FatError::Ntfs => Contents::FileSystem("NTFS"),
            FatError::Fat12 => Contents::FileSystem("FAT12"),
            FatError::Gpt => Contents::FileSystem("a GUID partition table (GPT)"),
            FatError::NoFatPartition(0x83) if other_fat::find(path).is_none() => {
                Contents::FileSystem("a Linux partition")
            }
            FatError::NoFileSystem
            | FatError::NoFatPartition(_)
            | FatError::SectorBytes(_)
            | FatError::DamagedBootSector(_) => match contents_of(&head(path)) {
                Contents::Unknown => match other_fat::find(path) {
                    Some(fat) => Contents::OtherFat(fat),
                    None if matches!(error, FatError::DamagedBootSector(_)) => {
                        Contents::Damaged("its boot sector is damaged".to_owned())
                    }
                    None => Contents::Unknown,
                },
                contents => contents,
            },
            FatError::DamagedRoot => Contents::Damaged("its root directory is damaged".to_owned()),
            FatError::DamagedJournal => Contents::Damaged("CARDIOGR.JNL is damaged".to_owned()),
            _ => return None,
        };
        Some(Finding {
            path: path.to_path_buf(),
            contents,
        })
    }
}

fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // Without the bytes, the contents are unknown.
    let _ = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    head
}

fn contents_of(head: &[u8]) -> Contents {
    const PACKED: [(&[u8], &str); 5] = [
        (b"PK\x03\x04", "ZIP"),
        (b"\x1F\x8B", "gzip"),
        (b"\xFD7zXZ\0", "xz"),
        (b"\x28\xB5\x2F\xFD", "zstd"),
        (b"7z\xBC\xAF\x27\x1C", "7z"),
    ];
    /// Offset of the magic number of ext2, ext3 and ext4.
    const EXT: std::ops::Range<usize> = 1080..1082;
    let packed = PACKED.iter().find(|(magic, _)| head.starts_with(magic));
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if head.get(EXT) == Some(b"\x53\xEF") {
        Contents::FileSystem("ext2, ext3 or ext4")
    } else if let Some((_, kind)) = packed {
        Contents::Packed(kind)
    } else if head.get(3..11) == Some(b"EXFAT   ") {
        Contents::FileSystem("exFAT")
    } else if head.get(3..11) == Some(b"NTFS    ") {
        Contents::FileSystem("NTFS")
    } else if head.iter().take(512).all(|byte| *byte == 0) {
        Contents::Zeros
    } else if head.iter().take(512).all(is_text) {
        Contents::Text
    } else {
        Contents::Unknown
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.contents {
            Contents::FileSystem(name) => never_written(f, name),
            Contents::OtherFat(fat) => never_written(f, fat),
            Contents::Zeros => f.write_str(
                "the boot sector is empty; if this is the recorder's card, copy it to an image, restore the boot sector \
                 of the image with testdisk, and recover the image",
            ),
            Contents::Text => f.write_str(
                "is a text file, not a card; pass the card, its image, or the directory that was recorded to",
            ),
            Contents::Packed(kind) => {
                write!(f, "is a {kind} file; unpack it, then pass the image in it")
            }
            Contents::Truncated { end_bytes, bytes } => write!(
                f,
                "is truncated: its file system has {end_bytes} B, but the file only {bytes} B; copy the whole card \
                 again"
            ),
            Contents::Damaged(what) => write!(
                f,
                "{what}; copy the card to an image, repair the image (fsck.fat, or testdisk), then recover the image"
            ),
            Contents::Unknown => f.write_str(
                "contains neither a FAT file system nor any other known format; check that this is the \
                 recorder's card or its image (lsblk -f lists devices and their file systems)",
            ),
        }?;
        f.write_str("; nothing was changed")
    }
}

/// Writes the sentence about a file system that the recorder does not use.
fn never_written(f: &mut fmt::Formatter, name: &dyn fmt::Display) -> fmt::Result {
    write!(
        f,
        "contains {name}, which the recorder never writes, so there is nothing to recover here; check that this is the \
         recorder's card (lsblk -f lists devices and their file systems)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        assert_eq!(contents_of(&[0; 4096]), Contents::Zeros);
        assert_eq!(contents_of(&b"time,v\n".repeat(200)), Contents::Text);
        assert_eq!(contents_of(b"\x1F\x8B\x08\0"), Contents::Packed("gzip"));
        assert_eq!(contents_of(&[0xE5; 4096]), Contents::Unknown);
        let mut ext = vec![0; 4096];
        ext[1080..1082].copy_from_slice(b"\x53\xEF");
        assert_eq!(
            contents_of(&ext),
            Contents::FileSystem("ext2, ext3 or ext4")
        );
    }
}
