//! Responses of the card on the SD bus to correct and wrong hosts.

use crate::controller::{self, BLOCKS, Controller};
use cardiograph_sim_card::wire::sd::{Command, CrcStatus, Response, SdBusCard, Width};
use cardiograph_sim_card::wire::{Kind, Options};
use cardiograph_sim_card::{Clock, Profile};

const RCA: u32 = 1 << 16;

/// Bits and states of the card status (4.10.1).
const OUT_OF_RANGE: u32 = 1 << 31;
const ADDRESS_ERROR: u32 = 1 << 30;
const BLOCK_LEN_ERROR: u32 = 1 << 29;
const ERASE_SEQ_ERROR: u32 = 1 << 28;
const ERASE_PARAM: u32 = 1 << 27;
const WP_VIOLATION: u32 = 1 << 26;
const COM_CRC_ERROR: u32 = 1 << 23;
const ILLEGAL_COMMAND: u32 = 1 << 22;
const CARD_ECC_FAILED: u32 = 1 << 21;
const WP_ERASE_SKIP: u32 = 1 << 15;
const ERASE_RESET: u32 = 1 << 13;
const READY: u32 = 1 << 8;
const APP_CMD: u32 = 1 << 5;
const IDLE: u32 = READY;
const STBY: u32 = 3 << 9 | READY;
const TRAN: u32 = 4 << 9 | READY;
const DATA: u32 = 5 << 9 | READY;
const RCV: u32 = 6 << 9 | READY;
const PRG: u32 = 7 << 9;
const DIS: u32 = 8 << 9;

fn host(change: impl FnOnce(&mut Options)) -> Controller {
    let mut options = Options::default();
    change(&mut options);
    Controller::new(controller::card(1), options, 25_000_000)
}

/// Returns a host whose card is selected.
fn ready(change: impl FnOnce(&mut Options)) -> Controller {
    let mut host = host(change);
    host.start(Width::One);
    host
}

fn status(host: &mut Controller) -> u32 {
    host.command(13, RCA).unwrap()
}

fn stored(host: &Controller, block: u64) -> [u8; 512] {
    let mut data = [[0; 512]];
    host.card.card().load(block, &mut data);
    data[0]
}

#[test]
fn nothing_is_received_before_74_clocks() {
    for (clocks, state) in [(73, None), (74, Some(IDLE | APP_CMD))] {
        let mut host = host(|_| ());
        host.card.idle(clocks);
        // The clocks of an unanswered command must not count for the next one.
        let response = host.card.command(Command::new(55, 0)).argument();
        assert_eq!(response, state, "{clocks} clocks");
    }
}

#[test]
fn a_card_is_identified_step_by_step() {
    let mut host = host(|_| ());
    host.power_up();
    assert_eq!(host.command(0, 0), None);
    assert_eq!(host.command(8, 0x1AA), Some(0x1AA));
    // A card does not respond to an unsupported voltage.
    assert_eq!(host.command(8, 0x2AA), None);
    // ACMD41 without voltages is only a query.
    assert_eq!(host.app(0, 41, 0), Some(0x00FF_8000));
    host.card.clock().advance_ns(1_000_000_000);
    assert_eq!(host.app(0, 41, 0x40FF_8000), Some(0x00FF_8000));
    host.card.clock().advance_ns(19_000_000);
    assert_eq!(host.app(0, 41, 0x40FF_8000), Some(0x00FF_8000));
    host.card.clock().advance_ns(1_000_000);
    assert_eq!(host.app(0, 41, 0x40FF_8000), Some(0xC0FF_8000));
    let cid = host.send(Command::new(2, 0)).register().unwrap();
    assert_eq!(&cid[3..8], b"CARDI");
    // R6 contains the address and the state `ident`.
    assert_eq!(host.command(3, 0), Some(RCA | 2 << 9 | READY));
    assert_eq!(host.command(3, 0), Some(2 << 16 | STBY));
    assert_eq!(host.send(Command::new(10, 2 << 16)).register(), Some(cid));
    let csd = host.send(Command::new(9, 2 << 16)).register().unwrap();
    // The CSD states 25 MHz, and class 10 is among the command classes.
    assert_eq!((csd[3], csd[4] & 0x40), (0x32, 0x40));
    assert_eq!(host.command(7, 2 << 16), Some(STBY));
    assert_eq!(host.command(13, 2 << 16), Some(TRAN));
    host.command(0, 0);
    assert_eq!(host.command(55, 0), Some(IDLE | APP_CMD));
}

