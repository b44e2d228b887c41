//! Upper bound of the rate that a card, its bus and a buffer sustain.

use crate::{PlainError, plain_turns, sustained_rate_bytes_per_s};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Spi};
use std::ops::Range;

/// First block of the stream: a multiple of 4 MiB, like a file's data on a card formatted by its manufacturer,
/// and past the file system's own blocks.
const START_BLOCK: u64 = 32_768;
/// Bytes on the bus per block of CMD25: one wait byte, token, data, checksum and response.
const WIRE_BLOCK_BYTES: f64 = 517.0;

/// Blocks per turn if several tracks share the card: 16 KiB.
const TURN_BLOCKS: u32 = 32;
/// Blocks of an allocation unit of 4 MiB. The extent of each track begins at a multiple of this size.
const UNIT_BLOCKS: u32 = 8192;

/// Minimum bytes of the stream: a shorter stream may contain too few stalls.
pub const BOUND_BYTES_MIN: u64 = 64_000_000;
/// Maximum bytes of the stream, enough to contain the rarest stalls of a simulated card: wear-levelling
/// moves.
pub const BOUND_BYTES_MAX: u64 = 1_000_000_000;

/// Returns the maximum block data rate of a bus, in B/s: 512 of every 517 bytes.
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn bus_rate_bytes_per_s(spi: &Spi) -> f64 {
    BLOCK_BYTES as f64 / WIRE_BLOCK_BYTES / byte_s(spi)
}

/// Returns the time that the bus takes per byte, including the pause between bytes, in s.
fn byte_s(spi: &Spi) -> f64 {
    8.0 / f64::from(spi.clock_hz) + f64::from(spi.send_gap_ns) / 1e9
}

/// Returns the highest constant rate in B/s that a buffer of `buffer_bytes` sustains, without loss, through a plain
/// write of `bytes`, clamped to [`BOUND_BYTES_MIN`] to [`BOUND_BYTES_MAX`] and to the card's capacity. One
/// track is written by a single CMD25, several tracks to one extent each, in turns of 16 KiB. The pause of a
/// slow processor between bytes counts as a slower clock.
///
/// # Errors
/// [`PlainError`], like [`plain_stream`](crate::plain_stream).
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn sustained_bound_bytes_per_s(
    card: Card,
    spi: &Spi,
    buffer_bytes: u64,
    bytes: u64,
    tracks: u32,
) -> Result<f64, PlainError> {
    let clock_hz = (8.0 / byte_s(spi)) as u32;
    let blocks = bytes.clamp(BOUND_BYTES_MIN, BOUND_BYTES_MAX) / BLOCK_BYTES as u64;
    let start = START_BLOCK.min(card.blocks() / 2);
    let blocks = blocks.min(card.blocks() - start);
    let turns = turns(start as u32..(start + blocks) as u32, tracks);
    let (times, _) = plain_turns(card, clock_hz, turns, |_, _| {})?;
    Ok(sustained_rate_bytes_per_s(&times, buffer_bytes))
}

/// Splits blocks into turns: a single turn for one track, else turns of 16 KiB that alternate between extents
/// of equal size.
fn turns(blocks: Range<u32>, tracks: u32) -> Box<dyn Iterator<Item = Range<u32>>> {
    if tracks <= 1 {
        return Box::new(std::iter::once(blocks));
    }
    let unit = match (blocks.end - blocks.start) / tracks {
        ..UNIT_BLOCKS => TURN_BLOCKS,
        _ => UNIT_BLOCKS,
    };
    let extent = (blocks.end - blocks.start) / tracks / unit * unit;
    let turns = (0..extent / TURN_BLOCKS).flat_map(move |turn| {
        (0..tracks).map(move |track| {
            let start = blocks.start + track * extent + turn * TURN_BLOCKS;
            start..start + TURN_BLOCKS
        })
    });
    Box::new(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_cover_each_extent_once_and_in_order() {
        for (blocks, tracks) in [(0..8192, 1), (32_768..157_768, 2), (100..9_000, 4)] {
            let mut next: Vec<Option<u32>> = vec![None; tracks as usize];
            let mut seen = std::collections::BTreeSet::new();
            for (turn, at) in turns(blocks.clone(), tracks).zip(0_u32..) {
                let next = &mut next[(at % tracks) as usize];
                assert!(next.is_none_or(|next| next == turn.start));
                *next = Some(turn.end);
                assert!(turn.clone().all(|block| seen.insert(block)));
                assert!(turn.start >= blocks.start && turn.end <= blocks.end);
            }
            let all = (blocks.end - blocks.start) as usize;
            assert!(seen.len() > all - all / 4 && seen.len() <= all);
        }
    }
}
