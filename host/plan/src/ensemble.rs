//! Median and range of the figures over the members of a simulated card's ensemble.

use crate::figures::{Ensemble, EnsembleRow, Plan, Spread};

impl Spread {
    /// Returns median and range; `None` without values.
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&low, &high) = (sorted.first()?, sorted.last()?);
        let middle = |at: usize| sorted.get(at).copied();
        let median = f64::midpoint(middle((sorted.len() - 1) / 2)?, middle(sorted.len() / 2)?);
        Some(Spread { median, low, high })
    }
}

impl Ensemble {
    /// Summarises the plans of all members for the same logger; `None` for a single profile.
    pub(crate) fn of(members: &[Plan]) -> Option<Ensemble> {
        let (first, others) = members.split_first()?;
        if others.is_empty() {
            return None;
        }
        let each = |figure: fn(&Plan) -> Option<f64>| Spread::of(members.iter().filter_map(figure));
        let row = |(index, first): (usize, &crate::BufferRow)| {
            let rows = || members.iter().filter_map(|plan| plan.buffers.get(index));
            Some(EnsembleRow {
                buffer_bytes: first.buffer_bytes,
                sustained_bytes_per_s: Spread::of(rows().map(|row| row.sustained_bytes_per_s))?,
                risk_high: Spread::of(rows().map(|row| row.risk.high))?,
            })
        };
        // The larger of the two middle sizes: half a size cannot be chosen.
        let mut needed: Vec<_> = members.iter().map(needed_bytes).collect();
        needed.sort_unstable();
        Some(Ensemble {
            members: members.len() as u64,
            mean_throughput_bytes_per_s: each(|plan| {
                Some(plan.measured.mean_throughput_bytes_per_s)
            })?,
            worst_case_latency_us: each(|plan| Some(plan.measured.worst_case_latency_us))?,
            peak_backlog_bytes: each(|plan| plan.peak_backlog_bytes),
            recommended_buffer_bytes: size(needed[needed.len() / 2]),
            largest_recommended_buffer_bytes: size(needed[needed.len() - 1]),
            energy_j_per_day: each(|plan| plan.energy_j_per_day),
            lifetime_years: each(|plan| plan.wear.map(|wear| wear.lifetime_years)),
            buffers: first.buffers.iter().enumerate().filter_map(row).collect(),
        })
    }

    /// Returns the row of a buffer size.
    pub fn buffer(&self, buffer_bytes: u64) -> Option<&EnsembleRow> {
        let mut rows = self.buffers.iter();
        rows.find(|row| row.buffer_bytes == buffer_bytes)
    }
}

/// A member without a recommendation needs more than any size.
fn needed_bytes(plan: &Plan) -> u64 {
    plan.recommended_buffer_bytes.unwrap_or(u64::MAX)
}

fn size(needed_bytes: u64) -> Option<u64> {
    (needed_bytes < u64::MAX).then_some(needed_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let of =
            |values: &[f64]| Spread::of(values.iter().copied()).map(|s| (s.low, s.median, s.high));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0]), Some((3.0, 3.0, 3.0)));
        assert_eq!(of(&[9.0, 1.0, 4.0, 2.0]), Some((1.0, 3.0, 9.0)));
        assert_eq!(of(&[9.0, 1.0, 4.0]), Some((1.0, 4.0, 9.0)));
    }
}
