//! Both drivers on byte-addressed and block-addressed cards, including timeouts.

use super::*;
use cardiograph_sim_card::{Profile, Seed};

/// Number of blocks of a small card.
const BLOCKS: u32 = (64 << 20) / 512;

fn device(profile: &Profile, board: &Board) -> CardDevice {
    let card = Card::new(profile, Seed::new(1));
    CardDevice::new(card, board, Clock::default()).unwrap()
}

fn profile(capacity_bytes: u64) -> Profile {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = capacity_bytes;
    profile
}

fn blocks(seed: u32, count: usize) -> Vec<Block> {
    let block = |number: usize| {
        let mut block = Block::new();
        let words = block.contents.as_chunks_mut::<4>().0;
        for (at, word) in words.iter_mut().enumerate() {
            *word = (seed ^ (number << 16 | at) as u32).to_le_bytes();
        }
        block
    };
    (0..count).map(block).collect()
}

fn assert_holds(device: &CardDevice, start: u32, expected: &[Block]) {
    let mut back = blocks(0, expected.len());
    device.read(start, &mut back).unwrap();
    let is_same = back
        .iter()
        .zip(expected)
        .all(|(a, b)| a.contents == b.contents);
    assert!(is_same, "from block {start}");
}

/// An SD bus of each width and speed, and SPI.
fn every_bus() -> Vec<Board> {
    let sd = Board::named("lpc43xx").unwrap();
    let mut boards = vec![Board::named("esp32-s3-spi").unwrap()];
    for width in [1, 4] {
        for clock_hz in [400_000, 25_000_000, 50_000_000] {
            for checks_status in [true, false] {
                let mut board = sd.clone();
                board.bus = Bus::Sd(Sd {
                    clock_hz,
                    width,
                    ncr_clocks: 64,
                });
                board.driver.checks_status = checks_status;
                boards.push(board);
            }
        }
    }
    boards
}

#[test]
fn bursts_and_single_blocks_read_back_identical() {
    for board in every_bus() {
        // The smaller card is byte-addressed, the larger one block-addressed.
        for capacity_bytes in [64 << 20, 4 << 30] {
            let device = device(&profile(capacity_bytes), &board);
            assert_eq!(
                device.num_blocks().unwrap(),
                BlockCount((capacity_bytes / 512) as u32)
            );
            let writes = [(0, 1), (1, 2), (100, 300), (130, 1), (BLOCKS - 1, 1)];
            for (seed, (start, count)) in (1..).zip(writes) {
                let data = blocks(seed, count);
                device.write(start, &data).unwrap();
                assert_holds(&device, start, &data);
            }
            assert_holds(&device, 131, &blocks(3, 300)[31..]);
        }
    }
}

#[test]
fn four_data_lines_and_a_faster_clock_shorten_reads() {
    let ns = |width, clock_hz| {
        let mut board = Board::named("lpc43xx").unwrap();
        board.bus = Bus::Sd(Sd {
            clock_hz,
            width,
            ncr_clocks: 2,
        });
        let device = device(&profile(64 << 20), &board);
        let start_ns = device.clock.now_ns();
        device.read(0, &mut blocks(0, 64)).unwrap();
        device.clock.now_ns() - start_ns
    };
    // Compare the clocks per block on one data line and on four.
    assert_eq!(
        ns(1, 25_000_000) - ns(4, 25_000_000),
        64 * (4114 - 1042) * 40
    );
    assert!(ns(4, 25_000_000) - ns(4, 50_000_000) > 64 * 1042 * 19);
}

#[test]
fn a_block_past_the_end_is_rejected_and_the_card_stays_usable() {
    for board in every_bus() {
        let device = device(&profile(64 << 20), &board);
        for count in [1, 2] {
            assert!(device.write(BLOCKS, &blocks(1, count)).is_err());
            assert!(device.read(BLOCKS, &mut blocks(1, count)).is_err());
            let data = blocks(2, 3);
            device.write(7, &data).unwrap();
            assert_holds(&device, 7, &data);
        }
    }
}

#[test]
fn a_timeout_in_a_burst_is_counted_and_no_data_is_lost() {
    let mut profile = profile(64 << 20);
    // A merge takes 64 * 20 ms in one stall.
    profile.flash.program_us = vec![20_000];
    profile.controller.stall_limit_us = u32::MAX;
    for name in ["lpc43xx", "esp32-s3-spi"] {
        let device = device(&profile, &Board::named(name).unwrap());
        // Writes page by page from the end, so that every page goes to a log block; each log block holds
        // pages of one unit only.
        let start = |i: u32| BLOCKS - 8 * (i + 1);
        let mut written = 0;
        while device.timeouts() < 3 {
            device.write(start(written), &blocks(written, 8)).unwrap();
            written += 1;
            assert!(written < BLOCKS / 8, "no stall before the card was full");
        }
        for i in 0..written {
            assert_holds(&device, start(i), &blocks(i, 8));
        }
    }
}

#[test]
fn a_reader_hangs_when_a_run_becomes_too_long_and_a_gap_or_a_read_ends_the_run() {
    let mut board = Board::named("linux-reader-hangs").unwrap();
    let hang = board.driver.hang.as_mut().unwrap();
    hang.run_blocks_max = 480;
    let device = device(&profile(64 << 20), &board);
    let data = blocks(1, 480);
    let hangs_after = |start: u32, count: usize| {
        let before_ns = device.clock.now_ns();
        device.write(start, &data[..count]).unwrap();
        let seconds = (device.clock.now_ns() - before_ns) / 1_000_000_000;
        (device.timeouts(), seconds)
    };
    // A run of just this length works; one more block does not, and begins the next run.
    assert_eq!(hangs_after(1000, 480), (0, 0));
    assert_eq!(hangs_after(1480, 1), (1, 30));
    assert_eq!(hangs_after(1481, 479), (1, 0));
    assert_eq!(hangs_after(1960, 1), (2, 30));
    // Elsewhere on the card.
    assert_eq!(hangs_after(5000, 480), (2, 0));
    assert_eq!(hangs_after(5481, 480), (2, 0));
    device.read(0, &mut blocks(0, 1)).unwrap();
    assert_eq!(hangs_after(5961, 480), (2, 0));
    // Within one call.
    device.write(20_000, &blocks(2, 1000)).unwrap();
    assert_eq!(device.timeouts(), 4);
    assert_holds(&device, 20_000, &blocks(2, 1000));
}
