//! Files written by the encoder, read by independent code, and truncated at every block.

use super::encoder::Filled;
use super::{Encoder, FilePosition, Format, MAGOD2, mark};
use crate::crc32::crc32;
use crate::gap::Gap;
use crate::limits::{FILE_LINE_BYTES, GAP_LINE_BYTES, LINE_BYTES_MAX, MARK_BLOCKS};
use crate::ring::{Consumer, Producer, Ring};
use crate::session::Session;
use crate::volume::{Blocks, Extent, Reserved};
use crate::{Recovered, find_end};
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_sim_world::{Random, Seed};
use core::pin::pin;
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, Waker};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, println, vec};

const EPOCH: u32 = 0x1234_ABCD;
const NUMBER: u32 = 77;
const BEGUN_US: u64 = 5_000_000;

/// An encoded stream and its expected contents.
struct Written {
    blocks: Vec<Block>,
    /// For each block that ends with a mark: the expected recovery result up to its end.
    marks: Vec<Option<Recovered>>,
    /// For each block: true if a checkpoint wrote it, so that it may have a mark anywhere.
    checkpoints: Vec<bool>,
    /// For each block: the interval of additional marks.
    steps: Vec<u32>,
    /// Number of blocks known to be durable when the last block was written.
    durable: u32,
    /// Expected lines, gaps included.
    lines: Vec<String>,
}

struct Maker<'a> {
    random: Random,
    format: Format,
    encoder: Encoder,
    position: FilePosition,
    consumer: Consumer<'a>,
    producer: Producer<'a>,
    written: Written,
    index: u64,
}

impl Maker<'_> {
    /// Pushes lines of all lengths; some do not fit the ring.
    fn sample(&mut self) {
        let sample = match self.format {
            Format::Lines { line_bytes_max, .. } => {
                let len = self.random.below(u64::from(line_bytes_max) - 1) as usize;
                let mut line = vec![b'a' + (self.index % 26) as u8; len];
                line.push(b'\n');
                line
            }
            Format::Csv(_) | Format::Binary(_) => (0..MAGOD2.sample_bytes())
                .map(|_| self.random.next_u64() as u8)
                .collect(),
        };
        if self.producer.push(&sample, 9).is_ok() {
            self.written.lines.push(line_of(&self.format, &sample));
        } else {
            self.note_lost();
        }
        self.index += 1;
    }

    fn note_lost(&mut self) {
        let last = self.written.lines.last_mut();
        match last.and_then(|line| gap_of(line).map(|gap| (gap, line))) {
            Some(((first, count), line)) if first + count == self.index => {
                *line = gap_line(first, count + 1);
            }
            _ => self.written.lines.push(gap_line(self.index, 1)),
        }
    }

    fn take_block(&mut self, is_checkpoint: bool) {
        self.written.checkpoints.push(is_checkpoint);
        self.written.steps.push(self.position.step);
        self.position.age_ms = self.position.index * 10;
        let block = *self.encoder.block(&self.position);
        let is_mark = match self.format {
            Format::Binary(_) => true,
            _ => mark::read(&block).is_some(),
        };
        self.encoder.advance(&self.position);
        let totals = self.encoder.account().in_file();
        let age_us = u64::from(self.position.age_ms) * 1000;
        self.position.index += 1;
        self.written.blocks.push(block);
        let recovered = Recovered {
            bytes: self.encoder.content_bytes(&self.position),
            number: Some(NUMBER),
            session: None,
            samples: totals.samples,
            gaps: totals.gaps as u32,
            lost: totals.lost,
            first_us: BEGUN_US,
            last_us: BEGUN_US + age_us,
        };
        self.written.marks.push(is_mark.then_some(recovered));
    }

    fn checkpoint(&mut self) {
        // Up to the current contents of the ring, whole samples only. A call takes at most one gap.
        loop {
            let consumer = &mut self.consumer;
            match self.encoder.fill(&self.position, consumer, usize::MAX) {
                (Filled::Full, _) => self.take_block(false),
                (Filled::Dry, None) => break,
                (Filled::Dry, Some(_)) => (),
                (Filled::Boundary, _) => panic!("the file is too short"),
            }
        }
        while self.encoder.mark(&self.position, &mut self.consumer) == Filled::Full {
            self.take_block(true);
        }
        assert!(self.encoder.is_marked());
        self.position.durable = self.position.index;
        self.encoder.commit();
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..60 => self.sample(),
            60..96 => {
                // A limit ends at a sample boundary: no samples, or all that are waiting.
                let limit = self.random.below(2) as usize * self.consumer.waiting_bytes();
                let consumer = &mut self.consumer;
                if let (Filled::Full, _) = self.encoder.fill(&self.position, consumer, limit) {
                    self.take_block(false);
                }
            }
            96..98 => {
                let steps = [0, 1, 2, 8, 64];
                self.position.step = steps[self.random.below(5) as usize];
            }
            _ => self.checkpoint(),
        }
    }
}

