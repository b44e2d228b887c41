//! Figures derived from physical values by calculation alone, without any figure of a study.

use super::endurance;
use cardiograph_report::units;
use cardiograph_sim_card::{BLOCK_BYTES, FlashProfile, Profile};

/// A derived quantity.
pub struct Derived {
    pub name: String,
    pub value: String,
    /// Formula in words.
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

/// Bytes per block, for calculations.
pub const BLOCK: f64 = BLOCK_BYTES as f64;

/// Bytes per page across all planes.
pub fn page_bytes(profile: &Profile) -> u64 {
    u64::from(profile.flash.page_bytes) * u64::from(profile.flash.planes)
}

/// Bytes per unit: a flash block across all planes, the granularity of the address mapping.
pub fn unit_bytes(profile: &Profile) -> u64 {
    page_bytes(profile) * u64::from(profile.flash.pages_per_block)
}

/// Mean program time per page: pages that share a cell alternate within a block, so their times average out.
pub fn mean_program_us(flash: &FlashProfile) -> f64 {
    let times = flash.program_us.iter().map(|&us| f64::from(us));
    times.sum::<f64>() / flash.program_us.len().max(1) as f64
}

/// Derives the timing figures of a card from its profile.
pub fn of_card(profile: &Profile) -> Vec<Derived> {
    let times = Times::of(profile);
    let mut theory = vec![Derived::new(
        "Small write without a stall",
        units::time(times.small_us),
        "command + commit + page read + log block program",
    )];
    theory.extend(stalls(profile, &times));
    theory.extend(log(profile));
    theory.extend(rates(profile, &times));
    theory.extend(endurance::endurance(profile));
    theory.extend(endurance::energies(profile, &times));
    theory
}

/// Times in us that several quantities depend on.
pub struct Times {
    pub small_us: f64,
    pub copy_us: f64,
    pub erase_us: f64,
    pub stall_us: f64,
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
            small_us: f64::from(controller.command_us)
                + f64::from(profile.ftl().commit_us)
                + read_us
                + f64::from(flash.log_program_us),
            copy_us,
            erase_us,
            stall_us: copy_us + (1.0 + f64::from(controller.gc_log_blocks)) * erase_us,
        }
    }
}

fn stalls(profile: &Profile, times: &Times) -> Vec<Derived> {
    let controller = profile.controller;
    let erases = units::count(u64::from(controller.gc_log_blocks) + 1);
    let limit_us = f64::from(profile.longest_collection_us());
    let mut stalls = vec![Derived::new(
        "Stall: merge of one unit",
        units::time(times.stall_us),
        format!(
            "pages × (read + mean program) + {erases} erases: its old block and the freed log \
             blocks"
        ),
    )];
    if times.stall_us > limit_us {
        stalls.push(Derived::new(
            "  portion seen by the first write",
            units::time(limit_us),
            "the stall limit of one write; the next writes wait for the rest",
        ));
    }
    stalls.push(worst_case(profile, times));
    stalls
}

/// Worst case of a garbage collection: every freed page belongs to a different unit.
fn worst_case(profile: &Profile, times: &Times) -> Derived {
    let controller = profile.controller;
    let freed = f64::from(controller.gc_log_blocks);
    let units = (profile.capacity_bytes / unit_bytes(profile)) as f64;
    let merges = (freed * f64::from(profile.log_pages_per_block())).min(units);
    let all_us = merges * (times.copy_us + times.erase_us) + freed * times.erase_us;
    let limit_us = f64::from(profile.longest_collection_us());
    let portions = match all_us > limit_us {
        true => format!(
            "; spread over writes that wait at most {} each",
            units::time(limit_us)
        ),
        false => String::new(),
    };
    Derived::new(
        "Garbage collection, worst case",
        units::time(all_us),
        format!(
            "if every freed page belongs to a different unit: pages of freed blocks × (copy of a unit \
             + erase) + erases of these blocks{portions}"
        ),
    )
}

