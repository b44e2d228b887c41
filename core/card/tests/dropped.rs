//! Futures dropped half-way: after every possible number of polls, on a bus that yields after every few
//! bytes.

use crate::rig::{self, Rig, data, run};
use cardiograph_card::{Block, Card, Error};
use cardiograph_sim_card::wire::{ChipSelect, SpiBus, Wire};
use embedded_hal::spi::{self as blocking, ErrorType};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Bytes transferred between two polls; a dropped transfer therefore stops part of the way through.
const PIECE_BYTES: usize = 100;

/// Yields to the caller once.
async fn pause() {
    let mut has_paused = false;
    poll_fn(|_| match std::mem::replace(&mut has_paused, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

struct SlowBus(SpiBus);

impl ErrorType for SlowBus {
    type Error = Infallible;
}

impl spi::SpiBus for SlowBus {
    async fn read(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("the driver must choose the bytes it sends while it receives");
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        for piece in words.chunks(PIECE_BYTES) {
            pause().await;
            blocking::SpiBus::write(&mut self.0, piece)?;
        }
        pause().await;
        Ok(())
    }

    async fn transfer(&mut self, _: &mut [u8], _: &[u8]) -> Result<(), Infallible> {
        unreachable!("not used by the driver");
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        for piece in words.chunks_mut(PIECE_BYTES) {
            pause().await;
            blocking::SpiBus::transfer_in_place(&mut self.0, piece)?;
        }
        pause().await;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        pause().await;
        Ok(())
    }
}

struct SlowDelay(Wire);

impl DelayNs for SlowDelay {
    async fn delay_ns(&mut self, ns: u32) {
        pause().await;
        self.0.card().clock().advance_ns(ns.into());
    }
}

type Driver = Card<SlowBus, ChipSelect, SlowDelay, Box<dyn FnMut(&mut SlowBus, u32)>>;

fn driver(wire: &Wire) -> Driver {
    let card = wire.clone();
    Card::new(
        SlowBus(wire.bus()),
        wire.chip_select(),
        SlowDelay(wire.clone()),
        Box::new(move |_: &mut SlowBus, hz| card.card().set_clock_hz(hz).unwrap()),
        rig::CLOCK_HZ,
    )
}

/// Polls a future at most `polls` times, then drops it; returns its output if it completed.
fn polls<T>(future: impl Future<Output = T>, polls: u64) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
    }
    None
}

fn done<T>(future: impl Future<Output = T>) -> T {
    polls(future, u64::MAX).unwrap()
}

const BLOCKS: u32 = 12;

fn stored(wire: &Wire, block: u32) -> Block {
    let mut data = [[0; 512]];
    wire.card().card().load(block.into(), &mut data);
    data[0]
}

/// Asserts that blocks in the range hold the old or the new version and all others the old one; returns
/// true if all blocks in the range are new.
fn check(wire: &Wire, new: std::ops::Range<u32>, version: u8, polls: u64) -> bool {
    let mut is_new = true;
    for block in 0..BLOCKS {
        let stored = stored(wire, block);
        let is_old = stored == data(0, block);
        is_new &= !new.contains(&block) || !is_old;
        let may_be = is_old || new.contains(&block) && stored == data(version, block);
        assert!(may_be, "block {block} after {polls} polls");
    }
    is_new
}

/// Drops the future made by `act` after 0, 1, 2 ... polls, starting over each time, until the future
/// completes.
fn at_every_poll(mut act: impl FnMut(&mut Driver, &Wire, u64) -> bool) {
    let wire = Rig::new().wire;
    let mut driver = driver(&wire);
    done(driver.acquire()).unwrap();
    for polls in 0.. {
        done(driver.write(0, &run(0, 0, BLOCKS))).unwrap();
        if act(&mut driver, &wire, polls) {
            println!("{polls} polls");
            return;
        }
    }
}

#[test]
fn after_a_dropped_write_blocks_are_old_or_new_and_the_card_works() {
    for blocks in [1, 3] {
        at_every_poll(|driver, wire, budget| {
            let new = run(1, 4, blocks);
            let is_done = polls(driver.write(4, &new), budget).is_some();
            let mut back = vec![[0; 512]; BLOCKS as usize];
            done(driver.read(0, &mut back)).unwrap();
            let is_new = check(wire, 4..4 + blocks, 1, budget);
            assert!(is_new || !is_done);
            assert!(
                (0..)
                    .zip(&back)
                    .all(|(block, read)| *read == stored(wire, block))
            );
            done(driver.write(4, &new)).unwrap();
            assert!(check(wire, 4..4 + blocks, 1, budget));
            is_done
        });
    }
}

#[test]
fn a_dropped_read_has_no_effect() {
    at_every_poll(|driver, wire, budget| {
        let mut back = [[0; 512]; 3];
        let is_done = polls(driver.read(4, &mut back), budget).is_some();
        done(driver.write(7, &run(1, 7, 2))).unwrap();
        assert!(check(wire, 7..9, 1, budget));
        done(driver.read(4, &mut back)).unwrap();
        assert!(back[..] == run(0, 4, 3));
        is_done
    });
}

#[test]
fn a_stream_continues_after_a_dropped_push() {
    at_every_poll(|driver, wire, budget| {
        done(driver.begin(4, 4)).unwrap();
        done(driver.push(&data(1, 4))).unwrap();
        let is_done = polls(driver.push(&data(1, 5)), budget).is_some();
        for block in if is_done { 6..8 } else { 5..8 } {
            done(driver.push(&data(1, block))).unwrap();
        }
        done(driver.end()).unwrap();
        wire.card().power_cut();
        assert!(check(wire, 4..8, 1, budget));
        wire.card().power_on();
        done(driver.acquire()).unwrap();
        is_done
    });
}

#[test]
fn an_end_that_was_dropped_can_be_repeated() {
    at_every_poll(|driver, wire, budget| {
        done(driver.begin(4, 4)).unwrap();
        for block in 4..7 {
            done(driver.push(&data(1, block))).unwrap();
        }
        let is_done = polls(driver.end(), budget).is_some();
        match done(driver.end()) {
            Ok(()) => assert!(!is_done),
            Err(error) => assert!(is_done && error.cause == Error::NoStream),
        }
        wire.card().power_cut();
        assert!(check(wire, 4..7, 1, budget));
        wire.card().power_on();
        done(driver.acquire()).unwrap();
        is_done
    });
}

#[test]
fn a_dropped_acquire_can_be_repeated() {
    at_every_poll(|driver, _, budget| {
        let is_done = polls(driver.acquire(), budget).is_some();
        let is_there = done(driver.read(0, &mut [[0; 512]])).is_ok();
        // A future that was never polled has not started.
        assert_eq!(is_there, is_done || budget == 0);
        done(driver.acquire()).unwrap();
        is_done
    });
}