/// Formats a sample as text with the standard library.
fn line_of(format: &Format, sample: &[u8]) -> String {
    let Some(schema) = format.schema(0) else {
        return String::from_utf8(sample[..sample.len() - 1].to_vec()).unwrap();
    };
    let (mut at, mut values) = (0, Vec::new());
    for column in schema.columns() {
        let bytes = &sample[at..at + column.kind.bytes()];
        at += bytes.len();
        values.push(match column.kind {
            super::Kind::U32 => u32::from_le_bytes(bytes.try_into().unwrap()).to_string(),
            super::Kind::I32 => i32::from_le_bytes(bytes.try_into().unwrap()).to_string(),
            super::Kind::F64(decimals) => {
                let value = f64::from_le_bytes(bytes.try_into().unwrap());
                let sign = if value.is_sign_negative() { "-" } else { "" };
                match value.abs() {
                    nan if nan.is_nan() => "nan".to_string(),
                    size if size >= 2.0_f64.powi(63) => format!("{sign}inf"),
                    _ => format!("{value:.*}", usize::from(decimals)),
                }
            }
            _ => unreachable!("not in the schema of the tests"),
        });
    }
    values.join(",")
}

fn rows_of(samples: &[u8]) -> impl Iterator<Item = String> {
    let rows = samples.chunks_exact(MAGOD2.sample_bytes());
    rows.map(|sample| line_of(&Format::Binary(&[MAGOD2]), sample))
}

fn gap_line(first: u64, count: u64) -> String {
    format!("#gap first={first} count={count} at_us=9 last_us=9 cause=busy")
}

fn gap_of(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("#gap ")?.split([' ', '=']);
    let (_, first, _, count) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some((first.parse().ok()?, count.parse().ok()?))
}

fn make(seed: u64, format: Format, blocks: usize) -> Written {
    let bytes: Vec<AtomicU8> = (0..3000).map(|_| AtomicU8::new(0)).collect();
    let mut ring = Ring::over(bytes);
    let (producer, consumer) = ring.split(format);
    let mut encoder = Encoder::new(format, *b"LOG", 0);
    encoder.start(None);
    let mut maker = Maker {
        random: Seed::new(seed).stream("encoder"),
        format,
        encoder,
        position: FilePosition::new(EPOCH, NUMBER, 100_000, 1, BEGUN_US),
        consumer,
        producer,
        index: 0,
        written: Written {
            blocks: Vec::new(),
            marks: Vec::new(),
            checkpoints: Vec::new(),
            steps: Vec::new(),
            durable: 0,
            lines: Vec::new(),
        },
    };
    while maker.written.blocks.len() < blocks {
        maker.step();
    }
    maker.producer.close();
    maker.written.durable = maker.position.durable;
    maker.checkpoint();
    maker.written
}

const LINES: Format = Format::Lines {
    header: "some lines",
    line_bytes_max: LINE_BYTES_MAX as u16,
};
const SHORT_LINES: Format = Format::Lines {
    header: "",
    line_bytes_max: 30,
};

