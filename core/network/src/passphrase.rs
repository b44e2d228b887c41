//! Name and password of the logger's own access point.

use crate::settings::{NAME_BYTES_MAX, SSID_BYTES_MAX};
use core::fmt::{self, Write};
use heapless::String;

/// Letters and digits that are not mistaken for each other. 32 of them, so that each takes five random bits.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Length of the password: 80 random bits, more than can be tried after recording a handshake.
pub const PASSPHRASE_BYTES: usize = 16;
/// Random bits of a letter.
const LETTER_BITS: u32 = 5;
/// Letters from one random number.
const LETTERS_OF_NUMBER: usize = (u32::BITS / LETTER_BITS) as usize;

/// A random WPA2 password. `Debug` hides it; `Display` shows it, for the serial port.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase([u8; PASSPHRASE_BYTES]);

impl Passphrase {
    /// Creates a password. `random` must be a source of true random numbers: on an ESP32, that of the chip while its
    /// source of noise or its radio runs.
    pub fn new(mut random: impl FnMut() -> u32) -> Passphrase {
        let mut letters = [0; PASSPHRASE_BYTES];
        for group in letters.chunks_mut(LETTERS_OF_NUMBER) {
            let mut number = random();
            for letter in group {
                *letter = LETTERS[number as usize % LETTERS.len()];
                number >>= LETTER_BITS;
            }
        }
        Passphrase(letters)
    }

    /// Restores a password from the bytes of [`as_str`](Passphrase::as_str), for example from the flash of a board.
    /// `None` if they are something else, such as erased flash.
    pub fn restore(bytes: &[u8; PASSPHRASE_BYTES]) -> Option<Passphrase> {
        let is_ours = bytes.iter().all(|byte| LETTERS.contains(byte));
        is_ours.then_some(Passphrase(*bytes))
    }

    /// Returns the password.
    pub fn as_str(&self) -> &str {
        // All letters are ASCII.
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

impl fmt::Display for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const _: () = assert!(NAME_BYTES_MAX + "-0123".len() <= SSID_BYTES_MAX);

/// Returns the name of the access point: the logger's name, and the end of its MAC address.
pub fn access_point_name(name: &str, mac: [u8; 6]) -> String<SSID_BYTES_MAX> {
    let mut ssid = String::new();
    // Every name that the settings allow fits.
    let _ = write!(ssid, "{name}-{:02x}{:02x}", mac[4], mac[5]);
    ssid
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::format;
    use std::string::{String, ToString};

    /// A generator with a good distribution (xorshift).
    fn generator(mut state: u32) -> impl FnMut() -> u32 {
        move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        }
    }

    #[test]
    fn a_passphrase_uses_every_letter_at_every_place() {
        let mut random = generator(1);
        let mut found = [(); PASSPHRASE_BYTES].map(|()| BTreeSet::new());
        for _ in 0..1000 {
            let passphrase = Passphrase::new(&mut random);
            let kept = passphrase.as_str().as_bytes().try_into().unwrap();
            assert_eq!(Passphrase::restore(&kept), Some(passphrase.clone()));
            for (place, letter) in found.iter_mut().zip(passphrase.as_str().bytes()) {
                place.insert(letter);
            }
        }
        assert!(found.iter().all(|letters| letters.len() == LETTERS.len()));
        let all: String = LETTERS.iter().map(|letter| char::from(*letter)).collect();
        assert!(
            !all.contains(['l', 'o', '0', '1']),
            "mistaken for each other"
        );
    }

    #[test]
    fn devices_have_different_passphrases() {
        let passphrases: BTreeSet<_> = (1..=10_000)
            .map(|seed| Passphrase::new(generator(seed)).to_string())
            .collect();
        assert_eq!(passphrases.len(), 10_000);
    }

    #[test]
    fn erased_flash_is_no_passphrase() {
        for byte in [0, 0xFF, b'0', b'A'] {
            assert_eq!(Passphrase::restore(&[byte; PASSPHRASE_BYTES]), None);
        }
    }

    #[test]
    fn debug_shows_no_passphrase() {
        let passphrase = Passphrase::new(generator(7));
        assert!(!format!("{passphrase:?}").contains(passphrase.as_str()));
    }

    #[test]
    fn the_access_point_has_the_end_of_the_address_in_its_name() {
        let mac = [1, 2, 3, 4, 0xAB, 0x0F];
        assert_eq!(access_point_name("barn", mac), "barn-ab0f");
        let longest = "a".repeat(NAME_BYTES_MAX);
        assert_eq!(access_point_name(&longest, mac).len(), NAME_BYTES_MAX + 5);
    }
}
