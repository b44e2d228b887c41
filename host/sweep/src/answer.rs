//! The answer of a sweep: probability of loss against buffer and rate, for every card, board and policy.

use crate::SweepError;
use crate::folder::ResultFolder;
use crate::interval::Proportion;
use crate::spec::Mode;
use crate::sweep::Sweep;
use serde::Serialize;
use std::collections::BTreeMap;

/// Probabilities of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Description of the sweep.
    pub about: String,
    /// Simulation behind the results: `card` or `recorder`.
    pub mode: &'static str,
    /// Length of each recording.
    pub run_s: u64,
    /// Bytes per sample.
    pub sample_bytes: u32,
    /// Number of tasks.
    pub tasks: u64,
    /// Total simulated time of all recordings.
    pub simulated_s: u64,
    /// One entry per combination, in the order of the specification.
    pub cells: Vec<Cell>,
}

/// Probability of loss of one combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the card.
    pub card: String,
    /// Name of the board.
    pub board: String,
    /// Way to write the samples.
    pub policy: &'static str,
    /// Samples per second.
    pub rate_hz: u32,
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Probability for each member of the card's ensemble.
    pub members: Vec<MemberRisk>,
    /// Median over members; null if the median member loses nothing.
    pub median: Option<f64>,
    /// Lowest value of a member, null if it loses nothing; absent for a single member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_low: Option<Option<f64>>,
    /// Highest value of a member, null if none loses anything; absent for a single member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_high: Option<Option<f64>>,
}

/// Probability of loss for one member of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemberRisk {
    /// Number of the member, from 0.
    pub member: u32,
    /// Probability that a recording loses samples.
    #[serde(flatten)]
    pub risk: Proportion,
}

/// Runs and losses of each member, by board, policy, rate and buffer size.
type Counts = BTreeMap<(String, String, u32, u64), BTreeMap<u32, (u64, u64)>>;

impl Answer {
    /// Reads all results of a complete sweep.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn read(sweep: &Sweep, folder: &ResultFolder) -> Result<Answer, SweepError> {
        let spec = &sweep.spec;
        let mut cells = Vec::new();
        let parts_per_card = sweep.parts() / sweep.cards().count() as u64;
        for ((card, _), at) in sweep.cards().zip(0..) {
            let mut counts = Counts::new();
            for part in at * parts_per_card..(at + 1) * parts_per_card {
                for row in folder.read(sweep, part)? {
                    let key = (row.board, row.policy, row.rate_hz, row.buffer_bytes);
                    let member = counts.entry(key).or_default().entry(row.member);
                    let (runs, losses) = member.or_default();
                    *runs += 1;
                    *losses += u64::from(row.lost);
                }
            }
            cells.extend(cells_of(sweep, card, &mut counts)?);
        }
        let runs = cells.iter().flat_map(|cell: &Cell| &cell.members);
        let runs: u64 = runs.map(|member| member.risk.runs).sum();
        let recordings = match spec.mode {
            // One recording serves all buffer sizes.
            Mode::Card => runs / spec.buffers_bytes.len() as u64,
            Mode::Recorder => runs,
        };
        Ok(Answer {
            about: spec.about.clone(),
            mode: spec.mode.name(),
            run_s: spec.run_s,
            sample_bytes: spec.sample_bytes,
            tasks: sweep.tasks(),
            simulated_s: recordings * spec.run_s,
            cells,
        })
    }
}

