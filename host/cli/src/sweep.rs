//! `cardiograph sweep`: thousands of simulated recordings, and the probability of loss.

use crate::conditions::{self, Condition};
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{self, is_standard_output, write_text};
use crate::progress::Progress;
use crate::shared::{self, Shared};
use crate::target;
use cardiograph_report::units;
use cardiograph_report::values::whole;
use cardiograph_sweep::{
    Answer, Checked, Figures, Finished, PlanDifference, ResultFolder, Sweep, check_sample,
    check_with_recorder, compare_with_plan, duration, html, markdown, run as run_sweep, text,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Simulate many recordings, and find the probability of losing samples.
#[derive(clap::Args)]
#[command(after_help = "\
The specification names cards, boards, rates, buffer sizes, policies and a number of seeds; every combination is
recorded with every seed. mode = \"card\" simulates the card alone, mode = \"recorder\" the whole device.
docs/sweeps.md lists the keys. Results are Parquet files in a folder; if you repeat the command after an interruption,
it continues.

Examples:
  cardiograph sweep docs/examples/sweep.toml                     results in sweep-results
  cardiograph sweep years.toml -o years --html years.html        results in years, and a page
  cardiograph sweep docs/examples/sweep.toml --check 20 --plan   compare with the whole device and with plan")]
pub struct Args {
    /// The specification, as TOML
    #[arg(value_name = "SWEEP.toml")]
    pub spec: PathBuf,

    /// Folder of the results [default: the name of the specification with -results]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=1024))]
    pub jobs: Option<u16>,

    /// Repeat this number of recordings in mode recorder, and list different answers [default: none]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=1_000_000))]
    pub check: Option<u64>,

    /// List the combinations that `plan` judges differently, beyond both intervals
    #[arg(long)]
    pub plan: bool,

    /// Exit with code 5 if a condition holds for any combination, such as 'risk > 1%'; may be repeated. risk is the upper limit
    /// of the probability that a recording loses samples, of the worst member
    #[arg(long, value_name = "CONDITION", value_parser = conditions::of_sweep)]
    pub fail_if: Vec<Condition>,

    /// Write the answer as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the answer as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the answer as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// Estimated time from which a sweep is announced.
const ANNOUNCED_FROM_S: f64 = 60.0;

/// Runs or continues the sweep, then prints the answer.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply([&args.spec]);
    let files = [&args.json, &args.html, &args.markdown];
    outputs::check_files(files.into_iter().flatten())?;
    let to_standard_output = [&args.json, &args.markdown];
    let mut to_standard_output = to_standard_output.into_iter().flatten();
    if to_standard_output
        .clone()
        .filter(|path| is_standard_output(path))
        .count()
        > 1
    {
        return Err(Failure::new(
            "only one result can go to standard output; write the other to a file",
        ));
    }
    let sweep = read(&args.spec)?;
    // Not only after hours of the sweep.
    if let Some(runs) = args.check {
        check_sample(&sweep, runs).map_err(Failure::new)?;
    }
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| folder_for(&args.spec));
    let folder = ResultFolder::open(&path, &sweep).map_err(Failure::new)?;
    let interrupt = Interrupt::catch()?;
    compute(args, &sweep, &folder, &interrupt)?;
    let answer = Answer::read(&sweep, &folder).map_err(Failure::new)?;
    let checked = match args.check {
        Some(runs) => Some(check(&sweep, runs, &interrupt)?),
        None => None,
    };
    let plan = match args.plan {
        true => Some(differences(&sweep, &answer, &interrupt)?),
        false => None,
    };
    let table = text(&answer, checked.as_ref(), plan.as_deref());
    match to_standard_output.any(|path| is_standard_output(path)) {
        true => print_error(&table),
        false => print(&table)?,
    }
    if let Some(file) = &args.html {
        write_text(file, &html(&answer, checked.as_ref(), plan.as_deref()))?;
    }
    if let Some(file) = &args.markdown {
        write_text(file, &markdown(&answer))?;
    }
    let figures = Figures {
        answer: &answer,
        check: checked.as_ref(),
        plan_differences: plan.as_deref(),
    };
    let done = json::write(args.json.as_deref(), "sweep", &[figures]);
    let risks = answer.cells.iter().map(|cell| {
        let name = format!(
            "sim:{}@{}, {}, {} Hz, {}",
            cell.card,
            cell.board,
            cell.policy,
            cell.rate_hz,
            units::binary_bytes(cell.buffer_bytes)
        );
        (name, cell.range().1)
    });
    conditions::check_shares(&args.fail_if, risks, done)
}

fn read(path: &Path) -> Result<Sweep, Failure> {
    let text = target::read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    Sweep::from_toml(&path.display().to_string(), &text, folder).map_err(Failure::new)
}

/// Returns the default folder for results, in the current directory.
fn folder_for(spec: &Path) -> PathBuf {
    let stem = spec.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}-results"))
}

fn compute(
    args: &Args,
    sweep: &Sweep,
    folder: &ResultFolder,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = args.jobs.map_or_else(cores, usize::from);
    let expected_s = sweep.cost_s() / threads as f64;
    if expected_s > ANNOUNCED_FROM_S && !shared::is_quiet() {
        print_error(&format!(
            "All {} tasks take about {} with {threads} threads; the results of each part are saved, and a repeated command \
             continues.\n",
            units::count(sweep.tasks()),
            duration(expected_s)
        ));
    }
    let expected = Duration::try_from_secs_f64(expected_s).unwrap_or(Duration::MAX);
    let mut bar = Progress::over_steps(sweep.tasks()).expecting(expected);
    let finished = run_sweep(sweep, folder, threads, &mut |progress| {
        bar.show(progress.done);
        go_on(interrupt)
    });
    bar.clear();
    match finished.map_err(Failure::new)? {
        Finished::Complete => {
            if !shared::is_quiet() {
                print_error(&format!("Results: {}\n", folder.path().display()));
            }
            Ok(())
        }
        Finished::Stopped(progress) => Err(interrupted(
            interrupt,
            &format!(
                "interrupted after {} of {} tasks; repeat the command to continue",
                units::count(progress.done),
                units::count(progress.tasks)
            ),
        )),
    }
}

fn check(sweep: &Sweep, runs: u64, interrupt: &Interrupt) -> Result<Checked, Failure> {
    let bar = std::cell::RefCell::new(Progress::over_steps(runs));
    let checked = check_with_recorder(sweep, runs, &|done| {
        bar.borrow_mut().show(done);
        go_on(interrupt)
    });
    bar.into_inner().clear();
    let stopped = || {
        interrupted(
            interrupt,
            "interrupted during --check; the results are complete",
        )
    };
    checked.map_err(Failure::new)?.ok_or_else(stopped)
}

fn differences(
    sweep: &Sweep,
    answer: &Answer,
    interrupt: &Interrupt,
) -> Result<Vec<PlanDifference>, Failure> {
    let plans = sweep.cards().count() * sweep.boards().count() * sweep.spec.rates_hz.len();
    let mut bar = Progress::over_steps(plans as u64);
    let differences = compare_with_plan(sweep, answer, &mut |done| {
        bar.show(done);
        go_on(interrupt)
    });
    bar.clear();
    let stopped = || {
        interrupted(
            interrupt,
            "interrupted during --plan; the results are complete",
        )
    };
    differences.map_err(Failure::new)?.ok_or_else(stopped)
}

fn go_on(interrupt: &Interrupt) -> ControlFlow<()> {
    match interrupt.is_raised() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

fn interrupted(interrupt: &Interrupt, message: &str) -> Failure {
    Failure::with_code(message, interrupt.exit_code().unwrap_or(130))
}
