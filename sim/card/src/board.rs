//! Boards: everything between the application and a card (bus, driver, file library and CPU), and the network
//! of the board.

use crate::toml_file::{self, Range, TomlError};
use cardiograph_sim_world::Link;
use serde::Deserialize;

/// A board, described by physical quantities and driver behaviour only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    /// Short description of the board.
    pub about: String,
    /// Bus between the host and the card.
    pub bus: Bus,
    /// The card driver.
    pub driver: Driver,
    /// The file library on top of the driver.
    pub library: Library,
    /// The network over which a server on the board is reached, if any.
    pub network: Option<Network>,
}

/// Bus that connects the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// SPI, by a hardware controller or bit-banged.
    Spi(Spi),
    /// The SD bus, by a host controller.
    Sd(Sd),
}

/// An SPI bus with a card on it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Spi {
    /// Clock frequency in Hz; a byte takes eight clocks.
    pub clock_hz: u32,
    /// Bytes clocked before the card responds to a command (NCR).
    pub ncr_bytes: u32,
    /// CPU time between two bytes sent, in ns.
    #[serde(default)]
    pub send_gap_ns: u32,
    /// CPU time between two bytes received, in ns.
    #[serde(default)]
    pub receive_gap_ns: u32,
}

/// An SD bus with a card on it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Sd {
    /// Clock in Hz; above 25 MHz the host switches the card to high speed.
    pub clock_hz: u32,
    /// Data lines: 1 or 4.
    pub width: u32,
    /// Clocks before the card responds to a command (NCR).
    pub ncr_clocks: u32,
}

/// The card driver.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// CPU time per command that transfers blocks, in us.
    pub command_us: u32,
    /// CPU time per block, in us.
    pub block_us: u32,
    /// True if the driver reads the card's status after each write (CMD13).
    pub checks_status: bool,
    /// Maximum number of blocks that the driver transfers with one command.
    pub burst_blocks: u32,
    /// Present if the card reader stops responding during long runs of writes.
    #[serde(default)]
    pub hang: Option<Hang>,
}

/// A card reader that stops responding when a run of writes to consecutive blocks becomes too long, until the host gives
/// up waiting and resets it. The command is then repeated, and begins a new run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    /// Longest run that works, in blocks.
    pub run_blocks_max: u32,
    /// Time after which the host resets the reader, in ms.
    pub timeout_ms: u32,
}

/// The file library.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryName {
    /// embedded-sdmmc, standing in for SD.h and SdFat: files are written to the card block by block.
    EmbeddedSdmmc,
    /// One sector buffer as in ChaN's FatFs: whole blocks of a call are written as one burst.
    Fatfs,
    /// A page cache as in Linux: written data stays in memory until it is synced.
    Linux,
}

/// The file library.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// Name of the library.
    pub name: LibraryName,
    /// Bytes that each open file buffers before blocks are written; 0 for none.
    pub file_buffer_bytes: u32,
    /// True if all files share one buffer: accessing another block then writes the buffered block back.
    pub shared_buffer: bool,
    /// True if embedded-sdmmc accesses the card as ChaN's FatFs does: sectors of FAT and directories pass through a window of
    /// one sector, which is written when another sector is needed, or at a sync.
    #[serde(default)]
    pub window: bool,
    /// Number of times that the library walks the path from the root to open a file.
    pub path_walks_per_open: u32,
    /// Cluster size of the card's file system, in bytes.
    pub cluster_bytes: u32,
    /// CPU time per call, in us.
    pub call_us: u32,
    /// CPU time per byte of payload written, in ns.
    pub byte_ns: u32,
    /// CPU time per byte of payload read, in ns.
    pub read_byte_ns: u32,
    /// Maximum number of bytes that a page cache holds back before it writes them out.
    pub dirty_bytes_max: Option<u32>,
}

