//! The recorder behind the server: status, samples, gaps and control.

use crate::storage::RecordingPath;
use cardiograph_recorder::SessionError;
use core::fmt;

/// Maximum length of a sample as text, in bytes, without a line end.
pub const ROW_BYTES_MAX: usize = 512;

/// The recorder's side of the server. No method waits. The server polls at its own pace, so a client costs the recorder
/// nothing.
pub trait Instrument {
    /// Returns the state of the recorder, or `None` if this server has no recorder.
    fn status(&self) -> Option<Status>;

    /// Writes the reason why samples cannot be recorded now as a sentence; nothing if there is none.
    ///
    /// # Errors
    /// Those of `text`.
    fn write_fault(&self, _text: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }

    /// Writes a sentence about a condition that does not prevent a recording, such as a router that refuses its password;
    /// writes nothing if there is none.
    ///
    /// # Errors
    /// Those of `text`.
    fn write_notice(&self, _text: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }

    /// Writes the names of a stream's columns, separated by commas, to `row`; returns their length. 0 means
    /// that the stream has no columns or does not exist.
    fn columns(&self, stream: u8, row: &mut [u8; ROW_BYTES_MAX]) -> usize;

    /// Returns the number of the next sample of a stream: that of the newest one, plus 1, or 0 if there is none.
    fn next(&self, stream: u8) -> u64;

    /// Writes a sample as text, without line end, to `row`.
    fn sample(&self, stream: u8, number: u64, row: &mut [u8; ROW_BYTES_MAX]) -> Sample;

    /// Returns the gap with this number, counted from 0 at the start of the device; `None` after the last one.
    /// If it is no longer known, returns the oldest known gap with its number.
    fn gap(&self, number: u64) -> Option<Gap>;

    /// Returns the latency of a write by its number, counted from 0 at the start of the device; `None` after the newest
    /// one, and on devices that keep none. If it is no longer known, returns the oldest known one with its number.
    fn latency(&self, _number: u64) -> Option<WriteLatency> {
        None
    }

    /// Starts, stops or rotates the recording.
    ///
    /// # Errors
    /// [`Refusal`] if it is not possible now.
    fn control(&self, command: Command) -> Result<(), Refusal>;

    /// Carries out an action that the application adds to those of a recorder; see [`Instrument::item`].
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] if there is no such action, or another [`Refusal`] if it is not possible now.
    fn act(&self, _action: &str) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }

    /// Writes the text of an item that the application adds to the page to `text`, as UTF-8, and returns its length in
    /// bytes and its kind. Items are numbered from 0; `None` after the last one.
    fn item(&self, _number: usize, _text: &mut [u8; ROW_BYTES_MAX]) -> Option<(Item, usize)> {
        None
    }

    /// Sets the clock to `unix_ms`, in ms since 1970-01-01 UTC, in a zone `zone_min` minutes east of UTC.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] if the device has no clock to set, or [`Refusal::Recording`] if the clock cannot
    /// change during a recording.
    fn set_clock(&self, unix_ms: u64, zone_min: i16) -> Result<(), Refusal>;
}

/// State of a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Samples are being recorded.
    pub is_recording: bool,
    /// Number of streams.
    pub streams: u8,
    /// Bytes in the ring of the stream that is closest to overflowing.
    pub ring_bytes: u32,
    /// Capacity of that ring, in bytes.
    pub ring_capacity_bytes: u32,
    /// Highest level of that ring, in bytes.
    pub ring_bytes_max: u32,
    /// Samples taken since the start, of all streams.
    pub samples: u64,
    /// Samples lost since the start.
    pub lost: u64,
    /// Gaps since the start.
    pub gaps: u64,
    /// Bytes written to the card since the start.
    pub written_bytes: u64,
    /// Incoming rate in bytes per second.
    pub rate_bytes_per_s: u32,
    /// Writes since the start.
    pub writes: u64,
    /// Median write latency in us.
    pub write_us_median: u32,
    /// 99th percentile of the write latency in us.
    pub write_us_p99: u32,
    /// Longest write latency in us.
    pub write_us_max: u32,
    /// Durability window in ms.
    pub window_ms: u32,
    /// Times the window was exceeded.
    pub windows_exceeded: u64,
    /// Age of the oldest sample that is not durable, in ms.
    pub unsaved_ms: u32,
    /// The device knows the date and time.
    pub has_clock: bool,
}

