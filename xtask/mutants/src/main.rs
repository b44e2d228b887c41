//! `cargo xtask mutants`: plants small bugs in the device crates, one at a time, and lists the bugs that no test
//! detects.
//!
//! cargo-mutants proposes the mutants. It would build the tests for each of them; here, all are planted in one build, each
//! behind a switch (plant.rs). Each test runs once without a mutant, which shows its time and the mutants that it reaches;
//! then every mutant is switched on for the tests that reach it, until one fails or their time is over. Those most likely
//! to detect it run first (order.rs). A short limit finds most in an hour; with a longer one, only survivors are tested
//! again. Outcomes remain in the target folder until the mutant's function changes, so a run can be interrupted and
//! continued.

mod accepted;
mod list;
mod measurements;
mod order;
mod outcomes;
mod plant;
mod suite;
mod tree;

use list::Mutant;
use order::Order;
use outcomes::{Outcome, Outcomes};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use suite::{Suite, Verdict};
use tree::Tree;

/// Folders and names of the mutated crates; the second depends on the first.
const CRATES: [&str; 2] = ["core/card", "core/recorder"];
const PACKAGES: [&str; 2] = ["cardiograph-card", "cardiograph-recorder"];
const USAGE: &str = "usage: cargo xtask mutants [--file PATH]... [--tests NAME]... [--limit SECONDS] [--also PACKAGE]... [--again] [--report]";

/// Parsed command-line arguments.
struct Request {
    /// Only mutants whose file contains one of these, if there are any.
    files: Vec<String>,
    /// Only tests whose program or name contains one of these, if there are any. Such a run only adds mutants that are
    /// detected.
    tests: Vec<String>,
    /// Time of the tests that run with a mutant, in s; tests that take longer are left out.
    limit_s: f64,
    /// Further packages whose tests run.
    also: Vec<String>,
    /// True to test survivors again, with new tests.
    is_again: bool,
    /// True to report known outcomes without running anything.
    is_report: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parsed(&args)
        .ok_or_else(|| USAGE.to_string())
        .and_then(with)
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn parsed(args: &[String]) -> Option<Request> {
    let mut request = Request {
        files: Vec::new(),
        tests: Vec::new(),
        limit_s: f64::INFINITY,
        also: Vec::new(),
        is_again: false,
        is_report: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--file" => request.files.push(args.next()?.clone()),
            "--tests" => request.tests.push(args.next()?.clone()),
            "--limit" => request.limit_s = args.next()?.parse().ok()?,
            "--also" => request.also.push(args.next()?.clone()),
            "--again" => request.is_again = true,
            "--report" => request.is_report = true,
            _ => return None,
        }
    }
    Some(request)
}

fn with(request: Request) -> Result<(), String> {
    let folder = target().join("mutants");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let mutants = mutants()?;
    let mut outcomes = Outcomes::open(folder.join("outcomes.tsv"));
    if !request.is_report {
        run(&request, &mutants, &mut outcomes, &folder)?;
    }
    outcomes.report(&mutants)
}

/// Tests the mutants that have no outcome yet.
fn run(
    request: &Request,
    mutants: &[Mutant],
    outcomes: &mut Outcomes,
    folder: &Path,
) -> Result<(), String> {
    let tree = Tree::new(folder.join("tree"))?;
    let planted = tree.plant(mutants)?;
    eprintln!("{} of {} mutants planted", planted.len(), mutants.len());
    let packages = PACKAGES
        .into_iter()
        .chain(request.also.iter().map(String::as_str));
    let programs = tree.programs(&packages.collect::<Vec<_>>())?;
    let suite = Suite::measured(&tree, &programs, request)?;
    let total_s: f64 = suite.tests.iter().map(|test| test.time_s).sum();
    eprintln!("{} tests, {total_s:.0} s", suite.tests.len());
    let mut wanted: Vec<&Mutant> = mutants
        .iter()
        .filter(|mutant| contains_any(&mutant.file, &request.files))
        .collect();
    // An interrupted run leaves a random sample.
    wanted.sort_by_key(|mutant| hash(mutant.name.bytes()));
    let mut order = Order::default();
    for mutant in mutants {
        if let Some(test) = outcomes.test_of(mutant) {
            order.note(mutant, test, true);
        }
    }
    for (number, mutant) in wanted.iter().enumerate() {
        if is_known(outcomes.get(mutant), request) {
            continue;
        }
        let (outcome, test) = tested(mutant, &suite, &planted, request.limit_s, &mut order)?;
        let is_survivor = matches!(outcome, Outcome::Missed(_) | Outcome::Unreached);
        if is_survivor && !request.tests.is_empty() {
            continue;
        }
        eprintln!(
            "{number} of {}: {outcome:?} {} {test}",
            wanted.len(),
            mutant.name
        );
        outcomes.add(mutant, outcome, &test)?;
    }
    Ok(())
}

