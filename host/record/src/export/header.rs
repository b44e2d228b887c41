//! Block headers and stream headers of the binary format, versions 1 and 2.

use super::ExportError;
use crate::crc::crc32;
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::{COLUMNS_MAX, DECIMALS_MAX, Kind, SAMPLE_BYTES_MAX};

const DESCRIPTION_V1: &str = "cardiograph recording 1\n";
const DESCRIPTION_V2: &str = "cardiograph recording 2\n";
const CRC_AT: usize = BLOCK_BYTES - 4;
pub(crate) const NO_SAMPLE: u16 = u16::MAX;
/// Maximum length of a stream header: two blocks.
const HEADER_BYTES_MAX: usize = 2 * 472;

/// Version of the binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Release 0.1: one stream, no times.
    V1,
    V2,
}

impl Version {
    fn payload_at(self) -> usize {
        match self {
            Version::V1 => 28,
            Version::V2 => 36,
        }
    }

    /// Returns the payload length of a gap block, in bytes.
    pub(crate) fn gap_bytes(self) -> usize {
        match self {
            Version::V1 => 25,
            Version::V2 => 33,
        }
    }
}

/// The header of a block: the fields before the payload.
#[derive(Clone, Copy)]
pub(crate) struct BlockHeader {
    pub(crate) epoch: u32,
    pub(crate) index: u32,
    pub(crate) kind: u8,
    pub(crate) stream: u8,
    used: usize,
    pub(crate) first: u16,
    pub(crate) age_ms: u32,
    version: Version,
}

impl BlockHeader {
    /// Parses the header of a block. Returns `None` if the checksum or a length is wrong.
    pub(crate) fn of(block: &Block, version: Version) -> Option<BlockHeader> {
        let number = |at: usize| u32::from_le_bytes(core::array::from_fn(|byte| block[at + byte]));
        let short = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
        let is_v2 = version == Version::V2;
        let head = BlockHeader {
            epoch: number(0),
            index: number(4),
            kind: block[12],
            stream: if is_v2 { block[13] } else { 0 },
            used: short(14).into(),
            first: short(16),
            age_ms: if is_v2 { number(32) } else { 0 },
            version,
        };
        let is_header = is_v2 && head.kind == 0;
        let is_right = number(CRC_AT) == crc32(&block[..CRC_AT])
            && head.used <= CRC_AT - version.payload_at()
            && (is_header || head.first == NO_SAMPLE || usize::from(head.first) <= head.used);
        is_right.then_some(head)
    }

    pub(crate) fn payload<'a>(&self, block: &'a Block) -> &'a [u8] {
        &block[self.version.payload_at()..][..self.used]
    }
}

/// Header of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) columns: Vec<(String, Kind)>,
    /// Keys that describe the file; `None` in version 0.1 recordings, which do not contain them.
    pub(crate) file: Option<FileKeys>,
}

/// Keys of a stream header that describe the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileKeys {
    pub(crate) prefix: String,
    pub(crate) number: u32,
    pub(crate) streams: u8,
    pub(crate) first: u64,
    pub(crate) at_us: u64,
    pub(crate) session: String,
    pub(crate) settings: String,
}

impl Header {
    pub(crate) fn sample_bytes(&self) -> usize {
        self.columns.iter().map(|(_, kind)| kind.bytes()).sum()
    }
}

/// Detects the version of a recording from its block 0.
pub(crate) fn version_of(block: &Block) -> Result<Version, ExportError> {
    for (version, description) in [(Version::V2, DESCRIPTION_V2), (Version::V1, DESCRIPTION_V1)] {
        let head = BlockHeader::of(block, version);
        let head = head.filter(|head| head.kind == 0 && head.index == 0);
        if head.is_some_and(|head| head.payload(block).starts_with(description.as_bytes())) {
            return Ok(version);
        }
    }
    Err(ExportError::NoHeader)
}

/// Result of parsing a header that may span two blocks.
pub(crate) enum Parsed {
    Whole(Header),
    /// The header continues in a second block, which was not passed.
    Part,
    Bad,
}

pub(crate) fn parse(bytes: &[u8], version: Version) -> Parsed {
    let Ok(text) = str::from_utf8(bytes) else {
        return Parsed::Bad;
    };
    match version {
        Version::V1 => match text.strip_prefix(DESCRIPTION_V1).and_then(columns_of) {
            Some(columns) => Parsed::Whole(Header {
                columns,
                file: None,
            }),
            None => Parsed::Bad,
        },
        Version::V2 => parse_v2(text).unwrap_or(Parsed::Bad),
    }
}

fn parse_v2(text: &str) -> Option<Parsed> {
    let mut rest = text.strip_prefix(DESCRIPTION_V2)?;
    let mut file = FileKeys::default();
    let mut sample_bytes = 0;
    let count: usize = loop {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        let (key, value) = line.split_once(' ')?;
        match key {
            "prefix" => file.prefix = value.to_string(),
            "number" => file.number = value.parse().ok()?,
            "streams" => file.streams = value.parse().ok()?,
            "first" => file.first = value.parse().ok()?,
            "at_us" => file.at_us = value.parse().ok()?,
            "sample_bytes" => sample_bytes = value.parse().ok()?,
            "session" => file.session = value.to_string(),
            "settings" => file.settings = value.to_string(),
            "columns" => break value.parse().ok()?,
            _ => (),
        }
    };
    let are_there = rest.ends_with('\n') && rest.lines().count() == count;
    if !are_there {
        let may_follow = text.len() < HEADER_BYTES_MAX && rest.lines().count() <= count;
        return may_follow.then_some(Parsed::Part);
    }
    let header = Header {
        columns: columns_of(rest)?,
        file: Some(file),
    };
    (header.sample_bytes() == sample_bytes).then_some(Parsed::Whole(header))
}

/// Parses column descriptions, one per line.
fn columns_of(text: &str) -> Option<Vec<(String, Kind)>> {
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
