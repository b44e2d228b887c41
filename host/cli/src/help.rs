//! End of every `--help`: the spelling of values, and the exit codes.

use clap::Command;

/// An exit code and its meaning.
struct ExitCode {
    code: &'static str,
    meaning: &'static str,
    /// Commands that have it; empty for all.
    commands: &'static [&'static str],
}

const fn of_all(code: &'static str, meaning: &'static str) -> ExitCode {
    of(code, meaning, &[])
}

const fn of(
    code: &'static str,
    meaning: &'static str,
    commands: &'static [&'static str],
) -> ExitCode {
    ExitCode {
        code,
        meaning,
        commands,
    }
}

/// All exit codes in ascending order.
const EXIT_CODES: [ExitCode; 11] = [
    of_all("0", "success"),
    of(
        "1",
        "samples are unaccounted for: neither in files nor in reported gaps",
        &["record"],
    ),
    of_all(
        "2",
        "bad input or arguments, or a file or storage device failed",
    ),
    of("2", "fake: a block lost its data or failed", &["check"]),
    of(
        "3",
        "samples were lost; the reported gaps list all of them",
        &["record"],
    ),
    of(
        "4",
        "the storage device is full, and samples were lost",
        &["record"],
    ),
    of(
        "5",
        "a condition of --fail-if holds, or cannot be decided",
        &["bench", "analyze", "compare", "record", "plan", "sweep"],
    ),
    of(
        "6",
        "not tested: no fault found in less than 99 % of the capacity",
        &["check"],
    ),
    of("129", "ended by SIGHUP", SIGNALS),
    of("130", "ended by SIGINT (Ctrl-C)", SIGNALS),
    of("143", "ended by SIGTERM", SIGNALS),
];

/// Commands that catch signals to end cleanly.
const SIGNALS: &[&str] = &[
    PROGRAM,
    "bench",
    "check",
    "flash-benchmark",
    "compare",
    "record",
    "serve",
    "demo",
    "get",
    "sweep",
];

/// The program without a command, which does the same as `bench`.
const PROGRAM: &str = "cardiograph";

/// Values that need an explanation: the name in the help, and the spelling.
const SPELLINGS: [(&str, &str); 4] = [
    ("HZ", "a number per second, without a unit"),
    (
        "TIME",
        "a number and a unit, such as 500us, 50ms, 60s, 2min or 24h",
    ),
    (
        "SIZE",
        "a number and a unit, such as 512B, 64KiB (65536 B) or 64kB (64000 B)",
    ),
    ("BYTES", "a number of bytes, without a unit"),
];

/// Appends spellings and exit codes to the help of every command.
pub fn complete(program: Command) -> Command {
    let names: Vec<String> = program
        .get_subcommands()
        .map(|command| command.get_name().to_string())
        .collect();
    names.iter().fold(completed(program), |program, name| {
        program.mut_subcommand(name, completed)
    })
}

fn completed(command: Command) -> Command {
    let own = command.get_after_help().map(ToString::to_string);
    let codes = exit_codes(command.get_name());
    let parts = [own, spellings(&command), Some(codes)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    command.after_help(parts.join("\n\n"))
}

/// Returns the spellings of the values that the command's options have.
fn spellings(command: &Command) -> Option<String> {
    let names = || {
        let options = command.get_arguments();
        options.flat_map(|option| option.get_value_names().unwrap_or_default())
    };
    let has = |name: &str| names().any(|found| found.split('|').any(|part| part == name));
    let found = SPELLINGS.iter().filter(|(name, _)| has(name));
    let lines: Vec<String> = found
        .map(|(name, spelling)| format!("\n  {name:<5} {spelling}"))
        .collect();
    (!lines.is_empty()).then(|| format!("Values:{}", lines.concat()))
}

fn exit_codes(command: &str) -> String {
    let codes = EXIT_CODES
        .iter()
        .filter(|code| code.commands.is_empty() || code.commands.contains(&command));
    let rows = codes.map(|code| format!("\n  {:<4} {}", code.code, code.meaning));
    // `record/exit.rs` uses this order.
    let note = match command {
        "record" => {
            "\nIf several apply, the first in the order 1, 2, 4, 3, 5 is returned, and the code of a signal only if none of these applies.\n\
             With --compare, lost samples are not an error."
        }
        _ => "",
    };
    format!("Exit codes:{}{note}", rows.collect::<String>())
}
