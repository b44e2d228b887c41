//! The recipes in docs/recipes.md, run as written, and their figures next to those of `analyze`.

use crate::common;

use common::{directory, json, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const RECIPES: &str = include_str!("../../../docs/recipes.md");

/// Section, language and text of every fenced block, in order.
fn blocks() -> Vec<(&'static str, &'static str, String)> {
    let (mut section, mut blocks, mut open) = ("", Vec::new(), false);
    for line in RECIPES.lines() {
        if let Some(language) = line.strip_prefix("```") {
            open = !open;
            if open {
                blocks.push((section, language, String::new()));
            }
        } else if open {
            let (_, _, text) = blocks.last_mut().unwrap();
            *text += &format!("{line}\n");
        } else if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
    }
    blocks
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a recipe; returns what it printed.
fn python(directory: &Path, code: &str) -> String {
    let python = root().join("target/python/bin/python3");
    assert!(
        python.exists(),
        "Python packages are missing; run `cargo xtask test`, which installs them"
    );
    let mut command = Command::new(python);
    let output = command.args(["-c", code]).current_dir(directory).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{code}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the commands of a block.
fn shell(directory: &Path, block: &str) {
    for line in block.lines() {
        let words: Vec<&str> = line
            .strip_prefix("cardiograph ")
            .unwrap()
            .split(' ')
            .collect();
        let run = run(directory, &words);
        assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
    }
}

/// The three latencies of a line, in us.
fn latencies_us(line: &str) -> Vec<f64> {
    let words = line.split([' ', ',']).filter_map(|word| word.parse().ok());
    words.map(|ms: f64| ms * 1e3).collect()
}

#[test]
#[ignore = "needs python3 and its packages"]
fn every_recipe_prints_the_figures_of_analyze() {
    let own = directory();
    std::os::unix::fs::symlink(root().join("tests"), own.path().join("tests")).unwrap();
    let (mut expected, mut ran) = (String::new(), Vec::new());
    for (section, language, text) in blocks() {
        let printed = match language {
            "sh" => {
                shell(own.path(), &text);
                continue;
            }
            "text" => {
                expected = text;
                continue;
            }
            "python" => python(own.path(), &text),
            "sql" => {
                let code =
                    format!("import duckdb\nprint(duckdb.sql('''{text}''').fetchall()[0][0])");
                python(own.path(), &code)
            }
            // The document says that this one is untested.
            "matlab" => continue,
            _ => panic!("{language}"),
        };
        ran.push(section);
        if !section.starts_with("From these") {
            assert_eq!(printed, expected, "{section}");
        }
    }
    let sections = ["pandas", "pandas", "pandas", "polars", "DuckDB"];
    assert_eq!(
        ran,
        [&sections[..], &["From these programs to `analyze`"]].concat()
    );

    let figures = json(own.path(), &["analyze", "card.parquet"]);
    let stated = latencies_us(&expected);
    for (name, us) in ["median", "p99", "worst_case"].into_iter().zip(&stated) {
        let found = figures["latency_us"][name].as_f64().unwrap();
        // The histogram is accurate to 0.8 %, and three digits are accurate to 0.25 %.
        assert!((found / us - 1.0).abs() < 0.0105, "{name}: {found}, {us}");
    }
    assert_eq!(stated.len(), 3);
}

/// Each program wrote the rows above the median latency.
#[test]
#[ignore = "needs python3 and its packages"]
fn files_of_other_programs_have_the_figures_of_their_rows() {
    let own = directory();
    shell(own.path(), &blocks()[0].2);
    let of_section = blocks()
        .into_iter()
        .find(|block| block.0.starts_with("From these"));
    python(own.path(), &of_section.unwrap().2);
    let script = "import pandas; t = pandas.read_parquet('card.parquet'); ns = t['end_ns'] - t['start_ns']; \
        ns = ns[ns > ns.median()]; print(len(ns), ns.sum(), ns.min(), ns.max())";
    let expected: Vec<f64> = python(own.path(), script)
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    let names = ["pandas.parquet", "polars.parquet", "duckdb.parquet"];
    let all = json(own.path(), &[&["analyze"], &names[..]].concat());
    for (figures, name) in all.as_array().unwrap().iter().zip(names) {
        let latency = |key: &str| figures["latency_us"][key].as_f64().unwrap();
        let writes = figures["writes"].as_f64().unwrap();
        assert_eq!(writes, expected[0], "{name}");
        assert_eq!(latency("min"), expected[2] / 1e3, "{name}");
        assert_eq!(latency("worst_case"), expected[3] / 1e3, "{name}");
        let mean_us = expected[1] / writes / 1e3;
        assert!((latency("mean") - mean_us).abs() < 0.001, "{name}");
    }
}
