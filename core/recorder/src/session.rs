//! Sessions: named stretches of a stream, each in files of its own.

use crate::format::{Format, Schema};
use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Longest name of a session, in bytes.
pub const SESSION_NAME_BYTES_MAX: usize = 32;
/// Longest settings of a session, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 96;
/// Sessions of the producer that may wait in a ring.
pub(crate) const SESSIONS_MAX: u32 = 2;
// The counters wrap at 2^32: slots must not jump there.
const _: () = assert!(SESSIONS_MAX.is_power_of_two());

/// A stretch of a stream that has a name, settings and a schema. Its samples go to new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    name: SessionName,
    schema: u8,
    settings: Settings,
}

/// Name of a session: 1 to 32 letters, digits, `-` and `_`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionName(Inline<SESSION_NAME_BYTES_MAX>);

/// Settings of a session, for people to read: up to 96 printable ASCII characters other than `"`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Settings(Inline<SETTINGS_BYTES_MAX>);

/// Reason why a session was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The name is empty or too long, or has a character other than letters, digits, `-` and `_`.
    Name,
    /// The settings are too long, or have a `"` or a character that is not printable ASCII.
    Settings,
    /// The stream's format does not have this schema.
    Schema,
    /// Too many gaps and sessions wait to be written. Try again later.
    QueueFull,
    /// The recording has ended.
    Stopped,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            SessionError::Name => {
                "a session's name needs 1 to 32 letters, digits, hyphens or underscores"
            }
            SessionError::Settings => {
                "a session's settings may have up to 96 printable ASCII characters, without quotes"
            }
            SessionError::Schema => "the stream's format does not have the session's schema",
            SessionError::QueueFull => "too many sessions wait to be written; try again later",
            SessionError::Stopped => "the recording has ended",
        })
    }
}

impl core::error::Error for SessionError {}

impl Session {
    /// Creates a session for streams of this format. Without a schema it has the format's first; a format
    /// of lines has none.
    ///
    /// # Errors
    /// [`SessionError::Name`], [`SessionError::Settings`] or [`SessionError::Schema`].
    pub fn new(
        name: &str,
        schema: Option<&Schema>,
        settings: &str,
        format: &Format,
    ) -> Result<Session, SessionError> {
        let schema = match schema {
            Some(schema) => {
                let schemas = format.schemas().iter();
                let at = schemas.zip(0..).find(|(other, _)| *other == schema);
                at.ok_or(SessionError::Schema)?.1
            }
            None => 0,
        };
        Ok(Session {
            name: SessionName::new(name)?,
            schema,
            settings: Settings::new(settings)?,
        })
    }

