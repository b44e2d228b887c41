//! Distinguishes writes, reads and other operations by a column such as `op` or `rw`.

use crate::read::error::{Fault, Problem, shown};
use crate::read::operation::{Named, operation_named};
use crate::read::remedy::awk;
use crate::read::role::is_of_reads;
use cardiograph_workload::OperationKind;

/// The column of operations, for messages.
pub(super) struct Column {
    pub index: usize,
    pub name: String,
    pub separator: u8,
    /// Line with the names of the columns; 0 if there is none.
    pub header_line: u64,
}

/// Counts of rows by their operation.
pub(super) struct Directions {
    /// Operation of rows that state none.
    usual: OperationKind,
    writes: u64,
    reads: u64,
    others: u64,
    /// The first unknown names; `unknown_line` is the line of the first of them.
    unknown: Vec<String>,
    unknown_line: u64,
    /// A name that stands for a write.
    write: Option<String>,
}

impl Directions {
    pub(super) fn new(usual: OperationKind) -> Directions {
        Directions {
            usual,
            writes: 0,
            reads: 0,
            others: 0,
            unknown: Vec::new(),
            unknown_line: 0,
            write: None,
        }
    }

    /// Returns the kind of a row; `None` for one that is neither a write nor a read.
    pub(super) fn kind(&mut self, direction: Option<&[u8]>, line: u64) -> Option<OperationKind> {
        const UNKNOWN_MAX: usize = 4;
        let Some(text) = direction else {
            return Some(self.usual);
        };
        match operation_named(text) {
            Some(Named::Data(OperationKind::Write)) => {
                self.writes += 1;
                if self.write.is_none() {
                    self.write = Some(shown(text));
                }
                Some(OperationKind::Write)
            }
            Some(Named::Data(OperationKind::Read)) => {
                self.reads += 1;
                Some(OperationKind::Read)
            }
            Some(Named::Other) => {
                self.others += 1;
                None
            }
            None => {
                if self.unknown.is_empty() {
                    self.unknown_line = line;
                }
                let name = shown(text);
                if self.unknown.len() < UNKNOWN_MAX && !self.unknown.contains(&name) {
                    self.unknown.push(name);
                }
                Some(self.usual)
            }
        }
    }

    /// Returns the notes about rows that the figures omit.
    pub(super) fn finish(self, column: Option<&Column>) -> Result<Vec<String>, Fault> {
        let mut notes = Vec::new();
        let is_known = self.writes + self.reads + self.others > 0;
        if let (Some(column), Some(first)) = (column, self.unknown.first()) {
            if is_known || self.unknown.len() > 1 {
                return Err(self.refused(column));
            }
            notes.push(format!(
                "The column \"{}\" is \"{first}\" in every row; all rows are read as writes.",
                column.name
            ));
        }
        // If there are no writes, the figures are those of the reads.
        match (self.reads, self.others) {
            _ if self.writes == 0 => {}
            (0, 0) => {}
            (reads, 0) => notes.push(crate::read::left_out(reads)),
            (reads, others) => notes.push(format!(
                "The figures cover writes only: {reads} reads and {others} other operations are left out."
            )),
        }
        Ok(notes)
    }

    fn refused(self, column: &Column) -> Fault {
        let (at, header) = (column.index + 1, column.header_line);
        let kept = match is_of_reads(column.name.as_bytes()) {
            true => self.unknown.iter().min(),
            false => self.unknown.iter().max(),
        };
        let kept = self.write.as_ref().or(kept);
        let kept = kept.map_or("", String::as_str);
        Problem::UnknownOperations {
            column: column.name.clone(),
            names: self.unknown.join(", "),
            keep: awk(
                column.separator,
                &format!("NR <= {header} || ${at} == \"{kept}\""),
            ),
            rename: awk(
                column.separator,
                &format!("{{ ${at} = NR == {header} ? \"x\" : \"W\" }} 1"),
            ),
        }
        .at_line(self.unknown_line)
    }
}
