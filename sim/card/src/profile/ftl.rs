//! Values of a card's flash translation layer.

use super::{Profile, Values};
use crate::flash::reserved_blocks;
use crate::toml_file::{self, Range, TomlError};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The flash model of test fixtures, which keeps their results unchanged.
pub(crate) const MODEL_OF_FIXTURES: u32 = 1;
/// The present flash model.
pub(super) const MODEL: u32 = 2;

/// The flash translation layer; profiles with `model = 1` have none of these values.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Ftl {
    /// Kind of mapping.
    pub mapping: Mapping,
    /// Choice of the next block to collect; with hybrid mapping the oldest log block, `fifo`.
    pub victim: Victim,
    /// Time that each write command, or each part of an incomplete page, takes for the card's own metadata, in us.
    pub commit_us: u32,
    /// Largest number of pages that garbage collection copies for one write, as real-time translation layers do (Choudhuri
    /// and Givargis, "Deterministic Service Guarantees for NAND Flash using Partial Block Cleaning", 2008); 0 for as many
    /// as the stall limit allows.
    pub step_pages: u32,
    /// Largest number of blocks of an incomplete page that the card programs and commits at once, as a card that keeps track of
    /// parts of pages does; 0 for all blocks of a command. Complete pages are always programmed at once.
    pub part_blocks: u32,
    /// Number of pages that the card receives while it programs earlier ones; with 0, it is busy until each page is in flash.
    pub receive_pages: u32,
    /// Changes of the mapping that the card records in a journal before it writes its tables back.
    pub map_journal_entries: u32,
    /// Reads of a block after which its data are moved, because reads disturb the cells.
    pub refresh_reads: u32,
    /// Chance that a page has to be read again at the end of its block's life, in percent; proportional to wear.
    pub read_retry_percent: u32,
    /// Least and largest share of the card that holds data at the start, in percent.
    #[serde(deserialize_with = "pair")]
    pub fill_percent: [u32; 2],
    /// Least and largest share of the log, or of the spare blocks, in use at the start, in percent.
    #[serde(deserialize_with = "pair")]
    pub log_percent: [u32; 2],
}

/// Reads two numbers; an array type ignores what follows them.
fn pair<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u32; 2], D::Error> {
    let list = Vec::<u32>::deserialize(deserializer)?;
    let length = list.len();
    list.try_into()
        .map_err(|_| D::Error::invalid_length(length, &"a list of 2 numbers"))
}

/// Kind of mapping.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Data blocks hold one unit each; pages out of order go to log blocks.
    Hybrid,
    /// Every page may be anywhere.
    Page,
}

/// Choice of the next block to collect.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The block with the fewest valid pages.
    Greedy,
    /// The block with the best ratio of age and gained space to copies.
    CostBenefit,
    /// The block that has been full for the longest time.
    Fifo,
}

impl Victim {
    /// Returns the name in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Victim::Greedy => "greedy",
            Victim::CostBenefit => "cost-benefit",
            Victim::Fifo => "fifo",
        }
    }
}

impl Default for Ftl {
    fn default() -> Ftl {
        Ftl {
            mapping: Mapping::Hybrid,
            victim: Victim::Fifo,
            commit_us: 0,
            step_pages: 0,
            part_blocks: 0,
            receive_pages: 0,
            map_journal_entries: 4096,
            refresh_reads: 100_000,
            read_retry_percent: 50,
            fill_percent: [50, 100],
            log_percent: [0, 100],
        }
    }
}

/// Maximum number of pages mapped one by one: each takes eight bytes of host memory.
const MAPPED_PAGES_MAX: u64 = 1 << 26;

/// Longest stalls that the SD specification allows (Physical Layer Simplified Specification 4.6.2.2): 250 ms for
/// a write, and 500 ms on SDXC in listed cases.
const STALL_LIMITS_US: [u32; 2] = [250_000, 500_000];

impl Profile {
    /// Returns the values of the flash translation layer; defaults where the profile gives none.
    pub fn ftl(&self) -> Ftl {
        self.ftl.unwrap_or_default()
    }

    /// Returns the number of pages of a log block, which holds one bit per cell. With `model = 1`, it has as many as
    /// a data block.
    pub fn log_pages_per_block(&self) -> u32 {
        let bits = match self.model {
            MODEL_OF_FIXTURES => 1,
            _ => self.flash.program_us.len().max(1) as u32,
        };
        self.flash.pages_per_block / bits
    }

    /// Returns the longest garbage collection that one write waits for, in us: the stall limit, or a step.
    pub fn longest_collection_us(&self) -> u32 {
        let (flash, limit_us) = (&self.flash, self.controller.stall_limit_us);
        let program_us: u32 = flash.program_us.iter().sum();
        let copy_us = flash.read_us + program_us / flash.program_us.len().max(1) as u32;
        match self.ftl().step_pages {
            0 => limit_us,
            pages => limit_us.min(pages.saturating_mul(copy_us)),
        }
    }

    /// Returns the number of log blocks that a card without worn-out blocks uses: those that its controller keeps track
    /// of, or that its spare blocks allow.
    pub fn log_blocks(&self) -> u32 {
        let tracked = self.controller.log_blocks;
        match self.model {
            MODEL_OF_FIXTURES => tracked,
            _ => {
                let spare = self.flash.spare_blocks;
                tracked.min(spare.saturating_sub(reserved_blocks(self)))
            }
        }
    }

    /// Returns the number of spare blocks that cannot serve as log blocks: those of the fast zone, of open units and of merges.
    pub fn reserved_blocks(&self) -> u32 {
        reserved_blocks(self)
    }

