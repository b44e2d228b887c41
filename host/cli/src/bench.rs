//! `cardiograph bench`: measures a medium.

use crate::args::{Bench, DEFAULT_TARGET, IoArg, Reporting};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outputs::{self, Outputs};
use crate::parts;
use crate::target::Target;
use crate::watch::Watch;
use crate::workload_file::OwnedWorkload;
use cardiograph_report::{Report, figures_of, units};
use cardiograph_sim_card::{Board, Card, Controller, Profile, Seed};
use cardiograph_store::{HostClock, StorageInfo, run_on_card};
use cardiograph_trace::{About, Loaded, Trace};
use cardiograph_workload::{Outcome, RunError, Workload, run as run_workload};
use std::time::Duration;

/// How long a real medium is measured unless told otherwise.
const STOP_AFTER: Duration = Duration::from_secs(60);

/// Seed of the first simulated card; a repeat takes the next.
const FIRST_SEED: u64 = 1;

/// Alignment of the payload in memory that writing past the page cache asks for.
const ALIGNMENT: usize = 4096;

/// The main job on the simulated card that comes along, with an HTML report.
pub fn without_arguments() -> Result<(), Failure> {
    run(&Bench {
        target: DEFAULT_TARGET.to_string(),
        workload: cardiograph_workload::DEFAULT.to_string(),
        io: None,
        stop_after: None,
        repeat: 1,
        reporting: Reporting {
            html: Some(outputs::free_report_name()),
            ..Reporting::default()
        },
    })
}

/// Measures as asked.
pub fn run(args: &Bench) -> Result<(), Failure> {
    let outputs = Outputs::prepare(&args.reporting, args.repeat as usize)?;
    let workload = OwnedWorkload::named(&args.workload)?;
    let default_io = match workload.borrow().times_its_syncs() {
        true => IoArg::Buffered,
        false => IoArg::Dsync,
    };
    let io = args.io.unwrap_or(default_io);
    let mut target = Target::named(&args.target, io)?;
    let interrupt = Interrupt::catch()?;

    let mut reports = Vec::new();
    let mut failed = None;
    for repeat in 0..args.repeat {
        let measured = measure(
            &mut target,
            &workload.borrow(),
            args,
            io,
            repeat,
            &interrupt,
        )?;
        failed = measured.failed;
        if measured.trace.is_empty() {
            break;
        }
        let mut report = figures_of(Loaded::Trace(measured.trace), outputs.threshold_ns());
        report.warnings = measured.warnings;
        reports.push(report);
        if failed.is_some() || interrupt.is_raised() {
            break;
        }
    }
    finish(&outputs, &reports, failed, &interrupt)
}

/// Shows what was measured, also before a failure; only a run that went well leaves files.
fn finish(
    outputs: &Outputs,
    reports: &[Report],
    failed: Option<Failure>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if let Some(failure) = failed {
        outputs.print_tables(reports)?;
        return Err(failure);
    }
    if !reports.is_empty() {
        outputs.write(reports)?;
    }
    match (interrupt.exit_code(), reports.is_empty()) {
        (Some(code), _) => Err(Failure::AlreadyPrinted(code)),
        (None, true) => Err(Failure::new(
            "nothing was measured; give it more time with --for",
        )),
        (None, false) => Ok(()),
    }
}

/// What one run brought.
struct Measured {
    trace: Trace,
    warnings: Vec<String>,
    failed: Option<Failure>,
}

fn measure(
    target: &mut Target,
    workload: &Workload,
    args: &Bench,
    io: IoArg,
    repeat: u32,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    let about = About {
        target: args.target.clone(),
        workload: workload.name.to_string(),
        parts: parts::of(workload),
        ..About::default()
    };
    match target {
        Target::Simulated { profile, board } => {
            simulate((profile, board), about, workload, args, repeat, interrupt)
        }
        Target::Directory(directory, medium) => {
            let mut clock = HostClock::default();
            let (resolution_ns, overhead_ns) = clock.resolution_and_overhead_ns();
            let about = About {
                clock_resolution_ns: Some(resolution_ns),
                clock_overhead_ns: Some(overhead_ns),
                notes: vec![medium_note(medium, io), place_and_time()],
                ..about
            };
            let stop_after = Some(args.stop_after.unwrap_or(STOP_AFTER));
            let watch = Watch::new(about, workload.bytes(), stop_after, interrupt.clone());
            let run = |watch: &mut Watch, buffer: &mut [u8]| {
                run_workload(workload, directory, &mut clock, watch, buffer)
            };
            let mut measured = carry_out(workload, watch, stop_after, run);
            let warnings = directory.warnings(workload).into_iter();
            measured.warnings.extend(warnings.map(str::to_string));
            Ok(measured)
        }
    }
}

