//! Searches every state that the planner can reach, with a small world around it.
//!
//! # Faults
//!
//! Any action that touches the card may fail, at most twice on a path. Then everything that is not durable is
//! lost, and nothing is known of the files. Acquiring may fail any number of times: the card is gone. The next
//! mount finds any amount of room: the same card, another one, a full one. Something else may use up the
//! volume, or free room, at any time. A power cut ends a path; what it must leave is an invariant of every
//! state instead: the planner takes nothing for durable that a power cut would lose.
//!
//! # The world
//!
//! | what | how it is modelled |
//! |---|---|
//! | sample | as large as a block; it may fill one, or leave room, or go on in the next |
//! | ring | one or two samples, gaps, and the boundary of a session |
//! | encoder | a pending gap, an open or full block, the part of a sample behind it, marks that are missing |
//! | file | two blocks; what is written is volatile until it is committed |
//! | volume | room for further files, or none; slots for two or three files per track |
//! | job | begun, in the middle, done |
//! | clocks, costs | predicates, which may be true or false in every state where that is consistent |
//! | counts | 0, or more: no decision depends on them |
//!
//! The shell fills blocks before it acts, except where a checkpoint may hold samples back. It does not fill a
//! block of a file that is sealed, and beyond a forced checkpoint only once that is committed.
//!
//! # What is checked
//!
//! Before each action, and in every state: see `check.rs`. Pushed samples are written, lost or waiting, each
//! once. For liveness `live.rs` looks at the steps that need nothing from outside: a run ends where nothing is
//! left to do, with a card and without one, and no cycle is without a retry of what failed.

mod check;
mod explore;
mod live;
mod steps;
mod world;

use steps::Event;

/// What was violated.
type Violation = &'static str;

/// A world to search.
struct Config<const N: usize> {
    name: &'static str,
    /// Track of each stream.
    tracks: [u8; N],
    track_count: u8,
    /// Samples that a ring holds.
    ring: usize,
    /// Gaps that a ring holds.
    gaps: usize,
    /// Blocks of a file.
    blocks: u32,
    /// Files that a track may have: prepared, being written, closing.
    slots: u8,
    /// Others read from the card.
    has_guests: bool,
    /// Files get names, and are left when they are old.
    has_names_and_ages: bool,
    may_remove: bool,
    /// Samples may go on in the next block, and marks may need a block of their own.
    is_text: bool,
    events: &'static [Event],
    states_max: usize,
}

impl<const N: usize> Config<N> {
    /// Streams that share a track.
    fn sharing(&self, at: u8) -> u32 {
        self.tracks.iter().filter(|track| **track == at).count() as u32
    }
}

fn search<const N: usize>(config: &Config<N>) {
    let name = config.name;
    let start = std::time::Instant::now();
    let graph = explore::Graph::explore(config).unwrap_or_else(|path| panic!("{name}:\n{path}"));
    let (states, edges) = (graph.worlds.len(), graph.edges.len());
    let seen_ms = start.elapsed().as_millis();
    live::check(config, &graph).unwrap_or_else(|path| panic!("{name}:\n{path}"));
    let ms = start.elapsed().as_millis();
    std::println!("{name}: {states} states, {edges} internal steps, {seen_ms} ms, {ms} ms");
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

const ONE: Config<1> = Config {
    name: "one stream",
    tracks: [0],
    track_count: 1,
    ring: 2,
    gaps: 1,
    blocks: 2,
    slots: 3,
    has_guests: true,
    has_names_and_ages: true,
    may_remove: false,
    is_text: true,
    events: ALL,
    states_max: 10_000_000,
};

#[test]
fn one_stream() {
    search(&ONE);
}

#[test]
fn one_stream_removes_recordings() {
    search(&Config {
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
    });
}

const SHARED: Config<2> = Config {
    name: "two streams in one track",
    tracks: [0, 0],
    track_count: 1,
    ring: 1,
    gaps: 1,
    blocks: 3,
    slots: 2,
    has_guests: false,
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
    name: "two tracks",
    tracks: [0, 1],
    track_count: 2,
    ring: 1,
    gaps: 1,
    blocks: 1,
    slots: 2,
    has_guests: false,
    has_names_and_ages: false,
    may_remove: false,
    is_text: false,
    events: &[Event::Sample(0), Event::Sample(1), Event::Stop],
    states_max: 10_000_000,
};

#[test]
fn two_tracks() {
    search(&APART);
}

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
    search(&Config {
        name: "two tracks, short of room",
        events: &[
            Event::Sample(0),
            Event::Sample(1),
            Event::Stop,
            Event::RoomTaken,
            Event::RoomFreed,
        ],
        ..APART
    });
}

#[test]
fn larger() {
    search(&Config {
        name: "one stream, larger",
        ring: 3,
        blocks: 3,
        gaps: 2,
        events: &[
            Event::Sample(0),
            Event::Burst(0),
            Event::Flush,
            Event::Stop,
            Event::RoomTaken,
            Event::RoomFreed,
        ],
        ..ONE
    });
}
