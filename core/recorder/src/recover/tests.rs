//! The number of blocks that recovery reads, with files that are built here according to docs/formats.md.

use super::*;
use crate::volume::Extent;
use crate::volume::tests::Plain;
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
    recovered_from(blocks, FILE_BLOCKS, note)
}

fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a card in memory never waits"),
    }
}

fn reserved(file_blocks: u32, note: u32) -> Reserved {
    Reserved {
        slot: 0,
        prefix: *b"LOG",
        extension: *b"CSV",
        id: None,
        is_version_0_1: false,
        extent: Extent {
            start: 0,
            blocks: file_blocks,
        },
        epoch: EPOCH,
        note,
    }
}

/// Returns the result for a file that begins with these blocks, and the number of blocks read.
fn recovered_from(blocks: Vec<Block>, file_blocks: u32, note: u32) -> (Recovered, u32) {
    let mut disk = Disk { blocks, reads: 0 };
    let found = done(find_end(&mut disk, &reserved(file_blocks, note)));
    (found.unwrap(), disk.reads)
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

/// Begins a block of text with these bytes, and corrects the checksum of its mark; the block before has a mark, too.
fn begin_with(block: &mut Block, text: &[u8]) {
    block[..text.len()].copy_from_slice(text);
    let crc = format!("{:08X}\r\n", crc32(0, &block[..BLOCK_BYTES - 10]));
    block[BLOCK_BYTES - 10..].copy_from_slice(crc.as_bytes());
}

/// The line of the mark consists of commas, `#`, spaces and the fields. A file of only a mark is empty.
#[test]
fn the_line_of_the_last_mark_is_no_content() {
    for (text, content_bytes) in [
        (&b",,,#"[..], 0),
        (b"#", 0),
        (b"x\n,,#", 2),
        (b"x\n#", 2),
        (b"x", 1),
        // No recorder writes these.
        (b"x ,,#", 2),
        (b"x#,,#", 2),
        (b",#,,#", 2),
        (b"x#,", 3),
    ] {
        let mut block = text_block(EPOCH, 0, 7, 0);
        block[..BLOCK_BYTES - 74].fill(b' ');
        begin_with(&mut block, text);
        let (found, _) = recovered([block].to_vec(), 0);
        assert_eq!((found.bytes, found.number), (content_bytes, Some(7)));
    }
}

#[test]
fn a_full_file_is_searched_up_to_its_last_mark() {
    for blocks in [1, 2, 63, 64, 65, 127, 128, 129, 192, 300_u32] {
        let durable: Vec<u32> = (1..=blocks / 10).map(|at| at * 10).collect();
        let (found, reads) = recovered_from(text_file(blocks, &durable), blocks, 0);
        let is_mark = |end: &u32| *end == 1 || end.is_multiple_of(64) || end.is_multiple_of(10);
        let last = (1..=blocks).rev().find(is_mark).unwrap();
        assert_eq!(found.bytes, u64::from(last) * 512 - 75, "{blocks} blocks");
        let known = (blocks / 64 * 64).saturating_sub(1) / 10 * 10;
        // Three search steps; block 0, the last mark, totals and text are read again.
        let reads_max = 3 + (blocks - known) + 6;
        assert!(
            reads <= reads_max,
            "{reads} reads, {reads_max} at most; {blocks} blocks"
        );
    }
}

/// The marks in blocks 149 and 191 are intact, and block 191 records that 150 blocks are durable.
#[test]
fn a_damaged_block_ends_a_file_at_the_mark_before_it() {
    for damaged in 150..200 {
        let mut blocks = text_file(200, &[50, 100, 150]);
        blocks[damaged][5] ^= 1;
        let end = if damaged > 191 { 192 } else { 150 };
        let (found, _) = recovered(blocks, 0);
        assert_eq!(found.bytes, end * 512 - 75, "block {damaged}");
    }
}

#[test]
fn times_and_session_come_from_the_line_that_describes_the_file() {
    for (line, at_us, session) in [
        (
            &b"#file number=7 first=0 at_us=60012345 session=run-3\r\n"[..],
            60_012_345,
            Some("run-3"),
        ),
        (b",,#file number=7 first=9 at_us=5\r\n", 5, None),
    ] {
        for block in 0..3 {
            let mut blocks = text_file(3, &[2, 3]);
            begin_with(&mut blocks[block], line);
            let (found, _) = recovered(blocks, 0);
            // The line is complete in block 0 or 1. The mark is 1 s old.
            let (at_us, session) = if block < 2 {
                (at_us, session)
            } else {
                (0, None)
            };
            let name = found.session.as_ref().map(|session| session.as_str());
            assert_eq!((found.first_us, name), (at_us, session), "block {block}");
            assert_eq!(found.last_us, at_us + 1_000_000);
        }
    }
}

const STREAMS: u8 = 2;

/// A block of a binary file: the table of docs/formats.md.
fn binary_block(
    epoch: u32,
    index: u32,
    (kind, stream): (u8, u8),
    sample: u64,
    payload: &[u8],
) -> Block {
    let mut block = [0; BLOCK_BYTES];
    block[..4].copy_from_slice(&epoch.to_le_bytes());
    block[4..8].copy_from_slice(&index.to_le_bytes());
    let durable = if index == 0 { 7 } else { index };
    block[8..12].copy_from_slice(&durable.to_le_bytes());
    (block[12], block[13]) = (kind, stream);
    block[14..16].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    // One gap, with two samples.
    block[18] = 1;
    block[20..28].copy_from_slice(&sample.to_le_bytes());
    block[28] = 2;
    block[32..36].copy_from_slice(&3_000_u32.to_le_bytes());
    block[36..36 + payload.len()].copy_from_slice(payload);
    let crc = crc32(0, &block[..508]);
    block[508..].copy_from_slice(&crc.to_le_bytes());
    block
}

fn header(first: u64, at_us: u64) -> Vec<u8> {
    let text = format!(
        "cardiograph recording 2\nprefix LOG\nnumber 7\nstreams {STREAMS}\nfirst {first}\n\
         at_us {at_us}\nsample_bytes 4\ncolumns 1\nvalue u32\n"
    );
    text.into_bytes()
}

/// A file of 3000 blocks. Stream 0 has a sample in each of its blocks; stream 1 has its last header at `header_at`.
fn two_streams(header_at: u32) -> Vec<Block> {
    let of = |index: u32| match index {
        0 => binary_block(EPOCH, 0, (0, 0), 0, &header(0, 1_000)),
        1 => binary_block(EPOCH, 1, (0, 1), 0, &header(0, 2_000)),
        _ if index == header_at => binary_block(EPOCH, index, (0, 1), 12, &header(0, 2_000)),
        _ => binary_block(EPOCH, index, (1, 0), index.into(), &[7; 4]),
    };
    (0..3000).map(of).collect()
}

/// The search ends with the header that is found, and after 2048 blocks.
#[test]
fn totals_of_a_quiet_stream_come_from_its_last_header() {
    for distance in [2, 1_000, 1_500, 2_048, 2_049] {
        let (found, reads) = recovered_from(two_streams(3_000 - distance), 3_000, 1);
        // The sample in block 2999 has this number, and two before it are lost.
        let of_first = 3_000 - 2;
        let (of_second, lost) = if distance <= 2_048 { (10, 4) } else { (0, 2) };
        assert_eq!(
            (found.samples, found.lost),
            (of_first + of_second, lost),
            "{distance} blocks"
        );
        assert_eq!(found.bytes, 3_000 * 512);
        let last_us = if distance <= 2_048 { 2_000 } else { 1_000 } + 3_000_000;
        assert_eq!((found.first_us, found.last_us), (1_000, last_us));
        let reads_max = 12 + distance.min(2_048) + 5;
        assert!(reads <= reads_max, "{reads} reads, {reads_max} at most");
    }
}

/// Samples may look like a header, and a durable block may be damaged or lie where another recording was.
#[test]
fn only_blocks_of_the_file_and_headers_count() {
    let expected = recovered_from(two_streams(2_900), 3_000, 1).0;
    let mut blocks = two_streams(2_900);
    blocks[2_950] = binary_block(EPOCH + 1, 2_950, (0, 1), 500, &header(100, 9_000));
    assert_eq!(recovered_from(blocks, 3_000, 1).0, expected);
    let mut blocks = two_streams(2_900);
    blocks[2_950] = binary_block(EPOCH, 2_951, (0, 1), 500, &header(100, 9_000));
    assert_eq!(recovered_from(blocks, 3_000, 1).0, expected);
    let mut blocks = two_streams(2_900);
    blocks[2_950] = binary_block(EPOCH, 2_950, (1, 1), 12, &header(5, 9_000));
    let found = recovered_from(blocks, 3_000, 1).0;
    // They are samples of 4 bytes.
    let more = header(5, 9_000).len() as u64 / 4;
    assert_eq!(found.samples, expected.samples + more);
    assert_eq!(found.last_us, expected.last_us);
}

#[test]
fn a_file_without_durable_content_has_no_record() {
    let file = reserved(64, 0);
    for (bytes, number, is_record) in [(0, Some(7), false), (1, Some(7), true), (1, None, false)] {
        let recovered = Recovered {
            bytes,
            number,
            ..Recovered::default()
        };
        assert_eq!(
            recovered.record(&file).is_some(),
            is_record,
            "{bytes} bytes"
        );
    }
}

#[test]
fn a_recording_gets_the_next_number_only_if_its_name_is_taken() {
    for (error, next_number, closed, result) in [
        (None, 9, [7].to_vec(), Ok(())),
        (Some(ErrorKind::NameTaken), 9, [7, 9].to_vec(), Ok(())),
        (
            Some(ErrorKind::NameTaken),
            7,
            [7].to_vec(),
            Err(ErrorKind::NameTaken),
        ),
        (
            Some(ErrorKind::Volume),
            9,
            [7].to_vec(),
            Err(ErrorKind::Volume),
        ),
    ] {
        let id = FileId {
            prefix: *b"LOG",
            extension: *b"CSV",
            number: 7,
        };
        let mut record = FileRecord::of_length(id, 1);
        let mut volume = Plain {
            errors: Vec::from_iter(error),
            next_number,
            ..Plain::default()
        };
        let mut disk = Disk {
            blocks: Vec::new(),
            reads: 0,
        };
        let ended = done(close_or_discard(
            &mut volume,
            &mut disk,
            0,
            Some(&mut record),
        ));
        assert_eq!((ended, &volume.closed), (result, &closed));
        assert_eq!(Some(&record.id.number), closed.last());
    }
}
