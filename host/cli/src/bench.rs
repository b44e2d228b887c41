//! `cardiograph bench`: measures a simulated card, a directory, or the card of a board.

use crate::board;
use crate::conditions::{self, Condition};
use crate::disk;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outputs::{self, Outputs, Reporting};
use crate::phases;
use crate::target::{self, DEFAULT_TARGET, IoArg, Target};
use crate::trust::{self, Conditions, Kind, Repeats, TrustArgs, Witness};
use crate::watch::{Pace, Watch};
use crate::workload_file::OwnedWorkload;
use cardiograph_disk::Aligned;
use cardiograph_report::values::{duration, rate_hz, whole};
use cardiograph_report::{DiskSummary, EndedBy, Report, Trust, figures_of, open_loop, units};
use cardiograph_sim_card::{Board, Card, Controller, Profile, Seed};
use cardiograph_store::{HostClock, StorageInfo, run_on_card};
use cardiograph_trace::{About, Loaded, OperationKind, Trace};
use cardiograph_workload::{Outcome, Phase, Span, Workload, run as run_workload};
use std::time::Duration;

/// Measure write latencies, stalls and sustained rate of a card.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph bench                                          the built-in simulated card
  cardiograph bench sim:generic-16g-class10@esp32 --workload magod2  a published experiment on it
  cardiograph bench /media/card --html card.html             a real card mounted at /media/card
  cardiograph bench /media/card --io direct --for 5min --trace card.parquet
  cardiograph bench /media/card --rate 100                   a write every 10 ms, as a data logger does
  cardiograph bench /media/card --until-stable --for 10min   until more writes would change little
  cardiograph bench /dev/sdX                                 a whole disk, read only
  cardiograph bench . --workload my-logger.toml --repeat 3 --json -
  cardiograph bench board:/dev/ttyACM0                       an Arduino board with a sketch of docs/boards/arduino.md
  cardiograph bench board:http://192.168.4.1                 the card of a board whose server is Cardiograph's

Custom workloads are TOML files; docs/workloads.md lists their keys.")]
pub struct Args {
    /// A simulated card as sim:CARD@BOARD (names or TOML files), a directory on a real storage device, a whole disk such as /dev/sdX, or a board as board:PORT (its serial port) or board:http://ADDRESS (its server)
    #[arg(default_value = DEFAULT_TARGET, value_parser = target::parser())]
    pub target: String,

    /// Workload: a name from `cardiograph workloads`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = cardiograph_workload::DEFAULT)]
    pub workload: String,

    /// Method of syncing writes to the storage device; directories only [default: dsync; buffered if the workload itself calls fsync]
    #[arg(long, value_enum)]
    pub io: Option<IoArg>,

    /// Overwrite the disk that is the target: repeat its name. All files on it are lost
    #[arg(long, value_name = "DISK")]
    pub destroy: Option<String>,

    /// Issue this many writes per second at their due times, and measure lateness; the workload first runs once without due times, for comparison [default: each write follows the last one]
    #[arg(long, value_name = "HZ", value_parser = rate_hz)]
    pub rate: Option<f64>,

    /// Stop after this time [default: 60s for a directory, no limit for a simulated card]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub stop_after: Option<Duration>,

    #[command(flatten)]
    pub trust: TrustArgs,

    /// Speed of a board's serial port, in baud [default: 115200]
    #[arg(long, value_name = "BAUD", value_parser = whole::<u32>(300..=4_000_000))]
    pub baud: Option<u32>,

    /// User name and password for a board's server [default: none]
    #[arg(long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,

    /// Seed of the simulated card; with --repeat, of the first run [default: 1]
    #[arg(long, value_name = "SEED", value_parser = whole(0..=u64::MAX))]
    pub seed: Option<u64>,

    /// Number of runs; on a simulated card, each run uses a fresh card with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=1000))]
    pub repeat: u32,

    /// Exit with code 5 if a condition holds, such as 'p99 > 20ms'; may be repeated
    #[arg(long, value_name = "CONDITION", long_help = conditions::HELP, value_parser = conditions::of_writes)]
    pub fail_if: Vec<Condition>,

    #[command(flatten)]
    pub reporting: Reporting,
}

