//! The terminal: --force and --quiet, colours, the help, and the distribution.

use crate::common;

use common::{Run, command, data, directory, done, refused, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CARD: &str = "sim:class10-16g@esp32";

/// Commands that each write one output. Standard output is empty or a table.
fn commands_with_outputs() -> Vec<(Vec<String>, &'static str)> {
    let fio = data("traces/fio_lat.log").display().to_string();
    let binary = data("recordings/REC00002.BIN").display().to_string();
    let cut_off = data("recordings/cut-off").display().to_string();
    let commands: [(&[&str], &str); 9] = [
        (&["bench", CARD], "--html"),
        (&["analyze", &fio], "--trace"),
        (&["analyze", &fio], "--csv"),
        (&["compare", CARD, CARD], "--html"),
        (&["record", "--for", "1s"], "--json"),
        (
            &["plan", CARD, "--rate", "8", "--sample-bytes", "81"],
            "--json",
        ),
        (&["fit", &fio, "--trials", "2"], "--profile"),
        (&["recover", &cut_off, "--dry-run"], "--json"),
        (&["export", &binary], "--csv"),
    ];
    let owned = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
    commands
        .map(|(words, option)| (owned(words), option))
        .to_vec()
}

#[test]
fn force_replaces_what_is_refused_without_it() {
    for (words, option) in commands_with_outputs() {
        let own = directory();
        fs::write(own.path().join("out"), "mine").unwrap();
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        args.extend([option, "out"]);
        refused(own.path(), &args, &["out: already exists", "--force"]);
        args.push("--force");
        let run = run(own.path(), &args);
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
        let out = fs::read(own.path().join("out")).unwrap();
        assert!(out.len() > 4, "{args:?}");
        assert_eq!(common::names(own.path()), ["out"], "{args:?}");
        // Links, devices and folders stay.
        std::os::unix::fs::symlink("out", own.path().join("link")).unwrap();
        for name in ["link", "/dev/null", "."] {
            let place = args.len() - 2;
            args[place] = name;
            let run = common::run(own.path(), &args);
            assert_eq!(run.code, Some(2), "{args:?}");
            assert_eq!(run.stdout, "", "{args:?}");
        }
    }
}

#[test]
fn force_never_replaces_an_input() {
    let trace = data("traces/fio_lat.log");
    let logger = ["--rate", "8", "--sample-bytes", "81"];
    for (words, option) in [
        (&["analyze", "in"][..], "--json"),
        (&["analyze", "in"], "--html"),
        (&["analyze", "in"], "--trace"),
        (&["compare", "sim:class10-16g@esp32", "in"], "--json"),
        (&[&["plan", "in"], &logger[..]].concat(), "--json"),
        (&["fit", "in"], "--html"),
    ] {
        let own = directory();
        fs::copy(&trace, own.path().join("in")).unwrap();
        std::os::unix::fs::symlink(own.path(), own.path().join("folder")).unwrap();
        for output in ["in", "folder/in"] {
            let args = [words, &[option, output, "--force"]].concat();
            refused(own.path(), &args, &[output, "is an input of this command"]);
        }
        assert_eq!(
            fs::read(own.path().join("in")).unwrap(),
            fs::read(&trace).unwrap()
        );
    }
}

#[test]
fn quiet_hides_notes_but_no_results_and_no_warnings() {
    let own = directory();
    let loud = done(own.path(), &["bench", "--html", "a.html"]);
    let quiet = done(own.path(), &["bench", "--html", "b.html", "--quiet"]);
    assert_eq!(loud.replace("Report: a.html\n", ""), quiet);
    assert!(loud.contains("Report: a.html\n"));
    let binary = data("recordings/REC00002.BIN").display().to_string();
    let export = ["export", &binary, "--csv"];
    assert!(done(own.path(), &[&export[..], &["a.csv"]].concat()).starts_with("Exported"));
    let quiet = [&export[..], &["b.csv", "--quiet"]].concat();
    assert_eq!(done(own.path(), &quiet), "");
    let library = data("traces/library_comparison.csv").display().to_string();
    let table = done(own.path(), &["analyze", &library, "--quiet"]);
    assert!(table.contains("warning: "), "{table}");
    refused(own.path(), &["analyze", "absent", "--quiet"], &["absent"]);
}

/// Runs the command with environment variables that control its colours.
fn in_colours(directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = command(directory, args);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    Run::from(command.output().unwrap())
}

const RED: &str = "\u{1b}[1m\u{1b}[31m";
const YELLOW: &str = "\u{1b}[1m\u{1b}[33m";

#[test]
fn problems_have_colours_only_where_they_are_wanted() {
    let own = directory();
    let library = data("traces/library_comparison.csv").display().to_string();
    let lossy = [
        "record", CARD, "--rate", "4000", "--for", "2s", "--buffer", "2KiB",
    ];
    for (args, coloured) in [
        (&["analyze", "absent"][..], format!("{RED}error:\u{1b}[0m")),
        (
            &["analyze", &library],
            format!("{YELLOW}warning:\u{1b}[0m this"),
        ),
        (&["bench", CARD], format!("{YELLOW}▏ stalls\u{1b}[0m\n")),
        (
            &["bench", CARD, "--fail-if", "max > 1us"],
            format!("{RED}{CARD}: --fail-if"),
        ),
        (&lossy, format!("    lost                   {RED}")),
        (
            &["record", CARD, "--compare", "--for", "2s"],
            format!("  naive          {RED}"),
        ),
    ] {
        let all = |run: &Run| format!("{}{}", run.stdout, run.stderr);
        let forced = in_colours(own.path(), args, &[("CLICOLOR_FORCE", "1")]);
        assert!(all(&forced).contains(&coloured), "{}", all(&forced));
        for variables in [&[][..], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]] {
            let plain = in_colours(own.path(), args, variables);
            assert!(!all(&plain).contains('\u{1b}'), "{}", all(&plain));
            assert_eq!(plain.code, forced.code);
        }
    }
}

