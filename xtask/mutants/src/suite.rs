//! The tests: their times, the mutants that they reach, and runs of them.

use crate::tree::{Program, Tree};
use crate::{Request, at, contains_any};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Limit of a run with a mutant, as a multiple of the time that the test takes without one.
const PROCESSOR_FACTOR: f64 = 5.0;
const PROCESSOR_S_MIN: f64 = 3.0;
const PROCESSOR_S_MAX: f64 = 3600.0;
/// Limit of the time that passes, as a multiple of the processor time, on a machine with other work.
const WALL_FACTOR: f64 = 10.0;
const WALL_S_MIN: f64 = 30.0;
/// Address space of a test, in KiB: a mutant must not fill the computer's memory.
const MEMORY_KIB: &str = "8000000";

/// A test.
pub struct Test {
    program: PathBuf,
    folder: PathBuf,
    name: String,
    /// Program and name.
    pub title: String,
    /// Time that it takes with no mutant switched on, in s.
    pub time_s: f64,
}

/// The result of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    TimedOut,
}

/// All tests.
pub struct Suite {
    pub tests: Vec<Test>,
    /// Tests that reach each mutant, by index.
    pub reaching: BTreeMap<u32, Vec<usize>>,
}

impl Suite {
    /// Runs every requested test once, and notes its time and the mutants that it reaches. Tests that take longer than
    /// the limit are left out.
    pub fn measured(tree: &Tree, programs: &[Program], request: &Request) -> Result<Suite, String> {
        let mut suite = Suite {
            tests: Vec::new(),
            reaching: BTreeMap::new(),
        };
        let reached = tree.folder.with_extension("reached");
        for program in programs {
            for name in names(program)? {
                let title = format!("{} {name}", program.name);
                if !contains_any(&title, &request.tests) {
                    continue;
                }
                let test = Test {
                    program: program.path.clone(),
                    folder: program.folder.clone(),
                    title,
                    name,
                    time_s: request.limit_s / PROCESSOR_FACTOR,
                };
                suite.measure(test, &reached)?;
            }
        }
        Ok(suite)
    }

    fn measure(&mut self, mut test: Test, reached: &Path) -> Result<(), String> {
        let _ = std::fs::remove_file(reached);
        let begun = Instant::now();
        match test.run(&[("PLANTED_REACHED", &reached.to_string_lossy())], 1.0)? {
            Verdict::Passed => (),
            Verdict::Failed => return Err(format!("{} fails without a mutant", test.title)),
            Verdict::TimedOut => {
                eprintln!("left out, because it takes too long: {}", test.title);
                return Ok(());
            }
        }
        test.time_s = begun.elapsed().as_secs_f64();
        let lines = std::fs::read_to_string(reached).unwrap_or_default();
        for id in lines.lines().filter_map(|line| line.parse().ok()) {
            self.reaching.entry(id).or_default().push(self.tests.len());
        }
        if test.time_s > 2.0 {
            eprintln!("{:.1} s: {}", test.time_s, test.title);
        }
        self.tests.push(test);
        Ok(())
    }
}

/// Returns the names of a program's tests.
fn names(program: &Program) -> Result<Vec<String>, String> {
    let mut command = Command::new(&program.path);
    command
        .args(["--list", "--format", "terse"])
        .current_dir(&program.folder);
    let list = crate::output_of(&mut command)?;
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_string).collect())
}

impl Test {
    /// Runs the test with a mutant switched on.
    pub fn run_with(&self, mutant: u32) -> Result<Verdict, String> {
        self.run(&[("PLANTED", &mutant.to_string())], PROCESSOR_S_MIN)
    }

    fn run(&self, environment: &[(&str, &str)], processor_s_min: f64) -> Result<Verdict, String> {
        let processor_s = (self.time_s * PROCESSOR_FACTOR).clamp(processor_s_min, PROCESSOR_S_MAX);
        let wall_s = (processor_s * WALL_FACTOR).max(WALL_S_MIN);
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!(
                "ulimit -t {processor_s:.0}; ulimit -v {MEMORY_KIB}; ulimit -c 0; exec \"$0\" --exact \"$1\" --test-threads=1"
            ))
            .arg(&self.program)
            .arg(&self.name)
            .current_dir(&self.folder)
            .env("REPLAY_PATHS", REPLAY_PATHS)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(at(&self.program))?;
        let end = Instant::now() + Duration::from_secs_f64(wall_s);
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = child.try_wait().map_err(at(&self.program))? {
                return Ok(match status.code() {
                    Some(0) => Verdict::Passed,
                    Some(_) => Verdict::Failed,
                    // Ended by a signal: the limit, or an abort.
                    None => Verdict::TimedOut,
                });
            }
            if Instant::now() > end {
                child.kill().map_err(at(&self.program))?;
                child.wait().map_err(at(&self.program))?;
                return Ok(Verdict::TimedOut);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Number of random paths per run, instead of 10,000.
const REPLAY_PATHS: &str = "50";