/// Default time limit for a directory.
pub const STOP_AFTER: Duration = Duration::from_secs(60);

/// Default seed of the first simulated card; each repetition uses the next one.
const FIRST_SEED: u64 = 1;

const NOTHING_MEASURED: &str = "nothing was measured; allow more time with --for";

/// Runs the default workload on the built-in simulated card, with an HTML report.
pub fn without_arguments() -> Result<(), Failure> {
    run(&Args {
        target: DEFAULT_TARGET.to_string(),
        workload: cardiograph_workload::DEFAULT.to_string(),
        io: None,
        destroy: None,
        rate: None,
        stop_after: None,
        trust: TrustArgs::default(),
        baud: None,
        auth: None,
        seed: None,
        repeat: 1,
        fail_if: Vec::new(),
        reporting: Reporting {
            html: Some(outputs::free_report_name()),
            ..Reporting::default()
        },
    })
}

/// Measures the simulated card or directory.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.reporting.shared.apply([&args.workload]);
    disk::protect(&args.target);
    let outputs = Outputs::prepare(&args.reporting, "bench", args.repeat as usize)?;
    if let Some(port) = board::port_of(&args.target) {
        return run_on_board(port, args, &outputs);
    }
    if disk::is_disk(&args.target) {
        return disk::run(args, &outputs);
    }
    let Bench {
        workload,
        io,
        mut target,
    } = Bench::of(args)?;
    let interrupt = Interrupt::catch()?;
    let preconditioned_bytes = match &mut target {
        Target::Directory(directory, _) if args.trust.precondition => {
            trust::of_directory(directory, &workload.borrow(), &args.target, &interrupt)?
        }
        _ => 0,
    };

    let mut reports = Vec::new();
    let mut failed = None;
    for repeat in 0..args.repeat {
        let mut run = |pace| {
            let workload = workload.borrow();
            let measured = measure(&mut target, &workload, args, io, pace, repeat, &interrupt)?;
            Ok(measured.after(preconditioned_bytes))
        };
        let (report, failure) = measure_loops(args, outputs.threshold_ns(), &interrupt, &mut run)?;
        failed = failure;
        let Some(report) = report else { break };
        reports.push(report);
        if failed.is_some() || interrupt.is_raised() {
            break;
        }
    }
    let done = finish(&outputs, &reports, failed, &interrupt);
    conditions::check(&args.fail_if, &reports, done)
}

/// Measures once, or without and then with due times.
pub fn measure_loops(
    args: &Args,
    threshold_ns: Option<u64>,
    interrupt: &Interrupt,
    run: &mut dyn FnMut(Option<Pace>) -> Result<Measured, Failure>,
) -> Result<(Option<Report>, Option<Failure>), Failure> {
    let (mut closed, failed) = reported(run(None)?, threshold_ns);
    if let Some(report) = &mut closed {
        args.reporting.answer(report);
    }
    let (Some(rate_hz), Some(closed)) = (args.rate, &closed) else {
        return Ok((closed, failed));
    };
    if failed.is_some() || interrupt.is_raised() {
        return Ok((None, failed));
    }
    let measured = run(Some(Pace::of(rate_hz)))?;
    let origin_ns = measured.origin_ns;
    let (mut open, failed) = reported(measured, threshold_ns);
    if let (Some(report), Some(origin_ns)) = (&mut open, origin_ns) {
        report.summary.open_loop = open_loop(report, closed, rate_hz, origin_ns);
    }
    if let Some(report) = &mut open {
        args.reporting.answer(report);
    }
    Ok((open, failed))
}

/// Computes the figures of a run, if anything was measured.
fn reported(measured: Measured, threshold_ns: Option<u64>) -> (Option<Report>, Option<Failure>) {
    if measured.trace.is_empty() {
        return (None, measured.failed);
    }
    let mut report = figures_of(Loaded::Trace(measured.trace), threshold_ns);
    report.warnings = measured.warnings;
    report.summary.disk = measured.disk;
    if let Some(conditions) = measured.conditions {
        conditions.add_to(&mut report);
    }
    let unreadable = report.trace().and_then(Trace::spill_error);
    let unreadable = unreadable.map(outputs::unreadable_times);
    if unreadable.is_some() {
        return (None, measured.failed.or(unreadable));
    }
    (Some(report), measured.failed)
}

