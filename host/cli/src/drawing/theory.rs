//! What follows from physical values by arithmetic alone. No figure of a study goes in.

use super::lasting;
use cardiograph_report::units;
use cardiograph_sim_card::{BLOCK_BYTES, FlashProfile, Profile};

/// A quantity, and how it comes about.
pub struct Derived {
    pub name: String,
    pub value: String,
    /// In words.
    pub formula: String,
}

impl Derived {
    pub fn new(name: &str, value: String, formula: impl Into<String>) -> Derived {
        Derived {
            name: name.to_string(),
            value,
            formula: formula.into(),
        }
    }
}

/// Bytes of a block, to reckon with.
pub const BLOCK: f64 = BLOCK_BYTES as f64;

/// Bytes in a page of all planes.
pub fn page_bytes(profile: &Profile) -> u64 {
    u64::from(profile.flash.page_bytes) * u64::from(profile.flash.planes)
}

/// Bytes in a block of all planes, what addresses are divided into.
pub fn unit_bytes(profile: &Profile) -> u64 {
    page_bytes(profile) * u64::from(profile.flash.pages_per_block)
}

/// Pages of a cell take turns, so that a block takes the mean of their times.
pub fn mean_program_us(flash: &FlashProfile) -> f64 {
    let times = flash.program_us.iter().map(|&us| f64::from(us));
    times.sum::<f64>() / flash.program_us.len().max(1) as f64
}

/// What follows for a card.
pub fn of_card(profile: &Profile) -> Vec<Derived> {
    let times = Times::of(profile);
    let mut theory = vec![Derived::new(
        "A small write without a peak",
        units::time(times.small_us),
        "command + read of its page + log program",
    )];
    theory.extend(peaks(profile, &times));
    theory.extend(log(profile));
    theory.extend(rates(profile, &times));
    theory.extend(lasting::life(profile));
    theory.extend(lasting::energies(profile, &times));
    theory
}

/// Times in us that several quantities are made of.
pub struct Times {
    pub small_us: f64,
    pub copy_us: f64,
    pub erase_us: f64,
    pub peak_us: f64,
}

impl Times {
    fn of(profile: &Profile) -> Times {
        let (flash, controller) = (&profile.flash, profile.controller);
        let wear = f64::from(flash.erase_wear_percent) / 100.0 * f64::from(flash.cycles_used)
            / f64::from(flash.endurance_cycles);
        let erase_us = f64::from(flash.erase_us) * (1.0 + wear);
        let read_us = f64::from(flash.read_us);
        let copy_us = f64::from(flash.pages_per_block) * (read_us + mean_program_us(flash));
        Times {
            small_us: f64::from(controller.command_us) + read_us + f64::from(flash.log_program_us),
            copy_us,
            erase_us,
            peak_us: copy_us + (1.0 + f64::from(controller.gc_log_blocks)) * erase_us,
        }
    }
}

fn peaks(profile: &Profile, times: &Times) -> Vec<Derived> {
    let controller = profile.controller;
    let erases = units::count(u64::from(controller.gc_log_blocks) + 1);
    let limit_us = f64::from(controller.stall_limit_us);
    let mut peaks = vec![Derived::new(
        "A peak: one unit merged",
        units::time(times.peak_us),
        format!(
            "pages × (read + mean program) + {erases} erases: its old block and the log's freed"
        ),
    )];
    if times.peak_us > limit_us {
        peaks.push(Derived::new(
            "  what the first write waits of it",
            units::time(limit_us),
            "the limit of one write; those that follow wait for the rest",
        ));
    }
    peaks.push(worst(profile, times));
    peaks
}

/// Every page that is freed may be of another unit.
fn worst(profile: &Profile, times: &Times) -> Derived {
    let controller = profile.controller;
    let freed = f64::from(controller.gc_log_blocks);
    let units = (profile.capacity_bytes / unit_bytes(profile)) as f64;
    let merges = (freed * f64::from(profile.flash.pages_per_block)).min(units);
    let all_us = merges * (times.copy_us + times.erase_us) + freed * times.erase_us;
    let limit_us = f64::from(controller.stall_limit_us);
    let portions = match all_us > limit_us {
        true => format!(
            "; writes wait {} each until it is done",
            units::time(limit_us)
        ),
        false => String::new(),
    };
    Derived::new(
        "A clean-up at worst",
        units::time(all_us),
        format!(
            "each page freed is of another unit: pages of freed blocks × (copy of a unit + erase) + \
             erases of these blocks{portions}"
        ),
    )
}

