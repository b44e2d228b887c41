//! A sweep with its cards and boards, and its division into tasks and parts.

use crate::SweepError;
use crate::fields;
use crate::parquet;
use crate::spec::{Mode, SEEDS_PER_TASK, Spec};
use crate::task::Task;
use crate::text::duration;
use cardiograph_compare::bus_rate_bytes_per_s;
use cardiograph_report::units;
use cardiograph_sim_card::{BOARDS, Board, Bus, CARDS, FIXTURES, Profile, parse_toml};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Version in results: that of Cardiograph, and a hash of the sources that results depend on.
pub(crate) const VERSION: &str = env!("SWEEP_VERSION");
/// Maximum number of tasks, unless the specification names its own.
pub const TASKS_MAX: u64 = 1_000_000;
/// Maximum number of files with results.
pub const PARTS_MAX: u64 = 1000;

/// Folder of the results in the folder of a sweep.
pub(crate) const RESULTS: &str = "results";

/// Time of one core per megabyte of samples in card mode, in s: an estimate from
/// `benchmarks/runs/2026-11-25-sweeps.md`.
const CARD_S_PER_MB: f64 = 30e-6;
/// The same in recorder mode.
const RECORDER_S_PER_MB: f64 = 0.06;
/// Time of one core in card mode for creating the card of a recording, in s (measured with recordings of 1 s, without the
/// optimisations of a release).
const CARD_S_PER_RECORDING: f64 = 1.7e-3;
/// The same in recorder mode.
const RECORDER_S_PER_RECORDING: f64 = 0.09;

/// Estimated time of a task, in s, from which it has a single seed by default.
const TASK_S_MAX: f64 = 10.0;

/// A card or board by name, with its TOML.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Source {
    /// Name in results.
    pub name: String,
    /// Its properties, as TOML.
    pub toml: String,
    /// File that it was read from, for messages; other processes get the text alone.
    #[serde(skip)]
    file: Option<String>,
}

impl Source {
    /// Beginning of messages: the file, or the name.
    fn label(&self) -> &str {
        self.file.as_deref().unwrap_or(&self.name)
    }
}

/// A sweep that can be run: its specification, and the cards and boards that it names.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Specification.
    pub spec: Spec,
    /// With the members of their ensembles.
    cards: Vec<(Source, Vec<Profile>)>,
    boards: Vec<(Source, Board)>,
}

/// A sweep as JSON, from which another process can run its parts.
#[derive(Deserialize, Serialize)]
struct Portable {
    version: String,
    spec: Spec,
    cards: Vec<Source>,
    boards: Vec<Source>,
}

impl Sweep {
    /// Parses a specification; error messages start with `name`. Cards and boards that are TOML files are read relative
    /// to `folder`.
    ///
    /// # Errors
    /// [`SweepError`] with the key and the remedy. A sweep of too many tasks is refused with its estimated cost.
    pub fn from_toml(name: &str, text: &str, folder: &Path) -> Result<Sweep, SweepError> {
        fields::check_text(name, text)?;
        let spec: Spec = parse_toml(name, text).map_err(SweepError::new)?;
        spec.check(name)?;
        let sources = |names: &[String], listed, unlisted| -> Result<Vec<Source>, SweepError> {
            let sources = names.iter();
            let sources = sources.map(|name| source(name, [listed, unlisted], folder));
            sources.collect()
        };
        let cards = sources(&spec.cards, CARDS, FIXTURES)?;
        let boards = sources(&spec.boards, BOARDS, &[])?;
        Sweep::of(name, spec, cards, boards)
    }

    fn of(
        name: &str,
        spec: Spec,
        cards: Vec<Source>,
        boards: Vec<Source>,
    ) -> Result<Sweep, SweepError> {
        unique(name, "cards", &cards)?;
        unique(name, "boards", &boards)?;
        let profile = |source: Source| {
            let profile =
                Profile::from_toml(source.label(), &source.toml).map_err(SweepError::new)?;
            let members = profile.members(source.label()).map_err(SweepError::new)?;
            Ok((source, members))
        };
        let board = |source: Source| {
            let board = Board::from_toml(source.label(), &source.toml);
            Ok((source, board.map_err(SweepError::new)?))
        };
        let mut sweep = Sweep {
            spec,
            cards: cards.into_iter().map(profile).collect::<Result<_, _>>()?,
            boards: boards.into_iter().map(board).collect::<Result<_, _>>()?,
        };
        sweep.shorten_tasks();
        sweep.check_rates(name)?;
        sweep.check_lengths(name)?;
        sweep.check_tasks(name)?;
        Ok(sweep)
    }

