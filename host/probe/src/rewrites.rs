//! The log, the FAT zone and garbage collection while idle: small rewrites of a set of units.
//!
//! A card gathers small writes in log blocks and reuses the oldest. If all of its pages have been rewritten since,
//! nothing is copied; otherwise the card copies whole units. So small rewrites of k units in turn cost the same per
//! write for every k, until k units no longer fit into the log besides the block being freed. How large that block is does
//! not show: a log with one bit per cell has smaller blocks than the data.

use crate::answer::Answer;
use crate::session::{Session, Stage, Stop};
use crate::statistics::{median, p_higher};
use crate::{BLOCK_BYTES, ProbeError, settled};

/// Passes over units before the first comparison, so that the log holds nothing else.
const FLUSH_PASSES: u64 = 64;
/// Passes that a comparison times.
const PASSES_MIN: u64 = 8;
/// Largest set, in units.
const UNITS_MAX: u64 = 64;
/// Largest number of units of a FAT zone.
const ZONE_UNITS_MAX: u64 = 16;
/// Additional time up to which a set counts as sustained, and from which not.
const SUSTAINED_MAX: f64 = 0.025;
const COPYING_MIN: f64 = 0.05;
/// Largest probability that a difference is chance.
const P_MAX: f64 = 0.001;
/// Comparisons before a set counts as not sustained: the first may have to clean up.
const TRIES: usize = 2;
/// Pause in which a card might collect garbage.
const PAUSE_NS: u64 = 3_000_000_000;
/// Passes after a pause.
const PAUSES: u64 = 8;

/// Answers of the experiments with small rewrites.
pub(crate) struct Rewrites {
    pub(crate) log_bytes: Answer<u64>,
    pub(crate) fat_zone_bytes: Answer<u64>,
    pub(crate) collects_while_idle: Answer<bool>,
}

impl Rewrites {
    /// Returns no answers, because page and unit are unknown.
    pub(crate) fn without_geometry() -> Rewrites {
        const NEEDED: &str = "page and unit";
        Rewrites {
            log_bytes: Answer::needs(NEEDED),
            fat_zone_bytes: Answer::needs(NEEDED),
            collects_while_idle: Answer::needs(NEEDED),
        }
    }
}

/// Runs the experiments.
pub(crate) fn find(session: &mut Session, page: u64, unit: u64) -> Result<Rewrites, ProbeError> {
    session.enter(Stage::Rewrites);
    let mut answers = Rewrites::without_geometry();
    if page <= BLOCK_BYTES {
        return Ok(answers);
    }
    let mut set = Set::new(session, page, unit);
    let sustained = match settled(set.largest_sustained(session))? {
        known if known.value().is_some() => known,
        unknown => {
            answers.log_bytes = unknown;
            answers.fat_zone_bytes = Answer::needs("the size of the log");
            answers.collects_while_idle = Answer::needs("the size of the log");
            return Ok(answers);
        }
    };
    let units = sustained.value().unwrap_or(1);
    answers.log_bytes = Answer::known(units * unit, 0.95, sustained.evidence().to_string());
    answers.collects_while_idle = settled(set.idle(session, units))?;
    answers.fat_zone_bytes = match session.begins_at_the_card() {
        true => settled(set.zone(session, units))?,
        false => Answer::cannot_tell("files do not reach the start of the card"),
    };
    Ok(answers)
}

#[derive(PartialEq, Eq)]
enum Verdict {
    Sustained,
    Copying,
    Unclear,
}

fn verdict(passes: &[f64], baseline: &[f64]) -> Verdict {
    let share = median(passes) / median(baseline) - 1.0;
    match share {
        share if share <= SUSTAINED_MAX => Verdict::Sustained,
        share if share >= COPYING_MIN && p_higher(passes, baseline) <= P_MAX => Verdict::Copying,
        _ => Verdict::Unclear,
    }
}

struct Set {
    /// Offset of the first unit.
    base: u64,
    page: u64,
    unit: u64,
    /// Number of units in the region.
    places: u64,
    /// Times of passes over a single unit, in ns.
    baseline: Vec<f64>,
}

impl Set {
    fn new(session: &Session, page: u64, unit: u64) -> Set {
        Set {
            base: session.base(),
            page,
            unit,
            places: session.filled_bytes() / unit,
            baseline: Vec::new(),
        }
    }

    /// Rewrites a part of each page of a unit; returns the time in ns.
    fn pass(&self, session: &mut Session, offset: u64) -> Result<f64, Stop> {
        let mut ns = 0.0;
        for page in 0..self.unit / self.page {
            ns += session.write(offset + page * self.page, BLOCK_BYTES)?;
        }
        Ok(ns)
    }

    fn unit_at(&self, number: u64) -> u64 {
        self.base + number * self.unit
    }

    /// Rewrites sets of units until the last passes are steady; returns the times of the last passes.
    fn rewrite(&self, session: &mut Session, units: u64) -> Result<Vec<f64>, Stop> {
        for unit in 0..units {
            self.pass(session, self.unit_at(unit))?;
        }
        let timed = units * PASSES_MIN.div_ceil(units);
        (0..timed)
            .map(|pass| self.pass(session, self.unit_at(pass % units)))
            .collect()
    }

