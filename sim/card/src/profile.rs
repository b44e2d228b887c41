//! What a card is made of.

use crate::toml_file::{self, Range, TomlError};
use serde::Deserialize;

/// A card: physical quantities only.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Which card it is, in a few words.
    pub about: String,
    /// Capacity in bytes; a multiple of a flash block.
    pub capacity_bytes: u64,
    /// The flash chip.
    pub flash: Flash,
    /// The controller in front of it.
    pub controller: Controller,
}

/// A NAND flash chip.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Bytes in a page, the unit of programming.
    pub page_bytes: u32,
    /// Pages in a block, the unit of erasing.
    pub pages_per_block: u32,
    /// Time to read a page, in us.
    pub read_us: u32,
    /// Time to program a page of a data block, in us.
    pub program_us: u32,
    /// Time to program a page of a log block, in us.
    pub log_program_us: u32,
    /// Time to erase a block, in us.
    pub erase_us: u32,
    /// How far each of these times varies to either side, in percent.
    pub spread_percent: u32,
}

/// The controller and its translation layer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time its firmware takes for a command, in us.
    pub command_us: u32,
    /// Units that can be written in order at the same time.
    pub open_units: u32,
    /// Pages it keeps in RAM.
    pub ram_pages: u32,
    /// Blocks of the shared log.
    pub log_blocks: u32,
    /// Erases from one move of a cold block to the next.
    pub wear_levelling_erases: u32,
}

/// Pages of the largest card.
const PAGES_MAX: u64 = 1 << 26;

impl Profile {
    /// The profile of this name among [`CARDS`](crate::CARDS).
    ///
    /// # Errors
    /// If there is none; the message lists those there are.
    pub fn named(name: &str) -> Result<Profile, TomlError> {
        let text = toml_file::find(name, crate::CARDS, "card", "profile")?;
        Profile::from_toml(name, text)
    }

    /// Reads a profile; `name` stands in messages.
    ///
    /// # Errors
    /// If it is not TOML, a key is unknown or missing, or a value is impossible.
    pub fn from_toml(name: &str, text: &str) -> Result<Profile, TomlError> {
        let profile: Profile = toml_file::parse(name, text)?;
        profile.check(name)?;
        Ok(profile)
    }

    fn check(&self, name: &str) -> Result<(), TomlError> {
        let Profile {
            flash, controller, ..
        } = self;
        let range = |field, value, least, most| Range {
            field,
            value,
            least,
            most,
        };
        toml_file::check_ranges(
            name,
            &[
                range("flash.page_bytes", flash.page_bytes, 512, 32_768),
                range("flash.pages_per_block", flash.pages_per_block, 4, 4096),
                // A page leaves the chip over a bus; no chip reads, programs or erases quicker.
                range("flash.read_us", flash.read_us, 1, 10_000),
                range("flash.program_us", flash.program_us, 10, 100_000),
                range("flash.log_program_us", flash.log_program_us, 10, 100_000),
                range("flash.erase_us", flash.erase_us, 100, 1_000_000),
                range("flash.spread_percent", flash.spread_percent, 0, 50),
                range("controller.command_us", controller.command_us, 0, 100_000),
                range("controller.open_units", controller.open_units, 1, 64),
                range("controller.ram_pages", controller.ram_pages, 1, 256),
                range("controller.log_blocks", controller.log_blocks, 1, 4096),
                range(
                    "controller.wear_levelling_erases",
                    controller.wear_levelling_erases,
                    1,
                    u32::MAX,
                ),
            ],
        )?;
        let block_bytes = u64::from(flash.page_bytes) * u64::from(flash.pages_per_block);
        if !flash.page_bytes.is_power_of_two() {
            return Err(TomlError::value(name, "flash.page_bytes", "a power of two"));
        }
        let allowed = 64 << 20..=1u64 << 40;
        if !allowed.contains(&self.capacity_bytes)
            || !self.capacity_bytes.is_multiple_of(block_bytes)
        {
            return Err(TomlError::value(
                name,
                "capacity_bytes",
                &format!(
                    "a multiple of the flash block ({block_bytes} bytes), from 64 MiB to 1 TiB"
                ),
            ));
        }
        // The map of the log takes four bytes of the computer's memory a page.
        if self.capacity_bytes / u64::from(flash.page_bytes) > PAGES_MAX {
            return Err(TomlError::value(
                name,
                "flash.page_bytes",
                "larger for this capacity: at most 67108864 pages in all",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(from: &str, to: &str) -> String {
        let text = crate::CARDS[0].1;
        assert!(text.contains(from));
        match Profile::from_toml("my.toml", &text.replace(from, to)) {
            Ok(_) => String::from("accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_card_that_comes_along_is_possible() {
        for (name, _) in crate::CARDS {
            Profile::named(name).unwrap();
        }
    }

    #[test]
    fn impossible_values_are_refused_by_name_and_range() {
        assert_eq!(
            changed("pages_per_block = 64", "pages_per_block = 0"),
            "my.toml: `flash.pages_per_block` is 0; it must be 4 to 4096"
        );
        assert_eq!(
            changed("page_bytes = 4096", "page_bytes = 5000"),
            "my.toml: `flash.page_bytes` must be a power of two"
        );
        assert!(
            changed("16_013_852_672", "16_000_000_000").contains("multiple of the flash block")
        );
    }

    #[test]
    fn unknown_and_missing_keys_are_refused_with_their_line() {
        let unknown = changed("erase_us = 3000", "erase_us = 3000\ncolour = 1");
        assert!(unknown.starts_with("my.toml, line "), "{unknown}");
        assert!(unknown.contains("unknown field `colour`"), "{unknown}");
        assert!(changed("erase_us = 3000", "").contains("missing field `erase_us`"));
        assert!(changed("open_units = 2", "open_units = -2").contains("my.toml, line "));
    }

    #[test]
    fn an_unknown_card_lists_those_there_are() {
        let error = Profile::named("class11").unwrap_err().to_string();
        assert!(
            error.contains("class11") && error.contains("class10-16g"),
            "{error}"
        );
    }
}
