//! The marker of a disk that is being formatted: the first 4096 B.
//!
//! ```text
//! cardiograph: this disk is being formatted and overwritten
//! run: cardiograph flash-benchmark /dev/sdb --destroy /dev/sdb
//! begun: 2026-11-25T21:32:17Z
//! step: ext4
//! checksum: 0123456789abcdef        FNV-1a, 64 bits, of everything above this line
//! ```
//!
//! followed by zeros. Everything that formats a disk overwrites its first sector, and so the marker.

use std::fmt;

/// Length of the marker in bytes; its offset is 0.
pub(crate) const MARKER_BYTES: usize = 4096;

const TITLE: &str = "cardiograph: this disk is being formatted and overwritten\n";

/// Characters of a value, at most.
const VALUE_MAX: usize = 512;

/// A run that formats a disk, as the disk itself states it until the run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Command line.
    pub run: String,
    /// Time at which the run began.
    pub begun: String,
    /// Step of the run, such as `ext4`.
    pub step: String,
}

impl Marker {
    /// Returns the content of the first 4096 B.
    pub(crate) fn block(&self) -> [u8; MARKER_BYTES] {
        let mut text = String::from(TITLE);
        for (name, value) in [
            ("run", &self.run),
            ("begun", &self.begun),
            ("step", &self.step),
        ] {
            text.push_str(&format!("{name}: {}\n", on_one_line(value)));
        }
        let checksum = fnv1a(text.as_bytes());
        text.push_str(&format!("checksum: {checksum:016x}\n"));
        let mut block = [0; MARKER_BYTES];
        block[..text.len()].copy_from_slice(text.as_bytes());
        block
    }

    /// Parses the first bytes of a disk; returns `None` unless they are a whole marker.
    pub(crate) fn parse(block: &[u8]) -> Option<Marker> {
        let (text, rest) = block.split_at(block.iter().position(|&byte| byte == 0)?);
        if rest.iter().any(|&byte| byte != 0) {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let (covered, checksum) = text.split_once("checksum: ")?;
        if checksum != format!("{:016x}\n", fnv1a(covered.as_bytes())) {
            return None;
        }
        let mut lines = covered.strip_prefix(TITLE)?.lines();
        let mut value = |name: &str| Some(lines.next()?.strip_prefix(name)?.to_string());
        Some(Marker {
            run: value("run: ")?,
            begun: value("begun: ")?,
            step: value("step: ")?,
        })
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Marker { run, begun, step } = self;
        write!(
            f,
            "half formatted by an interrupted run of `{run}`, begun {begun}, at the step {step}"
        )
    }
}

/// Shortens a value, and removes what would end its line.
fn on_one_line(value: &str) -> String {
    let value = value.replace("checksum: ", "checksum:");
    let clean = value.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(VALUE_MAX).collect()
}

/// FNV-1a with 64 bits (Fowler, Noll and Vo).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> Marker {
        Marker {
            run: String::from("cardiograph flash-benchmark /dev/sdb"),
            begun: String::from("2026-11-25T21:32:17Z"),
            step: String::from("ext4"),
        }
    }

    #[test]
    fn a_marker_is_read_back_and_no_other_block_is_one() {
        let block = marker().block();
        assert_eq!(Marker::parse(&block), Some(marker()));
        for at in 0..MARKER_BYTES {
            let mut wrong = block;
            wrong[at] ^= 1;
            assert_eq!(Marker::parse(&wrong), None, "byte {at}");
        }
        // Bytes that a formatting program overwrites: the first sector, or all but the first 1024 B.
        let mut other = block;
        other[..512].fill(0);
        assert_eq!(Marker::parse(&other), None);
        assert_eq!(Marker::parse(&[0; MARKER_BYTES]), None);
        assert_eq!(Marker::parse(&[b'c'; MARKER_BYTES]), None);
    }

    #[test]
    fn values_stay_on_their_lines_and_within_the_block() {
        let long = Marker {
            run: "é\nstep: x\0checksum: ".repeat(1000),
            ..marker()
        };
        let parsed = Marker::parse(&long.block()).unwrap();
        assert_eq!(parsed.step, "ext4");
        assert!(parsed.run.starts_with("é step: x checksum:"), "{parsed}");
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        // Test vectors of the authors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
