//! Whatever happens to a card, nothing is lost in silence, nothing hangs, and files of others stay.

use cardiograph_recorder::{Config, Event, Format, WhenFull, Window};
use cardiograph_sim_card::Card;
use cardiograph_sim_card::wire::{Fault, FaultMix, FaultSchedule};
use cardiograph_sim_power_cut::case::{Scene, run_scene};
use cardiograph_sim_power_cut::disk::{Disk, Image};
use cardiograph_sim_power_cut::plan::{Plan, SMALL};
use cardiograph_sim_power_cut::session::{End, Said, Session, Setup};
use cardiograph_sim_world::{Clock, Seed};
use std::ops::Range;

/// FaultSchedule the devices of some scenes from their first file on, since what comes before takes most of the
/// bytes of a short recording; each is judged. Returns how often the strikes had an effect, as `count` says.
fn strike_scenes(
    scenes: Range<u64>,
    strikes: impl Fn(Seed, Range<u64>) -> FaultSchedule,
    count: impl Fn(&Session) -> u64,
) -> u64 {
    let counts = scenes.map(|number| {
        println!("scene {number}");
        let scene = Scene::random(number).unwrap_or_else(|why| panic!("scene {number}: {why}"));
        let uncut = scene
            .uncut()
            .unwrap_or_else(|why| panic!("scene {number}: {why}"));
        let places = uncut.first_file_byte()..uncut.bytes;
        let strikes = strikes(Seed::new(number), places);
        let session = scene.struck(&strikes);
        let session = session.unwrap_or_else(|why| panic!("scene {number}: {why}\n{strikes:?}"));
        count(&session)
    });
    counts.sum()
}

fn at_random(mix: FaultMix) -> impl Fn(Seed, Range<u64>) -> FaultSchedule {
    move |seed, places| FaultSchedule::random(seed, &mix, places)
}

fn times_lost(session: &Session) -> u64 {
    let lost = |event| matches!(event, Event::CardLost);
    session.said.iter().filter(|said| lost(said.event)).count() as u64
}

fn times_back(session: &Session) -> u64 {
    let back = |event| matches!(event, Event::CardBack);
    session.said.iter().filter(|said| back(said.event)).count() as u64
}

#[test]
fn flipped_bits_in_both_directions() {
    let mix = FaultMix {
        flips_to_card: 30,
        flips_to_host: 30,
        ..FaultMix::default()
    };
    let flips = strike_scenes(100..130, at_random(mix), |session| {
        session
            .effects
            .flips_to_card
            .min(session.effects.flips_to_host)
    });
    // Of 30 in each direction some meet a card that is not selected.
    assert!(flips >= 30 * 15, "{flips} bits were flipped");
}

#[test]
fn lost_commands() {
    let mix = FaultMix {
        lost_commands: 20,
        ..FaultMix::default()
    };
    let lost = strike_scenes(200..220, at_random(mix), |session| {
        session.effects.lost_commands
    });
    assert!(lost >= 20 * 10, "{lost} commands were lost");
}

#[test]
fn a_card_that_is_busy_for_two_seconds() {
    let busy = |seed: Seed, places: Range<u64>| {
        let mut strikes = FaultSchedule::default();
        let extra_ns = 2_000_000_000;
        let place = places.start + seed.stream("busy").below(places.end - places.start);
        strikes.add(place, Fault::Busy { extra_ns });
        strikes
    };
    let busies = strike_scenes(300..320, busy, |session| session.effects.long_busies);
    assert!(busies >= 15, "{busies} times it was busy for longer");
}

#[test]
fn a_card_that_is_pulled_and_put_back() {
    let mix = FaultMix {
        pulls: 2,
        out_ns_max: 700_000_000,
        ..FaultMix::default()
    };
    let pulls = |session: &Session| session.effects.power_losses;
    let pulled = strike_scenes(400..410, at_random(mix), pulls);
    assert!(pulled >= 10, "{pulled} were pulled");
    let back = strike_scenes(410..440, at_random(mix), times_back);
    assert!(back >= 10, "{back} came back");
}

#[test]
fn all_of_it_together() {
    let mix = FaultMix {
        pulls: 1,
        out_ns_max: 300_000_000,
        lost_commands: 10,
        flips_to_card: 20,
        flips_to_host: 20,
        long_busies: 3,
        extra_ns_max: 600_000_000,
        ..FaultMix::default()
    };
    let effects = strike_scenes(500..530, at_random(mix), |session| session.effects.total());
    assert!(effects >= 30 * 25, "{effects} strikes had an effect");
}

#[test]
fn a_card_that_is_pulled_for_good() {
    let pulled = |seed: Seed, places: Range<u64>| {
        let mut strikes = FaultSchedule::default();
        let place = places.start + seed.stream("pull").below(places.end - places.start);
        strikes.add(place, Fault::PowerCut);
        strikes
    };
    let lost = strike_scenes(600..620, pulled, times_lost);
    assert!(lost >= 10, "{lost} lost their card");
}

