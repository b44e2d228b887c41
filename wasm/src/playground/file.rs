//! A file in memory, read with progress.

use super::Progress;
use super::value::{is_given, of, optional, or};
use cardiograph_report::values::whole;
use cardiograph_trace::{Loaded, ReadError, ReadOptions, TimeUnit, read_from};
use serde::Deserialize;
use std::io::{self, Read};

/// Bytes between two reports of progress.
const STEP_BYTES: usize = 1 << 20;
/// Share of the work that reading a file takes; the rest is computing.
const SHARE: f64 = 0.7;

/// Options of the commands that read a file.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Options {
    pub name: String,
    pub block_bytes: String,
    pub time_unit: String,
    pub time_column: String,
    pub latency_column: String,
}

/// Reason why a file was not read.
pub enum Refusal {
    /// An option has an invalid value.
    Option(String),
    /// The file was refused.
    File(ReadError),
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal::Option(message)
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        Refusal::File(error)
    }
}

impl Refusal {
    /// Returns the sentence for a command with options for columns and units.
    pub fn with_options(self) -> String {
        match self {
            Refusal::Option(message) => message,
            Refusal::File(error) => error.to_string(),
        }
    }

    /// Returns the sentence for a command without them.
    pub fn without_options(self) -> String {
        match self {
            Refusal::Option(message) => message,
            Refusal::File(error) => error.without_options(),
        }
    }
}

impl Options {
    /// Reads the file.
    pub fn read(&self, file: &[u8], progress: Progress) -> Result<Loaded, Refusal> {
        let options = self.checked()?;
        let reader = Counted {
            left: file,
            total: file.len(),
            since: 0,
            progress,
        };
        Ok(read_from(&self.name, reader, &options)?)
    }

    fn checked(&self) -> Result<ReadOptions, String> {
        let parse = whole::<u64>(1..=1 << 30);
        let block_bytes = of("--block-bytes", or(&self.block_bytes, 512, parse))?;
        let unit = optional(&self.time_unit, |text| {
            TimeUnit::named(text).ok_or("expected s, ms, us or ns".to_string())
        });
        Ok(ReadOptions {
            block_bytes,
            time_unit: unit.map_err(|error| format!("--time-unit: {error}"))?,
            time_column: is_given(&self.time_column).map(str::to_owned),
            latency_column: is_given(&self.latency_column).map(str::to_owned),
            ..ReadOptions::default()
        })
    }
}

/// A reader that reports how much was read.
struct Counted<'a, 'b> {
    left: &'a [u8],
    total: usize,
    since: usize,
    progress: Progress<'b>,
}

impl Read for Counted<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.left.read(buffer)?;
        self.since += read;
        if self.since >= STEP_BYTES {
            self.since = 0;
            let done = self.total - self.left.len();
            (self.progress)(SHARE * done as f64 / self.total as f64);
        }
        Ok(read)
    }
}