/// Returns an error unless the writes of the workload can have due times.
pub fn check_rate(args: &Args, workload: &Workload) -> Result<(), Failure> {
    if args.rate.is_none() {
        return Ok(());
    }
    let is_plain = |phase: &Phase| {
        phase.operation == OperationKind::Write
            && phase.span != Span::File
            && (phase.delay_us, phase.pause_us) == (0, 0)
    };
    match workload.phases {
        [phase] if is_plain(phase) => Ok(()),
        _ => Err(Failure::new(format!(
            "--rate needs a workload with a single phase of writes that are timed one by one and have no pauses, and {} \
             is none; use --workload {}, or remove --rate",
            workload.name,
            cardiograph_workload::DEFAULT
        ))),
    }
}

/// Returns an error if options for trustworthy figures do not apply to the target or the workload.
pub fn check_trust(args: &Args, workload: &Workload, kind: Kind) -> Result<(), Failure> {
    trust::check(
        &args.trust,
        workload,
        &args.target,
        kind,
        args.rate.is_some(),
    )
}

/// Reports what a board measures.
fn run_on_board(port: &str, args: &Args, outputs: &Outputs) -> Result<(), Failure> {
    let interrupt = Interrupt::catch()?;
    let (trace, warnings) = board::measure(port, args, &interrupt)?;
    let mut reports = Vec::new();
    if !trace.is_empty() {
        let mut report = figures_of(Loaded::Trace(trace), outputs.threshold_ns());
        report.warnings = warnings;
        args.reporting.answer(&mut report);
        reports.push(report);
    }
    let done = finish(outputs, &reports, None, &interrupt);
    conditions::check(&args.fail_if, &reports, done)
}

/// A target and a workload that have been checked.
pub struct Bench {
    workload: OwnedWorkload,
    io: IoArg,
    target: Target,
}

impl Bench {
    /// Checks the arguments and opens the target; writes nothing.
    pub fn of(args: &Args) -> Result<Bench, Failure> {
        let workload = OwnedWorkload::named(&args.workload)?;
        let default_io = match workload.borrow().times_its_syncs() {
            true => IoArg::Buffered,
            false => IoArg::Dsync,
        };
        let is_simulated = target::simulated_set_up(&args.target)?.is_some();
        if args.baud.is_some() {
            return Err(Failure::new(
                "--baud applies to boards only; remove it, or measure a board as board:PORT",
            ));
        }
        if args.auth.is_some() {
            return Err(Failure::new(
                "--auth applies to servers only; remove it, or measure a board as board:http://ADDRESS",
            ));
        }
        if args.io.is_some() && is_simulated {
            return Err(Failure::new(
                "--io applies to directories only; remove it, or measure a directory",
            ));
        }
        if args.seed.is_some() && !is_simulated {
            return Err(Failure::new(
                "--seed applies to simulated cards only; remove it, or measure a simulated card",
            ));
        }
        if args.destroy.is_some() {
            return Err(Failure::new(format!(
                "{}: --destroy applies to whole disks only; remove it, or name a disk such as /dev/sdX",
                args.target
            )));
        }
        check_rate(args, &workload.borrow())?;
        let kind = match is_simulated {
            true => Kind::Simulated,
            false => Kind::Directory,
        };
        check_trust(args, &workload.borrow(), kind)?;
        let io = args.io.unwrap_or(default_io);
        let target = Target::named(&args.target, io)?;
        if !is_simulated {
            disk::warn_of_folders_left(&args.target);
        }
        Ok(Bench {
            workload,
            io,
            target,
        })
    }

    /// Measures the target once.
    pub fn report(
        &mut self,
        args: &Args,
        threshold_ns: Option<u64>,
        interrupt: &Interrupt,
    ) -> Result<Report, Failure> {
        let workload = self.workload.borrow();
        let measured = measure(
            &mut self.target,
            &workload,
            args,
            self.io,
            None,
            0,
            interrupt,
        )?;
        if let Some(failure) = measured.failed {
            return Err(failure);
        }
        if measured.trace.is_empty() {
            return Err(match interrupt.exit_code() {
                Some(code) => Failure::AlreadyPrinted(code),
                None => Failure::new(NOTHING_MEASURED),
            });
        }
        let mut report = figures_of(Loaded::Trace(measured.trace), threshold_ns);
        report.warnings = measured.warnings;
        Ok(report)
    }
}

