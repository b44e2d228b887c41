//! Mutations of seeds.

use cardiograph_sim_world::Random;

/// Most changes of an input.
const CHANGES_MAX: u64 = 8;
/// Longest run of bytes that a change inserts.
const RUN_BYTES_MAX: u64 = 64;
/// Bytes that matter in text or binary files.
const BYTES: [u8; 14] = [
    0, 1, 0x7F, 0x80, 0xFE, 0xFF, b'\n', b'\r', b'"', b',', b';', b'-', b'.', b'9',
];
/// Integers at the borders of their types.
const INTEGERS: [u64; 8] = [
    0,
    1,
    0x7F,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
];
/// Replacements of numbers in text.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "",
];

/// Returns a seed with up to [`CHANGES_MAX`] changes.
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = one_of(seeds, random).cloned().unwrap_or_default();
    for _ in 0..=random.below(CHANGES_MAX) {
        change(&mut bytes, seeds, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = index(random, bytes.len() + 1);
    let end = at + index(random, (bytes.len() - at + 1).min(RUN_BYTES_MAX as usize));
    match random.below(9) {
        0 => flip(bytes, at, random),
        1 => set(bytes, at, BYTES[index(random, BYTES.len())]),
        2 => {
            let run: Vec<u8> = (0..=random.below(RUN_BYTES_MAX))
                .map(|_| random.next_u64() as u8)
                .collect();
            bytes.splice(at..at, run).for_each(drop);
        }
        3 => bytes.drain(at..end).for_each(drop),
        4 => {
            let run = bytes[at..end].to_vec();
            let to = index(random, bytes.len() + 1);
            bytes.splice(to..to, run).for_each(drop);
        }
        5 => {
            let value = INTEGERS[index(random, INTEGERS.len())].to_le_bytes();
            let length = [1, 2, 4, 8][index(random, 4)];
            for (offset, byte) in value.into_iter().take(length).enumerate() {
                set(bytes, at + offset, byte);
            }
        }
        6 => {
            let other = one_of(seeds, random).cloned().unwrap_or_default();
            let from = index(random, other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        7 => replace_number(bytes, at, NUMBERS[index(random, NUMBERS.len())]),
        _ => bytes.truncate(at),
    }
}

fn flip(bytes: &mut [u8], at: usize, random: &mut Random) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn set(bytes: &mut [u8], at: usize, value: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

/// Replaces the first digits at or after an index.
fn replace_number(bytes: &mut Vec<u8>, at: usize, text: &str) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let length = bytes[start..]
        .iter()
        .position(|byte| !byte.is_ascii_digit());
    let end = length.map_or(bytes.len(), |length| start + length);
    bytes.splice(start..end, text.bytes()).for_each(drop);
}

fn one_of<'a, T>(items: &'a [T], random: &mut Random) -> Option<&'a T> {
    items.get(index(random, items.len().max(1)))
}

fn index(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}
