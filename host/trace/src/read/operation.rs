//! Names of operations, as logs of any program write them.

use cardiograph_workload::OperationKind;

const WRITES: &[&str] = &[
    "w",
    "wr",
    "write",
    "writes",
    "writev",
    "pwrite",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "fwrite",
    "append",
    "program",
    "cmd24",
    "cmd25",
    "schreiben",
    "écriture",
    "escritura",
    "scrittura",
];
const READS: &[&str] = &[
    "r", "rd", "read", "reads", "readv", "pread", "pread64", "preadv", "preadv2", "fread", "cmd17",
    "cmd18", "lesen", "lecture", "lectura", "lettura",
];
const OTHERS: &[&str] = &[
    "d",
    "discard",
    "trim",
    "erase",
    "f",
    "flush",
    "fsync",
    "fdatasync",
    "sync",
    "msync",
    "syncfs",
    "open",
    "openat",
    "close",
    "seek",
    "lseek",
    "stat",
    "fstat",
    "rename",
    "unlink",
    "mkdir",
    "truncate",
    "ftruncate",
    "fallocate",
];

/// Operation that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Named {
    Data(OperationKind),
    /// Neither a write nor a read of data.
    Other,
}

/// Returns the operation with this name; `None` if the name is unknown.
pub(super) fn operation_named(text: &[u8]) -> Option<Named> {
    const WRITE: Option<Named> = Some(Named::Data(OperationKind::Write));
    const READ: Option<Named> = Some(Named::Data(OperationKind::Read));
    let text = str::from_utf8(text).ok()?.trim();
    let name = text.to_lowercase();
    let is = |names: &[&str]| names.contains(&name.as_str());
    if is(WRITES) {
        WRITE
    } else if is(READS) {
        READ
    } else if is(OTHERS) || is_sd_command(&name) {
        Some(Named::Other)
    } else {
        match rwbs(text) {
            Some('W') => WRITE,
            Some('R') => READ,
            Some(_) => Some(Named::Other),
            None => among_words(text),
        }
    }
}

/// Returns the operation of a name such as `SD.write`, `f_write` or `writeSector`: the only one among its words.
fn among_words(text: &str) -> Option<Named> {
    let mut words = String::new();
    let mut was_lower = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = letter.is_lowercase();
        words.extend(
            letter
                .is_alphanumeric()
                .then_some(letter.to_ascii_lowercase()),
        );
    }
    // Shorter words are ambiguous.
    let words: Vec<&str> = words.split(' ').filter(|word| word.len() >= 4).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    match (has(WRITES), has(READS), has(OTHERS)) {
        (true, false, false) => Some(Named::Data(OperationKind::Write)),
        (false, true, false) => Some(Named::Data(OperationKind::Read)),
        (false, false, true) => Some(Named::Other),
        _ => None,
    }
}

/// Returns true for `cmd13` and `acmd41`.
fn is_sd_command(name: &str) -> bool {
    let number = name.strip_prefix('a').unwrap_or(name).strip_prefix("cmd");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the letter of the operation in the kernel's `rwbs`: an optional flush, the operation, and flags.
fn rwbs(text: &str) -> Option<char> {
    let after = text.strip_prefix('F').filter(|rest| !rest.is_empty());
    let mut letters = after.unwrap_or(text).chars();
    let operation = letters.next().filter(|letter| "WRDNF".contains(*letter))?;
    letters
        .all(|flag| "FASMEB".contains(flag))
        .then_some(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operations() {
        let write = Some(Named::Data(OperationKind::Write));
        let read = Some(Named::Data(OperationKind::Read));
        for (text, expected) in [
            ("W", write),
            ("pwrite64", write),
            ("CMD25", write),
            ("WS", write),
            ("FWFS", write),
            ("Read", read),
            ("RA", read),
            ("CMD18", read),
            ("fsync", Some(Named::Other)),
            ("ACMD41", Some(Named::Other)),
            ("DS", Some(Named::Other)),
            ("SD.write", write),
            ("f_read", read),
            ("writeSector", write),
            ("Read block", read),
            ("SD.flush()", Some(Named::Other)),
            ("écriture", write),
            ("read/write", None),
            ("rewrite", None),
            ("foo", None),
            ("0", None),
            ("1", None),
            ("", None),
            ("cmd", None),
            ("AND", None),
        ] {
            assert_eq!(operation_named(text.as_bytes()), expected, "{text}");
        }
    }
}
