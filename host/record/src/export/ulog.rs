//! ULog, PX4's self-describing log format: one topic per stream, one for gaps, and dropouts.
//!
//! ```text
//!   magic, start ── B flag bits ── I about the file ── F formats ── A topics ── D samples and gaps, O dropouts
//! ```
//!
//! A dropout contains a duration only, and refers to the time directly before it in the log. The gaps of all
//! streams are therefore merged into intervals first; the dropouts of an interval are written at the
//! interval's first gap.

use super::ExportError;
use super::decode::{Gap, Sink};
use super::header::Header;
use cardiograph_recorder::Kind;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::RangeInclusive;

/// Longest dropout that one ULog message can express, in ms.
const DROPOUT_MS_MAX: u64 = u16::MAX as u64;
/// Longest gap interval that is written, 49 days: damaged files may contain any times.
const GAP_MS_MAX: u64 = 1 << 32;
const GAP_FORMAT: &str = "gap:uint64_t timestamp;uint64_t first;uint64_t count;uint64_t last_us;\
                          uint8_t stream;uint8_t cause;";
/// Identifier of the gap topic; streams have identifiers above this one.
const GAP_ID: u16 = 0;

/// First pass: collects the start of the log, and the intervals in which samples of any stream are missing.
#[derive(Default)]
pub(super) struct Survey {
    start_us: Option<u64>,
    headers: BTreeMap<u8, Header>,
    gaps: Vec<(u64, u64)>,
}

impl Sink for Survey {
    fn stream(&mut self, stream: u8, header: &Header) -> Result<(), ExportError> {
        let at_us = header.file.as_ref().map_or(0, |file| file.at_us);
        self.start_us = Some(self.start_us.map_or(at_us, |start_us| start_us.min(at_us)));
        self.headers.insert(stream, header.clone());
        Ok(())
    }

    fn samples(&mut self, _: u8, _: &[Vec<u8>], _: u32) -> Result<(), ExportError> {
        Ok(())
    }

    fn gap(&mut self, _: u8, gap: &Gap) -> Result<(), ExportError> {
        let last_us = gap.last_us.unwrap_or(gap.at_us);
        self.gaps.push((gap.at_us, last_us.max(gap.at_us)));
        Ok(())
    }

    fn damaged(&mut self, _: RangeInclusive<u64>) -> Result<(), ExportError> {
        Ok(())
    }
}

impl Survey {
    /// Returns the union of all gaps as time intervals, in order.
    fn intervals(&self) -> Vec<(u64, u64)> {
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable();
        let mut union: Vec<(u64, u64)> = Vec::new();
        for (from_us, to_us) in gaps {
            match union.last_mut() {
                Some(last) if from_us <= last.1 => last.1 = last.1.max(to_us),
                _ => union.push((from_us, to_us)),
            }
        }
        union
    }
}

/// Second pass: writes the log.
pub(super) struct Ulog<Out, Damaged> {
    pub(super) out: Out,
    damaged: Damaged,
    topics: BTreeMap<u8, Topic>,
    /// Union of the gaps of all streams as time intervals, in order.
    intervals: Vec<(u64, u64)>,
    /// For each interval, true once its dropouts are written.
    are_written: Vec<bool>,
}

struct Topic {
    id: u16,
    clock: Clock,
}

/// Source of timestamps.
enum Clock {
    /// A column that contains the time.
    Column {
        at: usize,
        kind: Kind,
        us_per_count: u64,
        last: u64,
        /// Offset added to the column's value; grows each time the column wraps around.
        high: u64,
    },
    /// The times in the block headers. The samples that end in a block are spread evenly over the time since
    /// the previous block.
    Blocks { begun_us: u64, last_us: u64 },
}

