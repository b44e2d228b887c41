//! What the footer of our Parquet tells about the run.

use crate::trace::{About, Part};
use crate::write::{CLOCK_OVERHEAD, CLOCK_RESOLUTION, NOTE, PART, TARGET, WORKLOAD};
use parquet::file::metadata::FileMetaData;

/// What the footer tells about the run; the given text stands in for what it does not.
pub(super) fn merged(mut about: About, file: &FileMetaData) -> About {
    let Some(pairs) = file.key_value_metadata() else {
        return about;
    };
    let value = |key: &str| {
        let pair = pairs.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    };
    if let Some(target) = value(TARGET) {
        about.target = target;
    }
    if let Some(workload) = value(WORKLOAD) {
        about.workload = workload;
    }
    about.clock_resolution_ns = value(CLOCK_RESOLUTION).and_then(|ns| ns.parse().ok());
    about.clock_overhead_ns = value(CLOCK_OVERHEAD).and_then(|ns| ns.parse().ok());
    let values = |prefix: &'static str| {
        let pairs = pairs
            .iter()
            .filter(move |pair| pair.key.starts_with(prefix));
        pairs.filter_map(|pair| pair.value.as_deref())
    };
    about.notes = values(NOTE).map(str::to_owned).collect();
    for part in values(PART).filter_map(part) {
        // Parts go up; one that does not would take files from the others.
        if (about.parts.last()).is_none_or(|last: &Part| last.first_file < part.first_file) {
            about.parts.push(part);
        }
    }
    about
}

/// A part as the footer has it, unless it is none.
fn part(text: &str) -> Option<Part> {
    let (first_file, label) = text.split_once(' ')?;
    Some(Part {
        first_file: first_file.parse().ok()?,
        label: label.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_a_number_and_a_label() {
        let due = |first_file, label: &str| {
            let label = label.to_owned();
            Some(Part { first_file, label })
        };
        assert_eq!(part("0 a b"), due(0, "a b"));
        assert_eq!(part("4294967295 "), due(u32::MAX, ""));
        for text in ["", "0", "a 0", " 0 a", "-1 a", "4294967296 a"] {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
