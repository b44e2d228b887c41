//! Writes to random offsets of a card without a file system, as `dd` sends them through Linux's page cache.
//!
//! Transfers count in units of `dd`, whose 1M is 2^20 bytes: the study's chunks of 1M, 512k and 1k add up to the same total.
//!
//! ```text
//!   transfers of a workload ──> offsets on the whole card ── by address, adjacent ones joined ──> driver ──> card
//! ```

use crate::Operations;
use cardiograph_sim_card::{BLOCK_BYTES, Board, Card, Seed};
use cardiograph_store::RawCard;
use cardiograph_workload::{Operation, OperationKind, Phase, Workload};
use std::ops::Range;

/// Length of a call that stands for 1M of `dd`, in bytes, in the workloads of the study.
const MB: u32 = 1_000_000;
/// 1M of `dd`, in bytes.
const DD_MB: u32 = 1 << 20;

/// Runs the phases of a workload that write to random offsets, on the whole card instead of within a file, and skips the
/// other phases. Each pass, with the `sync` after it, is one operation. Counts the time-outs of the driver in each phase, and
/// returns the card.
///
/// # Errors
/// If the card fails or is too small for a phase, if the workload has no such phase, or if one does not consist of whole
/// runs of whole blocks.
pub(crate) fn run(
    workload: &Workload,
    card: Card,
    board: &Board,
    seed: Seed,
    operations: &mut Operations,
) -> Result<Card, String> {
    let is_random = |phase: &Phase| phase.jump_within_bytes > 0;
    if !workload.phases.iter().any(is_random) {
        return Err(String::from(
            "no phase writes to random offsets; remove `raw`",
        ));
    }
    let mut random = seed.stream("random offsets");
    let mut card = RawCard::new(card, board).map_err(|error| error.to_string())?;
    let blocks = card.blocks().map_err(|error| error.to_string())?;
    for (number, phase) in workload.phases.iter().enumerate() {
        let timeouts_before = card.timeouts();
        if !is_random(phase) {
            operations.timeouts_of_phases.push(0);
            continue;
        }
        let transfer = Transfer::of(phase).ok_or_else(|| {
            format!(
                "phase {} does not write one file in whole runs of whole blocks; remove `raw`",
                number + 1
            )
        })?;
        for _ in 0..phase.passes {
            let offsets = transfer.offsets(blocks, |bound| random.below(bound))?;
            let start_ns = card.clock().now_ns();
            let calls = u64::from(transfer.runs) * u64::from(transfer.calls_per_run);
            let length_bytes = calls * u64::from(transfer.blocks_per_call) * BLOCK_BYTES as u64;
            let call_ns = board.write_call_ns(length_bytes / calls);
            card.clock()
                .advance_ns(calls * call_ns + 3 * board.call_ns());
            for extent in joined(offsets) {
                card.write(extent.start, extent.end - extent.start)
                    .map_err(|error| error.to_string())?;
            }
            operations.all.push(Operation {
                kind: OperationKind::Write,
                file: operations.files_of(number).start,
                offset_bytes: 0,
                length_bytes,
                start_ns,
                end_ns: card.clock().now_ns(),
            });
        }
        let timeouts = card.timeouts() - timeouts_before;
        operations.timeouts_of_phases.push(timeouts);
    }
    Ok(card.into_card())
}

/// The writes of a pass: runs of calls to consecutive blocks.
struct Transfer {
    runs: u32,
    calls_per_run: u32,
    blocks_per_call: u32,
}

impl Transfer {
    /// Returns the transfer of a phase; `None` unless it writes one file in whole blocks and whole runs.
    fn of(phase: &Phase) -> Option<Transfer> {
        let call_bytes = match phase.bytes_per_call {
            MB => DD_MB,
            bytes => bytes,
        };
        let is_whole = call_bytes >= BLOCK_BYTES as u32
            && call_bytes.is_multiple_of(BLOCK_BYTES as u32)
            && phase.calls_per_file.is_multiple_of(phase.jump_every_calls);
        let writes_one = phase.operation == OperationKind::Write && phase.files == 1;
        (is_whole && writes_one).then(|| Transfer {
            runs: phase.calls_per_file / phase.jump_every_calls,
            calls_per_run: phase.jump_every_calls,
            blocks_per_call: call_bytes / BLOCK_BYTES as u32,
        })
    }

    /// Returns the blocks of each run. Like `seek` of `dd`, offsets are multiples of the length of a call.
    fn offsets(
        &self,
        blocks: u32,
        mut below: impl FnMut(u64) -> u64,
    ) -> Result<Vec<Range<u32>>, String> {
        let too_small = || format!("the card has {blocks} blocks, too few for a transfer");
        let run = self.blocks_per_call.checked_mul(self.calls_per_run);
        let run = run.ok_or_else(too_small)?;
        let places = blocks.checked_sub(run).ok_or_else(too_small)? / self.blocks_per_call + 1;
        Ok((0..self.runs)
            .map(|_| below(places.into()) as u32 * self.blocks_per_call)
            .map(|start| start..start + run)
            .collect())
    }
}

