//! A board: library, driver, bus.

use super::theory::Derived;
use super::{arrow, framed, page, plural, row, time};
use cardiograph_report::units;
use cardiograph_sim_card::{Board, Bus, Driver, Library, LibraryName, Sd, Spi};

/// Draws a board.
pub fn board(name: &str, board: &Board) -> String {
    let (title, rows) = bus(&board.bus);
    let mut left = vec![arrow("calls of the program")];
    left.extend(framed("file library", &library(&board.library), true));
    left.extend(framed("card driver", &driver(&board.driver), true));
    left.extend(framed(&title, &rows, true));
    left.push(format!("{}card", " ".repeat(super::BOX_WIDTH / 2 - 2)));
    page(name, &board.about, &left, &theory(board))
}

fn library(library: &Library) -> Vec<String> {
    let name = match library.name {
        LibraryName::EmbeddedSdmmc => "embedded-sdmmc, by block",
        LibraryName::Fatfs => "FatFs, bursts of blocks",
        LibraryName::Linux => "Linux, a page cache",
    };
    let buffer = match (library.file_buffer_bytes, library.shared_buffer) {
        (0, _) => "none of its own".to_string(),
        (bytes, true) => format!("{} for all files", units::ram(bytes.into())),
        (bytes, false) => format!("{} a file", units::ram(bytes.into())),
    };
    let mut rows = vec![row("habits of", name), row("buffer", &buffer)];
    if let Some(bytes) = library.dirty_bytes_max {
        rows.push(row(
            "held back",
            &format!("{} at most", units::bytes(bytes.into())),
        ));
    }
    let ns = |ns: u32| time(f64::from(ns) / 1e3);
    rows.extend([
        row(
            "an open walks",
            &format!("its path {}", plural(library.path_walks_per_open, "time")),
        ),
        row("clusters of", &units::ram(library.cluster_bytes.into())),
        row("CPU for a call", &time(library.call_us.into())),
        row("  a byte written", &ns(library.byte_ns)),
        row("  a byte read", &ns(library.read_byte_ns)),
    ]);
    rows
}

fn driver(driver: &Driver) -> Vec<String> {
    let asks = match driver.checks_status {
        true => "asks the status (CMD13)",
        false => "asks nothing",
    };
    vec![
        row(
            "a command moves",
            &format!("{} at most", plural(driver.burst_blocks, "block")),
        ),
        row("after a write", asks),
        row("CPU for a command", &time(driver.command_us.into())),
        row("  a block", &time(driver.block_us.into())),
    ]
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
                    "answer (NCR)",
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
                    "answer (NCR)",
                    &format!("after {}", plural(sd.ncr_clocks, "clock")),
                ),
            ];
            ("SD bus".to_string(), rows)
        }
    }
}

/// A frequency in Hz, as `400 kHz`.
fn hertz(hz: u32) -> String {
    units::rate(hz.into()).replace("B/s", "Hz")
}

/// What the wire takes for a block of 512 B, in a burst and alone.
struct Wire {
    burst_us: f64,
    alone_us: f64,
    burst_formula: &'static str,
    alone_formula: &'static str,
}

/// Bytes sent and received for a block of a burst: token, data, CRC; response and one look whether the
/// card is ready.
const SPI_BURST_BYTES: [f64; 2] = [515.0, 2.0];
/// The same for CMD24 and CMD13 as embedded-sdmmc sends them, beside two NCR.
const SPI_ALONE_BYTES: [f64; 2] = [515.0 + 12.0, 7.0];
/// Clocks around the data of each line (start, CRC16, end), and for the CRC status behind them.
const SD_AROUND_CLOCKS: f64 = 18.0 + 7.0;
/// Least clocks from a response to data (NWR).
const SD_NWR_CLOCKS: f64 = 2.0;

