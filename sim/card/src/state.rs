//! The state of a card as bytes, so that one program ages a card and another continues with it.
//!
//! A state is that of a card without power: its RAM is empty, and loading it is like switching the card on at time 0.
//! Energy counts from then on. Cards with defects cannot be saved. A state does not contain the profile; loading
//! requires the same one.
//!
//! All numbers are little endian; `u32[]` is a number of elements (u32), followed by the elements; `u64[n]` are as
//! many elements as the profile requires. Version 1:
//!
//! | type | contents |
//! |---|---|
//! | 8 bytes | `CGRCARD` and a zero |
//! | u32 | version |
//! | u32 | CRC-32 of the profile as TOML, without the line `model = 1` |
//! | u32, then each u64 and 4096 bytes | number of chunks with data; number of each chunk on the card, and its contents |
//! | u32, then each u64 | number of unreadable blocks; their numbers, in order |
//! | | the flash: one of the tables below |
//! | u32 | CRC-32 (IEEE 802.3) of all previous bytes |
//!
//! The flash of a profile with `model = 1`:
//!
//! | type | contents |
//! |---|---|
//! | u64 | random stream of flash times |
//! | u32\[\] | erases of each flash block |
//! | u32\[\] | flash block of each unit |
//! | u32\[\] | free flash blocks, next first |
//! | u32 | spare blocks left |
//! | u32 | 1 if the card is worn out, else 0 |
//! | u64, u64 | seed of the endurance; total number of erases |
//! | u32\[\], u32\[\], u32 | log: flash blocks, oldest first; page in each slot, or 2^32 - 1; free slots in the newest block |
//! | the same | log of the fast zone |
//! | u32, then each u32, u32, u32 | number of open units, oldest first; unit, next page and flash block of each |
//! | u64, u64, u64 | garbage-collection debt in ns and nJ; log blocks that it frees |
//! | u64, u64 | garbage collection begun while idle, in ns and nJ |
//! | u64, u32 | erases before the next move of wear levelling; unit to move |
//!
//! The flash of any other profile:
//!
//! | type | contents |
//! |---|---|
//! | u64 | random stream of flash times |
//! | u32\[\], u32\[\], u32\[\] | erases of each flash block; free flash blocks, next first; reads of each block since its erase |
//! | u32, u32 | worn-out blocks; 1 if the card is worn out, else 0 |
//! | u64, u64 | seed of the endurance; total number of erases |
//! | u32, u64\[n\] | entries left in the journal of the mapping tables; one bit for each page of them that changed |
//! | u64, u64, u64 | garbage-collection debt in ns and nJ; blocks that it frees |
//! | u64, u64 | garbage collection begun while idle, in ns and nJ |
//! | u64 | garbage-collection debt that is overdue, in ns |
//! | u64, u64 | pages programmed; erases before the next move of wear levelling |
//!
//! followed, with hybrid mapping, by
//!
//! | type | contents |
//! |---|---|
//! | u64\[n\] | one bit for each page that holds data |
//! | u32\[\] | flash block of each unit, or 2^32 - 1 |
//! | the same as above | log; log of the fast zone; open units |
//! | u32 | unit that wear levelling moves next |
//!
//! and with page mapping by
//!
//! | type | contents |
//! |---|---|
//! | u32\[\] | page in each slot plus one, or 0 |
//! | u32, then each u32, u64 | number of full blocks; each of them, and the pages programmed when it became full |
//! | u32, u32 | block being written, or 2^32 - 1; its next page |

use crate::{Card, Profile};
use std::fmt;

pub(crate) const MAGIC: [u8; 8] = *b"CGRCARD\0";
pub(crate) const VERSION: u32 = 2;

/// Reason why a state was not saved or loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateError {
    /// The card has defects or was damaged, which a state cannot hold.
    Defects,
    /// The bytes do not begin like a state.
    NotAState,
    /// This version is unknown.
    Version(u32),
    /// The state ends early, or its checksum differs.
    Damaged,
    /// The state was saved with another profile.
    OtherProfile,
    /// A value is out of range.
    OutOfRange {
        /// Description of the value.
        what: &'static str,
    },
}

