//! `cardiograph flash-benchmark`: study 2 on a real disk or directory.

use crate::bench::host_and_time;
use crate::disk;
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{check_files, command_line, is_standard_output, write_text};
use crate::progress::Progress;
use crate::shared::Shared;
use crate::target;
use cardiograph_disk::{FileSystem, Marker, NotRemoved, Scratch, without_setpriv};
use cardiograph_flash_benchmark::{
    Availability, Cause, Ended, Experiment, Figures, Limits, Outcome, Row, Target, html, markdown,
    run as measure, smallest_bytes, text,
};
use cardiograph_report::values::{bytes, duration, whole};
use cardiograph_store::StorageInfo;
use clap::ValueEnum;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Run study 2, Flash Benchmark, on a disk or directory, next to its published figures.
///
/// On a whole disk, every file system of the study is created and mounted, where no other program sees it; in the end,
/// the disk has no file system and no partition table. In a directory, the files are new and are removed; what needs
/// formatting or mounting is left out.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph flash-benchmark /dev/sdX --destroy /dev/sdX     all experiments; all files are lost
  cardiograph flash-benchmark /dev/sdX --destroy /dev/sdX --experiment sync-scenarios
  cardiograph flash-benchmark /media/card --limit 10MB        what needs no formatting
  cardiograph reproduce flash-benchmark                       on a simulated card")]
pub struct Args {
    /// A whole disk such as /dev/sdX, or a directory
    #[arg(value_parser = target::parser())]
    pub target: String,

    /// Overwrite the disk that is the target: repeat its name. All files on it are lost
    #[arg(long, value_name = "DISK")]
    pub destroy: Option<String>,

    /// Run this experiment only; may be repeated [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub experiment: Vec<ExperimentArg>,

    /// Repetitions of each case [default: as many as in the study]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1000))]
    pub repeat: Option<u32>,

    /// Begin no further repetition of a case after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub case_time: Duration,

    /// Skip files and transfers larger than this [default: 1000 MB, as in the study]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub limit: Option<u64>,

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the figures as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the figures as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExperimentArg {
    /// Files of 1 to 1000 MB
    FileSize,
    /// Raw transfers, and files on each file system
    Filesystems,
    /// Size of the card's fast zone, by bisection
    CacheSize,
    /// 1 MiB in chunks of 1 MiB to 1 KiB
    ChunkSweep,
    /// Block sizes of the file system
    FsBlock,
    /// Nine ways to sync a file of 1 MB
    SyncScenarios,
}

impl From<ExperimentArg> for Experiment {
    fn from(arg: ExperimentArg) -> Experiment {
        match arg {
            ExperimentArg::FileSize => Experiment::FileSize,
            ExperimentArg::Filesystems => Experiment::FileSystems,
            ExperimentArg::CacheSize => Experiment::CacheSize,
            ExperimentArg::ChunkSweep => Experiment::ChunkSweep,
            ExperimentArg::FsBlock => Experiment::FsBlock,
            ExperimentArg::SyncScenarios => Experiment::SyncScenarios,
        }
    }
}

/// Runs the experiments.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply::<&Path>([]);
    disk::protect(&args.target);
    check_outputs(args)?;
    if args.target.starts_with("sim:") {
        return Err(Failure::new(format!(
            "{}: a simulated card has no kernel to mount it; use `cardiograph reproduce flash-benchmark`",
            args.target
        )));
    }
    let interrupt = Interrupt::catch()?;
    let is_disk = disk::is_disk(&args.target);
    check_limit(args, is_disk)?;
    match is_disk {
        true => on_disk(args, &interrupt),
        false => in_directory(args, &interrupt),
    }
}

fn check_outputs(args: &Args) -> Result<(), Failure> {
    if args.html.as_deref().is_some_and(is_standard_output) {
        return Err(Failure::new("--html needs a file, not standard output"));
    }
    let both = [&args.json, &args.markdown].into_iter().flatten();
    if both.filter(|path| is_standard_output(path)).count() > 1 {
        return Err(Failure::new(
            "only one result can go to standard output; write the others to files",
        ));
    }
    check_files(
        [&args.json, &args.markdown, &args.html]
            .into_iter()
            .flatten(),
    )
}

