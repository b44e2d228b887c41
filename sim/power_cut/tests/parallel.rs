//! The same seed gives the same card, to the last byte, on one thread and on eight.

use cardiograph_sim_card::wire::{Fault, FaultSchedule};
use cardiograph_sim_power_cut::case::cuts_of;
use cardiograph_sim_power_cut::disk::Image;
use cardiograph_sim_power_cut::scene::Scene;
use cardiograph_sim_power_cut::session::Setup;
use cardiograph_sim_world::Clock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const WORLDS: u64 = 200;

/// Returns the contents of a card after a power cut, and the events before the cut.
fn cut_card(number: u64) -> (Image, String) {
    let scene = Scene::short().unwrap();
    let (_, reference) = scene.setup.run(scene.card(), &Clock::default());
    let mut faults = FaultSchedule::default();
    faults.add(cuts_of(&reference, number)[0], Fault::PowerCut);
    let setup = Setup {
        faults,
        ..scene.setup.clone()
    };
    let (card, session) = setup.run(scene.card(), &Clock::default());
    (Image::of(&card), format!("{session:?}"))
}

fn on_threads(threads: usize) -> Vec<(u64, (Image, String))> {
    let (next, done) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= WORLDS {
                        return;
                    }
                    let card = cut_card(number);
                    done.lock().unwrap().push((number, card));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, _)| *number);
    done
}

#[test]
fn one_seed_leaves_the_same_bytes_on_one_thread_and_on_eight() {
    let (one, eight) = (on_threads(1), on_threads(8));
    assert_eq!(one.len() as u64, WORLDS);
    for ((number, one), (_, eight)) in one.iter().zip(&eight) {
        assert!(one == eight, "seed {number}");
    }
    assert!(one.windows(2).any(|two| two[0].1 != two[1].1));
}
