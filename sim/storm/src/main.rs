//! Cuts the power in as many cases as asked for, on all cores.

use cardiograph_sim_storm::case::{CASES_OF_SETUP, Outcome, Scene, run_scene};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const USAGE: &str =
    "usage: cargo xtask storm [--cuts N] [--seed S] | --replay SEED | --every-write";
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
    std::panic::set_hook(Box::new(|info| println!("{info}")));
    let tally = Mutex::new(Tally::default());
    if args == ["--every-write"] {
        if let Err(why) = every_write(&tally) {
            note(
                Err(format!("{why}\n  again: cargo xtask storm --every-write")),
                &tally,
            );
        }
    } else if let Some(seeds) = parsed(&args) {
        println!(
            "storm: {} cases from seed {}",
            seeds.end - seeds.start,
            seeds.start
        );
        let scenes = seeds.start / CASES_OF_SETUP..seeds.end.div_ceil(CASES_OF_SETUP);
        on_all_cores(scenes, |scene| one_scene(scene, &seeds, &tally));
    } else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let tally = tally
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
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

fn parsed(args: &[String]) -> Option<Range<u64>> {
    let (mut first, mut count) = (0, 10_000);
    let (pairs, rest) = args.as_chunks::<2>();
    for [name, number] in pairs {
        let number = number.parse::<u64>().ok()?;
        match name.as_str() {
            "--cuts" => count = number,
            "--seed" => first = number,
            "--replay" => (first, count) = (number, 1),
            _ => return None,
        }
    }
    let end = first.checked_add(count)?;
    rest.is_empty().then_some(first..end)
}

fn on_all_cores(numbers: Range<u64>, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(numbers.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        return;
                    }
                    work(number);
                }
            });
        }
    });
}

/// The cases of a scene, as many as are asked for.
fn one_scene(scene: u64, asked: &Range<u64>, tally: &Mutex<Tally>) {
    let first = (scene * CASES_OF_SETUP).max(asked.start);
    let seeds = first..((scene + 1) * CASES_OF_SETUP).min(asked.end);
    let mut under_way = first;
    let again = |seed| format!("\n  again: cargo xtask storm --replay {seed}\n");
    let run = || {
        run_scene(scene, seeds, |seed, result| {
            under_way = seed + 1;
            note(result.map_err(|why| why + &again(seed)), tally);
        })
    };
    let why = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "it panicked".into(),
    };
    note(Err(why + &again(under_way)), tally);
}

/// Cuts a short recording off wherever what its card holds changes, and its recovery too.
fn every_write(tally: &Mutex<Tally>) -> Result<(), String> {
    let scene = Scene::short()?;
    let uncut = scene.uncut()?;
    let count = uncut.borders.len();
    let mut cuts: Vec<Vec<u64>> = uncut.borders.iter().map(|byte| vec![*byte]).collect();
    for part in 1..4 {
        let first = uncut.borders[count * part / 4];
        let recovery = scene.cut(&uncut, &[first], true)?.borders;
        cuts.extend(recovery.iter().map(|second| vec![first, *second]));
    }
    println!(
        "storm: {count} borders of a recording, {} in recoveries",
        cuts.len() - count
    );
    on_all_cores(0..cuts.len() as u64, |number| {
        let cuts = &cuts[number as usize];
        let run = || scene.cut(&uncut, cuts, number.is_multiple_of(100));
        let result = catch_unwind(AssertUnwindSafe(run));
        let result = result.unwrap_or_else(|_| Err("it panicked".into()));
        let told =
            |why| format!("{why}\n  cut at {cuts:?}\n  again: cargo xtask storm --every-write\n");
        note(result.map_err(told), tally);
    });
    Ok(())
}

fn note(result: Result<Outcome, String>, tally: &Mutex<Tally>) {
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
                println!("{why}");
            }
        }
    }
}
