//! What a card, its bus and a RAM bear without loss at best.

use crate::{PlainError, lossless_rate_Bps, plain_stream};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Spi};

/// Where the stream begins: at a multiple of 4 MiB, as a file's data on a card formatted by its maker, and
/// past the file system's own.
const START_BLOCK: u64 = 32_768;
/// Bytes on the bus for a block of CMD25: a byte of waiting, token, data, checksum and response.
const WIRE_BLOCK_BYTES: f64 = 517.0;

/// Least bytes of the stream: a short one promises too much.
pub const BOUND_BYTES_MIN: u64 = 64_000_000;
/// Most bytes of the stream. The rarest stalls of a simulated card, those of wear levelling, come within.
pub const BOUND_BYTES_MAX: u64 = 1_000_000_000;

/// The most data that a bus carries in blocks, in B/s: 512 of every 517 bytes.
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn bus_rate_Bps(spi: &Spi) -> f64 {
    BLOCK_BYTES as f64 / WIRE_BLOCK_BYTES / byte_s(spi)
}

/// How long a byte takes with the pause after it, in s.
fn byte_s(spi: &Spi) -> f64 {
    8.0 / f64::from(spi.clock_hz) + f64::from(spi.send_gap_ns) / 1e9
}

/// The highest constant rate in B/s that `ram_bytes` carry through a plain stream of as many bytes as
/// `bytes`, but of [`BOUND_BYTES_MIN`] to [`BOUND_BYTES_MAX`], and no more than the card has. The pause
/// between bytes of a slow processor slows the clock down.
///
/// # Errors
/// [`PlainError`], as of [`plain_stream`].
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn lossless_bound_Bps(
    card: Card,
    spi: &Spi,
    ram_bytes: u64,
    bytes: u64,
) -> Result<f64, PlainError> {
    let clock_hz = (8.0 / byte_s(spi)) as u32;
    let blocks = bytes.clamp(BOUND_BYTES_MIN, BOUND_BYTES_MAX) / BLOCK_BYTES as u64;
    let start = START_BLOCK.min(card.blocks() / 2);
    let blocks = blocks.min(card.blocks() - start);
    let (times, _) = plain_stream(card, clock_hz, start as u32, blocks as u32, |_, _| {})?;
    Ok(lossless_rate_Bps(&times, ram_bytes))
}
