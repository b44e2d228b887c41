//! Quoting for a shell.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

/// Quotes a word for a shell where necessary.
///
/// A POSIX shell understands the result, unless the word holds control characters or bytes that are not
/// UTF-8: these need the form `$'…'` of bash, zsh and ksh.
pub fn quoted(word: &OsStr) -> String {
    let bytes = word.as_encoded_bytes();
    match word.to_str() {
        Some(text) if text.chars().any(char::is_control) => with_escapes(bytes),
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => with_escapes(bytes),
    }
}

/// Quotes a path for a shell where necessary; a program takes the result for a path, even if it begins with `-`.
pub fn quoted_path(path: &Path) -> String {
    match path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        true => quoted(Path::new(".").join(path).as_os_str()),
        false => quoted(path.as_os_str()),
    }
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "/._+-@%:,".contains(c)
}

fn with_escapes(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => word.extend(['\\', c]),
                c if c.is_control() => escape(&mut word, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => word.push(c),
            }
        }
        escape(&mut word, chunk.invalid());
    }
    word.push('\'');
    word
}

/// Appends bytes in octal, which has a fixed length and so never absorbs a digit that follows.
fn escape(word: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(word, "\\{byte:03o}").unwrap_or_default();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{quoted, quoted_path};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn bash_reads_back_every_word() {
        let words: [&[u8]; 9] = [
            b"card.csv",
            b"my card.csv",
            b"it's.csv",
            b"",
            b"a\nb.csv",
            b"caf\xe9.csv",
            b"a'\xff7\\n",
            "größe $HOME `x`".as_bytes(),
            b"~",
        ];
        for word in words {
            let script = format!("printf %s {}", quoted(OsStr::from_bytes(word)));
            let output = Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(output.stdout, word, "{script}");
        }
    }

    #[test]
    fn a_path_is_no_option() {
        for (path, expected) in [
            ("-r/a b", "'./-r/a b'"),
            ("--help", "./--help"),
            ("a/-r", "a/-r"),
            ("./-r", "./-r"),
        ] {
            assert_eq!(quoted_path(Path::new(path)), expected);
        }
    }
}
