//! Search for the size of a card's fast zone.

/// Smallest transfer in MB.
const FIRST_MB: u32 = 1;

/// A size is slow if its throughput is below this part of the greatest throughput so far.
const SLOW: f64 = 0.5;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Transfers of this size, in MB, are fast; those that are 1 MB larger are slow.
    UpTo(u32),
    /// Transfers up to the largest one are fast.
    NotFound,
}

/// Doubles the size until the throughput drops, then bisects between the last fast size and the first slow one, to
/// 1 MB. `measure` returns the throughput at a size in MB; `None` ends the search.
pub(crate) fn search(largest_mb: u32, mut measure: impl FnMut(u32) -> Option<f64>) -> Option<Zone> {
    let mut best = 0.0_f64;
    let mut fast_mb = 0;
    let mut size_mb = FIRST_MB;
    let mut slow_mb = loop {
        if size_mb > largest_mb {
            return Some(Zone::NotFound);
        }
        let rate = measure(size_mb)?;
        if rate < best * SLOW {
            break size_mb;
        }
        best = best.max(rate);
        fast_mb = size_mb;
        size_mb = match size_mb * 2 {
            next if next > largest_mb && size_mb < largest_mb => largest_mb,
            next => next,
        };
    };
    while slow_mb - fast_mb > 1 {
        let middle_mb = fast_mb + (slow_mb - fast_mb) / 2;
        match measure(middle_mb)? < best * SLOW {
            true => slow_mb = middle_mb,
            false => fast_mb = middle_mb,
        }
    }
    Some(Zone::UpTo(fast_mb))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card as the study saw it: 7.6 MB/s within the zone, about 1 MB/s beyond it.
    #[test]
    fn every_zone_is_found_exactly() {
        for zone_mb in 1..128 {
            let mut count = 0;
            let found = search(128, |size_mb| {
                count += 1;
                let wobble = f64::from(size_mb * 7919 % 13) / 13.0;
                Some(match size_mb <= zone_mb {
                    // Small transfers are slower, because of the sync.
                    true => (7.6 - wobble) * f64::from(size_mb) / (f64::from(size_mb) + 0.5),
                    false => 0.98 + wobble / 2.0,
                })
            });
            assert_eq!(found, Some(Zone::UpTo(zone_mb)));
            assert!(count <= 15, "{count} sizes for {zone_mb} MB");
        }
    }

    #[test]
    fn no_zone_is_found_without_a_drop() {
        let mut sizes = Vec::new();
        let found = search(100, |size_mb| {
            sizes.push(size_mb);
            Some(7.0)
        });
        assert_eq!(found, Some(Zone::NotFound));
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 100]);
        assert_eq!(search(0, |_| Some(7.0)), Some(Zone::NotFound));
        assert_eq!(search(100, |_| None), None);
    }
}
