//! The unit: a sequential stream is slower where one flash block ends and the next begins.

use crate::answer::Answer;
use crate::boundary::{Level, VALUES_MIN, step};
use crate::session::{Session, Stage, Stop};

/// Bytes after which the stream is evaluated.
const ROUNDS_BYTES: [u64; 5] = [16 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20];
/// Smallest length of a write.
const PIECE_BYTES_MIN: u64 = 8 << 10;
/// Writes between two boundaries of the smallest size, so that no write touches two boundaries.
const PIECES_PER_STEP: u64 = 4;
/// A unit, and how much longer a stream takes at each boundary.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) bytes: u64,
    pub(crate) boundary_ns: f64,
}

/// Finds the unit.
pub(crate) fn find(session: &mut Session, page_bytes: u64) -> Result<Answer<Unit>, Stop> {
    session.enter(Stage::Unit);
    let piece_bytes = (2 * page_bytes).max(PIECE_BYTES_MIN);
    let base = session.base();
    let room = session.bytes() - base;
    let mut latencies = Vec::new();
    let mut doubt = "the region is too small".to_string();
    for bytes in ROUNDS_BYTES {
        if bytes > room {
            break;
        }
        session.fill(bytes)?;
        while (latencies.len() as u64) < bytes / piece_bytes {
            let offset = base + latencies.len() as u64 * piece_bytes;
            latencies.push(session.write(offset, piece_bytes)?);
        }
        match step(&levels(&latencies, piece_bytes)) {
            Ok(found) if found.confidence >= 0.99 => {
                let more_ms = found.height / 1e6;
                let unit = Unit {
                    bytes: found.bytes,
                    boundary_ns: found.height,
                };
                return Ok(Answer::known(
                    unit,
                    found.confidence,
                    format!("a stream takes {more_ms:.1} ms longer at each boundary"),
                ));
            }
            Ok(_) => doubt = "the difference at boundaries is close to the noise".to_string(),
            Err(reason) => doubt = reason,
        }
    }
    Ok(Answer::cannot_tell(format!("a sequential stream: {doubt}")))
}

/// Returns the time of the two writes around each boundary, by the size whose odd multiple the boundary is.
fn levels(latencies: &[f64], piece_bytes: u64) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut pieces = PIECES_PER_STEP;
    loop {
        let boundaries = (pieces..latencies.len() as u64).step_by(2 * pieces as usize);
        let around = |at: u64| latencies[at as usize - 1] + latencies[at as usize];
        let values: Vec<f64> = boundaries.map(around).collect();
        if values.len() < VALUES_MIN {
            return levels;
        }
        levels.push(Level {
            bytes: pieces * piece_bytes,
            values,
        });
        pieces *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_counts_at_its_boundary_only() {
        // The writes before and after each multiple of 16 pieces are slow.
        let is_slow = |at: u64| at % 16 == 15 || at.is_multiple_of(16);
        let latencies: Vec<f64> = (0..512)
            .map(|at| if is_slow(at) { 3.0 } else { 1.0 })
            .collect();
        for level in levels(&latencies, 8 << 10) {
            let expected = if level.bytes >= 128 << 10 { 6.0 } else { 2.0 };
            assert!(
                level.values.iter().all(|&value| value == expected),
                "{}",
                level.bytes
            );
        }
    }
}