/// A sample, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// The sample as text: the given number of bytes of the buffer.
    Row(usize),
    /// The sample has not been taken yet.
    Later,
    /// The sample is no longer in memory, but in this file, whose first sample has the number `first`.
    OnCard {
        /// Path of the file.
        path: RecordingPath,
        /// Number of the first sample in the file.
        first: u64,
    },
    /// The samples up to `next` are lost, or can no longer be located.
    Lost {
        /// Number of the next available sample, greater than the requested number.
        next: u64,
        /// Keyword for the reason.
        cause: &'static str,
    },
    /// There is no such stream, or no recorder.
    None,
}

/// A gap: consecutive lost samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the gap, from 0.
    pub number: u64,
    /// Stream.
    pub stream: u8,
    /// Number of the first lost sample.
    pub first: u64,
    /// Number of lost samples.
    pub count: u64,
    /// Time at which the first was lost, in us of the recorder's clock.
    pub at_us: u64,
    /// Time at which the last was lost, in us of the recorder's clock.
    pub last_us: u64,
    /// Keyword for the reason.
    pub cause: &'static str,
}

/// Latency of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLatency {
    /// Number of the write, from 0.
    pub number: u64,
    /// End of the write, in ms since the start of the device.
    pub at_ms: u64,
    /// Latency, in us.
    pub us: u32,
}

impl Gap {
    /// Returns the gap of a stream with this number.
    pub fn of(number: u64, stream: u8, gap: &cardiograph_recorder::Gap) -> Gap {
        Gap {
            number,
            stream,
            first: gap.first,
            count: gap.count,
            at_us: gap.at_us,
            last_us: gap.last_us,
            cause: gap.cause.word(),
        }
    }
}

/// Kind of an item that the application adds to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A button for [`Instrument::act`]. The text is its label.
    Action {
        /// Name of the action, of at most 8 letters.
        name: &'static str,
        /// For one of several choices: whether it is in effect.
        is_chosen: Option<bool>,
    },
    /// A row of a table, whose cells are separated by tabs. The first row names the columns.
    Row,
    /// A sentence.
    Sentence,
}

/// A request to the recorder. Names and settings follow the recorder's rules: 1 to 32 letters, digits, `-` and
/// `_`, and up to 96 printable ASCII characters without double quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Starts recording; a session is optional.
    Start(Option<Session<'a>>),
    /// Stops recording and closes the files.
    Stop,
    /// Continues in new files; a session is optional.
    Rotate(Option<Session<'a>>),
}

/// A session to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'a> {
    /// Name.
    pub name: &'a str,
    /// Settings; may be empty.
    pub settings: &'a str,
}

/// Reason why the recorder refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// This server has no recorder, or the device does not support the request.
    Unsupported,
    /// A recording is in progress.
    Recording,
    /// No recording is in progress.
    NotRecording,
    /// The session's name or settings are invalid.
    SessionInvalid,
    /// Requests or gaps are queued; try again later.
    Busy,
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Refusal {
        match error {
            SessionError::QueueFull => Refusal::Busy,
            SessionError::Stopped => Refusal::NotRecording,
            // Name, settings or schema.
            _ => Refusal::SessionInvalid,
        }
    }
}

/// A server without a recorder.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInstrument;

impl Instrument for NoInstrument {
    fn status(&self) -> Option<Status> {
        None
    }

    fn columns(&self, _: u8, _: &mut [u8; ROW_BYTES_MAX]) -> usize {
        0
    }

    fn next(&self, _: u8) -> u64 {
        0
    }

    fn sample(&self, _: u8, _: u64, _: &mut [u8; ROW_BYTES_MAX]) -> Sample {
        Sample::None
    }

    fn gap(&self, _: u64) -> Option<Gap> {
        None
    }

    fn control(&self, _: Command) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }

    fn set_clock(&self, _: u64, _: i16) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }
}
