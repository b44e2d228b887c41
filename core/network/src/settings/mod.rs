//! Settings in a text file on the card.
//!
//! The file is `CARDIOGR.TXT` in the root directory, in UTF-8, and has at most 1024 bytes:
//!
//! ```text
//! # Wi-Fi of this logger
//! ssid = My network
//! password = correct horse battery
//! name = barn-logger
//! time-server = pool.ntp.org
//! ```
//!
//! | key | value | without it |
//! |---|---|---|
//! | `ssid` | name of the router's network: 1 to 32 bytes | the logger opens its own access point |
//! | `password` | WPA2 passphrase: 8 to 63 printable ASCII characters | the router's network is open |
//! | `name` | name in the network, `NAME.local`: 1 to 24 letters, digits and inner hyphens | `cardiograph` |
//! | `time-server` | name or IPv4 address of an SNTP server, up to 64 bytes | the clock stays unset |
//!
//! Each line has one key, in lower case, and each key may occur once. Lines end with LF or CR LF. Spaces and tabs around
//! key and value are ignored; double quotes around a value keep its spaces: `password = " secret "`. Lines that begin
//! with `#` are comments, and a byte order mark at the beginning of the file is ignored.

mod check;
mod error;
#[cfg(test)]
mod tests;

pub use error::{ErrorKind, SettingsError};

use core::fmt;
use heapless::String;

/// Name of the file in the root directory of the card. The server protects all names that begin with `CARDIOGR.`.
pub const FILE_NAME: &str = "CARDIOGR.TXT";
/// Maximum length of the file, in bytes.
pub const FILE_BYTES_MAX: usize = 1024;
/// Maximum length of the name of a network, in bytes (IEEE 802.11).
pub const SSID_BYTES_MAX: usize = 32;
/// Maximum length of a WPA2 passphrase, in bytes (IEEE 802.11, annex J).
pub const PASSWORD_BYTES_MAX: usize = 63;
/// Minimum length of a WPA2 passphrase, in bytes.
const PASSWORD_BYTES_MIN: usize = 8;
/// Maximum length of the logger's name, in bytes. The name of its access point appends five characters.
pub const NAME_BYTES_MAX: usize = 24;
/// Maximum length of the name of a time server, in bytes.
pub const SERVER_BYTES_MAX: usize = 64;

const DEFAULT_NAME: &str = "cardiograph";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_MARKS: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// A password. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String<PASSWORD_BYTES_MAX>);

impl Secret {
    /// Returns the password.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Network of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Name of the network.
    pub ssid: String<SSID_BYTES_MAX>,
    /// Its WPA2 passphrase; `None` for an open network.
    pub password: Option<Secret>,
}

/// Settings of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Network to join; `None` to open an access point only.
    pub router: Option<Router>,
    /// Name of the logger in the network.
    pub name: String<NAME_BYTES_MAX>,
    /// Name or IPv4 address of an SNTP server.
    pub time_server: Option<String<SERVER_BYTES_MAX>>,
}

impl Default for Settings {
    fn default() -> Self {
        Lines::default().finish()
    }
}

impl Settings {
    /// Parses the contents of the file.
    ///
    /// # Errors
    /// The first line that violates the format, with the reason.
    pub fn parse(file: &[u8]) -> Result<Settings, SettingsError> {
        let at = |line, kind| SettingsError { line, kind };
        if file.len() > FILE_BYTES_MAX {
            return Err(at(0, ErrorKind::FileTooLong));
        }
        if UTF16_MARKS.iter().any(|mark| file.starts_with(mark)) {
            return Err(at(1, ErrorKind::Utf16));
        }
        let file = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
        let mut lines = Lines::default();
        for (number, line) in (1..).zip(file.split(|byte| *byte == b'\n')) {
            lines.add(number, line).map_err(|kind| at(number, kind))?;
        }
        if lines.ssid.is_none()
            && let Some((number, _)) = lines.password
        {
            return Err(at(number, ErrorKind::PasswordWithoutSsid));
        }
        Ok(lines.finish())
    }
}

/// Values of the lines read so far.
#[derive(Default)]
struct Lines {
    ssid: Option<String<SSID_BYTES_MAX>>,
    /// Number of its line, and the password.
    password: Option<(u16, Secret)>,
    name: Option<String<NAME_BYTES_MAX>>,
    time_server: Option<String<SERVER_BYTES_MAX>>,
}

impl Lines {
    fn add(&mut self, number: u16, line: &[u8]) -> Result<(), ErrorKind> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = core::str::from_utf8(line).map_err(|_| ErrorKind::NotUtf8)?;
        let text = text.trim_matches(BLANKS);
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let (key, value) = text.split_once('=').ok_or(ErrorKind::NoEqualsSign)?;
        let value = unquoted(value.trim_matches(BLANKS));
        match key.trim_matches(BLANKS) {
            "ssid" => set(&mut self.ssid, check::ssid(value)),
            "password" => set(
                &mut self.password,
                check::password(value).map(|password| (number, Secret(password))),
            ),
            "name" => set(&mut self.name, check::name(value)),
            "time-server" => set(&mut self.time_server, check::time_server(value)),
            _ => Err(ErrorKind::UnknownKey),
        }
    }

    fn finish(self) -> Settings {
        let password = self.password.map(|(_, password)| password);
        Settings {
            router: self.ssid.map(|ssid| Router { ssid, password }),
            // The default is shorter than the limit.
            name: self
                .name
                .unwrap_or_else(|| String::try_from(DEFAULT_NAME).unwrap_or_default()),
            time_server: self.time_server,
        }
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Stores the value of a key that has none yet.
fn set<T>(slot: &mut Option<T>, value: Result<T, ErrorKind>) -> Result<(), ErrorKind> {
    match slot.replace(value?) {
        None => Ok(()),
        Some(_) => Err(ErrorKind::Repeated),
    }
}

fn unquoted(value: &str) -> &str {
    let inner = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.unwrap_or(value)
}
