//! Where lines come from: made here, from standard input, or from a recording.

use super::args::{FormatArg, Record};
use super::checks::LINE_BYTES;
use crate::failure::Failure;
use crate::outputs::is_standard_output;
use cardiograph_compare::Recording;
use cardiograph_record::{Feed, Given, Lines, Samples, Times, TooLong};
use cardiograph_recorder::LINE_BYTES_MAX;
use cardiograph_trace::{Loaded, ReadOptions, read_from};
use std::io::{BufRead, Read};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// How long lines that are made here come.
const FOR: Duration = Duration::from_secs(60);

/// Where lines come from.
pub enum Source {
    /// Made here.
    Made(Lines),
    /// Made here, for binary files.
    Binary(Samples),
    /// Made by somebody else.
    Given(Given),
}

impl Source {
    /// The lines asked for. All of standard input is read before the first is recorded, as virtual time does
    /// not wait.
    pub fn of(args: &Record, rate_hz: NonZeroU32) -> Result<Source, Failure> {
        let count = |length: Duration| Recording::lines_before(rate_hz, length.as_nanos() as u64);
        let source = match &args.samples {
            None if args.format() == FormatArg::Binary => Source::Binary(Samples::new(
                rate_hz.get(),
                args.line.unwrap_or(LINE_BYTES),
                count(args.length.unwrap_or(FOR)),
            )),
            None => Source::Made(Lines {
                rate_hz: rate_hz.get(),
                line_bytes: args.line.unwrap_or(LINE_BYTES),
                count: count(args.length.unwrap_or(FOR)),
            }),
            Some(path) if is_standard_output(path) => {
                let lines_max = args.length.map_or(u64::MAX, count);
                Source::Given(from_standard_input(rate_hz.get(), lines_max)?)
            }
            Some(path) => Source::Given(replayed(path, args.length)?),
        };
        match source.feed().lines() {
            0 => Err(Failure::new(
                "there are no lines to record; record for longer with --for, or give --samples lines",
            )),
            _ => Ok(source),
        }
    }

    /// The lines.
    pub fn feed(&self) -> &(dyn Feed + Sync) {
        match self {
            Source::Made(lines) => lines,
            Source::Binary(samples) => samples,
            Source::Given(lines) => lines,
        }
    }
}

fn from_standard_input(rate_hz: u32, lines_max: u64) -> Result<Given, Failure> {
    let mut given = Given::new(Times::Rate(rate_hz));
    let mut input = std::io::stdin().lock();
    let (mut line, mut number) = (Vec::new(), 0);
    while number < lines_max {
        line.clear();
        // One that does not end is cut off where it is too long anyway.
        let mut piece = input.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        let read = piece.read_until(b'\n', &mut line);
        let read = read.map_err(|error| {
            Failure::new(format!(
                "standard input: {error}; give it lines of text, or name a file"
            ))
        })?;
        if read == 0 {
            break;
        }
        number += 1;
        let pushed = given.push(&line);
        pushed.map_err(|_| too_long("standard input", number))?;
    }
    Ok(given)
}

fn too_long(name: &str, line: u64) -> Failure {
    Failure::new(format!(
        "{name}, line {line}: longer than {LINE_BYTES_MAX} B with its CR LF; break it into shorter lines"
    ))
}

/// The lines of a recording, at its own times.
fn replayed(path: &Path, length: Option<Duration>) -> Result<Given, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| {
        Failure::new(format!(
            "{name}: {error}; give a recording that can be read"
        ))
    })?;
    let loaded = read_from(&name, &text[..], &ReadOptions::default()).map_err(Failure::new)?;
    let Loaded::Recording(recording) = loaded else {
        return Err(Failure::new(format!(
            "{name}: not a recording with a time column, but a trace; read it with `cardiograph analyze`"
        )));
    };
    let first_ns = recording.trace.first_start_ns();
    let length_ns = length.map_or(u64::MAX, |length| length.as_nanos() as u64);
    let mut lines = vec![(0, 0..0)];
    for sample in recording.trace.operations() {
        let start = sample.offset_bytes as usize;
        let end = start + sample.length_bytes as usize;
        lines.push((sample.end_ns - first_ns, start..end.min(text.len())));
    }
    // The first sample stands right before the second.
    let second = lines.get(1).map_or(0, |(_, line)| line.start);
    lines[0].1 = line_before(&text, second)..second;
    lines.retain(|(time_ns, _)| *time_ns < length_ns);
    let mut given = Given::new(Times::Own(
        lines.iter().map(|(time_ns, _)| *time_ns).collect(),
    ));
    for (_, line) in lines {
        let number = || {
            1 + text[..line.start]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count() as u64
        };
        let pushed = given.push(&text[line.clone()]);
        pushed.map_err(|TooLong { .. }| too_long(&name, number()))?;
    }
    Ok(given)
}

/// Where the line begins that ends before `end`.
fn line_before(text: &[u8], end: usize) -> usize {
    let line = &text[..end.saturating_sub(1)];
    line.iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1)
}
