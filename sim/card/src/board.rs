//! What sits in front of a card: bus, driver habits, library, CPU.

use crate::toml_file::{self, Range, TomlError};
use serde::Deserialize;

/// A board: physical quantities and habits only.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Which board it is, in a few words.
    pub about: String,
    /// The bus.
    pub spi: Spi,
    /// The card driver.
    pub driver: Driver,
    /// The file library above it.
    pub library: Library,
}

/// An SPI bus with a card on it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Spi {
    /// Clock in Hz; a byte takes eight.
    pub clock_hz: u32,
    /// Bytes clocked before the card answers a command (NCR).
    pub ncr_bytes: u32,
}

/// The card driver.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// CPU time for a block, in us.
    pub block_us: u32,
}

/// The file library.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// Bytes each open file gathers before a block is written: 512, or 0 for none.
    pub file_buffer_bytes: u32,
    /// How often a path is walked from the root to open a file.
    pub path_walks_per_open: u32,
    /// Cluster size the card is formatted with, in bytes.
    pub cluster_bytes: u32,
    /// CPU time for a call, in us.
    pub call_us: u32,
    /// CPU time for a byte of payload, in ns.
    pub byte_ns: u32,
}

impl Board {
    /// The board of this name among [`BOARDS`](crate::BOARDS).
    ///
    /// # Errors
    /// If there is none; the message lists those there are.
    pub fn named(name: &str) -> Result<Board, TomlError> {
        let text = toml_file::find(name, crate::BOARDS, "board", "description")?;
        Board::from_toml(name, text)
    }

    /// Reads a board; `name` stands in messages.
    ///
    /// # Errors
    /// If it is not TOML, a key is unknown or missing, or a value is impossible.
    pub fn from_toml(name: &str, text: &str) -> Result<Board, TomlError> {
        let board: Board = toml_file::parse(name, text)?;
        board.check(name)?;
        Ok(board)
    }

    /// CPU time of a library call with so many bytes of payload, in ns.
    pub fn call_ns(&self, payload_bytes: u64) -> u64 {
        u64::from(self.library.call_us) * 1000 + u64::from(self.library.byte_ns) * payload_bytes
    }

    fn check(&self, name: &str) -> Result<(), TomlError> {
        let Board {
            spi,
            driver,
            library,
            ..
        } = self;
        toml_file::check_ranges(
            name,
            &[
                Range::new("spi.clock_hz", spi.clock_hz, 100_000..=50_000_000),
                Range::new("spi.ncr_bytes", spi.ncr_bytes, 0..=8),
                Range::new("driver.block_us", driver.block_us, 0..=100_000),
                Range::new(
                    "library.path_walks_per_open",
                    library.path_walks_per_open,
                    1..=8,
                ),
                Range::new("library.cluster_bytes", library.cluster_bytes, 512..=32_768),
                Range::new("library.call_us", library.call_us, 0..=100_000),
                Range::new("library.byte_ns", library.byte_ns, 0..=1_000_000),
            ],
        )?;
        if !matches!(library.file_buffer_bytes, 0 | 512) {
            return Err(TomlError::value(
                name,
                "library.file_buffer_bytes",
                "0 or 512",
            ));
        }
        if !library.cluster_bytes.is_power_of_two() {
            return Err(TomlError::value(
                name,
                "library.cluster_bytes",
                "a power of two",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_boards_are_refused() {
        let text = crate::BOARDS[0]
            .1
            .replace("clock_hz = 4_000_000", "clock_hz = 1");
        let error = Board::from_toml("b.toml", &text).unwrap_err().to_string();
        assert_eq!(
            error,
            "b.toml: `spi.clock_hz` is 1; it must be 100000 to 50000000"
        );
    }
}
