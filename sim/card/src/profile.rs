//! Profiles: the physical properties of a card.

mod ftl;
mod member;

pub(crate) use ftl::MODEL_OF_FIXTURES;
pub use ftl::{Ftl, Mapping, Victim};
pub use member::{Member, MemberValue};

use crate::toml_file::{self, Range, TomlError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// A card, described by physical quantities only.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the flash model: 2, or 1 for test fixtures, whose results must not change.
    #[serde(default = "present_model")]
    pub model: u32,
    /// Short description of the card.
    pub about: String,
    /// Capacity in bytes; a multiple of a flash block across all planes.
    pub capacity_bytes: u64,
    /// The flash chip.
    pub flash: Flash,
    /// The controller.
    pub controller: Controller,
    /// Power consumption.
    pub power: Power,
    /// The flash translation layer, from model 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ftl: Option<Ftl>,
    /// Values in which the other members of an ensemble differ from this profile, the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub member: Vec<Member>,
}

fn present_model() -> u32 {
    ftl::MODEL
}

/// A NAND flash chip.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Bytes in a page of one plane, the unit of programming.
    pub page_bytes: u32,
    /// Pages in a block, the unit of erasing.
    pub pages_per_block: u32,
    /// Planes that read, program and erase in parallel.
    pub planes: u32,
    /// Time to read a page, in us.
    pub read_us: u32,
    /// Time to program a page of a data block, in us: one entry per bit of a cell, lower page first. One
    /// entry is SLC, two are MLC, three are TLC.
    pub program_us: Vec<u32>,
    /// Time to program a page of a log block, one bit per cell, in us.
    pub log_program_us: u32,
    /// Time to erase a new block, in us.
    pub erase_us: u32,
    /// Maximum deviation of read, program and erase times to either side, in percent.
    pub spread_percent: u32,
    /// Mean number of erases that a block endures.
    pub endurance_cycles: u32,
    /// Maximum deviation of a block's endurance from the mean to either side, in percent.
    pub endurance_spread_percent: u32,
    /// Increase of the erase time by the end of a block's life, in percent.
    pub erase_wear_percent: u32,
    /// Number of times that every block was erased before the simulation.
    pub cycles_used: u32,
    /// Number of spare blocks that replace worn-out blocks.
    pub spare_blocks: u32,
}

/// The controller and its flash translation layer.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time that the controller's firmware takes per command, in us.
    pub command_us: u32,
    /// Number of units that can be open for writing in order at the same time; with 0, all pages go to the
    /// log first.
    pub open_units: u32,
    /// Number of pages buffered in the controller's RAM.
    pub ram_pages: u32,
    /// Number of shared log blocks.
    pub log_blocks: u32,
    /// Log pages in use at the start of the simulation: the more, the earlier the first stall.
    pub log_used_pages: u32,
    /// Log blocks freed together by garbage collection when the log is full.
    pub gc_log_blocks: u32,
    /// Units at the start of the card, where the FAT is, that are mapped page by page.
    pub fast_zone_units: u32,
    /// Longest garbage collection that one write waits for, in us; if more is pending, later writes wait for
    /// it, as long as a log block is free.
    pub stall_limit_us: u32,
    /// Idle time after which the controller collects garbage, in us.
    pub idle_after_us: u32,
    /// Log blocks freed by garbage collection while idle; 0 for none.
    pub idle_free_blocks: u32,
    /// Number of erases between two wear-levelling moves of a rarely written block.
    pub wear_levelling_erases: u32,
}

/// Power consumption of a card.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Supply voltage, in mV.
    pub supply_mv: u32,
    /// Current while the controller is asleep, in uA.
    pub asleep_ua: u32,
    /// Current while the controller is idle, in uA.
    pub idle_ua: u32,
    /// Current while the controller works, excluding flash operations, in uA.
    pub working_ua: u32,
    /// Idle time after which the controller falls asleep, in us.
    pub sleep_after_us: u32,
    /// Wake-up time, in us.
    pub wake_us: u32,
    /// Additional energy of flash operations.
    pub flash: FlashEnergy,
}

