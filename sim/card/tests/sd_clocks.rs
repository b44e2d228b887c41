//! Clocks of the SD bus, counted one by one. The formulas are derived from the SD Physical Layer Simplified
//! Specification: 4.7.2 and 4.9 for commands and responses, 3.6.1 for blocks, 4.12 for the gaps between
//! them. The busy times are those of a twin: a card with the same seed and without a bus.

use crate::controller::{self, Controller};
use cardiograph_sim_card::wire::Options;
use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response, Width};
use cardiograph_sim_card::{Block, Card};

const CLOCK_HZ: u32 = 25_000_000;
const CLOCK_NS: u64 = 40;
const NCR: [u8; 3] = [2, 8, 64];
const LINES: [u64; 2] = [1, 4];

const NWR: u64 = 2;
const NAC: u64 = 2;
/// Number of clocks of a CRC status: NCRC, then start bit, status and end bit.
const CRC_STATUS: u64 = 2 + 5;

/// Returns the number of clocks for a command, NCR and a response of 48 bits.
fn exchange(ncr: u64) -> u64 {
    48 + ncr + 48
}

/// Returns the number of clocks for a block: start bit, data on one line, CRC16, end bit.
fn block(lines: u64) -> u64 {
    1 + 512 * 8 / lines + 16 + 1
}

/// Returns the number of busy clocks that remain after the first `hidden` clocks, including the end bit.
fn busy(busy_ns: u64, hidden: u64) -> u64 {
    match busy_ns.div_ceil(CLOCK_NS).saturating_sub(hidden) {
        0 => 0,
        seen => seen + 1,
    }
}

fn width(lines: u64) -> Width {
    if lines == 4 { Width::Four } else { Width::One }
}

fn options(ncr_clocks: u8) -> Options {
    Options {
        ncr_clocks,
        ..Options::default()
    }
}

/// Returns an initialised card that has been idle for NRC, and its twin.
fn ready(lines: u64, ncr: u8) -> (Controller, Card) {
    let mut host = Controller::new(controller::card(1), options(ncr), CLOCK_HZ);
    host.start(width(lines));
    host.card.idle(8);
    (host, controller::card(1))
}

/// Returns the clocks that `act` takes.
fn counted(host: &mut Controller, act: impl FnOnce(&mut Controller)) -> u64 {
    let before = host.card.clocks();
    act(host);
    host.card.clocks() - before
}

/// Runs a test with every width and every NCR.
fn each(test: impl Fn(u64, u8)) {
    for lines in LINES {
        for ncr in NCR {
            test(lines, ncr);
        }
    }
}

fn put(host: &mut Controller, data: &Block) {
    assert_eq!(host.write(data), Some(CrcStatus::Positive));
    assert!(host.wait());
}

#[test]
fn cmd24_takes_an_exchange_nwr_a_block_its_crc_status_and_busy() {
    each(|lines, ncr| {
        let (mut host, mut twin) = ready(lines, ncr);
        for number in 0..20 {
            let data = [number as u8; 512];
            let clocks = counted(&mut host, |host| {
                host.command(24, number).unwrap();
                put(host, &data);
            });
            let busy_ns = twin.write(0, number.into(), &data).unwrap();
            let formula = exchange(ncr.into()) + NWR + block(lines) + CRC_STATUS;
            assert_eq!(clocks, formula + busy(busy_ns, CRC_STATUS));
            assert!(busy_ns > 0, "the card has to program a page");
            host.card.idle(8);
        }
    });
}

#[test]
fn a_burst_of_cmd25_takes_two_exchanges_and_per_block_nwr_the_block_its_crc_status_and_busy() {
    each(|lines, ncr| {
        for blocks in [1, 2, 8, 64] {
            let (mut host, mut twin) = ready(lines, ncr);
            let data = [blocks as u8; 512];
            let clocks = counted(&mut host, |host| {
                host.command(25, 3).unwrap();
                (0..blocks).for_each(|_| put(host, &data));
                // CMD25 needs no gap before it, because the last response was long ago.
                host.command(12, 0).unwrap();
                assert!(host.wait());
            });
            let mut formula = 2 * exchange(ncr.into());
            for block_at in 3..3 + blocks {
                let busy_ns = twin.stream_write(0, block_at, &data).unwrap();
                formula += NWR + block(lines) + CRC_STATUS + busy(busy_ns, CRC_STATUS);
            }
            // The busy time begins at the end of CMD12.
            formula += busy(twin.stream_end(0), u64::from(ncr) + 48);
            assert_eq!(clocks, formula, "{blocks} blocks");
        }
    });
}

#[test]
fn cmd17_takes_a_command_the_access_time_and_a_block() {
    each(|lines, ncr| {
        let (mut host, mut twin) = ready(lines, ncr);
        for number in [0, 1, 77, 5000] {
            let mut data = [0; 512];
            let clocks = counted(&mut host, |host| {
                host.command(17, number).unwrap();
                assert!(host.read(&mut data));
            });
            let wait_ns = twin.read(0, number.into(), true, &mut data).unwrap();
            // The access time begins at the end of the command, so it overlaps the response.
            let access = wait_ns.div_ceil(CLOCK_NS).max(NAC);
            assert!(access > u64::from(ncr) + 48);
            assert_eq!(clocks, 48 + access + block(lines));
            host.card.idle(8);
        }
    });
}

