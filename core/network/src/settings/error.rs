//! Errors in the file of settings.

use super::FILE_NAME;
use core::fmt;

/// An error in the file of settings. No message contains a value of the file, so that none shows the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// Number of the line, from 1; 0 for the whole file.
    pub line: u16,
    /// Reason.
    pub kind: ErrorKind,
}

/// Reason of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is longer than the device reads.
    FileTooLong,
    /// The file is in UTF-16.
    Utf16,
    /// The line is not UTF-8.
    NotUtf8,
    /// The line has no equals sign.
    NoEqualsSign,
    /// The key is unknown.
    UnknownKey,
    /// An earlier line has the same key.
    Repeated,
    /// The network's name is empty, too long, or has control characters.
    Ssid,
    /// The password has the wrong length, or characters that are not printable ASCII.
    Password,
    /// The password is a key of 64 hexadecimal digits.
    PasswordIsKey,
    /// There is a password, but no network.
    PasswordWithoutSsid,
    /// The name of the logger is no host name.
    Name,
    /// The time server is neither a host name nor an address.
    TimeServer,
}

impl ErrorKind {
    /// Returns the reason and the remedy.
    pub fn text(self) -> &'static str {
        match self {
            ErrorKind::FileTooLong => "the file is longer than 1024 bytes; remove comments",
            ErrorKind::Utf16 => "the file is in UTF-16; save it as UTF-8",
            ErrorKind::NotUtf8 => "the line is not UTF-8; save the file as UTF-8",
            ErrorKind::NoEqualsSign => {
                "the line has no equals sign; write key=value, or begin a comment with #"
            }
            ErrorKind::UnknownKey => {
                "the key is unknown; use ssid, password, name or time-server, in lower case"
            }
            ErrorKind::Repeated => "an earlier line has the same key; remove one of them",
            ErrorKind::Ssid => {
                "a network's name has 1 to 32 bytes and no control characters; copy it from the router"
            }
            ErrorKind::Password => {
                "a WPA2 password has 8 to 63 printable ASCII characters; check it, or change it in the router"
            }
            ErrorKind::PasswordIsKey => {
                "64 hexadecimal digits are a key; write the password from which it was derived"
            }
            ErrorKind::PasswordWithoutSsid => {
                "there is a password but no network; add a line ssid=NAME, or remove the password"
            }
            ErrorKind::Name => {
                "a name has 1 to 24 letters a to z, digits, and hyphens between them; choose another one"
            }
            ErrorKind::TimeServer => {
                "a time server is a host name or an IPv4 address of up to 64 bytes; write one such as pool.ntp.org"
            }
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = self.kind.text();
        match self.line {
            0 => write!(f, "{FILE_NAME}: {text}"),
            line => write!(f, "{FILE_NAME}, line {line}: {text}"),
        }
    }
}

impl core::error::Error for SettingsError {}
