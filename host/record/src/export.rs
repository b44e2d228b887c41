//! Binary recordings as CSV: the text that the recorder would have written, without marks.
//!
//! ```text
//!   block ── checksum, epoch, number ──> header: names
//!                  │                     samples ── join ──> rows
//!                  └── wrong: noted      gap ──────────────> a note
//! ```

use crate::crc::crc32;
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::{COLUMNS_MAX, DECIMALS_MAX, Kind, SAMPLE_BYTES_MAX};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::RangeInclusive;

const DESCRIPTION: &str = "cardiograph recording 1\n";
const PAYLOAD_AT: usize = 28;
const CRC_AT: usize = BLOCK_BYTES - 4;
const NO_SAMPLE: u16 = u16::MAX;
const CAUSES: [&str; 7] = [
    "busy",
    "no-card",
    "card-failed",
    "card-full",
    "file-not-ready",
    "read",
    "bad-sample",
];

/// What a binary recording held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Rows that were written.
    pub samples: u64,
    /// Samples that the recording says are missing.
    pub lost: u64,
    /// Blocks that are damaged, and left out.
    pub damaged_blocks: u64,
}

/// Why a recording was not exported.
#[derive(Debug)]
pub enum ExportError {
    /// It could not be read.
    Read(io::Error),
    /// The text could not be written.
    Write(io::Error),
    /// Block 0 does not say what a sample is made of.
    NoHeader,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ExportError::Read(error) => write!(f, "{error}; check the medium"),
            ExportError::Write(error) => write!(f, "{error}; check the medium that is written to"),
            ExportError::NoHeader => f.write_str(
                "block 0 is not the header of a binary recording; give a .BIN file that a recorder made",
            ),
        }
    }
}

impl std::error::Error for ExportError {}

/// Writes a binary recording as CSV. `damaged` is told of blocks that are left out, by their numbers; a
/// note says so in their place.
///
/// # Errors
/// [`ExportError`].
pub fn export_csv(
    mut input: impl Read,
    out: impl Write,
    damaged: impl FnMut(RangeInclusive<u64>),
) -> Result<Exported, ExportError> {
    let mut block = [0; BLOCK_BYTES];
    let is_whole = read_block(&mut input, &mut block)? == BLOCK_BYTES;
    let header = Head::of(&block).filter(|head| is_whole && head.kind == 0 && head.index == 0);
    let header = header.ok_or(ExportError::NoHeader)?;
    let columns = columns_of(header.payload(&block)).ok_or(ExportError::NoHeader)?;
    let mut export = Export {
        out,
        damaged,
        sample_bytes: columns.iter().map(|(_, kind)| kind.bytes()).sum(),
        columns,
        carry: Vec::new(),
        is_joined: true,
        bad: None,
        exported: Exported::default(),
    };
    export.names()?;
    for index in 1_u64.. {
        let bytes = read_block(&mut input, &mut block)?;
        if bytes == 0 {
            break;
        }
        let head = Head::of(&block).filter(|head| {
            bytes == BLOCK_BYTES && head.epoch == header.epoch && u64::from(head.index) == index
        });
        match head {
            Some(head) => export.block(index, &head, &block)?,
            None => export.spoil(index),
        }
    }
    export.end_spoiled()?;
    export.out.flush().map_err(ExportError::Write)?;
    Ok(export.exported)
}

/// Reads a block; fewer bytes at the end.
fn read_block(input: &mut impl Read, block: &mut Block) -> Result<usize, ExportError> {
    let mut len = 0;
    while len < BLOCK_BYTES {
        match input.read(&mut block[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(ExportError::Read(error)),
        }
    }
    Ok(len)
}

/// What stands before the payload.
struct Head {
    epoch: u32,
    index: u32,
    kind: u8,
    used: usize,
    first: u16,
}

impl Head {
    /// Of a block whose checksum and lengths are right.
    fn of(block: &Block) -> Option<Head> {
        let number = |at: usize| u32::from_le_bytes(core::array::from_fn(|byte| block[at + byte]));
        let short = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
        let head = Head {
            epoch: number(0),
            index: number(4),
            kind: block[12],
            used: short(14).into(),
            first: short(16),
        };
        let is_right = number(CRC_AT) == crc32(&block[..CRC_AT])
            && head.used <= CRC_AT - PAYLOAD_AT
            && (head.first == NO_SAMPLE || usize::from(head.first) <= head.used);
        is_right.then_some(head)
    }

    fn payload<'a>(&self, block: &'a Block) -> &'a [u8] {
        &block[PAYLOAD_AT..][..self.used]
    }
}

/// The columns that a header describes.
fn columns_of(text: &[u8]) -> Option<Vec<(String, Kind)>> {
    let text = str::from_utf8(text).ok()?.strip_prefix(DESCRIPTION)?;
    let columns: Option<Vec<_>> = text.lines().map(column_of).collect();
    columns.filter(|columns| {
        let bytes: usize = columns.iter().map(|(_, kind)| kind.bytes()).sum();
        (1..=COLUMNS_MAX).contains(&columns.len()) && bytes <= SAMPLE_BYTES_MAX
    })
}

fn column_of(line: &str) -> Option<(String, Kind)> {
    let (name, word) = line.rsplit_once(' ')?;
    let (word, decimals) = match word.split_once('.') {
        Some((word, decimals)) => (word, decimals.parse().ok()?),
        None => (word, 0),
    };
    let kinds = [
        Kind::U8,
        Kind::U16,
        Kind::U32,
        Kind::U64,
        Kind::I16,
        Kind::I32,
        Kind::I64,
        Kind::F32(decimals),
        Kind::F64(decimals),
    ];
    let kind = kinds.into_iter().find(|kind| kind.word() == word)?;
    (decimals <= DECIMALS_MAX).then(|| (name.to_string(), kind))
}

