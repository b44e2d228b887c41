//! Length within which the writes of a trace depend on each other.
//!
//! A bootstrap is valid only if its blocks are longer than this. Latencies that drift over the whole trace have no such
//! length, and therefore no interval.

/// Minimum number of blocks whose variance is compared with that of shorter blocks.
const CHECKED_BLOCKS_MIN: usize = 16;
/// Maximum number of standard deviations by which a variance may exceed the expected one.
const DEVIATIONS_MAX: f64 = 2.5;
/// Minimum length of a trace, in stretches of writes that depend on each other.
const STRETCHES_MIN: u64 = 50;

/// Returns the length, in writes, of the stretches within which latencies above `above_ns` depend on each other; `None`
/// if the trace is too short to tell, which is always the case if the latencies drift.
///
/// Once neighbouring blocks are independent, the variance of the share of such latencies in a block is inversely
/// proportional to the length of the block (Flyvbjerg and Petersen 1989). Lengths are doubled, starting at 1 write.
pub fn dependent_writes(latencies_ns: &[u64], above_ns: u64) -> Option<u64> {
    let mut counts: Vec<u32> = latencies_ns
        .iter()
        .map(|&ns| (ns > above_ns).into())
        .collect();
    let mut scales = Vec::new();
    while counts.len() >= CHECKED_BLOCKS_MIN {
        // The variance is divided by the length, so that it is the same for independent blocks of any length.
        scales.push((
            variance(&counts) / f64::from(1 << scales.len()),
            counts.len(),
        ));
        counts = counts
            .chunks_exact(2)
            .map(|pair| pair[0] + pair[1])
            .collect();
    }
    let is_reached = |&scale: &usize| {
        let (variance, _) = scales[scale];
        scales[scale + 1..].iter().all(|&(later, blocks)| {
            let deviation = (2.0 / (blocks as f64 - 1.0)).sqrt();
            later <= variance * (1.0 + DEVIATIONS_MAX * deviation)
        })
    };
    let writes = 1 << (0..scales.len()).find(is_reached)?;
    (latencies_ns.len() as u64 >= STRETCHES_MIN * writes).then_some(writes)
}

fn variance(counts: &[u32]) -> f64 {
    let blocks = counts.len() as f64;
    let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / blocks;
    let squares = counts
        .iter()
        .map(|&count| (f64::from(count) - mean).powi(2));
    squares.sum::<f64>() / (blocks - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drifting(writes: u64) -> Vec<u64> {
        (0..writes).map(|i| 1000 + i + i * 7919 % 100).collect()
    }

    #[test]
    fn a_drift_has_no_length() {
        assert_eq!(dependent_writes(&drifting(4000), 3000), None);
    }

    /// Phases of 16 equal writes, in a fixed order without a pattern.
    #[test]
    fn phases_have_about_their_length() {
        let phases = (0..2000u64).flat_map(|phase| [phase * phase % 1009; 16]);
        let found = dependent_writes(&Vec::from_iter(phases), 500).unwrap();
        assert!((8..=64).contains(&found), "{found}");
    }

    #[test]
    fn few_writes_have_no_length() {
        assert_eq!(dependent_writes(&[1, 2, 3], 2), None);
        assert_eq!(dependent_writes(&[], 2), None);
    }

    #[test]
    fn equal_writes_are_independent() {
        assert_eq!(dependent_writes(&[5; 100], 5), Some(1));
    }
}