impl<Out: Write, Damaged: FnMut(RangeInclusive<u64>)> Ulog<Out, Damaged> {
    /// Writes the definitions that precede the data.
    pub(super) fn new(out: Out, damaged: Damaged, survey: &Survey) -> Result<Self, ExportError> {
        let intervals = survey.intervals();
        let mut log = Ulog {
            out,
            damaged,
            topics: BTreeMap::new(),
            are_written: vec![false; intervals.len()],
            intervals,
        };
        log.write(b"\x55\x4c\x6f\x67\x01\x12\x35\x01")?;
        log.write(&survey.start_us.unwrap_or(0).to_le_bytes())?;
        log.message(b'B', &[&[0; 40]])?;
        log.about(survey)?;
        log.message(b'F', &[GAP_FORMAT.as_bytes()])?;
        let names: Vec<_> = survey.headers.iter().map(topic_name).collect();
        for (name, header) in names.iter().zip(survey.headers.values()) {
            log.message(b'F', &[format_of(name, header).as_bytes()])?;
        }
        log.add(GAP_ID, "gap")?;
        for (id, (name, (stream, header))) in (GAP_ID + 1..).zip(names.iter().zip(&survey.headers))
        {
            log.add(id, name)?;
            let clock = Clock::of(header)?;
            log.topics.insert(*stream, Topic { id, clock });
        }
        Ok(log)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.out.write_all(bytes).map_err(ExportError::Write)
    }

    /// Writes a message: its length, its kind and its parts.
    fn message(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), ExportError> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        // No message reaches this length: there are at most 32 columns, and their names fit a header of 944 bytes.
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        self.write(&len.to_le_bytes())?;
        self.write(&[kind])?;
        parts.iter().try_for_each(|part| self.write(part))
    }

    fn about(&mut self, survey: &Survey) -> Result<(), ExportError> {
        self.info("sys_name", "Cardiograph")?;
        let Some(file) = survey
            .headers
            .values()
            .find_map(|header| header.file.as_ref())
        else {
            return Ok(());
        };
        self.info("recording", &format!("{} {}", file.prefix, file.number))?;
        self.info("session", &file.session)?;
        self.info("settings", &file.settings)
    }

    fn info(&mut self, key: &str, value: &str) -> Result<(), ExportError> {
        if value.is_empty() {
            return Ok(());
        }
        let key = format!("char[{}] {key}", value.len());
        self.message(
            b'I',
            &[&[key.len() as u8], key.as_bytes(), value.as_bytes()],
        )
    }

    fn add(&mut self, id: u16, name: &str) -> Result<(), ExportError> {
        self.message(b'A', &[&[0], &id.to_le_bytes(), name.as_bytes()])
    }

    /// Writes the dropouts of the interval that contains a gap, unless they were written at an earlier gap
    /// of this interval.
    fn dropouts(&mut self, at_us: u64) -> Result<(), ExportError> {
        let index = self
            .intervals
            .partition_point(|(from_us, _)| *from_us <= at_us);
        let Some(index) = index.checked_sub(1) else {
            return Ok(());
        };
        if std::mem::replace(&mut self.are_written[index], true) {
            return Ok(());
        }
        let (from_us, to_us) = self.intervals[index];
        // A single lost sample is a dropout too.
        let mut left_ms = (to_us - from_us).div_ceil(1000).clamp(1, GAP_MS_MAX);
        while left_ms > 0 {
            let ms = left_ms.min(DROPOUT_MS_MAX);
            self.message(b'O', &[&(ms as u16).to_le_bytes()])?;
            left_ms -= ms;
        }
        Ok(())
    }
}

impl<Out: Write, Damaged: FnMut(RangeInclusive<u64>)> Sink for Ulog<Out, Damaged> {
    fn stream(&mut self, _: u8, _: &Header) -> Result<(), ExportError> {
        Ok(())
    }

    fn samples(&mut self, stream: u8, samples: &[Vec<u8>], age_ms: u32) -> Result<(), ExportError> {
        let Some(topic) = self.topics.get_mut(&stream) else {
            return Ok(());
        };
        let id = topic.id;
        let times_us = topic.clock.times_us(samples, age_ms);
        for (sample, time_us) in samples.iter().zip(times_us) {
            self.message(b'D', &[&id.to_le_bytes(), &time_us.to_le_bytes(), sample])?;
        }
        Ok(())
    }

    fn gap(&mut self, stream: u8, gap: &Gap) -> Result<(), ExportError> {
        let end_us = gap.last_us.unwrap_or(gap.at_us);
        if let Some(Topic {
            clock: Clock::Blocks { last_us, .. },
            ..
        }) = self.topics.get_mut(&stream)
        {
            *last_us = (*last_us).max(end_us);
        }
        let mut data = GAP_ID.to_le_bytes().to_vec();
        for number in [gap.at_us, gap.first, gap.count, end_us] {
            data.extend(number.to_le_bytes());
        }
        data.extend([stream, gap.cause]);
        self.message(b'D', &[&data])?;
        self.dropouts(gap.at_us)
    }

