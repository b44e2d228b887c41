//! Responses of the card over SPI, byte by byte, to correct and wrong hosts.

use cardiograph_sim_card::wire::{Kind, Options, SpiCard, crc};
use cardiograph_sim_card::{Block, Card, Clock, Profile, Seed};

const BLOCKS: u32 = (64 << 20) / 512;

/// A host that sends the given bytes.
struct Host {
    card: SpiCard,
    clock: Clock,
}

fn host(change: impl FnOnce(&mut Options)) -> Host {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 64 << 20;
    let mut options = Options::default();
    change(&mut options);
    let clock = Clock::default();
    let card = Card::new(&profile, Seed::new(1));
    let card = SpiCard::new(card, options, clock.clone(), 25_000_000).unwrap();
    Host { card, clock }
}

/// Returns a host whose card is initialised.
fn ready(change: impl FnOnce(&mut Options)) -> Host {
    let mut host = host(change);
    host.power_up();
    assert_eq!(host.command(0, 0), 1);
    host.command(8, 0x1AA);
    host.read(4);
    host.initialise(1 << 30);
    host
}

impl Host {
    fn power_up(&mut self) {
        self.card.select(false);
        self.card.write(&[0xFF; 10]);
        self.card.select(true);
    }

    fn initialise(&mut self, argument: u32) {
        self.app(41, argument);
        self.clock.advance_ns(1_000_000_000);
        assert_eq!(self.app(41, argument), 0);
    }

    fn read(&mut self, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| self.card.exchange(0xFF)).collect()
    }

    fn send(&mut self, index: u8, argument: u32) {
        let mut frame = [0x40 | index, 0, 0, 0, 0, 0];
        frame[1..5].copy_from_slice(&argument.to_be_bytes());
        frame[5] = crc::crc7(&frame[..5]) << 1 | 1;
        self.card.write(&frame);
    }

    /// Reads until a byte is an R1 and returns this byte; 0xFF if the card sends no R1.
    fn r1(&mut self) -> u8 {
        let mut bytes = (0..9).map(|_| self.card.exchange(0xFF));
        bytes.find(|byte| byte & 0x80 == 0).unwrap_or(0xFF)
    }

    fn command(&mut self, index: u8, argument: u32) -> u8 {
        self.send(index, argument);
        self.r1()
    }

    fn app(&mut self, index: u8, argument: u32) -> u8 {
        self.command(55, 0);
        self.command(index, argument)
    }

    /// Sends CMD13; returns both bytes of R2.
    fn status(&mut self) -> (u8, u8) {
        (self.command(13, 0), self.card.exchange(0xFF))
    }

    fn send_block(&mut self, token: u8, data: &Block, sum: u16) {
        self.card.write(&[token]);
        self.card.write(data);
        self.card.write(&sum.to_be_bytes());
    }

    /// Sends a block with its token; returns the data response.
    fn block(&mut self, token: u8, data: &Block) -> u8 {
        self.send_block(token, data, crc::crc16(data));
        self.card.exchange(0xFF) & 0x1F
    }

    /// Returns the number of busy bytes until the card is ready.
    fn wait(&mut self) -> usize {
        let mut bytes = (0..1_000_000).map(|_| self.card.exchange(0xFF));
        bytes.position(|byte| byte == 0xFF).unwrap()
    }

    /// Returns the first byte that is not filler.
    fn token(&mut self) -> u8 {
        let mut bytes = (0..1_000_000).map(|_| self.card.exchange(0xFF));
        bytes.find(|&byte| byte != 0xFF).unwrap_or(0xFF)
    }

    fn stored(&self, block: u64) -> Block {
        let mut data = [[0; 512]];
        self.card.card().load(block, &mut data);
        data[0]
    }
}

const START: u8 = 0xFE;
const START_OF_MANY: u8 = 0xFC;
const STOP: u8 = 0xFD;
const ACCEPTED: u8 = 0b00101;
const CRC_ERROR: u8 = 0b01011;
const WRITE_ERROR: u8 = 0b01101;