/// Prints the results, even those before a failure; only successful runs write files.
pub fn finish(
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
        (None, true) => Err(Failure::new(NOTHING_MEASURED)),
        (None, false) => Ok(()),
    }
}

/// Result of one run.
pub struct Measured {
    trace: Trace,
    pub warnings: Vec<String>,
    pub failed: Option<Failure>,
    /// The disk, if the target is one.
    pub disk: Option<DiskSummary>,
    /// Due time of the first write, if the writes had due times.
    origin_ns: Option<u64>,
    /// Conditions of the run, if the storage device is real.
    conditions: Option<Conditions>,
}

impl Measured {
    /// Adds what was written before the measurement.
    pub fn after(mut self, preconditioned_bytes: u64) -> Measured {
        if let Some(conditions) = &mut self.conditions {
            conditions.trust.preconditioned_bytes = preconditioned_bytes;
            self.trace
                .about
                .notes
                .extend(trust::note(&conditions.trust));
        }
        self
    }
}

fn measure(
    target: &mut Target,
    workload: &Workload,
    args: &Args,
    io: IoArg,
    pace: Option<Pace>,
    repeat: u32,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    let about = About {
        target: args.target.clone(),
        workload: workload.name.to_string(),
        phases: phases::of(workload),
        ..About::default()
    };
    match target {
        Target::Simulated { profile, board } => {
            let card = (&**profile, &*board, seed(args, repeat));
            simulate(card, about, workload, args, pace, interrupt)
        }
        Target::Directory(directory, device) => {
            let mut clock = HostClock::default();
            let conditions = Conditions::of(&mut clock);
            let (resolution_ns, overhead_ns) = conditions.clock_ns();
            let about = About {
                clock_resolution_ns: Some(resolution_ns),
                clock_overhead_ns: Some(overhead_ns),
                notes: vec![device_note(device, io), host_and_time()],
                ..about
            };
            let stop_after = Some(args.stop_after.unwrap_or(STOP_AFTER));
            let watch = Watch::new(about, workload.bytes(), stop_after, interrupt.clone())
                .with_trace_at(args.reporting.trace.as_deref())
                .with_trust(&args.trust)
                .at(pace);
            let host = OnHost {
                workload,
                args,
                conditions,
                clock: clock.clone(),
            };
            let run = |watch: &mut Watch, buffer: &mut [u8]| {
                run_workload(workload, directory, &mut clock, watch, buffer)
            };
            let mut measured = host.run(watch, run);
            let warnings = directory.warnings(workload).into_iter();
            measured.warnings.extend(warnings.map(str::to_string));
            let failed = measured.failed.take().map_or(Ok(()), Err);
            measured.failed = Failure::join([failed, target::check_cleared(directory)]).err();
            Ok(measured)
        }
    }
}

/// Returns the seed of a simulated card.
fn seed(args: &Args, repeat: u32) -> u64 {
    let first = args.seed.unwrap_or(FIRST_SEED);
    first.wrapping_add(u64::from(repeat))
}

