//! Drawing of a board: file library, card driver and bus.

use super::theory::Derived;
use super::{arrow, framed, page, plural, row, time};
use cardiograph_report::units;
use cardiograph_sim_card::{BLOCK_BYTES, Board, Bus, Driver, Library, LibraryName, Sd, Spi};

/// Draws a board.
pub fn board(name: &str, board: &Board) -> String {
    let (title, rows) = bus(&board.bus);
    let mut left = vec![arrow("application calls")];
    left.extend(framed("file library", &library(&board.library), true));
    left.extend(framed("card driver", &driver(&board.driver), true));
    left.extend(framed(&title, &rows, true));
    left.push(format!("{}card", " ".repeat(super::BOX_WIDTH / 2 - 2)));
    page(name, &board.about, &left, &theory(board))
}

fn library(library: &Library) -> Vec<String> {
    let name = match library.name {
        LibraryName::EmbeddedSdmmc if library.window => "FatFs, bursts of blocks",
        LibraryName::EmbeddedSdmmc => "embedded-sdmmc, by block",
        LibraryName::Fatfs => "FatFs, bursts of blocks",
        LibraryName::Linux => "Linux, a page cache",
    };
    let buffer = match (library.file_buffer_bytes, library.shared_buffer) {
        (0, _) => "none".to_string(),
        (bytes, true) => format!("{} for all files", units::binary_bytes(bytes.into())),
        (bytes, false) => format!("{} per file", units::binary_bytes(bytes.into())),
    };
    let mut rows = vec![row("modelled on", name), row("buffer", &buffer)];
    if let Some(bytes) = library.dirty_bytes_max {
        rows.push(row(
            "dirty pages",
            &format!("{} at most", units::bytes(bytes.into())),
        ));
    }
    let ns = |ns: u32| time(f64::from(ns) / 1e3);
    rows.extend([
        row(
            "path walks",
            &format!("{} per open", library.path_walks_per_open),
        ),
        row(
            "cluster size",
            &units::binary_bytes(library.cluster_bytes.into()),
        ),
        row("CPU per call", &time(library.call_us.into())),
        row("  per byte, write", &ns(library.byte_ns)),
        row("  per byte, read", &ns(library.read_byte_ns)),
    ]);
    rows
}

fn driver(driver: &Driver) -> Vec<String> {
    let check = match driver.checks_status {
        true => "polls the status (CMD13)",
        false => "no status check",
    };
    let mut rows = vec![
        row(
            "blocks/command",
            &format!("up to {}", units::count(driver.burst_blocks.into())),
        ),
        row("after a write", check),
        row("CPU per command", &time(driver.command_us.into())),
        row("  per block", &time(driver.block_us.into())),
    ];
    if let Some(hang) = driver.hang {
        let run_bytes = u64::from(hang.run_blocks_max) * BLOCK_BYTES as u64;
        rows.push(row("hangs after", &units::binary_bytes(run_bytes)));
        rows.push(row("  for", &time(f64::from(hang.timeout_ms) * 1e3)));
    }
    rows
}

fn bus(bus: &Bus) -> (String, Vec<String>) {
    let ns = |ns: u32| time(f64::from(ns) / 1e3);
    match bus {
        Bus::Spi(spi) => {
            let gaps = match (spi.send_gap_ns, spi.receive_gap_ns) {
                (0, 0) => "none".to_string(),
                (sent, received) => format!("{} out, {} in", ns(sent), ns(received)),
            };
            let rows = vec![
                row("lines", "CLK, CS, MOSI, MISO"),
                row("clock", &hertz(spi.clock_hz)),
                row("gap after a byte", &gaps),
                row(
                    "response (NCR)",
                    &format!("after {}", plural(spi.ncr_bytes, "byte")),
                ),
            ];
            ("SPI".to_string(), rows)
        }
        Bus::Sd(sd) => {
            let lines = match sd.width {
                1 => "CLK, CMD, DAT0",
                _ => "CLK, CMD, DAT0 to DAT3",
            };
            let rows = vec![
                row("lines", lines),
                row("clock", &hertz(sd.clock_hz)),
                row(
                    "response (NCR)",
                    &format!("after {}", plural(sd.ncr_clocks, "clock")),
                ),
            ];
            ("SD bus".to_string(), rows)
        }
    }
}

/// Formats a frequency in Hz, as `400 kHz`.
fn hertz(hz: u32) -> String {
    units::rate(hz.into()).replace("B/s", "Hz")
}

/// Bus time of a block of 512 B, within a burst and as a single block.
struct BusTime {
    burst_us: f64,
    single_us: f64,
    burst_formula: &'static str,
    single_formula: &'static str,
}