#[test]
fn a_high_capacity_card_waits_for_a_host_that_supports_it() {
    for (asks, argument, ready) in [
        (true, 0x40FF_8000, true),
        (true, 0x00FF_8000, false),
        (false, 0x40FF_8000, false),
    ] {
        let mut host = host(|options| options.init_us = 0);
        host.power_up();
        if asks {
            host.command(8, 0x1AA);
        }
        let ocr = host.app(0, 41, argument).unwrap();
        assert_eq!(ocr >> 31 == 1, ready, "{asks} {argument:X}");
    }
}

#[test]
fn cmd8_is_illegal_to_version_1() {
    let mut host = host(|options| options.kind = Kind::Version1);
    host.power_up();
    assert_eq!(host.command(8, 0x1AA), None);
    assert_eq!(host.command(55, 0), Some(ILLEGAL_COMMAND | IDLE | APP_CMD));
}

#[test]
fn an_illegal_command_gets_no_response_and_is_reported_once() {
    let mut host = ready(|_| ());
    for index in [1, 2, 4, 5, 8, 9, 11, 12, 23, 42, 56, 58, 63] {
        assert_eq!(host.command(index, RCA), None, "CMD{index}");
        assert_eq!(status(&mut host), ILLEGAL_COMMAND | TRAN, "CMD{index}");
        assert_eq!(status(&mut host), TRAN);
    }
    // A command to another card is not an error of this card.
    assert_eq!(host.command(13, 2 << 16), None);
    assert_eq!(status(&mut host), TRAN);
}

#[test]
fn a_deselected_card_rejects_data_commands() {
    let mut host = ready(|_| ());
    assert_eq!(host.command(7, 0), None);
    for index in [6, 16, 17, 18, 24, 25, 32, 33, 38] {
        assert_eq!(host.command(index, 0), None, "CMD{index}");
        assert_eq!(status(&mut host), ILLEGAL_COMMAND | STBY);
    }
    assert_eq!(host.command(7, RCA), Some(STBY));
    assert_eq!(status(&mut host), TRAN);
}

#[test]
fn a_command_with_a_wrong_checksum_is_ignored_but_reported() {
    let mut host = ready(|_| ());
    assert_eq!(
        host.send(Command::new(24, 0).with_bad_crc()),
        Response::None
    );
    assert_eq!(status(&mut host), COM_CRC_ERROR | TRAN);
    assert_eq!(status(&mut host), TRAN);
    // A frame with the start bits of a response is not a command.
    let response = Command {
        bytes: [13, 0, 1, 0, 0, 0xFF],
    };
    assert_eq!(host.send(response), Response::None);
    assert_eq!(status(&mut host), TRAN);
}

#[test]
fn application_commands_are_marked_and_others_execute_as_usual() {
    let mut host = ready(|_| ());
    assert_eq!(host.command(55, RCA), Some(TRAN | APP_CMD));
    assert_eq!(host.command(23, 8), Some(TRAN | APP_CMD));
    host.command(55, RCA);
    assert_eq!(host.command(16, 512), Some(TRAN));
    assert_eq!(host.app(1, 6, 1), Some(OUT_OF_RANGE | TRAN | APP_CMD));
}

#[test]
fn a_written_block_is_read_back_on_one_line_and_on_four() {
    for (width, lines) in [(Width::One, 0), (Width::Four, 0x80)] {
        let mut host = host(|_| ());
        host.start(width);
        let data = std::array::from_fn(|i| (i * 7) as u8);
        assert_eq!(host.command(24, 5), Some(TRAN));
        assert_eq!(host.write(&data), Some(CrcStatus::Positive));
        host.wait();
        assert_eq!(stored(&host, 5), data);
        let mut read = [0; 512];
        host.command(17, 5).unwrap();
        assert!(host.read(&mut read));
        assert_eq!(read, data);
        let mut sd_status = [0; 64];
        host.app(1, 13, 0).unwrap();
        assert!(host.read(&mut sd_status));
        assert_eq!((sd_status[0], sd_status[8]), (lines, 4));
    }
}