#[test]
fn nothing_is_received_before_74_clocks_with_chip_select_high() {
    let mut host = host(|_| ());
    host.card.select(true);
    // Power-up clocks with chip select low do not count.
    host.read(20);
    assert_eq!(host.command(0, 0), 0xFF);
    host.card.select(false);
    host.read(9);
    host.card.select(true);
    assert_eq!(host.command(0, 0), 0xFF);
    host.card.select(false);
    host.read(1);
    host.card.select(true);
    assert_eq!(host.command(0, 0), 1);
}

#[test]
fn a_card_in_sd_mode_accepts_only_a_valid_cmd0() {
    let mut host = host(|_| ());
    host.power_up();
    assert_eq!(host.command(8, 0x1AA), 0xFF);
    host.card.write(&[0x40, 0, 0, 0, 0, 0x97]);
    assert_eq!(host.r1(), 0xFF);
    assert_eq!(host.command(0, 0), 1);
}

#[test]
fn before_initialisation_a_card_accepts_few_commands() {
    let mut host = host(|_| ());
    host.power_up();
    host.command(0, 0);
    for index in [9, 10, 13, 16, 17, 18, 24, 25, 32, 33, 38] {
        assert_eq!(host.command(index, 0), 0b101, "CMD{index}");
    }
    assert_eq!(host.command(58, 0), 1);
    assert_eq!(host.read(4), [0x00, 0xFF, 0x80, 0x00]);
    assert_eq!(host.command(59, 0), 1);
}

#[test]
fn initialisation_takes_its_time_and_shows_in_the_ocr() {
    let mut host = host(|options| options.init_us = 5000);
    host.power_up();
    host.command(0, 0);
    assert_eq!(host.command(8, 0x1AA), 1);
    assert_eq!(host.read(4), [0, 0, 1, 0xAA]);
    let start_ns = host.clock.now_ns();
    while host.app(41, 1 << 30) == 1 {}
    let took_us = (host.clock.now_ns() - start_ns) / 1000;
    assert!((5000..5050).contains(&took_us), "{took_us} us");
    assert_eq!(host.command(58, 0), 0);
    assert_eq!(host.read(4), [0xC0, 0xFF, 0x80, 0x00]);
}

#[test]
fn a_high_capacity_card_waits_for_a_host_that_supports_it() {
    let mut host = host(|_| ());
    host.power_up();
    host.command(0, 0);
    // The card does not become ready without CMD8, nor without the high-capacity bit of ACMD41.
    for cmd8 in [false, true] {
        if cmd8 {
            host.command(8, 0x1AA);
            host.read(4);
        }
        let argument = if cmd8 { 0 } else { 1 << 30 };
        for _ in 0..5 {
            assert_eq!(host.app(41, argument), 1);
            host.clock.advance_ns(1_000_000_000);
        }
    }
    host.initialise(1 << 30);
}

#[test]
fn version_1_rejects_cmd8_and_others_echo_it() {
    let mut old = host(|options| options.kind = Kind::Version1);
    old.power_up();
    old.command(0, 0);
    assert_eq!(old.command(8, 0x1AA), 0b101);
    old.initialise(0);
    let mut new = host(|options| options.kind = Kind::Standard);
    new.power_up();
    new.command(0, 0);
    new.command(8, 0x25A);
    // An unsupported voltage is not echoed.
    assert_eq!(new.read(4), [0, 0, 0, 0x5A]);
    new.initialise(0);
    new.command(58, 0);
    assert_eq!(new.read(1), [0x80]);
}

#[test]
fn ncr_filler_bytes_precede_r1_and_cmd12_has_an_additional_stuff_byte() {
    for ncr in 0..=8 {
        let mut host = ready(|options| options.ncr_bytes = ncr);
        host.send(16, 512);
        let bytes = host.read(10);
        assert_eq!(bytes.iter().position(|&byte| byte == 0), Some(ncr.into()));
        host.command(18, 0);
        assert_eq!(host.token(), START);
        host.send(12, 0);
        let bytes = host.read(11);
        let first = bytes.iter().position(|&byte| byte == 0);
        assert_eq!(first, Some(usize::from(ncr) + 1));
    }
}

