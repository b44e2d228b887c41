//! Cuts the power in as many cases as asked for, on all cores.

use cardiograph_sim_power_cut::case::{CASES_OF_SETUP, Outcome, Scene, run_scene};
use cardiograph_sim_power_cut::ledger::{BLOCK_CASES, Ledger};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const USAGE: &str = "usage: cargo xtask power-cut [--cuts N] [--seed S] | --replay SEED \
                     | --cases FROM..TO | --every-write [EVERY]; [--threads N]";
/// As many failures are told in full.
const TOLD_MAX: u64 = 10;

/// What all cases came to.
#[derive(Default)]
struct Tally {
    cases: u64,
    failures: u64,
    outcome: Outcome,
}

/// What is asked for.
enum Task {
    /// Cases of these seeds.
    Cases(Range<u64>),
    /// The same, in blocks that are written down when they are done.
    Blocks(Range<u64>),
    /// Every cut of short recordings, and every second cut after each of so many.
    EveryWrite(u64),
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::panic::set_hook(Box::new(|info| println!("{info}")));
    let Some((task, threads)) = parsed(&args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let tally = match task {
        Task::Cases(seeds) => {
            let count = seeds.end - seeds.start;
            println!("power-cut test: {count} cases from seed {}", seeds.start);
            cases(&seeds, threads)
        }
        Task::Blocks(seeds) => match blocks(seeds, threads) {
            Ok(tally) => tally,
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::FAILURE;
            }
        },
        Task::EveryWrite(every) => every_write(every, threads),
    };
    let Outcome {
        found,
        cuts,
        recovered,
        asked_fsck,
        struck,
        exchanged,
    } = tally.outcome;
    println!(
        "{} cases: {cuts} cuts, {recovered} files recovered, {} samples found and {} in gaps, \
         {} windows late, {} unknown ends; {struck} cards struck, {exchanged} exchanged; \
         fsck.fat asked {asked_fsck} times; {} failures",
        tally.cases, found.samples, found.lost, found.late, found.unknown, tally.failures
    );
    match tally.failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn parsed(args: &[String]) -> Option<(Task, usize)> {
    let mut threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut first, mut count) = (0, 10_000);
    let (mut range, mut every) = (None, None);
    let mut args = args.iter().map(String::as_str).peekable();
    while let Some(name) = args.next() {
        if name == "--every-write" {
            every = Some(match args.next_if(|next| !next.starts_with('-')) {
                Some(number) => number.parse().ok().filter(|every| *every > 0)?,
                None => 1,
            });
            continue;
        }
        let value = args.next()?;
        if name == "--cases" {
            let (from, to) = value.split_once("..")?;
            range = Some(from.parse().ok()?..to.parse().ok()?);
            continue;
        }
        let number = value.parse::<u64>().ok()?;
        match name {
            "--cuts" => count = number,
            "--seed" => first = number,
            "--replay" => (first, count) = (number, 1),
            "--threads" => threads = usize::try_from(number).ok()?.max(1),
            _ => return None,
        }
    }
    let end = first.checked_add(count)?;
    let task = match (every, range) {
        (Some(every), _) => Task::EveryWrite(every),
        (None, Some(range)) => Task::Blocks(range),
        (None, None) => Task::Cases(first..end),
    };
    Some((task, threads))
}

