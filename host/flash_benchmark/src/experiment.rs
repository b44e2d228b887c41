//! The experiments of the study: set-ups, and the cases of each.

use crate::case::{Case, Unit, Work};
use crate::scenario::{SCENARIOS, Scenario};
use cardiograph_disk::FileSystem;
use cardiograph_workload::{Phase, workload};

/// An experiment of the study; its name is that of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Experiment {
    /// Files of 1 to 1000 MB.
    FileSize,
    /// Raw transfers, and files on each file system.
    FileSystems,
    /// Transfers of growing size, until a card's fast zone is full.
    CacheSize,
    /// 1 MiB in chunks of 1 MiB to 1 KiB.
    ChunkSweep,
    /// Block sizes of the file system.
    FsBlock,
    /// Nine ways to sync.
    SyncScenarios,
}

/// Storage that a set-up writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The disk without a file system.
    Raw,
    /// A new file system.
    Formatted {
        /// Its kind.
        file_system: FileSystem,
        /// Size of its blocks (sectors for vfat); `None` for the default.
        block_bytes: Option<u32>,
        /// Mounted with the option `sync`.
        is_synchronous: bool,
    },
    /// The directory of the user, with the file system that it has.
    Directory,
}

/// A medium, and the cases that run on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// Experiment.
    pub experiment: Experiment,
    /// Name, such as `ext2, blocks of 4096 B`.
    pub name: String,
    /// Storage that the cases write to.
    pub medium: Medium,
    /// Cases; those of [`Experiment::CacheSize`] are found by bisection.
    pub cases: Vec<Case>,
}

impl Experiment {
    /// All experiments in the order of a run.
    pub const ALL: [Experiment; 6] = [
        Experiment::FileSize,
        Experiment::FileSystems,
        Experiment::CacheSize,
        Experiment::ChunkSweep,
        Experiment::FsBlock,
        Experiment::SyncScenarios,
    ];

    /// Returns the name of the experiment, which is that of its workload.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::FileSize => "file-size",
            Experiment::FileSystems => "filesystems",
            Experiment::CacheSize => "cache-size",
            Experiment::ChunkSweep => "chunk-sweep",
            Experiment::FsBlock => "fs-block",
            Experiment::SyncScenarios => "sync-scenarios",
        }
    }

    /// Returns the set-ups on a disk that may be formatted.
    pub fn on_disk(self) -> Vec<SetUp> {
        let of = |name: String, medium, cases| SetUp {
            experiment: self,
            name,
            medium,
            cases,
        };
        let raw = |cases| of(String::from("raw"), Medium::Raw, cases);
        let default = |file_system: FileSystem, cases| {
            let name = file_system.name().to_string();
            of(name, formatted(file_system, None, false), cases)
        };
        match self {
            Experiment::FileSize => vec![default(FileSystem::Ext2, self.cases(false))],
            Experiment::FileSystems => {
                let files = FileSystem::ALL.map(|kind| default(kind, self.cases(false)));
                [raw(self.cases(true))].into_iter().chain(files).collect()
            }
            Experiment::CacheSize | Experiment::ChunkSweep => vec![raw(self.cases(true))],
            Experiment::FsBlock => [
                (FileSystem::Ext2, 4096, "blocks"),
                (FileSystem::Ext2, 1024, "blocks"),
                (FileSystem::Vfat, 512, "sectors"),
                (FileSystem::Vfat, 4096, "sectors"),
            ]
            .map(|(kind, bytes, unit)| {
                let name = format!("{}, {unit} of {bytes} B", kind.name());
                of(name, formatted(kind, Some(bytes), false), self.cases(false))
            })
            .to_vec(),
            Experiment::SyncScenarios => [false, true]
                .map(|is_synchronous| {
                    let all = SCENARIOS.iter();
                    let own = all.filter(|scenario| scenario.is_mounted_sync == is_synchronous);
                    let medium = formatted(FileSystem::Ext2, None, is_synchronous);
                    of(
                        String::from("ext2"),
                        medium,
                        own.map(scenario_case).collect(),
                    )
                })
                .to_vec(),
        }
    }

    /// Returns the set-up in a directory, whose file system has the given name, and the names of the cases that need a
    /// whole disk.
    pub fn in_directory(self, file_system: &str) -> (SetUp, Vec<String>) {
        let mut needing = Vec::new();
        let cases = match self {
            Experiment::FileSize | Experiment::FileSystems => self.cases(false),
            Experiment::CacheSize | Experiment::ChunkSweep => self.cases(true),
            Experiment::FsBlock => {
                needing.extend(self.cases(false).into_iter().map(|case| case.name));
                Vec::new()
            }
            Experiment::SyncScenarios => {
                let (mounted, plain): (Vec<&Scenario>, Vec<&Scenario>) = SCENARIOS
                    .iter()
                    .partition(|scenario| scenario.needs_mount());
                needing.extend(mounted.iter().map(|scenario| scenario.name.to_string()));
                plain.into_iter().map(scenario_case).collect()
            }
        };
        let set_up = SetUp {
            experiment: self,
            name: file_system.to_string(),
            medium: Medium::Directory,
            cases,
        };
        (set_up, needing)
    }

    /// Returns the cases of the workload: transfers to random offsets, or whole files.
    fn cases(self, transfers: bool) -> Vec<Case> {
        let phases = workload(self.name()).map_or(&[][..], |workload| workload.phases);
        let own = phases
            .iter()
            .filter(|phase| (phase.jump_within_bytes > 0) == transfers);
        match self {
            // Sizes are found by bisection.
            Experiment::CacheSize => Vec::new(),
            _ => own.map(|phase| self.case(phase)).collect(),
        }
    }

    fn case(self, phase: &Phase) -> Case {
        let kib = phase.bytes_per_call >> 10;
        let chunk = match kib {
            kib if kib >= 1024 => format!("{} MiB", kib >> 10),
            kib => format!("{kib} KiB"),
        };
        let name = match (self, phase.files) {
            (Experiment::ChunkSweep, _) => format!("{} x {kib} KiB", phase.calls_per_file),
            (Experiment::FsBlock, 1) => format!("1 file, chunks of {chunk}"),
            (Experiment::FsBlock, files) => format!("{files} files, chunks of {chunk}"),
            _ => format!("{} MB", phase.bytes_per_pass() / 1_000_000),
        };
        Case {
            name,
            work: Work::of(phase),
            repeats: phase.passes.max(REPEATS_MIN),
            unit: match self {
                Experiment::FsBlock => Unit::Seconds,
                _ => Unit::MbPerS,
            },
        }
    }
}

