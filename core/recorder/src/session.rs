//! Sessions: named parts of a stream, each in its own files.

use crate::format::{Format, Schema};
use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Maximum length of a session name, in bytes.
pub const SESSION_NAME_BYTES_MAX: usize = 32;
/// Maximum length of a session's settings, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 96;
/// Maximum number of the producer's sessions queued in a ring.
pub(crate) const SESSIONS_MAX: u32 = 2;
// The counters wrap at 2^32; a power of two keeps the slot sequence continuous there.
const _: () = assert!(SESSIONS_MAX.is_power_of_two());

/// A part of a stream with a name, settings and a schema. Its samples go to new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    name: SessionName,
    schema: u8,
    settings: Settings,
}

/// Name of a session: 1 to 32 letters, digits, `-` and `_`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionName(Inline<SESSION_NAME_BYTES_MAX>);

/// Human-readable settings of a session: up to 96 printable ASCII characters except `"`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Settings(Inline<SETTINGS_BYTES_MAX>);

/// Reason why a session was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SessionError {
    /// The name is empty or too long, or contains a character other than letters, digits, `-` and `_`.
    Name,
    /// The settings are too long, or contain a `"` or a character that is not printable ASCII.
    Settings,
    /// The stream's format does not include this schema.
    Schema,
    /// Too many gaps and sessions are queued. Try again later.
    QueueFull,
    /// The recording has ended.
    Stopped,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            SessionError::Name => {
                "session name must be 1 to 32 letters, digits, hyphens or underscores"
            }
            SessionError::Settings => {
                "session settings must be at most 96 printable ASCII characters without double quotes"
            }
            SessionError::Schema => "the stream's format does not include the session's schema",
            SessionError::QueueFull => "too many gaps and sessions are queued; try again later",
            SessionError::Stopped => "the recording has ended",
        })
    }
}

impl core::error::Error for SessionError {}

impl Session {
    /// Creates a session for streams of this format. Without a schema, the session has the format's first; a
    /// format of lines has no schemas.
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

    /// Returns the name.
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Returns the index of its schema in the format's list; 0 for lines.
    pub fn schema(&self) -> u8 {
        self.schema
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl SessionName {
    /// Checks and copies a name.
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

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Settings {
    /// Checks and copies settings.
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

    /// Returns the settings as text.
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

/// ASCII text of at most `BYTES` bytes. The unused bytes are 0.
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

    /// Returns `None` if the text is too long.
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

/// Sessions queued for the consumer: those of the producer, and one that the consumer requested.
pub(crate) struct Sessions {
    slots: [Cells; SESSIONS_MAX as usize],
    /// Sessions of the producer ever taken, modulo 2^32. Written by the consumer.
    taken: AtomicU32,
    /// The requested session. The consumer writes and reads it; the producer only determines its position.
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

    /// Returns true if there is a slot for the next session of a producer that has begun `put` sessions.
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

    /// Returns the number of requested sessions taken so far, modulo 2^32.
    pub(crate) fn requests_taken(&self) -> u32 {
        self.requests_taken.load(Ordering::Relaxed)
    }

    /// Stores a requested session.
    pub(crate) fn keep(&self, session: &Session) {
        self.requested.store(session);
    }

    /// Returns the schema of the producer's next session.
    pub(crate) fn next_schema(&self) -> u8 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.slots[(taken % SESSIONS_MAX) as usize]
            .schema
            .load(Ordering::Relaxed)
    }

    /// Returns the schema of the session that was requested.
    pub(crate) fn requested_schema(&self) -> u8 {
        self.requested.schema.load(Ordering::Relaxed)
    }

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

/// A mailbox for one session.
#[derive(Default)]
pub(crate) struct SessionSlot {
    session: Cells,
    /// Sessions ever put in, modulo 2^32. Written by the requesting side.
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

    /// Puts a session in. Returns false if the previous one has not been taken.
    pub(crate) fn put(&self, session: &Session) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        if put != self.taken.load(Ordering::Acquire) {
            return false;
        }
        self.session.store(session);
        self.put.store(put.wrapping_add(1), Ordering::Release);
        true
    }

    /// Returns the session without taking it. Only the recorder may call this.
    pub(crate) fn peek(&self) -> Option<Session> {
        let is_empty = self.put.load(Ordering::Acquire) == self.taken.load(Ordering::Relaxed);
        (!is_empty).then(|| self.session.load())
    }

    /// Takes the session that [`SessionSlot::peek`] has returned.
    pub(crate) fn take(&self) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
    }
}

impl Default for Cells {
    fn default() -> Self {
        Cells::new()
    }
}
