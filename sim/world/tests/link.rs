//! Tests of the link: exact without faults, statistically correct with faults.

use cardiograph_sim_world::link::{SendError, Statistics};
use cardiograph_sim_world::{Link, Seed, World};

/// Sends packets of four bytes that contain their number; returns the numbers of the arriving packets, with
/// their arrival times.
fn arrivals(link: Link, seed: u64, packets: u32) -> (Vec<(u64, u32)>, Statistics) {
    let mut world = World::new(Seed::new(seed));
    let handle = world.handle();
    let (here, mut there) = link.connect(&handle, "link").unwrap();
    let sender = here.sender.clone();
    world.spawn("sender", async move {
        for number in 0..packets {
            sender.send(&number.to_le_bytes()).await.unwrap();
        }
    });
    let received = world.block_on(async {
        let mut received = Vec::new();
        // This timeout is longer than the slowest packet takes.
        while let Ok(packet) = handle
            .with_timeout(1_000_000_000, there.receiver.recv())
            .await
        {
            let number = u32::from_le_bytes(packet.try_into().unwrap());
            received.push((handle.now_ns(), number));
        }
        received
    });
    (received.unwrap(), here.sender.statistics())
}

/// A link that transmits one packet of four bytes per 4 µs, with a delay of 10 µs.
fn slow() -> Link {
    Link {
        bandwidth_bps: 8_000_000,
        delay_ns: 10_000,
        ..Link::default()
    }
}

#[test]
fn without_faults_all_packets_arrive_in_order_and_exactly_on_time() {
    let (received, statistics) = arrivals(slow(), 1, 1000);
    let expected: Vec<_> = (0..1000)
        .map(|number| ((u64::from(number) + 1) * 4_000 + 10_000, number))
        .collect();
    assert_eq!(received, expected);
    let expected = Statistics {
        sent: 1000,
        sent_bytes: 4000,
        received: 1000,
        received_bytes: 4000,
        ..Statistics::default()
    };
    assert_eq!(statistics, expected);
}

#[test]
fn fractional_bit_times_are_rounded_up() {
    let link = Link {
        bandwidth_bps: 7_000_000,
        delay_ns: 0,
        ..Link::default()
    };
    // 32 bits at 7 Mbit/s take 4571.43 ns.
    let times: Vec<u64> = arrivals(link, 1, 3).0.iter().map(|event| event.0).collect();
    assert_eq!(times, [4572, 9144, 13716]);
}

#[test]
fn both_directions_are_independent() {
    let mut world = World::new(Seed::new(1));
    let (mut here, mut there) = slow().connect(&world.handle(), "link").unwrap();
    let handle = world.handle();
    let times = world.block_on(async {
        here.sender.send(&[1; 4]).await.unwrap();
        there.sender.send(&[2; 8]).await.unwrap();
        assert_eq!(there.receiver.recv().await, [1; 4]);
        let first_ns = handle.now_ns();
        assert_eq!(here.receiver.recv().await, [2; 8]);
        (first_ns, handle.now_ns())
    });
    assert_eq!(times, Ok((14_000, 18_000)));
}

#[test]
fn jitter_is_uniform_and_keeps_the_order() {
    let link = Link {
        jitter_ns: 1_000,
        ..slow()
    };
    let (received, _) = arrivals(link, 1, 100_000);
    let late = |&(at_ns, number): &(u64, u32)| at_ns - (u64::from(number) + 1) * 4_000 - 10_000;
    assert!(received.iter().map(|event| event.1).eq(0..100_000));
    assert!(received.iter().all(|event| late(event) <= 1_000));
    assert!(received.iter().any(|event| late(event) == 0));
    assert!(received.iter().any(|event| late(event) == 1_000));
    let mean = received.iter().map(late).sum::<u64>() as f64 / 100_000.0;
    // The mean of 100,000 uniform draws from 0 to 1000 has a standard deviation of 0.91.
    assert!((mean - 500.0).abs() < 5.5, "{mean}");
}

