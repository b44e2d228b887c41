//! The floor of the latencies of many files in a folder: the lowest latency of each file, and the steps in which it rises.

use cardiograph_workload::Operation;

/// Payload per which [`slope`] is stated, in bytes.
const SLOPE_BYTES: f64 = 16_000.0;
/// Height from which a step counts as double, as a multiple of the median height.
const DOUBLE: f64 = 1.5;

/// Lowest latency of a file.
struct Floor {
    file: u32,
    /// Payload written before the file.
    before_bytes: f64,
    ns: f64,
}

fn floors(operations: impl Iterator<Item = Operation>) -> Vec<Floor> {
    let mut floors: Vec<Floor> = Vec::new();
    let mut before_bytes = 0.0;
    for operation in operations {
        let ns = operation.duration_ns() as f64;
        match floors.last_mut() {
            Some(floor) if floor.file == operation.file => floor.ns = floor.ns.min(ns),
            _ => floors.push(Floor {
                file: operation.file,
                before_bytes,
                ns,
            }),
        }
        before_bytes += operation.length_bytes as f64;
    }
    floors
}

/// Returns the slope of the least-squares line through the floor over the payload before each file.
pub(crate) fn slope(operations: impl Iterator<Item = Operation>) -> Option<f64> {
    let floors = floors(operations);
    let count = floors.len() as f64;
    let mean = |of: &dyn Fn(&Floor) -> f64| floors.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|floor| floor.before_bytes), mean(&|floor| floor.ns));
    let covariance = mean(&|floor| (floor.before_bytes - x) * (floor.ns - y));
    let variance = mean(&|floor| (floor.before_bytes - x).powi(2));
    (variance > 0.0).then(|| covariance / variance * SLOPE_BYTES)
}

/// A rise from one file to the next that stays.
struct Step {
    before_bytes: f64,
    height_ns: f64,
}

/// Returns the rises of more than `threshold_ns`. A file is no higher than the lowest after it, so that a file whose
/// every write was slow makes no step.
fn steps(operations: impl Iterator<Item = Operation>, threshold_ns: f64) -> Vec<Step> {
    let mut floors = floors(operations);
    let mut lowest = f64::INFINITY;
    for floor in floors.iter_mut().rev() {
        lowest = lowest.min(floor.ns);
        floor.ns = lowest;
    }
    let rises = floors.windows(2).map(|pair| Step {
        before_bytes: pair[1].before_bytes,
        height_ns: pair[1].ns - pair[0].ns,
    });
    rises.filter(|step| step.height_ns > threshold_ns).collect()
}

/// Returns the median payload from one step to the next.
pub(crate) fn step_bytes(
    operations: impl Iterator<Item = Operation>,
    threshold_ns: f64,
) -> Option<f64> {
    let steps = steps(operations, threshold_ns);
    let pairs = steps.windows(2);
    median(pairs.map(|pair| pair[1].before_bytes - pair[0].before_bytes))
}

/// Returns the median number of steps from one of double height to the next.
pub(crate) fn steps_per_double(
    operations: impl Iterator<Item = Operation>,
    threshold_ns: f64,
) -> Option<f64> {
    let steps = steps(operations, threshold_ns);
    let height_ns = median(steps.iter().map(|step| step.height_ns))?;
    let doubles: Vec<usize> = (0..steps.len())
        .filter(|&at| steps[at].height_ns > DOUBLE * height_ns)
        .collect();
    median(doubles.windows(2).map(|pair| (pair[1] - pair[0]) as f64))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let high = *sorted.get(sorted.len() / 2)?;
    Some(f64::midpoint(sorted[(sorted.len() - 1) / 2], high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_workload::OperationKind;

    /// Returns files of 10 writes of 100 B, with the lowest latency of each file in ns.
    fn files(count: u32, floor_ns: impl Fn(u64) -> u64) -> Vec<Operation> {
        let files = (0..count).flat_map(|file| (0..10u64).map(move |call| (file, call)));
        files
            .map(|(file, call)| Operation {
                kind: OperationKind::Write,
                file,
                offset_bytes: call * 100,
                length_bytes: 100,
                start_ns: 0,
                end_ns: floor_ns(file.into()) + call * 77,
            })
            .collect()
    }

    #[test]
    fn the_slope_is_that_of_a_constructed_rise() {
        // The floor rises by 1 µs per file of 1 kB.
        let slope = slope(files(100, |file| 5_000 + file * 1_000).into_iter()).unwrap();
        assert!((slope - 16_000.0).abs() < 1e-6, "{slope}");
    }

    #[test]
    fn steps_and_doubles_are_those_of_a_constructed_stair() {
        // A step every 12 files, every fifth of double height; noise, and files that are slow as a whole.
        let stair = |file: u64| {
            let (steps, doubles) = (file / 12, file / 60);
            let noise = file * 7919 % 97;
            let slow = if file % 50 == 17 { 40_000 } else { 0 };
            5_000 + (steps + doubles) * 1_000 + noise + slow
        };
        let files = files(400, stair);
        let found = (
            step_bytes(files.iter().copied(), 500.0),
            steps_per_double(files.iter().copied(), 500.0),
        );
        assert_eq!(found, (Some(12_000.0), Some(5.0)));
    }

    #[test]
    fn a_floor_without_steps_or_doubles_has_no_number() {
        let flat = files(100, |_| 5_000);
        assert_eq!(step_bytes(flat.iter().copied(), 500.0), None);
        let even = files(400, |file| 5_000 + file / 12 * 1_000);
        assert_eq!(step_bytes(even.iter().copied(), 500.0), Some(12_000.0));
        assert_eq!(steps_per_double(even.iter().copied(), 500.0), None);
    }
}