struct Export<Out, Damaged> {
    out: Out,
    damaged: Damaged,
    columns: Vec<(String, Kind)>,
    sample_bytes: usize,
    /// The beginning of a sample that goes on in the next block.
    carry: Vec<u8>,
    /// The block before this one was there: `carry` is what comes before.
    is_joined: bool,
    /// Damaged blocks just before this one.
    bad: Option<RangeInclusive<u64>>,
    exported: Exported,
}

impl<Out: Write, Damaged: FnMut(RangeInclusive<u64>)> Export<Out, Damaged> {
    fn write(&mut self, text: &str) -> Result<(), ExportError> {
        self.out
            .write_all(text.as_bytes())
            .map_err(ExportError::Write)
    }

    fn names(&mut self) -> Result<(), ExportError> {
        let names: String = self
            .columns
            .iter()
            .map(|(name, _)| format!("{name},"))
            .collect();
        self.write(&format!("{names}note\r\n"))
    }

    fn note(&mut self, note: &str) -> Result<(), ExportError> {
        let indent = ",".repeat(self.columns.len());
        self.write(&format!("{indent}#{note}\r\n"))
    }

    /// Leaves a block out.
    fn spoil(&mut self, index: u64) {
        let first = self.bad.as_ref().map_or(index, |bad| *bad.start());
        self.bad = Some(first..=index);
        self.is_joined = false;
        self.carry.clear();
        self.exported.damaged_blocks += 1;
    }

    fn end_spoiled(&mut self) -> Result<(), ExportError> {
        let Some(bad) = self.bad.take() else {
            return Ok(());
        };
        self.note(&format!("damaged blocks={}..{}", bad.start(), bad.end()))?;
        (self.damaged)(bad);
        Ok(())
    }

    fn block(&mut self, index: u64, head: &Head, block: &Block) -> Result<(), ExportError> {
        let payload = head.payload(block);
        match head.kind {
            1 if self.fits(head) => {
                self.end_spoiled()?;
                self.samples(head, payload)
            }
            2 if payload.len() == 25 && usize::from(payload[24]) < CAUSES.len() => {
                self.end_spoiled()?;
                self.gap(payload)
            }
            _ => {
                self.spoil(index);
                Ok(())
            }
        }
    }

    /// Whether samples begin where the block before makes them begin.
    fn fits(&self, head: &Head) -> bool {
        if !self.is_joined {
            return true;
        }
        let missing = match self.carry.len() {
            0 => 0,
            begun => self.sample_bytes - begun,
        };
        match head.first {
            // Just as much as there is of one sample, or less.
            NO_SAMPLE => missing > 0 && head.used <= missing,
            first => usize::from(first) == missing,
        }
    }

    fn samples(&mut self, head: &Head, payload: &[u8]) -> Result<(), ExportError> {
        let (rest, begun) = match head.first {
            NO_SAMPLE => (payload, &[][..]),
            first => payload.split_at(first.into()),
        };
        if self.is_joined {
            self.carry.extend_from_slice(rest);
        }
        if self.carry.len() == self.sample_bytes {
            let sample = std::mem::take(&mut self.carry);
            self.row(&sample)?;
        }
        if head.first == NO_SAMPLE {
            return Ok(());
        }
        self.is_joined = true;
        let whole = begun.chunks_exact(self.sample_bytes);
        self.carry = whole.remainder().to_vec();
        for sample in whole {
            self.row(sample)?;
        }
        Ok(())
    }

    fn row(&mut self, sample: &[u8]) -> Result<(), ExportError> {
        let mut row = String::new();
        let mut rest = sample;
        for (_, kind) in &self.columns {
            let (value, after) = rest.split_at(kind.bytes());
            row.push(if row.is_empty() { ' ' } else { ',' });
            row.push_str(&text_of(*kind, value));
            rest = after;
        }
        row.push_str("\r\n");
        self.exported.samples += 1;
        // Without the blank at its start.
        self.write(&row[1..])
    }

    fn gap(&mut self, payload: &[u8]) -> Result<(), ExportError> {
        let number =
            |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| payload[at + byte]));
        let (first, count, at_us) = (number(0), number(8), number(16));
        let cause = CAUSES[usize::from(payload[24])];
        self.exported.lost = self.exported.lost.saturating_add(count);
        // A gap lies between samples.
        self.carry.clear();
        self.is_joined = true;
        self.note(&format!(
            "gap first={first} count={count} at_us={at_us} cause={cause}"
        ))
    }
}

/// A value as the recorder writes it; the standard library rounds as it does.
fn text_of(kind: Kind, bytes: &[u8]) -> String {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(wide);
    match kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => unsigned.to_string(),
        Kind::I16 => (unsigned as i16).to_string(),
        Kind::I32 => (unsigned as i32).to_string(),
        Kind::I64 => (unsigned as i64).to_string(),
        Kind::F32(decimals) => float(f32::from_bits(unsigned as u32).into(), decimals),
        Kind::F64(decimals) => float(f64::from_bits(unsigned), decimals),
    }
}

fn float(number: f64, decimals: u8) -> String {
    // From 2^63 on the recorder has no digits for it.
    const INFINITE_FROM: f64 = 9_223_372_036_854_775_808.0;
    match number {
        _ if number.is_nan() => "nan".to_string(),
        _ if number.abs() < INFINITE_FROM => format!("{number:.*}", usize::from(decimals)),
        _ if number < 0.0 => "-inf".to_string(),
        _ => "inf".to_string(),
    }
}
