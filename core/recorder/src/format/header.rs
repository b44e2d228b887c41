//! Header of a stream in a binary file: lines of text in one or two blocks.
//!
//! ```text
//!   cardiograph recording 2
//!   prefix LOG
//!   number 12
//!   streams 1
//!   first 0
//!   at_us 60012345
//!   sample_bytes 6
//!   session run-3            only with a session
//!   settings gain=4          only with settings
//!   columns 2
//!   time_ms u32
//!   level i16
//! ```
//!
//! `first` is the index of the stream's first sample in the file, lost ones included, and `at_us` the time at
//! which the file began. If a header continues in a second block, the `first` field of that block's head is
//! the number of header bytes before it.

use super::binary::PAYLOAD_BYTES;
use super::decimal::Text;
use super::schema::Schema;
use crate::session::{SESSION_NAME_BYTES_MAX, SETTINGS_BYTES_MAX};
use crate::session::{Session, SessionName};

/// First line of a header.
const DESCRIPTION: &str = "cardiograph recording 2\n";

/// Maximum length of the text before the columns: description, prefix, number, streams, first, at_us,
/// sample_bytes, session, settings, columns.
pub(crate) const FILE_BYTES_MAX: usize = DESCRIPTION.len()
    + 11
    + 18
    + 12
    + 27
    + 27
    + 17
    + 9
    + SESSION_NAME_BYTES_MAX
    + 10
    + SETTINGS_BYTES_MAX
    + 11;
// Everything that recovery needs is in the first block.
const _: () = assert!(FILE_BYTES_MAX <= PAYLOAD_BYTES);

/// Content of a header.
pub(crate) struct Header<'a> {
    pub(crate) prefix: [u8; 3],
    pub(crate) number: u32,
    pub(crate) streams: u8,
    pub(crate) first: u64,
    pub(crate) at_us: u64,
    pub(crate) session: Option<&'a Session>,
    pub(crate) schema: &'static Schema,
}

impl Header<'_> {
    pub(crate) fn write(&self, text: &mut Text) {
        text.push(DESCRIPTION.as_bytes());
        text.push(b"prefix ");
        text.push(&self.prefix);
        for (name, number) in [
            ("\nnumber ", self.number.into()),
            ("\nstreams ", self.streams.into()),
            ("\nfirst ", self.first),
            ("\nat_us ", self.at_us),
            ("\nsample_bytes ", self.schema.sample_bytes() as u64),
        ] {
            text.push(name.as_bytes());
            text.push_unsigned(number);
        }
        if let Some(session) = self.session {
            text.push(b"\nsession ");
            text.push(session.name().as_str().as_bytes());
            let settings = session.settings().as_str();
            if !settings.is_empty() {
                text.push(b"\nsettings ");
                text.push(settings.as_bytes());
            }
        }
        text.push(b"\ncolumns ");
        text.push_unsigned(self.schema.columns().len() as u64);
        text.push(b"\n");
        self.schema.describe(text);
    }
}

/// The fields of a header that recovery needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) number: u32,
    pub(crate) streams: u8,
    pub(crate) first: u64,
    pub(crate) at_us: u64,
    pub(crate) sample_bytes: u16,
    pub(crate) session: Option<SessionName>,
}

/// Parses the payload of a header's first block.
pub(crate) fn read(payload: &[u8]) -> Option<Summary> {
    let lines = payload.strip_prefix(DESCRIPTION.as_bytes())?;
    let mut summary = Summary::default();
    for line in lines.split(|byte| *byte == b'\n') {
        let line = core::str::from_utf8(line).ok()?;
        let (key, value) = line.split_once(' ')?;
        match key {
            "number" => summary.number = value.parse().ok()?,
            "streams" => summary.streams = value.parse().ok()?,
            "first" => summary.first = value.parse().ok()?,
            "at_us" => summary.at_us = value.parse().ok()?,
            "sample_bytes" => summary.sample_bytes = value.parse().ok()?,
            "session" => summary.session = Some(SessionName::new(value).ok()?),
            // Columns may have any name, and may continue in the next block.
            "columns" => return (summary.sample_bytes > 0).then_some(summary),
            _ => (),
        }
    }
    None
}
