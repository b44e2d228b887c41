//! Comparisons of a sweep in card mode: with the whole device on a sample, and with `plan`.

use crate::SweepError;
use crate::answer::{Answer, Cell};
use crate::recorder_mode::recorded;
use crate::spec::{Mode, PolicyName};
use crate::sweep::Sweep;
use crate::task::Task;
use cardiograph_plan::{Logger, Plan, plan_member};
use cardiograph_sim_card::{Board, Profile, Random, Seed};
use serde::Serialize;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Seed of the sample, so that it is always the same.
const SAMPLE_SEED: u64 = 18;

/// Result of the comparison with the whole device.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Number of recordings that were repeated in recorder mode.
    pub runs: u64,
    /// Number of those for which both modes agree on whether samples are lost.
    pub agreeing: u64,
    /// The others.
    pub disagreements: Vec<Disagreement>,
}

/// A recording in which the modes disagree.
#[derive(Clone, Debug, Serialize)]
pub struct Disagreement {
    /// Card and board.
    pub target: String,
    /// Samples per second.
    pub rate_hz: u32,
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Member of the card's ensemble, from 0.
    pub member: u32,
    /// Seed of the card.
    pub seed: u64,
    /// True if the card mode loses samples.
    pub card_lost: bool,
    /// Highest backlog in card mode.
    pub card_peak_backlog_bytes: u64,
    /// Number of samples lost in recorder mode.
    pub recorder_lost_samples: u64,
    /// Highest fill level of the buffer in recorder mode.
    pub recorder_peak_bytes: u64,
}

/// A combination whose probability `plan` puts elsewhere, beyond both intervals.
#[derive(Clone, Debug, Serialize)]
pub struct PlanDifference {
    /// Card and board.
    pub target: String,
    /// Samples per second.
    pub rate_hz: u32,
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Interval of the sweep.
    pub sweep_low: f64,
    /// Interval of the sweep.
    pub sweep_high: f64,
    /// Interval of `plan`.
    pub plan_low: f64,
    /// Interval of `plan`.
    pub plan_high: f64,
}

/// Checks that `runs` recordings of a sweep can be repeated in recorder mode, before it runs.
///
/// # Errors
/// If the sweep has mode `recorder` itself, or fewer recordings.
pub fn check_sample(sweep: &Sweep, runs: u64) -> Result<(), SweepError> {
    if sweep.spec.mode == Mode::Recorder {
        return Err(SweepError::new(format!(
            "--check {runs}: the sweep has mode = \"recorder\" already; only sweeps in mode = \"card\" are checked, so \
             omit --check"
        )));
    }
    let recordings = sweep.recordings();
    match runs > recordings {
        true => Err(SweepError::new(format!(
            "--check {runs}: the sweep has {recordings} recordings and buffer sizes; check at most as many"
        ))),
        false => Ok(()),
    }
}

/// Repeats `runs` recordings, drawn at random, in recorder mode and compares the losses. Calls `watch` with the number of
/// recordings done; `None` if it returned `Break`.
///
/// # Errors
/// As [`check_sample`], and if a recording fails in either mode.
pub fn check_with_recorder(
    sweep: &Sweep,
    runs: u64,
    watch: &dyn Fn(u64) -> ControlFlow<()>,
) -> Result<Option<Checked>, SweepError> {
    check_sample(sweep, runs)?;
    let mut sample = Sample {
        random: Seed::new(SAMPLE_SEED).stream("check"),
        drawn: HashSet::new(),
    };
    let mut checked = Checked {
        runs: 0,
        agreeing: 0,
        disagreements: Vec::new(),
    };
    for done in 0..runs {
        let is_stopped = || watch(done).is_break();
        let Some(disagreement) = check_one(sweep, sample.next(sweep), &is_stopped)? else {
            return Ok(None);
        };
        checked.runs += 1;
        match disagreement {
            Some(disagreement) => checked.disagreements.push(disagreement),
            None => checked.agreeing += 1,
        }
    }
    Ok(Some(checked))
}

/// A recording with one of its buffer sizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Draw {
    task: u64,
    seed: u64,
    /// Number of the buffer size in the task.
    at: usize,
    member: usize,
}

/// Draws recordings, each at most once.
struct Sample {
    random: Random,
    drawn: HashSet<Draw>,
}

impl Sample {
    fn next(&mut self, sweep: &Sweep) -> Draw {
        loop {
            let draw = self.any(sweep);
            if self.drawn.insert(draw) {
                return draw;
            }
        }
    }

