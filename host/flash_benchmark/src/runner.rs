//! Runs experiments and collects their rows.

use crate::cache_zone::{Zone, search};
use crate::case::{Case, Unit, Work};
use crate::experiment::{Experiment, Medium, SetUp};
use crate::place::{Fault, Folder, GoOn, Halt, Random, Repetition, transfer_raw};
use crate::published::find;
use crate::report::{Cause, Outcome, Row};
use crate::statistics::Statistics;
use cardiograph_disk::{DiskError, NotRemoved, Scratch, ScratchError};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Repetitions of each case; `None` for those of the study.
    pub repeats: Option<u32>,
    /// Time after which a case begins no further repetition.
    pub case_time: Duration,
    /// Largest file or transfer in bytes; larger cases are skipped.
    pub largest_bytes: Option<u64>,
}

/// Target of a run.
pub enum Target<'a> {
    /// A disk that may be formatted.
    Disk(&'a mut Scratch),
    /// A directory, whose file system has the given name.
    Directory(&'a Path, &'a str),
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every case has a row.
    Complete,
    /// The caller stopped the run.
    Interrupted,
    /// The target failed as a whole, for the given reason.
    Failed(String),
}

/// Returns the length of the smallest file or transfer of these experiments, in bytes; [`Limits::largest_bytes`] must not
/// be below it. Returns `None` if none of them can run on the target.
pub fn smallest_bytes(experiments: &[Experiment], is_disk: bool) -> Option<u64> {
    let of = |experiment: &Experiment| match is_disk {
        true => experiment.on_disk(),
        false => vec![experiment.in_directory("").0],
    };
    let lengths = experiments.iter().flat_map(of).flat_map(|set_up| {
        let zone = (set_up.experiment == Experiment::CacheSize).then_some(u64::from(MB));
        let cases = set_up
            .cases
            .into_iter()
            .map(|case| case.work.largest_bytes());
        cases.chain(zone).collect::<Vec<_>>()
    });
    lengths.min()
}

/// Part of the free space that a case may use, in percent: file systems become slow when they are full.
const USABLE_PERCENT: u64 = 90;

/// Largest transfer of the search for the fast zone.
const ZONE_MB_MAX: u32 = 128;

/// Repetitions of each size of this search.
const ZONE_REPEATS: u32 = 5;

/// Bytes of a MB, as in the study.
const MB: u32 = 1_000_000;

/// Case with the result of this search.
const FAST_ZONE: &str = "fast zone";

const OVER_LIMIT: &str = "larger than --limit";

/// Runs experiments. `watch` gets the number of finished cases and the total, between any two calls to the storage.
/// The last value is the folder in a directory, if the run could not remove it.
pub fn run(
    target: Target,
    experiments: &[Experiment],
    limits: &Limits,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> (Vec<Row>, Ended, Option<NotRemoved>) {
    let mut run = Run {
        limits,
        watch,
        total: 0,
        rows: Vec::new(),
        any_set_up: matches!(target, Target::Directory(..)),
    };
    let (ended, left) = match target {
        Target::Disk(scratch) => (run.on_disk(scratch, experiments), None),
        Target::Directory(path, file_system) => run.in_directory(path, file_system, experiments),
    };
    let order = |row: &Row| {
        experiments
            .iter()
            .position(|one| one.name() == row.experiment)
    };
    // Scenarios run in the order of their mounts.
    run.rows.sort_by_key(|row| {
        let is_scenario = row.experiment == Experiment::SyncScenarios.name();
        (order(row), is_scenario.then(|| row.case.clone()))
    });
    (run.rows, ended, left)
}

struct Run<'a> {
    limits: &'a Limits,
    watch: &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    total: usize,
    rows: Vec<Row>,
    /// Compares with the study's figures whatever its file system was.
    any_set_up: bool,
}

/// Does a work once.
type Repeat<'r> = dyn FnMut(&Work, GoOn) -> Repetition + 'r;

/// The caller stopped the run.
struct Stopped;