/// Log pages from one merge of a unit to its next: the pages it had in the log are gone with the
/// first, so that clean-up finds one again only when the log has gone round.
fn round_pages(profile: &Profile) -> u64 {
    let controller = profile.controller;
    let freed = controller.gc_log_blocks.max(1);
    let blocks = controller.log_blocks / freed * freed;
    u64::from(blocks) * u64::from(profile.flash.pages_per_block)
}

fn log(profile: &Profile) -> Vec<Derived> {
    let (flash, controller) = (&profile.flash, profile.controller);
    let pages = u64::from(flash.pages_per_block);
    let round = round_pages(profile);
    let is_whole = controller
        .log_blocks
        .is_multiple_of(controller.gc_log_blocks.max(1));
    let blocks = match is_whole {
        true => "log blocks",
        false => "log blocks, down to whole clean-ups,",
    };
    let log_pages = u64::from(controller.log_blocks) * pages;
    vec![
        Derived::new(
            "From peak to peak, in a file",
            format!("{} log pages", units::count(round)),
            format!(
                "{blocks} × pages per block: the log goes round, as for a file that grows within a unit"
            ),
        ),
        Derived::new(
            "  with writes of 512 B, one a page",
            units::bytes(round as f64 * BLOCK),
            "log pages × 512 B",
        ),
        Derived::new(
            "From peak to peak, at worst",
            format!(
                "{} log pages",
                units::count(u64::from(controller.gc_log_blocks) * pages)
            ),
            "freed blocks × pages per block: each holds a page of a unit that is not merged yet",
        ),
        Derived::new(
            "Size of the log: what a cache test finds",
            units::ram(log_pages * page_bytes(profile)),
            "log blocks × pages per block × page bytes × planes",
        ),
    ]
}

/// Bytes in a time of so many us, as a rate.
fn rate(bytes: f64, us: f64) -> String {
    units::rate(bytes / us * 1e6)
}

fn in_order(profile: &Profile, times: &Times) -> Vec<Derived> {
    let (flash, page) = (&profile.flash, page_bytes(profile) as f64);
    if profile.controller.open_units > 0 {
        return vec![Derived::new(
            "Whole pages in order",
            rate(page, mean_program_us(flash)),
            "page bytes × planes / mean program",
        )];
    }
    let log_us = f64::from(flash.log_program_us);
    let unit_us = f64::from(flash.pages_per_block) * log_us + times.copy_us + 2.0 * times.erase_us;
    vec![
        Derived::new(
            "Whole pages, until the log is full",
            rate(page, log_us),
            "page bytes × planes / log program",
        ),
        Derived::new(
            "  in the long run",
            rate(unit_bytes(profile) as f64, unit_us),
            "bytes of a unit / (pages × log program + copy of a unit + 2 erases)",
        ),
    ]
}

fn rates(profile: &Profile, times: &Times) -> Vec<Derived> {
    let (flash, page) = (&profile.flash, page_bytes(profile) as f64);
    let pages = f64::from(flash.pages_per_block);
    let round = round_pages(profile) as f64;
    // Blocks freed between two merges hold nothing any more and cost an erase each.
    let erases_us = (round / pages + 1.0) * times.erase_us;
    let round_us = round * times.small_us + times.copy_us + erases_us;
    let mut rates = in_order(profile, times);
    rates.extend([
        Derived::new(
            "Blocks of 512 B in a file, peaks too",
            rate(round * BLOCK, round_us),
            "payload from peak to peak / (its small writes + copy of a unit + an erase for it and for \
             each log block)",
        ),
        Derived::new(
            "Reading whole pages",
            rate(page, f64::from(flash.read_us)),
            "page bytes × planes / read",
        ),
    ]);
    rates
}

#[cfg(test)]
mod tests;
