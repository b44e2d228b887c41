//! Bounds of the values that are fitted to published figures, each with its source. All other values of a card
//! are those of data sheets and stay fixed.

use cardiograph_sim_card::Profile;
use std::ops::RangeInclusive;

/// A fitted value: its path in a profile, the values that it may take, and the reason for these bounds.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Path of the value.
    pub path: &'static str,
    /// Values that it may take.
    pub allowed: RangeInclusive<u32>,
    /// True if the value must be a power of two.
    pub is_power: bool,
    /// Source of the bounds.
    pub source: &'static str,
}

/// Mean program times of data pages, by bits per cell.
pub const PROGRAM: [Bound; 3] = [
    Bound {
        path: "flash.program_us",
        allowed: 200..=300,
        is_power: false,
        source: "SLC: 200 us typical (Samsung K9K8G08U0A data sheet) to 300 us (AnandTech, Understanding TLC NAND, 2012)",
    },
    Bound {
        path: "flash.program_us",
        allowed: 600..=900,
        is_power: false,
        source: "MLC: 600 to 900 us (AnandTech, 2012); 800 us typical (Samsung K9GAG08U0M data sheet)",
    },
    Bound {
        path: "flash.program_us",
        allowed: 900..=1350,
        is_power: false,
        source: "TLC: 900 to 1350 us (AnandTech, 2012)",
    },
];

/// Erase times, by bits per cell. A trace does not determine them, so that only the members of an ensemble differ in them.
pub const ERASE: [Bound; 3] = [
    Bound {
        path: "flash.erase_us",
        allowed: 1500..=2000,
        is_power: false,
        source: "SLC: 1.5 ms typical (Samsung K9K8G08U0A data sheet) to 2 ms (AnandTech, Samsung SSD 840 review, 2012)",
    },
    Bound {
        path: "flash.erase_us",
        allowed: 1500..=3000,
        is_power: false,
        source: "MLC: 1.5 ms typical (Samsung K9GAG08U0M data sheet) to 3 ms (AnandTech, 2012)",
    },
    Bound {
        path: "flash.erase_us",
        allowed: 4500..=4500,
        is_power: false,
        source: "TLC: about 4.5 ms (AnandTech, 2012)",
    },
];

/// Bounds of a value that writes of single blocks do not show. The members of an ensemble differ in it.
pub const PART: Bound = Bound {
    path: "ftl.part_blocks",
    allowed: 1..=64,
    is_power: true,
    source: "from single blocks, as a chip that allows four programs of a page of 2 KiB (K9K8G08U0A data sheet, NOP), to \
             the largest page at once",
};

/// Bounds that do not depend on the kind of cells.
pub const COMMON: [Bound; 8] = [
    Bound {
        path: "flash.planes",
        allowed: 1..=4,
        is_power: true,
        source: "pages of 4 to 32 KiB across planes and chips (Linaro wiki, Flash memory card design)",
    },
    Bound {
        path: "flash.pages_per_block",
        allowed: 64..=512,
        is_power: true,
        source: "64 (K9K8G08U0A) and 128 (K9GAG08U0M) to 256 pages, and two blocks in turn; with the planes at most the 4 MiB \
                 of an SDHC card's allocation unit (SD specification 4.10.2)",
    },
    Bound {
        path: "flash.spare_blocks",
        allowed: 4..=1024,
        is_power: false,
        source: "from one log block beyond those in work, to a tenth of the card",
    },
    Bound {
        path: "controller.command_us",
        allowed: 10..=2000,
        is_power: false,
        source: "firmware and checksums of a command, up to one page program of the slowest cells",
    },
    Bound {
        path: "controller.open_units",
        allowed: 0..=8,
        is_power: false,
        source: "1 to 10 open units on measured cards (Linaro wiki), 0 for a card that logs everything first",
    },
    Bound {
        path: "controller.fast_zone_units",
        allowed: 0..=4,
        is_power: false,
        source: "the FAT zone of measured cards is the first unit or the first few (Linaro wiki)",
    },
    Bound {
        path: "ftl.commit_us",
        allowed: 0..=10_000,
        is_power: false,
        source: "from nothing to about four page programs and a read of the slowest cells (metadata, two copies)",
    },
    Bound {
        path: "ftl.step_pages",
        allowed: 8..=32_768,
        is_power: true,
        source: "from a few pages, as real-time translation layers copy (Choudhuri and Givargis, Partial Block Cleaning, \
                 2008); beyond 512 pages, the largest unit, there are no steps, as in BAST and FAST",
    },
];

/// Returns the bounds of the values that are fitted to a trace.
pub fn of(profile: &Profile) -> Vec<Bound> {
    let program = PROGRAM[kind(profile)].clone();
    std::iter::once(program).chain(COMMON).collect()
}

/// Returns the bounds of the values that are fitted to published figures.
pub fn of_card(profile: &Profile) -> Vec<Bound> {
    let erase = ERASE[kind(profile)].clone();
    of(profile).into_iter().chain([erase]).collect()
}

/// Returns the bounds of the values in which the members of an ensemble differ: those of [`of_card`], and [`PART`].
pub fn of_members(profile: &Profile) -> Vec<Bound> {
    of_card(profile).into_iter().chain([PART]).collect()
}

/// Returns the index of the kind of cells.
fn kind(profile: &Profile) -> usize {
    profile.flash.program_us.len().clamp(1, PROGRAM.len()) - 1
}