/// Runs the workload on a new simulated card.
fn simulate(
    (profile, board, seed): (&Profile, &Board, u64),
    about: About,
    workload: &Workload,
    args: &Args,
    pace: Option<Pace>,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    let about = About {
        clock_resolution_ns: Some(1),
        clock_overhead_ns: Some(0),
        notes: vec![format!(
            "Simulated in virtual time with seed {seed}. Card: {}. Board: {}.",
            profile.about, board.about
        )],
        ..about
    };
    let watch = Watch::new(about, workload.bytes(), args.stop_after, interrupt.clone());
    let trace = args.reporting.trace.as_deref();
    let watch = watch.with_trace_at(trace).with_trust(&args.trust);
    let mut watch = watch.at(pace);
    let mut buffer = vec![0; workload.buffer_bytes()];
    let card = Card::new(profile, Seed::new(seed));
    let run = run_on_card(card, board, workload, &mut watch, &mut buffer);
    let (run, card) = run.map_err(Failure::new)?;
    if let Ok(mut card) = card {
        watch
            .trace
            .about
            .notes
            .push(energy_note(card.controller_mut()));
    }
    if !run.has_long_names {
        let note = "The FAT library has no long file names: test files are WRITETMP/TEST_0/TEMP_0.TXT and so on.";
        watch.trace.about.notes.push(note.to_string());
    }
    let warm_up = Trust {
        warm_up_operations: watch.warm_up_operations(),
        ..Trust::default()
    };
    watch.trace.about.notes.extend(trust::note(&warm_up));
    let mut measured = ended(run.result, workload, watch, args.stop_after);
    measured.warnings.extend(time_outs(run.timeouts));
    if run.is_worn_out {
        let warning = "the simulated card is worn out: more flash blocks failed than it has spares; raise \
             flash.endurance_cycles or flash.spare_blocks in its profile";
        measured.warnings.push(warning.to_string());
    }
    Ok(measured)
}

/// Describes the energy of the card by power state.
fn energy_note(controller: &mut Controller) -> String {
    let energy = controller.energy(controller.ready_ns());
    let total_pj = energy.total_pj().max(1) as f64;
    let percent = |pj: u64| format!("{:.0} %", pj as f64 / total_pj * 100.0);
    format!(
        "From power-up to the end, the card drew {:.3} J from its \
         supply: working {}, flash {}, idle {}, asleep {}.",
        total_pj / 1e12,
        percent(energy.working_pj),
        percent(energy.flash_pj),
        percent(energy.idle_pj),
        percent(energy.asleep_pj),
    )
}

/// A run on a storage device of this computer.
pub struct OnHost<'a> {
    pub workload: &'a Workload<'a>,
    pub args: &'a Args,
    pub conditions: Conditions,
    /// The clock of the operations.
    pub clock: HostClock,
}

impl OnHost<'_> {
    /// Runs the workload, and repeats it with --until-stable, while a thread watches for delays of the computer.
    pub fn run<E: std::fmt::Display>(
        mut self,
        mut watch: Watch,
        mut run: impl FnMut(&mut Watch, &mut [u8]) -> Result<Outcome, E>,
    ) -> Measured {
        let mut buffer = Aligned::zeros(self.workload.bulk_buffer_bytes());
        let witness = Witness::start(self.clock);
        let (mut count, mut verified_bytes) = (0, 0);
        let (result, ended_by) = loop {
            let result = run(&mut watch, buffer.bytes());
            count += 1;
            let ended_by = match &result {
                Err(_) => EndedBy::Failure,
                Ok(outcome) if outcome.stopped && watch.timed_out => EndedBy::Time,
                Ok(outcome) if outcome.stopped => EndedBy::Signal,
                Ok(_) if watch.is_stable() => EndedBy::Stable,
                Ok(outcome) => {
                    verified_bytes += outcome.verified_bytes;
                    continue;
                }
            };
            break (result, ended_by);
        };
        let repeats = Repeats { count, ended_by };
        self.conditions.finish(witness, &watch, repeats);
        let result = result.map(|outcome| Outcome {
            verified_bytes: outcome.verified_bytes + verified_bytes,
            ..outcome
        });
        let stop_after = Some(self.args.stop_after.unwrap_or(STOP_AFTER));
        let mut measured = ended(result, self.workload, watch, stop_after);
        measured.conditions = Some(self.conditions);
        measured
    }
}

/// Collects the results of a finished run.
fn ended<E: std::fmt::Display>(
    result: Result<Outcome, E>,
    workload: &Workload,
    watch: Watch,
    stop_after: Option<Duration>,
) -> Measured {
    let timed_out = watch.timed_out;
    let origin_ns = watch.origin_ns();
    let done = Done::of(&watch, workload);
    let mut trace = watch.into_trace();
    if let Ok(outcome) = &result
        && outcome.verified_bytes > 0
    {
        let verified = units::bytes(outcome.verified_bytes as f64);
        let note = format!("Verified: {verified} read back, identical.");
        trace.about.notes.push(note);
    }
    trace.about.notes.extend(rare_stalls(&trace));
    let (warnings, failed) = ending(&result, timed_out, stop_after, &trace, done);
    Measured {
        trace,
        warnings,
        failed,
        disk: None,
        origin_ns,
        conditions: None,
    }
}

