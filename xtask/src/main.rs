//! `cargo xtask test`: what every commit has to pass; needs no root and no other programs.
//!
//! `cargo xtask test --all`: also everything that needs other programs; installs missing packages.
//!
//! `cargo xtask test --ci`: everything, and a slice of a long lane.
//!
//! `cargo xtask lane NAME`: a long lane, whole; writes the date to `tests/lanes.md`. `--slice N` runs a slice.
//!
//! `cargo xtask english`: only the check of the wording.
//!
//! `cargo xtask readme`: only the commands of the README.
//!
//! `cargo xtask firmware`: the firmware tests only, in QEMU.
//!
//! `cargo xtask crates`: packages the crates for other people, and uses the packages.
//!
//! `cargo xtask fatfs`: runs ChaN's FatFs on the simulated SPI bus.
//!
//! `cargo xtask arduino`: compiles the Arduino library, and runs it on an emulated Mega.
//!
//! `cargo xtask c`: a program in C with the library, on this computer.
//!
//! `cargo xtask rp2040`: the recorder on an emulated Raspberry Pi Pico only.
//!
//! `cargo xtask qemu`: starts the board with a network in QEMU, and prints its address.
//!
//! `cargo xtask network`: tests this board.
//!
//! `cargo xtask network port`: only its build without a network.
//!
//! `cargo xtask boards`: builds the firmware for the chips that no emulator runs here, and prints its size.
//!
//! `cargo xtask boards --long`: hours on the emulated boards, near the bound and with many power cuts; writes dated runs
//! to `benchmarks/runs`.
//!
//! `cargo xtask python`: only the tests of the Python package.
//!
//! `cargo xtask dist [TARGET]`: builds and starts the binaries of a release; archives and checksums go to `target/dist`.
//!
//! `cargo xtask targets`: checks that the command compiles for the targets of a release.
//!
//! `cargo xtask wheel [TARGET]`: builds the wheels of the Python package in `target/wheels`, and imports one.
//!
//! `cargo xtask page`: only the page of the server, in headless Chromium.
//!
//! `cargo xtask playground`: builds the playground in `target/playground`.
//!
//! `cargo xtask playground --test`: builds it, compares its results with those of the command, and uses it in Chromium.
//!
//! `cargo xtask pictures`: takes the pictures of the README again.
//!
//! `cargo xtask size`: flash and RAM of the firmware that `firmware` and `rp2040` have built.
//!
//! `cargo xtask power-cut`: the power-cut test only, with a given number of cases, or for a single case.
//!
//! `cargo xtask bench`: the benchmarks; writes a dated run to `benchmarks/runs`.
//!
//! `cargo xtask fuzz SECONDS`: runs each fuzz target with libFuzzer for this time.

mod arduino;
mod attack;
mod bench;
mod boards;
mod c;
mod crates;
#[path = "../../host/disk/tests/common/mod.rs"]
mod disks;
mod dist;
mod english;
mod fatfs;
mod firmware;
mod fuzz;
mod judge;
mod lane;
mod packages;
mod page;
mod playground;
mod power_cut;
mod python;
mod qemu;
mod readme;
mod rp2040;
mod run;
mod size;
mod test;
mod wheel;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test [--all|--ci] | lane NAME | lane --slice N | english | readme | firmware | crates | fatfs | arduino | c | python | dist [TARGET] | targets | wheel [TARGET] | page | playground [--test] | pictures | rp2040 | qemu | network [port] | boards [--long] | size | power-cut | bench [overhead|analyze|card|page|pan|playground|recorder|serve] | fuzz SECONDS";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test"] => test::quick(),
        ["test", "--all"] => test::all(),
        ["test", "--ci"] => test::ci(),
        ["lane", "--slice", commits] => commits
            .parse()
            .map_err(|_| USAGE.to_string())
            .and_then(lane::slice)
            .map(drop),
        ["lane", name] => lane::whole(name),
        ["english"] => english::all(),
        ["readme"] => readme::commands().map(drop),
        ["power-cut", args @ ..] => power_cut::with(args),
        ["arduino"] => arduino::all().map(drop),
        ["c"] => c::all().map(drop),
        ["dist"] => dist::build(None),
        ["dist", target] => dist::build(Some(target)),
        ["wheel"] => wheel::build(None),
        ["wheel", target] => wheel::build(Some(target)),
        ["targets"] => dist::check_targets().map(drop),
        ["python"] => python::tests().map(drop),
        ["crates"] => crates::all().map(drop),
        ["fatfs"] => fatfs::all().map(drop),
        ["firmware"] => firmware::all().map(drop),
        ["page"] => page::all().map(drop),
        ["playground"] => playground::build().map(drop),
        ["playground", "--test"] => playground::test().map(drop),
        ["pictures"] => page::pictures(),
        ["rp2040"] => rp2040::all().map(drop),
        ["qemu"] => qemu::start(),
        ["network"] => qemu::all().map(drop),
        ["network", "port"] => qemu::port_only().map(drop),
        ["boards", "--long"] => qemu::long().and_then(|()| rp2040::long()),
        ["boards"] => boards::all().map(drop),
        ["size"] => size::all().map(drop),
        ["bench"] => bench::all(),
        ["bench", name] => bench::one(name),
        ["fuzz", seconds] => seconds
            .parse()
            .map_err(|_| USAGE.to_string())
            .and_then(fuzz::for_seconds),
        _ => Err(USAGE.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
