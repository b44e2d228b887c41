//! A record of finished batches of cases, so that a million power cuts can be divided among several runs.

use crate::outcome::Outcome;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Number of cases per batch, which is one line of the table.
pub const BATCH_CASES: u64 = 10_000;

const HEAD: &str = "| cases | power cuts | with faults | exchanged | samples found | late windows | failures | s | recorder | judge |
|---|---|---|---|---|---|---|---|---|---|
";

/// Finished batches of the current recorder and judge. Recorder (with the driver of the card) and judge are identified
/// by a hash of their code without comments.
pub struct Ledger {
    path: PathBuf,
    versions: [String; 2],
    /// Cases and number of power cuts of each batch that the current recorder and judge have finished.
    finished: Vec<(Range<u64>, u64)>,
    begun: Instant,
}

impl Ledger {
    /// Opens today's ledger file, and reads the files of other days.
    ///
    /// # Errors
    /// If git fails or a file cannot be read.
    pub fn open() -> Result<Ledger, String> {
        let root = capture("git", &["rev-parse", "--show-toplevel"])?;
        let root = Path::new(&root);
        let folder = root.join("benchmarks/runs");
        let versions = [
            version(root, &["core/recorder/src", "core/card/src"])?,
            version(root, &["sim/power_cut/src"])?,
        ];
        let days = SystemTime::now().duration_since(UNIX_EPOCH);
        let days = days.map_or(0, |elapsed| elapsed.as_secs() / 86_400);
        let mut ledger = Ledger {
            path: folder.join(format!("{}-power-cuts.md", date(days))),
            versions,
            finished: Vec::new(),
            begun: Instant::now(),
        };
        let files = fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        for file in files.flatten() {
            if file
                .file_name()
                .to_string_lossy()
                .ends_with("-power-cuts.md")
            {
                let text = fs::read_to_string(file.path()).map_err(|why| why.to_string())?;
                let lines = text.lines().filter_map(|line| ledger.parse(line));
                let lines: Vec<_> = lines.collect();
                ledger.finished.extend(lines);
            }
        }
        Ok(ledger)
    }

    /// Parses a line of the ledger; returns its cases and power cuts if there were no failures and the line
    /// belongs to the current recorder and judge.
    fn parse(&self, line: &str) -> Option<(Range<u64>, u64)> {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, cases, cuts, .., "0", _, recorder, judge, ""] = fields[..] else {
            return None;
        };
        let (from, to) = cases.split_once("..")?;
        let range = from.parse().ok()?..to.parse().ok()?;
        let is_own = self.versions == [recorder, judge];
        is_own.then_some((range, cuts.parse().ok()?))
    }

    /// Returns true if a batch is finished.
    pub fn has(&self, batch: &Range<u64>) -> bool {
        self.finished
            .iter()
            .any(|(finished, _)| finished.start <= batch.start && batch.end <= finished.end)
    }

    /// Records a finished batch.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, batch: &Range<u64>, of: &Outcome, failures: u64) -> Result<(), String> {
        let wrong = |why: std::io::Error| format!("{}: {why}", self.path.display());
        let is_new = !self.path.exists();
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        let mut file = file.map_err(wrong)?;
        if is_new {
            write!(file, "# Power cuts\n\n{HEAD}").map_err(wrong)?;
        }
        let seconds = self.begun.elapsed().as_secs();
        self.begun = Instant::now();
        writeln!(
            file,
            "| {}..{} | {} | {} | {} | {} | {} | {failures} | {seconds} | {} | {} |",
            batch.start,
            batch.end,
            of.cuts,
            of.with_faults,
            of.exchanged,
            of.found.samples,
            of.found.late,
            self.versions[0],
            self.versions[1],
        )
        .map_err(wrong)?;
        if failures == 0 {
            self.finished.push((batch.clone(), of.cuts));
        }
        Ok(())
    }

    /// Summarises the finished batches of the current recorder and judge in one sentence.
    pub fn summary(&self) -> String {
        let cuts: u64 = self.finished.iter().map(|(_, cuts)| cuts).sum();
        let cases: u64 = self
            .finished
            .iter()
            .map(|(range, _)| range.end - range.start)
            .sum();
        format!(
            "{cuts} power cuts in {cases} cases without a failure so far (recorder {}, judge {})",
            self.versions[0], self.versions[1]
        )
    }
}

fn capture(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|why| format!("{program}: {why}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Returns a hash (FNV-1a) of the sources in these folders, without their comments.
fn version(root: &Path, folders: &[&str]) -> Result<String, String> {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        let wrong = |why: std::io::Error| format!("{}: {why}", folder.display());
        let entries = fs::read_dir(&folder).map_err(wrong)?;
        let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|it| it.path())).collect();
        let mut paths = paths.map_err(wrong)?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).map_err(wrong)?;
            let code = text.lines().filter(|line| !line.trim().starts_with("//"));
            for byte in code.flat_map(str::bytes) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
    }
    Ok(format!("{:010x}", hash >> 24))
}

/// Returns the date of a day number counted from 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn day_numbers_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_779), "2026-11-22");
    }
}
