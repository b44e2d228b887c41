//! Random paths: a recorder with small limits, and the events around it.

use crate::recorder::WhenFull;
use cardiograph_sim_world::{Random, Seed};
use std::vec::Vec;

/// Maximum number of faults per path.
const FAULTS_MAX: u32 = 2;

/// Streams and their tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One stream of lines.
    Lines,
    /// One stream of binary samples.
    Binary,
    /// Two binary streams in one file.
    Shared,
    /// A stream of lines and a binary one.
    Apart,
}

/// A recorder and its cards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) shape: Shape,
    /// Size of a sample: 40 bytes, or so large that a block holds only a few.
    pub(super) is_large: bool,
    pub(super) ring_bytes: usize,
    pub(super) file_blocks: u32,
    /// Maximum number of unfinished files per track.
    pub(super) slots: u8,
    /// `None` for [`Window::Sample`](crate::Window::Sample).
    pub(super) window_us: Option<u64>,
    pub(super) rotate_us: Option<u64>,
    pub(super) when_full: WhenFull,
    /// Indices of the initial card and of the other card in the list of cards.
    pub(super) cards: [usize; 2],
    /// A failing card keeps some of the data that was not durable.
    pub(super) keeps_some: bool,
}

/// An event outside the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Sample(u8),
    /// More samples than a ring holds.
    Burst(u8),
    Session(u8),
    Flush,
    Rotate,
    Stop,
    Read,
    /// Another task uploads a file and removes it.
    Change,
    /// Number of operations that are slow, and their extra time in us.
    CardSlow(u32, u64),
    /// The next operation fails, and so does the card until it is acquired again.
    CardFails,
    CardGone,
    CardBack,
    /// The other card is inserted.
    OtherCard,
    RoomTaken,
    RoomFreed,
    PowerCut,
    /// A pause long enough for everything to become durable.
    Quiet,
}

impl Event {
    fn is_fault(self) -> bool {
        matches!(
            self,
            Event::CardFails | Event::CardGone | Event::OtherCard | Event::PowerCut
        )
    }
}

/// Time from one event to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Number of card operations or sleeps.
    Polls(u32),
    Us(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) setup: Setup,
    pub(super) events: Vec<(Pause, Event)>,
    /// A card that is gone at the end does not come back.
    pub(super) stays_gone: bool,
    /// Events begin before the recorder is ready.
    pub(super) is_early: bool,
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

pub(super) fn path(seed: Seed, number: u64, cards: usize) -> Path {
    let mut random = seed.nth(number);
    let random = &mut random;
    let setup = setup(random, cards);
    let streams: u8 = match setup.shape {
        Shape::Lines | Shape::Binary => 1,
        Shape::Shared | Shape::Apart => 2,
    };
    let (mut faults, mut is_gone, mut is_stopped) = (0, false, false);
    let count = 6 + random.below(22);
    let stop_at = match random.below(4) {
        0 => random.below(count),
        _ => count - 1,
    };
    let mut events = Vec::new();
    for at in 0..count {
        let mut event = event(random, streams, is_gone);
        if at == stop_at {
            event = match random.below(5) {
                0 if faults < FAULTS_MAX && setup.when_full == WhenFull::Wait => Event::PowerCut,
                _ => Event::Stop,
            };
        }
        let is_removing = setup.when_full == WhenFull::RemoveOldest;
        // The recorder removes the oldest recording of the card in the slot. That is the oldest of all only if the path
        // has a single card.
        let is_unclear = is_removing && matches!(event, Event::PowerCut | Event::OtherCard);
        if event.is_fault() && (faults == FAULTS_MAX || is_unclear) {
            event = Event::Sample(0);
        }
        if is_stopped && matches!(event, Event::Quiet | Event::PowerCut) {
            event = Event::Flush;
        }
        faults += u32::from(event.is_fault());
        match event {
            Event::CardGone => is_gone = true,
            Event::CardBack | Event::OtherCard => is_gone = false,
            Event::Stop => is_stopped = true,
            _ => (),
        }
        events.push((pause(random, is_gone), event));
    }
    if !is_stopped {
        events.push((pause(random, is_gone), Event::Stop));
    }
    Path {
        setup,
        events,
        stays_gone: random.below(3) == 0,
        is_early: random.below(10) == 0,
    }
}

fn setup(random: &mut Random, cards: usize) -> Setup {
    let shape = pick(
        random,
        &[Shape::Lines, Shape::Binary, Shape::Shared, Shape::Apart],
    );
    let may_remove = matches!(shape, Shape::Lines | Shape::Binary) && random.below(3) == 0;
    // A shared file contains two headers, and a last block for each stream.
    let file_blocks = match shape {
        Shape::Shared => pick(random, &[6, 7]),
        _ => pick(random, &[2, 3]),
    };
    // The last card has too little room to start a recorder.
    let tight = |random: &mut Random, cards: usize| match random.below(4) {
        0 => 1 + random.below(cards as u64 - 1) as usize,
        _ => 0,
    };
    Setup {
        shape,
        is_large: random.below(2) == 0,
        ring_bytes: pick(random, &[1024, 1024, 1536]),
        file_blocks,
        slots: pick(random, &[2, 3]),
        window_us: pick(random, &[Some(20_000), Some(60_000), Some(60_000), None]),
        rotate_us: pick(random, &[None, None, None, Some(30_000)]),
        when_full: match may_remove {
            true => WhenFull::RemoveOldest,
            false => WhenFull::Wait,
        },
        cards: [tight(random, cards - 1), tight(random, cards)],
        keeps_some: !may_remove && random.below(4) == 0,
    }
}

fn event(random: &mut Random, streams: u8, is_gone: bool) -> Event {
    let stream = random.below(streams.into()) as u8;
    match random.below(44) {
        0..14 => Event::Sample(stream),
        14..19 => Event::Burst(stream),
        19..22 => Event::Session(stream),
        22..26 => Event::Flush,
        26..28 => Event::Rotate,
        28 => Event::Read,
        29 => Event::Change,
        30 => Event::CardSlow(1, 5_000 + random.below(400_000)),
        31 => Event::CardSlow(20, 1_000 + random.below(10_000)),
        32 => Event::CardFails,
        33..35 if is_gone => Event::CardBack,
        33 => Event::CardFails,
        34 => Event::CardGone,
        35 if is_gone => Event::CardBack,
        35 => Event::OtherCard,
        36..38 => Event::RoomTaken,
        38..40 => Event::RoomFreed,
        40 => Event::PowerCut,
        41..43 => Event::Quiet,
        _ => Event::Sample(stream),
    }
}

fn pause(random: &mut Random, is_gone: bool) -> Pause {
    match random.below(8) {
        0..4 => Pause::Polls(random.below(6) as u32),
        4..6 => Pause::Us(random.below(3_000)),
        6 => Pause::Us(random.below(60_000)),
        _ if is_gone => Pause::Us(random.below(250_000)),
        _ => Pause::Polls(random.below(60) as u32),
    }
}
