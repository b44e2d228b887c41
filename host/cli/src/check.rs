//! `cardiograph check`: is a card what its label says?

mod text;

use crate::disk;
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{check_files, is_standard_output};
use crate::progress::Progress;
use crate::shared::Shared;
use crate::target;
use cardiograph_disk::{
    CLASSES, Capacity, CapacityPlan, FAILED_IN_A_ROW_MAX, FREE_BYTES_MIN, Failed, FreeSpace,
    Medium, Place, PlaceKind, Speed, Stopped, System, Verdict, check_capacity, measure_speed,
    pass_bytes, verdict,
};
use cardiograph_report::values::bytes;
use cardiograph_report::{DiskSummary, units};
use cardiograph_store::{HostClock, is_out_of_files};
use cardiograph_system::is_of_medium;
use cardiograph_trace::quoted_path;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Check whether a card is what its label says: capacity and speed.
///
/// The last line is the answer: genuine, if at least 99 % of the capacity was written and read back; fake, if a single
/// block failed; otherwise not tested, with the command that tests the rest. Without --destroy, a disk is only read, which
/// says nothing about its capacity. In a directory, the check fills the free space with new files, reads them back and
/// removes them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph check /dev/sdX                      identity and read speed, changes nothing
  cardiograph check /dev/sdX --destroy /dev/sdX   capacity in about a minute, and speed; all files are lost
  cardiograph check /dev/sdX --destroy /dev/sdX --full
                                                  every block, which takes hours
  cardiograph check /media/card                   the free space of a mounted card: all of an empty one
  cardiograph check /media/card --limit 1GiB      at most 1 GiB of it: finds some fakes, calls no card genuine")]
pub struct Args {
    /// A whole disk such as /dev/sdX, or a directory on it
    #[arg(value_parser = target::parser())]
    pub target: String,

    /// Overwrite the disk that is the target: repeat its name. All files on it are lost
    #[arg(long, value_name = "DISK")]
    pub destroy: Option<String>,

    /// Write and read every block of the disk, instead of 16 MiB and then 4 KiB every 16 MiB; needs --destroy
    #[arg(long)]
    pub full: bool,

    /// In a directory, use at most this much of the free space, 1MiB or more [default: all but 1 %]
    #[arg(long, value_name = "SIZE", value_parser = limit_bytes)]
    pub limit: Option<u64>,

    /// Check a directory on the root file system, or in memory, as well. Otherwise it is refused, because it is where files
    /// are if a card is not mounted
    #[arg(long)]
    pub allow_root_file_system: bool,

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// Exit code of a check that found no fault and tested less than 99 % of the capacity.
const NOT_TESTED: u8 = 6;

fn limit_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if size >= 1 << 20 => Ok(size),
        _ => Err("too small for a check; use 1MiB or more".to_string()),
    }
}

/// Result of the check, as JSON.
#[derive(Serialize)]
struct Checked<'a> {
    target: &'a str,
    verdict: Verdict,
    /// Share of the device's capacity that was written and read back; null if its size is unknown.
    tested_ratio: Option<f64>,
    /// Command that tests the rest; null if that is not needed, or if no command is known.
    next_command: Option<String>,
    disk: Option<DiskSummary>,
    /// Null for a disk, and if the kernel lists no mount for the directory.
    place: Option<Place>,
    /// Free space before the check; null for a disk.
    free_bytes: Option<u64>,
    /// Null if nothing may be written.
    capacity: Option<Capacity>,
    speed: Speed,
    classes: Vec<ClassSummary>,
    notes: Vec<String>,
}

impl Checked<'_> {
    /// Returns true if anything was measured, or found to fail.
    fn has_results(&self) -> bool {
        let mut tested = self.capacity.iter();
        let speed = Speed {
            failed: Vec::new(),
            ..self.speed
        };
        tested.any(|capacity| capacity.tested_bytes > 0 || !capacity.findings.is_empty())
            || speed != Speed::default()
    }
}

/// A class on labels, next to the figures.
#[derive(Serialize)]
struct ClassSummary {
    name: &'static str,
    /// Null if the figures were not measured.
    is_reached: Option<bool>,
}

/// Checks a disk or a directory.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply::<&Path>([]);
    disk::protect(&args.target);
    check_files(&args.json)?;
    let interrupt = Interrupt::catch()?;
    match disk::is_disk(&args.target) {
        true => {
            let (checked, failed) = of_disk(args, &interrupt)?;
            report(args, &checked, failed)
        }
        false => in_directory(args, &interrupt),
    }
}

