//! Runs: a compact representation of the positions (file and offset) of a trace's operations.

use crate::spill::Spill;
use crate::values::{Iter, Values};
use cardiograph_workload::{Operation, OperationKind};

/// Operations in a row that differ only in their position. The files follow by a rule: one file, or several files
/// round-robin.
///
/// Operation `i` goes to file `file + i % files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Kind of the operations.
    pub kind: OperationKind,
    /// Rule of the offsets.
    pub order: RunOrder,
    /// Number of the first file.
    pub file: u32,
    /// Number of files visited round-robin: 1 for a single file.
    pub files: u32,
    /// Offset of the first operation in the first file, in bytes.
    pub offset_bytes: u64,
    /// Payload of each operation, in bytes.
    pub length_bytes: u64,
    /// Number of operations.
    pub count: u64,
}

/// Rule of the offsets of a [`Run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrder {
    /// Operation `i` is at offset `offset_bytes + (i / files) * length_bytes`.
    Sequential,
    /// The trace stores the offset of each operation, a multiple of `length_bytes` below [`Run::SCATTERED_BYTES_MAX`].
    Scattered,
}

/// Position of an operation's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    file: u32,
    offset_bytes: u64,
}

/// A sequential run of fewer operations takes more memory than their offsets.
const SEQUENTIAL_MIN: u64 = 10;

/// Largest number of files of a scattered run: as many as a workload keeps open.
const SCATTERED_FILES_MAX: u32 = 8;

/// Longest payload of scattered operations.
const SCATTERED_LENGTH_MAX: u64 = 1 << 30;

/// Number of operations that continue where the one before them in the same file ended, after which a scattered run ends.
const STREAK_MAX: u64 = 16;

impl Run {
    /// Upper limit of the end of scattered operations.
    pub const SCATTERED_BYTES_MAX: u64 = 1 << 62;