    fn damaged(&mut self, blocks: RangeInclusive<u64>) -> Result<(), ExportError> {
        (self.damaged)(blocks);
        Ok(())
    }
}

impl Clock {
    fn of(header: &Header) -> Result<Clock, ExportError> {
        let mut at = 0;
        for (name, kind) in &header.columns {
            let us_per_count = match name.as_str() {
                "time_us" => Some(1),
                "time_ms" => Some(1000),
                _ => None,
            };
            let is_float = matches!(kind, Kind::F32(_) | Kind::F64(_));
            if let (Some(us_per_count), false) = (us_per_count, is_float) {
                return Ok(Clock::Column {
                    at,
                    kind: *kind,
                    us_per_count,
                    last: 0,
                    high: 0,
                });
            }
            at += kind.bytes();
        }
        let file = header.file.as_ref().ok_or(ExportError::NoTimes)?;
        Ok(Clock::Blocks {
            begun_us: file.at_us,
            last_us: file.at_us,
        })
    }

    /// Returns the timestamps of the samples that end in one block.
    fn times_us(&mut self, samples: &[Vec<u8>], age_ms: u32) -> Vec<u64> {
        match self {
            Clock::Blocks { begun_us, last_us } => {
                let from_us = *last_us;
                let to_us = begun_us.saturating_add(u64::from(age_ms) * 1000);
                *last_us = to_us.max(from_us);
                let span_us = u128::from(*last_us - from_us);
                let count = samples.len() as u128;
                let time_us = |nth: u128| from_us + (span_us * nth / count) as u64;
                (1..=count).map(time_us).collect()
            }
            Clock::Column {
                at,
                kind,
                us_per_count,
                last,
                high,
            } => {
                let mut times_us = Vec::new();
                for sample in samples {
                    let count = unsigned(*kind, &sample[*at..][..kind.bytes()]);
                    let range = 1_u64.checked_shl(8 * kind.bytes() as u32);
                    // A step back by more than half of the range is not jitter: the column wrapped around.
                    if let Some(range) = range
                        && count < *last
                        && *last - count > range / 2
                    {
                        *high = high.saturating_add(range);
                    }
                    *last = count;
                    let time = high.saturating_add(count).saturating_mul(*us_per_count);
                    times_us.push(time);
                }
                times_us
            }
        }
    }
}

/// Returns the value of an integer column, with negative values as 0.
fn unsigned(kind: Kind, bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let number = u64::from_le_bytes(wide);
    let signed = match kind {
        Kind::I16 => i64::from(number as i16),
        Kind::I32 => i64::from(number as i32),
        Kind::I64 => number as i64,
        _ => return number,
    };
    signed.max(0) as u64
}

/// Returns the name of a stream's topic: the prefix of its files and its number.
fn topic_name((stream, header): (&u8, &Header)) -> String {
    let prefix = header.file.as_ref().map_or("rec", |file| &file.prefix);
    format!("{}_{stream}", field_name(&prefix.to_ascii_lowercase()))
}

fn format_of(name: &str, header: &Header) -> String {
    let mut format = format!("{name}:uint64_t timestamp;");
    let mut used = vec!["timestamp".to_string()];
    for (column, kind) in &header.columns {
        let word = match kind {
            Kind::U8 => "uint8_t",
            Kind::U16 => "uint16_t",
            Kind::U32 => "uint32_t",
            Kind::U64 => "uint64_t",
            Kind::I16 => "int16_t",
            Kind::I32 => "int32_t",
            Kind::I64 => "int64_t",
            Kind::F32(_) => "float",
            Kind::F64(_) => "double",
        };
        let mut field = field_name(column);
        while used.contains(&field) {
            field.push('_');
        }
        format.push_str(&format!("{word} {field};"));
        used.push(field);
    }
    format
}

/// Converts a name to letters, digits and underscores.
fn field_name(name: &str) -> String {
    let safe = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '_',
    };
    let field: String = name.chars().map(safe).collect();
    match field.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => field,
        // ULog reserves leading underscores for padding.
        false => format!("f{field}"),
    }
}
