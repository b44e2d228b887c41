//! Where a recording that was cut off truly ends.
//!
//! ```text
//!   1  block 0 ends with a mark of this recording?       no: there is nothing
//!   2  the last block that must have a mark, and has it  by halving: a read each
//!   3  go back to what that mark knows to be durable
//!   4  from there on block by block, as long as every mark's checksum fits what came since the one before
//! ```
//!
//! Blocks of older recordings have another epoch. Behind the last durable block a card may have kept some
//! blocks and not others: what step 2 finds there leads back in step 3, and step 4 stops at the first
//! block that is missing. So the end is never before the last checkpoint, and all before it is whole.

use crate::crc32::crc32;
use crate::event::Event;
use crate::format::Format;
use crate::format::binary;
use crate::format::mark::{self, Mark, mark_block};
use crate::limits::MARK_BLOCKS;
use crate::recorder::StartError;
use crate::volume::{Blocks, FileId, FileRecord, RESERVED_MAX, Reserved, Volume};
use cardiograph_card::{BLOCK_BYTES, Block};

/// Mounts a volume and gives every recording that was cut off its true length: what a recorder does before
/// it begins, and anybody else can do with its card. `tell` is given the card back with each
/// [`Event::Recovered`].
///
/// # Errors
/// [`StartError`] if the card fails, or its file system cannot be used.
pub async fn recover<B: Blocks, V: Volume<B>>(
    volume: &mut V,
    card: &mut B,
    mut tell: impl FnMut(&mut B, Event),
) -> Result<(), StartError<B::Error, V::Error>> {
    volume.mount(card).await.map_err(StartError::Volume)?;
    if let Some(id) = volume.take_removed() {
        let name = id.short_name();
        tell(card, Event::Removed { name });
    }
    for slot in 0..RESERVED_MAX as u8 {
        let Some(file) = volume.reserved(slot) else {
            continue;
        };
        let bytes = true_length(card, &file).await.map_err(StartError::Card)?;
        if bytes == 0 && file.id.is_none() {
            // Prepared space, of which nothing was used.
            let discarded = volume.discard(card, slot).await;
            discarded.map_err(StartError::Volume)?;
            continue;
        }
        let id = match file.id {
            Some(id) => id,
            None => id_of(card, &file).await.map_err(StartError::Card)?,
        };
        let record = FileRecord {
            is_recovered: true,
            ..FileRecord::of_length(id, bytes)
        };
        let closed = match bytes {
            0 => volume.discard(card, slot).await,
            _ => volume.close(card, slot, &record).await,
        };
        closed.map_err(StartError::Volume)?;
        let name = id.short_name();
        tell(card, Event::Recovered { name, bytes });
    }
    Ok(())
}

/// Reads a recording's number from the mark of its first block.
async fn id_of<B: Blocks>(card: &mut B, file: &Reserved) -> Result<FileId, B::Error> {
    let mut scan = Scan {
        card,
        file,
        block: [0; BLOCK_BYTES],
    };
    scan.read(0).await?;
    let mark = scan.mark(0, Format::is_binary(file.note));
    Ok(FileId {
        prefix: file.prefix,
        extension: file.extension,
        number: mark.map_or(0, |(mark, _)| mark.durable),
    })
}

/// The length in bytes of what a file holds.
///
/// # Errors
/// Those of the card.
pub async fn true_length<B: Blocks>(card: &mut B, file: &Reserved) -> Result<u64, B::Error> {
    let mut scan = Scan {
        card,
        file,
        block: [0; BLOCK_BYTES],
    };
    match Format::is_binary(file.note) {
        true => scan.binary().await,
        false => scan.text().await,
    }
}

struct Scan<'a, B> {
    card: &'a mut B,
    file: &'a Reserved,
    block: Block,
}

impl<B: Blocks> Scan<'_, B> {
    async fn read(&mut self, index: u32) -> Result<(), B::Error> {
        let start = self.file.extent.start + index;
        self.card
            .read(start, core::slice::from_mut(&mut self.block))
            .await
    }

    /// What the block at hand says of itself, if it belongs here.
    fn mark(&self, index: u32, is_binary: bool) -> Option<(Mark, u32)> {
        let found = match is_binary {
            true => binary::read(&self.block).map(|mark| (mark, 0)),
            false => mark::read(&self.block),
        };
        found.filter(|(mark, _)| mark.epoch == self.file.epoch && mark.index == index)
    }

    /// Steps 1 to 3: blocks that are known to be durable.
    async fn durable(&mut self, is_binary: bool) -> Result<Option<u32>, B::Error> {
        let blocks = self.file.extent.blocks;
        let place = |number| match is_binary {
            true => number,
            false => mark_block(number),
        };
        let mut high = match is_binary {
            true => blocks,
            false => blocks / MARK_BLOCKS + 1,
        };
        let (mut low, mut durable) = (0, None);
        while low < high {
            // The first look is at block 0.
            let middle = durable.map_or(0, |_| (low + high) / 2);
            let index = place(middle);
            self.read(index).await?;
            match self.mark(index, is_binary) {
                Some((mark, _)) => {
                    durable = Some(mark.durable.min(index));
                    low = middle + 1;
                }
                None if durable.is_none() => return Ok(None),
                None => high = middle,
            }
        }
        Ok(durable)
    }

    async fn text(&mut self) -> Result<u64, B::Error> {
        let Some(durable) = self.durable(false).await? else {
            return Ok(0);
        };
        // What is durable ends with a mark.
        let (mut end, mut crc) = (durable, 0);
        for index in durable..self.file.extent.blocks {
            self.read(index).await?;
            match self.mark(index, false) {
                Some((_, sum)) if sum == mark::checksum(crc, &self.block) => {
                    (end, crc) = (index + 1, 0);
                }
                _ if index - end > 2 * MARK_BLOCKS => break,
                _ => crc = crc32(crc, &self.block),
            }
        }
        self.without_mark(end).await
    }

    /// Leaves out the line with the last mark: blanks lead back to its `#`, and commas before it.
    async fn without_mark(&mut self, end: u32) -> Result<u64, B::Error> {
        let (mut index, mut is_marked) = (end, false);
        while index > 0 {
            index -= 1;
            self.read(index).await?;
            let line = if index + 1 == end {
                &self.block[..BLOCK_BYTES - crate::limits::MARK_TAIL_BYTES]
            } else {
                &self.block[..]
            };
            for (at, byte) in line.iter().enumerate().rev() {
                match byte {
                    b' ' if !is_marked => (),
                    b'#' if !is_marked => is_marked = true,
                    b',' if is_marked => (),
                    _ => return Ok(u64::from(index) * BLOCK_BYTES as u64 + at as u64 + 1),
                }
            }
        }
        Ok(0)
    }

    async fn binary(&mut self) -> Result<u64, B::Error> {
        let Some(durable) = self.durable(true).await? else {
            return Ok(0);
        };
        let mut end = durable;
        while end < self.file.extent.blocks {
            self.read(end).await?;
            if self.mark(end, true).is_none() {
                break;
            }
            end += 1;
        }
        Ok(u64::from(end) * BLOCK_BYTES as u64)
    }
}