/// Progress of a run at its end.
struct Done {
    /// Percentage of the workload that was done; `None` if it was being repeated.
    percent: Option<f64>,
    /// Length of the warm-up, if it did not end.
    warm_up: Option<Duration>,
}

impl Done {
    fn of(watch: &Watch, workload: &Workload) -> Done {
        let percent = watch.bytes() as f64 * 100.0 / workload.bytes() as f64;
        let is_repeated = watch.stability().is_some() && percent >= 100.0;
        Done {
            percent: (!is_repeated).then_some(percent),
            warm_up: watch.unfinished_warm_up(),
        }
    }
}

/// Returns a note that stalls too rare for the length of this run may be missing.
fn rare_stalls(trace: &Trace) -> Option<String> {
    let written = trace.runs().iter();
    let written = written.filter(|run| run.kind == OperationKind::Write);
    let bytes: u64 = written.map(|run| run.count * run.length_bytes).sum();
    (bytes > 0).then(|| {
        format!(
            "Stalls that occur less often than once in {} may be missing from these figures; a workload that writes \
             more would show them.",
            units::bytes(bytes as f64)
        )
    })
}

/// Returns the warnings about a run, and its failure if it failed.
fn ending<E: std::fmt::Display>(
    result: &Result<Outcome, E>,
    timed_out: bool,
    stop_after: Option<Duration>,
    trace: &Trace,
    done: Done,
) -> (Vec<String>, Option<Failure>) {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            let warning = "the run failed; the figures cover the operations before the failure";
            // File names in the error are relative to the target.
            let failure = Failure::new(format!("{}: {error}", trace.about.target));
            return (vec![warning.to_string()], Some(failure));
        }
    };
    if !outcome.stopped {
        let too_long = done.warm_up.map(|time| {
            Failure::new(format!(
                "the workload {} ended within the warm-up of {}; choose a shorter --warm-up, or a longer workload",
                trace.about.workload,
                humantime::format_duration(time)
            ))
        });
        return (Vec::new(), too_long);
    }
    let stop_after = stop_after.filter(|_| timed_out);
    let why = match (stop_after, done.percent) {
        // The report states whether the worst case is stable.
        (Some(_), None) => return (Vec::new(), None),
        (Some(time), Some(percent)) => format!(
            "stopped after {} with {percent:.1} % of the workload done; allow more time with --for",
            humantime::format_duration(time)
        ),
        (None, Some(percent)) => format!("interrupted with {percent:.1} % of the workload done"),
        (None, None) => "interrupted while the workload was repeated".to_string(),
    };
    // A signal ends the verification as well.
    let unverified = match timed_out {
        true => "",
        false => "; not all files were verified",
    };
    (vec![format!("{why}{unverified}")], None)
}

/// Returns a warning if the driver timed out while the card was busy, or its reader hung.
fn time_outs(times: u64) -> Option<String> {
    (times > 0).then(|| {
        format!(
            "the card, or its reader, did not become ready within the driver's timeout {} times; Cardiograph \
             retried, but a program that does not retry loses data there",
            units::count(times)
        )
    })
}

fn device_note(device: &StorageInfo, io: IoArg) -> String {
    use clap::ValueEnum;
    let io = io.to_possible_value();
    let io = io.as_ref().map_or("", |value| value.get_name());
    let card = device.card.as_ref().map(|card| format!(" (card {card})"));
    let card = card.unwrap_or_default();
    match (&device.file_system, &device.device) {
        (Some(file_system), Some(device)) => format!("{file_system} on {device}{card}, --io {io}."),
        _ => format!("Unknown file system, --io {io}."),
    }
}

/// Describes the host and the time of the run, to distinguish reports.
pub fn host_and_time() -> String {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
    let computer = cardiograph_system::computer();
    format!("Measured {now} on {}, {}.", computer.name, computer.system)
}
