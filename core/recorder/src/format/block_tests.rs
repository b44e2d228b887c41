//! Single blocks and calls of an encoder: limits, checkpoints, headers, gaps, and the fields of blocks.

use super::binary::{self, Head};
use super::decimal::Text;
use super::encoder::Filled;
use super::header::{self, Header, Summary};
use super::shared_tests::{SMALL, WIDE};
use super::test_decoder::{assert_closed, decode};
use super::{Encoder, FilePosition, Format, MAGOD2, Schema, mark};
use crate::crc32::crc32;
use crate::gap::Cause;
use crate::limits::LINE_BYTES_MAX;
use crate::ring::{Consumer, Producer, Ring};
use crate::session::Session;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::sync::atomic::AtomicU8;
use std::boxed::Box;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// All samples have 7 bytes.
const SAMPLE_BYTES: usize = 7;
const LINES: Format = Format::Lines {
    header: "",
    line_bytes_max: 7,
};
static SCHEMAS: [Schema; 1] = [SMALL];
const ROWS: Format = Format::Csv(&SCHEMAS);
const BINARY: Format = Format::Binary(&SCHEMAS);
const FORMATS: [Format; 3] = [LINES, ROWS, BINARY];
const NUMBER: u32 = 40;
const EPOCH: u32 = 0xE000;

struct Rig<'a> {
    producer: Producer<'a>,
    consumer: Consumer<'a>,
    encoder: Encoder,
    position: FilePosition,
    blocks: Vec<Block>,
}

/// Calls `test` with the encoder of a file of 1000 blocks.
fn with(format: Format, session: Option<Session>, test: impl FnOnce(&mut Rig)) {
    let cells: Vec<AtomicU8> = (0..4000).map(|_| AtomicU8::new(0)).collect();
    let mut ring = Ring::over(cells);
    let (producer, consumer) = ring.split(format);
    let mut encoder = Encoder::new(format, *b"LOG", 0);
    encoder.start(session);
    test(&mut Rig {
        producer,
        consumer,
        encoder,
        position: FilePosition::new(EPOCH, NUMBER, 1000, 1, 5_000_000),
        blocks: vec![],
    });
}

impl Rig<'_> {
    fn push(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.producer.push(b"abcdef\n", 9).is_ok());
        }
    }

    fn fill(&mut self, limit: usize) -> Filled {
        self.encoder
            .fill(&self.position, &mut self.consumer, limit)
            .0
    }

    fn write(&mut self) {
        self.blocks.push(*self.encoder.block(&self.position));
        self.encoder.advance(&self.position);
        self.position.index += 1;
    }

    /// Writes the blocks that a checkpoint completes; returns their number.
    fn checkpoint(&mut self) -> u32 {
        let mut count = 0;
        while self.encoder.mark(&self.position, &mut self.consumer) == Filled::Full {
            self.write();
            count += 1;
        }
        assert!(self.encoder.is_marked());
        count
    }
}

#[test]
fn a_checkpoint_takes_no_more_samples_than_its_limit() {
    for format in FORMATS {
        for count in 0..300 {
            with(format, None, |rig| {
                rig.push(400);
                // The rest of the limit, from the tail of the ring on.
                while rig.fill(count * SAMPLE_BYTES - rig.consumer.tail() as usize) == Filled::Full
                {
                    rig.write();
                }
                rig.checkpoint();
                let encoded = rig.encoder.account().encoded().next;
                assert_eq!(encoded, count as u64, "{format:?}");
                // The last block of a text file ends with a mark.
                if let (false, Some(last)) = (format == BINARY, rig.blocks.last()) {
                    assert!(mark::read(last).is_some(), "{format:?}, {count} samples");
                }
            });
        }
    }
}

/// Returns the lines of samples in a text file; each line must be complete.
fn sample_lines(blocks: &[Block]) -> usize {
    let text = String::from_utf8(blocks.concat()).unwrap();
    let lines = text
        .split_terminator('\n')
        .map(|line| line.trim_end_matches('\r'));
    let samples = lines.filter(|line| {
        let is_mark = line.trim_start_matches(',').starts_with("#  ");
        assert_eq!(is_mark, line.contains("@0000E000 "), "{line}");
        let is_sample = ["abcdef", "1684234849,26213,10"].contains(line);
        let is_other = line.contains("#file") || line.starts_with("time_us,");
        assert!(is_mark || is_sample || is_other, "{line}");
        is_sample
    });
    samples.count()
}

