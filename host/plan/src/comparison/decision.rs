//! The card to take for a data logger: the one whose buffer sustains the highest rate.

use super::figures::Side;
use cardiograph_report::{Report, units};
use serde::Serialize;

/// Shortest trace from which a card is chosen, in buffers: a shorter one fits into the buffer, for the most part.
const BUFFERS_MIN: u64 = 10;
/// Ratio of two sustained rates from which one card is better.
const RATIO_MIN: f64 = 1.05;

/// Requirements of a data logger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Data rate, if it is known.
    pub rate_bytes_per_s: Option<f64>,
}

impl Default for Need {
    /// Returns the buffer for which the other commands answer by default.
    fn default() -> Need {
        Need {
            buffer_bytes: 64 << 10,
            rate_bytes_per_s: None,
        }
    }
}

/// The card to take for a data logger.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// The decision as a sentence.
    pub answer: String,
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Data rate of the logger; null if it was not given.
    pub rate_bytes_per_s: Option<f64>,
    /// Names of the cards to take: several if they are about as good, none if no card sustains the rate.
    pub take: Vec<String>,
    /// Names of the cards whose traces are too short for a decision.
    pub unknown: Vec<String>,
}

/// A card, and the rate that it sustains.
struct Rated<'a> {
    side: &'a Side,
    rate_bytes_per_s: f64,
}

impl Decision {
    pub(super) fn of(reports: &[Report], sides: &[Side], need: &Need) -> Decision {
        let rated = reports.iter().zip(sides).map(|(report, side)| Rated {
            side,
            rate_bytes_per_s: report
                .sustained_bytes_per_s(need.buffer_bytes)
                .unwrap_or(0.0),
        });
        let least_bytes = BUFFERS_MIN * need.buffer_bytes;
        let is_long = |rated: &Rated| rated.side.payload_bytes >= least_bytes;
        let (mut known, unknown): (Vec<Rated>, Vec<Rated>) = rated.partition(is_long);
        known.sort_by(|a, b| b.rate_bytes_per_s.total_cmp(&a.rate_bytes_per_s));
        let best = known.first().map_or(0.0, |best| best.rate_bytes_per_s);
        let is_as_good = |rated: &&Rated| {
            let has_rate = need
                .rate_bytes_per_s
                .is_none_or(|rate| rated.rate_bytes_per_s >= rate);
            rated.rate_bytes_per_s > 0.0 && has_rate && rated.rate_bytes_per_s * RATIO_MIN >= best
        };
        let name = |rated: &Rated| rated.side.name.clone();
        let take: Vec<String> = known.iter().filter(is_as_good).map(name).collect();
        Decision {
            answer: answer(&known, &unknown, &take, need),
            buffer_bytes: need.buffer_bytes,
            rate_bytes_per_s: need.rate_bytes_per_s,
            take,
            unknown: unknown.iter().map(name).collect(),
        }
    }
}

fn answer(known: &[Rated], unknown: &[Rated], take: &[String], need: &Need) -> String {
    let buffer = units::binary_bytes(need.buffer_bytes);
    let rates = known.iter().enumerate().map(|(index, rated)| {
        let rate = match rated.rate_bytes_per_s {
            0.0 => String::from("nothing"),
            rate => units::rate(rate),
        };
        let name = &rated.side.name;
        match index {
            0 => format!("{name}: a {buffer} buffer sustains {rate}"),
            _ => format!("{name} {rate}"),
        }
    });
    let rates: Vec<String> = rates.collect();
    let wanted = need
        .rate_bytes_per_s
        .map_or(String::new(), |rate| format!(" for {}", units::rate(rate)));
    let verdict = match take {
        [] => format!("take none{wanted}"),
        [one] => format!("take {one}{wanted}"),
        several => format!("{} are about as good{wanted}", several.join(" and ")),
    };
    let shorter = unknown.iter().map(|rated| {
        let payload = units::bytes(rated.side.payload_bytes as f64);
        format!(
            "{} is not known: {payload} were measured, and a {buffer} buffer needs {}",
            rated.side.name,
            units::bytes((BUFFERS_MIN * need.buffer_bytes) as f64)
        )
    });
    let decided = (!rates.is_empty()).then(|| format!("{}: {verdict}", rates.join(", ")));
    let all: Vec<String> = decided.into_iter().chain(shorter).collect();
    format!("{}.", all.join("; "))
}