#[test]
fn jitter_longer_than_the_spacing_keeps_the_order() {
    let link = Link {
        jitter_ns: 50_000,
        duplicate_ppm: 100_000,
        ..slow()
    };
    let (received, _) = arrivals(link, 5, 10_000);
    assert!(received.is_sorted_by_key(|event| event.1));
    let late = |&(at_ns, number): &(u64, u32)| at_ns - (u64::from(number) + 1) * 4_000 - 10_000;
    assert!(received.iter().all(|event| late(event) <= 50_000));
}

#[test]
fn a_waiting_receiver_is_woken_for_a_packet_that_overtakes() {
    let link = Link {
        reorder_ppm: 500_000,
        reorder_ns: 1_000_000_000,
        ..slow()
    };
    let mut world = World::new(Seed::new(6));
    let handle = world.handle();
    let (here, mut there) = link.connect(&handle, "link").unwrap();
    world.spawn("sender", async move {
        for number in 1..=200_u64 {
            handle.sleep_until_ns(number * 100_000).await;
            here.sender.send(&[0; 4]).await.unwrap();
        }
    });
    let handle = world.handle();
    let times = world.block_on(async {
        let mut times = Vec::new();
        for _ in 0..200 {
            there.receiver.recv().await;
            times.push(handle.now_ns());
        }
        times
    });
    // Packets that are not held back are exactly on time. Their number is that of heads in 200 fair coin
    // tosses, within four standard deviations.
    let on_time = |&&ns: &&u64| ns % 100_000 == 14_000 && ns <= 20_014_000;
    let on_time = times.unwrap().iter().filter(on_time).count();
    assert!(on_time.abs_diff(100) < 28, "{on_time}");
}

#[test]
fn losses_and_copies_occur_at_their_rates() {
    for ppm in [0, 1_000, 10_000, 200_000, 1_000_000] {
        let link = Link {
            loss_ppm: ppm,
            duplicate_ppm: ppm,
            ..slow()
        };
        let (received, statistics) = arrivals(link, 2, 200_000);
        let near = |count: u64, of: u64, what: &str| {
            let chance = f64::from(ppm) / 1e6;
            let sigma = (of as f64 * chance * (1.0 - chance)).sqrt();
            let off = (count as f64 - of as f64 * chance).abs();
            assert!(off <= 5.0 * sigma, "{what}: {count} of {of} at {ppm} ppm");
        };
        near(statistics.lost, 200_000, "lost");
        near(statistics.copied, 200_000 - statistics.lost, "copied");
        let whole = 200_000 - statistics.lost + statistics.copied;
        assert_eq!(received.len() as u64, whole);
        assert!(received.is_sorted(), "copies arrive in order");
    }
}

#[test]
fn packets_held_back_are_overtaken_and_others_are_unaffected() {
    let link = Link {
        reorder_ppm: 100_000,
        reorder_ns: 20_000,
        ..slow()
    };
    let (received, statistics) = arrivals(link, 3, 10_000);
    assert_eq!(received.len(), 10_000);
    let late = |&(at_ns, number): &(u64, u32)| at_ns - (u64::from(number) + 1) * 4_000 - 10_000;
    let held_back: Vec<_> = received.iter().filter(|event| late(event) > 0).collect();
    assert_eq!(held_back.len() as u64, statistics.held_back);
    assert!(statistics.held_back.abs_diff(1_000) < 150);
    assert!(held_back.iter().all(|event| late(event) <= 20_000));
    let overtaken = received.windows(2).filter(|two| two[0].1 > two[1].1);
    assert!(overtaken.count() > 500);
}

#[test]
fn a_packet_is_held_back_by_at_least_a_nanosecond() {
    let link = Link {
        reorder_ppm: 1_000_000,
        reorder_ns: 1,
        ..slow()
    };
    let times: Vec<u64> = arrivals(link, 3, 3).0.iter().map(|event| event.0).collect();
    assert_eq!(times, [14_001, 18_001, 22_001]);
}