fn on_threads(threads: usize, numbers: Range<u64>, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(numbers.start);
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

fn cases(seeds: &Range<u64>, threads: usize) -> Tally {
    let tally = Mutex::new(Tally::default());
    let scenes = seeds.start / CASES_OF_SETUP..seeds.end.div_ceil(CASES_OF_SETUP);
    on_threads(threads, scenes, |scene| one_scene(scene, seeds, &tally));
    done(tally)
}

/// Cases in blocks; those that are written down already, for this recorder and this judge, are left out.
fn blocks(seeds: Range<u64>, threads: usize) -> Result<Tally, String> {
    let mut ledger = Ledger::open()?;
    let mut total = Tally::default();
    let mut start = seeds.start;
    while start < seeds.end {
        let block = start..(start + BLOCK_CASES).min(seeds.end);
        start = block.end;
        if ledger.has(&block) {
            continue;
        }
        let tally = cases(&block, threads);
        ledger.note(&block, &tally.outcome, tally.failures)?;
        total.cases += tally.cases;
        total.failures += tally.failures;
        total.outcome += tally.outcome;
    }
    println!("{}", ledger.about());
    Ok(total)
}

/// The cases of a scene, as many as are asked for.
fn one_scene(scene: u64, asked: &Range<u64>, tally: &Mutex<Tally>) {
    let first = (scene * CASES_OF_SETUP).max(asked.start);
    let seeds = first..((scene + 1) * CASES_OF_SETUP).min(asked.end);
    let count = seeds.end - seeds.start;
    let noted = AtomicU64::new(0);
    let again = |seed| format!("\n  again: cargo xtask power-cut --replay {seed}\n");
    let run = || {
        run_scene(scene, seeds, |seed, result| {
            noted.fetch_add(1, Ordering::Relaxed);
            note(result.map_err(|why| why + &again(seed)), tally);
        })
    };
    let why = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "it panicked".into(),
    };
    let noted = noted.into_inner();
    note(
        Err(format!(
            "{why}\n  in scene {scene}, after {noted} of its {count} cases\n  \
             again: cargo xtask power-cut --seed {first} --cuts {count}\n"
        )),
        tally,
    );
}

/// Cuts short recordings off wherever that leaves something else on the card, and after every so many of
/// these cuts what follows too.
fn every_write(every: u64, threads: usize) -> Tally {
    let tally = Mutex::new(Tally::default());
    let told = |why| format!("{why}\n  again: cargo xtask power-cut --every-write {every}\n");
    for (name, scene) in [("short", Scene::short()), ("shared", Scene::shared())] {
        let prepared = scene.and_then(|scene| {
            let uncut = scene.uncut()?;
            Ok((scene, Arc::new(uncut)))
        });
        let (scene, uncut) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => {
                note(Err(told(format!("{name}: {why}"))), &tally);
                continue;
            }
        };
        let copies = scene.copies_each();
        let seconds = AtomicU64::new(0);
        on_threads(threads, 0..copies.len() as u64, |number| {
            let copied = &copies[number as usize];
            let told = |why| told(format!("{name}, cut at byte {}: {why}", copied.byte));
            let run = || {
                let chain = scene.first_cut(&uncut, copied)?;
                if number.is_multiple_of(every) {
                    chain.cut_each(|second| {
                        seconds.fetch_add(1, Ordering::Relaxed);
                        let outcome = second.and_then(|chain| chain.end(false));
                        note(outcome.map_err(told), &tally);
                    });
                }
                chain.end(number.is_multiple_of(100))
            };
            let result = catch_unwind(AssertUnwindSafe(run));
            let result = result.unwrap_or_else(|_| Err("it panicked".into()));
            note(result.map_err(told), &tally);
        });
        println!(
            "power-cut test: {name}: {} borders, {} cuts that leave something else, {} second cuts after 1 of {every}",
            uncut.borders.len(),
            copies.len(),
            seconds.into_inner()
        );
    }
    done(tally)
}

fn done(tally: Mutex<Tally>) -> Tally {
    tally
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner())
}

fn note(result: Result<Outcome, String>, tally: &Mutex<Tally>) {
    let mut tally = tally.lock().unwrap_or_else(|broken| broken.into_inner());
    tally.cases += 1;
    match result {
        Ok(outcome) => tally.outcome += outcome,
        Err(why) => {
            tally.failures += 1;
            if tally.failures <= TOLD_MAX {
                println!("{why}");
            }
        }
    }
}
