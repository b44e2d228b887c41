//! Decodes a binary recording and passes the samples and gaps of its streams to a sink.

use super::header::{BlockHeader, Header, NO_SAMPLE, Parsed, Version, parse, version_of};
use super::{ExportError, Exported};
use cardiograph_card::{BLOCK_BYTES, Block};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::ops::RangeInclusive;

pub(crate) const CAUSES: [&str; 7] = [
    "busy",
    "no-card",
    "card-failed",
    "card-full",
    "file-not-ready",
    "read",
    "bad-sample",
];

/// A gap: a range of consecutive lost samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) at_us: u64,
    /// Arrival time of the last lost sample, in us; `None` in version 0.1 recordings, which do not contain
    /// it.
    pub(crate) last_us: Option<u64>,
    /// Cause of the loss, as an index into [`CAUSES`].
    pub(crate) cause: u8,
}

/// Receiver of the decoded contents of a recording.
pub(crate) trait Sink {
    /// Begins a stream.
    fn stream(&mut self, stream: u8, header: &Header) -> Result<(), ExportError>;
    /// Receives the samples that end in one block, and the time from the start of the file to the writing of
    /// this block, in ms.
    fn samples(&mut self, stream: u8, samples: &[Vec<u8>], age_ms: u32) -> Result<(), ExportError>;
    /// Receives a gap.
    fn gap(&mut self, stream: u8, gap: &Gap) -> Result<(), ExportError>;
    /// Receives the indices of omitted blocks.
    fn damaged(&mut self, blocks: RangeInclusive<u64>) -> Result<(), ExportError>;
}

#[derive(Default)]
struct Stream {
    header: Option<Header>,
    /// First bytes of a header that continues in the next block.
    header_part: Vec<u8>,
    /// First bytes of a sample that continues in the next block.
    carry: Vec<u8>,
    /// True if the stream's next block directly follows its previous block, so that the sample begun in
    /// `carry` can be completed.
    is_joined: bool,
}

struct Decoder<'a, S> {
    sink: &'a mut S,
    version: Version,
    streams: BTreeMap<u8, Stream>,
    /// Indices of the damaged blocks directly before the current block.
    damaged: Option<RangeInclusive<u64>>,
    exported: Exported,
}

/// Decodes a whole recording.
pub(crate) fn decode(mut input: impl Read, sink: &mut impl Sink) -> Result<Exported, ExportError> {
    let mut block = [0; BLOCK_BYTES];
    if read_block(&mut input, &mut block)? < BLOCK_BYTES {
        return Err(ExportError::NoHeader);
    }
    let version = version_of(&block)?;
    let first = BlockHeader::of(&block, version).ok_or(ExportError::NoHeader)?;
    let mut decoder = Decoder {
        sink,
        version,
        streams: BTreeMap::new(),
        damaged: None,
        exported: Exported::default(),
    };
    if !decoder.header(&first, first.payload(&block))? {
        return Err(ExportError::NoHeader);
    }
    for index in 1_u64.. {
        let bytes = read_block(&mut input, &mut block)?;
        if bytes == 0 {
            break;
        }
        let head = BlockHeader::of(&block, version).filter(|head| {
            bytes == BLOCK_BYTES && head.epoch == first.epoch && u64::from(head.index) == index
        });
        let is_used = match head {
            Some(head) => decoder.block(&head, head.payload(&block))?,
            None => false,
        };
        if !is_used {
            decoder.omit_block(index);
        }
    }
    decoder.report_damage()?;
    Ok(decoder.exported)
}

/// Reads a block; returns its bytes, fewer than a block at the end of the input.
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

