//! The copy of the checkout in which mutants are planted, and its programs.

use crate::list::Mutant;
use crate::plant::{Planted, plant};
use crate::{CRATES, PACKAGES, at, cargo, output_of, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Appended to each mutated crate. `PLANTED` switches a mutant on; with `PLANTED_REACHED`, each mutant that a program
/// reaches is written to this file.
const SWITCH: &str = r#"
#[allow(missing_docs)]
mod planting {
    extern crate std;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    use std::io::Write;
    const UNKNOWN: u32 = u32::MAX;
    const WATCH: u32 = u32::MAX - 1;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    #[inline(always)]
    pub(crate) fn planted(id: u32) -> bool {
        let active = ACTIVE.load(Relaxed);
        active == id || (active >= WATCH && slow(id, active))
    }
    #[cold]
    fn slow(id: u32, active: u32) -> bool {
        if active == WATCH && REACHED[id as usize].load(Relaxed) {
            return false;
        }
        let file = std::env::var_os("PLANTED_REACHED");
        if active == UNKNOWN {
            let number = std::env::var("PLANTED").ok().and_then(|text| text.parse().ok());
            let or = if file.is_some() { WATCH } else { 0 };
            ACTIVE.store(number.unwrap_or(or), Relaxed);
            return planted(id);
        }
        if let Some(file) = file && !REACHED[id as usize].swap(true, Relaxed) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
            let line = std::format!("{id}\n");
            file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
        }
        false
    }
}
pub(crate) use planting::planted;
"#;

/// A copy of the checkout.
pub struct Tree {
    pub folder: PathBuf,
    /// Source files of the mutated crates, which are written with the mutants in them.
    sources: Vec<String>,
}

/// A program with tests.
pub struct Program {
    pub path: PathBuf,
    /// Folder of its crate, in which its tests run.
    pub folder: PathBuf,
    pub name: String,
}

