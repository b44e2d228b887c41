//! Cuts the power in as many cases as asked for, on all cores.

use cardiograph_sim_storm::case::{CASES_OF_SETUP, Outcome, run_scene};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const USAGE: &str = "usage: cargo xtask storm [--cuts N] [--seed S] | --replay SEED";
/// As many failures are told in full.
const TOLD_MAX: u64 = 10;

/// What all cases came to.
#[derive(Default)]
struct Tally {
    cases: u64,
    failures: u64,
    cuts: u64,
    recovered: u64,
    samples: u64,
    lost: u64,
    late: u64,
    fscks: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((first, count)) = parsed(&args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    println!("storm: {count} cases from seed {first}");
    std::panic::set_hook(Box::new(|info| println!("{info}")));
    let tally = Mutex::new(Tally::default());
    let scenes = AtomicU64::new(first / CASES_OF_SETUP);
    let end = first + count;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let scene = scenes.fetch_add(1, Ordering::Relaxed);
                    let seeds = scene * CASES_OF_SETUP..(scene + 1) * CASES_OF_SETUP;
                    if seeds.start >= end {
                        return;
                    }
                    one_scene(scene, seeds.start.max(first)..seeds.end.min(end), &tally);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(|broken| broken.into_inner());
    println!(
        "{} cases: {} cuts, {} files recovered, {} samples found and {} in gaps, {} windows late, \
         fsck.fat asked {} times; {} failures",
        tally.cases,
        tally.cuts,
        tally.recovered,
        tally.samples,
        tally.lost,
        tally.late,
        tally.fscks,
        tally.failures
    );
    match tally.failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn parsed(args: &[String]) -> Option<(u64, u64)> {
    let (mut first, mut count) = (0, 10_000);
    let (pairs, rest) = args.as_chunks::<2>();
    for [name, number] in pairs {
        let number = number.parse().ok()?;
        match name.as_str() {
            "--cuts" => count = number,
            "--seed" => first = number,
            "--replay" => (first, count) = (number, 1),
            _ => return None,
        }
    }
    rest.is_empty().then_some((first, count))
}

fn one_scene(scene: u64, seeds: std::ops::Range<u64>, tally: &Mutex<Tally>) {
    let mut under_way = seeds.start;
    let run = || {
        run_scene(scene, seeds.clone(), |seed, result| {
            under_way = seed + 1;
            note(seed, result, tally);
        })
    };
    let why = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "it panicked".into(),
    };
    note(under_way, Err(why), tally);
}

fn note(seed: u64, result: Result<Outcome, String>, tally: &Mutex<Tally>) {
    let mut tally = tally.lock().unwrap_or_else(|broken| broken.into_inner());
    tally.cases += 1;
    match result {
        Ok(outcome) => {
            tally.cuts += outcome.cuts;
            tally.recovered += outcome.recovered;
            tally.samples += outcome.found.samples;
            tally.lost += outcome.found.lost;
            tally.late += outcome.found.late;
            tally.fscks += outcome.asked_fsck;
        }
        Err(why) => {
            tally.failures += 1;
            if tally.failures <= TOLD_MAX {
                println!("{why}\n  again: cargo xtask storm --replay {seed}\n");
            }
        }
    }
}
