//! Names of recordings and of prepared files.

use cardiograph_recorder::{FOLDER_RECORDINGS_MAX, FileId, Name};

/// Name of the lock file.
pub(super) const LOCK: &str = ".cardiograph.lock";
/// Suffix of the name of an unfinished file.
pub(super) const PART: &str = ".part";
const PREPARED: &str = ".cardiograph-";
const DIGITS: usize = 5;
/// Number of recordings after which file names repeat. Equal names are in different folders.
const NAMES: u32 = 100_000;

/// Returns a short name in its usual form: `REC00001.CSV`.
pub(super) fn file_name(name: &Name) -> String {
    let part = |bytes: &[u8]| bytes.escape_ascii().to_string().trim_end().to_string();
    match part(&name[8..]) {
        extension if extension.is_empty() => part(&name[..8]),
        extension => format!("{}.{extension}", part(&name[..8])),
    }
}

/// Returns the name of the folder of a recording.
pub(super) fn folder_of(id: &FileId) -> String {
    file_name(&id.folder_name())
}

/// Returns the name of a recording in its folder.
pub(super) fn final_name(id: &FileId, session: &str) -> String {
    let short = file_name(&id.short_name());
    match (session, short.split_once('.')) {
        ("", _) | (_, None) => short,
        (session, Some((stem, extension))) => format!("{stem} {session}.{extension}"),
    }
}

/// Returns the path of a recording below the directory.
pub(crate) fn path_of(id: &FileId, session: &str) -> String {
    format!("{}/{}", folder_of(id), final_name(id, session))
}

/// Returns the name of a prepared file.
pub(super) fn prepared_name(index: u8, prefix: [u8; 3], extension: [u8; 3]) -> String {
    let (prefix, extension) = (prefix.escape_ascii(), extension.escape_ascii());
    format!("{PREPARED}{index}-{prefix}-{extension}{PART}")
}

/// Parses the name of a prepared file: prefix and extension.
pub(super) fn parse_prepared(name: &str) -> Option<([u8; 3], [u8; 3])> {
    let rest = name.strip_prefix(PREPARED)?.strip_suffix(PART)?;
    let mut fields = rest.split('-');
    let index: u8 = fields.next()?.parse().ok()?;
    let letters = |field: Option<&str>| field?.as_bytes().try_into().ok();
    let (prefix, extension) = (letters(fields.next())?, letters(fields.next())?);
    let id = FileId {
        prefix,
        extension,
        number: 0,
    };
    let is_exact = id.is_valid() && prepared_name(index, prefix, extension) == name;
    is_exact.then_some((prefix, extension))
}

/// Parses the name of a folder of recordings: prefix and number.
pub(super) fn parse_folder(name: &str) -> Option<([u8; 3], u32)> {
    let (prefix, digits) = name.as_bytes().split_at_checked(3)?;
    let prefix: [u8; 3] = prefix.try_into().ok()?;
    let is_good = prefix.iter().all(u8::is_ascii_uppercase)
        && digits.len() == DIGITS
        && digits.iter().all(u8::is_ascii_digit);
    is_good.then(|| (prefix, number_of(digits)))
}

/// Parses the name of a recording in a folder, with or without a session: the file, and true if it is
/// unfinished.
pub(super) fn parse_recording(
    (prefix, folder): ([u8; 3], u32),
    name: &str,
) -> Option<(FileId, bool)> {
    let (name, is_unfinished) = match name.strip_suffix(PART) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (stem, extension) = name.rsplit_once('.')?;
    let extension: [u8; 3] = extension.as_bytes().try_into().ok()?;
    let (own, rest) = stem.as_bytes().split_at_checked(3)?;
    let (digits, session) = rest.split_at_checked(DIGITS)?;
    let is_good = own == prefix
        && digits.iter().all(u8::is_ascii_digit)
        && (session.is_empty() || session.starts_with(b" "))
        && extension
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let digits = is_good.then(|| number_of(digits))?;
    let number = folder * FOLDER_RECORDINGS_MAX + digits % FOLDER_RECORDINGS_MAX;
    let id = FileId {
        prefix,
        extension,
        number,
    };
    (number % NAMES == digits).then_some((id, is_unfinished))
}

/// Returns the number of the recording in a folder whose name begins like this one, whatever follows the digits.
pub(super) fn parse_any_recording((prefix, folder): ([u8; 3], u32), name: &str) -> Option<u32> {
    let (own, rest) = name.as_bytes().split_at_checked(3)?;
    let (digits, _) = rest.split_at_checked(DIGITS)?;
    let is_good = own == prefix && digits.iter().all(u8::is_ascii_digit);
    let digits = is_good.then(|| number_of(digits))?;
    Some(folder * FOLDER_RECORDINGS_MAX + digits % FOLDER_RECORDINGS_MAX)
}

/// Returns the recording that a path below the directory names, such as `LOG00000/LOG00012 session.CSV`.
pub fn recording_at(path: &str) -> Option<FileId> {
    let (folder, name) = path.split_once('/')?;
    let (id, is_unfinished) = parse_recording(parse_folder(folder)?, name)?;
    (!is_unfinished).then_some(id)
}

fn number_of(digits: &[u8]) -> u32 {
    let digit = |number, digit: &u8| 10 * number + u32::from(digit - b'0');
    digits.iter().fold(0, digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_reverses_formatting() {
        for number in [1, 999, 1_000, 99_999, 100_000, 1_234_567] {
            for session in ["", "night-2"] {
                let id = FileId {
                    prefix: *b"LOG",
                    extension: *b"CSV",
                    number,
                };
                let folder = parse_folder(&folder_of(&id)).unwrap();
                let name = final_name(&id, session);
                assert_eq!(parse_recording(folder, &name), Some((id, false)), "{name}");
                let part = name + PART;
                assert_eq!(parse_recording(folder, &part), Some((id, true)), "{part}");
            }
        }
        let prepared = prepared_name(7, *b"LOG", *b"BIN");
        assert_eq!(prepared, ".cardiograph-7-LOG-BIN.part");
        assert_eq!(parse_prepared(&prepared), Some((*b"LOG", *b"BIN")));
    }

    #[test]
    fn other_names_are_rejected() {
        let folder = (*b"LOG", 0);
        for name in [
            "LOG01001.CSV",
            "LOG00001",
            "LOG00001x.CSV",
            "DAT00001.CSV",
            "LOG0000é.CSV",
        ] {
            assert_eq!(parse_recording(folder, name), None, "{name}");
        }
        for name in [
            "LOG0000",
            "log00000",
            "LOG000000",
            "LOG0000x",
            ".cardiograph.lock",
        ] {
            assert_eq!(parse_folder(name), None, "{name}");
            assert_eq!(parse_prepared(name), None, "{name}");
        }
        for name in [
            "+7-LOG-BIN",
            "07-LOG-BIN",
            "7-log-BIN",
            "7-LOG-BIN-",
            "256-LOG-BIN",
        ] {
            let name = format!(".cardiograph-{name}.part");
            assert_eq!(parse_prepared(&name), None, "{name}");
        }
    }
}