    /// Reduces the default number of seeds per task if a task would take long: an interruption loses the tasks in progress.
    fn shorten_tasks(&mut self) {
        let tasks = self.tasks() as f64;
        if self.spec.seeds_per_task == SEEDS_PER_TASK && self.cost_s() / tasks > TASK_S_MAX {
            self.spec.seeds_per_task = 1;
        }
    }

    /// Refuses rates that no buffer could help.
    fn check_rates(&self, name: &str) -> Result<(), SweepError> {
        for (source, board) in &self.boards {
            let Bus::Spi(spi) = board.bus else {
                continue;
            };
            let maximum = bus_rate_bytes_per_s(&spi);
            for &rate_hz in &self.spec.rates_hz {
                let needed = f64::from(rate_hz) * f64::from(self.spec.sample_bytes);
                if needed > maximum {
                    return Err(SweepError::new(format!(
                        "{name}: `rates_hz` contains {rate_hz}, which needs {}, but the bus of {} carries at most {}; \
                         remove it, or use a board with a faster clock",
                        units::rate(needed),
                        source.name,
                        units::rate(maximum)
                    )));
                }
            }
        }
        Ok(())
    }

    /// Refuses recordings that need a file larger than FAT permits.
    fn check_lengths(&self, name: &str) -> Result<(), SweepError> {
        use crate::spec::PolicyName::Stream;
        let has_one_file = self.spec.policies.iter().any(|&policy| policy != Stream);
        let rate_hz = self.spec.rates_hz.iter().max().copied().unwrap_or(0);
        let bytes =
            u128::from(rate_hz) * u128::from(self.spec.sample_bytes) * u128::from(self.spec.run_s);
        match has_one_file && bytes > u128::from(u32::MAX) {
            true => Err(SweepError::new(format!(
                "{name}: `run_s` gives a file of {} at {rate_hz} Hz, but a file on FAT holds at most 4.29 GB; use a \
                 shorter run, or the policy stream alone",
                units::bytes(bytes as f64)
            ))),
            false => Ok(()),
        }
    }

    fn check_tasks(&self, name: &str) -> Result<(), SweepError> {
        let (tasks, most) = (self.tasks(), self.spec.max_tasks.unwrap_or(TASKS_MAX));
        match tasks > most {
            true => Err(SweepError::new(format!(
                "{name}: {} tasks are more than the maximum of {}, and take about {} of one core; set max_tasks = \
                 {tasks} to run them, or use fewer values",
                units::count(tasks),
                units::count(most),
                duration(self.cost_s())
            ))),
            false => Ok(()),
        }
    }

    /// Returns the estimated time on one core, in s.
    pub fn cost_s(&self) -> f64 {
        let spec = &self.spec;
        let simulated_mb = |rate_hz: &u32| {
            f64::from(*rate_hz) * f64::from(spec.sample_bytes) / 1e6 * spec.run_s as f64
        };
        let mb: f64 = spec.rates_hz.iter().map(simulated_mb).sum();
        let members: usize = self.cards.iter().map(|(_, members)| members.len()).sum();
        let others = members * self.boards.len() * spec.policies.len();
        let runs = others as f64 * f64::from(spec.seeds);
        let rates = spec.rates_hz.len() as f64;
        match spec.mode {
            Mode::Card => runs * (mb * CARD_S_PER_MB + rates * CARD_S_PER_RECORDING),
            Mode::Recorder => {
                let buffers = spec.buffers_bytes.len() as f64;
                runs * buffers * (mb * RECORDER_S_PER_MB + rates * RECORDER_S_PER_RECORDING)
            }
        }
    }

    /// Returns the number of results: recordings, times the buffer sizes that each serves.
    pub(crate) fn recordings(&self) -> u64 {
        let spec = &self.spec;
        let members: usize = self.cards.iter().map(|(_, members)| members.len()).sum();
        let lists = [self.boards.len(), spec.policies.len(), spec.rates_hz.len()];
        let product = lists.iter().map(|&len| len as u64).product::<u64>();
        let per_seed = product * members as u64 * spec.buffers_bytes.len() as u64;
        per_seed.saturating_mul(spec.seeds.into())
    }

