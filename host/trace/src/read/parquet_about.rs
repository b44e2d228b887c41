//! Reads the description of the run from the footer of Cardiograph Parquet.

use crate::trace::{About, PhaseLabel};
use crate::write::{CLOCK_OVERHEAD, CLOCK_RESOLUTION, NOTE, PART_0_1, PHASE, TARGET, WORKLOAD};
use parquet::file::metadata::FileMetaData;

/// Completes `about` with values from the footer; values that the footer lacks are kept.
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
    for phase in values(PHASE).chain(values(PART_0_1)).filter_map(phase) {
        // A phase that is out of order would claim files of other phases.
        if (about.phases.last()).is_none_or(|last: &PhaseLabel| last.first_file < phase.first_file)
        {
            about.phases.push(phase);
        }
    }
    about
}

/// Parses a phase entry in the footer; returns `None` if it is malformed.
fn phase(text: &str) -> Option<PhaseLabel> {
    let (first_file, label) = text.split_once(' ')?;
    Some(PhaseLabel {
        first_file: first_file.parse().ok()?,
        label: label.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_a_number_and_a_label() {
        let expected = |first_file, label: &str| {
            let label = label.to_owned();
            Some(PhaseLabel { first_file, label })
        };
        assert_eq!(phase("0 a b"), expected(0, "a b"));
        assert_eq!(phase("4294967295 "), expected(u32::MAX, ""));
        for text in ["", "0", "a 0", " 0 a", "-1 a", "4294967296 a"] {
            assert_eq!(phase(text), None, "{text}");
        }
    }
}
