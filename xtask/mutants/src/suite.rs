//! The tests: their times, the mutants that they reach, and runs of them.

use crate::measurements::{Measurement, Measurements};
use crate::tree::{Program, Tree};
use crate::{Request, at, contains_any};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Processor time that a run with a mutant may take, as a multiple of the time without one.
const PROCESSOR_FACTOR: f64 = 4.0;
const PROCESSOR_S_MIN: f64 = 2.0;
const PROCESSOR_S_MAX: f64 = 3600.0;
/// Limit of the time that passes, as a multiple of the processor time, on a machine with other work.
const WALL_FACTOR: f64 = 30.0;
/// Ticks of the times in /proc.
const TICK_S: f64 = 0.01;
const PAUSE_MAX: Duration = Duration::from_millis(5);
/// Number of random paths per run, instead of 10,000, unless tests may take at least this time, in s.
const REPLAY_PATHS: &str = "200";
const ALL_PATHS_S_MIN: f64 = 60.0;
/// Address space of a test, in KiB: a mutant must not fill the computer's memory.
const MEMORY_KIB: &str = "8000000";

/// A test.
pub struct Test {
    program: PathBuf,
    folder: PathBuf,
    name: String,
    /// Program and name.
    pub title: String,
    /// Processor time that it takes with no mutant switched on, in s.
    pub time_s: f64,
    replay_paths: &'static str,
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
    /// False if a test takes longer than the limit.
    pub is_complete: bool,
}

impl Suite {
    /// Runs every requested test once, and notes its time and the mutants that it reaches. Tests that take longer than
    /// the limit are left out. Measurements of programs that have not been built again since are read from a file.
    pub fn measured(tree: &Tree, programs: &[Program], request: &Request) -> Result<Suite, String> {
        let mut suite = Suite {
            tests: Vec::new(),
            reaching: BTreeMap::new(),
            is_complete: true,
        };
        let mut known = Measurements::open(tree.folder.with_extension("measured"))?;
        let reached = tree.folder.with_extension("reached");
        let replay_paths = match request.limit_s >= ALL_PATHS_S_MIN {
            true => "10000",
            false => REPLAY_PATHS,
        };
        for program in programs {
            let version = version(program)?;
            for name in names(program)? {
                let mut test = Test {
                    program: program.path.clone(),
                    folder: program.folder.clone(),
                    title: format!("{} {name}", program.name),
                    name,
                    time_s: 0.0,
                    replay_paths,
                };
                if !contains_any(&test.title, &request.tests) {
                    continue;
                }
                let key = format!("{version} {replay_paths}\t{}", test.title);
                let measured = match known.get(&key, request.limit_s) {
                    Some(measured) => measured,
                    None => known.add(key, test.measure(&reached, request.limit_s)?)?,
                };
                match measured {
                    Measurement::Ended { time_s, reached } if time_s <= request.limit_s => {
                        test.time_s = time_s;
                        for id in reached {
                            let tests = suite.reaching.entry(id).or_default();
                            tests.push(suite.tests.len());
                        }
                        suite.tests.push(test);
                    }
                    _ => {
                        eprintln!("left out, because it takes too long: {}", test.title);
                        suite.is_complete = false;
                    }
                }
            }
        }
        Ok(suite)
    }
}

/// Returns a text that changes when a program is built again.
fn version(program: &Program) -> Result<String, String> {
    let modified = std::fs::metadata(&program.path).and_then(|it| it.modified());
    let since = modified
        .map_err(at(&program.path))?
        .duration_since(UNIX_EPOCH)
        .map_err(|error| error.to_string())?;
    let file = program.path.file_name().unwrap_or_default();
    Ok(format!("{} {}", file.to_string_lossy(), since.as_nanos()))
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
    /// Runs the test without a mutant, and stops it if it takes much longer than the limit.
    fn measure(&self, reached: &Path, limit_s: f64) -> Result<Measurement, String> {
        let _ = std::fs::remove_file(reached);
        let begun_s = processor_s()?;
        // Twice the limit, because noting what it reaches takes time, too.
        let verdict = self.run(
            &[("PLANTED_REACHED", &reached.to_string_lossy())],
            limit_s * 2.0,
        )?;
        let time_s = processor_s()? - begun_s;
        let lines = std::fs::read_to_string(reached).unwrap_or_default();
        let reached = lines.lines().filter_map(|line| line.parse().ok()).collect();
        match verdict {
            Verdict::Passed => Ok(Measurement::Ended { time_s, reached }),
            Verdict::Failed => Err(format!("{} fails without a mutant", self.title)),
            Verdict::TimedOut => Ok(Measurement::Stopped { limit_s }),
        }
    }

    /// Runs the test with a mutant switched on.
    pub fn run_with(&self, mutant: u32) -> Result<Verdict, String> {
        let limit_s = self.time_s * PROCESSOR_FACTOR;
        self.run(&[("PLANTED", &mutant.to_string())], limit_s)
    }

    fn run(&self, environment: &[(&str, &str)], limit_s: f64) -> Result<Verdict, String> {
        let processor_s = limit_s.clamp(PROCESSOR_S_MIN, PROCESSOR_S_MAX).ceil();
        let wall_s = processor_s * WALL_FACTOR;
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!(
                "ulimit -t {processor_s:.0}; ulimit -v {MEMORY_KIB}; ulimit -c 0; exec \"$0\" --exact \"$1\" --test-threads=1"
            ))
            .arg(&self.program)
            .arg(&self.name)
            .current_dir(&self.folder)
            .env("REPLAY_PATHS", self.replay_paths)
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
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
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Returns the processor time of all programs that this process has run, in s.
fn processor_s() -> Result<f64, String> {
    const STAT: &str = "/proc/self/stat";
    /// Fields of user and system time after the name, which is in parentheses.
    const USER: usize = 13;
    const SYSTEM: usize = 14;
    let text = std::fs::read_to_string(STAT).map_err(at(Path::new(STAT)))?;
    let fields = text.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = [USER, SYSTEM].map(|at| fields.get(at).and_then(|it| it.parse::<f64>().ok()));
    match ticks {
        [Some(user), Some(system)] => Ok((user + system) * TICK_S),
        _ => Err(format!("{STAT}: no processor times")),
    }
}