    /// Returns the number of buffer sizes that have tasks of their own.
    fn buffer_groups(&self) -> u64 {
        match self.spec.mode {
            Mode::Card => 1,
            Mode::Recorder => self.spec.buffers_bytes.len() as u64,
        }
    }

    fn batches(&self) -> u64 {
        u64::from(self.spec.seeds.div_ceil(self.spec.seeds_per_task))
    }

    /// Returns the number of tasks per card.
    fn tasks_per_card(&self) -> u64 {
        let spec = &self.spec;
        let lists = [self.boards.len(), spec.policies.len(), spec.rates_hz.len()];
        let product = lists.iter().map(|&len| len as u64).product::<u64>();
        product * self.buffer_groups() * self.batches()
    }

    /// Returns the number of tasks.
    pub fn tasks(&self) -> u64 {
        self.tasks_per_card() * self.cards.len() as u64
    }

    /// Returns a task; `number` must be below [`tasks`](Sweep::tasks).
    pub fn task(&self, number: u64) -> Task<'_> {
        let spec = &self.spec;
        let mut rest = number;
        let mut digit = |base: u64| {
            let digit = rest % base;
            rest /= base;
            digit as usize
        };
        let batch = digit(self.batches()) as u64;
        let group = digit(self.buffer_groups());
        let rate_hz = spec.rates_hz[digit(spec.rates_hz.len() as u64)];
        let policy = spec.policies[digit(spec.policies.len() as u64)];
        let (board, parsed_board) = &self.boards[digit(self.boards.len() as u64)];
        let (card, members) = &self.cards[digit(self.cards.len() as u64)];
        let first = batch * u64::from(spec.seeds_per_task);
        let last = (first + u64::from(spec.seeds_per_task)).min(spec.seeds.into());
        Task {
            number,
            spec,
            card: &card.name,
            members,
            first_member: 0,
            board_name: &board.name,
            board: parsed_board,
            policy,
            rate_hz,
            buffers_bytes: match spec.mode {
                Mode::Card => &spec.buffers_bytes,
                Mode::Recorder => &spec.buffers_bytes[group..=group],
            },
            seeds: spec.first_seed + first..spec.first_seed + last,
        }
    }

    fn tasks_per_part(&self) -> u64 {
        // The last part of each card may be shorter.
        let parts = PARTS_MAX.saturating_sub(self.cards.len() as u64).max(1);
        self.tasks().div_ceil(parts).max(1)
    }

    fn parts_per_card(&self) -> u64 {
        self.tasks_per_card().div_ceil(self.tasks_per_part())
    }

    /// Returns the number of parts: files with results.
    pub fn parts(&self) -> u64 {
        self.parts_per_card() * self.cards.len() as u64
    }

    /// Returns the tasks of a part.
    pub fn tasks_of_part(&self, part: u64) -> Range<u64> {
        let (card, at) = (part / self.parts_per_card(), part % self.parts_per_card());
        let first = card * self.tasks_per_card();
        let start = at * self.tasks_per_part();
        let end = (start + self.tasks_per_part()).min(self.tasks_per_card());
        first + start..first + end
    }

    /// Returns the file of a part, relative to the folder of the results: cards have folders of their own.
    pub fn file_of_part(&self, part: u64) -> String {
        let card = &self.cards[(part / self.parts_per_card()) as usize].0;
        format!("{RESULTS}/card={}/part-{part:05}.parquet", card.name)
    }

    /// Returns the origin in the metadata of a part's file: a hash of this sweep, and the number of the part.
    pub(crate) fn origin_of_part(&self, part: u64) -> String {
        format!("{:016x}-{part:05}", fnv_1a(self.to_json().as_bytes()))
    }

    /// Runs the tasks of a part; returns its Parquet file. Calls `done` after each task. `None` if `is_stopped`
    /// returned true before the end.
    ///
    /// # Errors
    /// [`SweepError`] if a card or board does not permit a recording.
    pub fn run_part(
        &self,
        part: u64,
        is_stopped: &dyn Fn() -> bool,
        done: &mut dyn FnMut(),
    ) -> Result<Option<Vec<u8>>, SweepError> {
        let mut rows = Vec::new();
        for number in self.tasks_of_part(part) {
            match self.task(number).run(is_stopped)? {
                Some(more) => rows.extend(more),
                None => return Ok(None),
            }
            done();
        }
        parquet::to_bytes(&rows, &self.origin_of_part(part)).map(Some)
    }

    /// Returns the cards with their names; of an ensemble, the first member.
    pub fn cards(&self) -> impl Iterator<Item = (&str, &Profile)> {
        self.cards
            .iter()
            .map(|(source, members)| (source.name.as_str(), &members[0]))
    }

    /// Returns the number of members of a card's ensemble; 1 for a card without one.
    pub(crate) fn members_of(&self, card: &str) -> usize {
        let found = self.cards.iter().find(|(source, _)| source.name == card);
        found.map_or(1, |(_, members)| members.len())
    }

    /// Returns the boards with their names.
    pub fn boards(&self) -> impl Iterator<Item = (&str, &Board)> {
        self.boards
            .iter()
            .map(|(source, board)| (source.name.as_str(), board))
    }

    /// Returns the sweep as JSON, with its cards and boards and the version.
    pub fn to_json(&self) -> String {
        let portable = Portable {
            version: VERSION.to_string(),
            spec: Spec {
                max_tasks: None,
                ..self.spec.clone()
            },
            cards: self
                .cards
                .iter()
                .map(|(source, _)| source.clone())
                .collect(),
            boards: self
                .boards
                .iter()
                .map(|(source, _)| source.clone())
                .collect(),
        };
        let text = serde_json::to_string_pretty(&portable);
        text.unwrap_or_else(|_| unreachable!("strings and numbers have a JSON form")) + "\n"
    }

    /// Reads a sweep that [`to_json`](Sweep::to_json) wrote.
    ///
    /// # Errors
    /// [`SweepError`] if another version wrote it, whose results could differ.
    pub fn from_json(text: &str) -> Result<Sweep, SweepError> {
        let name = "the sweep";
        let portable: Portable = serde_json::from_str(text)
            .map_err(|error| SweepError::new(format!("{name}: {error}; pass it unchanged")))?;
        if portable.version != VERSION {
            return Err(SweepError::new(format!(
                "{name} comes from version {}, but this is version {VERSION}; install the same version everywhere",
                portable.version
            )));
        }
        portable.spec.check(name)?;
        let mut spec = portable.spec;
        // The process that created the sweep has accepted its size.
        spec.max_tasks = Some(u64::MAX);
        Sweep::of(name, spec, portable.cards, portable.boards)
    }
}