#[test]
fn command_checksums_are_checked_when_on_and_always_for_cmd0_and_cmd8() {
    let mut host = ready(|_| ());
    let broken = [0x50, 0, 0, 2, 0, 0x01];
    host.card.write(&broken);
    assert_eq!(host.r1(), 0);
    host.card.write(&[0x48, 0, 0, 1, 0xAA, 0x01]);
    assert_eq!(host.r1(), 0b1000);
    assert_eq!(host.command(59, 1), 0);
    host.card.write(&broken);
    assert_eq!(host.r1(), 0b1000);
    assert_eq!(host.command(59, 0), 0);
    host.card.write(&broken);
    assert_eq!(host.r1(), 0);
}

#[test]
fn block_checksums_are_checked_when_on() {
    let mut host = ready(|_| ());
    host.command(24, 5);
    host.send_block(START, &[1; 512], 0xFFFF);
    assert_eq!(host.read(1)[0] & 0x1F, ACCEPTED);
    assert!(host.wait() > 0);
    host.command(59, 1);
    host.command(24, 5);
    host.send_block(START, &[2; 512], 0xFFFF);
    assert_eq!(host.read(1)[0] & 0x1F, CRC_ERROR);
    assert_eq!(host.wait(), 0);
    assert_eq!(host.stored(5), [1; 512]);
}

#[test]
fn a_written_block_is_read_back() {
    for kind in [Kind::Version1, Kind::Standard, Kind::High] {
        let mut host = ready(|options| options.kind = kind);
        let byte = if kind == Kind::High { 9 } else { 9 * 512 };
        assert_eq!(host.command(24, byte), 0);
        // Filler bytes between the response and the token have no effect.
        host.read(3);
        assert_eq!(host.block(START, &[7; 512]), ACCEPTED);
        host.wait();
        assert_eq!(host.stored(9), [7; 512]);
        assert_eq!(host.command(17, byte), 0);
        assert_eq!(host.token(), START);
        let data = host.read(514);
        assert_eq!(data[..512], [7; 512]);
        assert_eq!(data[512..], crc::crc16(&[7; 512]).to_be_bytes());
        assert_eq!(host.status(), (0, 0));
    }
}

#[test]
fn a_stream_is_durable_when_busy_after_its_stop_token_has_ended() {
    let mut host = ready(|_| ());
    assert_eq!(host.command(25, 0), 0);
    for value in 1..=10 {
        assert_eq!(host.block(START_OF_MANY, &[value; 512]), ACCEPTED);
        host.wait();
    }
    // The first page is complete and in flash; the second is only in RAM.
    assert_eq!((host.stored(7), host.stored(8)), ([8; 512], [0; 512]));
    host.card.write(&[STOP]);
    // The undefined byte after the stop token reads as ready, although busy follows.
    assert_eq!(host.read(2), [0xFF, 0x00]);
    assert!(host.wait() > 0);
    assert_eq!(host.stored(9), [10; 512]);
    assert_eq!(host.app(22, 0), 0);
    assert_eq!(host.token(), START);
    assert_eq!(host.read(4), [0, 0, 0, 10]);
}

#[test]
fn cmd12_ends_a_stream_too_and_cmd0_loses_it() {
    let mut host = ready(|_| ());
    host.command(25, 0);
    host.block(START_OF_MANY, &[1; 512]);
    host.wait();
    assert_eq!(host.command(12, 0), 0);
    assert!(host.wait() > 0);
    assert_eq!(host.stored(0), [1; 512]);
    host.command(25, 1);
    host.block(START_OF_MANY, &[2; 512]);
    host.wait();
    assert_eq!(host.command(0, 0), 1);
    assert_eq!(host.stored(1), [0; 512]);
}

