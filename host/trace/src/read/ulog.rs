//! ULog, the logs of PX4: one topic of a file as a recording.
//!
//! A file is a header of 16 bytes and messages of a 16-bit length, a type and a payload, little endian:
//! <https://docs.px4.io/main/en/dev_log/ulog_file_format.html>.

use super::error::{Fault, Problem, shown};
use super::number::NUMBER_MAX;
use super::{ReadOptions, Recording, RecordingRun};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::collections::HashMap;

pub(super) const MAGIC: &[u8] = b"ULog\x01\x12\x35";
const HEADER_BYTES: usize = 16;
const NS_PER_US: u64 = 1000;
const TIMESTAMP: &str = "timestamp";

/// A subscription: an instance of a topic.
struct Topic {
    name: String,
    /// Position of the timestamp in a sample.
    timestamp_at: usize,
    samples: u64,
    /// First and last time in us.
    times_us: Option<(u64, u64)>,
}

impl Topic {
    /// Returns true if the clock moves: some topics have times of 0 only.
    fn has_times(&self) -> bool {
        self.times_us.is_some_and(|(first, last)| first != last)
    }
}

/// The messages of a file.
struct Messages<'a> {
    bytes: &'a [u8],
    at: usize,
}

struct Message<'a> {
    kind: u8,
    payload: &'a [u8],
    offset_bytes: u64,
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let length = usize::from(u16::from_le_bytes(*rest.first_chunk()?));
        let payload = rest.get(3..3 + length)?;
        let offset_bytes = self.at as u64;
        self.at += 3 + length;
        Some(Message {
            kind: rest[2],
            payload,
            offset_bytes,
        })
    }
}

/// Reads the topic that `--time-column` names, or the one with the most samples.
pub(super) fn read(
    bytes: &[u8],
    mut about: About,
    options: &ReadOptions,
) -> Result<Recording, Fault> {
    if options.time_unit.is_some() || options.latency_column.is_some() {
        let (format, option) = ("ULog file", "--time-unit and --latency-column");
        return Err(Problem::FixedFormat { format, option }.in_file());
    }
    let messages = || Messages {
        bytes,
        at: HEADER_BYTES,
    };
    let (topics, dropouts) = scan(messages());
    let (id, topic) = chosen(&topics, options)?;
    about.notes.push(format!(
        "The times are those of the topic {}; the topics in the file are {}. --time-column TOPIC chooses a different one.",
        shown(topic.name.as_bytes()),
        listed(&topics)
    ));
    about.notes.push(
        "Each interval between two samples counts as one operation, with the size in bytes of the later sample's message."
            .to_owned(),
    );
    if dropouts.count > 0 {
        about.notes.push(format!(
            "The logger reports {} dropouts of {} ms in total, in which it lost data.",
            dropouts.count, dropouts.ms
        ));
    }
    let mut all = messages();
    let mut trace = Trace::new(about);
    let mut before_us = None;
    for message in all.by_ref().filter(|message| message.kind == b'D') {
        let Some((found, time_us)) = sample(&message, topic.timestamp_at) else {
            continue;
        };
        if found != id {
            continue;
        }
        if let Some(before_us) = before_us {
            let in_ns = |us: u64| us.checked_mul(NS_PER_US).filter(|ns| *ns <= NUMBER_MAX);
            let (Some(end_ns), Some(start_ns)) = (in_ns(time_us), in_ns(before_us)) else {
                return Err(Problem::TotalTooLarge.at_byte(message.offset_bytes));
            };
            let operation = Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: message.offset_bytes,
                length_bytes: message.payload.len() as u64 + 3,
                start_ns,
                end_ns,
            };
            trace.push(&operation).map_err(|_| {
                let (time, before) = (time_us.to_string(), before_us.to_string());
                Problem::Backward { time, before }.at_byte(message.offset_bytes)
            })?;
        }
        before_us = Some(time_us);
    }
    if all.at < bytes.len() {
        let note = format!(
            "The file ends within the message at byte {}; it was skipped.",
            all.at
        );
        trace.about.notes.push(note);
    }
    if trace.is_empty() {
        return Err(Problem::OneSample.in_file());
    }
    Ok(Recording {
        samples: trace.len() as u64 + 1,
        runs: vec![RecordingRun {
            label: String::new(),
            samples: trace.len() as u64 + 1,
        }],
        sequence: None,
        trace,
        time_column: format!("{}.{TIMESTAMP}", topic.name),
        time_unit: "us",
    })
}

#[derive(Default)]
struct Dropouts {
    count: u64,
    ms: u64,
}