/// The network of a board: its radio, and the TCP of its network stack.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Bandwidth in bytes per second.
    pub bytes_per_s: u32,
    /// Round-trip time, in us.
    pub round_trip_us: u32,
    /// Largest payload of a packet, in bytes.
    pub segment_bytes: u32,
    /// Send buffer of a connection, and its receive buffer, in bytes.
    pub buffer_bytes: u32,
}

/// Headers of IPv4 and TCP in a packet, without options.
const HEADER_BYTES: u32 = 40;

/// TOML representation of a board.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    about: String,
    spi: Option<Spi>,
    sd: Option<Sd>,
    driver: Driver,
    library: Library,
    network: Option<Network>,
}

impl Board {
    /// Returns the bundled board of this name; see [`BOARDS`](crate::BOARDS).
    ///
    /// # Errors
    /// If there is none; the message lists the bundled boards.
    pub fn named(name: &str) -> Result<Board, TomlError> {
        let text = toml_file::find(name, crate::BOARDS, "board", "description")?;
        Board::from_toml(name, text)
    }

    /// Parses a board; error messages start with `name`.
    ///
    /// # Errors
    /// If the text is not TOML, a key is unknown or missing, or a value is out of range.
    pub fn from_toml(name: &str, text: &str) -> Result<Board, TomlError> {
        let text: Text = toml_file::parse(name, text)?;
        let bus = match (text.spi, text.sd) {
            (Some(spi), None) => Bus::Spi(spi),
            (None, Some(sd)) => Bus::Sd(sd),
            _ => {
                return Err(TomlError::value(
                    name,
                    "[spi] or [sd]",
                    "present, and only one of the two",
                ));
            }
        };
        let board = Board {
            about: text.about,
            bus,
            driver: text.driver,
            library: text.library,
            network: text.network,
        };
        toml_file::check_ranges(name, &board.bus.ranges())?;
        toml_file::check_ranges(name, &board.driver.ranges())?;
        if let Some(hang) = &board.driver.hang {
            toml_file::check_ranges(name, &hang.ranges(board.driver.burst_blocks))?;
        }
        toml_file::check_ranges(name, &board.library.ranges())?;
        if let Some(network) = &board.network {
            toml_file::check_ranges(name, &network.ranges())?;
        }
        board.check(name)?;
        Ok(board)
    }

    /// Returns the CPU time of a library call that writes `payload_bytes`, in ns.
    pub fn write_call_ns(&self, payload_bytes: u64) -> u64 {
        self.call_ns() + u64::from(self.library.byte_ns) * payload_bytes
    }

    /// Returns the CPU time of a library call that reads `payload_bytes`, in ns.
    pub fn read_call_ns(&self, payload_bytes: u64) -> u64 {
        self.call_ns() + u64::from(self.library.read_byte_ns) * payload_bytes
    }

    /// Returns the CPU time of a library call without payload, in ns.
    pub fn call_ns(&self) -> u64 {
        u64::from(self.library.call_us) * 1000
    }