    fn of(first: &Operation, count: u64) -> Run {
        Run {
            kind: first.kind,
            order: RunOrder::Sequential,
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

    /// Returns true if an operation visits one more file in the first round of a round-robin run.
    fn is_joined_by(&self, operation: &Operation) -> bool {
        self.count == u64::from(self.files)
            && self.same_kind_and_length(operation)
            && operation.file.checked_sub(self.file) == Some(self.files)
            && self.files < u32::MAX
    }

    /// Returns the file that operation `index` goes to.
    pub fn file_of(&self, index: u64) -> u32 {
        let within = (index % u64::from(self.files.max(1))) as u32;
        self.file.wrapping_add(within)
    }

    /// Returns file and offset in bytes of operation `index`, if the run is sequential.
    pub fn file_and_offset(&self, index: u64) -> (u32, u64) {
        let files = u64::from(self.files.max(1));
        let rounds_bytes = (index / files).wrapping_mul(self.length_bytes);
        (
            self.file_of(index),
            self.offset_bytes.wrapping_add(rounds_bytes),
        )
    }

    /// Returns an offset in units of the payload, if a scattered run can hold it.
    fn units(&self, offset_bytes: u64) -> Option<u32> {
        let fits = (1..=SCATTERED_LENGTH_MAX).contains(&self.length_bytes)
            && offset_bytes.is_multiple_of(self.length_bytes);
        u32::try_from(offset_bytes.checked_div(self.length_bytes)?)
            .ok()
            .filter(|_| fits)
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

    fn first(&self) -> Position {
        Position {
            file: self.file,
            offset_bytes: self.offset_bytes,
        }
    }
}

/// The runs of a growing trace.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// Position at which the last run continues, if it is sequential. Cached because computing it takes a division.
    next: Position,
    /// Offsets of the operations of all scattered runs.
    offsets: Values,
    /// Offset at which each file of the last run continues, if it is scattered.
    ends_bytes: [u64; SCATTERED_FILES_MAX as usize],
    /// Number of the last operations that continued where the one before them in the same file ended.
    streak: u64,
}

impl Runs {
    /// Appends an operation.
    #[inline]
    pub(crate) fn push(&mut self, operation: &Operation) {
        match self.runs.last_mut() {
            Some(run)
                if self.next.offset_bytes == operation.offset_bytes
                    && self.next.file == operation.file
                    && run.same_kind_and_length(operation)
                    && run.order == RunOrder::Sequential =>
            {
                run.count += 1;
                self.next = run.after(self.next);
            }
            _ => self.join_or_start(operation),
        }
    }

    /// Appends sequential operations of a single file.
    pub(crate) fn push_sequence(&mut self, first: &Operation, count: u64) {
        let mut next = *first;
        let mut left = count;
        while left > 0 {
            match self.runs.last_mut() {
                Some(run)
                    if run.order == RunOrder::Sequential
                        && run.files == 1
                        && run.same_kind_and_length(&next)
                        && (self.next.file, self.next.offset_bytes)
                            == (next.file, next.offset_bytes) =>
                {
                    run.count += left;
                    let bytes = left.wrapping_mul(next.length_bytes);
                    self.next.offset_bytes = self.next.offset_bytes.wrapping_add(bytes);
                    return;
                }
                _ => self.push(&next),
            }
            next.offset_bytes = next.offset_bytes.wrapping_add(next.length_bytes);
            left -= 1;
        }
    }

    /// Joins or starts a run. This is a separate function, so that continuing a sequential run takes only a few
    /// comparisons.
    #[inline(never)]
    fn join_or_start(&mut self, operation: &Operation) {
        if let Some(run) = self.runs.last_mut()
            && run.order == RunOrder::Sequential
            && run.is_joined_by(operation)
            && run.offset_bytes == operation.offset_bytes
        {
            // The next position is unchanged: the second round begins in the first file.
            run.files += 1;
            run.count += 1;
        } else if !self.scatter(operation) {
            self.start(operation);
        }
    }

    /// Appends an operation to a scattered run, which the last run becomes if it is short. Returns false if the operation
    /// needs a run of its own.
    fn scatter(&mut self, operation: &Operation) -> bool {
        let Some(before) = self.runs.last().copied() else {
            return false;
        };
        let mut run = before;
        let is_in_turn = operation.file == run.file_of(run.count);
        let is_joined = !is_in_turn && run.is_joined_by(operation);
        if is_joined {
            run.files += 1;
        }
        let fits = run.same_kind_and_length(operation)
            && (is_in_turn || is_joined)
            && run.files <= SCATTERED_FILES_MAX;
        let Some(units) = run.units(operation.offset_bytes).filter(|_| fits) else {
            return false;
        };
        match run.order {
            RunOrder::Scattered if self.streak >= STREAK_MAX => return false,
            RunOrder::Scattered => {}
            RunOrder::Sequential if run.count >= SEQUENTIAL_MIN => return false,
            RunOrder::Sequential if !self.scatter_run(&before) => return false,
            RunOrder::Sequential => run.order = RunOrder::Scattered,
        }
        self.offsets.push(units);
        let end_bytes = &mut self.ends_bytes[(run.count % u64::from(run.files)) as usize];
        let continues = !is_joined && *end_bytes == operation.offset_bytes;
        self.streak = if continues { self.streak + 1 } else { 0 };
        *end_bytes = operation.offset_bytes + operation.length_bytes;
        run.count += 1;
        if let Some(last) = self.runs.last_mut() {
            *last = run;
        }
        true
    }

    /// Stores the offsets of a sequential run, unless they do not fit.
    fn scatter_run(&mut self, run: &Run) -> bool {
        let last_bytes = run.count.div_ceil(u64::from(run.files)).saturating_sub(1);
        let last_bytes = last_bytes.saturating_mul(run.length_bytes);
        let fits = run.units(run.offset_bytes).is_some()
            && run
                .units(run.offset_bytes.saturating_add(last_bytes))
                .is_some();
        if !fits {
            return false;
        }
        let mut position = run.first();
        for index in 0..run.count {
            self.offsets
                .push(run.units(position.offset_bytes).unwrap_or(0));
            let file = (index % u64::from(run.files)) as usize;
            self.ends_bytes[file] = position.offset_bytes + run.length_bytes;
            position = run.after(position);
        }
        self.streak = 0;
        true
    }

    fn start(&mut self, first: &Operation) {
        self.next = Position {
            file: first.file,
            offset_bytes: first.offset_bytes.wrapping_add(first.length_bytes),
        };
        self.runs.push(Run::of(first, 1));
    }

    /// Moves offsets of scattered operations to a temporary file as they arrive.
    pub(crate) fn spill_to(&mut self, spill: Spill) {
        self.offsets.spill_to(spill);
    }

    pub(crate) fn spill_error(&self) -> Option<&std::io::Error> {
        self.offsets.spill_error()
    }

    /// Offsets of the operations of all scattered runs, in units of their length.
    pub(crate) fn scattered(&self) -> Iter<'_> {
        self.offsets.iter()
    }

    pub(crate) fn as_slice(&self) -> &[Run] {
        &self.runs
    }

    /// All operations, with their times set to 0.
    pub(crate) fn operations(&self) -> Operations<'_> {
        Operations {
            runs: self.runs.iter(),
            run: None,
            index: 0,
            next: Position::default(),
            offsets: self.offsets.iter(),
        }
    }
}

