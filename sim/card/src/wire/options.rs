//! Properties of a card at its interface, independent of its flash.

use crate::BLOCK_BYTES;
use std::fmt;

/// Card type: version of the specification and addressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Version 1 of the specification: CMD8 is illegal, addresses count bytes, at most 2 GiB.
    Version1,
    /// Standard capacity: addresses count bytes, at most 2 GiB.
    Standard,
    /// High or extended capacity: addresses count blocks, at most 2 TiB.
    High,
}

impl Kind {
    /// Returns the byte address that a command argument refers to.
    pub(in crate::wire) fn address_of(self, argument: u32) -> u64 {
        match self {
            Kind::High => u64::from(argument) * BLOCK_BYTES as u64,
            Kind::Standard | Kind::Version1 => u64::from(argument),
        }
    }
}

/// Behaviour of a card at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Card type.
    pub kind: Kind,
    /// SPI: filler bytes (0xFF) between a command and its response (NCR of 7.5.4): 0 to 8.
    pub ncr_bytes: u8,
    /// SPI: minimum number of filler bytes (0xFF) between a response and a data block (NAC of 7.5.4): 0 to
    /// 255.
    pub nac_bytes: u8,
    /// SD bus: clocks between a command and its response (NCR of 4.12.4): 2 to 64.
    pub ncr_clocks: u8,
    /// SD bus: minimum number of clocks between a command, or a block, and the following data block (NAC of
    /// 4.12.4): 2 to 255.
    pub nac_clocks: u8,
    /// Time from the first ACMD41 until the card is ready, in us. The specification allows at most 1 s
    /// (4.2.3).
    pub init_us: u32,
    /// True if the CSD marks the card as write-protected.
    pub write_protected: bool,
    /// Speed class in the SD status register (4.10.2): 0, 2, 4, 6 or 10.
    pub speed_class: u8,
    /// Allocation unit in the SD status register (4.10.2), in bytes: a power of two, 16 KiB to 64 MiB.
    pub au_bytes: u32,
    /// Serial number in the CID register (5.2).
    pub serial: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            kind: Kind::High,
            ncr_bytes: 1,
            nac_bytes: 1,
            ncr_clocks: 2,
            nac_clocks: 2,
            init_us: 20_000,
            write_protected: false,
            speed_class: 10,
            au_bytes: 4 << 20,
            serial: 1,
        }
    }
}

/// An option out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionsError {
    /// Name of the option that is out of range.
    pub field: &'static str,
    /// Values that the option may have.
    pub allowed: &'static str,
}

impl std::error::Error for OptionsError {}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "`{}` must be {}", self.field, self.allowed)
    }
}

impl Options {
    pub(in crate::wire) fn check(&self, blocks: u64) -> Result<(), OptionsError> {
        let must = |holds, field, allowed| match holds {
            true => Ok(()),
            false => Err(OptionsError { field, allowed }),
        };
        must(self.ncr_bytes <= 8, "ncr_bytes", "0 to 8")?;
        must((2..=64).contains(&self.ncr_clocks), "ncr_clocks", "2 to 64")?;
        must(self.nac_clocks >= 2, "nac_clocks", "2 to 255")?;
        must(
            matches!(self.speed_class, 0 | 2 | 4 | 6 | 10),
            "speed_class",
            "0, 2, 4, 6 or 10",
        )?;
        must(
            self.au_bytes.is_power_of_two() && (16 << 10..=64 << 20).contains(&self.au_bytes),
            "au_bytes",
            "a power of two, 16 KiB to 64 MiB",
        )?;
        let capacity_bytes = blocks * BLOCK_BYTES as u64;
        must(
            self.kind == Kind::High || capacity_bytes <= 2 << 30,
            "kind",
            "high capacity above 2 GiB",
        )
    }
}

/// Checks that the simulation supports a bus clock, in Hz.
pub(in crate::wire) fn check_clock(clock_hz: u32) -> Result<(), OptionsError> {
    match clock_hz {
        1_000..=50_000_000 => Ok(()),
        _ => Err(OptionsError {
            field: "clock_hz",
            allowed: "1000 to 50000000",
        }),
    }
}
