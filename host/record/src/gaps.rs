//! Gaps as the recorder reported them, merged.

use cardiograph_recorder::Gap;

/// Merges overlapping gaps and sorts them. A later report may include an earlier gap, if the card was lost
/// before it stored the note about the earlier gap.
pub(crate) fn merged(mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.sort_by_key(|gap| gap.first);
    let mut out: Vec<Gap> = Vec::new();
    for gap in gaps {
        match out.last_mut() {
            Some(last) if gap.first < last.first + last.count => {
                let end = (last.first + last.count).max(gap.first + gap.count);
                last.count = end - last.first;
                last.last_us = last.last_us.max(gap.last_us);
            }
            _ => out.push(gap),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_recorder::Cause;

    fn gap(first: u64, count: u64) -> Gap {
        Gap {
            first,
            count,
            at_us: first,
            last_us: 0,
            cause: Cause::Busy,
        }
    }

    #[test]
    fn overlapping_gaps_are_merged_and_adjacent_gaps_are_not() {
        let reported = vec![gap(10, 5), gap(20, 5), gap(8, 4), gap(21, 2), gap(25, 1)];
        assert_eq!(merged(reported), [gap(8, 7), gap(20, 5), gap(25, 1)]);
        assert_eq!(merged(Vec::new()), []);
    }
}