#[test]
fn a_stream_reports_the_number_of_written_blocks() {
    let mut host = ready(|_| ());
    host.command(25, 40).unwrap();
    for number in 0..10 {
        assert_eq!(host.write(&[number; 512]), Some(CrcStatus::Positive));
        host.wait();
        assert_eq!(status(&mut host), RCV);
    }
    assert_eq!(host.command(12, 0), Some(RCV));
    host.wait();
    assert_eq!(stored(&host, 49), [9; 512]);
    let mut blocks = [0; 4];
    host.app(1, 22, 0).unwrap();
    assert!(host.read(&mut blocks));
    assert_eq!(blocks, [0, 0, 0, 10]);
}

#[test]
fn a_busy_card_accepts_commands_but_rejects_blocks() {
    let mut host = ready(|_| ());
    host.command(24, 0).unwrap();
    host.write(&[1; 512]).unwrap();
    assert!(host.card.is_busy());
    assert_eq!(status(&mut host), PRG);
    // After deselection the card continues to program.
    assert_eq!(host.command(7, 0), None);
    assert!(!host.card.is_busy());
    assert_eq!(status(&mut host), DIS);
    assert_eq!(host.command(7, RCA), Some(DIS));
    assert!(host.card.is_busy());
    assert_eq!(host.command(17, 0), None);
    assert_eq!(status(&mut host), ILLEGAL_COMMAND | PRG);
    assert!(host.wait());
    assert_eq!(status(&mut host), TRAN);

    host.command(25, 0).unwrap();
    // Before the page is programmed, the card only collects blocks.
    while host.card.busy_until_ns() < host.card.clock().now_ns() + 100_000 {
        host.wait();
        host.write(&[2; 512]).unwrap();
    }
    assert_eq!(status(&mut host), RCV & !READY);
    assert_eq!(host.write(&[3; 512]), None);
    // CMD12 is accepted while the card is busy, and takes effect when the busy time is over.
    assert_eq!(host.command(12, 0), Some(RCV & !READY));
    assert_eq!(status(&mut host), PRG);
    assert!(host.wait());
    assert_eq!(stored(&host, 0), [2; 512]);
}

#[test]
fn programming_that_ends_off_the_bus_leaves_the_card_in_standby() {
    let mut host = ready(|_| ());
    host.command(24, 0).unwrap();
    host.write(&[1; 512]).unwrap();
    host.command(7, 0);
    host.card.clock().advance_ns(1_000_000_000);
    assert_eq!(status(&mut host), STBY);
}

#[test]
fn a_corrupted_block_and_those_after_it_are_rejected() {
    for line in 0..4 {
        let mut host = host(|_| ());
        host.start(Width::Four);
        let mut sums = Width::Four.sums(&[1; 512]);
        sums[line] ^= 1;
        host.command(24, 7).unwrap();
        let response = host.card.write_block(&[1; 512], sums);
        assert_eq!(response, Some(CrcStatus::Negative));
        assert_eq!(status(&mut host), TRAN);
        host.command(25, 7).unwrap();
        host.card.write_block(&[1; 512], sums);
        assert_eq!(host.write(&[1; 512]), None);
        assert_eq!(status(&mut host), RCV);
        host.command(12, 0).unwrap();
        assert_eq!(status(&mut host), TRAN);
        assert_eq!(stored(&host, 7), [0; 512]);
    }
}

#[test]
fn an_unexpected_block_gets_no_crc_status() {
    let mut host = ready(|_| ());
    assert_eq!(host.write(&[1; 512]), None);
    assert_eq!(status(&mut host), TRAN);
    assert!(!host.read(&mut [0; 512]));
    // The bus widths of host and card differ.
    host.command(24, 0).unwrap();
    host.set_width(Width::Four);
    assert_eq!(host.write(&[1; 512]), None);
    host.set_width(Width::One);
    assert_eq!(host.write(&[1; 512]), Some(CrcStatus::Positive));
    host.wait();
    host.command(17, 0).unwrap();
    host.set_width(Width::Four);
    assert!(!host.read(&mut [0; 512]));
    assert_eq!(host.command(12, 0), Some(DATA));
}

