//! Regression tests: short paths on which recorders have failed.

use super::path::{Event, Path, Pause, Setup, Shape};
use super::{run, volume};
use crate::recorder::WhenFull;
use cardiograph_sim_world::Seed;

const SETUP: Setup = Setup {
    shape: Shape::Lines,
    is_large: false,
    ring_bytes: 1024,
    file_blocks: 3,
    slots: 3,
    window_us: Some(60_000),
    rotate_us: None,
    when_full: WhenFull::Wait,
    cards: [0, 0],
    keeps_some: false,
};

/// Returns the index of a card with too little room for a recorder.
fn tiny() -> usize {
    volume::cards().len() - 1
}

/// Replays events, each the given time in us after the previous one.
fn keeps(setup: Setup, is_early: bool, events: &[(u64, Event)]) {
    let events = events.iter().map(|(us, event)| (Pause::Us(*us), *event));
    let path = Path {
        setup,
        events: events.collect(),
        stays_gone: false,
        is_early,
    };
    let random = Seed::new(0).nth(0);
    let replayed = run::replay(&path, &volume::cards(), random, &mut run::Totals::default());
    assert_eq!(replayed, Ok(()));
}

#[test]
fn samples_lost_right_after_a_session_starts_are_in_a_gap() {
    let events = [
        (0, Event::Burst(0)),
        (0, Event::Session(0)),
        (0, Event::Sample(0)),
        (50_000, Event::Stop),
    ];
    keeps(SETUP, false, &events);
}

#[test]
fn a_recording_with_a_pending_gap_ends_on_a_full_card() {
    let events = [
        (0, Event::Sample(0)),
        (0, Event::RoomTaken),
        (1_000, Event::CardFails),
        (300_000, Event::Stop),
    ];
    keeps(SETUP, false, &events);
}

#[test]
fn a_window_that_ends_with_a_file_is_reported_as_exceeded() {
    let setup = Setup {
        shape: Shape::Shared,
        is_large: true,
        file_blocks: 7,
        ..SETUP
    };
    let events = [
        (0, Event::CardGone),
        (1_000, Event::Burst(1)),
        (0, Event::Session(1)),
        (0, Event::Burst(0)),
        (100_000, Event::CardBack),
        (0, Event::Quiet),
        (0, Event::Stop),
    ];
    keeps(setup, false, &events);
}

#[test]
fn a_recorder_with_nothing_to_remove_finds_the_card_full() {
    let setup = Setup {
        when_full: WhenFull::RemoveOldest,
        ..SETUP
    };
    let events = [
        (0, Event::Sample(0)),
        (0, Event::RoomTaken),
        (1_000, Event::CardFails),
        (300_000, Event::Stop),
    ];
    keeps(setup, false, &events);
}

#[test]
fn a_card_without_room_for_its_repair_is_not_mounted() {
    let setup = Setup {
        cards: [0, tiny()],
        ..SETUP
    };
    let events = [
        (0, Event::Sample(0)),
        (0, Event::OtherCard),
        (300_000, Event::Sample(0)),
        (0, Event::Stop),
    ];
    keeps(setup, false, &events);
}

/// The file has room for one block of each stream, but a header and its samples need two.
#[test]
fn a_stream_that_was_silent_begins_in_the_next_file() {
    let setup = Setup {
        shape: Shape::Shared,
        file_blocks: 7,
        ..SETUP
    };
    let mut events = std::vec::Vec::new();
    for _ in 0..4 {
        events.extend([
            (0, Event::Sample(0)),
            (0, Event::Flush),
            (20_000, Event::Read),
        ]);
    }
    events.extend([
        (20_000, Event::Sample(1)),
        (0, Event::Flush),
        (0, Event::Quiet),
    ]);
    events.push((0, Event::Stop));
    keeps(setup, false, &events);
}

#[test]
fn pending_requests_are_answered_when_a_recorder_cannot_start() {
    let setup = Setup {
        cards: [tiny(), 0],
        ..SETUP
    };
    keeps(
        setup,
        true,
        &[(0, Event::Read), (0, Event::Flush), (900_000, Event::Stop)],
    );
}

#[test]
fn a_recorder_that_cannot_start_is_never_ready() {
    for us in 0..40 {
        let events = [
            (0, Event::Burst(0)),
            (0, Event::Flush),
            (20_000 + 1_000 * us, Event::RoomTaken),
            (900_000, Event::Stop),
        ];
        keeps(SETUP, true, &events);
    }
}