/// Energy of flash operations per plane, in nJ.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct FlashEnergy {
    /// Energy for reading a page.
    pub read_nj: u32,
    /// Energy for programming a page of a data block.
    pub program_nj: u32,
    /// Energy for programming a page of a log block.
    pub log_program_nj: u32,
    /// Energy for erasing a block.
    pub erase_nj: u32,
}

/// Maximum number of flash blocks: some tables in host memory take four bytes per block.
const BLOCKS_MAX: u64 = 1 << 21;
/// Maximum number of log pages: each takes about thirty bytes of host memory.
const LOG_PAGES_MAX: u64 = 1 << 20;
/// Maximum size of a page across all planes, in bytes: a 64-bit word has one bit for each 512-byte block.
const PAGE_BYTES_MAX: u64 = 32 << 10;

impl Profile {
    /// Returns the bundled profile of this name; see [`CARDS`](crate::CARDS) and [`FIXTURES`](crate::FIXTURES).
    ///
    /// # Errors
    /// If there is none; the message lists the bundled profiles.
    pub fn named(name: &str) -> Result<Profile, TomlError> {
        let text = match toml_file::card_text(name) {
            Some(text) => text,
            None => toml_file::find(name, crate::CARDS, "card", "profile")?,
        };
        Profile::from_toml(name, text)
    }

    /// Parses a profile; error messages start with `name`.
    ///
    /// # Errors
    /// If the text is not TOML, a key is unknown or missing, or a value is out of range.
    pub fn from_toml(name: &str, text: &str) -> Result<Profile, TomlError> {
        let profile: Profile = toml_file::parse(name, text)?;
        profile.check(name)?;
        profile.members(name)?;
        Ok(profile)
    }

    /// Returns the profile as TOML.
    ///
    /// # Errors
    /// If a number cannot be represented in TOML, which cannot happen for a profile that passes
    /// [`check`](Profile::check).
    pub fn to_toml(&self) -> Result<String, TomlError> {
        toml_file::write(self)
    }

    /// Returns the size of a page across all planes, in bytes.
    pub(crate) fn page_bytes(&self) -> u64 {
        u64::from(self.flash.page_bytes) * u64::from(self.flash.planes)
    }

    /// Returns the number of 512-byte blocks per page across all planes.
    pub fn page_blocks(&self) -> u64 {
        self.page_bytes() / crate::BLOCK_BYTES as u64
    }

    /// Returns the number of units: blocks across all planes into which addresses are divided.
    pub(crate) fn units(&self) -> u32 {
        (self.capacity_bytes / self.unit_bytes()) as u32
    }

    /// Returns the number of flash blocks across all planes, including spares.
    pub fn blocks(&self) -> u64 {
        u64::from(self.units()) + u64::from(self.flash.spare_blocks)
    }

    fn unit_bytes(&self) -> u64 {
        self.page_bytes() * u64::from(self.flash.pages_per_block)
    }

