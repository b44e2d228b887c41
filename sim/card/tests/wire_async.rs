//! The async interface of the bus exchanges the same bytes at the same times as the blocking interface. Also
//! tests the delay for each kind of host.

use crate::rig::{self, data, stored};
use cardiograph_sim_card::Seed;
use cardiograph_sim_card::wire::{SpiBus, Wire, crc};
use cardiograph_sim_world::World;
use embedded_hal::spi::{Operation, SpiBus as _, SpiDevice as _};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi as asynchronous;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

const CLOCK_HZ: u32 = 25_000_000;

/// Returns a command with filler for its response.
fn command(index: u8, argument: u8) -> [u8; 10] {
    let mut bytes = [0xFF; 10];
    bytes[..5].copy_from_slice(&[0x40 | index, 0, 0, 0, argument]);
    bytes[5] = crc::crc7(&bytes[..5]) << 1 | 1;
    bytes
}

/// Writes a block and reads it back using every operation; returns the bytes received.
fn write_and_read(mut act: impl FnMut(&mut [Operation<u8>])) -> Vec<u8> {
    let mut r1 = command(24, 5);
    let block = [&[0xFE], &data(1, 5)[..], &[0, 0]].concat();
    let (mut response, mut short, mut long) = ([0; 1], [0; 2], [0; 1_000]);
    act(&mut [
        Operation::TransferInPlace(&mut r1),
        Operation::Write(&block),
        Operation::Read(&mut response),
        Operation::DelayNs(2_000_000),
    ]);
    // Test transfers that send more than they receive, and vice versa.
    act(&mut [Operation::Transfer(&mut short, &command(13, 0))]);
    act(&mut [Operation::Transfer(&mut long, &command(17, 5))]);
    [&r1[..], &response, &short, &long].concat()
}

fn through_bus(wire: &Wire, bus: &mut SpiBus, operation: &mut Operation<u8>) {
    let done = match operation {
        Operation::Read(words) => bus.read(words),
        Operation::Write(words) => bus.write(words),
        Operation::Transfer(read, write) => bus.transfer(read, write),
        Operation::TransferInPlace(words) => bus.transfer_in_place(words),
        Operation::DelayNs(ns) => {
            embedded_hal::delay::DelayNs::delay_ns(&mut wire.delay(), *ns);
            bus.flush()
        }
    };
    done.unwrap();
}

async fn through_async_bus(wire: &Wire, bus: &mut SpiBus, operation: &mut Operation<'_, u8>) {
    use asynchronous::SpiBus;
    let done: Result<(), Infallible> = match operation {
        Operation::Read(words) => SpiBus::read(bus, words).await,
        Operation::Write(words) => SpiBus::write(bus, words).await,
        Operation::Transfer(read, write) => SpiBus::transfer(bus, read, write).await,
        Operation::TransferInPlace(words) => SpiBus::transfer_in_place(bus, words).await,
        Operation::DelayNs(ns) => {
            wire.delay().delay_ns(*ns).await;
            SpiBus::flush(bus).await
        }
    };
    done.unwrap();
}

/// Performs operations with the card selected.
type Act = fn(&Wire, &mut World, &mut [Operation<u8>]);

#[test]
fn async_and_blocking_hosts_exchange_the_same_bytes_at_the_same_time() {
    let run = |act: Act| {
        let wire = rig::wire(CLOCK_HZ);
        rig::driver(&wire, false).init().unwrap();
        let mut world = World::on_clock(Seed::new(1), wire.card().clock().clone());
        let back = write_and_read(|operations| {
            wire.card().select(true);
            act(&wire, &mut world, operations);
            wire.card().select(false);
        });
        assert!(stored(&wire, 5) == data(1, 5));
        (back, world.now_ns(), wire.card().count())
    };
    let expected = run(|wire, _, operations| wire.device().transaction(operations).unwrap());
    // Check R1, the data response, and the block read back.
    assert_eq!((expected.0[7], expected.0[10]), (0, 0xE5));
    assert!(expected.0.windows(512).any(|bytes| *bytes == data(1, 5)));
    let others: [Act; 3] = [
        |wire, world, operations| {
            let mut device = wire.device();
            let done = asynchronous::SpiDevice::transaction(&mut device, operations);
            world.block_on(done).unwrap().unwrap();
        },
        |wire, _, operations| {
            let act = |operation| through_bus(wire, &mut wire.bus(), operation);
            operations.iter_mut().for_each(act);
        },
        |wire, world, operations| {
            for operation in operations {
                let mut bus = wire.bus();
                let done = through_async_bus(wire, &mut bus, operation);
                world.block_on(done).unwrap();
            }
        },
    ];
    for act in others {
        assert!(run(act) == expected);
    }
}

/// Returns the times, in ms, at which a task with sleeps of 1 ms ran while another task waited 10 ms.
fn ticks_during<D: DelayNs>(delay: impl Fn(&Wire, &World) -> D) -> Vec<u64> {
    let wire = rig::wire(CLOCK_HZ);
    let mut world = World::on_clock(Seed::new(1), wire.card().clock().clone());
    let (mut delay, handle) = (delay(&wire, &world), world.handle());
    let ticks = Rc::new(RefCell::new(Vec::new()));
    let own = ticks.clone();
    world.spawn("ticks", async move {
        loop {
            handle.sleep_ns(1_000_000).await;
            own.borrow_mut().push(handle.now_ns() / 1_000_000);
        }
    });
    let seen = world.block_on(async {
        delay.delay_us(10_500).await;
        ticks.take()
    });
    assert_eq!(world.now_ns(), 10_500_000);
    seen.unwrap()
}

#[test]
fn the_delay_of_a_world_lets_other_tasks_run_and_that_of_the_bus_does_not() {
    let expected: Vec<u64> = (1..=10).collect();
    assert_eq!(ticks_during(|_, world| world.handle()), expected);
    assert_eq!(ticks_during(|wire, _| wire.delay()), []);
}