#[test]
fn the_outcome_of_a_packet_is_independent_of_other_faults() {
    let lossy = Link {
        loss_ppm: 100_000,
        ..slow()
    };
    let both = Link {
        jitter_ns: 500,
        duplicate_ppm: 50_000,
        ..lossy.clone()
    };
    let numbers = |link| {
        let mut numbers: Vec<u32> = arrivals(link, 4, 5_000)
            .0
            .iter()
            .map(|event| event.1)
            .collect();
        numbers.dedup();
        numbers
    };
    assert_eq!(numbers(lossy), numbers(both));
}

#[test]
fn a_full_queue_reports_when_it_has_room() {
    let world = World::new(Seed::new(1));
    let link = Link {
        queue_packets: 2,
        ..slow()
    };
    let (here, _there) = link.connect(&world.handle(), "link").unwrap();
    assert_eq!(here.sender.mtu_bytes(), 1500);
    assert_eq!(here.sender.try_send(&[0; 4]), Ok(()));
    assert_eq!(here.sender.full_until_ns(), None);
    assert_eq!(here.sender.try_send(&[0; 4]), Ok(()));
    assert_eq!(here.sender.full_until_ns(), Some(4_000));
    let full = Err(SendError::Full { until_ns: 4_000 });
    assert_eq!(here.sender.try_send(&[0; 4]), full);
    world.handle().clock().advance_ns(4_000);
    assert_eq!(here.sender.full_until_ns(), None);
    assert_eq!(here.sender.try_send(&[0; 4]), Ok(()));
}

#[test]
fn unreceived_packets_overflow_and_the_statistics_add_up() {
    let mut world = World::new(Seed::new(1));
    let link = Link {
        queue_packets: 8,
        loss_ppm: 100_000,
        duplicate_ppm: 100_000,
        ..slow()
    };
    let (here, mut there) = link.connect(&world.handle(), "link").unwrap();
    let handle = world.handle();
    let sender = here.sender.clone();
    world
        .block_on(async {
            for number in 0..100_u32 {
                sender.send(&number.to_le_bytes()).await.unwrap();
                let now = sender.statistics();
                let ends = now.lost + now.overflowed + now.received + now.on_the_way;
                assert_eq!(now.sent + now.copied, ends);
            }
            handle.sleep_ns(1_000_000).await;
        })
        .unwrap();
    let statistics = sender.statistics();
    assert_eq!(statistics.on_the_way, 8);
    assert_eq!(
        statistics.overflowed,
        100 + statistics.copied - statistics.lost - 8
    );
    let first = world.block_on(there.receiver.recv()).unwrap();
    assert!(
        u32::from_le_bytes(first.try_into().unwrap()) < 8,
        "the oldest stay"
    );
}

#[test]
fn a_packet_longer_than_the_mtu_is_rejected() {
    let mut world = World::new(Seed::new(1));
    let (here, _there) = Link::default().connect(&world.handle(), "link").unwrap();
    let error = world
        .block_on(here.sender.send(&[0; 1501]))
        .unwrap()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the packet is longer than the 1500 bytes of the link's MTU"
    );
    assert_eq!(here.sender.statistics(), Statistics::default());
}

#[test]
fn parameters_out_of_range_are_rejected_by_name_and_range() {
    let world = World::new(Seed::new(1));
    let refused = |link: Link| {
        let ends = link.connect(&world.handle(), "link");
        ends.err().map(|impossible| impossible.to_string()).unwrap()
    };
    let dead = Link {
        bandwidth_bps: 0,
        ..Link::default()
    };
    assert_eq!(
        refused(dead),
        "`bandwidth_bps` is 0; it must be 1 to 1000000000000"
    );
    let sure = Link {
        loss_ppm: 1_000_001,
        ..Link::default()
    };
    assert_eq!(
        refused(sure),
        "`loss_ppm` is 1000001; it must be 0 to 1000000"
    );
    let closed = Link {
        queue_packets: 0,
        ..Link::default()
    };
    assert_eq!(
        refused(closed),
        "`queue_packets` is 0; it must be 1 to 1000000"
    );
}