    /// Finds the largest number of units that are rewritten without copying.
    fn largest_sustained(&mut self, session: &mut Session) -> Result<Answer<u64>, Stop> {
        for _ in 0..FLUSH_PASSES {
            self.pass(session, self.base)?;
        }
        self.baseline = (0..2 * PASSES_MIN)
            .map(|_| self.pass(session, self.base))
            .collect::<Result<_, _>>()?;
        let most = UNITS_MAX.min(self.places);
        let (mut sustained, mut copying) = (1, None);
        loop {
            let next = match copying {
                None if sustained == most => {
                    return Ok(Answer::cannot_tell(format!(
                        "small rewrites of up to {most} units take the same time per write"
                    )));
                }
                None => (2 * sustained).min(most),
                // The log held pages before the probe, which have to be copied, too: only copying that remains counts.
                Some(copying) if copying == sustained + 1 => copying,
                Some(copying) => u64::midpoint(sustained, copying),
            };
            match self.try_units(session, next, copying)? {
                Verdict::Sustained if copying == Some(next) => (sustained, copying) = (next, None),
                Verdict::Sustained => sustained = next,
                Verdict::Copying if copying == Some(next) => break,
                Verdict::Copying => copying = Some(next),
                Verdict::Unclear => {
                    return Ok(Answer::cannot_tell(format!(
                        "small rewrites of {next} units take hardly longer per write than of one"
                    )));
                }
            }
        }
        Ok(Answer::known(
            sustained,
            0.95,
            format!(
                "small rewrites of {sustained} units are sustained, of {} not",
                sustained + 1
            ),
        ))
    }

    /// Compares rewriting several units with rewriting one. `left_over` is the number of units that an earlier
    /// comparison left in the log.
    fn try_units(
        &self,
        session: &mut Session,
        units: u64,
        left_over: Option<u64>,
    ) -> Result<Verdict, Stop> {
        for pass in 0..left_over.unwrap_or(0) {
            self.pass(session, self.unit_at(pass % units))?;
        }
        let mut last = Verdict::Unclear;
        for _ in 0..TRIES {
            last = verdict(&self.rewrite(session, units)?, &self.baseline);
            if last == Verdict::Sustained {
                break;
            }
        }
        Ok(last)
    }

    /// Compares passes after a pause with passes without one, both over a set that does not fit into the log.
    fn idle(&self, session: &mut Session, sustained: u64) -> Result<Answer<bool>, Stop> {
        let units = sustained + 2;
        if units > self.places {
            return Ok(Answer::cannot_tell("the region is too small"));
        }
        // A card with free blocks needs no garbage collection for a while: first use them up.
        self.rewrite(session, units)?;
        let busy = self.rewrite(session, units)?;
        let mut rested = Vec::new();
        for pass in 0..PAUSES {
            session.pause(PAUSE_NS)?;
            rested.push(self.pass(session, self.unit_at(pass % units))?);
        }
        let seconds = PAUSE_NS / 1_000_000_000;
        let less = 1.0 - median(&rested) / median(&busy);
        if less >= COPYING_MIN && p_higher(&busy, &rested) <= 0.01 {
            let percent = 100.0 * less;
            return Ok(Answer::known(
                true,
                0.95,
                format!("small rewrites take {percent:.0} % less time after {seconds} s of rest"),
            ));
        }
        if less.abs() <= SUSTAINED_MAX {
            return Ok(Answer::known(
                false,
                0.95,
                format!("small rewrites take the same time after {seconds} s of rest"),
            ));
        }
        Ok(Answer::cannot_tell("small rewrites vary too much"))
    }

    /// Adds units at the start of the card to the largest set that the log holds: they count only if they use the
    /// log.
    fn zone(&self, session: &mut Session, sustained: u64) -> Result<Answer<u64>, Stop> {
        for _ in 0..2 {
            self.rewrite(session, sustained)?;
        }
        let (mut inside, mut outside) = (0, None);
        loop {
            let next = match outside {
                None if inside == ZONE_UNITS_MAX => {
                    return Ok(Answer::cannot_tell(format!(
                        "the first {} KiB of the card withstand small writes, and possibly more",
                        inside * self.unit / 1024
                    )));
                }
                None => (2 * inside).clamp(1, ZONE_UNITS_MAX),
                Some(outside) if outside == inside + 1 => break,
                Some(outside) => u64::midpoint(inside, outside),
            };
            let mut last = Verdict::Unclear;
            for _ in 0..=TRIES {
                last = verdict(&self.with_zone(session, sustained, next)?, &self.baseline);
                if last == Verdict::Sustained {
                    break;
                }
            }
            match last {
                Verdict::Sustained => inside = next,
                Verdict::Copying => outside = Some(next),
                Verdict::Unclear => return Ok(Answer::cannot_tell("small rewrites vary too much")),
            }
        }
        let kib = inside * self.unit / 1024;
        let evidence = match inside {
            0 => "small writes at the start of the card use the log like others".to_string(),
            _ => format!("small writes to the first {kib} KiB of the card do not use the log"),
        };
        Ok(Answer::known(inside * self.unit, 0.95, evidence))
    }

    /// Rewrites `units` units and the first `zone` units of the card in turn; returns the times of the passes over
    /// the former.
    fn with_zone(&self, session: &mut Session, units: u64, zone: u64) -> Result<Vec<f64>, Stop> {
        let mut passes = Vec::new();
        for turn in 0..2 + PASSES_MIN.div_ceil(units) {
            for unit in 0..zone {
                self.pass(session, unit * self.unit)?;
            }
            for unit in 0..units {
                let ns = self.pass(session, self.unit_at(unit))?;
                if turn >= 2 {
                    passes.push(ns);
                }
            }
        }
        Ok(passes)
    }
}