/// Reports only the first difference, because the whole text is long.
fn same(read: &[impl AsRef<str>], expected: &[String]) {
    let read: Vec<&str> = read.iter().map(AsRef::as_ref).collect();
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(read.get(at), Some(&expected.as_str()), "line {at}");
    }
    assert_eq!(read.len(), expected.len());
}

#[test]
fn text_files_hold_all_lines_and_marks_where_they_have_to_be() {
    for seed in 0..60 {
        for format in [LINES, SHORT_LINES, Format::Csv(&[MAGOD2])] {
            println!("seed {seed}, {format:?}");
            check_text(&make(seed, format, 200), &format);
        }
    }
}

/// Fewer and shorter files, for a quick answer.
#[test]
fn short_text_files_hold_all_lines_and_marks() {
    for seed in 100..104 {
        for format in [LINES, SHORT_LINES, Format::Csv(&[MAGOD2])] {
            println!("seed {seed}, {format:?}");
            check_text(&make(seed, format, 70), &format);
        }
    }
}

/// Returns true if a line contains a mark, which is then its only content.
fn is_mark(line: &str, indent: usize) -> bool {
    let Some((before, fields)) = line.split_once("@1234ABCD ") else {
        return false;
    };
    assert_eq!(fields.len(), 7 * 8 + 6, "{line}");
    let begin = before.trim_end_matches(' ');
    assert_eq!(begin, format!("{}#", ",".repeat(indent)), "{line}");
    true
}

fn check_text(written: &Written, format: &Format) {
    let text: Vec<u8> = written.blocks.iter().flatten().copied().collect();
    let text = String::from_utf8(text).unwrap();
    let mut lines: Vec<&str> = text
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    assert_eq!(lines.pop(), Some(""), "the last block ends with a mark");
    let indent = format.schemas().first().map_or(0, |it| it.columns().len());
    let content = lines.into_iter().filter(|line| !is_mark(line, indent));
    let content: Vec<&str> = content
        .map(|line| match line.contains("#gap") {
            true => line.trim_start_matches(','),
            false => line,
        })
        .collect();
    let header = match format {
        Format::Csv(_) => 1,
        Format::Lines { header, .. } => usize::from(!header.is_empty()),
        Format::Binary(_) => 0,
    };
    let about = content[header].trim_start_matches(',');
    assert_eq!(about, "#file number=77 first=0 at_us=5000000");
    same(&content[header + 1..], &written.lines);
    // A mark without room in its block ends in the next one.
    let mut is_begun = false;
    for (index, mark) in (0..).zip(&written.marks) {
        let has_to = index == 0 || (index + 1) % MARK_BLOCKS == 0;
        assert!(mark.is_some() || !has_to, "block {index}");
        let step = written.steps[index as usize];
        let may = has_to || step > 0 && (index + 1) % step == 0;
        let may = may || is_begun || written.checkpoints[index as usize];
        assert!(mark.is_none() || may, "block {index}");
        is_begun = may && mark.is_none();
    }
    check_filling(written, &text);
}

/// Asserts that a mark begins only where the next line does not fit before it, except at checkpoints.
fn check_filling(written: &Written, text: &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !line.contains("@1234ABCD ") || at == text.len() {
            continue;
        }
        let block = at / 512 - 1;
        // A mark without room in its block ends in the next one.
        let has_room = (at - line.len()) / 512 == block;
        if !has_room || written.checkpoints[block] {
            continue;
        }
        let mut rest = text[at..].split_inclusive('\n');
        let next = rest.find(|line| !line.contains("@1234ABCD ")).unwrap_or("");
        // The fields of a mark have a fixed length.
        let spaces = line.matches(' ').count() - 7;
        // The indent is part of the line that does not fit, and of the mark.
        assert!(spaces < next.len(), "{spaces} bytes are free at {at}");
    }
}

#[test]
fn a_block_without_a_mark_holds_the_stated_number_of_bytes() {
    let of = |format: Format| format.payload_bytes();
    assert_eq!(of(Format::Binary(&[MAGOD2])), 472);
    // 64 blocks have one mark of 75 bytes, and up to one short line less.
    let stated = of(SHORT_LINES) * 64;
    assert!(
        (64 * 512 - 600..64 * 512 - 75).contains(&stated),
        "{stated}"
    );
}