/// Counts the samples of all topics that have a timestamp.
fn scan(messages: Messages<'_>) -> (HashMap<u16, Topic>, Dropouts) {
    let mut formats: HashMap<String, String> = HashMap::new();
    let mut topics: HashMap<u16, Topic> = HashMap::new();
    let mut dropouts = Dropouts::default();
    for message in messages {
        let payload = message.payload;
        match message.kind {
            b'F' => {
                if let Some((name, fields)) = String::from_utf8_lossy(payload).split_once(':') {
                    formats.insert(name.to_owned(), fields.to_owned());
                }
            }
            b'A' => {
                let Some((&[instance, low, high], name)) = payload.split_first_chunk() else {
                    continue;
                };
                let name = String::from_utf8_lossy(name).into_owned();
                let fields = formats.get(&name).map(String::as_str).unwrap_or_default();
                if let Some(timestamp_at) = position(fields) {
                    let name = match instance {
                        0 => name,
                        _ => format!("{name}.{instance}"),
                    };
                    let topic = Topic {
                        name,
                        timestamp_at,
                        samples: 0,
                        times_us: None,
                    };
                    topics.insert(u16::from_le_bytes([low, high]), topic);
                }
            }
            b'D' => {
                let id = payload.first_chunk().map(|id| u16::from_le_bytes(*id));
                if let Some(topic) = id.and_then(|id| topics.get_mut(&id)) {
                    topic.samples += 1;
                    if let Some((_, time_us)) = sample(&message, topic.timestamp_at) {
                        let (first_us, _) = topic.times_us.unwrap_or((time_us, time_us));
                        topic.times_us = Some((first_us, time_us));
                    }
                }
            }
            b'O' => {
                let ms = payload
                    .first_chunk()
                    .map_or(0, |ms| u16::from_le_bytes(*ms));
                dropouts.count += 1;
                dropouts.ms += u64::from(ms);
            }
            _ => {}
        }
    }
    (topics, dropouts)
}

/// Returns the position of the field `timestamp` among fields such as `uint64_t timestamp;float[3] xyz`.
fn position(fields: &str) -> Option<usize> {
    let mut at = 0_usize;
    for field in fields.split(';') {
        let (kind, name) = field.trim().split_once(' ')?;
        if name == TIMESTAMP {
            return (kind == "uint64_t").then_some(at);
        }
        at = at.checked_add(size(kind)?)?;
    }
    None
}

/// Returns the size in bytes of a basic type or an array of one; `None` for nested types. PX4 writes the timestamp
/// before any field of a nested type.
fn size(kind: &str) -> Option<usize> {
    let (kind, count) = match kind.split_once('[') {
        Some((kind, count)) => (kind, count.strip_suffix(']')?.parse().ok()?),
        None => (kind, 1_usize),
    };
    let one = match kind {
        "int8_t" | "uint8_t" | "bool" | "char" => 1_usize,
        "int16_t" | "uint16_t" => 2,
        "int32_t" | "uint32_t" | "float" => 4,
        "int64_t" | "uint64_t" | "double" => 8,
        _ => return None,
    };
    one.checked_mul(count)
}

/// Returns the subscription and the time in us of a sample.
fn sample(message: &Message<'_>, timestamp_at: usize) -> Option<(u16, u64)> {
    let (id, sample) = message.payload.split_first_chunk()?;
    let time = sample.get(timestamp_at..)?.first_chunk()?;
    Some((u16::from_le_bytes(*id), u64::from_le_bytes(*time)))
}

fn chosen<'a>(
    topics: &'a HashMap<u16, Topic>,
    options: &ReadOptions,
) -> Result<(u16, &'a Topic), Fault> {
    let found = match &options.time_column {
        Some(wanted) => topics.iter().find(|(_, topic)| topic.name == *wanted),
        // Among topics with the same number of samples, take the first subscription.
        None => topics
            .iter()
            .filter(|(_, topic)| topic.has_times())
            .max_by_key(|(id, topic)| (topic.samples, std::cmp::Reverse(**id))),
    };
    match (found, &options.time_column) {
        (Some((_, topic)), _) if !topic.has_times() && topic.samples > 1 => {
            let (samples, times) = (topic.samples, 1);
            Err(Problem::Coarse { samples, times }.in_file())
        }
        (Some((id, topic)), _) => Ok((*id, topic)),
        (None, Some(wanted)) => {
            let (wanted, found) = (wanted.clone(), listed(topics));
            Err(Problem::NoTopic { wanted, found }.in_file())
        }
        (None, None) => Err(Problem::OneSample.in_file()),
    }
}

fn listed(topics: &HashMap<u16, Topic>) -> String {
    const SHOWN: usize = 20;
    let mut names: Vec<&str> = topics.values().map(|topic| topic.name.as_str()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let names: Vec<String> = names.iter().map(|name| shown(name.as_bytes())).collect();
    let names = names.join(", ");
    match more {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