#[test]
fn addresses_past_the_end_are_rejected_and_transfers_end_there() {
    let mut host = ready(|_| ());
    for index in [17, 18, 24, 25, 32] {
        let response = host.command(index, BLOCKS);
        assert_eq!(response, Some(OUT_OF_RANGE | TRAN), "CMD{index}");
        assert_eq!(status(&mut host), TRAN);
    }
    host.command(18, BLOCKS - 1).unwrap();
    assert!(host.read(&mut [0; 512]));
    assert!(!host.read(&mut [0; 512]));
    assert_eq!(host.command(12, 0), Some(OUT_OF_RANGE | DATA));
    host.command(25, BLOCKS - 1).unwrap();
    assert_eq!(host.write(&[1; 512]), Some(CrcStatus::Positive));
    host.wait();
    assert_eq!(host.write(&[2; 512]), Some(CrcStatus::Failed));
    assert_eq!(host.write(&[3; 512]), None);
    assert_eq!(host.command(12, 0), Some(OUT_OF_RANGE | RCV));
    host.wait();
    assert_eq!(stored(&host, u64::from(BLOCKS) - 1), [1; 512]);
}

#[test]
fn standard_cards_use_byte_addresses_and_read_partial_blocks() {
    let mut host = ready(|options| options.kind = Kind::Standard);
    host.command(24, 3 * 512).unwrap();
    host.write(&std::array::from_fn(|i| i as u8)).unwrap();
    host.wait();
    assert_eq!(host.command(24, 100), Some(ADDRESS_ERROR | TRAN));
    assert_eq!(host.command(16, 513), Some(BLOCK_LEN_ERROR | TRAN));
    assert_eq!(host.command(17, 1), Some(ADDRESS_ERROR | TRAN));
    assert_eq!(host.command(16, 8), Some(TRAN));
    assert_eq!(host.command(24, 0), Some(BLOCK_LEN_ERROR | TRAN));
    let mut part = [0; 8];
    host.command(18, 3 * 512 + 496).unwrap();
    for start in [496usize, 504] {
        assert!(host.read(&mut part));
        assert_eq!(part[0], start as u8);
    }
    host.command(12, 0).unwrap();
    host.command(18, 3 * 512 + 500).unwrap();
    assert!(host.read(&mut part));
    assert!(!host.read(&mut part));
    assert_eq!(host.command(12, 0), Some(ADDRESS_ERROR | DATA));
}

#[test]
fn a_write_protected_card_reports_it_and_changes_nothing() {
    let mut host = ready(|options| options.write_protected = true);
    host.command(24, 0).unwrap();
    assert_eq!(host.write(&[1; 512]), Some(CrcStatus::Failed));
    assert_eq!(status(&mut host), WP_VIOLATION | TRAN);
    assert_eq!(status(&mut host), TRAN);
    for (index, argument) in [(32, 0), (33, 9), (38, 0)] {
        host.command(index, argument).unwrap();
    }
    assert_eq!(status(&mut host), WP_ERASE_SKIP | TRAN);
    assert_eq!(stored(&host, 0), [0; 512]);
}

#[test]
fn the_erase_sequence_must_be_in_order() {
    let mut host = ready(|_| ());
    for block in 0..4 {
        host.command(24, block).unwrap();
        host.write(&[1; 512]).unwrap();
        host.wait();
    }
    assert_eq!(host.command(33, 2), Some(ERASE_SEQ_ERROR | TRAN));
    assert_eq!(host.command(38, 0), Some(ERASE_SEQ_ERROR | TRAN));
    host.command(32, 2).unwrap();
    host.command(33, 1).unwrap();
    assert_eq!(host.command(38, 0), Some(ERASE_PARAM | TRAN));
    host.command(32, 1).unwrap();
    assert_eq!(host.command(16, 512), Some(ERASE_RESET | TRAN));
    host.command(32, 1).unwrap();
    host.command(33, 2).unwrap();
    assert_eq!(host.command(38, 0), Some(TRAN));
    assert_eq!(status(&mut host), PRG);
    assert!(host.wait());
    let blocks: Vec<u8> = (0..4).map(|block| stored(&host, block)[0]).collect();
    assert_eq!(blocks, [1, 0, 0, 1]);
}

#[test]
fn an_unreadable_block_is_not_sent_and_the_status_reports_it() {
    for index in [17, 18] {
        let mut card = controller::card(1);
        card.make_unreadable(6);
        let mut host = Controller::new(card, Options::default(), 25_000_000);
        host.start(Width::Four);
        assert_eq!(host.command(index, 6), Some(TRAN));
        assert!(!host.read(&mut [0; 512]));
        assert_eq!(host.command(12, 0), Some(CARD_ECC_FAILED | DATA));
        assert_eq!(status(&mut host), TRAN);
    }
}