/// Refuses a limit below the smallest case.
fn check_limit(args: &Args, is_disk: bool) -> Result<(), Failure> {
    let smallest_bytes = smallest_bytes(&experiments(args), is_disk);
    match args.limit.zip(smallest_bytes) {
        Some((limit_bytes, smallest_bytes)) if limit_bytes < smallest_bytes => {
            Err(Failure::new(format!(
                "--limit {limit_bytes}B: the smallest file or transfer of these experiments has {smallest_bytes} B; raise \
                 the limit to {smallest_bytes}B or more"
            )))
        }
        _ => Ok(()),
    }
}

fn on_disk(args: &Args, interrupt: &Interrupt) -> Result<(), Failure> {
    let disk = disk::open(&args.target, args.destroy.as_deref())?;
    if args.destroy.is_none() {
        return Err(Failure::new(format!(
            "{0}: this formats the disk, and all files on it are lost; add --destroy {0}, or name a directory on it",
            args.target
        )));
    }
    let identity = disk.identity().clone();
    let mut scratch = Scratch::begin(disk, marker()).map_err(Failure::new)?;
    let (rows, ended, _) = measured(args, Target::Disk(&mut scratch), interrupt);
    let step = scratch.current_step().to_string();
    let cleared = scratch.end();
    let all = FileSystem::ALL.map(|file_system| {
        let reason = file_system.obstacle();
        Availability {
            name: file_system.name(),
            is_available: reason.is_none(),
            reason,
        }
    });
    let mut notes = vec![
        format!("{}.", disk::describe(&identity)),
        host_and_time(),
        String::from(
            "File systems are on a loop device over the disk, which bypasses the page cache, and begin at 4 MiB.",
        ),
    ];
    notes.extend(without_setpriv());
    let figures = Figures {
        target: args.target.clone(),
        disk: Some(disk::summary(&identity, true, &[])),
        file_systems: all.to_vec(),
        rows,
        notes,
    };
    let cleared = cleared.map(drop).map_err(|error| {
        format!(
            "{error}; {} could not be cleared at the end: format it before use",
            args.target
        )
    });
    let finished = finish(args, &figures, &ended, interrupt);
    if ended == Ended::Complete {
        return Failure::join([finished, cleared.map_err(Failure::new)]);
    }
    let ending = match ended {
        Ended::Failed(_) => "the run ended early",
        _ => "interrupted",
    };
    let state = cleared.map_or_else(
        |error| error,
        |()| String::from("its marker and file systems were removed: format the disk before use"),
    );
    print_error(&format!(
        "warning: {}: {ending} at the step {step}; {state}\n",
        args.target
    ));
    finished
}

fn in_directory(args: &Args, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = disk::directory(&args.target, args.destroy.as_deref())?;
    disk::warn_of_folders_left(&args.target);
    let device = StorageInfo::of(path);
    let unknown = String::from("unknown file system");
    let file_system = device.file_system.clone().unwrap_or(unknown);
    let (rows, ended, left) = measured(args, Target::Directory(path, &file_system), interrupt);
    let mut notes = vec![host_and_time()];
    if device.is_memory {
        notes.push(String::from(
            "This directory is in memory: the figures are those of this computer, not of a card or disk.",
        ));
    }
    let figures = Figures {
        target: args.target.clone(),
        disk: None,
        file_systems: Vec::new(),
        rows,
        notes,
    };
    let finished = finish(args, &figures, &ended, interrupt);
    if ended == Ended::Interrupted {
        let end = match left {
            None => "; the new files were removed",
            Some(_) => "",
        };
        print_error(&format!("warning: {}: interrupted{end}\n", args.target));
    }
    let removed = match left {
        None => Ok(()),
        Some(left) => Err(disk::not_removed(&left.folder, Some(&left.source))),
    };
    Failure::join([finished, removed])
}

