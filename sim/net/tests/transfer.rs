//! Whole files over good and bad links.

use cardiograph_sim_net::{Config, Socket, connect_hosts};
use cardiograph_sim_world::{Handle, Link, Seed, World};
use embedded_io_async::{Read, Write};
use std::cell::RefCell;
use std::rc::Rc;

const PORT: u16 = 80;

/// A byte that depends on its position, without a short period.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Sends `bytes` in pieces, then ends the connection.
async fn send_file(socket: &mut Socket, bytes: u64, piece_bytes: u64) {
    let mut at = 0;
    while at < bytes {
        let end = bytes.min(at + piece_bytes);
        let piece: Vec<u8> = (at..end).map(byte_at).collect();
        socket.write_all(&piece).await.unwrap();
        at = end;
    }
    socket.close();
}

/// Reads to the end, checks each byte, and returns the number of bytes.
async fn receive_file(socket: &mut Socket) -> u64 {
    let mut at = 0;
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer).await.unwrap();
        if read == 0 {
            return at;
        }
        for byte in &buffer[..read] {
            assert_eq!(*byte, byte_at(at), "at byte {at}");
            at += 1;
        }
    }
}

/// Result of a download.
#[derive(Debug, PartialEq, Eq)]
struct Downloaded {
    bytes: u64,
    duration_ns: u64,
}

async fn download(handle: &Handle, link: Link, config: Config, bytes: u64) -> Downloaded {
    let (client, server) = connect_hosts(handle, "link", link, config).unwrap();
    let mut listener = server.listen(PORT, 1).unwrap();
    handle.spawn("server", async move {
        let mut socket = listener.accept().await;
        send_file(&mut socket, bytes, 1360).await;
        // The socket lives until the client has read everything.
        assert_eq!(socket.read(&mut [0]).await, Ok(0));
    });
    let mut socket = client.connect(server.endpoint(PORT)).await.unwrap();
    let began_ns = handle.now_ns();
    let bytes = receive_file(&mut socket).await;
    Downloaded {
        bytes,
        duration_ns: handle.now_ns() - began_ns,
    }
}

fn run(seed: u64, link: Link, config: Config, bytes: u64) -> Downloaded {
    let mut world = World::new(Seed::new(seed));
    let handle = world.handle();
    let downloaded = world
        .block_on(download(&handle, link, config, bytes))
        .unwrap();
    // All sockets are dropped, so connections and tasks end.
    world.run_until_idle().unwrap();
    downloaded
}

/// Wi-Fi as study 1 describes it: 2.5 MB/s and a round trip of 4 ms.
fn wifi() -> Link {
    Link {
        bandwidth_bps: 20_000_000,
        delay_ns: 2_000_000,
        ..Link::default()
    }
}

#[test]
fn a_file_arrives_whole_over_a_good_link() {
    let downloaded = run(1, wifi(), Config::default(), 1_000_000);
    assert_eq!(downloaded.bytes, 1_000_000);
}

#[test]
fn a_file_arrives_whole_and_in_order_over_bad_links() {
    for seed in 0..20 {
        let bad = Link {
            loss_ppm: 20_000,
            duplicate_ppm: 20_000,
            reorder_ppm: 50_000,
            reorder_ns: 10_000_000,
            jitter_ns: 3_000_000,
            ..wifi()
        };
        let downloaded = run(seed, bad, Config::default(), 300_000);
        assert_eq!(downloaded.bytes, 300_000, "seed {seed}");
        // Retransmissions make the download slower than without loss.
        assert!(downloaded.duration_ns > 120_000_000, "seed {seed}");
    }
}

#[test]
fn a_link_that_loses_every_fifth_packet_is_slow_but_ends_right() {
    let link = Link {
        loss_ppm: 200_000,
        ..wifi()
    };
    assert_eq!(run(7, link, Config::default(), 50_000).bytes, 50_000);
}

