//! Sessions: named parts of a recording, each in files of its own.

use crate::format::{Format, Schema};
use crate::limits::{SESSION_NAME_BYTES_MAX, SETTINGS_BYTES_MAX};

/// Name of a session: 1 to 32 letters, digits, `-` and `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionName {
    bytes: [u8; SESSION_NAME_BYTES_MAX],
    len: u8,
}

/// Settings of a session: up to 96 printable ASCII characters, without double quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    bytes: [u8; SETTINGS_BYTES_MAX],
    len: u8,
}

/// A named part of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    name: SessionName,
    schema: u8,
    settings: Settings,
}

/// Reason why a session cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The name is empty, too long, or has a character that names may not have.
    Name,
    /// The settings are too long, or have a character that settings may not have.
    Settings,
    /// The schema is not in the list of the stream's format.
    Schema,
}

impl SessionName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`SessionError::Name`].
    pub fn new(name: &str) -> Result<SessionName, SessionError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_allowed) {
            return Err(SessionError::Name);
        }
        let (bytes, len) = inline(name).ok_or(SessionError::Name)?;
        Ok(SessionName { bytes, len })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        text(&self.bytes, self.len)
    }
}

impl Settings {
    fn new(settings: &str) -> Result<Settings, SessionError> {
        let is_allowed = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"';
        if !settings.bytes().all(is_allowed) {
            return Err(SessionError::Settings);
        }
        let (bytes, len) = inline(settings).ok_or(SessionError::Settings)?;
        Ok(Settings { bytes, len })
    }

    /// The settings.
    pub fn as_str(&self) -> &str {
        text(&self.bytes, self.len)
    }
}

impl Session {
    /// Checks a session against the format of its stream; without a schema the format's first one is used.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn new(
        name: &str,
        schema: Option<&Schema>,
        settings: &str,
        format: &Format,
    ) -> Result<Session, SessionError> {
        let schema = match schema {
            None => 0,
            Some(schema) => {
                let place = format.schemas().iter().position(|other| other == schema);
                place.ok_or(SessionError::Schema)? as u8
            }
        };
        Ok(Session {
            name: SessionName::new(name)?,
            schema,
            settings: Settings::new(settings)?,
        })
    }

    /// The session's name.
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Place of its schema in the format's list.
    pub fn schema(&self) -> u8 {
        self.schema
    }

    /// The session's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

fn inline<const N: usize>(text: &str) -> Option<([u8; N], u8)> {
    let mut bytes = [0; N];
    bytes
        .get_mut(..text.len())?
        .copy_from_slice(text.as_bytes());
    Some((bytes, u8::try_from(text.len()).ok()?))
}

fn text(bytes: &[u8], len: u8) -> &str {
    let bytes = bytes.get(..usize::from(len)).unwrap_or_default();
    // Only ASCII is stored.
    core::str::from_utf8(bytes).unwrap_or_default()
}
