//! The long lanes: what takes too long for every commit. CI runs a slice of one of them, chosen by the number of commits.

use crate::run::{cargo, check, output_of, root};
use crate::{attack, boards, fuzz, power_cut, qemu, rp2040};
use std::path::PathBuf;
use std::process::Command;

/// A lane. `tests/lanes.md` says what each proves, and when it last ran whole.
struct Lane {
    name: &'static str,
    whole: fn() -> Result<(), String>,
    /// At most five minutes. The number makes consecutive slices differ. Returns the number of tests passed.
    slice: fn(u64) -> Result<usize, String>,
}

const LANES: [Lane; 7] = [
    Lane {
        name: "states",
        whole: || tests_of("cardiograph-recorder", "100"),
        slice: |_| slice_of("cardiograph-recorder", &["--lib", "plan::search"]),
    },
    Lane {
        name: "power-cut",
        whole: || {
            power_cut::with(&["--cuts", "100000"])
                .and_then(|()| power_cut::with(&["--every-write", "1"]))
        },
        slice: power_cut::slice,
    },
    Lane {
        name: "fuzz",
        whole: || fuzz::for_seconds(600),
        slice: fuzz::other_runs,
    },
    Lane {
        name: "boards",
        whole: || {
            boards::all()
                .and_then(|_| qemu::long())
                .and_then(|()| rp2040::long())
        },
        slice: boards::slice,
    },
    Lane {
        name: "coverage",
        whole: || tests_of("cardiograph-plan", "100"),
        slice: |_| slice_of("cardiograph-plan", &["--tests"]),
    },
    Lane {
        name: "attack",
        whole: attack::lane,
        slice: attack::slice,
    },
    Lane {
        name: "probe",
        whole: || tests_of("cardiograph-probe", "100"),
        slice: |_| slice_of("cardiograph-probe", &["--tests"]),
    },
];

const TABLE: &str = "tests/lanes.md";
/// Age of a whole run beyond which CI warns, in days.
const AGE_DAYS_MAX: u64 = 14;
const EFFORT: &str = "CARDIOGRAPH_EFFORT";

/// Runs a whole lane, and writes the date to the table.
pub fn whole(name: &str) -> Result<(), String> {
    let lane = LANES.iter().find(|lane| lane.name == name);
    let lane = lane.ok_or_else(|| {
        let names = LANES.map(|lane| lane.name).join(", ");
        format!("no lane is called {name}; lanes: {names}")
    })?;
    (lane.whole)()?;
    let date = output_of(Command::new("date").arg("+%F"))?;
    let commit = output_of(
        Command::new("git")
            .args(["rev-parse", "--short", "HEAD"])
            .current_dir(root()),
    )?;
    let text = with_date(
        &table()?,
        name,
        &format!("{} ({})", date.trim(), commit.trim()),
    )?;
    std::fs::write(path(), text).map_err(|error| format!("{TABLE}: {error}"))
}

/// Runs the slice that this commit's number chooses; returns the number of tests passed.
pub fn slice_of_commit() -> Result<usize, String> {
    let count = output_of(
        Command::new("git")
            .args(["rev-list", "--count", "HEAD"])
            .current_dir(root()),
    )?;
    let count = count
        .trim()
        .parse()
        .map_err(|_| format!("git counted {count:?} commits"))?;
    slice(count)
}

/// Runs the slice of a number of commits.
pub fn slice(commits: u64) -> Result<usize, String> {
    let lanes = LANES.len() as u64;
    let lane = &LANES[(commits % lanes) as usize];
    println!(
        "\nslice {} of the lane {}; to repeat: cargo xtask lane --slice {commits}",
        commits / lanes,
        lane.name
    );
    (lane.slice)(commits / lanes)
}

/// Prints the lanes whose last whole run is too old, or that never ran whole.
pub fn warn_of_old_runs() -> Result<(), String> {
    let today = days_of("today")?;
    let table = table()?;
    for lane in &LANES {
        let date = row_of(&table, lane.name)?
            .trim_end_matches([' ', '|'])
            .rsplit("| ")
            .next()
            .unwrap_or("");
        let date = date.split(' ').next().unwrap_or("");
        match days_of(date) {
            Ok(day) if today.saturating_sub(day) <= AGE_DAYS_MAX => {}
            Ok(day) => println!(
                "warning: the lane {} last ran whole {} days ago",
                lane.name,
                today - day
            ),
            Err(_) => println!("warning: the lane {} has never run whole", lane.name),
        }
    }
    Ok(())
}

fn path() -> PathBuf {
    root().join(TABLE)
}

fn table() -> Result<String, String> {
    std::fs::read_to_string(path()).map_err(|error| format!("{TABLE}: {error}"))
}

fn row_of<'a>(table: &'a str, name: &str) -> Result<&'a str, String> {
    let start = format!("| `{name}` |");
    let row = table.lines().find(|line| line.starts_with(&start));
    row.ok_or_else(|| format!("{TABLE}: no row begins with {start}"))
}

/// Returns the table with another date in the last column of a lane.
fn with_date(table: &str, name: &str, date: &str) -> Result<String, String> {
    let row = row_of(table, name)?;
    let (before, _) = row
        .trim_end_matches([' ', '|'])
        .rsplit_once('|')
        .unwrap_or((row, ""));
    Ok(table.replace(row, &format!("{before}| {date} |")))
}

/// Returns the number of days from 1970 to a date.
fn days_of(date: &str) -> Result<u64, String> {
    let seconds = output_of(Command::new("date").args(["-u", "+%s", "-d", date]))?;
    let seconds: u64 = seconds
        .trim()
        .parse()
        .map_err(|_| format!("date printed {seconds:?}"))?;
    Ok(seconds / 86_400)
}

/// Runs all tests of a package with more effort, optimised, with every check of the compiler in place.
fn tests_of(package: &str, effort: &str) -> Result<(), String> {
    let mut test = cargo(&["test", "--release", "--package", package]);
    test.args(["--lib", "--tests", "--", "--include-ignored", "--nocapture"]);
    test.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    test.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    check(test.env(EFFORT, effort))
}

/// Runs tests at effort 10, as the tests of the first layer are built.
fn slice_of(package: &str, tests: &[&str]) -> Result<usize, String> {
    let mut test = cargo(&["test", "--package", package]);
    check(test.args(tests).env(EFFORT, "10"))?;
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_one_lane_is_replaced() {
        let table =
            "| lane | proves | last |\n|---|---|---|\n| `a` | x | never |\n| `b` | y | never |\n";
        let dated = with_date(table, "b", "2026-11-29").unwrap();
        assert!(
            dated.ends_with("| `a` | x | never |\n| `b` | y | 2026-11-29 |\n"),
            "{dated}"
        );
        assert!(with_date(table, "c", "2026-11-29").is_err());
    }

    #[test]
    fn every_lane_has_a_row() {
        let table = table().unwrap();
        for lane in &LANES {
            row_of(&table, lane.name).unwrap();
        }
    }
}
