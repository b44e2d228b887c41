//! Totals of a recording in a directory, from its marks or headers.

use crate::directory::{FirstBlock, is_text_of_recorder};
use crate::live::block_on;
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::{Blocks, Extent, FileId, Recovered, Reserved, find_end};
use cardiograph_system::Positioned;
use std::fs::File;
use std::io;

/// Maximum number of bytes read after the last mark of a text file, which has a mark at least every 64 blocks.
const TAIL_BYTES_MAX: u64 = 1 << 20;

/// Totals of a recording; all 0 for recordings of version 0.1, which do not contain them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingTotals {
    /// Name of the session; empty if there is none.
    pub session: String,
    /// Time at which the file began, in us of the recorder's clock.
    pub first_us: u64,
    /// Time of its last mark, in us of the recorder's clock.
    pub last_us: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of gaps.
    pub gaps: u32,
    /// Number of samples in gaps.
    pub lost: u64,
}

/// Returns the totals of the first `bytes` of a recording, finished or in progress. Reads a few blocks only.
///
/// # Errors
/// Those of the file system.
pub fn totals_of(file: &File, id: FileId, bytes: u64) -> io::Result<RecordingTotals> {
    let mut first = [0; BLOCK_BYTES];
    let first_bytes = bytes.min(BLOCK_BYTES as u64) as usize;
    file.read_exact_at(&mut first[..first_bytes], 0)?;
    let (epoch, is_binary) = match FirstBlock::of(&first) {
        FirstBlock::Recording { epoch, is_binary } => (epoch, is_binary),
        // Trimming has removed the mark of a recording that fits in a single block.
        _ if is_text_of_recorder(&first[..first_bytes]) => {
            let mut totals = RecordingTotals::default();
            totals.add_text(&first[..first_bytes], true);
            return Ok(totals);
        }
        _ => return Ok(RecordingTotals::default()),
    };
    let blocks = (bytes / BLOCK_BYTES as u64).min(u32::MAX.into()) as u32;
    let reserved = Reserved {
        slot: 0,
        prefix: id.prefix,
        extension: id.extension,
        extent: Extent { start: 0, blocks },
        epoch,
        note: u32::from(is_binary),
        id: Some(id),
        is_version_0_1: false,
    };
    let found = block_on(find_end(&mut FileBlocks { file, blocks }, &reserved))?;
    let mut totals = RecordingTotals::of(&found);
    // Marks of version 0.1 have no totals, so adding the lines after the last mark would be pointless.
    if !is_binary && found.number.is_some() {
        let tail_bytes = (bytes - found.bytes.min(bytes)).min(TAIL_BYTES_MAX);
        let mut tail = vec![0; tail_bytes as usize];
        file.read_exact_at(&mut tail, found.bytes)?;
        totals.add_text(&tail, false);
    }
    Ok(totals)
}

impl RecordingTotals {
    fn of(found: &Recovered) -> RecordingTotals {
        let session = found.session.map(|name| name.as_str().to_string());
        RecordingTotals {
            session: session.unwrap_or_default(),
            first_us: found.first_us,
            last_us: found.last_us,
            samples: found.samples,
            gaps: found.gaps,
            lost: found.lost,
        }
    }

    /// Adds the lines of a text. `is_beginning` is true if the text begins at the start of the file.
    fn add_text(&mut self, text: &[u8], is_beginning: bool) {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.split_inclusive('\n').peekable();
        let is_about = |line: &&str| note_of(line).is_some_and(|note| note.starts_with("#file "));
        if is_beginning {
            // The column names precede the `#file` line.
            lines.next_if(|line| !is_about(line));
        }
        for line in lines.filter(|line| line.ends_with('\n')) {
            match note_of(line) {
                None => self.samples += 1,
                Some(note) if note.starts_with("#gap ") => {
                    self.gaps += 1;
                    let count = value_of(note, "count").and_then(|count| count.parse().ok());
                    self.lost += count.unwrap_or(0);
                }
                Some(note) if note.starts_with("#file ") => {
                    let at_us = value_of(note, "at_us").and_then(|at_us| at_us.parse().ok());
                    self.first_us = at_us.unwrap_or(0);
                    self.last_us = self.first_us;
                    self.session = value_of(note, "session").unwrap_or_default().to_string();
                }
                Some(_) => (),
            }
        }
    }
}

/// Returns the note that a line contains, without the commas and quotes before it.
fn note_of(line: &str) -> Option<&str> {
    let note = line.trim_start_matches([',', '"']);
    note.starts_with('#').then(|| note.trim_ascii_end())
}

/// Returns the value of a key of a note.
fn value_of<'n>(note: &'n str, key: &str) -> Option<&'n str> {
    let mut fields = note.split(' ').filter_map(|field| field.split_once('='));
    fields
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// The blocks of a file, read only.
struct FileBlocks<'a> {
    file: &'a File,
    blocks: u32,
}

impl Blocks for FileBlocks<'_> {
    type Error = io::Error;

    fn blocks(&self) -> u32 {
        self.blocks
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> io::Result<()> {
        let offset = u64::from(start) * BLOCK_BYTES as u64;
        self.file.read_exact_at(blocks.as_flattened_mut(), offset)
    }

    async fn write(
        &mut self,
        _: u32,
        _: u32,
        _: &mut dyn FnMut(u32, &mut Block),
    ) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