/// Without loss, throughput is the lower of the bandwidth and window / round trip, where only whole packets of the
/// window count.
#[test]
fn throughput_is_that_of_theory() {
    const BYTES: u64 = 2_000_000;
    const HEADER_BYTES: f64 = 40.0;
    for window_bytes in [1460, 2920, 5744, 8760, 16_384, 65_535] {
        for (bandwidth_bps, delay_ns, mtu_bytes) in [
            (20_000_000, 2_000_000, 1500),
            (20_000_000, 20_000_000, 1476),
            (2_000_000, 2_000_000, 576),
            (100_000_000, 100_000, 1500),
        ] {
            let link = Link {
                bandwidth_bps,
                delay_ns,
                mtu_bytes,
                ..Link::default()
            };
            let config = Config {
                receive_buffer_bytes: window_bytes,
                send_buffer_bytes: 65_535,
                collects_small_writes: true,
                ..Config::default()
            };
            let downloaded = run(1, link, config, BYTES);
            let measured = BYTES as f64 / downloaded.duration_ns as f64 * 1e9;

            let mss = mtu_bytes as f64 - HEADER_BYTES;
            let wire = bandwidth_bps as f64 / 8.0;
            let limit = wire * mss / mtu_bytes as f64;
            // A full packet and its acknowledgement.
            let round_s = 2.0 * delay_ns as f64 / 1e9 + (mtu_bytes as f64 + HEADER_BYTES) / wire;
            let whole_packets = (window_bytes as f64 / mss).floor() * mss;
            let expected = limit.min(whole_packets / round_s);
            let ratio = measured / expected;
            assert!(
                (0.95..1.03).contains(&ratio),
                "window {window_bytes}, {bandwidth_bps} bit/s, {delay_ns} ns: {measured:.0} of {expected:.0} B/s"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_times_on_any_thread() {
    let link = Link {
        loss_ppm: 10_000,
        reorder_ppm: 10_000,
        reorder_ns: 5_000_000,
        ..wifi()
    };
    let durations = |seed| run(seed, link.clone(), Config::default(), 100_000);
    let alone: Vec<Downloaded> = (0..8).map(durations).collect();
    let threaded: Vec<Downloaded> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|seed| scope.spawn(move || (seed, durations(seed))))
            .collect();
        let mut results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        results.sort_by_key(|(seed, _)| *seed);
        results.into_iter().map(|(_, result)| result).collect()
    });
    assert_eq!(alone, threaded);
    assert!(alone.iter().any(|other| *other != alone[0]));
}

/// Four clients download at the same time and share the link.
#[test]
fn connections_share_a_link() {
    let mut world = World::new(Seed::new(3));
    let handle = world.handle();
    let (client, server) = connect_hosts(&handle, "link", wifi(), Config::default()).unwrap();
    let mut listener = server.listen(PORT, 4).unwrap();
    let spawner = handle.clone();
    world.spawn("server", async move {
        for number in 0..4 {
            let mut socket = listener.accept().await;
            spawner.spawn(format!("connection {number}"), async move {
                send_file(&mut socket, 200_000, 1000).await;
                assert_eq!(socket.read(&mut [0]).await, Ok(0));
            });
        }
    });
    let ends = Rc::new(RefCell::new(Vec::new()));
    for number in 0..4 {
        let (client, remote) = (client.clone(), server.endpoint(PORT));
        let (ends, handle) = (Rc::clone(&ends), handle.clone());
        world.spawn(format!("client {number}"), async move {
            let mut socket = client.connect(remote).await.unwrap();
            assert_eq!(receive_file(&mut socket).await, 200_000);
            ends.borrow_mut().push(handle.now_ns());
        });
    }
    drop((client, server));
    world.run_until_idle().unwrap();
    let ends = ends.borrow();
    // 800 kB at 2.5 MB/s, less headers: all four end together after a third of a second.
    assert_eq!(ends.len(), 4);
    assert!(
        ends.iter()
            .all(|ns| (320_000_000..380_000_000).contains(ns)),
        "{ends:?}"
    );
}