/// The checkpoint follows a block that was just written, whose last sample may be incomplete.
#[test]
fn a_checkpoint_completes_the_last_sample_and_takes_no_other() {
    for format in FORMATS {
        for written in 1..=4 {
            with(format, None, |rig| {
                rig.push(400);
                for _ in 0..written {
                    assert_eq!(rig.fill(usize::MAX), Filled::Full);
                    rig.write();
                }
                let before = rig.encoder.account().encoded().next;
                rig.checkpoint();
                let after = rig.encoder.account().encoded().next;
                assert!(after - before <= 1, "{format:?}, {written} blocks");
                let samples = match format {
                    BINARY => {
                        let parts = decode(&rig.blocks, EPOCH, NUMBER);
                        assert_closed(&parts);
                        parts[&0].samples.len()
                    }
                    _ => {
                        let last = rig.blocks.last().unwrap();
                        assert!(mark::read(last).is_some(), "{format:?}, {written} blocks");
                        sample_lines(&rig.blocks)
                    }
                };
                assert_eq!(samples as u64, after, "{format:?}, {written} blocks");
            });
        }
    }
}

#[test]
fn a_block_that_ends_with_a_line_needs_a_mark_after_it() {
    let format = Format::Lines {
        header: "",
        line_bytes_max: 8,
    };
    with(format, None, |rig| {
        (0..400).for_each(|_| rig.producer.push(b"1234567\n", 9).unwrap());
        for _ in 0..2 {
            assert_eq!(rig.fill(usize::MAX), Filled::Full);
            rig.write();
        }
        assert!(rig.blocks[1].ends_with(b"1234567\n") && !rig.encoder.is_marked());
        assert_eq!(rig.checkpoint(), 1);
        assert!(mark::read(&rig.blocks[2]).is_some());
    });
}

/// Setup: the card fails before the first checkpoint.
#[test]
fn a_gap_alone_begins_a_file() {
    for format in FORMATS {
        with(format, None, |rig| {
            rig.push(3);
            while rig.fill(usize::MAX) == Filled::Full {
                rig.write();
            }
            let lost = rig.encoder.lose_blocks(9, Cause::NoCard).unwrap();
            assert_eq!((lost.first, lost.count), (0, 3));
            rig.encoder.start(None);
            (rig.blocks, rig.position.index) = (vec![], 0);
            while rig.fill(0) == Filled::Full {
                rig.write();
            }
            rig.checkpoint();
            let totals = rig.encoder.account().in_file();
            assert_eq!(
                (totals.samples, totals.gaps, totals.lost),
                (0, 1, 3),
                "{format:?}"
            );
            assert!(!rig.blocks.is_empty());
        });
    }
}

#[test]
fn unfinished_blocks_are_those_that_a_checkpoint_writes() {
    for samples in (0..300).chain([472, 480]) {
        for written in 0..5 {
            with(BINARY, None, |rig| {
                rig.push(samples);
                for _ in 0..written {
                    if rig.fill(usize::MAX) == Filled::Full {
                        rig.write();
                    }
                }
                rig.fill(usize::MAX);
                let expected = rig.encoder.unfinished_blocks();
                assert_eq!(
                    rig.checkpoint(),
                    expected,
                    "{samples} samples, {written} blocks"
                );
            });
        }
    }
}

/// A sample that continued in the next page would carry the checkpoint past the end of this one.
#[test]
fn no_sample_continues_where_a_wanted_checkpoint_may_end() {
    for (step, others) in [(8, 0), (8, 1), (8, 3), (64, 0), (1, 0), (0, 0)] {
        with(BINARY, None, |rig| {
            (rig.position.step, rig.position.others) = (step, others);
            let mut continued = 0;
            for _ in 0..200 {
                rig.push(68);
                assert_eq!(rig.fill(usize::MAX), Filled::Full);
                rig.write();
                let is_end = step > 1 && (rig.position.index + u32::from(others)) % step == 0;
                let unfinished = rig.encoder.unfinished_blocks();
                assert!(unfinished == 0 || !is_end, "block {}", rig.position.index);
                continued += unfinished;
            }
            // Of seven blocks, one ends with a sample: 472 = 7 * 67 + 3.
            assert!(continued > 140, "{continued}");
        });
    }
}

#[test]
fn a_file_without_data_stays_empty() {
    for format in FORMATS {
        with(format, None, |rig| {
            assert_eq!(rig.fill(usize::MAX), Filled::Dry);
            rig.push(3);
            // A checkpoint of earlier data does not begin the file.
            assert_eq!(
                (rig.fill(0), rig.checkpoint()),
                (Filled::Dry, 0),
                "{format:?}"
            );
            assert_eq!(rig.encoder.content_bytes(&rig.position), 0);
            rig.fill(usize::MAX);
            assert!(rig.checkpoint() > 0);
        });
    }
}

