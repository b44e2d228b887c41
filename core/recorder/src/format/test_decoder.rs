//! Decodes binary files according to docs/formats.md, without the encoder's code.

use crate::crc32::crc32;
use cardiograph_card::Block;
use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

/// One stream in one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(super) keys: BTreeMap<String, String>,
    header: Vec<u8>,
    /// All blocks of the header have been read.
    is_complete: bool,
    /// Index and bytes of each sample.
    pub(crate) samples: Vec<(u64, Vec<u8>)>,
    /// First, count, at_us, last_us.
    pub(crate) gaps: Vec<[u64; 4]>,
    next: u64,
    carry: Vec<u8>,
    pub(super) age_ms: u32,
}

impl Part {
    pub(super) fn number(&self, key: &str) -> u64 {
        self.keys[key].parse().unwrap()
    }

    pub(super) fn lost(&self) -> u64 {
        self.gaps.iter().map(|gap| gap[1]).sum()
    }
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(wide)
}

/// Decodes a file up to its end, or up to the block at which it was truncated.
pub(crate) fn decode(blocks: &[Block], epoch: u32, file_number: u32) -> BTreeMap<u8, Part> {
    let mut parts: BTreeMap<u8, Part> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        assert_eq!(number(block, 508, 4), u64::from(crc32(0, &block[..508])));
        assert_eq!(number(block, 0, 4), u64::from(epoch), "epoch");
        assert_eq!(number(block, 4, 4), index as u64, "index");
        let durable = number(block, 8, 4);
        match index {
            0 => assert_eq!(durable, u64::from(file_number)),
            _ => assert!(durable <= index as u64),
        }
        let (kind, stream) = (block[12], block[13]);
        let used = number(block, 14, 2) as usize;
        assert!(used <= 472 && block[36 + used..508].iter().all(|byte| *byte == 0));
        let payload = &block[36..36 + used];
        assert!(kind == 0 || parts.contains_key(&stream), "no header yet");
        let part = parts.entry(stream).or_default();
        let (first, sample) = (number(block, 16, 2) as usize, number(block, 20, 8));
        match kind {
            0 => take_header(part, payload, first),
            1 => {
                assert!(part.is_complete, "the header is incomplete");
                take_samples(part, payload, first, sample);
            }
            2 => {
                assert!(part.carry.is_empty() && used == 33);
                let gap: [u64; 4] = core::array::from_fn(|at| number(payload, at * 8, 8));
                assert_eq!((first, sample, gap[0]), (0, gap[0], part.next));
                part.next += gap[1];
                part.gaps.push(gap);
            }
            _ => panic!("unknown kind of block: {kind}"),
        }
        assert_eq!(number(block, 18, 2), part.gaps.len() as u64, "gaps");
        assert_eq!(number(block, 28, 4), part.lost(), "lost");
        part.age_ms = number(block, 32, 4) as u32;
    }
    parts
}

/// Asserts that no sample continues in another file.
pub(super) fn assert_closed(parts: &BTreeMap<u8, Part>) {
    for (stream, part) in parts {
        assert!(
            part.carry.is_empty(),
            "stream {stream} ends within a sample"
        );
    }
}

fn take_header(part: &mut Part, payload: &[u8], skip: usize) {
    assert!(part.carry.is_empty());
    assert_eq!(skip, if skip == 0 { 0 } else { part.header.len() });
    part.header.truncate(skip);
    part.header.extend_from_slice(payload);
    let text = String::from_utf8(part.header.clone()).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("cardiograph recording 2"));
    let mut keys = BTreeMap::new();
    let mut columns = None;
    for line in lines.by_ref() {
        let (key, value) = line.split_once(' ').unwrap();
        keys.insert(key.to_string(), value.to_string());
        if key == "columns" {
            columns = Some(value.parse::<usize>().unwrap());
            break;
        }
    }
    if part.keys.is_empty() {
        part.next = keys["first"].parse().unwrap();
        part.keys = keys;
    } else {
        assert_eq!(part.keys, keys, "a header that was repeated");
    }
    part.is_complete = text.ends_with('\n') && columns == Some(lines.count());
}

fn take_samples(part: &mut Part, payload: &[u8], first: usize, sample: u64) {
    let bytes = part.number("sample_bytes") as usize;
    let rest = (bytes - part.carry.len()) % bytes;
    let begins = part.next + u64::from(!part.carry.is_empty());
    assert_eq!(sample, begins);
    match payload.len() > rest {
        true => assert_eq!(first, rest),
        false => assert_eq!(first, 0xFFFF),
    }
    let mut all = part.carry.clone();
    all.extend_from_slice(payload);
    let whole = all.chunks_exact(bytes);
    part.carry = whole.remainder().to_vec();
    for sample in whole {
        part.samples.push((part.next, sample.to_vec()));
        part.next += 1;
    }
}

/// Checks that samples and gaps of consecutive files follow each other; the error describes the first
/// violation.
pub(super) fn check_order(
    files: &[BTreeMap<u8, Part>],
    stream: u8,
    end: u64,
) -> Result<(), String> {
    let mut next = 0;
    for part in files.iter().filter_map(|file| file.get(&stream)) {
        let mut spans: Vec<(u64, u64)> = vec![];
        spans.extend(part.samples.iter().map(|(index, _)| (*index, 1)));
        spans.extend(part.gaps.iter().map(|gap| (gap[0], gap[1])));
        spans.sort_unstable();
        if part.number("first") != next {
            return Err(format!(
                "a file begins at {}, not {next}",
                part.number("first")
            ));
        }
        for (first, count) in spans {
            if first != next || count == 0 {
                return Err(format!("expected index {next}, found {first}"));
            }
            next += count;
        }
    }
    match next == end {
        true => Ok(()),
        false => Err(format!("the stream ends at {next}, not {end}")),
    }
}