    /// Checks the values that the present flash model requires of a chip and a controller.
    pub(super) fn check_model(&self, name: &str) -> Result<(), TomlError> {
        let values = Values(name);
        match self.model {
            MODEL_OF_FIXTURES => {
                return values.must(
                    self.ftl.is_none(),
                    "ftl",
                    &"present",
                    "absent with model = 1, which is the flash model before these values",
                );
            }
            MODEL => (),
            other => return values.must(false, "model", &other, "1 or 2"),
        }
        toml_file::check_ranges(name, &self.ftl().ranges())?;
        let checked = self
            .check_chip(&values)
            .and_then(|()| self.check_start(&values))
            .and_then(|()| match self.ftl().mapping {
                Mapping::Hybrid => self.check_hybrid(&values),
                Mapping::Page => self.check_paged(&values),
            });
        // A profile of version 0.1 has no values of the translation layer.
        let hint = "; or add `model = 1` for the flash model of version 0.1";
        checked.map_err(|error| match self.ftl {
            Some(_) => error,
            None => error.with(hint),
        })
    }

    fn check_chip(&self, values: &Values) -> Result<(), TomlError> {
        let (flash, controller) = (&self.flash, self.controller);
        values.must(
            flash.program_us.is_sorted(),
            "flash.program_us",
            &format_args!("{:?}", flash.program_us),
            "in ascending order: of the pages that share cells, the first is programmed fastest",
        )?;
        let mean_us = flash.program_us.iter().sum::<u32>() / flash.program_us.len() as u32;
        values.must(
            flash.log_program_us <= mean_us,
            "flash.log_program_us",
            &flash.log_program_us,
            &format!(
                "at most {mean_us}, the mean of flash.program_us: one bit per cell is never programmed \
                 more slowly than several"
            ),
        )?;
        values.must(
            flash.read_us <= flash.log_program_us,
            "flash.read_us",
            &flash.read_us,
            &format!(
                "at most {}, flash.log_program_us: no chip reads a page more slowly than it programs one",
                flash.log_program_us
            ),
        )?;
        values.must(
            STALL_LIMITS_US.contains(&controller.stall_limit_us),
            "controller.stall_limit_us",
            &controller.stall_limit_us,
            "250000 or 500000, the limits of the SD specification",
        )?;
        values.must(
            controller.log_used_pages == 0,
            "controller.log_used_pages",
            &controller.log_used_pages,
            "0: the seed draws how full the log is, between the two values of ftl.log_percent",
        )
    }

    fn check_start(&self, values: &Values) -> Result<(), TomlError> {
        let ftl = self.ftl();
        let shares = [
            ("ftl.fill_percent", ftl.fill_percent),
            ("ftl.log_percent", ftl.log_percent),
        ];
        shares.into_iter().try_for_each(|(key, [least, most])| {
            values.must(
                least <= most && most <= 100,
                key,
                &format_args!("[{least}, {most}]"),
                "a range within 0 to 100, the lower value first",
            )
        })
    }

    fn check_hybrid(&self, values: &Values) -> Result<(), TomlError> {
        let (flash, controller) = (&self.flash, self.controller);
        values.must(
            self.ftl().victim == Victim::Fifo,
            "ftl.victim",
            &format_args!("\"{}\"", self.ftl().victim.name()),
            "\"fifo\" with hybrid mapping, whose log frees its oldest block",
        )?;
        let units = self.units();
        values.must(
            self.log_blocks() < units,
            "controller.log_blocks",
            &controller.log_blocks,
            &format!("less than {units}, the blocks of the card"),
        )?;
        values.must(
            controller.fast_zone_units <= units / 2,
            "controller.fast_zone_units",
            &controller.fast_zone_units,
            &format!("at most {}, half of the card", units / 2),
        )?;
        let least = reserved_blocks(self) + 1;
        values.must(
            flash.spare_blocks >= least,
            "flash.spare_blocks",
            &flash.spare_blocks,
            &format!(
                "at least {least}, so that one is left for the log beside open units, fast zone and merges"
            ),
        )
    }

    fn check_paged(&self, values: &Values) -> Result<(), TomlError> {
        let (flash, controller) = (&self.flash, self.controller);
        values.must(
            controller.open_units == 0,
            "controller.open_units",
            &controller.open_units,
            "0 with page mapping, which has no units",
        )?;
        values.must(
            controller.fast_zone_units == 0,
            "controller.fast_zone_units",
            &controller.fast_zone_units,
            "0 with page mapping, which maps the whole card page by page",
        )?;
        values.must(
            flash.spare_blocks >= 3,
            "flash.spare_blocks",
            &flash.spare_blocks,
            "at least 3: one being written, one to copy to, and one for garbage",
        )?;
        let pages = self.blocks() * u64::from(flash.pages_per_block);
        values.must(
            pages <= MAPPED_PAGES_MAX,
            "ftl.mapping",
            &"\"page\"",
            &format!("\"hybrid\" for a card of {pages} pages; at most {MAPPED_PAGES_MAX} can be mapped one by one"),
        )
    }
}

impl Ftl {
    fn ranges(&self) -> [Range; 7] {
        [
            Range::new("ftl.commit_us", self.commit_us, 0..=100_000),
            Range::new("ftl.step_pages", self.step_pages, 0..=65_536),
            Range::new("ftl.part_blocks", self.part_blocks, 0..=64),
            Range::new("ftl.receive_pages", self.receive_pages, 0..=8),
            Range::new(
                "ftl.map_journal_entries",
                self.map_journal_entries,
                2..=16_777_216,
            ),
            Range::new("ftl.refresh_reads", self.refresh_reads, 1_000..=u32::MAX),
            Range::new("ftl.read_retry_percent", self.read_retry_percent, 0..=100),
        ]
    }
}
