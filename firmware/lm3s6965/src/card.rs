//! The card driver: a stream, a read in the middle of it, a block alone, and all of it read back.

use crate::qemu::{QemuBus, STALL_BLOCKS, STALL_MS, STOP_MS};
use crate::ssi::{self, BUS_HZ_MAX, Select, Ssi};
use crate::time::{Delay, block_on, idle_us, now_us, poll_times};
use cardiograph_card::{Block, Card, SetClock};
use core::mem::{size_of, size_of_val};
use cortex_m_semihosting::hprintln;

/// Where the test writes: behind the file system. `xtask/src/firmware.rs` looks there as well.
const START: u32 = 80 << 10;
/// Blocks of the stream; one more is written alone.
const BLOCKS: u32 = 512;
/// Blocks that are read at once.
const READ_BLOCKS: usize = 8;
const _: () = assert!(BLOCKS.is_multiple_of(READ_BLOCKS as u32));

/// Sets the clock of the bus.
pub struct Clock;

impl SetClock<QemuBus<Ssi>> for Clock {
    fn set_clock_hz(&mut self, bus: &mut QemuBus<Ssi>, hz: u32) {
        bus.bus().set_clock_hz(hz);
    }
}

/// The driver on this board's wires.
pub fn on_wires() -> TestCard {
    let (bus, select) = ssi::wires();
    Card::new(QemuBus::new(bus), select, Delay, Clock, BUS_HZ_MAX)
}

/// Writes and reads; panics if anything is not as it should be.
pub fn is_written_and_read(card: &mut TestCard) {
    if let Err(why) = block_on(card.acquire()) {
        panic!("acquire: {why}");
    }
    hprintln!("ok: a card of {} blocks is acquired", card.blocks());
    sizes(card);
    is_streamed_to(card);
    is_read(card);
    let written = is_there_after_drops(card);
    hprintln!("written: {} blocks", written);
}

/// The card on this board.
pub type TestCard = Card<QemuBus<Ssi>, Select, Delay, Clock>;

fn sizes(card: &mut TestCard) {
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

fn is_streamed_to(card: &mut TestCard) {
    let (began_us, began_idle_us) = (now_us(), idle_us());
    block_on(stream(card));
    let took_ms = (now_us() - began_us) as u32 / 1000;
    let idle_us = idle_us() - began_idle_us;
    let stalled_ms = BLOCKS / STALL_BLOCKS * STALL_MS;
    hprintln!(
        "{} blocks in {} ms; {} ms of stalls, {} us of nothing to do",
        BLOCKS,
        took_ms,
        stalled_ms,
        idle_us
    );
    assert!(took_ms >= stalled_ms, "a stall was not waited for");
    // Looking at the card takes the rest, at 15 million instructions a second.
    assert!(
        idle_us >= stalled_ms * 750,
        "others could not run in a stall"
    );
    hprintln!("ok: blocks are streamed, and others could run in stalls");
}

async fn stream(card: &mut TestCard) {
    card.begin(START, BLOCKS).await.unwrap();
    for index in 0..BLOCKS {
        card.push(&block(index)).await.unwrap();
        // The stream stops for a read and goes on.
        if index == BLOCKS / 3 {
            let mut read = [[0; 512]];
            card.read(START + index, &mut read).await.unwrap();
            assert!(read[0] == block(index), "the block just written differs");
        }
    }
    card.end().await.unwrap();
    let alone = [block(BLOCKS)];
    card.write(START + BLOCKS, &alone).await.unwrap();
}

fn is_read(card: &mut TestCard) {
    let mut blocks = [[0; 512]; READ_BLOCKS];
    for start in (0..=BLOCKS).step_by(READ_BLOCKS) {
        let count = READ_BLOCKS.min((BLOCKS + 1 - start) as usize);
        block_on(card.read(START + start, &mut blocks[..count])).unwrap();
        for (index, read) in (start..).zip(&blocks[..count]) {
            assert!(*read == block(index), "block {index} differs");
        }
    }
    hprintln!("ok: they are read back");
}

/// The end of a stream is dropped at every poll, and done again: all its blocks have to be there.
/// Returns how many blocks there are then.
fn is_there_after_drops(card: &mut TestCard) -> u32 {
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
        "it was not dropped while the card was busy"
    );
    hprintln!("ok: the card comes back after {} drops", drops);
    start
}

/// What the block of this number holds.
fn block(index: u32) -> Block {
    let mut block = [0; 512];
    for (word, place) in (index * 128..).zip(block.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.wrapping_mul(0x9E37_79B1).to_le_bytes());
    }
    block
}