impl<S: Sink> Decoder<'_, S> {
    /// Omits a damaged block, which may belong to any stream.
    fn omit_block(&mut self, index: u64) {
        let first = self
            .damaged
            .as_ref()
            .map_or(index, |damaged| *damaged.start());
        self.damaged = Some(first..=index);
        for stream in self.streams.values_mut() {
            stream.is_joined = false;
            stream.carry.clear();
            stream.header_part.clear();
        }
        self.exported.damaged_blocks += 1;
    }

    fn report_damage(&mut self) -> Result<(), ExportError> {
        match self.damaged.take() {
            Some(damaged) => self.sink.damaged(damaged),
            None => Ok(()),
        }
    }

    /// Decodes a block. Returns false if the block does not fit its position in the stream.
    fn block(&mut self, head: &BlockHeader, payload: &[u8]) -> Result<bool, ExportError> {
        if head.kind == 0 && self.version == Version::V2 {
            return self.header(head, payload);
        }
        let Some(stream) = self.streams.get_mut(&head.stream) else {
            return Ok(false);
        };
        let Some(sample_bytes) = stream.header.as_ref().map(Header::sample_bytes) else {
            return Ok(false);
        };
        match head.kind {
            1 if stream.fits(head, payload.len(), sample_bytes) => {
                let samples = stream.samples(head, payload, sample_bytes);
                self.report_damage()?;
                self.exported.samples += samples.len() as u64;
                self.sink.samples(head.stream, &samples, head.age_ms)?;
            }
            2 => {
                let Some(gap) = gap_of(payload, self.version) else {
                    return Ok(false);
                };
                // A gap is between two samples, never within one.
                stream.carry.clear();
                stream.is_joined = true;
                self.report_damage()?;
                self.exported.lost = self.exported.lost.saturating_add(gap.count);
                self.sink.gap(head.stream, &gap)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn header(&mut self, head: &BlockHeader, payload: &[u8]) -> Result<bool, ExportError> {
        let stream = self.streams.entry(head.stream).or_insert_with(|| Stream {
            is_joined: true,
            ..Stream::default()
        });
        let skip = match self.version {
            Version::V1 => 0,
            Version::V2 => usize::from(head.first),
        };
        if skip > 0 && skip != stream.header_part.len() {
            // The second block of a header that is already known, or whose first block is damaged.
            return Ok(stream.header.is_some());
        }
        stream.header_part.truncate(skip);
        stream.header_part.extend_from_slice(payload);
        match parse(&stream.header_part, self.version) {
            Parsed::Bad => {
                stream.header_part.clear();
                Ok(false)
            }
            Parsed::Part => Ok(true),
            Parsed::Whole(header) => {
                stream.header_part.clear();
                if stream.header.is_none() {
                    self.sink.stream(head.stream, &header)?;
                    stream.header = Some(header);
                    self.exported.streams += 1;
                }
                Ok(true)
            }
        }
    }
}

impl Stream {
    /// Returns true if the first sample of the block begins at the offset that follows from the previous block.
    fn fits(&self, head: &BlockHeader, used: usize, sample_bytes: usize) -> bool {
        if !self.is_joined {
            return true;
        }
        let missing = match self.carry.len() {
            0 => 0,
            begun => sample_bytes - begun,
        };
        match head.first {
            // The block contains only the continuation of a sample, or a part of it.
            NO_SAMPLE => used <= missing,
            first => usize::from(first) == missing,
        }
    }

    /// Returns the samples that end in a block.
    fn samples(&mut self, head: &BlockHeader, payload: &[u8], sample_bytes: usize) -> Vec<Vec<u8>> {
        let (rest, begun) = match head.first {
            NO_SAMPLE => (payload, &[][..]),
            first => payload.split_at(first.into()),
        };
        let mut samples = Vec::new();
        if self.is_joined {
            self.carry.extend_from_slice(rest);
        }
        if self.carry.len() == sample_bytes {
            samples.push(std::mem::take(&mut self.carry));
        }
        if head.first == NO_SAMPLE {
            return samples;
        }
        self.is_joined = true;
        let whole = begun.chunks_exact(sample_bytes);
        self.carry = whole.remainder().to_vec();
        samples.extend(whole.map(<[u8]>::to_vec));
        samples
    }
}

fn gap_of(payload: &[u8], version: Version) -> Option<Gap> {
    let cause = *payload.last()?;
    if payload.len() != version.gap_bytes() || usize::from(cause) >= CAUSES.len() {
        return None;
    }
    let number = |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| payload[at + byte]));
    Some(Gap {
        first: number(0),
        count: number(8),
        at_us: number(16),
        last_us: (version == Version::V2).then(|| number(24)),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::CAUSES;
    use cardiograph_recorder::Cause;

    #[test]
    fn causes_have_the_words_of_the_recorder() {
        let causes = [
            Cause::Busy,
            Cause::NoCard,
            Cause::CardFailed,
            Cause::CardFull,
            Cause::FileNotReady,
            Cause::Read,
            Cause::BadSample,
        ];
        for (code, cause) in causes.into_iter().enumerate() {
            assert_eq!(cause as usize, code);
            assert_eq!(CAUSES[code], cause.word());
        }
    }
}