/// Returns true if a text contains one of the words, or there are no words.
fn contains_any(text: &str, words: &[String]) -> bool {
    words.is_empty() || words.iter().any(|word| text.contains(word))
}

fn is_known(outcome: Option<&Outcome>, request: &Request) -> bool {
    match outcome {
        Some(Outcome::Missed(_) | Outcome::Unreached) if request.is_again => false,
        Some(Outcome::Missed(tested_s)) => *tested_s >= request.limit_s,
        Some(_) => true,
        None => false,
    }
}

/// Runs the tests that reach a mutant until one fails, or until their time is beyond the limit; returns the outcome and
/// this test.
fn tested(
    mutant: &Mutant,
    suite: &Suite,
    planted: &BTreeSet<u32>,
    limit_s: f64,
    order: &mut Order,
) -> Result<(Outcome, String), String> {
    if !planted.contains(&mutant.id) {
        return Ok((Outcome::Unplanted, String::new()));
    }
    let Some(reaching) = suite.reaching.get(&mutant.id) else {
        return Ok((Outcome::Unreached, String::new()));
    };
    let scored = reaching.iter().map(|index| &suite.tests[*index]);
    let mut tests: Vec<_> = scored
        .map(|test| (order.score(mutant, &test.title, test.time_s), test))
        .collect();
    tests.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut spent_s = 0.0;
    let mut is_complete = suite.is_complete;
    for (_, test) in tests {
        if spent_s + test.time_s > limit_s {
            is_complete = false;
            continue;
        }
        spent_s += test.time_s;
        let verdict = test.run_with(mutant.id)?;
        order.note(mutant, &test.title, verdict != Verdict::Passed);
        let outcome = match verdict {
            Verdict::Passed => continue,
            Verdict::Failed => Outcome::Caught,
            Verdict::TimedOut => Outcome::TimedOut,
        };
        return Ok((outcome, test.title.clone()));
    }
    let tested_s = if is_complete { f64::INFINITY } else { limit_s };
    Ok((Outcome::Missed(tested_s), String::new()))
}

/// Returns the mutants that cargo-mutants proposes.
fn mutants() -> Result<Vec<Mutant>, String> {
    let tools = target().join("tools");
    let tool = tools.join("bin/cargo-mutants");
    if !tool.exists() {
        let mut install = cargo();
        install
            .args(["install", "--locked", "cargo-mutants", "--root"])
            .arg(&tools);
        output_of(&mut install)?;
    }
    let mut command = Command::new(tool);
    command
        .args(["mutants", "--list", "--json"])
        .current_dir(root());
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let mut mutants = list::parse(&output_of(&mut command)?)?;
    for mutants in mutants.chunk_by_mut(|a, b| a.file == b.file) {
        let path = root().join(&mutants[0].file);
        let source = std::fs::read_to_string(&path).map_err(at(&path))?;
        mutants.iter_mut().for_each(|it| it.identify(&source));
    }
    Ok(mutants)
}

fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;
    bytes.fold(FNV_OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => PathBuf::from(path),
        None => root().join("target"),
    }
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command; returns its standard output, or an error with its output for errors.
fn output_of(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{program} failed:\n{}", text(&output.stderr))),
    }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}