/// Sorts extents by address, and joins those that touch or overlap.
fn joined(mut extents: Vec<Range<u32>>) -> Vec<Range<u32>> {
    extents.sort_unstable_by_key(|extent| extent.start);
    let mut joined: Vec<Range<u32>> = Vec::new();
    for extent in extents {
        match joined.last_mut() {
            Some(last) if last.end >= extent.start => last.end = last.end.max(extent.end),
            _ => joined.push(extent),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use cardiograph_workload::workload;
    use std::collections::BTreeSet;

    #[test]
    fn offsets_are_whole_calls_anywhere_on_the_card() {
        let phase = workload("chunk-sweep").unwrap().phases[2];
        let mut random = Seed::new(1).stream("test");
        let transfer = Transfer::of(&phase).unwrap();
        let offsets = transfer.offsets(1000, |bound| random.below(bound)).unwrap();
        assert_eq!(offsets.len(), 32);
        assert!(
            offsets
                .iter()
                .all(|run| run.start % 64 == 0 && run.len() == 64)
        );
        // Of 1000 blocks, the last 40 are not enough for another chunk of 32 KiB.
        assert!(offsets.iter().all(|run| run.end <= 960));
        let ends: BTreeSet<u32> = offsets.iter().map(|run| run.end).collect();
        assert!(ends.contains(&64) || ends.contains(&960), "{ends:?}");
        assert!(transfer.offsets(63, |_| 0).is_err());
    }

    #[test]
    fn only_whole_blocks_in_whole_runs_are_sent() {
        let phase = workload("cache-size").unwrap().phases[0];
        assert!(Transfer::of(&phase).is_some_and(|transfer| transfer.blocks_per_call == 2048));
        let refused = [
            Phase {
                bytes_per_call: 100,
                ..phase
            },
            Phase {
                bytes_per_call: 700,
                ..phase
            },
            Phase {
                jump_every_calls: 2,
                ..phase
            },
            Phase { files: 2, ..phase },
            Phase {
                operation: OperationKind::Read,
                ..phase
            },
        ];
        assert!(refused.iter().all(|phase| Transfer::of(phase).is_none()));
    }

    #[test]
    fn a_workload_without_random_offsets_is_refused() {
        let experiment = Experiment {
            is_raw: true,
            ..Experiment::new("sandisk-extreme-ii-2g", "linux-reader", "file-size")
        };
        let error = experiment.run(1).err().unwrap().to_string();
        assert!(error.contains("remove `raw`"), "{error}");
    }

    #[test]
    fn joined_extents_cover_the_same_blocks() {
        let mut random = Seed::new(2).stream("test");
        for _ in 0..200 {
            let extents: Vec<Range<u32>> = (0..20)
                .map(|_| [100, 8].map(|bound| random.below(bound) as u32))
                .map(|[start, more]| start..start + 1 + more)
                .collect();
            let blocks: BTreeSet<u32> = extents.iter().cloned().flatten().collect();
            let joined = joined(extents);
            assert!(joined.iter().cloned().flatten().eq(blocks));
            assert!(joined.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn a_reader_hangs_once_for_each_32_mib_of_a_run_that_another_block_follows() {
        let mut experiment = Experiment {
            is_raw: true,
            ..Experiment::new("sandisk-extreme-ii-2g", "linux-reader-hangs", "cache-size")
        };
        let run = |experiment: &Experiment| experiment.run(1).unwrap();
        let hanging = run(&experiment);
        // 25, 32, 33, 35, 38, 50 and 100 MiB, five times each.
        let of_phases = [0, 0, 1, 1, 1, 1, 3].map(|times| 5 * times);
        assert_eq!(hanging.timeouts_of_phases, of_phases);
        assert_eq!(hanging.driver_timeouts(), of_phases.iter().sum::<u64>());
        assert_eq!(hanging.driver_timeouts_in(Some(1)), 0);
        experiment.board = "linux-reader".to_string();
        let working = run(&experiment);
        assert_eq!(working.driver_timeouts(), 0);
        let all_ns = |run: &Operations| run.all.iter().map(Operation::duration_ns).sum::<u64>();
        let more_s = (all_ns(&hanging) - all_ns(&working)) as f64 / 1e9;
        assert!(
            (35.0 * 30.0 - 5.0..35.0 * 30.0 + 5.0).contains(&more_s),
            "{more_s}"
        );
    }
}