/// Returns what a terminal of this width receives from `bench`.
fn on_terminal(columns: u16, variables: &str) -> String {
    let own = directory();
    let program = env!("CARGO_BIN_EXE_cardiograph");
    let line = format!("stty rows 24 cols {columns}; {variables} {program} bench");
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(own.path())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs script"]
fn a_terminal_has_colours_and_bars_of_its_width() {
    let bars = |text: &str| {
        let rows = text.lines().filter(|row| row.starts_with("    from "));
        rows.map(|row| row.matches('█').count()).max().unwrap()
    };
    let wide = on_terminal(120, "");
    assert!(wide.contains(YELLOW), "{wide}");
    assert_eq!(bars(&wide), 40);
    let narrow = on_terminal(60, "NO_COLOR=1");
    assert!(!narrow.contains('\u{1b}'), "{narrow}");
    assert!((8..25).contains(&bars(&narrow)), "{narrow}");
}

/// Returns the rows of the distribution: lower limit as printed, and count.
fn distribution(table: &str) -> Vec<(String, u64)> {
    let rows = table.lines().filter_map(|row| {
        let words: Vec<&str> = row.strip_prefix("    from ")?.split_whitespace().collect();
        let count = words[2].replace(',', "");
        Some((words[..2].join(" "), count.parse().unwrap()))
    });
    rows.collect()
}

#[test]
fn the_distribution_counts_every_write() {
    let own = directory();
    let measured = done(own.path(), &["bench", "--csv", "t.csv"]);
    let rows = distribution(&measured);
    assert_eq!(rows, distribution(&done(own.path(), &["analyze", "t.csv"])));
    let text = fs::read_to_string(own.path().join("t.csv")).unwrap();
    let latencies_ns: Vec<u64> = text
        .lines()
        .skip(1)
        .map(|row| {
            let fields: Vec<&str> = row.split(',').collect();
            let [start, end]: [u64; 2] = [4, 5].map(|index: usize| fields[index].parse().unwrap());
            end - start
        })
        .collect();
    // The shortest write takes 6.02 ms, so the first limit is 2^22 ns.
    assert_eq!(rows[0].0, "4.19 ms");
    for ((limit, count), power) in rows.iter().zip(22..) {
        let is_within = |ns: &&u64| ns.ilog2() == power;
        let expected = latencies_ns.iter().filter(is_within).count() as u64;
        assert_eq!(*count, expected, "from {limit}");
    }
    let counted: u64 = rows.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, latencies_ns.len() as u64);
    let widest = measured.lines().filter(|row| row.starts_with("    from "));
    assert!(widest.map(|row| row.chars().count()).max() <= Some(80));
}