#[test]
fn a_stream_accepts_no_block_after_a_corrupted_one() {
    let mut host = ready(|_| ());
    host.command(59, 1);
    host.command(25, 0);
    host.block(START_OF_MANY, &[1; 512]);
    host.wait();
    host.send_block(START_OF_MANY, &[2; 512], 0);
    assert_eq!(host.read(1)[0] & 0x1F, CRC_ERROR);
    assert_eq!(host.block(START_OF_MANY, &[3; 512]), WRITE_ERROR);
    assert_eq!(host.command(12, 0), 0);
    host.wait();
    assert_eq!(host.app(22, 0), 0);
    host.token();
    assert_eq!(host.read(4), [0, 0, 0, 1]);
}

#[test]
fn a_busy_card_ignores_commands_selected_or_not() {
    let mut host = ready(|_| ());
    host.command(24, 0);
    host.block(START, &[1; 512]);
    host.send(17, 0);
    assert_eq!(host.read(9), [0; 9]);
    host.card.select(false);
    assert_eq!(host.read(2), [0xFF; 2]);
    host.card.select(true);
    assert_eq!(host.read(1), [0]);
    let left_ns = host.card.busy_until_ns() - host.clock.now_ns();
    host.clock.advance_ns(left_ns);
    assert_eq!(host.status(), (0, 0));
}

#[test]
fn the_command_after_a_stop_token_is_lost_if_only_one_byte_is_polled() {
    let mut host = ready(|_| ());
    host.command(25, 0);
    host.block(START_OF_MANY, &[1; 512]);
    host.wait();
    host.card.write(&[STOP]);
    assert_eq!(host.read(1), [0xFF]);
    // The busy signal looks like an R1 without errors.
    assert_eq!(host.command(17, 0), 0);
    host.wait();
    assert_eq!(host.read(2000), vec![0xFF; 2000]);
}

#[test]
fn addresses_past_the_end_are_rejected_and_transfers_end_there() {
    let mut host = ready(|_| ());
    for index in [17, 18, 24, 25, 32] {
        assert_eq!(host.command(index, BLOCKS), 0x40, "CMD{index}");
        assert_eq!(host.status(), (0, 0x80));
        assert_eq!(host.status(), (0, 0), "reading the status clears it");
    }
    assert_eq!(host.command(18, BLOCKS - 1), 0);
    assert_eq!(host.token(), START);
    host.read(514);
    assert_eq!(host.token(), 0b1000);
    assert_eq!(host.command(12, 0), 0);
    assert_eq!(host.status(), (0, 0x80));
    host.command(25, BLOCKS - 1);
    assert_eq!(host.block(START_OF_MANY, &[1; 512]), ACCEPTED);
    host.wait();
    assert_eq!(host.block(START_OF_MANY, &[1; 512]), WRITE_ERROR);
    host.card.write(&[STOP]);
    host.read(1);
    host.wait();
    assert_eq!(host.status(), (0, 0x80));
}

#[test]
fn standard_cards_read_partial_blocks_and_write_whole_ones() {
    let mut host = ready(|options| options.kind = Kind::Standard);
    let data: Block = std::array::from_fn(|i| i as u8);
    host.command(24, 512);
    host.block(START, &data);
    host.wait();
    assert_eq!(host.command(16, 0), 0x40);
    assert_eq!(host.command(16, 513), 0x40);
    assert_eq!(host.command(16, 16), 0);
    assert_eq!(host.command(17, 512 + 33), 0);
    assert_eq!(host.token(), START);
    assert_eq!(host.read(16), data[33..49]);
    let sum = host.read(2);
    assert_eq!(sum, crc::crc16(&data[33..49]).to_be_bytes());
    // Reads must not cross block boundaries of the card, and writes must be whole blocks.
    assert_eq!(host.command(17, 512 - 8), 0b10_0000);
    assert_eq!(host.command(24, 512), 0x40);
    host.command(16, 512);
    assert_eq!(host.command(24, 513), 0b10_0000);
    assert_eq!(host.command(24, 0), 0);
}