    /// Checks values that depend on each other.
    fn check(&self, name: &str) -> Result<(), TomlError> {
        let must = |holds: bool, field: &str, allowed: &str| match holds {
            true => Ok(()),
            false => Err(TomlError::value(name, field, allowed)),
        };
        let Board {
            bus,
            driver,
            library,
            ..
        } = self;
        match bus {
            Bus::Sd(sd) => must(matches!(sd.width, 1 | 4), "sd.width", "1 or 4")?,
            Bus::Spi(_) => must(
                driver.checks_status,
                "driver.checks_status",
                "true on SPI, where the driver always reads the status",
            )?,
        }
        let buffer_bytes = library.file_buffer_bytes;
        must(
            buffer_bytes == 0 || buffer_bytes.is_power_of_two() && buffer_bytes >= 512,
            "library.file_buffer_bytes",
            "0 or a power of two, 512 to 32768",
        )?;
        must(
            library.cluster_bytes.is_power_of_two(),
            "library.cluster_bytes",
            "a power of two",
        )?;
        must(
            !library.shared_buffer
                || library.name == LibraryName::EmbeddedSdmmc && buffer_bytes > 0,
            "library.shared_buffer",
            "false unless library.name is embedded-sdmmc and library.file_buffer_bytes is above 0",
        )?;
        must(
            !library.window
                || library.name == LibraryName::EmbeddedSdmmc
                    && buffer_bytes == 512
                    && !library.shared_buffer,
            "library.window",
            "false unless library.name is embedded-sdmmc, and each file has a buffer of its own, of 512 B",
        )?;
        let is_linux = library.name == LibraryName::Linux;
        must(
            !is_linux || buffer_bytes == 0,
            "library.file_buffer_bytes",
            "0 if library.name is linux, because its page cache buffers writes",
        )?;
        must(
            is_linux == library.dirty_bytes_max.is_some(),
            "library.dirty_bytes_max",
            "present if library.name is linux, and absent otherwise",
        )
    }
}

impl Bus {
    fn ranges(&self) -> Vec<Range> {
        let gap_ns = 0..=1_000_000;
        match self {
            Bus::Spi(spi) => vec![
                Range::new("spi.clock_hz", spi.clock_hz, 100_000..=50_000_000),
                Range::new("spi.ncr_bytes", spi.ncr_bytes, 0..=8),
                Range::new("spi.send_gap_ns", spi.send_gap_ns, gap_ns.clone()),
                Range::new("spi.receive_gap_ns", spi.receive_gap_ns, gap_ns),
            ],
            Bus::Sd(sd) => vec![
                Range::new("sd.clock_hz", sd.clock_hz, 400_000..=50_000_000),
                Range::new("sd.width", sd.width, 1..=4),
                Range::new("sd.ncr_clocks", sd.ncr_clocks, 2..=64),
            ],
        }
    }
}

impl Driver {
    fn ranges(&self) -> [Range; 3] {
        [
            Range::new("driver.command_us", self.command_us, 0..=100_000),
            Range::new("driver.block_us", self.block_us, 0..=100_000),
            Range::new("driver.burst_blocks", self.burst_blocks, 1..=65_535),
        ]
    }
}

impl Hang {
    fn ranges(&self, burst_blocks: u32) -> [Range; 2] {
        [
            Range::new(
                "driver.hang.run_blocks_max",
                self.run_blocks_max,
                burst_blocks..=1 << 31,
            ),
            Range::new("driver.hang.timeout_ms", self.timeout_ms, 1..=600_000),
        ]
    }
}

impl Library {
    fn ranges(&self) -> [Range; 7] {
        let byte_ns = 0..=1_000_000;
        let dirty_bytes = self.dirty_bytes_max.unwrap_or(DIRTY_BYTES_MIN);
        [
            Range::new(
                "library.file_buffer_bytes",
                self.file_buffer_bytes,
                0..=32_768,
            ),
            Range::new(
                "library.path_walks_per_open",
                self.path_walks_per_open,
                1..=8,
            ),
            Range::new("library.cluster_bytes", self.cluster_bytes, 512..=32_768),
            Range::new("library.call_us", self.call_us, 0..=100_000),
            Range::new("library.byte_ns", self.byte_ns, byte_ns.clone()),
            Range::new("library.read_byte_ns", self.read_byte_ns, byte_ns),
            Range::new(
                "library.dirty_bytes_max",
                dirty_bytes,
                DIRTY_BYTES_MIN..=DIRTY_BYTES_MAX,
            ),
        ]
    }
}

impl Network {
    /// Returns the link between the board and a client, without faults.
    pub fn link(&self) -> Link {
        Link {
            bandwidth_bps: 8 * u64::from(self.bytes_per_s),
            delay_ns: u64::from(self.round_trip_us) * 500,
            mtu_bytes: (self.segment_bytes + HEADER_BYTES) as usize,
            ..Link::default()
        }
    }

