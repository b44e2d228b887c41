//! Runs: a compact representation of the positions (file and offset) of a trace's operations.

use cardiograph_workload::{Operation, OperationKind};

/// Consecutive operations that differ only in their position, which advances by a rule: through one file, or
/// through several files round-robin.
///
/// Operation `i` goes to file `file + i % files`, at offset `offset_bytes + (i / files) * length_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Kind of the operations.
    pub kind: OperationKind,
    /// Number of the first file.
    pub file: u32,
    /// Number of files visited round-robin: 1 for a single file.
    pub files: u32,
    /// Offset of the first operation in each file, in bytes.
    pub offset_bytes: u64,
    /// Payload of each operation, in bytes.
    pub length_bytes: u64,
    /// Number of operations.
    pub count: u64,
}

/// Position of an operation's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    file: u32,
    offset_bytes: u64,
}

impl Run {
    fn of(first: &Operation, count: u64) -> Run {
        Run {
            kind: first.kind,
            file: first.file,
            files: 1,
            offset_bytes: first.offset_bytes,
            length_bytes: first.length_bytes,
            count,
        }
    }

    #[inline]
    fn same_kind_and_length(&self, operation: &Operation) -> bool {
        self.kind == operation.kind && self.length_bytes == operation.length_bytes
    }

    /// Returns true if an operation adds one more file to the first round of a round-robin run.
    fn is_joined_by(&self, operation: &Operation) -> bool {
        self.count == u64::from(self.files)
            && self.same_kind_and_length(operation)
            && self.offset_bytes == operation.offset_bytes
            && operation.file.checked_sub(self.file) == Some(self.files)
            && self.files < u32::MAX
    }

    /// Returns the position after `position` in this run; file and offset wrap, so no position can panic.
    #[inline]
    fn after(&self, position: Position) -> Position {
        let file = position.file.wrapping_add(1);
        if file.wrapping_sub(self.file) < self.files {
            return Position { file, ..position };
        }
        Position {
            file: self.file,
            offset_bytes: position.offset_bytes.wrapping_add(self.length_bytes),
        }
    }

    /// Returns file and offset in bytes of operation `index`.
    pub fn file_and_offset(&self, index: u64) -> (u32, u64) {
        let files = u64::from(self.files.max(1));
        let rounds_bytes = (index / files).wrapping_mul(self.length_bytes);
        let file = self.file.wrapping_add((index % files) as u32);
        (file, self.offset_bytes.wrapping_add(rounds_bytes))
    }

    /// File and offset of every operation.
    fn positions(&self) -> impl Iterator<Item = Position> + Clone + '_ {
        let first = Position {
            file: self.file,
            offset_bytes: self.offset_bytes,
        };
        (0..self.count).scan(first, |next, _| {
            let position = *next;
            *next = self.after(position);
            Some(position)
        })
    }
}

/// The runs of a growing trace.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// Position at which the last run continues. Cached because computing it takes a division.
    next: Position,
}

impl Runs {
    /// Appends an operation.
    #[inline]
    pub(crate) fn push(&mut self, operation: &Operation) {
        match self.runs.last_mut() {
            Some(run)
                if run.same_kind_and_length(operation)
                    && self.next.offset_bytes == operation.offset_bytes
                    && self.next.file == operation.file =>
            {
                run.count += 1;
                self.next = run.after(self.next);
            }
            _ => self.join_or_start(operation),
        }
    }

    /// Appends sequential operations of a single file.
    pub(crate) fn push_sequence(&mut self, first: &Operation, count: u64) {
        let Some(more) = count.checked_sub(1) else {
            return;
        };
        self.push(first);
        let more_bytes = more.wrapping_mul(first.length_bytes);
        match self.runs.last_mut() {
            _ if more == 0 => {}
            Some(run) if run.files == 1 => {
                run.count += more;
                self.next.offset_bytes = self.next.offset_bytes.wrapping_add(more_bytes);
            }
            // In a round-robin run, the next operation would have gone to another file.
            _ => {
                let offset_bytes = first.offset_bytes.wrapping_add(first.length_bytes);
                let second = Operation {
                    offset_bytes,
                    ..*first
                };
                self.start(&second, more);
            }
        }
    }