/// A run on a new simulated card.
fn simulate(
    (profile, board): (&Profile, &Board),
    about: About,
    workload: &Workload,
    args: &Bench,
    repeat: u32,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    let seed = FIRST_SEED + u64::from(repeat);
    let about = About {
        clock_resolution_ns: Some(1),
        clock_overhead_ns: Some(0),
        notes: vec![format!(
            "Virtual time; seed {seed}. {}. {}.",
            profile.about, board.about
        )],
        ..about
    };
    let mut watch = Watch::new(about, workload.bytes(), args.stop_after, interrupt.clone());
    let mut buffer = vec![0; workload.buffer_bytes()];
    let card = Card::new(profile, Seed::new(seed));
    let run = run_on_card(card, board, workload, None, &mut watch, &mut buffer);
    let (run, card) = run.map_err(Failure::new)?;
    if let Ok(mut card) = card {
        watch
            .trace
            .about
            .notes
            .push(energy_note(card.controller_mut()));
    }
    if !run.has_long_names {
        let note = "The FAT library makes no long names: test files are \
                    WRITETMP/TEST_0/TEMP_0.TXT and so on.";
        watch.trace.about.notes.push(note.to_string());
    }
    let mut measured = ended(run.result, workload, watch, args.stop_after);
    measured.warnings.extend(time_outs(run.timeouts));
    if run.is_worn_out {
        let warning = "the simulated card is worn out: more flash blocks gave out than it has spares; raise \
                       flash.endurance_cycles or flash.spare_blocks in its profile";
        measured.warnings.push(warning.to_string());
    }
    Ok(measured)
}

/// What the card took, and what for.
fn energy_note(controller: &mut Controller) -> String {
    let energy = controller.energy(controller.ready_ns());
    let total_pj = energy.total_pj().max(1) as f64;
    let percent = |pj: u64| format!("{:.0} %", pj as f64 / total_pj * 100.0);
    format!(
        "From power-up to the end, reading back included, the card took {:.3} J from its supply: working {}, \
         flash {}, idle {}, asleep {}.",
        total_pj / 1e12,
        percent(energy.working_pj),
        percent(energy.flash_pj),
        percent(energy.idle_pj),
        percent(energy.asleep_pj),
    )
}

fn carry_out<E: std::fmt::Display>(
    workload: &Workload,
    mut watch: Watch,
    stop_after: Option<Duration>,
    run: impl FnOnce(&mut Watch, &mut [u8]) -> Result<Outcome, RunError<E>>,
) -> Measured {
    let mut memory = vec![0; workload.buffer_bytes() + ALIGNMENT];
    let begin = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    let result = run(&mut watch, &mut memory[begin..]);
    ended(result, workload, watch, stop_after)
}

/// What a run brought, once it is over.
fn ended<E: std::fmt::Display>(
    result: Result<Outcome, RunError<E>>,
    workload: &Workload,
    watch: Watch,
    stop_after: Option<Duration>,
) -> Measured {
    let timed_out = watch.timed_out;
    let mut trace = watch.into_trace();
    if let Ok(outcome) = &result
        && outcome.verified_bytes > 0
    {
        let verified = units::bytes(outcome.verified_bytes as f64);
        let note = format!("{verified} were read back and are what was written.");
        trace.about.notes.push(note);
    }
    let (warnings, failed) = ending(&result, timed_out, stop_after, &trace, workload);
    Measured {
        trace,
        warnings,
        failed,
    }
}

/// What is said of how a run ended.
fn ending<E: std::fmt::Display>(
    result: &Result<Outcome, RunError<E>>,
    timed_out: bool,
    stop_after: Option<Duration>,
    trace: &Trace,
    workload: &Workload,
) -> (Vec<String>, Option<Failure>) {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            let warning = "the run failed before its end; these are the figures until then";
            // The names in the error begin at the target.
            let failure = Failure::new(format!("{}: {error}", trace.about.target));
            return (vec![warning.to_string()], Some(failure));
        }
    };
    if !outcome.stopped {
        return (Vec::new(), None);
    }
    let done: u64 = trace
        .runs()
        .iter()
        .map(|run| run.count * run.length_bytes)
        .sum();
    let percent = done as f64 * 100.0 / workload.bytes() as f64;
    let why = match stop_after.filter(|_| timed_out) {
        Some(time) => format!(
            "stopped after {}, {percent:.1} % of the workload done; --for allows more time",
            humantime::format_duration(time)
        ),
        None => format!("interrupted, {percent:.1} % of the workload done"),
    };
    (
        vec![format!("{why}; what it was at was not read back")],
        None,
    )
}

/// A driver that gives up on a busy card is a result too.
fn time_outs(times: u64) -> Option<String> {
    (times > 0).then(|| {
        format!(
            "the card driver gave up on the busy card {} times and was asked again; a program that \
             does not ask again loses its data there",
            units::count(times)
        )
    })
}

fn medium_note(medium: &StorageInfo, io: IoArg) -> String {
    use clap::ValueEnum;
    let io = io.to_possible_value();
    let io = io.as_ref().map_or("", |value| value.get_name());
    let card = medium.card.as_ref().map(|card| format!(" (card {card})"));
    let card = card.unwrap_or_default();
    match (&medium.file_system, &medium.device) {
        (Some(file_system), Some(device)) => format!("{file_system} on {device}{card}, --io {io}."),
        _ => format!("The file system is not known, --io {io}."),
    }
}

/// When and where: two reports on a desk must be told apart.
fn place_and_time() -> String {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
    let system = rustix::system::uname();
    format!(
        "Measured {now} on {}, {} {} {}.",
        system.nodename().to_string_lossy(),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy(),
    )
}
