//! The number of blocks that recovery reads, with files that are built here according to docs/formats.md.

use super::*;
use crate::volume::Extent;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::format;
use std::vec::Vec;

const EPOCH: u32 = 0x1234_ABCD;
/// 512 MiB, of which the card has the first few hundred blocks; the others have the marks of another recording.
const FILE_BLOCKS: u32 = 1 << 20;
/// Search steps in a text file, which has a mandatory mark in every 64 blocks.
const TEXT_STEPS: u32 = 15;
const BINARY_STEPS: u32 = 20;

struct Disk {
    blocks: Vec<Block>,
    reads: u32,
}

impl Blocks for Disk {
    type Error = ();

    fn blocks(&self) -> u32 {
        u32::MAX
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), ()> {
        for (at, block) in (start..).zip(blocks) {
            self.reads += 1;
            *block = match self.blocks.get(at as usize) {
                Some(block) => *block,
                None => text_block(EPOCH + 1, at, at, 0),
            };
        }
        Ok(())
    }

    async fn write(
        &mut self,
        _: u32,
        _: u32,
        _: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), ()> {
        Err(())
    }
}

/// A block of text that ends with a mark; `crc` is the checksum of the blocks since the previous mark.
fn text_block(epoch: u32, index: u32, durable: u32, crc: u32) -> Block {
    let mut block = [b','; BLOCK_BYTES];
    let tail =
        format!("\r\n#@{epoch:08X} {index:08X} {durable:08X} 00000003 00000002 00000001 000003E8 ");
    let at = BLOCK_BYTES - 10 - tail.len();
    block[at..BLOCK_BYTES - 10].copy_from_slice(tail.as_bytes());
    let crc = format!("{:08X}\r\n", crc32(crc, &block[..BLOCK_BYTES - 10]));
    block[BLOCK_BYTES - 10..].copy_from_slice(crc.as_bytes());
    block
}

/// A text file with marks in its mandatory places, and in the blocks before `durable`, each of which records the durable
/// blocks before it.
fn text_file(blocks: u32, durable: &[u32]) -> Vec<Block> {
    let mut crc = 0;
    let of = |index: u32| {
        let before = durable.iter().filter(|at| **at <= index).max();
        let before = if index == 0 { 7 } else { *before.unwrap_or(&0) };
        match index == 0 || index % 64 == 63 || durable.contains(&(index + 1)) {
            true => {
                let block = text_block(EPOCH, index, before, crc);
                crc = 0;
                block
            }
            false => {
                let block = [b'x'; BLOCK_BYTES];
                crc = crc32(crc, &block);
                block
            }
        }
    };
    (0..blocks).map(of).collect()
}

fn binary_file(blocks: u32, durable: u32) -> Vec<Block> {
    let of = |index: u32| {
        let mut block = [0; BLOCK_BYTES];
        block[..4].copy_from_slice(&EPOCH.to_le_bytes());
        block[4..8].copy_from_slice(&index.to_le_bytes());
        let number = if index == 0 { 7 } else { durable.min(index) };
        block[8..12].copy_from_slice(&number.to_le_bytes());
        block[12] = u8::from(index > 0);
        let crc = crc32(0, &block[..508]);
        block[508..].copy_from_slice(&crc.to_le_bytes());
        block
    };
    (0..blocks).map(of).collect()
}

fn recovered(blocks: Vec<Block>, note: u32) -> (Recovered, u32) {
    let file = Reserved {
        slot: 0,
        prefix: *b"LOG",
        extension: *b"CSV",
        id: None,
        is_version_0_1: false,
        extent: Extent {
            start: 0,
            blocks: FILE_BLOCKS,
        },
        epoch: EPOCH,
        note,
    };
    let mut disk = Disk { blocks, reads: 0 };
    let found = match pin!(find_end(&mut disk, &file)).poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(found) => found.unwrap(),
        Poll::Pending => unreachable!("a card in memory never waits"),
    };
    (found, disk.reads)
}

#[test]
fn recovery_of_text_reads_the_blocks_after_the_last_durable_ones() {
    for end in (1..=700_u32).step_by(3) {
        let durable: Vec<u32> = (1..=end / 50).map(|at| at * 50).collect();
        let (found, reads) = recovered(text_file(end, &durable), 0);
        let last = (1..=end).rev().find(|end| {
            let index = end - 1;
            index == 0 || index % 64 == 63 || durable.contains(end)
        });
        let last = last.unwrap();
        // The text before the line of the last mark.
        let text_bytes = u64::from(last) * 512 - 75;
        assert_eq!(found.bytes, text_bytes, "{end} blocks");
        let expected = (Some(7), 3, 2, 1);
        let totals = (found.number, found.samples, found.gaps, found.lost);
        assert_eq!(totals, expected, "{end} blocks");
        // The durable blocks in the last mandatory mark.
        let known = (end / 64 * 64).saturating_sub(1) / 50 * 50;
        // Data without a mark for more than 128 blocks is not part of the file. Block 0 is read to determine the
        // kind, the number, and the session, which block 1 may have; the last mark, for totals and text.
        let reads_max = TEXT_STEPS + (last - known) + 130 + 6;
        assert!(
            reads <= reads_max,
            "{reads} reads, {reads_max} at most; {end} blocks"
        );
    }
}

#[test]
fn recovery_of_binary_blocks_reads_those_after_the_last_durable_ones() {
    for end in (1..=700_u32).step_by(3) {
        let durable = end.saturating_sub(20);
        let (found, reads) = recovered(binary_file(end, durable), 1);
        assert_eq!(found.bytes, u64::from(end) * 512);
        // Block 0 is read to determine the kind and the number.
        let reads_max = BINARY_STEPS + (end - durable) + 3;
        assert!(
            reads <= reads_max,
            "{reads} reads, {reads_max} at most; {end} blocks"
        );
    }
}

#[test]
fn mark_blocks_are_numbered_in_their_order() {
    let all = (0..10_000).filter(|index| mark::is_mark_block(*index));
    for (number, index) in (0..).zip(all) {
        assert_eq!(mark_block(number), index);
    }
}

/// A file whose only line is its mark has no content: neither the columns' commas nor the spaces count.
#[test]
fn a_file_of_only_a_mark_is_empty() {
    let mut block = text_block(EPOCH, 0, 7, 0);
    block[..4].copy_from_slice(b",,,#");
    block[4..BLOCK_BYTES - 74].fill(b' ');
    let crc = format!("{:08X}\r\n", crc32(0, &block[..BLOCK_BYTES - 10]));
    block[BLOCK_BYTES - 10..].copy_from_slice(crc.as_bytes());
    let (found, _) = recovered([block].to_vec(), 0);
    assert_eq!((found.bytes, found.number), (0, Some(7)));
}