    /// Checks all values; error messages start with `name`.
    ///
    /// # Errors
    /// The first value out of range, with the allowed range.
    pub fn check(&self, name: &str) -> Result<(), TomlError> {
        toml_file::check_ranges(name, &self.flash.ranges())?;
        toml_file::check_ranges(name, &self.controller.ranges())?;
        toml_file::check_ranges(name, &self.power.ranges())?;
        let values = Values(name);
        let flash = &self.flash;
        values.must(
            flash.page_bytes.is_power_of_two(),
            "flash.page_bytes",
            &flash.page_bytes,
            "a power of two",
        )?;
        let planes_max = PAGE_BYTES_MAX / u64::from(flash.page_bytes);
        values.must(
            flash.planes.is_power_of_two() && u64::from(flash.planes) <= planes_max,
            "flash.planes",
            &flash.planes,
            &format!("1, 2, 4 or 8, and at most {planes_max}, which is {PAGE_BYTES_MAX} / flash.page_bytes"),
        )?;
        let bits = flash.program_us.len();
        let are_possible = flash.program_us.iter().all(|us| PROGRAM_US.contains(us));
        values.must(
            (1..=3).contains(&bits) && are_possible,
            "flash.program_us",
            &format_args!("{:?}", flash.program_us),
            "a list of one (SLC), two (MLC) or three (TLC) times, each 10 to 100000",
        )?;
        self.check_sizes(&values)?;
        self.check_model(name)?;
        let power = self.power;
        values.must(
            (power.asleep_ua..=power.working_ua).contains(&power.idle_ua),
            "power.idle_ua",
            &power.idle_ua,
            &format!(
                "{} to {}, power.asleep_ua to power.working_ua",
                power.asleep_ua, power.working_ua
            ),
        )
    }

    /// Checks the values that depend on the size of a flash block.
    fn check_sizes(&self, values: &Values) -> Result<(), TomlError> {
        let (unit_bytes, controller) = (self.unit_bytes(), self.controller);
        values.must(
            (64 << 20..=1u64 << 40).contains(&self.capacity_bytes)
                && self.capacity_bytes.is_multiple_of(unit_bytes),
            "capacity_bytes",
            &self.capacity_bytes,
            &format!("a multiple of the flash block ({unit_bytes} bytes), from 64 MiB to 1 TiB"),
        )?;
        let pages_per_block = self.flash.pages_per_block;
        let pages = self.capacity_bytes / self.page_bytes();
        values.must(
            self.capacity_bytes / unit_bytes <= BLOCKS_MAX,
            "flash.pages_per_block",
            &pages_per_block,
            &format!(
                "at least {}, so that the card has at most {BLOCKS_MAX} flash blocks",
                pages.div_ceil(BLOCKS_MAX)
            ),
        )?;
        let zone_blocks = 2 * u64::from(controller.fast_zone_units);
        let blocks_max = LOG_PAGES_MAX / u64::from(pages_per_block);
        values.must(
            zone_blocks < blocks_max,
            "controller.fast_zone_units",
            &controller.fast_zone_units,
            &format!(
                "at most {}, so that the log and twice the fast zone have at most {LOG_PAGES_MAX} pages",
                (blocks_max - 1) / 2
            ),
        )?;
        values.must(
            u64::from(controller.log_blocks) + zone_blocks <= blocks_max,
            "controller.log_blocks",
            &controller.log_blocks,
            &format!(
                "at most {}, so that the log and twice the fast zone have at most {LOG_PAGES_MAX} pages",
                blocks_max - zone_blocks
            ),
        )?;
        let units = self.units();
        values.must(
            controller.fast_zone_units < units,
            "controller.fast_zone_units",
            &controller.fast_zone_units,
            &format!("less than {units}, the units of the card"),
        )?;
        let log_blocks = controller.log_blocks;
        values.must(
            controller.idle_free_blocks <= log_blocks,
            "controller.idle_free_blocks",
            &controller.idle_free_blocks,
            &format!("at most {log_blocks}, controller.log_blocks"),
        )?;
        let log_pages = u64::from(log_blocks) * u64::from(pages_per_block);
        values.must(
            u64::from(controller.log_used_pages) <= log_pages,
            "controller.log_used_pages",
            &controller.log_used_pages,
            &format!("at most {log_pages}, the pages of all log blocks"),
        )?;
        values.must(
            (1..=log_blocks).contains(&controller.gc_log_blocks),
            "controller.gc_log_blocks",
            &controller.gc_log_blocks,
            &format!("1 to {log_blocks}, controller.log_blocks"),
        )
    }
}

/// Checks of values in the profile of this name.
struct Values<'a>(&'a str);

