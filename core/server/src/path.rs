//! Paths and queries: decoded once, and refused if they violate the rules in docs/security.md.

use crate::route::is_answered;
use crate::status::{Refused, Status};
use crate::storage::PATH_BYTES_MAX;
use crate::{Entry, Error};
use cardiograph_recorder::is_protected;
use heapless::LenType;

/// A path that is safe to pass to a storage.
pub type Path = heapless::String<PATH_BYTES_MAX, u8>;

/// Decodes and checks a path. Removes a trailing slash.
///
/// # Errors
/// 400 for a path that violates the rules in docs/security.md, 403 for hidden names.
pub fn decode_path(encoded: &str) -> Result<Path, Refused> {
    let mut path: Path = decode(encoded, PlusSign::Plus)?;
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    check(&path)?;
    Ok(path)
}

/// Meaning of `+`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlusSign {
    /// A plus sign, as in paths.
    Plus,
    /// A space, as in queries and forms.
    Space,
}

/// Decodes percent-encoding, once.
pub(crate) fn decode<const N: usize, L: LenType>(
    encoded: &str,
    plus_sign: PlusSign,
) -> Result<heapless::String<N, L>, Refused> {
    let mut bytes = heapless::Vec::<u8, N, L>::new();
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()];
                let [high, low] = digits.map(|digit| char::from(digit?).to_digit(16));
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(Refused::bad("a percent sign without two digits"));
                };
                (high << 4 | low) as u8
            }
            b'+' if plus_sign == PlusSign::Space => b' ',
            byte => byte,
        };
        bytes
            .push(byte)
            .map_err(|_| Refused::bad("a path, name or argument is too long"))?;
    }
    heapless::String::from_utf8(bytes).map_err(|_| Refused::bad("a path or argument is not UTF-8"))
}

/// Checks a decoded path.
pub(crate) fn check(path: &str) -> Result<(), Refused> {
    const PLAIN: Refused = Refused::bad(
        "paths begin with / and contain no empty names, no . or .., and no control characters, backslashes or percent signs",
    );
    let Some(names) = path.strip_prefix('/') else {
        return Err(PLAIN);
    };
    if names.is_empty() {
        return Ok(());
    }
    names.split('/').try_for_each(|name| {
        if !is_plain(name) {
            return Err(PLAIN);
        }
        match is_protected(name) {
            true => Err(Refused::new(Status::Forbidden, "the path is protected")),
            false => Ok(()),
        }
    })
}

/// Returns true for names that mean the same file in every storage.
fn is_plain(name: &str) -> bool {
    let is_odd = |letter: char| letter.is_control() || letter == '\\' || letter == '%';
    // Windows and FAT drop dots and spaces at the end: "A." would be another name for "A".
    !name.is_empty() && !name.ends_with(['.', ' ']) && !name.contains(is_odd)
}

/// Returns the reason why an entry of a folder cannot be requested; `None` if it can.
pub(crate) fn unavailable(folder: &str, entry: &Entry) -> Option<&'static str> {
    let name = entry.name;
    let separator = usize::from(folder != "/");
    if entry.is_approximate {
        Some("the name is not UTF-8; rename it where the card is mounted")
    } else if !is_plain(name) {
        Some(
            "the name has a percent sign, a backslash or a control character, or ends with a dot or a space; rename \
             it where the card is mounted or, if it is a file, download its folder as tar",
        )
    } else if folder.len() + separator + name.len() > PATH_BYTES_MAX {
        Some("the path is longer than 255 bytes; shorten the name where the card is mounted")
    } else if folder == "/" && is_answered(name) {
        Some(
            "the server itself answers at this path; rename it where the card is mounted or, if it is a file, \
             download its folder as tar",
        )
    } else {
        None
    }
}

/// Returns the directory of a path.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(at) if at > 0 => &path[..at],
        _ => "/",
    }
}

/// Returns the last name of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Appends a name to a directory, which stays unchanged if the path would be too long.
pub(crate) fn append(directory: &mut Path, name: &str) -> Result<(), Error> {
    let bytes = directory.len();
    let is_root = directory.ends_with('/');
    let appended = match is_root {
        true => directory.push_str(name),
        false => directory.push('/').and_then(|()| directory.push_str(name)),
    };
    appended.map_err(|_| {
        directory.truncate(bytes);
        Error::TooLong
    })
}

/// A query or a form: names and values, still encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'b>(pub &'b str);

impl<'b> Query<'b> {
    /// Returns the encoded value of an argument; empty if it has none.
    pub fn value(&self, name: &str) -> Option<&'b str> {
        self.0.split('&').find_map(|argument| {
            let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
            (key == name).then_some(value)
        })
    }

    /// Returns true if an argument is present and is not 0.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value != "0")
    }

    /// Returns a number.
    ///
    /// # Errors
    /// 400 if the argument is not a number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Refused> {
        let value = self.value(name).filter(|value| !value.is_empty());
        let number = value.map(|value| value.parse()).transpose();
        number.map_err(|_| Refused::bad("an argument is not a whole number"))
    }

    /// Returns a decoded text.
    ///
    /// # Errors
    /// 400 if it is too long or not UTF-8.
    pub fn text<const N: usize>(&self, name: &str) -> Result<Option<heapless::String<N>>, Refused> {
        let value = self.value(name);
        value
            .map(|value| decode(value, PlusSign::Space))
            .transpose()
    }

    /// Returns a path.
    ///
    /// # Errors
    /// Those of [`decode_path`].
    pub fn path(&self, name: &str) -> Result<Option<Path>, Refused> {
        let Some(encoded) = self.value(name) else {
            return Ok(None);
        };
        let mut path: Path = decode(encoded, PlusSign::Space)?;
        if path.len() > 1 && path.ends_with('/') {
            path.pop();
        }
        check(&path)?;
        Ok(Some(path))
    }
}