#[test]
fn a_header_and_a_second_block_begin_a_binary_file() {
    for format in FORMATS {
        with(format, None, |rig| {
            let is_binary = format == BINARY;
            assert_eq!(rig.encoder.blocks_to_begin(), 1 + u32::from(is_binary));
            rig.push(80);
            assert_eq!(rig.fill(usize::MAX), Filled::Full);
            rig.write();
            assert_eq!(rig.encoder.blocks_to_begin(), 1);
        });
    }
}

/// The second block follows even if no more samples may be taken.
#[test]
fn a_long_header_continues_in_a_second_block() {
    static LONG: [Schema; 1] = [WIDE];
    let format = Format::Binary(&LONG);
    let session = Session::new("run", None, &"s".repeat(96), &format).unwrap();
    with(format, Some(session), |rig| {
        assert!(rig.producer.push(&[1; 56], 9).is_ok());
        assert_eq!(rig.fill(usize::MAX), Filled::Full);
        rig.write();
        assert_eq!(rig.fill(0), Filled::Full);
        rig.write();
        assert_eq!(rig.fill(0), Filled::Dry);
        assert_eq!(rig.fill(usize::MAX), Filled::Dry);
        rig.checkpoint();
        let kinds: Vec<u8> = rig.blocks.iter().map(|block| block[12]).collect();
        assert_eq!(kinds, [0, 0, 1]);
        let parts = decode(&rig.blocks, EPOCH, NUMBER);
        assert_eq!(parts[&0].samples, [(0, vec![1; 56])]);
    });
}

/// Setup: other streams write 1200 blocks while a block of this stream is filled, so that its header is due.
#[test]
fn a_header_waits_for_the_end_of_a_block_and_of_a_sample() {
    with(BINARY, None, |rig| {
        rig.push(400);
        assert_eq!(rig.fill(usize::MAX), Filled::Full);
        rig.write();
        assert_eq!(rig.fill(10 * SAMPLE_BYTES), Filled::Dry);
        rig.position.blocks = 3000;
        rig.position.index += 1200;
        for _ in 0..5 {
            assert_eq!(rig.fill(usize::MAX), Filled::Full);
            rig.write();
        }
        let blocks = &rig.blocks[1..];
        // 67 samples and 3 bytes fill a block, so that the seventh one would end with a sample.
        assert!(
            blocks
                .iter()
                .all(|block| block[12] == 1 && block[14..16] == 472_u16.to_le_bytes())
        );
        rig.push(200);
        for _ in 0..3 {
            assert_eq!(rig.fill(usize::MAX), Filled::Full);
            rig.write();
        }
        let kinds: Vec<u8> = rig.blocks[6..].iter().map(|block| block[12]).collect();
        assert_eq!(kinds, [1, 1, 0]);
    });
}

#[test]
fn each_call_reports_at_most_one_gap() {
    for format in FORMATS {
        with(format, None, |rig| {
            for _ in 0..4 {
                rig.push(1);
                assert!(rig.producer.push(b"", 9).is_err());
            }
            let mut reported = vec![];
            loop {
                let (filled, gap) = rig
                    .encoder
                    .fill(&rig.position, &mut rig.consumer, usize::MAX);
                reported.extend(gap.map(|gap| (gap.first, gap.count)));
                match (filled, gap) {
                    (Filled::Full, _) => rig.write(),
                    (Filled::Dry, Some(_)) => (),
                    _ => break,
                }
            }
            assert_eq!(reported, [(1, 1), (3, 1), (5, 1), (7, 1)], "{format:?}");
        });
    }
}

/// Block 0 has no room for the line that describes the file.
#[test]
fn the_lines_of_a_file_come_before_its_samples() {
    let header: &str = Box::leak("h".repeat(LINE_BYTES_MAX - 2).into_boxed_str());
    let format = Format::Lines {
        header,
        line_bytes_max: 7,
    };
    let session = Session::new("run", None, &"s".repeat(96), &format).unwrap();
    with(format, Some(session), |rig| {
        rig.push(200);
        while rig.fill(usize::MAX) == Filled::Full {
            rig.write();
        }
        rig.checkpoint();
        let text = String::from_utf8(rig.blocks.concat()).unwrap();
        let mut lines = text.lines().filter(|line| !line.contains("@0000E000 "));
        assert_eq!(lines.next(), Some(header));
        let about = lines.next().unwrap_or_default();
        assert!(about.starts_with("#file number=40 first=0 at_us=5000000 session=run settings=s"));
        assert_eq!(lines.filter(|line| *line == "abcdef").count(), 200);
    });
}