impl std::error::Error for StateError {}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StateError::Defects => {
                f.write_str("a card with defects cannot be saved; use one without defects")
            }
            StateError::NotAState => f.write_str("not a saved card; save one with Card::to_state"),
            StateError::Version(version) => write!(
                f,
                "saved card of version {version}, but only version {VERSION} is supported; save it again"
            ),
            StateError::Damaged => f.write_str("the saved card is damaged; save it again"),
            StateError::OtherProfile => {
                f.write_str("the card was saved with another profile; load it with that one")
            }
            StateError::OutOfRange { what } => {
                write!(f, "the saved card has an invalid {what}; save it again")
            }
        }
    }
}

/// Appends values to a state.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn list(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        self.u32(values.len() as u32);
        values.for_each(|value| self.u32(value));
    }

    /// Appends the checksum; returns the state.
    fn finish(mut self) -> Vec<u8> {
        let sum = crc32(&self.0);
        self.u32(sum);
        self.0
    }
}

/// Reads values from a state.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    #[cfg(test)]
    pub(crate) fn of(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], StateError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(StateError::Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, StateError> {
        let bytes = self.bytes(4)?.as_array().ok_or(StateError::Damaged)?;
        Ok(u32::from_le_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StateError> {
        let bytes = self.bytes(8)?.as_array().ok_or(StateError::Damaged)?;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Reads a number below `bound`.
    pub(crate) fn below(&mut self, bound: u32, what: &'static str) -> Result<u32, StateError> {
        match self.u32()? {
            value if value < bound => Ok(value),
            _ => Err(StateError::OutOfRange { what }),
        }
    }

    /// Reads a list of at most `count_max` numbers that `is_valid` accepts.
    pub(crate) fn list(
        &mut self,
        count_max: usize,
        what: &'static str,
        is_valid: impl Fn(u32) -> bool,
    ) -> Result<Vec<u32>, StateError> {
        let count = self.u32()? as usize;
        if count > count_max {
            return Err(StateError::OutOfRange { what });
        }
        let read = |_| match self.u32()? {
            value if is_valid(value) => Ok(value),
            _ => Err(StateError::OutOfRange { what }),
        };
        (0..count).map(read).collect()
    }
}

impl Card {
    /// Returns the state in which a power cut at `now_ns` would leave the card.
    ///
    /// # Errors
    /// [`StateError::Defects`].
    pub fn to_state(&self, profile: &Profile, now_ns: u64) -> Result<Vec<u8>, StateError> {
        let mut card = self.clone();
        card.power_cut(now_ns);
        let mut to = Writer::default();
        to.bytes(&MAGIC);
        to.u32(VERSION);
        to.u32(fingerprint(profile)?);
        card.write_state(&mut to)?;
        Ok(to.finish())
    }

    /// Creates a card in a saved state, switched on at time 0.
    ///
    /// # Errors
    /// [`StateError`] for anything but a state that was saved with this profile.
    pub fn from_state(profile: &Profile, state: &[u8]) -> Result<Card, StateError> {
        let (contents, sum) = state.split_last_chunk().ok_or(StateError::NotAState)?;
        let mut from = Reader(contents);
        if from.bytes(MAGIC.len())? != MAGIC {
            return Err(StateError::NotAState);
        }
        match from.u32()? {
            VERSION => (),
            version => return Err(StateError::Version(version)),
        }
        if crc32(contents) != u32::from_le_bytes(*sum) {
            return Err(StateError::Damaged);
        }
        if from.u32()? != fingerprint(profile)? {
            return Err(StateError::OtherProfile);
        }
        let card = Card::read_state(profile, &mut from)?;
        match from.0 {
            [] => Ok(card),
            _ => Err(StateError::Damaged),
        }
    }
}

fn fingerprint(profile: &Profile) -> Result<u32, StateError> {
    let text = profile.to_toml().map_err(|_| StateError::OtherProfile)?;
    // States of model 1 were saved before profiles had this key.
    let text = text.strip_prefix("model = 1\n").unwrap_or(&text);
    Ok(crc32(text.as_bytes()))
}

/// Returns the CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xEDB8_8320)
        })
    })
}