/// Number of log pages between two merges of a unit: the first merge removes all pages of the unit from the
/// log blocks, so garbage collection finds another page of the unit only after all log blocks have been
/// reused.
fn cycle_pages(profile: &Profile) -> u64 {
    let controller = profile.controller;
    let freed = controller.gc_log_blocks.max(1);
    let blocks = profile.log_blocks() / freed * freed;
    u64::from(blocks) * u64::from(profile.log_pages_per_block())
}

fn log(profile: &Profile) -> Vec<Derived> {
    let controller = profile.controller;
    let pages = u64::from(profile.log_pages_per_block());
    let cycle = cycle_pages(profile);
    let is_whole = profile
        .log_blocks()
        .is_multiple_of(controller.gc_log_blocks.max(1));
    let blocks = match is_whole {
        true => "log blocks",
        false => "log blocks, rounded down to whole garbage collections,",
    };
    let log_pages = u64::from(profile.log_blocks()) * pages;
    vec![
        Derived::new(
            "Stall spacing within a file",
            format!("{} log pages", units::count(cycle)),
            format!(
                "{blocks} × pages per block: one round through all log blocks, as for a file that grows \
                 within a unit"
            ),
        ),
        Derived::new(
            "  with writes of 512 B, one per page",
            units::bytes(cycle as f64 * BLOCK),
            "log pages × 512 B",
        ),
        Derived::new(
            "Stall spacing, worst case",
            format!(
                "{} log pages",
                units::count(u64::from(controller.gc_log_blocks) * pages)
            ),
            "freed blocks × pages per block: each page belongs to a unit not merged before",
        ),
        Derived::new(
            "Total size of log blocks",
            units::binary_bytes(log_pages * page_bytes(profile)),
            "log blocks × pages per block × page bytes × planes",
        ),
    ]
}

/// Formats bytes per duration in us as a rate.
fn rate(bytes: f64, us: f64) -> String {
    units::rate(bytes / us * 1e6)
}

fn sequential(profile: &Profile, times: &Times) -> Vec<Derived> {
    let (flash, page) = (&profile.flash, page_bytes(profile) as f64);
    if profile.controller.open_units > 0 {
        return vec![Derived::new(
            "Sequential whole pages",
            rate(page, mean_program_us(flash)),
            "page bytes × planes / mean program",
        )];
    }
    let log_us = f64::from(flash.log_program_us);
    let unit_us = f64::from(flash.pages_per_block) * log_us + times.copy_us + 2.0 * times.erase_us;
    vec![
        Derived::new(
            "Whole pages, until log blocks are full",
            rate(page, log_us),
            "page bytes × planes / log program",
        ),
        Derived::new(
            "  long-term",
            rate(unit_bytes(profile) as f64, unit_us),
            "bytes of a unit / (pages × log program + copy of a unit + 2 erases)",
        ),
    ]
}

fn rates(profile: &Profile, times: &Times) -> Vec<Derived> {
    let (flash, page) = (&profile.flash, page_bytes(profile) as f64);
    let pages = f64::from(profile.log_pages_per_block());
    let cycle = cycle_pages(profile) as f64;
    // Log blocks freed between two merges contain no valid data and cost one erase each.
    let erases_us = (cycle / pages + 1.0) * times.erase_us;
    let cycle_us = cycle * times.small_us + times.copy_us + erases_us;
    let mut rates = sequential(profile, times);
    rates.extend([
        Derived::new(
            "Blocks of 512 B in a file, with stalls",
            rate(cycle * BLOCK, cycle_us),
            "payload between stalls / (its small writes + copy of a unit + an erase for it and for \
             each log block)",
        ),
        Derived::new(
            "Reads of whole pages",
            rate(page, f64::from(flash.read_us)),
            "page bytes × planes / read",
        ),
    ]);
    rates
}

#[cfg(test)]
mod tests;