/// Shows the result, writes the JSON, and returns the verdict: `failed` if the check ended early.
fn report(args: &Args, checked: &Checked, failed: Option<Failure>) -> Result<(), Failure> {
    if let Some(failed) = failed {
        let has_results = checked.has_results();
        if has_results {
            write(args, checked)?;
        }
        if matches!(failed, Failure::AlreadyPrinted(_)) {
            let before = match has_results {
                true => "; the figures are those before",
                false => " before anything was measured",
            };
            print_error(&format!("warning: {}: interrupted{before}\n", args.target));
        }
        return Err(failed);
    }
    match checked.verdict {
        Verdict::Genuine => write(args, checked),
        Verdict::Fake => {
            // The verdict is the last line, on a terminal too.
            print_error(&format!(
                "error: {}: {}\n",
                args.target.escape_debug(),
                fault(checked)
            ));
            write(args, checked)?;
            Err(Failure::AlreadyPrinted(2))
        }
        Verdict::NotTested => {
            write(args, checked)?;
            Err(Failure::AlreadyPrinted(NOT_TESTED))
        }
    }
}

/// Describes the fault of a fake, with the remedy.
fn fault(checked: &Checked) -> String {
    let Speed {
        failed,
        failed_calls,
        ..
    } = &checked.speed;
    let is_honest = checked.capacity.as_ref().is_none_or(Capacity::is_honest);
    match failed.first() {
        Some(first) if is_honest => format!(
            "{failed_calls} calls failed, the first one at byte {} ({}); do not trust the disk with data",
            first.offset_bytes, first.error
        ),
        _ => String::from(
            "does not keep the data written to it; do not use it, and return it to the seller",
        ),
    }
}

fn write(args: &Args, checked: &Checked) -> Result<(), Failure> {
    let text = text::of(checked);
    match args.json.as_deref().is_some_and(is_standard_output) {
        true => print_error(&text),
        false => print(&text)?,
    }
    json::write(args.json.as_deref(), "check", &[checked])
}

fn of_disk<'a>(
    args: &'a Args,
    interrupt: &Interrupt,
) -> Result<(Checked<'a>, Option<Failure>), Failure> {
    if args.limit.is_some() {
        return Err(Failure::new(format!(
            "{}: --limit applies to directories only; remove it",
            args.target
        )));
    }
    let writes = args.destroy.is_some();
    if args.full && !writes {
        return Err(Failure::new(format!(
            "{0}: --full writes; add --destroy {0} to overwrite the disk, or remove --full",
            args.target
        )));
    }
    let mut disk = disk::open(&args.target, args.destroy.as_deref())?;
    let plan = match (writes, args.full) {
        (false, _) => None,
        (true, true) => Some(CapacityPlan::Full),
        (true, false) => Some(CapacityPlan::Quick),
    };
    if writes {
        disk.check_unchanged().map_err(Failure::new)?;
    }
    let measured = measured(&mut disk, plan, args, interrupt);
    // Blocks of a disk that has vanished only look wrong.
    if let Some(changed) = disk::changed(&disk).filter(|_| !interrupt.is_raised()) {
        return Err(changed);
    }
    let note = match plan {
        None => String::from("Capacity not checked, because nothing was written."),
        Some(CapacityPlan::Quick) => String::from(
            "16 MiB at the beginning, and 4 KiB every 16 MiB, were tested; --full tests every block.",
        ),
        Some(CapacityPlan::Full) => String::from("Every block was tested."),
    };
    let summary = disk::summary(disk.identity(), writes, &measured.speed.failed);
    let of = Tested {
        device_bytes: Some(summary.capacity_bytes),
        medium_bytes: summary.capacity_bytes,
        next_command: Some(full_check(&summary.device)),
        disk: Some(summary),
        ..Tested::default()
    };
    Ok(measured.checked(args, of, note))
}

/// Returns the command that tests every block of a disk.
fn full_check(device: &str) -> String {
    format!("cardiograph check {device} --destroy {device} --full")
}

/// Storage that a check used.
#[derive(Default)]
struct Tested {
    disk: Option<DiskSummary>,
    place: Option<Place>,
    free_bytes: Option<u64>,
    /// Size of the whole device.
    device_bytes: Option<u64>,
    /// Size of the disk, or of the files of the check.
    medium_bytes: u64,
    /// Command that tests the rest.
    next_command: Option<String>,
}

/// Figures of a check, and the failure that ended it early.
#[derive(Default)]
struct Measured {
    capacity: Option<Capacity>,
    speed: Speed,
    failed: Option<Failure>,
}