    fn ranges(&self) -> [Range; 4] {
        [
            Range::new(
                "network.bytes_per_s",
                self.bytes_per_s,
                1000..=1_000_000_000,
            ),
            Range::new("network.round_trip_us", self.round_trip_us, 0..=10_000_000),
            Range::new("network.segment_bytes", self.segment_bytes, 128..=8960),
            Range::new("network.buffer_bytes", self.buffer_bytes, 512..=16_777_216),
        ]
    }
}

/// Limits of `dirty_bytes_max`: less would write every page on its own, and more would fill host
/// memory.
const DIRTY_BYTES_MIN: u32 = 1 << 20;
const DIRTY_BYTES_MAX: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error for a board file in which a key has another value, or is missing.
    fn changed(board: &str, key: &str, value: &str) -> String {
        let (_, text) = crate::BOARDS
            .iter()
            .find(|(name, _)| *name == board)
            .unwrap();
        let (mut changed, mut found) = (String::new(), 0);
        for line in text.lines() {
            let is_key = line.split(" = ").next() == Some(key);
            found += usize::from(is_key);
            match (is_key, value) {
                (true, "") => {}
                (true, value) => changed += &format!("{key} = {value}\n"),
                (false, _) => changed += &format!("{line}\n"),
            }
        }
        assert_eq!(found, 1, "{board} must have exactly one {key}");
        message_for(&changed)
    }

    fn message_for(text: &str) -> String {
        match Board::from_toml("b.toml", text) {
            Ok(_) => String::from("accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_bundled_board_is_valid() {
        for (name, _) in crate::BOARDS {
            Board::named(name).unwrap();
        }
    }

    #[test]
    fn values_out_of_range_are_rejected_with_name_and_range() {
        for (board, key, value, part) in [
            (
                "esp32",
                "clock_hz",
                "1",
                "`spi.clock_hz` is 1; it must be 100000 to 50000000",
            ),
            ("esp32", "ncr_bytes", "9", "must be 0 to 8"),
            (
                "mega2560",
                "send_gap_ns",
                "1_000_001",
                "`spi.send_gap_ns` is 1000001; it must be 0 to 1000000",
            ),
            (
                "mega2560",
                "receive_gap_ns",
                "1_000_001",
                "`spi.receive_gap_ns`",
            ),
            (
                "lpc43xx",
                "clock_hz",
                "50_000_001",
                "`sd.clock_hz` is 50000001; it must be 400000 to 50000000",
            ),
            ("lpc43xx", "width", "8", "`sd.width` is 8"),
            ("lpc43xx", "width", "2", "`sd.width` must be 1 or 4"),
            (
                "lpc43xx",
                "ncr_clocks",
                "1",
                "`sd.ncr_clocks` is 1; it must be 2 to 64",
            ),
            ("lpc43xx", "command_us", "100_001", "`driver.command_us`"),
            ("lpc43xx", "block_us", "100_001", "`driver.block_us`"),
            (
                "lpc43xx",
                "burst_blocks",
                "0",
                "`driver.burst_blocks` is 0; it must be 1 to 65535",
            ),
            (
                "esp32",
                "checks_status",
                "false",
                "`driver.checks_status` must be true on SPI",
            ),
            (
                "esp32",
                "file_buffer_bytes",
                "65536",
                "`library.file_buffer_bytes` is 65536; it must be 0 to 32768",
            ),
            (
                "esp32",
                "file_buffer_bytes",
                "256",
                "`library.file_buffer_bytes` must be 0 or a power of two",
            ),
            (
                "linux-reader",
                "file_buffer_bytes",
                "512",
                "`library.file_buffer_bytes` must be 0 if library.name is linux",
            ),
            (
                "lpc43xx",
                "shared_buffer",
                "true",
                "`library.shared_buffer` must be false unless",
            ),
            (
                "mega2560",
                "shared_buffer",
                "true\nwindow = true",
                "`library.window` must be false unless",
            ),
            (
                "esp32",
                "file_buffer_bytes",
                "4096",
                "`library.window` must be false unless",
            ),
            (
                "lpc43xx",
                "shared_buffer",
                "false\nwindow = true",
                "`library.window` must be false unless",
            ),
            (
                "esp32",
                "path_walks_per_open",
                "0",
                "`library.path_walks_per_open` is 0; it must be 1 to 8",
            ),
            (
                "esp32",
                "cluster_bytes",
                "8000",
                "`library.cluster_bytes` must be a power of two",
            ),
            (
                "esp32",
                "cluster_bytes",
                "65536",
                "`library.cluster_bytes` is 65536; it must be 512 to 32768",
            ),
            (
                "esp32",
                "bytes_per_s",
                "999",
                "`network.bytes_per_s` is 999; it must be 1000 to 1000000000",
            ),
            (
                "esp32",
                "round_trip_us",
                "10_000_001",
                "`network.round_trip_us`",
            ),
            (
                "esp32",
                "segment_bytes",
                "127",
                "`network.segment_bytes` is 127; it must be 128 to 8960",
            ),
            (
                "esp32",
                "buffer_bytes",
                "511",
                "`network.buffer_bytes` is 511; it must be 512 to 16777216",
            ),
            ("esp32", "call_us", "100_001", "`library.call_us`"),
            ("esp32", "byte_ns", "1_000_001", "`library.byte_ns`"),
            (
                "esp32",
                "read_byte_ns",
                "1_000_001",
                "`library.read_byte_ns`",
            ),
            (
                "linux-reader-hangs",
                "run_blocks_max",
                "239",
                "`driver.hang.run_blocks_max` is 239; it must be 240 to 2147483648",
            ),
            (
                "linux-reader-hangs",
                "timeout_ms",
                "0",
                "`driver.hang.timeout_ms` is 0; it must be 1 to 600000",
            ),
            (
                "linux-reader",
                "dirty_bytes_max",
                "4096",
                "`library.dirty_bytes_max` is 4096; it must be 1048576 to 1073741824",
            ),
            (
                "linux-reader",
                "dirty_bytes_max",
                "",
                "`library.dirty_bytes_max` must be present if library.name is linux",
            ),
            (
                "lpc43xx",
                "name",
                "\"fatfs\"\ndirty_bytes_max = 1048576",
                "and absent otherwise",
            ),
            (
                "lpc43xx",
                "name",
                "\"littlefs\"",
                "unknown variant `littlefs`",
            ),
        ] {
            let message = changed(board, key, value);
            assert!(
                message.contains(part),
                "{board}, {key} = {value}: {message}"
            );
        }
    }

    #[test]
    fn a_network_is_a_link_with_half_of_the_round_trip_each_way() {
        let link = Board::named("esp32-26m").unwrap().network.unwrap().link();
        assert_eq!(link.bandwidth_bps, 20_000_000);
        assert_eq!((link.delay_ns, link.mtu_bytes), (2_000_000, 1476));
        assert_eq!((link.loss_ppm, link.reorder_ppm), (0, 0));
        assert_eq!(Board::named("lpc43xx").unwrap().network, None);
    }

    #[test]
    fn a_board_has_exactly_one_bus() {
        let (_, text) = crate::BOARDS[0];
        let sd = "[sd]\nclock_hz = 25_000_000\nwidth = 4\nncr_clocks = 2\n\n[driver]";
        let expected = "b.toml: `[spi] or [sd]` must be present, and only one of the two";
        assert_eq!(message_for(&text.replace("[driver]", sd)), expected);
        let spi = &text[text.find("[spi]").unwrap()..text.find("[driver]").unwrap()];
        assert_eq!(message_for(&text.replace(spi, "")), expected);
    }
}
