//! Rows that are reads or neither writes nor reads, by a column such as `op` or `rw`.

use cardiograph_workload::OperationKind;

const WRITES: &[&str] = &["w", "wr", "write", "writes"];
const READS: &[&str] = &["r", "rd", "read", "reads"];
const OTHERS: &[&str] = &[
    "d", "discard", "trim", "f", "flush", "fsync", "sync", "open", "close",
];

/// Counts of rows that are not writes.
#[derive(Default)]
pub(super) struct Directions {
    writes: u64,
    reads: u64,
    others: u64,
}

impl Directions {
    /// Returns the kind of a row; `None` for one that is neither write nor read. Columns without a known
    /// word, such as a number of a message, say nothing.
    pub(super) fn kind(&mut self, direction: Option<&[u8]>) -> Option<OperationKind> {
        let text = direction.unwrap_or_default();
        let is = |words: &[&str]| {
            words
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
        };
        if is(READS) {
            self.reads += 1;
            return Some(OperationKind::Read);
        }
        if !is(WRITES) && is(OTHERS) {
            self.others += 1;
            return None;
        }
        self.writes += 1;
        Some(OperationKind::Write)
    }

    /// Returns the note about rows that the figures of the writes leave out.
    pub(super) fn note(self) -> Option<String> {
        match (self.reads, self.others) {
            (0, 0) => None,
            // Without writes, the figures are those of the reads.
            _ if self.writes == 0 => None,
            (reads, 0) => Some(format!(
                "The figures of the writes leave out {reads} reads."
            )),
            (reads, others) => Some(format!(
                "The figures of the writes leave out {reads} reads and {others} other operations."
            )),
        }
    }
}
