//! Runs the requested cases of the power-cut test, on all cores.

use cardiograph_sim_power_cut::case::{CASES_PER_SCENE, run_scene};
use cardiograph_sim_power_cut::chain::Chain;
use cardiograph_sim_power_cut::ledger::{BATCH_CASES, Ledger};
use cardiograph_sim_power_cut::outcome::Outcome;
use cardiograph_sim_power_cut::scene::Scene;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const USAGE: &str = "usage: cargo xtask power-cut [--cuts N] [--seed S] | --replay SEED \
                     | --cases FROM..TO | --every-write [EVERY]; [--threads N]";
/// Number of failures that are printed in full.
const REPORTED_MAX: u64 = 10;

/// Totals of all cases.
#[derive(Default)]
struct Tally {
    cases: u64,
    failures: u64,
    outcome: Outcome,
}

/// Task that the command line requests.
enum Task {
    /// Runs the cases with the given seeds.
    Cases(Range<u64>),
    /// Runs the cases with the given seeds, in batches that are recorded in the ledger when they are
    /// finished.
    Batches(Range<u64>),
    /// Cuts three short recordings at every point and, after one in this many of these cuts, also the following
    /// recovery and recording.
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
        Task::Batches(seeds) => match batches(seeds, threads) {
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
        fsck_runs,
        with_faults,
        exchanged,
    } = tally.outcome;
    println!(
        "{} cases: {cuts} cuts, {recovered} files recovered, {} samples found and {} in gaps, \
         {} windows exceeded, {} streams with unknown ends; {with_faults} cards with faults, {exchanged} exchanged; \
         {} uploads found, {} changes of files interrupted; \
         {fsck_runs} runs of fsck.fat; {} failures",
        tally.cases,
        found.samples,
        found.lost,
        found.late,
        found.unknown,
        found.uploads,
        found.interrupted,
        tally.failures
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
        (None, Some(range)) => Task::Batches(range),
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
    let scenes = seeds.start / CASES_PER_SCENE..seeds.end.div_ceil(CASES_PER_SCENE);
    on_threads(threads, scenes, |scene| one_scene(scene, seeds, &tally));
    into_totals(tally)
}

/// Runs cases in batches, and skips the batches that the current recorder and judge have finished according
/// to the ledger.
fn batches(seeds: Range<u64>, threads: usize) -> Result<Tally, String> {
    let mut ledger = Ledger::open()?;
    let mut total = Tally::default();
    let mut start = seeds.start;
    while start < seeds.end {
        let batch = start..(start + BATCH_CASES).min(seeds.end);
        start = batch.end;
        if ledger.has(&batch) {
            continue;
        }
        let tally = cases(&batch, threads);
        ledger.add(&batch, &tally.outcome, tally.failures)?;
        total.cases += tally.cases;
        total.failures += tally.failures;
        total.outcome += tally.outcome;
    }
    println!("{}", ledger.summary());
    Ok(total)
}

/// Runs the requested cases of one scene.
fn one_scene(scene: u64, requested: &Range<u64>, tally: &Mutex<Tally>) {
    let first = (scene * CASES_PER_SCENE).max(requested.start);
    let seeds = first..((scene + 1) * CASES_PER_SCENE).min(requested.end);
    let count = seeds.end - seeds.start;
    let counted = AtomicU64::new(0);
    let repeat = |seed| format!("\n  to repeat: cargo xtask power-cut --replay {seed}\n");
    let run = || {
        run_scene(scene, seeds, |seed, result| {
            counted.fetch_add(1, Ordering::Relaxed);
            add_result(result.map_err(|why| why + &repeat(seed)), tally);
        })
    };
    let why = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "panicked; the message is above".into(),
    };
    let counted = counted.into_inner();
    add_result(
        Err(format!(
            "{why}\n  in scene {scene}, after {counted} of its {count} cases\n  \
             to repeat: cargo xtask power-cut --seed {first} --cuts {count}\n"
        )),
        tally,
    );
}

/// Cuts short recordings at every point that leaves different contents on the card. After one in `every` of
/// these cuts, cuts the following recovery and recording in the same way.
fn every_write(every: u64, threads: usize) -> Tally {
    let tally = Mutex::new(Tally::default());
    let with_command =
        |why| format!("{why}\n  to repeat: cargo xtask power-cut --every-write {every}\n");
    let scenes = [
        ("short", Scene::short()),
        ("shared", Scene::shared()),
        ("changing", Scene::changing(true)),
    ];
    for (name, scene) in scenes {
        let prepared = scene.and_then(|scene| {
            let reference = scene.reference_run()?;
            Ok((scene, Arc::new(reference)))
        });
        let (scene, reference) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => {
                add_result(Err(with_command(format!("{name}: {why}"))), &tally);
                continue;
            }
        };
        let copies = scene.copies_each();
        let seconds = AtomicU64::new(0);
        on_threads(threads, 0..copies.len() as u64, |number| {
            let copied = &copies[number as usize];
            let with_command =
                |why| with_command(format!("{name}, cut at byte {}: {why}", copied.byte));
            let run = || {
                let chain = Chain::first(&scene, &reference, copied)?;
                if number.is_multiple_of(every) {
                    chain.cut_each(|second| {
                        seconds.fetch_add(1, Ordering::Relaxed);
                        let outcome = second.and_then(|chain| chain.end(false));
                        add_result(outcome.map_err(with_command), &tally);
                    });
                }
                chain.end(number.is_multiple_of(100))
            };
            let result = catch_unwind(AssertUnwindSafe(run));
            let result = result.unwrap_or_else(|_| Err("panicked; the message is above".into()));
            add_result(result.map_err(with_command), &tally);
        });
        println!(
            "power-cut test: {name}: {} busy edges, {} first cuts with distinct card contents, {} second cuts (after one in {every} first cuts)",
            reference.busy_edges.len(),
            copies.len(),
            seconds.into_inner()
        );
    }
    into_totals(tally)
}

fn into_totals(tally: Mutex<Tally>) -> Tally {
    tally
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner())
}

fn add_result(result: Result<Outcome, String>, tally: &Mutex<Tally>) {
    let mut tally = tally.lock().unwrap_or_else(|broken| broken.into_inner());
    tally.cases += 1;
    match result {
        Ok(outcome) => tally.outcome += outcome,
        Err(why) => {
            tally.failures += 1;
            if tally.failures <= REPORTED_MAX {
                println!("{why}");
            }
        }
    }
}