impl Measured {
    /// Returns the result; `note` states the extent of a check that did not end early.
    fn checked(self, args: &Args, of: Tested, note: String) -> (Checked<'_>, Option<Failure>) {
        let note = match self.failed {
            None => note,
            Some(_) => String::from(
                "The check ended early: the figures cover only what was measured before.",
            ),
        };
        let mut notes = vec![note];
        let is_long_enough = of.medium_bytes >= CLASSES_BYTES_MIN;
        match self.speed.write_bytes_per_s {
            Some(_) if is_long_enough => notes.push(NOT_A_CERTIFICATE.to_string()),
            Some(_) => notes.push(format!(
                "Not compared with the classes on labels, which takes {}.",
                units::binary_bytes(CLASSES_BYTES_MIN)
            )),
            None => {}
        }
        let (capacity, speed) = (self.capacity, self.speed);
        let verdict = verdict(capacity.as_ref(), of.device_bytes, speed.failed_calls);
        let tested_bytes = capacity
            .as_ref()
            .map_or(0, |capacity| capacity.tested_bytes);
        let checked = Checked {
            target: &args.target,
            verdict,
            tested_ratio: of
                .device_bytes
                .map(|bytes| tested_bytes as f64 / bytes as f64),
            next_command: of.next_command.filter(|_| verdict == Verdict::NotTested),
            disk: of.disk,
            place: of.place,
            free_bytes: of.free_bytes,
            capacity,
            classes: classes(&speed, is_long_enough),
            speed,
            notes,
        };
        (checked, self.failed)
    }
}

/// Measures the capacity, if there is a plan for it, and the speed, unless the capacity is a lie: such a card has no speed
/// worth knowing.
fn measured(
    medium: &mut impl Medium,
    plan: Option<CapacityPlan>,
    args: &Args,
    interrupt: &Interrupt,
) -> Measured {
    let interrupted = || Failure::AlreadyPrinted(interrupt.exit_code().unwrap_or(2));
    let mut measured = Measured::default();
    if let Some(plan) = plan {
        let (capacity, failed) = match capacity_of(medium, plan, interrupt) {
            Ok(capacity) => (capacity, None),
            Err(Stopped::Interrupted(so_far)) => (*so_far, Some(interrupted())),
            Err(Stopped::Failed(ended)) => {
                let in_a_row = is_of_medium(&ended.source);
                let failure = failed(args, &ended, in_a_row);
                (ended.so_far, Some(failure))
            }
        };
        let ends = failed.is_some() || !capacity.is_honest();
        (measured.capacity, measured.failed) = (Some(capacity), failed);
        if ends {
            return measured;
        }
    }
    let mut clock = HostClock::default();
    let speed = measure_speed(medium, plan.is_some(), &mut clock, || go_on(interrupt));
    match speed {
        Ok(speed) => measured.speed = speed,
        Err(ended) => {
            measured.failed = Some(failed(args, &ended, false));
            measured.speed = ended.so_far;
        }
    }
    if interrupt.is_raised() {
        measured.failed = Some(interrupted());
    }
    measured
}

fn in_directory(args: &Args, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = disk::directory(&args.target, args.destroy.as_deref())?;
    if args.full {
        return Err(Failure::new(format!(
            "{}: --full applies to whole disks only, and a directory is always checked in full; remove it",
            args.target
        )));
    }
    let place = System::default().place(path);
    if let Some(place) = place.as_ref().filter(|_| !args.allow_root_file_system) {
        check_place(&args.target, place)?;
    }
    disk::warn_of_folders_left(&args.target);
    let limit_bytes = args.limit.unwrap_or(u64::MAX);
    let mut space = FreeSpace::of(path, limit_bytes).map_err(|error| on_space(args, &error))?;
    let checked = of_space(&mut space, args, place, interrupt);
    let removed = space
        .remove()
        .map_err(|left| disk::not_removed(&left.folder, Some(&left.source)));
    let reported = checked.and_then(|(checked, failed)| report(args, &checked, failed));
    let reported = match (&removed, reported) {
        // A folder that is left outweighs a capacity that was not tested.
        (Err(_), Err(Failure::AlreadyPrinted(NOT_TESTED))) => Ok(()),
        (_, reported) => reported,
    };
    Failure::join([reported, removed])
}

