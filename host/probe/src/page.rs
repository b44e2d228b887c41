//! The page: short reads across the end of a page fetch two pages.

use crate::BLOCK_BYTES;
use crate::answer::Answer;
use crate::boundary::{Level, step};
use crate::session::{Session, Stage, Stop};

/// Largest boundary that is tried.
const BOUNDARY_BYTES_MAX: u64 = 1 << 20;
/// Size of the part that is read.
const REGION_BYTES: u64 = 16 << 20;
/// Reads at each boundary, in one go.
const READS: u64 = 40;
/// Largest number of goes.
const GOES_MAX: usize = 4;

/// Finds the page size.
pub(crate) fn find(session: &mut Session) -> Result<Answer<u64>, Stop> {
    session.enter(Stage::Page);
    session.fill(REGION_BYTES)?;
    let (base, room) = (session.base(), REGION_BYTES.min(session.filled_bytes()));
    let mut levels: Vec<Level> = (0..)
        .map(|doublings| BLOCK_BYTES << doublings)
        .take_while(|&bytes| bytes <= BOUNDARY_BYTES_MAX && bytes * 16 <= room)
        .map(|bytes| Level {
            bytes,
            values: Vec::new(),
        })
        .collect();
    let mut doubt = String::new();
    for _ in 0..GOES_MAX {
        // The sizes take turns, so that a drift affects all of them alike.
        for _ in 0..READS {
            for level in &mut levels {
                let places = room / (2 * level.bytes);
                let boundary = base + (2 * session.below(places) + 1) * level.bytes;
                let ns = session.read(boundary - BLOCK_BYTES, 2 * BLOCK_BYTES)?;
                level.values.push(ns);
            }
        }
        match step(&levels) {
            Ok(found) if found.confidence >= 0.99 => {
                let more_us = found.height / 1e3;
                return Ok(Answer::known(
                    found.bytes,
                    found.confidence,
                    format!("a read across a boundary takes {more_us:.0} µs longer"),
                ));
            }
            Ok(_) => doubt = "the difference between reads is close to their noise".to_string(),
            Err(reason) => doubt = reason,
        }
    }
    Ok(Answer::cannot_tell(format!(
        "reads across boundaries up to 1 MiB: {doubt}"
    )))
}