fn marker() -> Marker {
    Marker {
        run: command_line(),
        begun: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        step: String::from("the first"),
    }
}

fn experiments(args: &Args) -> Vec<Experiment> {
    let asked = |one: &Experiment| {
        let mut all = args.experiment.iter();
        args.experiment.is_empty() || all.any(|&arg| Experiment::from(arg) == *one)
    };
    Experiment::ALL.into_iter().filter(asked).collect()
}

fn measured(
    args: &Args,
    target: Target,
    interrupt: &Interrupt,
) -> (Vec<Row>, Ended, Option<NotRemoved>) {
    let limits = Limits {
        repeats: args.repeat,
        case_time: args.case_time,
        largest_bytes: args.limit,
    };
    let mut bar = Progress::over_steps(0);
    let found = measure(target, &experiments(args), &limits, &mut |done, total| {
        bar.show_of(done as u64, total as u64);
        match interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.clear();
    found
}

/// Shows the results, writes the files, and returns the failure of the run if there is one.
fn finish(
    args: &Args,
    figures: &Figures,
    ended: &Ended,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let has_results = figures.rows.iter().any(|row| !row.values.is_empty());
    if has_results || *ended == Ended::Complete {
        let table = text(figures);
        let files = [&args.json, &args.markdown];
        match files
            .into_iter()
            .flatten()
            .any(|path| is_standard_output(path))
        {
            true => print_error(&table),
            false => print(&table)?,
        }
        let mut done = vec![json::write(
            args.json.as_deref(),
            "flash-benchmark",
            &[figures],
        )];
        if let Some(path) = &args.markdown {
            done.push(write_text(path, &markdown(figures)));
        }
        if let Some(path) = &args.html {
            done.push(write_text(path, &html(figures)));
        }
        Failure::join(done)?;
    }
    match ended {
        Ended::Failed(reason) => Err(Failure::new(format!("{}: {reason}", args.target))),
        Ended::Interrupted => Err(Failure::AlreadyPrinted(interrupt.exit_code().unwrap_or(2))),
        Ended::Complete => complete(&args.target, &figures.rows),
    }
}

/// Returns an error if cases failed, or if there is no figure at all.
fn complete(target: &str, rows: &[Row]) -> Result<(), Failure> {
    let mut failed: Vec<_> = rows.iter().collect();
    failed.retain(|row| row.outcome == Outcome::Failed);
    if failed.iter().any(|row| row.cause == Cause::Medium) {
        failed.retain(|row| row.cause == Cause::Medium);
    }
    if let Some(first_row) = failed.first() {
        let first = in_words(first_row);
        let cases = match failed.len() {
            1 => format!("1 case failed: {first}"),
            count => format!("{count} cases failed, the first one {first}"),
        };
        let remedy = match first_row.cause {
            Cause::Medium => "do not trust the disk with data",
            Cause::ReadOnly => {
                "the file system became read-only during the run: make it writable, and run the experiments again"
            }
            Cause::Full => "free some space, and run the experiments again",
            Cause::OpenFiles => {
                "raise the limit with `ulimit -n`, or end other programs, and run the experiments again"
            }
            Cause::FileLength => "raise the limit with `ulimit -f`, and run the experiments again",
            Cause::Changed => {
                "something removed or protected the files of the run: let nothing change them, and run the experiments \
                 again"
            }
            Cause::Other => "resolve this, and run the experiments again",
        };
        return Err(Failure::new(format!("{target}: {cases}; {remedy}")));
    }
    match rows.iter().find(|row| !row.values.is_empty()) {
        Some(_) => Ok(()),
        None => Err(Failure::new(format!(
            "{target}: nothing was measured, because every case was skipped or is not available, the first one {}; \
             remove this obstacle, or choose other experiments",
            rows.first().map_or(String::new(), in_words)
        ))),
    }
}

fn in_words(row: &Row) -> String {
    format!(
        "{}, {}, {} ({})",
        row.experiment,
        row.set_up,
        row.case,
        row.reason.as_deref().unwrap_or("no reason is known")
    )
}
