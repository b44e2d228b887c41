//! Course of a recording: level of the buffer and busy times of the card.

use serde::Serialize;

/// Shortest busy time that is kept, in ns.
const BUSY_NS_MIN: u64 = 5_000_000;
/// Maximum number of busy times kept; later ones are left out.
const BUSY_MAX: usize = 1 << 16;

/// Level of the buffer over time, and long busy times of the card, both counted from the start of sampling.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Length of a span, in us.
    pub span_us: u64,
    /// Highest level of the ring buffer in each span, in bytes.
    pub level_bytes_max: Vec<u64>,
    /// Samples lost in each span.
    pub lost: Vec<u64>,
    /// Busy times of at least 5 ms: the start in us, which may be before the first sample, and the length in us.
    pub busy_us: Vec<(i64, u64)>,
    /// End of the latest busy time, in ns of the card's clock.
    #[serde(skip)]
    busy_until_ns: u64,
}

impl Course {
    /// Creates an empty course whose spans have the given length.
    pub fn of_spans(span_us: u64) -> Course {
        Course {
            span_us: span_us.max(1),
            ..Course::default()
        }
    }

    /// Notes the level of the ring buffer after a sample, and whether the sample was lost.
    pub(crate) fn note_sample(&mut self, at_us: u64, level_bytes: u64, is_lost: bool) {
        let span = (at_us / self.span_us) as usize;
        if self.level_bytes_max.len() <= span {
            self.level_bytes_max.resize(span + 1, 0);
            self.lost.resize(span + 1, 0);
        }
        let highest = &mut self.level_bytes_max[span];
        *highest = level_bytes.max(*highest);
        self.lost[span] += u64::from(is_lost);
    }

    /// Notes the end of the card's busy time, in ns of its clock.
    pub(crate) fn note_busy(&mut self, now_ns: u64, until_ns: u64) {
        if until_ns <= self.busy_until_ns {
            return;
        }
        self.busy_until_ns = until_ns;
        let busy_ns = until_ns.saturating_sub(now_ns);
        if busy_ns >= BUSY_NS_MIN && self.busy_us.len() < BUSY_MAX {
            self.busy_us.push(((now_ns / 1000) as i64, busy_ns / 1000));
        }
    }

    /// Counts busy times from the start of sampling, given in ns of the card's clock.
    pub(crate) fn begin_at(&mut self, started_ns: u64) {
        for (at_us, _) in &mut self.busy_us {
            *at_us -= (started_ns / 1000) as i64;
        }
    }
}
