//! Measures the writes of a program to a file and says how evenly they went: `cargo run --example own_writes`.

use cardiograph_timing::{Latencies, Stalls, default_threshold_ns};
use std::fs::File;
use std::io::{Error, Write};
use std::time::Instant;

const WRITES: usize = 20_000;
const BYTES: usize = 512;
/// Buckets for latencies of up to 1 s.
const BUCKETS: usize = cardiograph_timing::buckets_below(30);

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join("cardiograph-own-writes.bin");
    let mut file = File::create(&path)?;
    let mut writes = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let start = Instant::now();
        file.write_all(&[0x55; BYTES])?;
        writes.push(start.elapsed().as_nanos() as u64);
    }
    std::fs::remove_file(&path)?;

    let mut latencies = Latencies::<BUCKETS>::default();
    latencies.push_run(BYTES as u64, writes.iter().copied());
    let us = |ns: Option<u64>| ns.unwrap_or_default() as f64 / 1000.0;
    let (median_ns, max_ns) = (latencies.percentile_ns(500_000), latencies.max_ns());
    println!(
        "median {:.1} us, longest {:.1} us",
        us(median_ns),
        us(max_ns)
    );

    // A stall is a write far above the others.
    let mean_ns = latencies.mean_ns().unwrap_or_default();
    let threshold_ns = default_threshold_ns(
        mean_ns,
        median_ns.unwrap_or_default(),
        max_ns.unwrap_or_default(),
    );
    let mut stalls = Stalls::<BUCKETS>::above(threshold_ns);
    for ns in writes {
        stalls.push(ns, BYTES as u64);
    }
    stalls.finish();
    println!(
        "{} stalls above {:.1} us",
        stalls.count(),
        us(Some(threshold_ns))
    );
    Ok(())
}