/// Repetitions, at least: a single one has no range.
const REPEATS_MIN: u32 = 3;

/// Repetitions of a sync scenario.
const SCENARIO_REPEATS: u32 = 10;

fn scenario_case(scenario: &Scenario) -> Case {
    Case {
        name: scenario.name.to_string(),
        work: Work::Scenario(*scenario),
        repeats: SCENARIO_REPEATS,
        unit: Unit::MbPerS,
    }
}

fn formatted(file_system: FileSystem, block_bytes: Option<u32>, is_synchronous: bool) -> Medium {
    Medium::Formatted {
        file_system,
        block_bytes,
        is_synchronous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::published;

    /// Every published figure has a case, so that none is lost by a name that differs.
    #[test]
    fn every_published_figure_has_a_case() {
        assert_eq!(published().len(), 43);
        for figure in published() {
            let experiment = Experiment::ALL.into_iter();
            let experiment = experiment.filter(|one| one.name() == figure.experiment);
            let set_ups: Vec<_> = experiment.flat_map(Experiment::on_disk).collect();
            let mut of_name = set_ups.iter().filter(|set_up| set_up.name == figure.set_up);
            let is_case = |set_up: &SetUp| {
                set_up.experiment == Experiment::CacheSize
                    || set_up.cases.iter().any(|case| case.name == figure.case)
            };
            assert!(of_name.any(is_case), "{figure:?}");
            let range = figure.min.zip(figure.max);
            assert!(range.is_some() || figure.value.is_some(), "{figure:?}");
            assert!(range.is_none_or(|(min, max)| min < max), "{figure:?}");
        }
    }

    #[test]
    fn a_directory_has_what_needs_no_mount() {
        let (set_up, needing) = Experiment::SyncScenarios.in_directory("ext4");
        assert_eq!((set_up.cases.len(), needing.len()), (3, 6));
        let (set_up, needing) = Experiment::FsBlock.in_directory("ext4");
        assert_eq!((set_up.cases.len(), needing.len()), (0, 4));
    }
}