/// Returns the hash FNV-1a with 64 bits.
pub(crate) fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Names and texts of profiles.
type Bundled<'a> = &'a [(&'a str, &'a str)];

/// Finds a card or board among the bundled ones, which an error lists, among others, or reads its file.
fn source(name: &str, bundled: [Bundled; 2], folder: &Path) -> Result<Source, SweepError> {
    if !name.ends_with(".toml") {
        let mut all = bundled.into_iter().flatten();
        let found = all.find(|(known, _)| *known == name);
        let known = || {
            let known: Vec<_> = bundled[0].iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            SweepError::new(format!(
                "there is no card or board named \"{name}\"; choose one of: {known}; or name a TOML file"
            ))
        };
        let (name, toml) = found.ok_or_else(known)?;
        return Ok(Source {
            name: name.to_string(),
            toml: toml.to_string(),
            file: None,
        });
    }
    let path = folder.join(name);
    let toml = std::fs::read_to_string(&path).map_err(|error| {
        SweepError::new(format!(
            "{}: {error}; name a readable TOML file",
            path.display()
        ))
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // Programs that read partitioned files take some names for a folder or for a missing value.
    let is_special = stem.chars().all(|c| c == '.')
        || ["null", "__hive_default_partition__"].contains(&stem.to_ascii_lowercase().as_str());
    match stem.chars().all(is_plain) && !is_special {
        true => Ok(Source {
            name: stem.into_owned(),
            toml,
            file: Some(path.display().to_string()),
        }),
        false => Err(SweepError::new(format!(
            "{}: the name becomes part of a folder; use only letters, digits, `-`, `_` and `.`, not only `.`, and \
             neither null nor __HIVE_DEFAULT_PARTITION__",
            path.display()
        ))),
    }
}

fn unique(name: &str, field: &str, sources: &[Source]) -> Result<(), SweepError> {
    for (at, source) in sources.iter().enumerate() {
        if sources[..at].iter().any(|other| other.name == source.name) {
            return Err(SweepError::new(format!(
                "{name}: `{field}` has two entries named {}; rename one",
                source.name
            )));
        }
    }
    Ok(())
}
