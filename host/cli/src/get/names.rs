//! Names and texts that a server sends.

use crate::failure::is_steering;

/// Longest name of a file on the usual file systems, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest text of a server that is shown, in characters.
const SHOWN_CHARS: usize = 255;
/// Endings of the files in which a download is collected.
const PARTIAL: [&str; 2] = [".part", ".part.tag"];

/// Checks that a name from a server can become a file in the output directory, that it is not hidden there, and that it
/// takes the name of no partial file.
///
/// # Errors
/// The reason, as the end of a sentence.
pub fn check(name: &str) -> Result<(), &'static str> {
    let lower = name.to_ascii_lowercase();
    let reason = match name {
        "" => "is empty",
        _ if name.len() > NAME_BYTES_MAX => "is longer than 255 bytes",
        _ if name.contains(['/', '\\']) => "leads to another folder",
        _ if name.starts_with('.') => "begins with a dot",
        _ if name.contains(is_steering) => "contains control characters",
        _ if PARTIAL.iter().any(|ending| lower.ends_with(ending)) => {
            "has the ending of a partial download"
        }
        _ if cfg!(windows) && is_special_on_windows(&lower) => {
            "has a meaning of its own on Windows"
        }
        _ => return Ok(()),
    };
    Err(reason)
}

/// Returns true for names that Windows changes, or takes for a device or a stream.
fn is_special_on_windows(lower: &str) -> bool {
    let stem = lower.split('.').next().unwrap_or_default().trim_end();
    let is_numbered = |device: &str| {
        let number = stem.strip_prefix(device).map(|rest| rest.chars().count());
        number == Some(1)
    };
    lower.contains(['<', '>', ':', '"', '|', '?', '*'])
        || lower.ends_with(['.', ' '])
        || ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&stem)
        || is_numbered("com")
        || is_numbered("lpt")
}

/// Returns the start of a text on one line, with characters that control a terminal as escapes.
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars().take(SHOWN_CHARS) {
        match is_steering(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_visible_in_the_folder() {
        let long = "x".repeat(NAME_BYTES_MAX);
        for name in ["a", "a b.csv", "\u{e9}", "a.b.", "a..", "partial", &long] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        let too_long = "\u{e9}".repeat(128);
        for name in [
            "",
            ".",
            "..",
            ".ssh",
            "../a",
            "a/b",
            "/a",
            "..\\a",
            "a\0",
            "a\n",
            "\u{1b}[2J",
            "\u{9b}2J",
            "\u{7f}",
            "fdc\u{202e}vsc",
            "a\u{2028}b",
            "a.part",
            "a.CSV.PART",
            "a.part.tag",
            &too_long,
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn devices_of_windows_are_recognised() {
        for name in [
            "con", "nul.txt", "com1", "lpt9.csv", "a:b", "a.", "a ", "aux .x",
        ] {
            assert!(is_special_on_windows(name), "{name}");
        }
        for name in ["console", "com10", "common", "a.b", "lpt"] {
            assert!(!is_special_on_windows(name), "{name}");
        }
    }

    #[test]
    fn texts_cannot_control_the_terminal() {
        assert_eq!(shown("a\u{1b}[31mb\r\n"), "a\\u{1b}[31mb\\r\\n");
        assert_eq!(shown("\u{202e}x\u{9b}"), "\\u{202e}x\\u{9b}");
        assert_eq!(shown(&"\u{e9}".repeat(256)).chars().count(), 258);
    }
}