/// Iterator over the operations of runs.
#[derive(Clone)]
pub(crate) struct Operations<'a> {
    runs: std::slice::Iter<'a, Run>,
    /// The run that has not ended yet.
    run: Option<&'a Run>,
    /// Number of its operations so far.
    index: u64,
    next: Position,
    offsets: Iter<'a>,
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    #[inline]
    fn next(&mut self) -> Option<Operation> {
        let run = loop {
            match self.run {
                Some(run) if self.index < run.count => break run,
                _ => {
                    let run = self.runs.next()?;
                    (self.run, self.index, self.next) = (Some(run), 0, run.first());
                }
            }
        };
        let position = self.next;
        self.index += 1;
        self.next = run.after(position);
        let offset_bytes = match run.order {
            RunOrder::Sequential => position.offset_bytes,
            RunOrder::Scattered => {
                u64::from(self.offsets.next().unwrap_or(0)).wrapping_mul(run.length_bytes)
            }
        };
        Some(Operation {
            kind: run.kind,
            file: position.file,
            offset_bytes,
            length_bytes: run.length_bytes,
            start_ns: 0,
            end_ns: 0,
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
        // Both are scattered.
        assert_eq!(runs(&[(0, 0), (1, 1)]), [(0, 2, 2)]);
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
        for before in [
            &[][..],
            &[(1, 0)],
            &[(0, 0)],
            &[(0, 0), (2, 5)],
            &[(1, 5)],
            &[(1, 5), (1, 3)],
            &[(0, 5), (1, 3), (0, 9)],
        ] {
            for (file, block, count) in [
                (1, 0, 3),
                (1, 1, 3),
                (1, 0, 1),
                (2, 5, 2),
                (2, 5, 0),
                (1, 7, 15),
                (1, 7, 100),
            ] {
                let (mut whole, mut single) = (Runs::default(), Runs::default());
                for &(file, block) in before {
                    whole.push(&write(file, block));
                    single.push(&write(file, block));
                }
                whole.push_sequence(&write(file, block), count);
                (0..count).for_each(|i| single.push(&write(file, block + i)));
                assert_eq!(whole.as_slice(), single.as_slice());
                assert_eq!(whole.next, single.next);
                assert!(whole.operations().eq(single.operations()));
                assert!(whole.offsets.iter().eq(single.offsets.iter()));
            }
        }
    }

    /// Returns blocks in an order without any rule, the same every time.
    fn scattered_blocks(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|index| (index * 7919 + 13) % 4099)
    }

    #[test]
    fn scattered_operations_are_one_run_however_many_files_they_visit() {
        for files in 1..=SCATTERED_FILES_MAX {
            let blocks = scattered_blocks(1000).zip((0..files).cycle());
            let writes: Vec<_> = blocks.map(|(block, file)| (3 + file, block)).collect();
            assert_eq!(runs(&writes), [(3, files, 1000)]);
        }
        // The second phase goes to another file, the third one reads.
        let blocks = scattered_blocks(50).map(|block| (0, block));
        let writes: Vec<_> = blocks.chain(scattered_blocks(50).map(|b| (7, b))).collect();
        assert_eq!(runs(&writes), [(0, 1, 50), (7, 1, 50)]);
    }

    #[test]
    fn a_sequence_after_scattered_operations_takes_no_offsets() {
        let mut pushed = Runs::default();
        let blocks: Vec<_> = scattered_blocks(100).chain(5000..15_000).collect();
        let writes: Vec<_> = blocks.iter().map(|&block| write(0, block)).collect();
        writes.iter().for_each(|write| pushed.push(write));
        assert!(pushed.operations().eq(writes.iter().copied()));
        assert_eq!(pushed.as_slice().len(), 2);
        assert!(pushed.offsets.iter().count() <= 100 + STREAK_MAX as usize + 1);
        // So do passes over one file.
        let mut pushed = Runs::default();
        let writes = (0..1000).map(|index| write(0, index % 100));
        writes.for_each(|write| pushed.push(&write));
        assert_eq!(pushed.as_slice().len(), 10);
        assert_eq!(pushed.offsets.iter().count(), 0);
    }

    #[test]
    fn offsets_that_do_not_fit_have_runs_of_their_own() {
        let at = |offset_bytes: u64, length_bytes: u64| Operation {
            offset_bytes,
            length_bytes,
            ..write(0, 0)
        };
        let last = u64::from(u32::MAX);
        for operations in [
            // Not multiples of the length.
            vec![at(512, 512), at(5, 512), at(1025, 512)],
            vec![at(0, 0), at(9, 0), at(7, 0)],
            vec![at(last * 512 + 512, 512), at(0, 512)],
            vec![at(9 << 40, 1 << 40), at(3 << 40, 1 << 40)],
            vec![at(u64::MAX - 511, 512), at(512, 512)],
        ] {
            let mut pushed = Runs::default();
            operations.iter().for_each(|one| pushed.push(one));
            assert_eq!(pushed.as_slice().len(), operations.len(), "{operations:?}");
            assert!(pushed.operations().eq(operations));
        }
        let mut pushed = Runs::default();
        let operations = [at(last * 512, 512), at(0, 512)];
        operations.iter().for_each(|one| pushed.push(one));
        assert_eq!(pushed.as_slice().len(), 1);
        assert!(pushed.operations().eq(operations));
    }

    #[test]
    fn a_run_takes_40_bytes() {
        assert_eq!(size_of::<Run>(), 40);
    }
}
