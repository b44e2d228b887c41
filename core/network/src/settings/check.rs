//! Checks of values.

use super::{ErrorKind, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, PASSWORD_BYTES_MIN};
use super::{SERVER_BYTES_MAX, SSID_BYTES_MAX};
use heapless::String;

/// Length of a key that replaces a passphrase, in hexadecimal digits.
const KEY_DIGITS: usize = 64;

/// Checks the name of a network.
pub(super) fn ssid(value: &str) -> Result<String<SSID_BYTES_MAX>, ErrorKind> {
    if value.is_empty() || value.contains(char::is_control) {
        return Err(ErrorKind::Ssid);
    }
    String::try_from(value).map_err(|_| ErrorKind::Ssid)
}

/// Checks a WPA2 passphrase.
pub(super) fn password(value: &str) -> Result<String<PASSWORD_BYTES_MAX>, ErrorKind> {
    if value.len() == KEY_DIGITS && value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ErrorKind::PasswordIsKey);
    }
    let is_printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_printable || value.len() < PASSWORD_BYTES_MIN {
        return Err(ErrorKind::Password);
    }
    String::try_from(value).map_err(|_| ErrorKind::Password)
}

/// Checks the name of the logger.
pub(super) fn name(value: &str) -> Result<String<NAME_BYTES_MAX>, ErrorKind> {
    if !is_label(value) {
        return Err(ErrorKind::Name);
    }
    String::try_from(value).map_err(|_| ErrorKind::Name)
}

/// Checks the name of a time server. An IPv4 address has the form of a name.
pub(super) fn time_server(value: &str) -> Result<String<SERVER_BYTES_MAX>, ErrorKind> {
    if !value.split('.').all(is_label) {
        return Err(ErrorKind::TimeServer);
    }
    String::try_from(value).map_err(|_| ErrorKind::TimeServer)
}

/// Returns true for one label of a host name (RFC 1123).
fn is_label(label: &str) -> bool {
    let is_ok = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(is_ok)
        && !label.starts_with('-')
        && !label.ends_with('-')
}
