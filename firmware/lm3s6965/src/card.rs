//! Test of the card driver: a stream with a read in the middle, a single block, and reading all of it back.

use crate::ssi::{self, BUS_HZ_MAX, Select, Ssi};
use crate::time::{Delay, block_on, idle_us, now_us, poll_times};
use cardiograph_card::{Block, Card, SetClock};
use cardiograph_qemu_card::{Behaviour, QemuBus, STOP_MS};
use core::mem::{size_of, size_of_val};
use cortex_m_semihosting::hprintln;

/// First block that the test writes, after the file system. `xtask/src/firmware.rs` checks the same blocks.
const START: u32 = 80 << 10;
/// Blocks of the stream; the test writes one more as a single block.
const BLOCKS: u32 = 512;
/// Blocks between stalls.
const STALL_BLOCKS: u32 = 128;
/// Duration of a stall, in ms.
const STALL_MS: u32 = 100;
static BEHAVIOUR: Behaviour = Behaviour {
    now_us,
    stall_blocks: STALL_BLOCKS,
    stall_ms: STALL_MS,
    is_write_protected: false,
};
/// Blocks per read.
const READ_BLOCKS: usize = 8;
const _: () = assert!(BLOCKS.is_multiple_of(READ_BLOCKS as u32));

/// Sets the bus clock.
pub struct Clock;

impl SetClock<QemuBus<Ssi>> for Clock {
    fn set_clock_hz(&mut self, bus: &mut QemuBus<Ssi>, hz: u32) {
        bus.bus().set_clock_hz(hz);
    }
}

/// Returns the driver for the card on this board.
pub fn driver() -> TestCard {
    let (bus, select) = ssi::take();
    Card::new(
        QemuBus::new(bus, &BEHAVIOUR),
        select,
        Delay,
        Clock,
        BUS_HZ_MAX,
    )
}

/// Writes and reads; panics on any error or difference.
pub fn test(card: &mut TestCard) {
    if let Err(error) = block_on(card.acquire()) {
        panic!("acquire: {error}");
    }
    hprintln!("ok: acquired a card of {} blocks", card.blocks());
    print_sizes(card);
    test_stream(card);
    test_read(card);
    let written = test_dropped_ends(card);
    hprintln!("written: {} blocks", written);
}

/// The card on this board.
pub type TestCard = Card<QemuBus<Ssi>, Select, Delay, Clock>;

fn print_sizes(card: &mut TestCard) {
    let mut blocks = [[0; 512]];
    let acquire = size_of_val(&card.acquire());
    let push = size_of_val(&card.push(&blocks[0]));
    let end = size_of_val(&card.end());
    let read = size_of_val(&card.read(START, &mut blocks));
    hprintln!(
        "driver: {} B; futures: acquire {} B, push {} B, end {} B, read {} B",
        size_of::<TestCard>(),
        acquire,
        push,
        end,
        read
    );
}

fn test_stream(card: &mut TestCard) {
    let (began_us, began_idle_us) = (now_us(), idle_us());
    block_on(stream(card));
    let took_ms = (now_us() - began_us) as u32 / 1000;
    let idle_us = idle_us() - began_idle_us;
    let stalled_ms = BLOCKS / STALL_BLOCKS * STALL_MS;
    hprintln!(
        "{} blocks in {} ms; {} ms of stalls, {} us idle",
        BLOCKS,
        took_ms,
        stalled_ms,
        idle_us
    );
    assert!(took_ms >= stalled_ms, "the driver did not wait for a stall");
    // The rest is spent polling the card, at 15 million instructions per second.
    assert!(
        idle_us >= stalled_ms * 750,
        "other tasks could not run during stalls"
    );
    hprintln!("ok: streamed blocks while other tasks could run during stalls");
}

async fn stream(card: &mut TestCard) {
    card.begin(START, BLOCKS).await.unwrap();
    for index in 0..BLOCKS {
        card.push(&block(index)).await.unwrap();
        // The driver interrupts the stream for a read and continues it.
        if index == BLOCKS / 3 {
            let mut read = [[0; 512]];
            card.read(START + index, &mut read).await.unwrap();
            assert!(read[0] == block(index), "the block written last differs");
        }
    }
    card.end().await.unwrap();
    let alone = [block(BLOCKS)];
    card.write(START + BLOCKS, &alone).await.unwrap();
}

fn test_read(card: &mut TestCard) {
    let mut blocks = [[0; 512]; READ_BLOCKS];
    for start in (0..=BLOCKS).step_by(READ_BLOCKS) {
        let count = READ_BLOCKS.min((BLOCKS + 1 - start) as usize);
        block_on(card.read(START + start, &mut blocks[..count])).unwrap();
        for (index, read) in (start..).zip(&blocks[..count]) {
            assert!(*read == block(index), "block {index} differs");
        }
    }
    hprintln!("ok: read them back");
}

/// Drops the future that ends a stream after each possible number of polls and ends the stream again. All
/// blocks must be on the card. Returns the total number of blocks written by the test.
fn test_dropped_ends(card: &mut TestCard) -> u32 {
    let (mut drops, mut start) = (0, BLOCKS + 1);
    loop {
        block_on(card.begin(START + start, 2)).unwrap();
        block_on(card.push(&block(start))).unwrap();
        block_on(card.push(&block(start + 1))).unwrap();
        start += 2;
        if let Some(ended) = poll_times(card.end(), drops + 1) {
            ended.unwrap();
            break;
        }
        block_on(card.end()).unwrap();
        drops += 1;
    }
    assert!(
        drops > STOP_MS,
        "no drop fell into the busy time of the card"
    );
    hprintln!("ok: the driver recovers after {} drops", drops);
    start
}

/// Returns the contents of a block.
fn block(index: u32) -> Block {
    let mut block = [0; 512];
    for (word, bytes) in (index * 128..).zip(block.chunks_exact_mut(4)) {
        bytes.copy_from_slice(&word.wrapping_mul(0x9E37_79B1).to_le_bytes());
    }
    block
}
