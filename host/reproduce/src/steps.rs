//! Commands of a recording, divided into the pages of another card.
//!
//! ```text
//!   recorded, pages of 8 blocks     command │ 0–7 │ 8–15 │ 16–19 │ settle
//!   replayed, pages of 16 blocks    command │     │ 0–15 │       │ 16–19, settle
//! ```

use cardiograph_sim_card::{Operation, TimedOperation};
use std::ops::Range;

/// Operations of a replayed card at the time of one recorded operation.
pub(crate) struct Step {
    /// Start of the recorded operation, in ns.
    pub(crate) start_ns: u64,
    /// Busy time of the recorded operation, in ns.
    pub(crate) busy_ns: u64,
    operations: Operations,
}

/// Operations at one time. Nearly always there is one, which needs no list.
enum Operations {
    One(Operation),
    /// None while a page is incomplete.
    Several(Vec<Operation>),
}

impl Step {
    /// Returns the operations of the replayed card.
    pub(crate) fn operations(&self) -> &[Operation] {
        match &self.operations {
            Operations::One(operation) => std::slice::from_ref(operation),
            Operations::Several(operations) => operations,
        }
    }
}

/// Divides recorded operations into pages of another size. `pages` has the numbers of blocks per page: of the recorded card,
/// and of the replayed one.
pub(crate) fn steps(
    calls: &[TimedOperation],
    (recorded_blocks, page_blocks): (u64, u64),
) -> impl Iterator<Item = Step> {
    let mut received = 0..0;
    calls.iter().map(move |call| {
        let operations = match recorded_blocks == page_blocks {
            true => Operations::One(call.operation),
            false => Operations::Several(divided(&mut received, call.operation, page_blocks)),
        };
        Step {
            start_ns: call.start_ns,
            busy_ns: call.busy_ns,
            operations,
        }
    })
}

/// Returns the operations of a card after a recorded one. `received` holds the blocks of an incomplete page, which it programs when
/// the command ends or continues elsewhere.
fn divided(received: &mut Range<u64>, operation: Operation, page_blocks: u64) -> Vec<Operation> {
    // An empty list takes no memory.
    let mut done = Vec::new();
    let write = |blocks: Range<u64>| Operation::Write {
        start: blocks.start,
        count: blocks.end - blocks.start,
    };
    let next = match operation {
        Operation::Write { start, count } => Some(start..start + count),
        _ => None,
    };
    if !received.is_empty() && next.as_ref().is_none_or(|next| next.start != received.end) {
        done.push(write(received.clone()));
        *received = 0..0;
    }
    let Some(next) = next else {
        done.push(operation);
        return done;
    };
    if received.is_empty() {
        *received = next.start..next.start;
    }
    received.end = next.end;
    while received.start / page_blocks < received.end / page_blocks {
        let border = (received.start / page_blocks + 1) * page_blocks;
        done.push(write(received.start..border));
        received.start = border;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(start: u64, count: u64) -> Operation {
        Operation::Write { start, count }
    }

    fn divide(operations: &[Operation], page_blocks: u64) -> Vec<Vec<Operation>> {
        let mut received = 0..0;
        let operations = operations.iter();
        operations
            .map(|operation| divided(&mut received, *operation, page_blocks))
            .collect()
    }

    #[test]
    fn pages_are_joined_up_to_the_end_of_a_command() {
        let recorded = [
            Operation::Command,
            write(4, 4),
            write(8, 8),
            write(16, 3),
            Operation::Settle,
            Operation::Command,
            write(19, 1),
            Operation::Settle,
        ];
        let expected = [
            vec![Operation::Command],
            vec![],
            vec![write(4, 12)],
            vec![],
            vec![write(16, 3), Operation::Settle],
            vec![Operation::Command],
            vec![],
            vec![write(19, 1), Operation::Settle],
        ];
        assert_eq!(divide(&recorded, 16), expected);
    }

    #[test]
    fn pages_are_divided_at_the_borders_of_smaller_ones() {
        let recorded = [write(6, 10), write(40, 1), Operation::Settle];
        let expected = [
            vec![write(6, 2), write(8, 4), write(12, 4)],
            vec![],
            vec![write(40, 1), Operation::Settle],
        ];
        assert_eq!(divide(&recorded, 4), expected);
    }

    /// The file system of a busy card may continue elsewhere without another command.
    #[test]
    fn an_incomplete_page_is_programmed_before_blocks_elsewhere() {
        let recorded = [write(0, 2), write(100, 8)];
        let expected = [vec![], vec![write(0, 2), write(100, 4), write(104, 4)]];
        assert_eq!(divide(&recorded, 4), expected);
    }
}
