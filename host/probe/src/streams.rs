//! Open units: a card writes a few sequential streams in turn without copying. With one stream more, it closes a unit
//! early and copies the rest of it, once in each round; with two more, two.

use crate::answer::Answer;
use crate::session::{Session, Stage, Stop};
use crate::statistics::{median, middle_mean, p_higher, quantile};
use crate::unit::Unit;

/// Largest length of a write.
const PIECE_BYTES_MAX: u64 = 64 << 10;
/// Largest additional time at a boundary, as a share of the time of a unit: erases take less, and copies more.
const BOUNDARY_MAX: f64 = 0.2;
/// Rounds with each number of streams.
const ROUNDS: usize = 5;
/// Largest number of streams.
const STREAMS_MAX: u64 = 32;
/// Additional time of a round up to which a number of streams counts as sustained, as a share of the time of one unit: a
/// card that closes a unit early copies a large part of it.
const SUSTAINED_MAX: f64 = 0.05;
/// Additional time of a round from which it counts as not sustained.
const COPYING_MIN: f64 = 0.08;
/// Largest probability that a difference between rounds is chance.
const P_MAX: f64 = 0.01;
/// Additional time per byte at which every round copies nearly everything: then the next number shows no proportion.
const THRASHING_MIN: f64 = 0.5;
/// Largest deviation from proportion, in streams.
const DEVIATION_MAX: f64 = 0.4;

/// Finds the number of open units.
pub(crate) fn find(session: &mut Session, page: u64, unit: Unit) -> Result<Answer<u64>, Stop> {
    session.enter(Stage::OpenUnits);
    let mut streams = Streams::new(session, page, unit.bytes);
    if unit.boundary_ns > BOUNDARY_MAX * streams.round(session, 1)? {
        return Ok(Answer::cannot_tell(
            "even a single stream takes so much longer at each boundary that the card must copy",
        ));
    }
    let most = STREAMS_MAX.min(streams.places);
    let (mut sustained, mut copying) = (1, None);
    // Doubling, then bisection.
    loop {
        let next = match copying {
            None if sustained == most => {
                return Ok(Answer::cannot_tell(format!(
                    "up to {most} streams in turn take the same time per byte"
                )));
            }
            None => (2 * sustained).min(most),
            Some(copying) if copying == sustained + 1 => break,
            Some(copying) => u64::midpoint(sustained, copying),
        };
        match streams.compare(session, next)?.verdict() {
            Verdict::Sustained => sustained = next,
            Verdict::Copying => copying = Some(next),
            Verdict::Unclear => return Ok(unclear(next)),
        }
    }
    let one_more = streams.compare(session, sustained + 1)?;
    if one_more.verdict() != Verdict::Copying {
        return Ok(unclear(sustained + 1));
    }
    let percent = 100.0 * one_more.share();
    if one_more.share() < THRASHING_MIN {
        let two_more = streams.compare(session, sustained + 2)?;
        // With proportional copying, the line through both reaches 0 at the number of open units.
        let each_ns = two_more.mean_extra_ns() - one_more.mean_extra_ns();
        let streams_over = one_more.mean_extra_ns() / each_ns;
        if each_ns <= 0.0 || (streams_over - 1.0).abs() > DEVIATION_MAX {
            return Ok(Answer::cannot_tell(format!(
                "from {} streams in turn on, the time per byte rises by {percent:.0} %, but not in proportion",
                sustained + 1
            )));
        }
    }
    Ok(Answer::known(
        sustained,
        0.95,
        format!(
            "{} streams in turn take {percent:.0} % longer per byte than one",
            sustained + 1
        ),
    ))
}

fn unclear(streams: u64) -> Answer<u64> {
    Answer::cannot_tell(format!(
        "{streams} streams in turn take hardly longer per byte than one"
    ))
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Sustained,
    Copying,
    Unclear,
}

/// Times of rounds, in ns per unit, with one stream and with several.
#[derive(Clone)]
struct Comparison {
    streams: u64,
    one: Vec<f64>,
    several: Vec<f64>,
}

impl Comparison {
    /// Returns the additional time per byte, as a share.
    fn share(&self) -> f64 {
        median(&self.several) / median(&self.one) - 1.0
    }

    /// Returns the additional time of a round, in ns.
    fn extra_ns(&self) -> f64 {
        self.streams as f64 * (median(&self.several) - median(&self.one))
    }

    /// Returns the additional time of a round, in ns, as a mean over rounds that cost different amounts.
    fn mean_extra_ns(&self) -> f64 {
        self.streams as f64 * (middle_mean(&self.several) - middle_mean(&self.one))
    }

    /// Returns the standard error of the difference between the two medians of five rounds, in ns per unit. With normal noise,
    /// this error is 0.6 times the mean of the two interquartile ranges.
    fn noise_ns(&self) -> f64 {
        let range = |values| quantile(values, 0.75) - quantile(values, 0.25);
        0.6 * f64::midpoint(range(&self.one), range(&self.several))
    }

    fn verdict(&self) -> Verdict {
        let is_longer = p_higher(&self.several, &self.one) <= P_MAX;
        let of_unit = |ns: f64| ns / median(&self.one);
        let noise = of_unit(self.streams as f64 * self.noise_ns());
        match of_unit(self.extra_ns()) {
            extra if extra <= SUSTAINED_MAX && noise <= SUSTAINED_MAX => Verdict::Sustained,
            extra if extra >= COPYING_MIN && is_longer => Verdict::Copying,
            _ => Verdict::Unclear,
        }
    }
}

struct Streams {
    base: u64,
    unit: u64,
    piece: u64,
    /// Number of units in the region.
    places: u64,
    next: u64,
    /// All comparisons so far.
    comparisons: Vec<Comparison>,
}

impl Streams {
    fn new(session: &Session, page: u64, unit: u64) -> Streams {
        let base = session.base();
        let piece = (unit / 16).min(PIECE_BYTES_MAX).max(page);
        Streams {
            base,
            unit,
            piece,
            places: session.filled_bytes() / unit,
            next: 0,
            comparisons: Vec::new(),
        }
    }

    /// Times rounds of one and of several streams, in turns. Returns them with those of earlier comparisons of the same number.
    fn compare(&mut self, session: &mut Session, streams: u64) -> Result<Comparison, Stop> {
        let known = |comparison: &Comparison| comparison.streams == streams;
        let mut comparison = match self.comparisons.iter().position(known) {
            Some(at) => self.comparisons.swap_remove(at),
            None => Comparison {
                streams,
                one: Vec::new(),
                several: Vec::new(),
            },
        };
        // The first round may have to clean up what an earlier experiment left.
        self.round(session, streams)?;
        self.round(session, 1)?;
        for _ in 0..ROUNDS {
            let ns = self.round(session, streams)?;
            comparison.several.push(ns / streams as f64);
            comparison.one.push(self.round(session, 1)?);
        }
        self.comparisons.push(comparison.clone());
        Ok(comparison)
    }

    /// Writes units in turn, piece by piece; returns the time in ns.
    fn round(&mut self, session: &mut Session, streams: u64) -> Result<f64, Stop> {
        if self.next + streams > self.places {
            self.next = 0;
        }
        let first = self.base + self.next * self.unit;
        self.next += streams;
        let mut ns = 0.0;
        for at in (0..self.unit).step_by(self.piece as usize) {
            for stream in 0..streams {
                ns += session.write(first + stream * self.unit + at, self.piece)?;
            }
        }
        Ok(ns)
    }
}
