//! Names of hidden entries, and long names of recordings.

use crate::volume::{FileId, Name, ShortText};
use hadris_fat_raw::{LFN_LAST_ENTRY, LFN_UNITS_PER_ENTRY, LongEntry};

/// Name of a folder's index.
pub(super) const INDEX: Name = *b"CARDIOGRIDX";
/// Preallocated space is named `CARDIOGR.R00` to `CARDIOGR.R99`.
pub(super) const HIDDEN_NAMES: u32 = 100;
const HIDDEN: Name = *b"CARDIOGRR00";

pub(super) fn hidden_name(number: u32) -> Name {
    let mut name = HIDDEN;
    name[9] += (number / 10 % 10) as u8;
    name[10] += (number % 10) as u8;
    name
}

pub(super) fn hidden_number(name: &Name) -> Option<u32> {
    let digits = [name[9], name[10]];
    let is_hidden = name[..9] == HIDDEN[..9] && digits.iter().all(u8::is_ascii_digit);
    is_hidden.then(|| u32::from(digits[0] - b'0') * 10 + u32::from(digits[1] - b'0'))
}

/// Returns the hidden name of an upload: `CARDIOGR.U00` and so on.
pub(super) fn upload_name(number: u32) -> Name {
    let mut name = hidden_name(number);
    name[8] = b'U';
    name
}

/// Returns the five digits in a name such as `LOG00012CSV`.
pub(super) fn number_of(name: &Name) -> Option<u32> {
    let is_pattern =
        name[..3].iter().all(u8::is_ascii_uppercase) && name[3..8].iter().all(u8::is_ascii_digit);
    let digits = || name[3..8].iter().map(|digit| u32::from(digit - b'0'));
    is_pattern.then(|| digits().fold(0, |number, digit| 10 * number + digit))
}

/// Length of the longest long name, in bytes: `LOG00012 session.CSV`.
const LONG_BYTES_MAX: usize = 8 + 1 + ShortText::BYTES_MAX + 1 + 3;
/// Directory entries of the longest name, including the short one.
pub(super) const NAME_ENTRIES_MAX: usize = LONG_BYTES_MAX.div_ceil(LFN_UNITS_PER_ENTRY) + 1;

/// Long name of a recording that belongs to a session.
pub(super) struct LongName {
    bytes: [u8; LONG_BYTES_MAX],
    len: usize,
    checksum: u8,
}

impl LongName {
    pub(super) fn new(id: FileId, session: ShortText) -> LongName {
        let short = id.short_name();
        let mut long = LongName {
            bytes: [0; LONG_BYTES_MAX],
            len: 0,
            checksum: hadris_fat_raw::lfn_checksum(&short),
        };
        if !session.as_str().is_empty() {
            for part in [
                &short[..8],
                b" ",
                session.as_str().as_bytes(),
                b".",
                &short[8..],
            ] {
                long.bytes[long.len..long.len + part.len()].copy_from_slice(part);
                long.len += part.len();
            }
        }
        long
    }

    /// Returns the number of entries before the short one.
    pub(super) fn entries(&self) -> usize {
        self.len.div_ceil(LFN_UNITS_PER_ENTRY)
    }

    /// Returns an entry; index 0 is the first in the directory.
    pub(super) fn entry(&self, index: usize) -> [u8; 32] {
        let number = self.entries() - index;
        let last = if index == 0 { LFN_LAST_ENTRY } else { 0 };
        let units = core::array::from_fn(|at| {
            let at = (number - 1) * LFN_UNITS_PER_ENTRY + at;
            match at.cmp(&self.len) {
                core::cmp::Ordering::Less => self.bytes[at].into(),
                core::cmp::Ordering::Equal => 0,
                core::cmp::Ordering::Greater => 0xFFFF,
            }
        });
        LongEntry::new(number as u8 | last, self.checksum, &units).encode()
    }
}

const _: () = assert!(HIDDEN_NAMES as usize >= crate::volume::RESERVED_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn hidden_names_have_two_digits() {
        for number in 0..HIDDEN_NAMES {
            let name = hidden_name(number);
            assert_eq!(name[..], *format!("CARDIOGRR{number:02}").as_bytes());
            assert_eq!(hidden_number(&name), Some(number));
            let upload = upload_name(number);
            assert_eq!(upload[..], *format!("CARDIOGRU{number:02}").as_bytes());
            assert_eq!(hidden_number(&upload), None);
        }
        for name in [
            b"CARDIOGRR0A",
            b"CARDIOGRRA0",
            b"CARDIOGRJNL",
            b"CARDIOGSR00",
        ] {
            assert_eq!(hidden_number(name), None);
        }
    }

    #[test]
    fn numbers_are_read_from_names_of_three_letters_and_five_digits() {
        assert_eq!(number_of(b"LOG00012CSV"), Some(12));
        assert_eq!(number_of(b"LOG98765BIN"), Some(98_765));
        for name in [
            b"LO000012CSV",
            b"LOG0001 CSV",
            b"log00012CSV",
            b"LOGS0012CSV",
        ] {
            assert_eq!(number_of(name), None);
        }
    }
}