impl Run<'_> {
    fn on_disk(&mut self, scratch: &mut Scratch, experiments: &[Experiment]) -> Ended {
        let set_ups: Vec<_> = experiments.iter().flat_map(|one| one.on_disk()).collect();
        self.total = set_ups.iter().map(|set_up| set_up.cases.len().max(1)).sum();
        for set_up in &set_ups {
            let first = self.rows.len();
            if let Err(Stopped) = self.set_up(scratch, set_up) {
                return Ended::Interrupted;
            }
            if let Some(reason) = self.unusable(scratch, first) {
                return Ended::Failed(reason);
            }
        }
        Ended::Complete
    }

    /// Returns the reason why no further set-up can be measured, if there is one. The rows of the last set-up begin at `first`.
    fn unusable(&self, scratch: &mut Scratch, first: usize) -> Option<String> {
        let disk = scratch.disk();
        if disk.has_vanished() {
            return Some("the disk vanished during the run; connect it again".to_string());
        }
        if let Some(resized) = disk.resized() {
            return Some(resized.to_string());
        }
        match disk.check_unchanged() {
            Ok(()) => {}
            Err(DiskError::Io { source, .. }) => {
                let remedy = "resolve this, and run the experiments again";
                return Some(format!("{source}; {remedy}"));
            }
            Err(_) => {
                let exchanged = "the disk was exchanged during the run; connect the first one, and repeat the run";
                return Some(exchanged.to_string());
            }
        }
        let mut rows = self.rows[first..].iter();
        let obstacle = rows
            .any(|row| row.outcome == Outcome::Failed)
            .then(|| scratch.obstacle());
        obstacle.flatten().map(|obstacle| obstacle.to_string())
    }

    fn set_up(&mut self, scratch: &mut Scratch, set_up: &SetUp) -> Result<(), Stopped> {
        match set_up.medium {
            Medium::Raw => {
                if let Err(error) = scratch.step("raw transfers") {
                    self.fail(set_up, error.into());
                    return Ok(());
                }
                let (_, free_bytes) = scratch.region();
                let mut random = Random::new();
                self.cases(set_up, free_bytes, &mut |work, go_on| {
                    transfer_raw(scratch, work, &mut random, go_on)
                })
            }
            Medium::Formatted {
                file_system,
                block_bytes,
                is_synchronous,
            } => {
                if let Some(obstacle) = file_system.obstacle() {
                    self.all(set_up, Outcome::NotAvailable, &obstacle);
                    return Ok(());
                }
                let (done, total) = (self.rows.len(), self.total);
                let mut go_on = || (self.watch)(done, total.max(done));
                let formatted =
                    scratch.format(file_system, block_bytes, is_synchronous, &mut go_on);
                match formatted {
                    Err(ScratchError::Interrupted) => Err(Stopped),
                    Err(error @ ScratchError::BlockSize { .. }) => {
                        self.all(set_up, Outcome::NotAvailable, &error.to_string());
                        Ok(())
                    }
                    Err(error) => {
                        self.fail(set_up, error.into());
                        Ok(())
                    }
                    Ok(formatted) => match Folder::new(&formatted.path(), Some(&formatted)) {
                        Err(error) => {
                            self.fail(set_up, error.into());
                            Ok(())
                        }
                        Ok(mut folder) => self.in_folder(set_up, &mut folder),
                    },
                }
            }
            Medium::Directory => Ok(()),
        }
    }

    fn in_directory(
        &mut self,
        path: &Path,
        file_system: &str,
        experiments: &[Experiment],
    ) -> (Ended, Option<NotRemoved>) {
        let mut folder = None;
        let ended = self.in_new_folder(path, file_system, experiments, &mut folder);
        (ended, folder.and_then(Folder::remove))
    }

    /// Runs experiments in a folder, which is created for the first one that needs it.
    fn in_new_folder(
        &mut self,
        path: &Path,
        file_system: &str,
        experiments: &[Experiment],
        folder: &mut Option<Folder>,
    ) -> Ended {
        let all: Vec<_> = experiments
            .iter()
            .map(|one| one.in_directory(file_system))
            .collect();
        self.total = all
            .iter()
            .map(|(set_up, _)| set_up.cases.len().max(1))
            .sum();
        for (set_up, needing) in &all {
            for case in needing {
                let reason = "needs a whole disk";
                self.push(set_up, case, Unit::MbPerS, Outcome::NotAvailable, reason);
            }
            let is_empty = set_up.cases.is_empty() && set_up.experiment != Experiment::CacheSize;
            if is_empty {
                continue;
            }
            let folder = match folder {
                Some(folder) => folder,
                None => match Folder::new(path, None) {
                    Ok(new) => folder.insert(new),
                    Err(error) => return Ended::Failed(no_folder(&error)),
                },
            };
            if self.in_folder(set_up, folder).is_err() {
                return Ended::Interrupted;
            }
            // Files that remain are reported at the end.
            let _ = folder.clear();
        }
        Ended::Complete
    }

    fn in_folder(&mut self, set_up: &SetUp, folder: &mut Folder) -> Result<(), Stopped> {
        let free_bytes = match folder.free_bytes() {
            Ok(free_bytes) => free_bytes,
            Err(error) => {
                self.fail(set_up, error.into());
                return Ok(());
            }
        };
        let mut random = Random::new();
        let usable_bytes = free_bytes / 100 * USABLE_PERCENT;
        let mut last = None;
        self.cases(set_up, usable_bytes, &mut |work, go_on| {
            // The next case begins on an empty file system; a repetition overwrites the files, as `dd` does. All
            // transfers go to one file.
            let is_transfer = |work: &Work| matches!(work, Work::Transfers { .. });
            let goes_on = |last: Work| last == *work || is_transfer(&last) && is_transfer(work);
            if last.is_some_and(|last| !goes_on(last)) {
                // Files that remain are reported at the end.
                let _ = folder.clear();
            }
            last = Some(*work);
            folder.repeat(work, &mut random, go_on)
        })
    }

    fn cases(
        &mut self,
        set_up: &SetUp,
        free_bytes: u64,
        repeat: &mut Repeat,
    ) -> Result<(), Stopped> {
        if set_up.experiment == Experiment::CacheSize {
            return self.fast_zone(set_up, free_bytes, repeat);
        }
        for case in &set_up.cases {
            self.case(set_up, case, free_bytes, repeat)?;
        }
        Ok(())
    }

    /// Measures a case; returns the median, if there is one.
    fn case(
        &mut self,
        set_up: &SetUp,
        case: &Case,
        free_bytes: u64,
        repeat: &mut Repeat,
    ) -> Result<Option<f64>, Stopped> {
        let largest_bytes = self.limits.largest_bytes.unwrap_or(u64::MAX);
        let work = match case.work {
            Work::Transfers {
                calls,
                call_bytes,
                calls_per_jump,
                within_bytes,
            } => Work::Transfers {
                calls,
                call_bytes,
                calls_per_jump,
                within_bytes: within_bytes.min(largest_bytes.max(case.work.bytes())),
            },
            work => work,
        };
        let needed_bytes = match set_up.medium {
            Medium::Raw => work.bytes(),
            _ => work.space_bytes(),
        };
        let skipped = if work.largest_bytes() > largest_bytes {
            Some(String::from(OVER_LIMIT))
        } else if needed_bytes > free_bytes {
            Some(needs(set_up, needed_bytes))
        } else {
            None
        };
        if let Some(reason) = skipped {
            self.push(set_up, &case.name, case.unit, Outcome::Skipped, &reason);
            return Ok(None);
        }
        let (values, halt) = self.values(case, &work, repeat);
        let statistics = Statistics::of(&values);
        let row = match &halt {
            Some(Halt::Failed(fault)) => {
                let row = self.push(set_up, &case.name, case.unit, Outcome::Failed, &fault.text);
                row.cause = fault.cause;
                row
            }
            _ if statistics.is_none() => return Err(Stopped),
            _ => self.push(set_up, &case.name, case.unit, Outcome::Measured, ""),
        };
        row.values = values;
        row.statistics = statistics;
        match halt {
            Some(Halt::Stopped) => Err(Stopped),
            Some(Halt::Failed(_)) => Ok(None),
            None => Ok(statistics.map(|statistics| statistics.median)),
        }
    }

    fn values(
        &mut self,
        case: &Case,
        work: &Work,
        repeat: &mut Repeat,
    ) -> (Vec<f64>, Option<Halt>) {
        let mut values = Vec::new();
        let begun = Instant::now();
        let done = self.rows.len();
        for _ in 0..self.limits.repeats.unwrap_or(case.repeats) {
            if !values.is_empty() && begun.elapsed() >= self.limits.case_time {
                break;
            }
            let (watch, total) = (&mut *self.watch, self.total.max(done));
            match repeat(work, &mut || watch(done, total)) {
                Ok((bytes, elapsed)) => values.push(case.unit.of(bytes, elapsed)),
                Err(halt) => return (values, Some(halt)),
            }
        }
        (values, None)
    }

    fn fast_zone(
        &mut self,
        set_up: &SetUp,
        free_bytes: u64,
        repeat: &mut Repeat,
    ) -> Result<(), Stopped> {
        let limit_bytes = self.limits.largest_bytes.unwrap_or(u64::MAX);
        let largest_mb = (free_bytes / 2).min(limit_bytes) / u64::from(MB);
        let largest_mb = largest_mb.min(u64::from(ZONE_MB_MAX)) as u32;
        if largest_mb == 0 {
            let reason = match limit_bytes < u64::from(MB) {
                true => String::from(OVER_LIMIT),
                false => needs(set_up, 2 * u64::from(MB)),
            };
            self.all(set_up, Outcome::Skipped, &reason);
            return Ok(());
        }
        let first = self.rows.len();
        let mut stopped = Ok(());
        let zone = search(largest_mb, |size_mb| {
            let case = transfer_of(size_mb, largest_mb);
            let median = self.case(set_up, &case, free_bytes, repeat);
            median.unwrap_or_else(|Stopped| {
                stopped = Err(Stopped);
                None
            })
        });
        stopped?;
        // The search ends with the first transfer that fails.
        let last = self.rows.last().map(|row| row.case.clone());
        let mb = |row: &Row| {
            row.case
                .split(' ')
                .next()
                .and_then(|mb| mb.parse::<u32>().ok())
        };
        self.rows[first..].sort_by_key(mb);
        let (outcome, reason) = match zone {
            Some(Zone::UpTo(_)) => (Outcome::Measured, String::new()),
            Some(Zone::NotFound) => (Outcome::NotFound, format!("no drop up to {largest_mb} MB")),
            None => {
                let last = last.unwrap_or_default();
                let reason = format!("the search ended at {last}, which failed");
                (Outcome::NotFound, reason)
            }
        };
        let row = self.push(set_up, FAST_ZONE, Unit::Megabytes, outcome, &reason);
        if let Some(Zone::UpTo(mb)) = zone {
            row.values = vec![f64::from(mb)];
            row.statistics = Statistics::of(&row.values);
        }
        Ok(())
    }

    /// Adds a failed row for each case of a set-up.
    fn fail(&mut self, set_up: &SetUp, fault: Fault) {
        let first = self.rows.len();
        self.all(set_up, Outcome::Failed, &fault.text);
        for row in &mut self.rows[first..] {
            row.cause = fault.cause;
        }
    }

    /// Adds a row without a result for each case of a set-up.
    fn all(&mut self, set_up: &SetUp, outcome: Outcome, reason: &str) {
        for case in &set_up.cases {
            self.push(set_up, &case.name, case.unit, outcome, reason);
        }
        if set_up.cases.is_empty() {
            self.push(set_up, FAST_ZONE, Unit::Megabytes, outcome, reason);
        }
    }

    fn push(
        &mut self,
        set_up: &SetUp,
        case: &str,
        unit: Unit,
        outcome: Outcome,
        reason: &str,
    ) -> &mut Row {
        let experiment = set_up.experiment.name();
        let row = Row {
            experiment,
            set_up: set_up.name.clone(),
            case: case.to_string(),
            unit,
            outcome,
            reason: Some(reason.to_string()).filter(|reason| !reason.is_empty()),
            cause: Cause::Other,
            statistics: None,
            values: Vec::new(),
            published: find(experiment, &set_up.name, case, self.any_set_up),
        };
        self.rows.push(row);
        // Just pushed.
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }
}