impl Values<'_> {
    /// Returns an error with key, value and bound if a condition does not hold.
    fn must(
        &self,
        holds: bool,
        field: &str,
        value: &dyn fmt::Display,
        allowed: &str,
    ) -> Result<(), TomlError> {
        match holds {
            true => Ok(()),
            false => Err(TomlError::of_value(self.0, field, value, allowed)),
        }
    }
}

/// Range of program times. The transfer to the chip and the physics of programming limit them: no chip
/// programs faster.
const PROGRAM_US: RangeInclusive<u32> = 10..=100_000;

impl Flash {
    fn ranges(&self) -> [Range; 12] {
        [
            Range::new("flash.page_bytes", self.page_bytes, 512..=32_768),
            Range::new("flash.pages_per_block", self.pages_per_block, 4..=4096),
            Range::new("flash.planes", self.planes, 1..=8),
            Range::new("flash.read_us", self.read_us, 1..=10_000),
            Range::new("flash.log_program_us", self.log_program_us, PROGRAM_US),
            Range::new("flash.erase_us", self.erase_us, 100..=1_000_000),
            Range::new("flash.spread_percent", self.spread_percent, 0..=50),
            Range::new(
                "flash.endurance_cycles",
                self.endurance_cycles,
                1..=10_000_000,
            ),
            Range::new(
                "flash.endurance_spread_percent",
                self.endurance_spread_percent,
                0..=50,
            ),
            Range::new(
                "flash.erase_wear_percent",
                self.erase_wear_percent,
                0..=1000,
            ),
            Range::new("flash.cycles_used", self.cycles_used, 0..=10_000_000),
            Range::new("flash.spare_blocks", self.spare_blocks, 0..=1_000_000),
        ]
    }
}

impl Controller {
    fn ranges(&self) -> [Range; 8] {
        let most = 1..=u32::MAX;
        [
            Range::new("controller.command_us", self.command_us, 0..=100_000),
            Range::new("controller.open_units", self.open_units, 0..=64),
            Range::new("controller.ram_pages", self.ram_pages, 1..=256),
            Range::new("controller.log_blocks", self.log_blocks, 1..=65_536),
            Range::new(
                "controller.fast_zone_units",
                self.fast_zone_units,
                0..=65_536,
            ),
            Range::new(
                "controller.stall_limit_us",
                self.stall_limit_us,
                most.clone(),
            ),
            Range::new("controller.idle_after_us", self.idle_after_us, most.clone()),
            Range::new(
                "controller.wear_levelling_erases",
                self.wear_levelling_erases,
                most,
            ),
        ]
    }
}