#[test]
fn rows_and_their_columns_are_separated_by_commas() {
    const SCHEMA: super::Schema = super::Schema::new(&[
        super::Column {
            name: "time_us",
            kind: super::Kind::U16,
        },
        super::Column {
            name: "level",
            kind: super::Kind::I16,
        },
    ]);
    let mut row = [0; 64];
    for format in [
        Format::Csv(&[MAGOD2, SCHEMA]),
        Format::Binary(&[MAGOD2, SCHEMA]),
    ] {
        let len = format.write_columns(1, &mut row);
        assert_eq!(&row[..len], b"time_us,level");
        let len = format.write_sample(1, &[0x39, 0x30, 0xFE, 0xFF], &mut row);
        assert_eq!(&row[..len], b"12345,-2");
        // Bytes that are no sample of the schema are shown as they are.
        for other in [&b"a"[..], b"abc", b"abcde"] {
            let len = format.write_sample(1, other, &mut row);
            assert_eq!(&row[..len], other);
        }
    }
    let len = LINES.write_columns(0, &mut row);
    assert_eq!(&row[..len], b"some lines");
    let len = LINES.write_sample(0, b"a,b \r\n", &mut row);
    assert_eq!(&row[..len], b"a,b");
}

/// Decodes according to docs/formats.md.
#[test]
fn binary_files_hold_all_samples() {
    for seed in 0..60 {
        println!("seed {seed}");
        let written = make(seed, Format::Binary(&[MAGOD2]), 200);
        let (mut samples, mut lines) = (Vec::new(), Vec::new());
        for (index, block) in (0_u32..).zip(&written.blocks) {
            assert_eq!(block[..4], EPOCH.to_le_bytes());
            assert_eq!(block[4..8], index.to_le_bytes());
            let used = usize::from(u16::from_le_bytes([block[14], block[15]]));
            let payload = &block[36..36 + used];
            match block[12] {
                0 => assert!(
                    payload.starts_with(b"cardiograph recording 2\nprefix LOG\nnumber 77\n")
                ),
                1 => {
                    let first = u16::from_le_bytes([block[16], block[17]]);
                    let begun: usize = samples.len();
                    let place = (100 - begun % 100) % 100;
                    match first {
                        u16::MAX => assert!(place >= used),
                        first => assert_eq!(usize::from(first), place),
                    }
                    samples.extend_from_slice(payload);
                }
                2 => {
                    lines.extend(rows_of(&samples));
                    samples.clear();
                    let number =
                        |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap());
                    lines.push(gap_line(number(0), number(8)));
                    assert_eq!((number(16), number(24), payload[32], used), (9, 9, 0, 33));
                }
                _ => panic!("unknown kind of block"),
            }
        }
        lines.extend(rows_of(&samples));
        same(&lines, &written.lines);
    }
}

/// A card with a truncated file at block 10, followed by blocks of another recording.
struct Cut<'a> {
    written: &'a Written,
    kept: Vec<bool>,
    old: &'a Written,
}