/// Returns a transfer of the search for the fast zone, to anywhere within twice the largest one.
fn transfer_of(size_mb: u32, largest_mb: u32) -> Case {
    Case {
        name: format!("{size_mb} MB"),
        work: Work::Transfers {
            calls: size_mb,
            call_bytes: MB,
            calls_per_jump: size_mb,
            within_bytes: 2 * u64::from(largest_mb) * u64::from(MB),
        },
        repeats: ZONE_REPEATS,
        unit: Unit::MbPerS,
    }
}

/// States the space that a case needs.
fn needs(set_up: &SetUp, bytes: u64) -> String {
    let mb = u64::from(MB);
    match set_up.medium {
        Medium::Raw => format!("needs {} MB", bytes.div_ceil(mb)),
        _ => {
            let free_bytes = (bytes * 100).div_ceil(USABLE_PERCENT);
            format!("needs {} MB of free space", free_bytes.div_ceil(mb))
        }
    }
}

fn no_folder(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, at least 2 MB"
        }
        _ if Cause::of(error) == Cause::OpenFiles => {
            "raise the limit with `ulimit -n`, or end other programs"
        }
        _ => "choose a directory you may write to",
    };
    format!("{error}; {remedy}")
}

impl From<ScratchError> for Fault {
    fn from(error: ScratchError) -> Fault {
        Fault {
            text: error.to_string(),
            cause: match error.is_of_medium() {
                true => Cause::Medium,
                false => Cause::Other,
            },
        }
    }
}