#[test]
fn a_card_that_is_exchanged_keeps_its_files_and_the_other_goes_on() {
    let mut exchanged = 0;
    for number in (700..760).filter(|number| number % 4 != 0) {
        println!("scene {number}");
        let scene = Scene::random(number).unwrap();
        let after_ns = number % 7 * 10_000_000;
        match scene.exchanged(after_ns, 50_000_000) {
            Ok(session) => exchanged += times_back(&session),
            // It was over before.
            Err(why) if why.starts_with("the card was not exchanged") => (),
            Err(why) => panic!("scene {number}: {why}"),
        }
    }
    assert!(exchanged >= 20, "{exchanged} went on with another card");
}

/// Blocks that became durable without a checkpoint once hid that the window had been exceeded.
#[test]
fn a_window_of_one_sample_is_exceeded_while_the_card_is_away() {
    let mut cases = 0;
    let judged = run_scene(107, 2158..2160, |seed, result| {
        cases += 1;
        result.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    });
    judged.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(cases, 2);
}

/// A device that records twice as much as the volume holds.
fn full(seed: u64, when_full: WhenFull) -> Scene {
    let formats = [
        Format::Binary(&[SMALL]),
        Format::Lines {
            header: "",
            line_bytes_max: 100,
        },
    ];
    let plans = formats.into_iter().enumerate();
    let plans =
        plans.map(|(at, format)| Plan::steady(at, format, Window::Us(100_000), 3000, 60_000));
    let setup = |seed| Setup {
        clock_hz: 20_000_000,
        config: Config {
            file_bytes: 128 << 10,
            rotate_us: None,
            when_full,
        },
        plans: plans.collect(),
        asks: Vec::new(),
        strikes: FaultSchedule::default(),
        exchange: None,
        write_protected: false,
        stops_without_power: false,
        copies_each: false,
        seed,
    };
    Scene::new(3 << 20, 512, Seed::new(seed), setup).unwrap()
}

#[test]
fn a_full_card_is_told_and_all_that_comes_then_is_counted() {
    for seed in 0..3 {
        let session = full(seed, WhenFull::Wait).struck(&FaultSchedule::default());
        let session = session.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(session.is_full());
        let End::Done(streams) = session.end else {
            panic!("seed {seed}: {:?}", session.end);
        };
        assert!(streams.iter().any(|(_, lost)| *lost > 1000), "{streams:?}");
    }
}

#[test]
fn the_oldest_recordings_give_way_and_nothing_is_lost() {
    for seed in 0..3 {
        let session = full(seed, WhenFull::RemoveOldest).struck(&FaultSchedule::default());
        let session = session.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let is_removed = |event| matches!(event, Event::Removed { .. });
        let removed = session.said.iter().filter(|said| is_removed(said.event));
        assert!(removed.count() > 5, "seed {seed}");
        let End::Done(streams) = session.end else {
            panic!("seed {seed}: {:?}", session.end);
        };
        assert!(streams.iter().all(|(_, lost)| *lost == 0), "{streams:?}");
    }
}

#[test]
fn a_power_cut_on_a_full_card_costs_nothing_older_than_the_window() {
    for seed in 0..3 {
        let scene = full(seed, WhenFull::Wait);
        let (_, uncut) = scene.setup.run(scene.card(), &Clock::default());
        let is_full = |said: &&Said| matches!(said.event, Event::Full { .. });
        let full = uncut
            .said
            .iter()
            .find(is_full)
            .expect("it became full")
            .byte;
        // Around the moment at which it is full, and long after it.
        for part in 0..12 {
            let cut = full / 2 + (uncut.bytes - full / 2) * part / 12;
            println!("seed {seed}, cut at {cut}");
            let scene = scene.with_power_of_card();
            let outcome = scene.cut(uncut.clone(), &[cut], false);
            let outcome = outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            assert_eq!(outcome.cuts, 1);
        }
    }
}

/// Why a device refuses a card, which must stay as it is.
fn refused(seed: u64, is_protected: bool, change: impl FnOnce(&mut Card)) -> String {
    let mut scene = full(seed, WhenFull::RemoveOldest);
    scene.setup.write_protected = is_protected;
    let mut card = scene.card();
    change(&mut card);
    let before = Image::of(&card);
    let (card, session) = scene.setup.run(card, &Clock::default());
    assert!(before == Image::of(&card));
    match session.end {
        End::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

/// Writes text into the first block.
fn put(card: &mut Card, at: usize, bytes: &[u8]) {
    let mut block = card.block(0);
    block[at..at + bytes.len()].copy_from_slice(bytes);
    card.put(0, &block);
}

#[test]
fn cards_that_cannot_be_recorded_on_are_refused_with_a_reason_and_left_alone() {
    for (what, why) in [
        ("write-protected", refused(1, true, |_| ())),
        (
            "no file system",
            refused(2, false, |card| card.put(0, &[0; 512])),
        ),
        (
            "exFAT",
            refused(3, false, |card| {
                put(card, 446, &[0; 64]);
                put(card, 0, b"\xEB\x76\x90EXFAT   ");
            }),
        ),
        ("GUID", refused(4, false, |card| put(card, 450, &[0xEE]))),
    ] {
        assert!(why.contains(what), "{what}: {why}");
    }
}
