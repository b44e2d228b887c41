//! Searches every state that the planner can reach, within a small model of its environment.
//!
//! # Faults
//!
//! Any action that accesses the card may fail, any number of times. Then everything that is not durable is
//! lost and becomes a gap, and nothing is known about the files. Acquiring the card may keep failing: the
//! card is gone. The next mount finds room or none: it may be the same card or another. Something else may
//! use up the volume, and free room again, while a file is being prepared. A power cut is not a step of its
//! own; its consequence is an invariant of every state instead: the planner never considers data durable that
//! a power cut would lose.
//!
//! # The world
//!
//! | item | model |
//! |---|---|
//! | sample | as large as a block: it may fill a block, leave room in it, or continue in the next one |
//! | ring | one to three samples, gaps, and the boundary of a session |
//! | encoder | a gap left by a failure, an open or full block, written blocks without a mark |
//! | file | one to three blocks; written blocks are volatile until they are committed |
//! | shared file | its last blocks, one per stream, are reserved for unfinished blocks |
//! | volume | has room for files, or none; slots for two or three files per track |
//! | job | begun, in the middle, done |
//! | clocks, costs, reads | predicates that may be true or false wherever consistent |
//! | counts of samples and of lost ones | none or some, because no decision depends on more |
//!
//! A full ring absorbs nothing, unless its track was reported to have no room. Samples that arrive while the shell
//! fills blocks are omitted, because they could equally well arrive before or after. The shell fills blocks before it
//! acts, except where a checkpoint may hold samples back, or where a request has just extended the checkpoint. It never
//! fills blocks of a sealed file, and with a forced checkpoint it takes only the samples that the checkpoint covers.
//!
//! # What is checked
//!
//! `check.rs` checks that each action is possible and correct, independently of how the planner chooses it, and that in
//! every state each pushed sample is durable, pending, in exactly one gap, or given up. `live.rs` checks the runs of
//! steps that need no outside event: every cycle retries something that failed, and every run ends with nothing left to
//! do, whether or not the card answers.

mod check;
mod explore;
mod live;
mod steps;
mod walk;
mod world;

use super::{Action, Job};
use crate::limits::Limits;
use explore::Graph;
use steps::Event;

/// Description of the violated property.
type Violation = &'static str;

/// A model to search.
struct Config<const N: usize> {
    name: &'static str,
    /// Track of each stream.
    tracks: [u8; N],
    track_count: u8,
    /// Samples per ring.
    ring: usize,
    /// Gaps per ring.
    gaps: usize,
    /// Blocks of a file.
    blocks: u32,
    /// Maximum number of files per track: prepared, being written, closing.
    slots: u8,
    /// Other tasks read from the card.
    has_reads: bool,
    /// Files get names, and are left at their maximum age.
    has_names_and_ages: bool,
    may_remove: bool,
    /// Samples may continue in the next block, and marks may need a block of their own.
    is_text: bool,
    events: &'static [Event],
    states_max: usize,
}

impl<const N: usize> Config<N> {
    /// Returns the limits of files, for all tracks together.
    fn limits(&self) -> Limits {
        Limits {
            file_blocks_min: self.blocks,
            files_max: self.slots * self.track_count,
            page_blocks: 1,
        }
    }

    /// Returns the number of streams that share a track.
    fn sharing(&self, at: u8) -> u32 {
        self.tracks.iter().filter(|track| **track == at).count() as u32
    }
}

/// Searches a model; panics with the path to a violation.
fn search<const N: usize>(config: &Config<N>) -> Graph<N> {
    let name = config.name;
    let start = std::time::Instant::now();
    let graph = Graph::explore(config).unwrap_or_else(|path| panic!("{name}:\n{path}"));
    let (states, edges) = (graph.worlds.len(), graph.edges.len());
    let seen_ms = start.elapsed().as_millis();
    live::check(config, &graph).unwrap_or_else(|path| panic!("{name}:\n{path}"));
    let ms = start.elapsed().as_millis();
    std::println!("{name}: {states} states, {edges} internal steps, {seen_ms} ms, {ms} ms");
    graph
}

const ALL: &[Event] = &[
    Event::Sample(0),
    Event::Burst(0),
    Event::Session(0),
    Event::Flush,
    Event::Rotate,
    Event::Stop,
    Event::RoomTaken,
    Event::RoomFreed,
];

/// The events of two streams.
const TWO: [Event; 11] = [
    Event::Sample(0),
    Event::Sample(1),
    Event::Burst(0),
    Event::Burst(1),
    Event::Session(0),
    Event::Session(1),
    Event::Flush,
    Event::Rotate,
    Event::Stop,
    Event::RoomTaken,
    Event::RoomFreed,
];

const ONE: Config<1> = Config {
    name: "one stream",
    tracks: [0],
    track_count: 1,
    ring: 2,
    gaps: 1,
    blocks: 2,
    slots: 3,
    has_reads: true,
    has_names_and_ages: true,
    may_remove: false,
    is_text: true,
    events: ALL,
    states_max: 10_000_000,
};

