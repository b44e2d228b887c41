//! Contents of files, read without the recorder's code.

use crate::fat_rig::{Disk, check};

/// Numbered lines of the files of one stream.
#[derive(Debug, Default)]
pub struct Files {
    /// Indices of the samples, in the order of the files.
    pub samples: Vec<u64>,
    /// First index and count of each gap.
    pub gaps: Vec<(u64, u64)>,
    /// Causes of the gaps.
    pub causes: Vec<String>,
    /// Names of the files.
    pub names: Vec<String>,
    /// Lines that are neither samples nor written by the recorder itself.
    pub others: Vec<String>,
    /// Last line of each file.
    pub ends: Vec<String>,
    /// Total length of the files.
    pub bytes: u64,
}

impl Files {
    /// Reads the files of a stream of [`line`](super::line)s of this length.
    pub fn read(disk: &Disk, stream: usize, line_bytes: usize) -> Files {
        let listing = check(disk, 0).unwrap();
        let letter = b'A' + stream as u8;
        let mut files = Files::default();
        // Names sort by number.
        for (name, entry) in &listing.files {
            let is_recording = name.ends_with("CSV") || name.ends_with("BIN");
            if !is_recording || name.as_bytes()[..3] != [letter; 3] {
                continue;
            }
            let blocks = entry.blocks.iter();
            let mut bytes: Vec<u8> = blocks.flat_map(|block| *disk.block(*block)).collect();
            bytes.truncate(entry.size as usize);
            files.bytes += u64::from(entry.size);
            let (_, name) = name.split_once('/').unwrap_or(("", name));
            files.names.push(name.to_string());
            let last = bytes.split_inclusive(|byte| *byte == b'\n').next_back();
            files
                .ends
                .push(String::from_utf8_lossy(last.unwrap_or_default()).into_owned());
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                files.take(line, line_bytes);
            }
        }
        files
    }

    fn take(&mut self, line: &[u8], line_bytes: usize) {
        let text = String::from_utf8_lossy(line);
        let index = text.get(..11).and_then(|index| index.parse().ok());
        if let Some(gap) = text.strip_prefix("#gap ") {
            let mut fields = gap.split(' ').filter_map(|field| field.split_once('='));
            let mut number = || fields.next().unwrap().1.trim().parse().unwrap();
            self.gaps.push((number(), number()));
            let cause = gap.split_once("cause=").map(|(_, cause)| cause.trim());
            self.causes.push(cause.unwrap_or_default().to_string());
        } else if let Some(index) = index.filter(|it| super::line(*it, line_bytes) == line) {
            self.samples.push(index);
        } else if !text.starts_with('#') {
            self.others.push(text.into_owned());
        }
    }

    /// Returns the first sample below `end` that is neither in the files nor in a gap.
    pub fn missing(&self, end: u64) -> Option<u64> {
        let mut is_known = vec![false; end as usize];
        for index in self.samples.iter().filter(|index| **index < end) {
            is_known[*index as usize] = true;
        }
        for (first, count) in &self.gaps {
            let gap = (*first).min(end)..first.saturating_add(*count).min(end);
            is_known[gap.start as usize..gap.end as usize].fill(true);
        }
        is_known.iter().position(|is| !is).map(|at| at as u64)
    }

    /// Checks that the recorder has removed the mark at the end of each file.
    pub fn assert_closed(&self) {
        let is_mark = |line: &&String| {
            let note = line.trim_start_matches(',').strip_prefix('#');
            note.is_some_and(|note| note.trim_start().starts_with('@'))
        };
        assert_eq!(self.ends.iter().find(is_mark), None);
    }

    /// Checks that the files contain only samples below `end`, each once and in order.
    pub fn assert_sound(&self, end: u64) {
        assert!(self.others.is_empty(), "{:?}", self.others.first());
        assert!(self.samples.is_sorted_by(|one, next| one < next));
        assert!(self.samples.last().is_none_or(|last| *last < end));
    }
}