    /// Joins or starts a run. This is a separate function, so that continuing a run takes only a few
    /// comparisons.
    #[inline(never)]
    fn join_or_start(&mut self, operation: &Operation) {
        match self.runs.last_mut() {
            // The next position is unchanged: the second round begins in the first file.
            Some(run) if run.is_joined_by(operation) => {
                run.files += 1;
                run.count += 1;
            }
            _ => self.start(operation, 1),
        }
    }

    fn start(&mut self, first: &Operation, count: u64) {
        let length_bytes = count.wrapping_mul(first.length_bytes);
        self.next = Position {
            file: first.file,
            offset_bytes: first.offset_bytes.wrapping_add(length_bytes),
        };
        self.runs.push(Run::of(first, count));
    }

    pub(crate) fn as_slice(&self) -> &[Run] {
        &self.runs
    }

    /// All operations, with their times set to 0.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation> + Clone + '_ {
        self.runs.iter().flat_map(|run| {
            run.positions().map(move |position| Operation {
                kind: run.kind,
                file: position.file,
                offset_bytes: position.offset_bytes,
                length_bytes: run.length_bytes,
                start_ns: 0,
                end_ns: 0,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: u32, block: u64) -> Operation {
        Operation {
            kind: OperationKind::Write,
            file,
            offset_bytes: 512 * block,
            length_bytes: 512,
            start_ns: 0,
            end_ns: 0,
        }
    }

    /// Pushes writes given by file and block; returns file, files and count of each run.
    fn runs(writes: &[(u32, u64)]) -> Vec<(u32, u32, u64)> {
        let mut runs = Runs::default();
        let writes = writes.iter().map(|&(file, block)| write(file, block));
        writes.clone().for_each(|operation| runs.push(&operation));
        assert!(runs.operations().eq(writes));
        let shape = |run: &Run| (run.file, run.files, run.count);
        runs.as_slice().iter().map(shape).collect()
    }

    #[test]
    fn a_rotation_grows_in_its_first_round_only() {
        assert_eq!(runs(&[(0, 0), (0, 1), (1, 0)]), [(0, 1, 2), (1, 1, 1)]);
        assert_eq!(runs(&[(4, 7), (5, 7), (4, 8), (5, 8)]), [(4, 2, 4)]);
        // Test a third file that joins too late, a file that starts at another offset, and a file whose
        // number is not adjacent.
        assert_eq!(
            runs(&[(0, 0), (1, 0), (0, 1), (2, 0)]),
            [(0, 2, 3), (2, 1, 1)]
        );
        assert_eq!(runs(&[(0, 0), (1, 1)]), [(0, 1, 1), (1, 1, 1)]);
        assert_eq!(runs(&[(0, 0), (2, 0)]), [(0, 1, 1), (2, 1, 1)]);
        assert_eq!(
            runs(&[(u32::MAX, 0), (0, 0)]),
            [(u32::MAX, 1, 1), (0, 1, 1)]
        );
    }

    #[test]
    fn a_rotation_may_include_the_last_file_number() {
        let last = u32::MAX;
        let writes = [(last - 1, 0), (last, 0), (last - 1, 1), (last, 1)];
        assert_eq!(runs(&writes), [(last - 1, 2, 4)]);
    }

    /// A sequence after a round-robin run is stored as if its operations had been pushed one by one.
    #[test]
    fn a_sequence_equals_its_single_operations() {
        for before in [&[][..], &[(1, 0)], &[(0, 0)], &[(0, 0), (2, 5)], &[(1, 5)]] {
            for (file, block, count) in [(1, 0, 3), (1, 1, 3), (1, 0, 1), (2, 5, 2), (2, 5, 0)] {
                let (mut whole, mut single) = (Runs::default(), Runs::default());
                for &(file, block) in before {
                    whole.push(&write(file, block));
                    single.push(&write(file, block));
                }
                whole.push_sequence(&write(file, block), count);
                (0..count).for_each(|i| single.push(&write(file, block + i)));
                assert_eq!(whole.as_slice(), single.as_slice());
                assert_eq!(whole.next, single.next);
            }
        }
    }

    #[test]
    fn a_run_takes_40_bytes() {
        assert_eq!(size_of::<Run>(), 40);
    }
}