/// Refuses a directory that is not on a file system of its own.
fn check_place(target: &str, place: &Place) -> Result<(), Failure> {
    let found = match place.kind {
        PlaceKind::Mounted => return Ok(()),
        PlaceKind::Root => format!(
            "on the root file system of this computer ({} on {}), so no card is mounted there; mount the card, or add \
             --allow-root-file-system to fill this disk",
            place.file_system, place.source
        ),
        PlaceKind::Memory => format!(
            "in memory ({}), so no card is mounted there; mount the card, or add --allow-root-file-system to fill the memory",
            place.file_system
        ),
    };
    Err(Failure::new(format!("{target}: {found}")))
}

fn of_space<'a>(
    space: &mut FreeSpace,
    args: &'a Args,
    place: Option<Place>,
    interrupt: &Interrupt,
) -> Result<(Checked<'a>, Option<Failure>), Failure> {
    if space.capacity_bytes() == 0 {
        let free = units::bytes(space.free_bytes() as f64);
        let least = units::bytes(FREE_BYTES_MIN as f64);
        return Err(Failure::new(format!(
            "{}: only {free} are free, and the check needs {least}; remove some files",
            args.target
        )));
    }
    let measured = measured(space, Some(CapacityPlan::Full), args, interrupt);
    let (free_bytes, tested_bytes) = (space.free_bytes(), space.capacity_bytes());
    let note = format!(
        "{} of free space were tested with new files, which are removed; the rest of the device was not.",
        units::bytes(tested_bytes as f64)
    );
    let device_bytes = place.as_ref().and_then(|place| place.device_bytes);
    let of = Tested {
        free_bytes: Some(free_bytes),
        medium_bytes: tested_bytes,
        next_command: next_of_directory(args, place.as_ref(), free_bytes),
        device_bytes,
        place,
        disk: None,
    };
    Ok(measured.checked(args, of, note))
}

/// Returns the command that tests the rest of a device: without the limit if nearly all of the device is free, otherwise that
/// for the whole disk.
fn next_of_directory(args: &Args, place: Option<&Place>, free_bytes: u64) -> Option<String> {
    let place = place?;
    let is_free = place
        .device_bytes
        .is_some_and(|bytes| free_bytes as f64 >= bytes as f64 * 0.995);
    match args.limit {
        Some(_) if is_free => Some(format!(
            "cardiograph check {}",
            quoted_path(Path::new(&args.target))
        )),
        _ => place.device.as_deref().map(full_check),
    }
}

/// Least capacity of which the figures are compared with the classes: random calls are made within it.
const CLASSES_BYTES_MIN: u64 = 256 << 20;

const NOT_A_CERTIFICATE: &str = "The classes are defined for a card in a certain state and on its native bus. These are \
    measurements of this card as it is, through this reader; they certify nothing.";

fn on_space(args: &Args, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free at least 6 MiB, end the program that fills the disk, or lower --limit"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit with `ulimit -f`: the files of the check have up to 1 GiB"
        }
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => {
            "the files of the check were removed or changed meanwhile; run it again"
        }
        _ if is_out_of_files(error) => "raise the limit with `ulimit -n`, or end other programs",
        _ if is_of_medium(error) => "the disk failed or was removed; do not trust it with data",
        _ => "choose a directory you may write to",
    };
    Failure::new(format!("{}: {error}; {remedy}", args.target))
}

fn capacity_of(
    medium: &mut impl Medium,
    plan: CapacityPlan,
    interrupt: &Interrupt,
) -> Result<Capacity, Stopped> {
    let mut bar = Progress::over(pass_bytes(plan, medium.capacity_bytes()));
    // A number that no earlier check used, so that its sectors do not count.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let run = now.map_or(1, |now| now.as_nanos() as u64);
    let checked = check_capacity(medium, plan, run, |done_bytes| {
        bar.show(done_bytes);
        go_on(interrupt)
    });
    bar.clear();
    checked
}

/// Returns the failure of a check that ended early; `in_a_row` if that was after many failing blocks.
fn failed<T>(args: &Args, ended: &Failed<T>, in_a_row: bool) -> Failure {
    if !disk::is_disk(&args.target) {
        return on_space(args, &ended.source);
    }
    let count = match in_a_row {
        true => format!("{FAILED_IN_A_ROW_MAX} blocks in a row failed, the last one at "),
        false => String::new(),
    };
    Failure::new(format!("{}: {count}{ended}", args.target))
}

fn go_on(interrupt: &Interrupt) -> ControlFlow<()> {
    match interrupt.is_raised() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

fn classes(speed: &Speed, is_long_enough: bool) -> Vec<ClassSummary> {
    let all = CLASSES.iter().map(|class| ClassSummary {
        name: class.name,
        is_reached: class.is_reached(speed).filter(|_| is_long_enough),
    });
    all.collect()
}