impl Wire {
    fn of(bus: &Bus) -> Wire {
        match bus {
            Bus::Spi(spi) => Wire::of_spi(spi),
            Bus::Sd(sd) => Wire::of_sd(sd),
        }
    }

    fn of_spi(spi: &Spi) -> Wire {
        let byte_us = 8e6 / f64::from(spi.clock_hz);
        let gap_us = |ns: u32| f64::from(ns) / 1e3;
        let send_us = byte_us + gap_us(spi.send_gap_ns);
        let receive_us = byte_us + gap_us(spi.receive_gap_ns);
        let time_us = |[sent, received]: [f64; 2]| sent * send_us + received * receive_us;
        let ncr_us = 2.0 * f64::from(spi.ncr_bytes) * receive_us;
        Wire {
            burst_us: time_us(SPI_BURST_BYTES),
            alone_us: time_us(SPI_ALONE_BYTES) + ncr_us,
            burst_formula: "512 B / (517 bytes × 8 / clock + gaps)",
            alone_formula: "512 B / ((534 + 2 NCR) bytes × 8 / clock + gaps)",
        }
    }

    fn of_sd(sd: &Sd) -> Wire {
        let clock_us = 1e6 / f64::from(sd.clock_hz);
        let block = 4096.0 / f64::from(sd.width) + SD_AROUND_CLOCKS;
        let command = 96.0 + f64::from(sd.ncr_clocks);
        Wire {
            burst_us: (SD_NWR_CLOCKS + block) * clock_us,
            alone_us: (command + SD_NWR_CLOCKS + block) * clock_us,
            burst_formula: "512 B × clock / (4096 / lines + 2 NWR + 18 start, CRC, end + 7 CRC status)",
            alone_formula: "the same with 48 + NCR + 48 clocks for command and response",
        }
    }
}

fn theory(board: &Board) -> Vec<Derived> {
    let (driver, library) = (&board.driver, &board.library);
    let wire = Wire::of(&board.bus);
    let rate = |us: f64| units::rate(512e6 / us);
    let burst = f64::from(driver.burst_blocks);
    let is_alone = driver.burst_blocks == 1;
    let block_us = if is_alone {
        wire.alone_us
    } else {
        wire.burst_us
    };
    let cpu_us = f64::from(driver.block_us) + f64::from(driver.command_us) / burst;
    let mut theory = vec![
        Derived::new(
            "Wire limit of a burst",
            rate(wire.burst_us),
            wire.burst_formula,
        ),
        Derived::new(
            "Wire limit of single blocks",
            rate(wire.alone_us),
            wire.alone_formula,
        ),
        Derived::new(
            "Limit with the driver's CPU time",
            rate(block_us + cpu_us),
            match is_alone {
                true => "512 B / (single block on the wire + CPU for command and block)",
                false => {
                    "512 B / (block of a burst on the wire + CPU for a block + its share of a command)"
                }
            },
        ),
        Derived::new(
            "Most bytes of a command",
            units::ram(u64::from(driver.burst_blocks) * 512),
            "blocks a command moves × 512 B",
        ),
        Derived::new(
            "A line of 100 B that stays in memory",
            units::time(f64::from(library.call_us) + f64::from(library.byte_ns) / 10.0),
            "CPU for a call + 100 × for a byte",
        ),
    ];
    if library.byte_ns > 0 {
        theory.push(Derived::new(
            "Limit of the library's CPU time",
            units::rate(1e9 / f64::from(library.byte_ns)),
            "1 / CPU for a byte written, in long calls",
        ));
    }
    theory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_limits_are_those_of_the_specification() {
        let rate = |name| {
            let wire = Wire::of(&Board::named(name).unwrap().bus);
            units::rate(512e6 / wire.burst_us)
        };
        // 512 of 517 bytes at 500 kB/s; 512 B in 1051 clocks of 25 MHz.
        assert_eq!(rate("esp32"), "495 kB/s");
        assert_eq!(rate("lpc43xx"), "12.2 MB/s");
    }
}