    fn any(&mut self, sweep: &Sweep) -> Draw {
        let number = self.random.below(sweep.tasks());
        let task = sweep.task(number);
        let seeds = task.seeds.end - task.seeds.start;
        Draw {
            task: number,
            seed: task.seeds.start + self.random.below(seeds),
            at: self.random.below(task.buffers_bytes.len() as u64) as usize,
            // A single profile draws nothing, so that its sample does not depend on this.
            member: match task.members.len() {
                1 => 0,
                members => self.random.below(members as u64) as usize,
            },
        }
    }
}

/// Compares one recording. The outer `None` means that it was stopped, the inner one that both modes agree.
fn check_one(
    sweep: &Sweep,
    Draw {
        task,
        seed,
        at,
        member,
    }: Draw,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Option<Disagreement>>, SweepError> {
    let mut task: Task = sweep.task(task);
    task.seeds = seed..seed + 1;
    task.first_member = member as u32;
    task.members = &task.members[member..=member];
    task.buffers_bytes = &task.buffers_bytes[at..=at];
    let Some(rows) = task.run(is_stopped)? else {
        return Ok(None);
    };
    let run = (task.buffers_bytes[0], seed);
    let Some(losses) = recorded(&task, &task.members[0], run, is_stopped)? else {
        return Ok(None);
    };
    let row = &rows[0];
    let differs = row.lost != (losses.lost_samples > 0);
    Ok(Some(differs.then(|| Disagreement {
        target: task.target(),
        rate_hz: row.rate_hz,
        buffer_bytes: row.buffer_bytes,
        member: row.member,
        seed,
        card_lost: row.lost,
        card_peak_backlog_bytes: row.peak_backlog_bytes,
        recorder_lost_samples: losses.lost_samples,
        recorder_peak_bytes: losses.peak_bytes,
    })))
}

/// Calculates a plan for each card, board and rate, with the first member of an ensemble, and returns the combinations of the policy `stream` in which the
/// interval of `plan` and that of the sweep have no value in common. Calls `watch` before each of these groups; `None` if
/// it returned `Break`.
///
/// # Errors
/// If the recorder's driver cannot write to a card.
pub fn compare_with_plan(
    sweep: &Sweep,
    answer: &Answer,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Vec<PlanDifference>>, SweepError> {
    let stream = PolicyName::Stream.name();
    let mut differences = Vec::new();
    let mut done = 0;
    for (card, profile) in sweep.cards() {
        for (board_name, board) in sweep.boards() {
            for &rate_hz in &sweep.spec.rates_hz {
                if watch(done).is_break() {
                    return Ok(None);
                }
                done += 1;
                let group = Group {
                    sweep,
                    target: format!("sim:{card}@{board_name}"),
                    set_up: (profile, board),
                    rate_hz,
                };
                let cells = answer.cells.iter().filter(|cell| {
                    let is_here = cell.card == card && cell.board == board_name;
                    is_here && cell.policy == stream && cell.rate_hz == rate_hz
                });
                group.compare(cells, &mut differences)?;
            }
        }
    }
    Ok(Some(differences))
}

/// A card, board and rate.
struct Group<'a> {
    sweep: &'a Sweep,
    target: String,
    set_up: (&'a Profile, &'a Board),
    rate_hz: u32,
}

impl Group<'_> {
    fn compare<'a>(
        &self,
        cells: impl Iterator<Item = &'a Cell>,
        differences: &mut Vec<PlanDifference>,
    ) -> Result<(), SweepError> {
        // A plan has the standard buffer sizes, and that of the logger.
        let mut plans: Vec<Plan> = Vec::new();
        for cell in cells {
            if plans
                .iter()
                .all(|plan| plan.buffer(cell.buffer_bytes).is_none())
            {
                plans.push(self.plan(cell.buffer_bytes)?);
            }
            let rows = plans.iter().find_map(|plan| plan.buffer(cell.buffer_bytes));
            let Some(planned) = rows.map(|row| row.risk) else {
                continue;
            };
            let (low, high) = cell.range();
            if planned.high < low || planned.low > high {
                differences.push(PlanDifference {
                    target: self.target.clone(),
                    rate_hz: self.rate_hz,
                    buffer_bytes: cell.buffer_bytes,
                    sweep_low: low,
                    sweep_high: high,
                    plan_low: planned.low,
                    plan_high: planned.high,
                });
            }
        }
        Ok(())
    }

    fn plan(&self, buffer_bytes: u64) -> Result<Plan, SweepError> {
        let spec = &self.sweep.spec;
        let logger = Logger {
            sample_rate_hz: f64::from(self.rate_hz),
            sample_bytes: spec.sample_bytes.into(),
            run_s: spec.run_s as f64,
            buffer_bytes,
        };
        let plan = plan_member(&self.target, self.set_up, &logger);
        plan.map_err(|error| SweepError::new(format!("{}: {error}", self.target)))
    }
}