#[test]
fn cmd18_takes_a_command_an_exchange_and_per_block_an_access_time_and_the_block() {
    each(|lines, ncr| {
        for blocks in [1, 2, 8, 64] {
            let (mut host, mut twin) = ready(lines, ncr);
            let mut data = [0; 512];
            let clocks = counted(&mut host, |host| {
                host.command(18, 30).unwrap();
                (0..blocks).for_each(|_| assert!(host.read(&mut data)));
                host.command(12, 0).unwrap();
            });
            let mut formula = 48 + exchange(ncr.into());
            for block_at in 30..30 + blocks {
                let wait_ns = twin.read(0, block_at, block_at == 30, &mut data).unwrap();
                formula += wait_ns.div_ceil(CLOCK_NS).max(NAC) + block(lines);
            }
            assert_eq!(clocks, formula, "{blocks} blocks");
        }
    });
}

#[test]
fn a_register_is_sent_in_parallel_with_its_response() {
    each(|lines, ncr| {
        let (mut host, _) = ready(lines, ncr);
        host.command(55, 1 << 16).unwrap();
        host.card.idle(8);
        // The SCR has 64 bits, which take NAC and 82 clocks on one line, or NAC and 34 clocks on four lines;
        // the response may take longer.
        let clocks = counted(&mut host, |host| {
            host.command(51, 0).unwrap();
            assert!(host.read(&mut [0; 8]));
        });
        let scr = NAC + 1 + 64 / lines + 16 + 1;
        assert_eq!(clocks, 48 + scr.max(u64::from(ncr) + 48));
    });
}

#[test]
fn a_register_is_delayed_by_nac() {
    for nac in [2, 200, 255] {
        let late = Options {
            nac_clocks: nac,
            ..Options::default()
        };
        let mut host = Controller::new(controller::card(1), late, CLOCK_HZ);
        host.start(Width::Four);
        host.card.idle(8);
        let clocks = counted(&mut host, |host| {
            host.command(6, 0x00FF_FFFF).unwrap();
            assert!(host.read(&mut [0; 64]));
        });
        assert_eq!(clocks, 48 + u64::from(nac) + 1 + 64 * 8 / 4 + 16 + 1);
    }
}

#[test]
fn identification_waits_for_nid_and_a_long_response_takes_136_clocks() {
    for ncr in NCR {
        let ncr_clocks = u64::from(ncr);
        let mut host = Controller::new(controller::card(1), options(ncr), CLOCK_HZ);
        host.power_up();
        let mut take = |index, argument, response_clocks| {
            host.card.idle(8);
            let clocks = counted(&mut host, |host| {
                let response = host.card.command(Command::new(index, argument));
                assert_eq!(response == Response::None, response_clocks == 0);
            });
            assert_eq!(clocks, 48 + response_clocks, "CMD{index}");
            if index == 41 {
                host.card.clock().advance_ns(1_000_000_000);
            }
        };
        take(0, 0, 0);
        take(8, 0x1AA, ncr_clocks + 48);
        for _ in 0..2 {
            take(55, 0, ncr_clocks + 48);
            take(41, 0x40FF_8000, 5 + 48);
        }
        take(2, 0, 5 + 136);
        take(3, 0, ncr_clocks + 48);
        take(9, 1 << 16, ncr_clocks + 136);
        take(10, 1 << 16, ncr_clocks + 136);
        take(7, 1 << 16, ncr_clocks + 48);
        // CMD13 to another card's address gets no response.
        take(13, 2 << 16, 0);
    }
}

#[test]
fn time_is_the_sum_of_clocks_and_pauses_of_the_host() {
    for clock_hz in [400_000, 23_000_000, 25_000_000] {
        let card = controller::card(1);
        let mut host = Controller::new(card, Options::default(), clock_hz);
        host.start(Width::Four);
        host.command(25, 9).unwrap();
        for number in 0..100 {
            put(&mut host, &[number; 512]);
        }
        host.command(12, 0).unwrap();
        host.wait();
        host.command(17, 9).unwrap();
        assert!(host.read(&mut [0; 512]));
        // Bus time, rounded down to whole nanoseconds, plus the second that `start` waits.
        let on_bus_ns = host.card.clocks() * 1_000_000_000 / u64::from(clock_hz);
        assert_eq!(host.card.clock().now_ns(), on_bus_ns + 1_000_000_000);
    }
}

#[test]
fn a_block_is_ready_after_a_host_has_stopped_the_clock() {
    let (mut host, _) = ready(4, 2);
    host.command(17, 0).unwrap();
    host.card.clock().advance_ns(10_000_000);
    let clocks = counted(&mut host, |host| assert!(host.read(&mut [0; 512])));
    assert_eq!(clocks, block(4));
}
