//! Tasks and their results.

use crate::spec::{Mode, PolicyName, Spec};
use crate::{SweepError, card_mode, recorder_mode};
use cardiograph_sim_card::{Board, Profile};
use serde::Serialize;
use std::ops::Range;

/// Some recordings of a sweep: one card with all its members, board, policy and rate, and consecutive seeds.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// Number of the task in its sweep, from 0.
    pub number: u64,
    /// Specification of the sweep.
    pub spec: &'a Spec,
    /// Name of the card.
    pub card: &'a str,
    /// Members of the card's ensemble; for a card without an ensemble, the card alone.
    pub members: &'a [Profile],
    /// Number of the first of these members in the ensemble.
    pub first_member: u32,
    /// Name of the board.
    pub board_name: &'a str,
    /// Board.
    pub board: &'a Board,
    /// Way to write the samples.
    pub policy: PolicyName,
    /// Samples per second.
    pub rate_hz: u32,
    /// Buffer sizes in bytes: all of the sweep in card mode, where one simulation serves all of them, and one in
    /// recorder mode.
    pub buffers_bytes: &'a [u64],
    /// Seeds, one recording each.
    pub seeds: Range<u64>,
}

/// Result of one recording with one buffer size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Number of the task.
    pub task: u64,
    /// Simulation behind the result: `card` or `recorder`.
    pub mode: &'static str,
    /// Name of the card.
    pub card: String,
    /// Member of the card's ensemble, from 0.
    pub member: u32,
    /// Name of the board.
    pub board: String,
    /// Way to write the samples.
    pub policy: &'static str,
    /// Samples per second.
    pub rate_hz: u32,
    /// Bytes per sample.
    pub sample_bytes: u32,
    /// Buffer size.
    pub buffer_bytes: u64,
    /// Length of the recording.
    pub run_s: u64,
    /// Seed of the card.
    pub seed: u64,
    /// True if at least one sample was lost.
    pub lost: bool,
    /// Number of lost samples; unknown in card mode.
    pub lost_samples: Option<u64>,
    /// Highest number of bytes waiting: without limit in card mode, up to the buffer size in recorder mode.
    pub peak_backlog_bytes: u64,
}

impl Task<'_> {
    /// Runs the task. `None` if `is_stopped` returned true before the end.
    ///
    /// # Errors
    /// [`SweepError`] if the card or board does not permit the recording.
    pub fn run(&self, is_stopped: &dyn Fn() -> bool) -> Result<Option<Vec<Row>>, SweepError> {
        match self.spec.mode {
            Mode::Card => card_mode::run(self, is_stopped),
            Mode::Recorder => recorder_mode::run(self, is_stopped),
        }
    }

    /// Returns the members with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &Profile)> {
        (self.first_member..).zip(self.members)
    }

    pub(crate) fn row(&self, member: u32, buffer_bytes: u64, seed: u64) -> Row {
        Row {
            task: self.number,
            mode: self.spec.mode.name(),
            card: self.card.to_string(),
            member,
            board: self.board_name.to_string(),
            policy: self.policy.name(),
            rate_hz: self.rate_hz,
            sample_bytes: self.spec.sample_bytes,
            buffer_bytes,
            run_s: self.spec.run_s,
            seed,
            lost: false,
            lost_samples: None,
            peak_backlog_bytes: 0,
        }
    }

    /// Prefix of messages: the card and board.
    pub(crate) fn target(&self) -> String {
        format!("sim:{}@{}", self.card, self.board_name)
    }
}