fn cells_of(sweep: &Sweep, card: &str, counts: &mut Counts) -> Result<Vec<Cell>, SweepError> {
    let spec = &sweep.spec;
    let expected = u64::from(spec.seeds) * sweep.members_of(card) as u64;
    let mut cells = Vec::new();
    for (board, _) in sweep.boards() {
        for policy in &spec.policies {
            for &rate_hz in &spec.rates_hz {
                for &buffer_bytes in &spec.buffers_bytes {
                    let key = (
                        board.to_string(),
                        policy.name().to_string(),
                        rate_hz,
                        buffer_bytes,
                    );
                    let members = counts.remove(&key).unwrap_or_default();
                    let runs: u64 = members.values().map(|(runs, _)| runs).sum();
                    let is_whole = |&(runs, _): &(u64, u64)| runs == u64::from(spec.seeds);
                    if runs != expected || !members.values().all(is_whole) {
                        return Err(SweepError::new(format!(
                            "the results of {card}@{board} at {rate_hz} Hz have {runs} runs instead of {expected}; remove \
                             the folder, and repeat the command"
                        )));
                    }
                    cells.push(Cell::of(
                        card,
                        board,
                        policy.name(),
                        (rate_hz, buffer_bytes),
                        &members,
                    ));
                }
            }
        }
    }
    Ok(cells)
}

impl Cell {
    fn of(
        card: &str,
        board: &str,
        policy: &'static str,
        (rate_hz, buffer_bytes): (u32, u64),
        counts: &BTreeMap<u32, (u64, u64)>,
    ) -> Cell {
        let risk = |(&member, &(runs, losses))| MemberRisk {
            member,
            risk: Proportion::of(losses, runs),
        };
        let members: Vec<MemberRisk> = counts.iter().map(risk).collect();
        let mut values: Vec<f64> = members
            .iter()
            .map(|member| member.risk.likely.unwrap_or(0.0))
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let is_ensemble = values.len() > 1;
        let of = |value: Option<&f64>| {
            let value = value.copied().filter(|_| is_ensemble)?;
            Some(Some(value).filter(|&value| value > 0.0))
        };
        Cell {
            card: card.to_string(),
            board: board.to_string(),
            policy,
            rate_hz,
            buffer_bytes,
            median: Some(median(&values)).filter(|&median| median > 0.0),
            member_low: of(values.first()),
            member_high: of(values.last()),
            members,
        }
    }

    /// Returns true if any member lost samples.
    pub fn has_losses(&self) -> bool {
        self.members.iter().any(|member| member.risk.losses > 0)
    }

    /// Returns the interval that covers the intervals of all members.
    pub fn range(&self) -> (f64, f64) {
        let low = self.members.iter().map(|member| member.risk.low);
        let high = self.members.iter().map(|member| member.risk.high);
        (low.fold(1.0, f64::min), high.fold(0.0, f64::max))
    }
}

fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        len if len.is_multiple_of(2) => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
        len => sorted[len / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(counts: &[(u64, u64)]) -> Cell {
        let counts = (0..).zip(counts.iter().copied()).collect();
        Cell::of("c", "b", "stream", (860, 65_536), &counts)
    }

    #[test]
    fn members_have_intervals_and_the_cell_has_median_and_range() {
        let three = cell(&[(100, 10), (100, 0), (100, 40)]);
        assert_eq!(three.median, Some(0.1));
        assert_eq!(
            (three.member_low, three.member_high),
            (Some(None), Some(Some(0.4)))
        );
        assert_eq!(three.members[1].risk.likely, None);
        let (low, high) = three.range();
        assert_eq!((low, high), (0.0, Proportion::of(40, 100).high));
        let few = cell(&[(100, 0), (100, 40), (100, 0)]);
        assert_eq!((few.median, few.member_high), (None, Some(Some(0.4))));
        assert!(few.has_losses());
        let text = crate::text::probability(&few);
        assert!(
            text.starts_with("none by the median member (up to 50.3 %; members none to 40 %)"),
            "{text}"
        );
        let one = cell(&[(100, 3)]);
        assert_eq!((one.median, one.member_low), (Some(0.03), None));
    }

    #[test]
    fn without_losses_there_is_a_bound_and_no_zero() {
        let none = cell(&[(100, 0)]);
        assert_eq!((none.median, none.has_losses()), (None, false));
        assert!(none.range().1 > 0.03);
        let text = serde_json::to_string(&none).unwrap();
        assert!(text.contains("\"likely\":null"), "{text}");
    }
}
