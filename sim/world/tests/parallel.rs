//! Many worlds at once: the same seed gives the same trace, to the last bit.

use cardiograph_sim_world::{Link, Seed, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

const WORLDS: u64 = 4_000;

/// Runs a device that answers requests over a bad link, and a client that repeats them. Returns the whole
/// trace: time, sender, value.
fn trace_of(seed: u64) -> Vec<(u64, u8, u64)> {
    let mut world = World::new(Seed::new(seed));
    let handle = world.handle();
    let link = Link {
        bandwidth_bps: 1_000_000,
        jitter_ns: 300_000,
        loss_ppm: 100_000,
        duplicate_ppm: 50_000,
        reorder_ppm: 100_000,
        reorder_ns: 2_000_000,
        ..Link::default()
    };
    let (mut client, mut device) = link.connect(&handle, "wifi").unwrap();
    let trace = Rc::new(RefCell::new(Vec::new()));

    let (events, own) = (trace.clone(), handle.clone());
    world.spawn("device", async move {
        let mut work = own.seed().stream("work");
        loop {
            let request = device.receiver.recv().await;
            own.clock().advance_ns(work.below(50_000));
            events
                .borrow_mut()
                .push((own.now_ns(), 0, request[0].into()));
            device.sender.send(&request).await.unwrap();
        }
    });
    let events = trace.clone();
    let client = async move {
        for number in 0..20_u8 {
            loop {
                client.sender.send(&[number; 100]).await.unwrap();
                let answer = handle.with_timeout(5_000_000, client.receiver.recv()).await;
                let answer = answer.map_or(999, |packet| packet[0].into());
                events.borrow_mut().push((handle.now_ns(), 1, answer));
                if answer == u64::from(number) {
                    break;
                }
            }
        }
        client.sender.statistics()
    };
    let statistics = world.block_on(client).unwrap();
    trace
        .borrow_mut()
        .push((world.now_ns(), 2, statistics.lost));
    trace.take()
}

#[test]
fn one_thread_and_eight_threads_give_the_same_traces() {
    let alone: Vec<_> = (0..WORLDS).map(trace_of).collect();
    let next = AtomicU64::new(0);
    let together = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= WORLDS {
                    return done;
                }
                done.push((seed, trace_of(seed)));
            }
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        let done = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        done.collect::<Vec<_>>()
    });
    assert_eq!(together.len() as u64, WORLDS);
    for (seed, trace) in &together {
        assert_eq!(trace, &alone[*seed as usize], "seed {seed}");
    }
    // Traces of different seeds differ, and the links had faults.
    let mut different = alone.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len() as u64, WORLDS);
    let timed_out = |trace: &&Vec<(u64, u8, u64)>| trace.iter().any(|event| event.2 == 999);
    assert!(alone.iter().filter(timed_out).count() as u64 > WORLDS / 2);
}

/// Worlds that exist at the same time in one thread and run in turns do not affect each other.
#[test]
fn interleaved_worlds_do_not_affect_each_other() {
    let build = |seed: u64| {
        let world = World::new(Seed::new(seed));
        let handle = world.handle();
        let ticks = Rc::new(RefCell::new(Vec::new()));
        let own = ticks.clone();
        world.spawn("ticks", async move {
            let mut random = handle.seed().stream("ticks");
            loop {
                handle.sleep_ns(1 + random.below(1_000)).await;
                own.borrow_mut().push(handle.now_ns());
            }
        });
        (world, ticks)
    };
    let mut worlds: Vec<_> = (0..2_000).map(build).collect();
    for turn in 1..=10 {
        for (world, _) in &mut worlds {
            world.run_until(turn * 2_000).unwrap();
        }
    }
    for (seed, (_, ticks)) in worlds.iter().enumerate() {
        let (mut alone, own) = build(seed as u64);
        alone.run_until(20_000).unwrap();
        assert_eq!(*ticks.borrow(), *own.borrow());
    }
}
