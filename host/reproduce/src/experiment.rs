//! Experiments: a workload on a card on a board, and the operations of a run.

use crate::web::{self, WebServer};
use crate::{hosts, raw_writes, recorded_writes};
use cardiograph_sim_card::{BOARDS, Board, Card, Profile, Seed, TimedOperation, card_text};
use cardiograph_store::run_on_card;
use cardiograph_workload::{Activity, Observer, Operation, Workload, workload};
use std::fmt;
use std::ops::{ControlFlow, Range};

/// An experiment. Equal experiments give the same operations for the same seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Experiment {
    /// Name of the card's profile.
    pub card: String,
    /// Name of the board.
    pub board: String,
    /// Name of the workload, or [`NO_WORKLOAD`].
    pub workload: String,
    /// Values that replace those of the card profile or the board, each given by its path and as TOML.
    pub set: Vec<(String, String)>,
    /// A web server that runs at the same time as the workload, and whose client downloads a file.
    pub server: Option<WebServer>,
    /// Recorded writes of a file system that is not simulated, which take the place of those of the workload.
    pub writes: Option<String>,
    /// True if the writes of the workload to random offsets go to the whole card, without a file system.
    pub is_raw: bool,
    /// Member of an ensemble whose processor times the board has; 0 for those in its file.
    pub host: u16,
}

/// Workload of an experiment that consists of downloads only.
pub const NO_WORKLOAD: &str = "none";

const NOTHING: Workload = Workload {
    name: NO_WORKLOAD,
    study: "",
    about: "nothing",
    phases: &[],
};

/// Error of an experiment, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError(String);

impl ExperimentError {
    pub(crate) fn new(sentence: impl Into<String>) -> ExperimentError {
        ExperimentError(sentence.into())
    }
}

impl std::error::Error for ExperimentError {}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The operations of a run, in order of time.
#[derive(Clone)]
pub struct Operations {
    pub(crate) all: Vec<Operation>,
    /// First file of each phase, and the end of the last phase.
    first_files: Vec<u32>,
    downloads: Vec<Operation>,
    server_reads_ns: Vec<u64>,
    driver_timeouts: u64,
    /// Time-outs of the driver in each phase; empty if they were not counted separately.
    pub(crate) timeouts_of_phases: Vec<u64>,
}

impl Operations {
    fn of(workload: &Workload) -> Operations {
        let mut first_files = vec![0];
        let mut files = 0;
        for phase in workload.phases {
            files += phase.files;
            first_files.push(files);
        }
        Operations {
            all: Vec::new(),
            first_files,
            downloads: Vec::new(),
            server_reads_ns: Vec::new(),
            driver_timeouts: 0,
            timeouts_of_phases: Vec::new(),
        }
    }

    /// Returns how many times the card's driver timed out on a busy card or reader and was called again.
    pub fn driver_timeouts(&self) -> u64 {
        self.driver_timeouts
    }

    /// Returns the number of time-outs in one phase, or in all phases if they were not counted separately.
    pub(crate) fn driver_timeouts_in(&self, phase: Option<usize>) -> u64 {
        let of_phase = phase.and_then(|phase| self.timeouts_of_phases.get(phase));
        of_phase.copied().unwrap_or(self.driver_timeouts)
    }

    /// Returns all operations of the workload.
    pub fn all(&self) -> &[Operation] {
        &self.all
    }

    /// Returns the downloads of a web server's client, from the connection to the last byte.
    pub fn downloads(&self) -> &[Operation] {
        &self.downloads
    }

    /// Returns the times of the web server's calls that read from the card, in ns.
    pub fn server_reads_ns(&self) -> &[u64] {
        &self.server_reads_ns
    }

    /// Returns the operations of one phase or of all, with any offset or with offsets in a range.
    pub(crate) fn select(
        &self,
        phase: Option<usize>,
        offsets_bytes: Option<Range<u64>>,
    ) -> impl Iterator<Item = Operation> + Clone + '_ {
        let files = match phase {
            Some(phase) => self.files_of(phase),
            None => 0..u32::MAX,
        };
        let offsets = offsets_bytes.unwrap_or(0..u64::MAX);
        self.all.iter().copied().filter(move |operation| {
            files.contains(&operation.file) && offsets.contains(&operation.offset_bytes)
        })
    }

    pub(crate) fn files_of(&self, phase: usize) -> Range<u32> {
        let first = |at: usize| self.first_files.get(at).copied().unwrap_or(u32::MAX);
        first(phase)..first(phase + 1)
    }
}

impl From<Vec<Operation>> for Operations {
    /// Wraps operations whose phases are unknown.
    fn from(all: Vec<Operation>) -> Operations {
        Operations {
            all,
            first_files: Vec::new(),
            downloads: Vec::new(),
            server_reads_ns: Vec::new(),
            driver_timeouts: 0,
            timeouts_of_phases: Vec::new(),
        }
    }
}