#[test]
fn a_write_protected_card_reports_it_and_changes_nothing() {
    let mut host = ready(|options| options.write_protected = true);
    host.command(24, 0);
    assert_eq!(host.block(START, &[1; 512]), WRITE_ERROR);
    assert_eq!(host.status(), (0, 1 << 5));
    host.command(32, 0);
    host.command(33, 10);
    assert_eq!(host.command(38, 0), 0);
    assert_eq!(host.status(), (0, 1 << 1));
    assert_eq!(host.stored(0), [0; 512]);
}

#[test]
fn the_erase_sequence_must_be_in_order() {
    let mut host = ready(|_| ());
    for block in 0..4 {
        host.command(24, block);
        host.block(START, &[1; 512]);
        host.wait();
    }
    assert_eq!(host.command(33, 2), 0b1_0000);
    assert_eq!(host.command(38, 0), 0b1_0000);
    host.command(32, 1);
    host.command(33, 2);
    // Any other command aborts the erase sequence, which the card reports once.
    assert_eq!(host.command(16, 512), 0b10);
    assert_eq!(host.command(38, 0), 0b1_0000);
    host.command(32, 2);
    host.command(33, 1);
    host.command(38, 0);
    assert_eq!(host.status(), (0, 1 << 6));
    host.command(32, 1);
    host.command(33, 2);
    assert_eq!(host.command(38, 0), 0);
    assert!(host.wait() > 0);
    let ones: Vec<u8> = (0..4).map(|block| host.stored(block)[0]).collect();
    assert_eq!(ones, [1, 0, 0, 1]);
}

#[test]
fn unknown_commands_are_illegal_and_so_is_cmd12_outside_a_transfer() {
    let mut host = ready(|_| ());
    for index in [1, 7, 27, 28, 42, 56, 63] {
        assert_eq!(host.command(index, 0), 0b100, "CMD{index}");
    }
    assert_eq!(host.command(12, 0), 0b100);
    // If CMD55 precedes a number that is not an application command, the ordinary command with that
    // number runs.
    assert_eq!(host.app(16, 512), 0);
    // CMD55 applies only to the next command.
    host.command(55, 0);
    host.command(16, 512);
    assert_eq!(host.command(41, 0), 0b100);
}

/// Sends CMD6; returns the status data structure (table 4-13).
fn switch(host: &mut Host, argument: u32) -> Vec<u8> {
    assert_eq!(host.command(6, argument), 0);
    assert_eq!(host.token(), START);
    let status = host.read(64);
    let sum = host.read(2);
    assert_eq!(crc::crc16(&status).to_be_bytes(), sum[..]);
    // Nothing follows.
    assert_eq!(host.read(8), [0xFF; 8]);
    status
}

/// Returns the status data structure as table 4-13 defines it, for a card with high speed as its only function besides
/// the defaults: maximum current, supported functions of groups 6 to 1, selected functions of groups 6 to 1.
fn status_of(current_ma: u16, selected: [u8; 3]) -> Vec<u8> {
    let mut status = vec![0; 64];
    status[..2].copy_from_slice(&current_ma.to_be_bytes());
    status[2..12].copy_from_slice(&[0x80, 1, 0x80, 1, 0x80, 1, 0x80, 1, 0x80, 1]);
    status[12..14].copy_from_slice(&[0x80, 3]);
    status[14..17].copy_from_slice(&selected);
    status
}