impl Blocks for Cut<'_> {
    type Error = ();

    fn blocks(&self) -> u32 {
        1000
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), ()> {
        for (at, block) in (start as usize - 10..).zip(blocks) {
            *block = match self.kept.get(at) {
                Some(true) => self.written.blocks[at],
                _ => *self.old.blocks.get(at).unwrap_or(&[b' '; BLOCK_BYTES]),
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

fn recovered(mut card: Cut, format: &Format) -> Recovered {
    let file = Reserved {
        slot: 0,
        prefix: *b"REC",
        extension: *b"CSV",
        id: None,
        is_version_0_1: false,
        extent: Extent {
            start: 10,
            blocks: 400,
        },
        epoch: EPOCH,
        note: format.note(),
    };
    let mut future = pin!(find_end(&mut card, &file));
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(recovered) => recovered.unwrap(),
        Poll::Pending => unreachable!("a card in memory never waits"),
    }
}

/// Truncates the file after each of its blocks, and leaves random blocks after the end: the end that recovery finds is
/// a mark, and is not before the last checkpoint.
#[test]
fn the_actual_end_is_found_wherever_a_file_is_truncated() {
    for seed in 0..12 {
        truncate(seed, 200);
    }
}

/// A shorter file, for a quick answer.
#[test]
fn the_actual_end_of_a_short_file_is_found() {
    truncate(100, 70);
}

fn truncate(seed: u64, blocks: usize) {
    for format in [
        LINES,
        SHORT_LINES,
        Format::Csv(&[MAGOD2]),
        Format::Binary(&[MAGOD2]),
    ] {
        let written = make(seed, format, blocks);
        let mut old = make(seed + 1000, format, blocks + blocks / 2);
        for block in &mut old.blocks {
            // Another recording, distinguishable only by its epoch.
            for at in 0..BLOCK_BYTES - 8 {
                if block[at..].starts_with(b"1234ABCD") {
                    block[at] = b'F';
                }
            }
            if let Format::Binary(_) = format {
                block[0] ^= 1;
                let crc = crc32(0, &block[..508]);
                block[508..].copy_from_slice(&crc.to_le_bytes());
            }
        }
        let mut random = Seed::new(seed).stream("cut");
        for cut in 0..=written.blocks.len() {
            let kept: Vec<bool> = (0..written.blocks.len()).map(|at| at < cut).collect();
            let end = |blocks: usize| written.marks[..blocks].iter().rev().find_map(|mark| *mark);
            let card = Cut {
                written: &written,
                kept,
                old: &old,
            };
            assert_eq!(
                recovered(card, &format),
                end(cut).unwrap_or_default(),
                "seed {seed} {format:?} cut {cut}"
            );

            let kept: Vec<bool> = (0..written.blocks.len())
                .map(|at| at < written.durable as usize || random.chance_ppm(700_000))
                .collect();
            let whole = kept.iter().take_while(|kept| **kept).count();
            let card = Cut {
                written: &written,
                kept,
                old: &old,
            };
            assert_eq!(
                recovered(card, &format),
                end(whole).unwrap_or_default(),
                "seed {seed} {format:?} holes"
            );
        }
    }
}

#[test]
fn the_longest_lines_of_the_recorder_fit() {
    const COLUMN: super::Column = super::Column {
        name: "a",
        kind: super::Kind::U8,
    };
    static COLUMNS: [super::Column; crate::COLUMNS_MAX] = [COLUMN; crate::COLUMNS_MAX];
    static SCHEMAS: [super::Schema; 1] = [super::Schema::new(&COLUMNS)];
    let gap = Gap {
        first: u64::MAX,
        count: u64::MAX,
        at_us: u64::MAX,
        last_us: u64::MAX,
        cause: crate::Cause::FileNotReady,
    };
    let mut line = [0; LINE_BYTES_MAX];
    let len = super::text::gap(Some(&SCHEMAS[0]), &gap, &mut line);
    // An empty row of all columns comes first.
    assert_eq!(&line[..crate::COLUMNS_MAX], [b','; crate::COLUMNS_MAX]);
    assert!(line[crate::COLUMNS_MAX..].starts_with(b"#gap first="));
    assert!(len <= GAP_LINE_BYTES && line[..len].ends_with(b"\r\n"));
    let (name, settings) = ("n".repeat(32), ",".repeat(96));
    let session = Session::new(&name, None, &settings, &Format::Csv(&SCHEMAS)).unwrap();
    let about = super::text::About {
        number: u32::MAX,
        first: u64::MAX,
        at_us: u64::MAX,
        session: Some(&session),
    };
    let len = super::text::about(Some(&SCHEMAS[0]), &about, &mut line);
    assert!(len <= FILE_LINE_BYTES && line[..len].ends_with(b"\"\r\n"));
    let read = super::text::read_about(&line[..len]).unwrap();
    assert_eq!(read.at_us, u64::MAX);
    assert_eq!(read.session.unwrap().as_str(), name);
}
