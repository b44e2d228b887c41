//! Sources of samples: generated, standard input, or a recording.

use super::args::{FormatArg, Record};
use super::checks::SAMPLE_BYTES;
use crate::failure::Failure;
use crate::outputs::is_standard_output;
use cardiograph_compare::LoggerConfig;
use cardiograph_record::{BinarySamples, Feed, InputLines, Lines, Problem, Times, TooLong};
use cardiograph_recorder::LINE_BYTES_MAX;
use cardiograph_trace::{Loaded, ReadOptions, quoted_path, read_from};
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Default length of a recording of generated samples.
const DEFAULT_LENGTH: Duration = Duration::from_secs(60);

/// Source of samples.
pub enum Source {
    /// Generated lines of text.
    Generated(Lines),
    /// Generated binary samples.
    Binary(BinarySamples),
    /// Lines from standard input or a recording.
    Input(InputLines),
}

impl Source {
    /// Returns the source that the arguments select. Reads standard input to its end before recording starts,
    /// because virtual time cannot wait for input.
    pub fn of(args: &Record, rate_hz: NonZeroU32) -> Result<Source, Failure> {
        let count =
            |length: Duration| LoggerConfig::samples_before(rate_hz, length.as_nanos() as u64);
        let source = match &args.samples {
            None if args.format() == FormatArg::Binary => Source::Binary(BinarySamples::new(
                rate_hz.get(),
                args.sample_bytes.unwrap_or(SAMPLE_BYTES),
                count(args.length.unwrap_or(DEFAULT_LENGTH)),
            )),
            None => Source::Generated(Lines {
                rate_hz: rate_hz.get(),
                line_bytes: args.sample_bytes.unwrap_or(SAMPLE_BYTES),
                count: count(args.length.unwrap_or(DEFAULT_LENGTH)),
            }),
            Some(path) if is_standard_output(path) => {
                let lines_max = args.length.map_or(u64::MAX, count);
                Source::Input(from_standard_input(rate_hz.get(), lines_max)?)
            }
            Some(path) => Source::Input(replayed(path, args.length)?),
        };
        match source.feed().count() {
            0 => Err(Failure::new(
                "no samples to record; increase --for, or name a recording with samples",
            )),
            _ => Ok(source),
        }
    }

    /// Returns the source as a feed for the recorder.
    pub fn feed(&self) -> &(dyn Feed + Sync) {
        match self {
            Source::Generated(lines) => lines,
            Source::Binary(samples) => samples,
            Source::Input(lines) => lines,
        }
    }
}

fn from_standard_input(rate_hz: u32, lines_max: u64) -> Result<InputLines, Failure> {
    let mut stdin = std::io::stdin().lock();
    let lines = InputLines::read(Times::Rate(rate_hz), &mut stdin, lines_max);
    let lines = lines.map_err(|error| Failure::new(Problem::Input(error.to_string())))?;
    match lines.count() {
        0 => Err(Failure::new(Problem::NoLines)),
        _ => Ok(lines),
    }
}

fn too_long(name: &str, line: u64) -> Failure {
    Failure::new(format!(
        "{name}, line {line}: longer than {LINE_BYTES_MAX} B including its line end; split it into shorter lines"
    ))
}

/// Reads the lines of a recording, and the time of each line from the time column.
fn replayed(path: &Path, length: Option<Duration>) -> Result<InputLines, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read(path)
        .map_err(|error| Failure::new(format!("{name}: {error}; use a readable recording")))?;
    let loaded = read_from(&name, &text[..], &ReadOptions::default());
    let loaded = loaded.map_err(|error| match error.is_of_format() {
        true => Failure::new(format!(
            "{name}: this is not a recording, that is, a table with a time column such as time_us; `cardiograph analyze {}` \
             says how the file can be read",
            quoted_path(path)
        )),
        false => Failure::new(error),
    })?;
    let Loaded::Recording(recording) = loaded else {
        return Err(Failure::new(format!(
            "{name}: this is a trace, not a recording with a time column; use `cardiograph analyze` for traces"
        )));
    };
    if recording.trace.about.workload == "ULog" {
        return Err(Failure::new(format!(
            "{name}: a ULog file has no lines to replay; convert a topic to CSV with ulog2csv"
        )));
    }
    let first_ns = recording.trace.first_start_ns();
    let length_ns = length.map_or(u64::MAX, |length| length.as_nanos() as u64);
    let mut lines = vec![(0, 0..0)];
    for sample in recording.trace.operations() {
        let start = sample.offset_bytes as usize;
        let end = start + sample.length_bytes as usize;
        lines.push((sample.end_ns - first_ns, start..end.min(text.len())));
    }
    // The trace begins with the second sample; the first sample is the line directly before it.
    let second = lines.get(1).map_or(0, |(_, line)| line.start);
    lines[0].1 = line_before(&text, second)..second;
    lines.retain(|(time_ns, _)| *time_ns < length_ns);
    let mut input = InputLines::new(Times::PerLine(
        lines.iter().map(|(time_ns, _)| *time_ns).collect(),
    ));
    let header = header_before(&text, &lines[0].1);
    input.set_header(&header).map_err(|_| too_long(&name, 1))?;
    for (_, line) in lines {
        let number = || {
            1 + text[..line.start]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count() as u64
        };
        let pushed = input.push(&text[line.clone()]);
        pushed.map_err(|TooLong { .. }| too_long(&name, number()))?;
    }
    Ok(input)
}

/// Returns the column names: the last line before the first sample that has the same number of fields as the sample,
/// and contains letters.
fn header_before(text: &[u8], first: &Range<usize>) -> String {
    let fields = |line: &[u8]| {
        let is_separator = |byte: &&u8| matches!(byte, b',' | b';' | b'\t');
        line.iter().filter(is_separator).count()
    };
    let expected = fields(&text[first.clone()]);
    let is_header = |line: &&[u8]| {
        let has_letters = line.iter().any(u8::is_ascii_alphabetic);
        fields(line) == expected && has_letters && !line.contains(&b'#')
    };
    let lines = text[..first.start].split(|byte| *byte == b'\n');
    let header = lines.map(<[u8]>::trim_ascii_end).rfind(is_header);
    let header = String::from_utf8_lossy(header.unwrap_or_default());
    header.trim_start_matches('\u{FEFF}').to_string()
}

/// Returns the start of the line that ends at `end`.
fn line_before(text: &[u8], end: usize) -> usize {
    let line = &text[..end.saturating_sub(1)];
    line.iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1)
}