#[test]
fn a_format_has_lines_and_schemas_within_their_limits() {
    static MANY: [Schema; 9] = [SMALL; 9];
    let schemas = |count| Format::Binary(&MANY[..count]);
    for count in 0..=9 {
        assert_eq!(schemas(count).fits(), (1..=8).contains(&count), "{count}");
        assert_eq!(Format::Csv(&MANY[..count]).fits(), schemas(count).fits());
    }
    // A block has 512 bytes, and a mark after an empty row of 32 columns 107; the header's line ends with two bytes.
    for (header_bytes, line_bytes_max, fits) in [
        (0, 405, true),
        (403, 405, true),
        (403, 1, true),
        (404, 1, false),
        (0, 406, false),
        (404, 406, false),
        (0, u16::MAX, false),
    ] {
        let format = Format::Lines {
            header: Box::leak("h".repeat(header_bytes).into_boxed_str()),
            line_bytes_max,
        };
        assert_eq!(
            format.fits(),
            fits,
            "{header_bytes} and {line_bytes_max} bytes"
        );
    }
}

#[test]
fn a_position_knows_its_age_and_its_end() {
    let mut position = FilePosition::new(1, 1, 10, 1, 5_000_000);
    for (now_us, age_ms) in [
        (0, 0),
        (5_000_000, 0),
        (5_000_999, 0),
        (5_001_000, 1),
        (12_345_678, 7_345),
        (u64::MAX, u32::MAX),
    ] {
        position.set_age(now_us);
        assert_eq!(position.age_ms, age_ms);
    }
    for (streams, blocks, index) in (1..=4).flat_map(|streams: u8| {
        (0..12_u32)
            .flat_map(move |blocks| (0..=blocks + 1).map(move |index| (streams, blocks, index)))
    }) {
        let position = FilePosition {
            index,
            ..FilePosition::new(1, 1, blocks, streams, 0)
        };
        let left = i64::from(blocks) - i64::from(index);
        assert_eq!(position.is_full(), left <= 0);
        // After these blocks, each other stream has one.
        for count in 1..4 {
            let others = i64::from(streams) - 1;
            assert_eq!(position.may_begin(count), left - i64::from(count) >= others);
        }
        // After the next block, each stream has one.
        assert_eq!(position.may_split(), left > i64::from(streams));
    }
}

/// The table at the top of binary.rs.
#[test]
fn the_fields_of_a_binary_block_are_where_the_format_says() {
    let head = Head {
        epoch: 0x0403_0201,
        index: 0x0807_0605,
        durable: 0x0C0B_0A09,
        kind: 0x0D,
        stream: 0x0E,
        used: 3,
        first: 0x1211,
        gaps: 0x1413,
        sample: 0x1C1B_1A19_1817_1615,
        lost: 0x201F_1E1D,
        age_ms: 0x2423_2221,
    };
    let mut block = [0xA5; BLOCK_BYTES];
    binary::seal(&mut block, &head);
    let mut expected: Vec<u8> = (1..=36).collect();
    expected[14..16].copy_from_slice(&[3, 0]);
    expected.extend([0xA5; 3]);
    expected.resize(508, 0);
    expected.extend(crc32(0, &expected).to_le_bytes());
    assert_eq!(block.to_vec(), expected);
    assert_eq!(binary::read(&block), Some(head));
    block[100] ^= 1;
    assert_eq!(binary::read(&block), None);
}

#[test]
fn a_header_is_read_as_it_was_written() {
    let format = Format::Binary(&[MAGOD2]);
    let session = Session::new("run-3", None, "gain=4", &format).unwrap();
    let header = Header {
        prefix: *b"LOG",
        number: 12,
        streams: 3,
        first: 1 << 40,
        at_us: 60_012_345,
        session: Some(&session),
        schema: &format.schemas()[0],
    };
    let mut payload = [0; binary::PAYLOAD_BYTES];
    header.write(&mut Text::new(&mut payload));
    let expected = Summary {
        number: 12,
        streams: 3,
        first: 1 << 40,
        at_us: 60_012_345,
        sample_bytes: 100,
        session: Some(*session.name()),
    };
    assert_eq!(header::read(&payload), Some(expected));
    // A damaged header, such as one of samples without bytes, is none.
    for (from, to) in [
        ("sample_bytes 100", "sample_bytes 0"),
        ("number 12", "number x"),
        ("recording 2", "recording 3"),
        ("\ncolumns", "\ncolumn_"),
    ] {
        let text = String::from_utf8_lossy(&payload).replace(from, to);
        assert_eq!(header::read(text.as_bytes()), None, "{to}");
    }
}