/// Returns the names of all commands.
fn commands() -> Vec<String> {
    let own = directory();
    let help = run(own.path(), &["--help"]).stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

#[test]
fn the_help_of_every_command_lists_its_exit_codes() {
    let own = directory();
    fs::create_dir(own.path().join("man")).unwrap();
    done(own.path(), &["man", "man"]);
    let program = done(own.path(), &["--help"]);
    assert!(program.contains("Exit codes:") && program.contains("\n  130 "));
    for command in commands() {
        let expected = match command.as_str() {
            "record" => "0 1 2 3 4 5 129 130 143",
            "bench" | "compare" => "0 2 5 129 130 143",
            "analyze" => "0 2 5",
            "check" => "0 2 2 6 129 130 143",
            "plan" => "0 2 5",
            "sweep" => "0 2 5 129 130 143",
            "flash-benchmark" | "serve" | "demo" | "get" => "0 2 129 130 143",
            _ => "0 2",
        };
        let help = done(own.path(), &[&command, "--help"]);
        let (_, table) = help.split_once("\nExit codes").unwrap();
        let codes = table.lines().skip(1).filter_map(|line| {
            let code = line.strip_prefix("  ")?.split_whitespace().next()?;
            code.parse::<u8>().is_ok().then(|| code.to_string())
        });
        assert_eq!(codes.collect::<Vec<_>>().join(" "), expected, "{command}");
        assert_eq!(
            help.contains("--fail-if <"),
            expected.contains('5'),
            "{help}"
        );
        let page = fs::read_to_string(own.path().join(format!("man/cardiograph-{command}.1")));
        assert!(page.unwrap().contains("Exit codes"), "{command}");
    }
}

/// Values of options that have no default, because such an option has no effect unless it is given.
const WITHOUT_DEFAULT: [&str; 3] = ["<FILE>", "<CONDITION>", "<DISK>"];
/// Options that are required.
const REQUIRED: [&str; 2] = ["plan --rate", "plan --sample-bytes"];

#[test]
fn the_help_states_the_default_and_the_unit_of_every_option() {
    let own = directory();
    for command in commands() {
        let help = done(own.path(), &[&command, "--help"]);
        let (_, options) = help.split_once("\nOptions:\n").unwrap();
        let (options, _) = options.split_once("\nExit codes").unwrap();
        let begin = |line: &str| line.trim_start().starts_with('-') && line.starts_with("  ");
        let mut texts: Vec<String> = Vec::new();
        for line in options.lines() {
            match texts.last_mut() {
                _ if begin(line) && !line.trim_start().starts_with("- ") => {
                    texts.push(line.trim().to_string());
                }
                Some(text) => *text += line,
                None => (),
            }
        }
        assert!(!texts.is_empty(), "{help}");
        for text in texts.iter().filter(|text| text.contains(" <")) {
            let name = text.split_whitespace().find(|word| word.starts_with("--"));
            let name = format!("{command} {}", name.unwrap());
            let has_none = WITHOUT_DEFAULT.iter().any(|value| text.contains(value));
            let is_stated = text.contains("[default") || REQUIRED.contains(&name.as_str());
            assert!(has_none || is_stated, "{name} has no default: {text}");
        }
        for value in ["HZ", "TIME", "SIZE", "BYTES"] {
            let has = ["<V>", "<V|", "|V>"]
                .map(|pattern| pattern.replace('V', value))
                .iter()
                .any(|pattern| options.contains(pattern));
            assert_eq!(
                has,
                options.contains(&format!("\n  {value:<5} a number")),
                "{command} {value}"
            );
        }
    }
}