impl Power {
    fn ranges(&self) -> [Range; 10] {
        let energy_nj = 0..=100_000_000;
        let flash = self.flash;
        [
            Range::new("power.supply_mv", self.supply_mv, 1_000..=5_000),
            Range::new("power.asleep_ua", self.asleep_ua, 0..=1_000_000),
            Range::new("power.idle_ua", self.idle_ua, 0..=1_000_000),
            Range::new("power.working_ua", self.working_ua, 0..=1_000_000),
            Range::new("power.sleep_after_us", self.sleep_after_us, 0..=u32::MAX),
            Range::new("power.wake_us", self.wake_us, 0..=1_000_000),
            Range::new("power.flash.read_nj", flash.read_nj, energy_nj.clone()),
            Range::new(
                "power.flash.program_nj",
                flash.program_nj,
                energy_nj.clone(),
            ),
            Range::new(
                "power.flash.log_program_nj",
                flash.log_program_nj,
                energy_nj.clone(),
            ),
            Range::new("power.flash.erase_nj", flash.erase_nj, energy_nj),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(from: &str, to: &str) -> String {
        let text = crate::FIXTURES[0].1;
        assert!(text.contains(from));
        match Profile::from_toml("my.toml", &text.replace(from, to)) {
            Ok(_) => String::from("accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_bundled_card_is_valid() {
        for (name, _) in crate::CARDS.iter().chain(crate::FIXTURES) {
            Profile::named(name).unwrap();
        }
    }

    #[test]
    fn values_out_of_range_are_rejected_with_name_and_range() {
        assert_eq!(
            changed("pages_per_block = 64", "pages_per_block = 0"),
            "my.toml: `flash.pages_per_block` is 0; it must be 4 to 4096"
        );
        assert_eq!(
            changed("page_bytes = 4096", "page_bytes = 5000"),
            "my.toml: `flash.page_bytes` is 5000; it must be a power of two"
        );
        assert!(
            changed("16_013_852_672", "16_000_000_000").contains(
                "`capacity_bytes` is 16000000000; it must be a multiple of the flash block"
            )
        );
    }

    #[test]
    fn sizes_that_do_not_fit_together_are_rejected() {
        for (from, to, part) in [
            (
                "planes = 1",
                "planes = 16",
                "`flash.planes` is 16; it must be 1 to 8",
            ),
            (
                "planes = 1",
                "planes = 3",
                "`flash.planes` is 3; it must be 1, 2, 4 or 8, and at most 8,",
            ),
            (
                "pages_per_block = 64",
                "pages_per_block = 1000",
                "multiple of the flash block",
            ),
            (
                "program_us = [400, 1000]",
                "program_us = []",
                "`flash.program_us` is []; it must be a list of one (SLC)",
            ),
            (
                "program_us = [400, 1000]",
                "program_us = [400, 9]",
                "each 10 to 100000",
            ),
            ("pages_per_block = 64", "pages_per_block = 4", "accepted"),
            (
                "log_blocks = 40",
                "log_blocks = 20000",
                "`controller.log_blocks` is 20000; it must be at most 16384, so that the log and twice",
            ),
            (
                "fast_zone_units = 0",
                "fast_zone_units = 62000",
                "`controller.fast_zone_units` is 62000; it must be at most 8191",
            ),
            (
                "idle_free_blocks = 0",
                "idle_free_blocks = 41",
                "`controller.idle_free_blocks` is 41; it must be at most 40",
            ),
            (
                "log_used_pages = 0",
                "log_used_pages = 2561",
                "`controller.log_used_pages` is 2561; it must be at most 2560",
            ),
            (
                "idle_ua = 1000",
                "idle_ua = 900_000",
                "`power.idle_ua` is 900000; it must be 150 to 15000",
            ),
            (
                "endurance_cycles = 3000",
                "endurance_cycles = 0",
                "`flash.endurance_cycles` is 0; it must be 1 to 10000000",
            ),
        ] {
            let message = changed(from, to);
            assert!(message.contains(part), "{from} -> {to}: {message}");
        }
    }

    #[test]
    fn the_present_model_refuses_what_no_chip_or_controller_could_be() {
        let present =
            crate::FIXTURES[0].1.replacen("model = 1\n", "", 1) + "\n[ftl]\nmapping = \"hybrid\"\n";
        let message = |from: &str, to: &str| {
            assert!(present.contains(from), "{from}");
            match Profile::from_toml("my.toml", &present.replacen(from, to, 1)) {
                Ok(profile) => format!("accepted as model {}", profile.model),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(message("pages", "pages"), "accepted as model 2");
        for (from, to, part) in [
            (
                "log_program_us = 500",
                "log_program_us = 701",
                "`flash.log_program_us` is 701; it must be at most 700, the mean of flash.program_us",
            ),
            (
                "[400, 1000]",
                "[1000, 400]",
                "`flash.program_us` is [1000, 400]; it must be in ascending order",
            ),
            (
                "read_us = 50",
                "read_us = 501",
                "`flash.read_us` is 501; it must be at most 500",
            ),
            (
                "stall_limit_us = 250_000",
                "stall_limit_us = 13_571",
                "`controller.stall_limit_us` is 13571; it must be 250000 or 500000",
            ),
            (
                "log_used_pages = 0",
                "log_used_pages = 9",
                "`controller.log_used_pages` is 9; it must be 0",
            ),
            (
                "capacity_bytes = 16_013_852_672",
                "capacity_bytes = 67_108_864",
                "accepted as model 2",
            ),
            (
                "log_blocks = 40",
                "log_blocks = 61_100",
                "`controller.log_blocks` is 61100; it must be at most 16384",
            ),
            (
                "spare_blocks = 1000",
                "spare_blocks = 4",
                "`flash.spare_blocks` is 4; it must be at least 5",
            ),
            (
                "\"hybrid\"",
                "\"page\"",
                "`controller.open_units` is 2; it must be 0 with page mapping",
            ),
            (
                "[ftl]",
                "[ftl]\nfill_percent = [50, 101]",
                "`ftl.fill_percent` is [50, 101]; it must be a range within 0 to 100",
            ),
            (
                "[ftl]",
                "[ftl]\nvictim = \"greedy\"",
                "`ftl.victim` is \"greedy\"; it must be \"fifo\" with hybrid mapping",
            ),
            (
                "[ftl]",
                "[ftl]\nmap_journal_entries = 0",
                "`ftl.map_journal_entries` is 0; it must be 2 to 16777216",
            ),
        ] {
            let message = message(from, to);
            assert!(message.contains(part), "{from} -> {to}: {message}");
        }
        let small = present
            .replacen("16_013_852_672", "67_108_864", 1)
            .replacen("log_blocks = 40", "log_blocks = 256", 1);
        let error = Profile::from_toml("my.toml", &small).unwrap_err();
        assert_eq!(
            error.to_string(),
            "my.toml: `controller.log_blocks` is 256; it must be less than 256, the blocks of the card"
        );
    }

    #[test]
    fn a_fixture_has_no_values_of_the_present_model_and_other_models_are_unknown() {
        assert!(changed("model = 1", "model = 3").contains("`model` is 3; it must be 1 or 2"));
        assert_eq!(changed("model = 1\n", ""), "accepted");
        let old = crate::FIXTURES[0].1.replacen("model = 1\n", "", 1);
        let slow = old.replacen("log_program_us = 500", "log_program_us = 800", 1);
        let error = Profile::from_toml("my.toml", &slow)
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("add `model = 1` for the flash model of version 0.1"),
            "{error}"
        );
        let both = crate::FIXTURES[0].1.to_string() + "\n[ftl]\ncommit_us = 1\n";
        let error = Profile::from_toml("my.toml", &both).unwrap_err();
        assert!(error.to_string().contains("`ftl` is present"), "{error}");
    }

    #[test]
    fn unknown_and_missing_keys_are_rejected_with_their_line() {
        let unknown = changed("erase_us = 3000", "erase_us = 3000\ncolour = 1");
        assert!(unknown.starts_with("my.toml, line "), "{unknown}");
        assert!(unknown.contains("unknown field `colour`"), "{unknown}");
        assert!(changed("erase_us = 3000", "").contains("missing field `erase_us`"));
        for (value, message) in [
            (
                "-2",
                ": invalid value: integer `-2`, expected a whole number from 0",
            ),
            (
                "2.5",
                ": invalid type: floating point `2.5`, expected a whole number from 0",
            ),
            (
                "\"2\"",
                ": invalid type: string \"2\", expected a whole number from 0",
            ),
            (
                "{}",
                ": invalid type: table, expected a whole number from 0",
            ),
        ] {
            let refused = changed("open_units = 2", &format!("open_units = {value}"));
            assert!(refused.starts_with("my.toml, line "), "{refused}");
            assert!(refused.ends_with(message), "{refused}");
        }
        let list = changed("program_us = [", "program_us = 5 # [");
        assert!(list.ends_with("expected a list"), "{list}");
    }

    #[test]
    fn an_unknown_card_name_lists_the_bundled_cards() {
        let error = Profile::named("class11").unwrap_err().to_string();
        assert!(
            error.contains("class11") && error.contains("generic-16g-class10"),
            "{error}"
        );
    }
}
