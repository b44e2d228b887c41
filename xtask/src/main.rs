//! `cargo xtask test`: everything CI checks, in one command; installs what it lacks.
//!
//! `cargo xtask firmware`: the firmware alone, in QEMU.
//!
//! `cargo xtask storm`: power cuts alone, as many as asked for, or one that failed again.
//!
//! `cargo xtask mutants`: plants bugs in the device crates and tells which of them no test notices.
//!
//! `cargo xtask bench`: the benchmarks, as a dated run in `benchmarks/runs`.

mod bench;
mod firmware;
mod fuzz;
mod mutants;
mod packages;
mod readme;
mod run;
mod storm;
mod test;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test | readme | firmware | storm | bench [overhead|analyze|card|recorder] | mutants [SHARDS] | fuzz SECONDS";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["test"] => test::everything(),
        ["readme"] => readme::commands().map(drop),
        ["storm", args @ ..] => storm::with(args),
        ["mutants", args @ ..] => mutants::with(args),
        ["firmware"] => firmware::all().map(drop),
        ["bench"] => bench::all(),
        ["bench", name] => bench::one(name),
        ["fuzz", seconds] => seconds
            .parse()
            .map_err(|_| USAGE.to_string())
            .and_then(|seconds| fuzz::all(fuzz::Effort::Seconds(seconds)).map(drop)),
        _ => Err(USAGE.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