impl Tree {
    /// Copies the files of the checkout that git tracks or would track. Unchanged files keep their times, so that only
    /// what depends on changed ones is built again.
    pub fn new(folder: PathBuf) -> Result<Tree, String> {
        let mut list = Command::new("git");
        list.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let files = output_of(list.current_dir(root()))?;
        for name in CRATES {
            let there = files.lines().filter(|file| root().join(file).exists());
            remove_others(&folder, &folder.join(name), &there.collect())?;
        }
        let is_source = |file: &&str| {
            let name = CRATES.iter().find(|name| file.starts_with(*name));
            name.is_some_and(|name| file[name.len()..].starts_with("/src/"))
                && file.ends_with(".rs")
                && root().join(file).exists()
        };
        let (sources, others): (Vec<&str>, Vec<&str>) = files.lines().partition(is_source);
        for file in others {
            let (from, to) = (root().join(file), folder.join(file));
            // A file that was removed is still tracked.
            let Ok(bytes) = std::fs::read(&from) else {
                continue;
            };
            if std::fs::read(&to).is_ok_and(|old| old == bytes) {
                continue;
            }
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent).map_err(at(parent))?;
            }
            std::fs::write(&to, bytes).map_err(at(&to))?;
        }
        Ok(Tree {
            folder,
            sources: sources.into_iter().map(str::to_string).collect(),
        })
    }

    /// Plants all mutants that compile; returns their numbers.
    pub fn plant(&self, mutants: &[Mutant]) -> Result<BTreeSet<u32>, String> {
        let mut removed = self.known_failures(mutants);
        loop {
            let files = self.write(mutants, &removed)?;
            let failed = self.failed_places(&files)?;
            if failed.is_empty() {
                self.keep_failures(mutants, &removed)?;
                let all = files.values().flat_map(|planted| &planted.places);
                return Ok(all.map(|(_, id)| *id).collect());
            }
            eprintln!("{} mutants do not compile as a branch", failed.len());
            removed.extend(failed);
        }
    }

    /// Returns the mutants that did not compile in an earlier run, unless their functions have changed. With them, the
    /// planted files would change twice, and everything would be built again.
    fn known_failures(&self, mutants: &[Mutant]) -> BTreeSet<u32> {
        let text = std::fs::read_to_string(self.failures_path()).unwrap_or_default();
        let known: BTreeSet<&str> = text.lines().collect();
        let failed = mutants.iter().filter(|it| known.contains(&*it.key));
        failed.map(|mutant| mutant.id).collect()
    }

    fn keep_failures(&self, mutants: &[Mutant], failed: &BTreeSet<u32>) -> Result<(), String> {
        let mut text = String::new();
        for mutant in mutants.iter().filter(|mutant| failed.contains(&mutant.id)) {
            text.push_str(&mutant.key);
            text.push('\n');
        }
        let path = self.failures_path();
        std::fs::write(&path, text).map_err(at(&path))
    }

    fn failures_path(&self) -> PathBuf {
        self.folder.with_extension("failures")
    }

    fn write(
        &self,
        mutants: &[Mutant],
        removed: &BTreeSet<u32>,
    ) -> Result<BTreeMap<String, Planted>, String> {
        let mut by_file: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
        for mutant in mutants
            .iter()
            .filter(|mutant| !removed.contains(&mutant.id))
        {
            by_file.entry(&mutant.file).or_default().push(mutant);
        }
        for file in &self.sources {
            by_file.entry(file).or_default();
        }
        let count = (mutants.len() + 1).to_string();
        let mut files = BTreeMap::new();
        for (file, mutants) in by_file {
            let source = root().join(file);
            let source = std::fs::read_to_string(&source).map_err(at(&source))?;
            let mut planted =
                plant(&source, &mutants).map_err(|error| format!("{file}: {error}"))?;
            if CRATES.iter().any(|name| switch_file(name) == file) {
                planted.text.push_str(&SWITCH.replace("COUNT", &count));
            }
            let to = self.folder.join(file);
            if std::fs::read_to_string(&to).map_or(true, |old| old != planted.text) {
                if let Some(parent) = to.parent() {
                    std::fs::create_dir_all(parent).map_err(at(parent))?;
                }
                std::fs::write(&to, &planted.text).map_err(at(&to))?;
            }
            files.insert(file.to_string(), planted);
        }
        Ok(files)
    }

    /// Compiles the crates; returns the mutants at the places of errors.
    fn failed_places(&self, files: &BTreeMap<String, Planted>) -> Result<BTreeSet<u32>, String> {
        let mut failed = BTreeSet::new();
        for package in PACKAGES {
            let (is_ok, messages) = self.cargo(&["check", "--lib", "--package", package])?;
            if is_ok {
                continue;
            }
            for message in messages
                .iter()
                .filter(|message| message["message"]["level"] == "error")
            {
                let spans = message["message"]["spans"].as_array();
                for span in spans.into_iter().flatten() {
                    failed.extend(mutants_at(span, files));
                }
            }
            if failed.is_empty() {
                let rendered = messages
                    .iter()
                    .filter_map(|it| it["message"]["rendered"].as_str());
                return Err(rendered.collect::<Vec<_>>().join("\n"));
            }
            // The other crate depends on this one.
            return Ok(failed);
        }
        Ok(failed)
    }

    /// Runs cargo in the copy; returns true if it succeeded, and its messages.
    fn cargo(&self, args: &[&str]) -> Result<(bool, Vec<Value>), String> {
        let mut command = cargo();
        command
            .args(args)
            .args(["--quiet", "--message-format", "json"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.with_extension("build"))
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
            .env("RUSTFLAGS", "--cap-lints=allow")
            .stderr(Stdio::null());
        let output = command
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok((output.status.success(), messages.collect()))
    }

    /// Builds the test programs of the given packages.
    pub fn programs(&self, packages: &[&str]) -> Result<Vec<Program>, String> {
        let mut args = vec!["test", "--no-run"];
        for package in packages {
            args.extend(["--package", package]);
        }
        let (is_ok, messages) = self.cargo(&args)?;
        let mut programs = Vec::new();
        for message in &messages {
            let Some(path) = message["executable"].as_str() else {
                continue;
            };
            let manifest = message["manifest_path"].as_str().map(Path::new);
            let (Some(folder), true) = (
                manifest.and_then(Path::parent),
                message["profile"]["test"].as_bool().unwrap_or(false),
            ) else {
                continue;
            };
            let crate_name = folder.file_name().unwrap_or_default().to_string_lossy();
            programs.push(Program {
                path: PathBuf::from(path),
                folder: folder.to_path_buf(),
                name: format!(
                    "{crate_name}/{}",
                    message["target"]["name"].as_str().unwrap_or("")
                ),
            });
        }
        if is_ok {
            return Ok(programs);
        }
        let rendered = messages
            .iter()
            .filter_map(|it| it["message"]["rendered"].as_str());
        Err(rendered.collect::<Vec<_>>().join("\n"))
    }
}

/// Removes the files below a folder of the copy that are no longer in the checkout.
fn remove_others(copy: &Path, folder: &Path, files: &BTreeSet<&str>) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry.map_err(at(folder))?.path();
        let name = path.strip_prefix(copy).ok().and_then(Path::to_str);
        match path.is_dir() {
            true => remove_others(copy, &path, files)?,
            false if name.is_some_and(|name| files.contains(name)) => (),
            false => std::fs::remove_file(&path).map_err(at(&path))?,
        }
    }
    Ok(())
}

fn switch_file(name: &str) -> &'static str {
    match name {
        "core/card" => "core/card/src/lib.rs",
        _ => "core/recorder/src/lib.rs",
    }
}

/// Returns the mutants whose text, or whose whole expression, contains the place of an error.
fn mutants_at(span: &Value, files: &BTreeMap<String, Planted>) -> Vec<u32> {
    let (Some(file), Some(start), Some(end)) = (
        span["file_name"].as_str(),
        span["byte_start"].as_u64(),
        span["byte_end"].as_u64(),
    ) else {
        return Vec::new();
    };
    let Some(planted) = files.get(file) else {
        return Vec::new();
    };
    let (start, end) = (start as usize, end as usize);
    let within =
        |(range, _): &&(std::ops::Range<usize>, u32)| range.start <= start && end <= range.end;
    let mut found: Vec<_> = planted.places.iter().filter(within).collect();
    if found.is_empty() {
        // The error is about the type of the whole expression.
        let touches =
            |(range, _): &&(std::ops::Range<usize>, u32)| range.start < end && start < range.end;
        found = planted.places.iter().filter(touches).collect();
    }
    found.iter().map(|(_, id)| *id).collect()
}