/// Part of the events and predicates of one stream; all of them take minutes.
const WITH_READS: Config<1> = Config {
    name: "one stream, with reads",
    slots: 2,
    has_names_and_ages: false,
    is_text: false,
    events: &[
        Event::Sample(0),
        Event::Burst(0),
        Event::Flush,
        Event::Stop,
        Event::RoomTaken,
        Event::RoomFreed,
    ],
    ..ONE
};

const WITH_NAMES: Config<1> = Config {
    name: "one stream, with names and ages",
    has_reads: false,
    ..ONE
};

#[test]
fn one_stream_with_reads() {
    sees_every_action(&WITH_READS);
}

#[test]
fn one_stream_with_names_and_ages() {
    search(&WITH_NAMES);
}

#[test]
#[ignore = "takes minutes: cargo xtask lane states"]
fn lane_one_stream() {
    sees_every_action(&ONE);
}

fn sees_every_action(config: &Config<1>) {
    let graph = search(config);
    let kinds = [
        Action::Acquire,
        Action::Start(Job::Mount),
        Action::Step,
        Action::Write(0),
        Action::Mark(0),
        Action::Commit(0),
        Action::Begin(0),
        Action::Leave(0),
        Action::Read,
        Action::AnswerFlush(1, true),
        Action::ReportFull(0),
        Action::GiveUp(0),
        Action::Abandon,
        Action::End,
    ];
    for action in kinds {
        assert!(graph.has_seen(action), "{action:?} was never chosen");
    }
}

const REMOVES: Config<1> = Config {
    name: "one stream that removes recordings",
    may_remove: true,
    events: &[
        Event::Sample(0),
        Event::Burst(0),
        Event::Flush,
        Event::Rotate,
        Event::Stop,
        Event::RoomTaken,
        Event::RoomFreed,
    ],
    ..ONE
};

#[test]
fn one_stream_removes_recordings() {
    search(&Config {
        name: "one stream that removes recordings, without reads",
        has_reads: false,
        ..REMOVES
    });
}

#[test]
#[ignore = "takes minutes: cargo xtask lane states"]
fn lane_one_stream_removes_recordings_beside_reads() {
    search(&REMOVES);
}

const SHARED: Config<2> = Config {
    name: "two streams in one track",
    tracks: [0, 0],
    track_count: 1,
    ring: 1,
    gaps: 1,
    blocks: 3,
    slots: 2,
    has_reads: false,
    has_names_and_ages: false,
    may_remove: false,
    is_text: false,
    events: &[
        Event::Sample(0),
        Event::Sample(1),
        Event::Session(0),
        Event::Stop,
    ],
    states_max: 10_000_000,
};

#[test]
fn two_streams_in_one_track() {
    search(&SHARED);
}

#[test]
fn two_streams_in_one_track_flushed() {
    search(&Config {
        name: "two streams in one track, flushed",
        events: &[Event::Sample(0), Event::Sample(1), Event::Flush],
        ..SHARED
    });
}

const APART: Config<2> = Config {
    name: "two tracks, short of room",
    tracks: [0, 1],
    track_count: 2,
    ring: 1,
    gaps: 1,
    blocks: 1,
    slots: 2,
    has_reads: false,
    has_names_and_ages: false,
    may_remove: false,
    is_text: false,
    events: &[
        Event::Sample(0),
        Event::Sample(1),
        Event::Stop,
        Event::RoomTaken,
        Event::RoomFreed,
    ],
    states_max: 10_000_000,
};

#[test]
fn two_tracks_flushed() {
    search(&Config {
        name: "two tracks, flushed",
        events: &[Event::Sample(0), Event::Sample(1), Event::Flush],
        ..APART
    });
}

#[test]
fn two_tracks_short_of_room() {
    search(&APART);
}

#[test]
#[ignore = "takes minutes: cargo xtask lane states"]
fn lane_larger() {
    search(&Config {
        name: "one stream, larger",
        ring: 3,
        blocks: 3,
        events: &[
            Event::Sample(0),
            Event::Flush,
            Event::Stop,
            Event::RoomTaken,
        ],
        ..ONE
    });
}

#[test]
fn walks_of_one_stream() {
    let walks = cardiograph_effort::PLANNER_WALKS.now();
    walk::walk(&ONE, walks);
    walk::walk(
        &Config {
            may_remove: true,
            ..ONE
        },
        walks,
    );
}

#[test]
fn walks_of_two_streams() {
    let walks = cardiograph_effort::PLANNER_WALKS.now();
    walk::walk(
        &Config {
            has_reads: true,
            has_names_and_ages: true,
            ring: 2,
            events: &TWO,
            ..SHARED
        },
        walks,
    );
    walk::walk(
        &Config {
            has_reads: true,
            has_names_and_ages: true,
            may_remove: true,
            blocks: 2,
            ring: 2,
            events: &TWO,
            ..APART
        },
        walks,
    );
}
