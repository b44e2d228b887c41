//! Baseline for measuring overhead: a plain loop that stores two clock readings around each pwrite.
//!
//! Usage: plain_loop FILE WRITES. Prints the time from the first reading to the last, in ns.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Instant;

const BLOCK_BYTES: usize = 512;

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, writes] = args.as_slice() else {
        return Err(std::io::Error::other("usage: plain_loop FILE WRITES"));
    };
    let writes: u64 = writes.parse().map_err(std::io::Error::other)?;
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let block = [b'A'; BLOCK_BYTES];
    let mut readings = Vec::with_capacity(writes as usize);
    let origin = Instant::now();
    for i in 0..writes {
        let start_ns = origin.elapsed().as_nanos() as u64;
        file.write_at(&block, i * BLOCK_BYTES as u64)?;
        let end_ns = origin.elapsed().as_nanos() as u64;
        readings.push((start_ns, end_ns));
    }
    if let (Some(first), Some(last)) = (readings.first(), readings.last()) {
        println!("{}", last.1 - first.0);
    }
    std::fs::remove_file(path)
}
