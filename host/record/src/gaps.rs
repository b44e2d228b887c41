//! Gaps as they were told, put together.

use cardiograph_recorder::Gap;

/// Gaps that do not overlap, in order. A later one may hold an earlier one, if what was written of it went
/// with the card.
pub(crate) fn merged(mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.sort_by_key(|gap| gap.first);
    let mut out: Vec<Gap> = Vec::new();
    for gap in gaps {
        match out.last_mut() {
            Some(last) if gap.first < last.first + last.count => {
                let end = (last.first + last.count).max(gap.first + gap.count);
                last.count = end - last.first;
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
            last_us: first,
            cause: Cause::Busy,
        }
    }

    #[test]
    fn what_overlaps_is_one_gap_and_what_only_touches_is_two() {
        let told = vec![gap(10, 5), gap(20, 5), gap(8, 4), gap(21, 2), gap(25, 1)];
        assert_eq!(merged(told), [gap(8, 7), gap(20, 5), gap(25, 1)]);
        assert_eq!(merged(Vec::new()), []);
    }
}