/// Bytes sent (token, data, CRC) and received (response, one poll for ready) per block of a burst.
const SPI_BURST_BYTES: [f64; 2] = [515.0, 2.0];
/// Bytes sent and received for a single block, by CMD24 and CMD13 as embedded-sdmmc sends them, without the
/// two response delays (NCR).
const SPI_SINGLE_BYTES: [f64; 2] = [515.0 + 12.0, 7.0];
/// Clocks around the data on each line (start bit, CRC16, end bit), plus those of the CRC status that
/// follows.
const SD_AROUND_CLOCKS: f64 = 18.0 + 7.0;
/// Minimum number of clocks from a response to data (NWR).
const SD_NWR_CLOCKS: f64 = 2.0;

impl BusTime {
    fn of(bus: &Bus) -> BusTime {
        match bus {
            Bus::Spi(spi) => BusTime::of_spi(spi),
            Bus::Sd(sd) => BusTime::of_sd(sd),
        }
    }

    fn of_spi(spi: &Spi) -> BusTime {
        let byte_us = 8e6 / f64::from(spi.clock_hz);
        let gap_us = |ns: u32| f64::from(ns) / 1e3;
        let send_us = byte_us + gap_us(spi.send_gap_ns);
        let receive_us = byte_us + gap_us(spi.receive_gap_ns);
        let time_us = |[sent, received]: [f64; 2]| sent * send_us + received * receive_us;
        let ncr_us = 2.0 * f64::from(spi.ncr_bytes) * receive_us;
        BusTime {
            burst_us: time_us(SPI_BURST_BYTES),
            single_us: time_us(SPI_SINGLE_BYTES) + ncr_us,
            burst_formula: "512 B / (517 bytes × 8 / clock + gaps)",
            single_formula: "512 B / ((534 + 2 NCR) bytes × 8 / clock + gaps)",
        }
    }

    fn of_sd(sd: &Sd) -> BusTime {
        let clock_us = 1e6 / f64::from(sd.clock_hz);
        let block = 4096.0 / f64::from(sd.width) + SD_AROUND_CLOCKS;
        let command = 96.0 + f64::from(sd.ncr_clocks);
        BusTime {
            burst_us: (SD_NWR_CLOCKS + block) * clock_us,
            single_us: (command + SD_NWR_CLOCKS + block) * clock_us,
            burst_formula: "512 B × clock / (4096 / lines + 2 NWR + 18 start, CRC, end + 7 CRC status)",
            single_formula: "the same, plus 48 + NCR + 48 clocks for command and response",
        }
    }
}

fn theory(board: &Board) -> Vec<Derived> {
    let (driver, library) = (&board.driver, &board.library);
    let bus_time = BusTime::of(&board.bus);
    let rate = |us: f64| units::rate(512e6 / us);
    let burst = f64::from(driver.burst_blocks);
    let is_single = driver.burst_blocks == 1;
    let block_us = if is_single {
        bus_time.single_us
    } else {
        bus_time.burst_us
    };
    let cpu_us = f64::from(driver.block_us) + f64::from(driver.command_us) / burst;
    let mut theory = vec![
        Derived::new(
            "Bus limit of a burst",
            rate(bus_time.burst_us),
            bus_time.burst_formula,
        ),
        Derived::new(
            "Bus limit of single blocks",
            rate(bus_time.single_us),
            bus_time.single_formula,
        ),
        Derived::new(
            "Limit including driver CPU time",
            rate(block_us + cpu_us),
            match is_single {
                true => "512 B / (single block on the bus + CPU per command and block)",
                false => {
                    "512 B / (block of a burst on the bus + CPU per block + its share of a command)"
                }
            },
        ),
        Derived::new(
            "Maximum payload of a command",
            units::binary_bytes(u64::from(driver.burst_blocks) * 512),
            "blocks/command × 512 B",
        ),
        Derived::new(
            "Write of 100 B into a buffer",
            units::time(f64::from(library.call_us) + f64::from(library.byte_ns) / 10.0),
            "CPU per call + 100 × CPU per byte",
        ),
    ];
    if library.byte_ns > 0 {
        theory.push(Derived::new(
            "Limit set by library CPU time",
            units::rate(1e9 / f64::from(library.byte_ns)),
            "1 / CPU per byte, write; for long calls",
        ));
    }
    theory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_limits_match_the_specification() {
        let rate = |name| {
            let bus_time = BusTime::of(&Board::named(name).unwrap().bus);
            units::rate(512e6 / bus_time.burst_us)
        };
        // 512 of 517 bytes at 500 kB/s; 512 B in 1051 clocks of 25 MHz.
        assert_eq!(rate("esp32"), "495 kB/s");
        assert_eq!(rate("lpc43xx"), "12.2 MB/s");
    }
}