impl Observer for Operations {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.all.push(*operation);
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _activity: Activity, _now_ns: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Experiment {
    /// Creates an experiment from a built-in workload, card and board, unchanged.
    pub fn new(card: &str, board: &str, workload: &str) -> Experiment {
        Experiment {
            card: card.to_string(),
            board: board.to_string(),
            workload: workload.to_string(),
            set: Vec::new(),
            server: None,
            writes: None,
            is_raw: false,
            host: 0,
        }
    }

    /// Returns workload, card and board.
    ///
    /// # Errors
    /// If the workload, card or board does not exist, or if a changed value is invalid.
    pub fn set_up(&self) -> Result<(Workload<'static>, Profile, Board), ExperimentError> {
        let error = |error: &dyn fmt::Display| ExperimentError(error.to_string());
        let workload = match self.workload.as_str() {
            NO_WORKLOAD if self.server.is_some() => &NOTHING,
            name => workload(name)
                .ok_or_else(|| ExperimentError(format!("no workload named {name}")))?,
        };
        let mut boards = BOARDS.iter();
        let board_text = boards.find(|(name, _)| *name == self.board);
        let board_text = board_text.map(|(_, text)| *text);
        let profile = toml_of(&self.card, card_text(&self.card), &self.changes("card."))?;
        let board = toml_of(&self.board, board_text, &self.changes("board."))?;
        let board = Board::from_toml(&self.board, &board).map_err(|e| error(&e))?;
        Ok((
            *workload,
            Profile::from_toml(&self.card, &profile).map_err(|e| error(&e))?,
            hosts::of_member(board, &self.board, self.host),
        ))
    }

    fn changes(&self, prefix: &str) -> Vec<(&str, &str)> {
        let paths = self.set.iter();
        paths
            .filter_map(|(path, value)| Some((path.strip_prefix(prefix)?, value.as_str())))
            .collect()
    }

    /// Runs the experiment on a card with the given seed.
    ///
    /// # Errors
    /// As for [`Experiment::set_up`], and if the run fails.
    pub fn run(&self, seed: u64) -> Result<Operations, ExperimentError> {
        let (_, profile, _) = self.set_up()?;
        let seed = Seed::new(seed);
        let (operations, _) = self.run_on(Card::new(&profile, seed), seed)?;
        Ok(operations)
    }

    /// Runs the experiment and records the commands that the card received.
    ///
    /// # Errors
    /// As for [`Experiment::run`].
    pub fn run_recorded(
        &self,
        profile: &Profile,
        seed: u64,
    ) -> Result<(Operations, Vec<TimedOperation>), ExperimentError> {
        let seed = Seed::new(seed);
        let mut card = Card::new(profile, seed);
        card.controller_mut().start_trace();
        let (operations, mut card) = self.run_on(card, seed)?;
        Ok((operations, card.controller_mut().take_trace()))
    }

    /// Returns true if the commands sent to the card depend only on the workload, and not on the durations
    /// of earlier commands. Only such experiments can be [recorded](crate::Recording) for a replay.
    pub fn can_be_replayed(&self) -> bool {
        self.server.is_none()
    }

    fn run_on(&self, card: Card, seed: Seed) -> Result<(Operations, Card), ExperimentError> {
        let (workload, _, board) = self.set_up()?;
        let mut operations = Operations::of(&workload);
        if let Some(server) = self.server {
            let served = web::serve(card, &board, server, &workload, seed, &mut operations)
                .map_err(|error| self.failed(&error))?;
            operations.downloads = served.downloads;
            operations.server_reads_ns = served.reads_ns;
            operations.driver_timeouts = served.driver_timeouts;
            return Ok((operations, served.card));
        }
        if let Some(name) = &self.writes {
            let (timeouts, card) = recorded_writes::run(name, card, &board, &mut operations)
                .map_err(|error| self.failed(&error))?;
            operations.driver_timeouts = timeouts;
            return Ok((operations, card));
        }
        if self.is_raw {
            let card = raw_writes::run(&workload, card, &board, seed, &mut operations)
                .map_err(|error| self.failed(&error))?;
            operations.driver_timeouts = operations.timeouts_of_phases.iter().sum();
            return Ok((operations, card));
        }
        let mut buffer = vec![0; workload.buffer_bytes()];
        let (run, card) = run_on_card(card, &board, &workload, &mut operations, &mut buffer)
            .map_err(|error| self.failed(&error))?;
        operations.driver_timeouts = run.timeouts;
        run.result.map_err(|error| self.failed(&error))?;
        Ok((operations, card.map_err(|error| self.failed(&error))?))
    }

    fn failed(&self, error: &dyn fmt::Display) -> ExperimentError {
        let Experiment {
            card,
            board,
            workload,
            ..
        } = self;
        ExperimentError(format!("{workload} on sim:{card}@{board}: {error}"))
    }
}

/// Returns the TOML of a card or board, which is `None` if there is none of this name, with changes applied.
fn toml_of(
    name: &str,
    text: Option<&str>,
    changes: &[(&str, &str)],
) -> Result<String, ExperimentError> {
    let text = text.ok_or_else(|| ExperimentError(format!("no card or board named {name}")))?;
    if changes.is_empty() {
        return Ok(text.to_string());
    }
    let wrong = |error: &dyn fmt::Display| ExperimentError(format!("{name}: {error}"));
    let mut table: toml::Table = toml::from_str(text).map_err(|error| wrong(&error))?;
    for (path, value) in changes {
        let value: toml::Table =
            toml::from_str(&format!("value = {value}")).map_err(|error| wrong(&error))?;
        let (folders, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut target = &mut table;
        for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
            let next = target.get_mut(folder).and_then(toml::Value::as_table_mut);
            target = next.ok_or_else(|| wrong(&format!("no table `{folder}`")))?;
        }
        target.insert(key.to_string(), value["value"].clone());
    }
    toml::to_string(&table).map_err(|error| wrong(&error))
}