    /// Its name.
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Index of its schema in the format's list; 0 for lines.
    pub fn schema(&self) -> u8 {
        self.schema
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl SessionName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`SessionError::Name`].
    pub fn new(name: &str) -> Result<SessionName, SessionError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match Inline::new(name.as_bytes()) {
            Some(inline) if !name.is_empty() && name.bytes().all(is_allowed) => {
                Ok(SessionName(inline))
            }
            _ => Err(SessionError::Name),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Settings {
    /// Checks settings.
    ///
    /// # Errors
    /// [`SessionError::Settings`].
    pub fn new(settings: &str) -> Result<Settings, SessionError> {
        let is_allowed = |byte: u8| matches!(byte, 0x20..=0x7E) && byte != b'"';
        match Inline::new(settings.as_bytes()) {
            Some(inline) if settings.bytes().all(is_allowed) => Ok(Settings(inline)),
            _ => Err(SessionError::Settings),
        }
    }

    /// The settings as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Debug for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// ASCII text of at most so many bytes. Bytes behind it are 0.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Inline<const BYTES: usize> {
    len: u8,
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> Inline<BYTES> {
    const EMPTY: Self = Inline {
        len: 0,
        bytes: [0; BYTES],
    };

    /// `None` if the text is too long.
    fn new(text: &[u8]) -> Option<Self> {
        let mut inline = Inline::EMPTY;
        inline.bytes.get_mut(..text.len())?.copy_from_slice(text);
        inline.len = u8::try_from(text.len()).ok()?;
        Some(inline)
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// Sessions that wait for the consumer: those of the producer, and one that the consumer requested.
pub(crate) struct Sessions {
    slots: [Cells; SESSIONS_MAX as usize],
    /// Sessions of the producer ever taken, modulo 2^32. Written by the consumer.
    taken: AtomicU32,
    /// Written and read by the consumer: the producer only sets its place.
    requested: Cells,
    /// Requested sessions ever taken, modulo 2^32. Written by the consumer.
    requests_taken: AtomicU32,
}

impl Sessions {
    pub(crate) const fn new() -> Sessions {
        Sessions {
            slots: [const { Cells::new() }; SESSIONS_MAX as usize],
            taken: AtomicU32::new(0),
            requested: Cells::new(),
            requests_taken: AtomicU32::new(0),
        }
    }

    /// Returns true if there is a slot for the next session of a producer that put in so many.
    pub(crate) fn has_room(&self, put: u32) -> bool {
        put.wrapping_sub(self.taken.load(Ordering::Acquire)) < SESSIONS_MAX
    }

    /// Stores a session; its boundary publishes it.
    pub(crate) fn put(&self, put: u32, session: &Session) {
        self.slots[(put % SESSIONS_MAX) as usize].store(session);
    }

    /// Takes the producer's next session.
    pub(crate) fn take(&self) -> Session {
        let taken = self.taken.load(Ordering::Relaxed);
        let session = self.slots[(taken % SESSIONS_MAX) as usize].load();
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        session
    }

    /// Requests of the consumer that were taken.
    pub(crate) fn requests_taken(&self) -> u32 {
        self.requests_taken.load(Ordering::Relaxed)
    }

    /// Keeps a session that is requested.
    pub(crate) fn keep(&self, session: &Session) {
        self.requested.store(session);
    }

    /// Takes the session that was requested.
    pub(crate) fn take_requested(&self) -> Session {
        let taken = self.requests_taken().wrapping_add(1);
        self.requests_taken.store(taken, Ordering::Relaxed);
        self.requested.load()
    }
}

/// A session in shared memory.
struct Cells {
    schema: AtomicU8,
    name: [AtomicU8; SESSION_NAME_BYTES_MAX],
    name_bytes: AtomicU8,
    settings: [AtomicU8; SETTINGS_BYTES_MAX],
    settings_bytes: AtomicU8,
}

impl Cells {
    const fn new() -> Cells {
        Cells {
            schema: AtomicU8::new(0),
            name: [const { AtomicU8::new(0) }; SESSION_NAME_BYTES_MAX],
            name_bytes: AtomicU8::new(0),
            settings: [const { AtomicU8::new(0) }; SETTINGS_BYTES_MAX],
            settings_bytes: AtomicU8::new(0),
        }
    }

    fn store(&self, session: &Session) {
        self.schema.store(session.schema, Ordering::Relaxed);
        store(&self.name, &self.name_bytes, &session.name.0);
        store(&self.settings, &self.settings_bytes, &session.settings.0);
    }

    fn load(&self) -> Session {
        Session {
            name: SessionName(load(&self.name, &self.name_bytes)),
            schema: self.schema.load(Ordering::Relaxed),
            settings: Settings(load(&self.settings, &self.settings_bytes)),
        }
    }
}

fn store<const BYTES: usize>(cells: &[AtomicU8; BYTES], len: &AtomicU8, text: &Inline<BYTES>) {
    len.store(text.len, Ordering::Relaxed);
    for (cell, byte) in cells.iter().zip(text.bytes) {
        cell.store(byte, Ordering::Relaxed);
    }
}

fn load<const BYTES: usize>(cells: &[AtomicU8; BYTES], len: &AtomicU8) -> Inline<BYTES> {
    let mut text = Inline::EMPTY;
    for (byte, cell) in text.bytes.iter_mut().zip(cells) {
        *byte = cell.load(Ordering::Relaxed);
    }
    text.len = len.load(Ordering::Relaxed);
    text
}

/// A session on its way from one place to another, one at a time.
#[derive(Default)]
pub(crate) struct SessionSlot {
    session: Cells,
    /// Sessions ever put in, modulo 2^32. Written by the one that asks.
    put: AtomicU32,
    /// Sessions ever taken, modulo 2^32. Written by the recorder.
    taken: AtomicU32,
}

impl SessionSlot {
    pub(crate) const fn new() -> SessionSlot {
        SessionSlot {
            session: Cells::new(),
            put: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Puts a session in. Returns false if the one before has not been taken.
    pub(crate) fn put(&self, session: &Session) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        if put != self.taken.load(Ordering::Acquire) {
            return false;
        }
        self.session.store(session);
        self.put.store(put.wrapping_add(1), Ordering::Release);
        true
    }

    pub(crate) fn take(&self) -> Option<Session> {
        let taken = self.taken.load(Ordering::Relaxed);
        if self.put.load(Ordering::Acquire) == taken {
            return None;
        }
        let session = self.session.load();
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        Some(session)
    }
}

impl Default for Cells {
    fn default() -> Self {
        Cells::new()
    }
}