#[test]
fn cmd0_loses_a_stream_and_restores_one_line_and_default_speed() {
    let mut host = host(|_| ());
    host.start(Width::Four);
    host.command(25, 0).unwrap();
    host.write(&[1; 512]).unwrap();
    host.command(0, 0);
    host.set_width(Width::One);
    host.start(Width::One);
    assert_eq!(stored(&host, 0), [0; 512]);
    host.app(1, 51, 0).unwrap();
    let mut scr = [0; 8];
    assert!(host.read(&mut scr));
    assert_eq!(scr, [2, 0x35, 0, 0, 0, 0, 0, 0]);
}

/// Sends CMD6; returns the current in mA, the supported functions of group 1 and the selected function of
/// this group.
fn switch(host: &mut Controller, argument: u32) -> (u16, u16, u8) {
    host.command(6, argument).unwrap();
    let mut status = [0; 64];
    assert!(host.read(&mut status));
    assert_eq!(status[17], 0);
    let word = |at: usize| u16::from_be_bytes([status[at], status[at + 1]]);
    (word(0), word(12), status[16] & 0xF)
}

#[test]
fn high_speed_is_queried_selected_and_left() {
    let mut host = host(|_| ());
    host.start(Width::Four);
    assert_eq!(switch(&mut host, 0x00FF_FFFF), (100, 0x8003, 0));
    assert_eq!(switch(&mut host, 0x00FF_FFF1), (200, 0x8003, 1));
    host.card.set_clock_hz(50_000_000).unwrap();
    assert_eq!(host.command(13, RCA), None, "it was only queried");
    host.card.set_clock_hz(25_000_000).unwrap();
    // If CMD6 selects any unsupported function, nothing changes.
    assert_eq!(switch(&mut host, 0x80FF_FFF2), (0, 0x8003, 0xF));
    assert_eq!(switch(&mut host, 0x80FF_FF11), (0, 0x8003, 1));
    assert_eq!(switch(&mut host, 0x00FF_FFFF), (100, 0x8003, 0));

    assert_eq!(switch(&mut host, 0x80FF_FFF1), (200, 0x8003, 1));
    host.card.set_clock_hz(50_000_000).unwrap();
    host.command(24, 3).unwrap();
    assert_eq!(host.write(&[4; 512]), Some(CrcStatus::Positive));
    host.wait();
    assert_eq!(switch(&mut host, 0x00FF_FFFF), (200, 0x8003, 1));
    host.command(7, 0);
    let csd = host.send(Command::new(9, RCA)).register().unwrap();
    assert_eq!(csd[3], 0x5A);
    host.command(7, RCA).unwrap();
    assert_eq!(switch(&mut host, 0x80FF_FFF0), (100, 0x8003, 0));
    assert_eq!(host.command(13, RCA), None, "the clock is too high again");
}

#[test]
fn options_out_of_range_are_rejected_by_name() {
    let profile = Profile::named("class10-16g").unwrap();
    let refused = |options, clock_hz| {
        let card = cardiograph_sim_card::Card::new(&profile, cardiograph_sim_card::Seed::new(1));
        let made = SdBusCard::new(card, options, Clock::default(), clock_hz);
        made.err().map(|error| error.field)
    };
    let with = |ncr_clocks, nac_clocks| Options {
        ncr_clocks,
        nac_clocks,
        ..Options::default()
    };
    assert_eq!(refused(with(1, 2), 400_000), Some("ncr_clocks"));
    assert_eq!(refused(with(65, 2), 400_000), Some("ncr_clocks"));
    assert_eq!(refused(with(64, 1), 400_000), Some("nac_clocks"));
    assert_eq!(refused(with(64, 255), 999), Some("clock_hz"));
    assert_eq!(refused(with(64, 255), 50_000_001), Some("clock_hz"));
}

#[test]
fn without_power_nothing_is_received_and_blocks_in_flight_are_old() {
    let mut host = ready(|_| ());
    host.command(24, 7).unwrap();
    assert_eq!(host.write(&[1; 512]), Some(CrcStatus::Positive));
    host.card.power_cut();
    assert_eq!(host.command(13, RCA), None);
    assert!(!host.card.is_busy());
    host.card.power_on();
    host.card.set_width(Width::One);
    assert_eq!(host.command(55, 0), None, "74 clocks are required first");
    host.start(Width::One);
    assert_eq!(stored(&host, 7), [0; 512]);
}