#[test]
fn cmd6_checks_and_switches_functions_on_cards_of_all_versions() {
    for kind in [Kind::Version1, Kind::Standard, Kind::High] {
        let mut host = ready(|options| options.kind = kind);
        assert_eq!(host.command(9, 0), 0);
        assert_eq!(host.token(), START);
        let before = host.read(18);
        assert_eq!(before[3], 0x32);
        assert_eq!(u16::from_be_bytes([before[4], before[5]]) >> 4, 0x535);
        // Mode 0 checks only.
        assert_eq!(switch(&mut host, 0x00FF_FFFF), status_of(100, [0; 3]));
        assert_eq!(switch(&mut host, 0x00FF_FFF1), status_of(200, [0, 0, 1]));
        assert_eq!(switch(&mut host, 0x00FF_FFFF), status_of(100, [0; 3]));
        // An unsupported function shows as 15 with a current of 0, and nothing changes.
        assert_eq!(switch(&mut host, 0x80FF_FFF2), status_of(0, [0, 0, 0xF]));
        assert_eq!(switch(&mut host, 0x80FF_FF11), status_of(0, [0, 0, 0xF1]));
        assert_eq!(switch(&mut host, 0x801F_FFF1), status_of(0, [0xF0, 0, 1]));
        assert_eq!(switch(&mut host, 0x00FF_FFFF), status_of(100, [0; 3]));
        // Mode 1 switches; the CSD shows the speed; the card works; the default can be selected again.
        assert_eq!(switch(&mut host, 0x80FF_FFF1), status_of(200, [0, 0, 1]));
        assert_eq!(switch(&mut host, 0x00FF_FFFF), status_of(200, [0, 0, 1]));
        assert_eq!(host.command(24, 0), 0);
        assert_eq!(host.block(START, &[6; 512]), ACCEPTED);
        host.wait();
        assert_eq!(host.stored(0), [6; 512]);
        host.command(9, 0);
        assert_eq!((host.token(), host.read(18)[3]), (START, 0x5A));
        assert_eq!(switch(&mut host, 0x80FF_FFF0), status_of(100, [0; 3]));
        // A reset selects the default.
        switch(&mut host, 0x80FF_FFF1);
        assert_eq!(host.command(0, 0), 1);
        assert_eq!(host.command(6, 0x00FF_FFFF), 0b101, "not ready");
        host.command(8, 0x1AA);
        host.read(4);
        host.initialise(1 << 30);
        assert_eq!(switch(&mut host, 0x00FF_FFFF), status_of(100, [0; 3]));
    }
}

#[test]
fn during_a_read_only_a_stop_or_a_reset_is_accepted() {
    let mut host = ready(|_| ());
    host.command(24, 0);
    assert_eq!(host.command(17, 0), 0b100);
    assert_eq!(host.status(), (0, 0));
    assert_eq!(host.block(START, &[1; 512]), ACCEPTED);
    host.wait();
    host.command(18, 0);
    assert_eq!(host.token(), START);
    assert_eq!(host.command(12, 0), 0);
    assert_eq!(host.read(2000), vec![0xFF; 2000]);
}

#[test]
fn deasserting_chip_select_discards_an_incomplete_command() {
    let mut host = ready(|_| ());
    host.card.write(&[0x51, 0, 0]);
    host.card.select(false);
    host.card.select(true);
    assert_eq!(host.status(), (0, 0));
}

#[test]
fn options_out_of_range_are_rejected_by_name() {
    let refused = |change: fn(&mut Options), blocks_bytes: u64, clock_hz| {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.capacity_bytes = blocks_bytes;
        let mut options = Options::default();
        change(&mut options);
        let card = Card::new(&profile, Seed::new(1));
        match SpiCard::new(card, options, Clock::default(), clock_hz) {
            Ok(_) => String::from("accepted"),
            Err(error) => error.to_string(),
        }
    };
    let size = 64 << 20;
    assert_eq!(refused(|_| (), size, 1_000_000), "accepted");
    assert_eq!(
        refused(|_| (), size, 0),
        "`clock_hz` must be 1000 to 50000000"
    );
    assert_eq!(
        refused(|options| options.ncr_bytes = 9, size, 1_000_000),
        "`ncr_bytes` must be 0 to 8"
    );
    assert!(refused(|options| options.speed_class = 5, size, 1_000_000).contains("speed_class"));
    assert!(refused(|options| options.au_bytes = 5, size, 1_000_000).contains("au_bytes"));
    assert!(refused(|options| options.kind = Kind::Standard, 4 << 30, 1_000_000).contains("kind"));
}
