//! `cardiograph check`: is a card what its label says?

use crate::disk;
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{check_files, is_standard_output};
use crate::progress::Progress;
use crate::shared::Shared;
use crate::target;
use cardiograph_disk::{
    CLASSES, Capacity, CapacityPlan, FREE_BYTES_MIN, FreeSpace, Medium, RawDisk, Speed, Stopped,
    check_capacity, measure_speed, pass_bytes,
};
use cardiograph_report::values::bytes;
use cardiograph_report::{DiskSummary, units};
use cardiograph_store::{HostClock, is_out_of_files};
use cardiograph_system::is_of_medium;
use serde::Serialize;
use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Check whether a card is what its label says: capacity and speed.
///
/// Without --destroy, a disk is only read, which shows its read speed and nothing about its capacity. In a directory,
/// the check fills the free space with new files, reads them back and removes them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph check /dev/sdX                      identity and read speed, changes nothing
  cardiograph check /dev/sdX --destroy /dev/sdX   capacity in about a minute, and speed; all files are lost
  cardiograph check /dev/sdX --destroy /dev/sdX --full
                                                  every block, which takes hours
  cardiograph check /media/card --limit 1GiB      the free space of a mounted card, at most 1 GiB of it")]
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

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

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
    disk: Option<DiskSummary>,
    /// Null if nothing may be written.
    capacity: Option<Capacity>,
    speed: Speed,
    classes: Vec<ClassSummary>,
    notes: Vec<String>,
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
    check_files(&args.json)?;
    let interrupt = Interrupt::catch()?;
    match disk::is_disk(&args.target) {
        true => report(args, &of_disk(args, &interrupt)?),
        false => in_directory(args, &interrupt),
    }
}

/// Shows the result, writes the JSON, and returns the verdict.
fn report(args: &Args, checked: &Checked) -> Result<(), Failure> {
    let text = text(checked);
    match args.json.as_deref().is_some_and(is_standard_output) {
        true => print_error(&text),
        false => print(&text)?,
    }
    json::write(args.json.as_deref(), "check", &[checked])?;
    match (&checked.capacity, checked.speed.failed.first()) {
        (Some(capacity), _) if !capacity.is_honest() => Err(Failure::new(format!(
            "{}: does not keep the data written to it; do not use it, and return it to the seller",
            args.target
        ))),
        (_, Some(first)) => Err(Failure::new(format!(
            "{}: {} calls failed, the first one at byte {} ({}); do not trust the disk with data",
            args.target,
            checked.speed.failed.len(),
            first.offset_bytes,
            first.error
        ))),
        _ => Ok(()),
    }
}

fn of_disk<'a>(args: &'a Args, interrupt: &Interrupt) -> Result<Checked<'a>, Failure> {
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
    let plan = match args.full {
        true => CapacityPlan::Full,
        false => CapacityPlan::Quick,
    };
    if writes {
        disk.check_unchanged().map_err(Failure::new)?;
    }
    let measured = measured(&mut disk, writes, plan, args, interrupt);
    // Blocks of a disk that has vanished only look wrong.
    if !interrupt.is_raised() && disk.has_vanished() {
        return Err(disk::vanished(&args.target));
    }
    if let Some(resized) = disk::resized(&disk).filter(|_| !interrupt.is_raised()) {
        return Err(resized);
    }
    let (capacity, speed) = measured?;
    let note = match (writes, args.full) {
        (false, _) => format!(
            "Capacity not checked, because nothing was written; add --destroy {} to overwrite the disk.",
            args.target
        ),
        (true, false) => String::from(
            "16 MiB at the beginning, and 4 KiB every 16 MiB, were tested; --full tests every block.",
        ),
        (true, true) => String::from("Every block was tested."),
    };
    Ok(Checked {
        target: &args.target,
        disk: Some(disk::summary(disk.identity(), writes, &speed.failed)),
        capacity,
        classes: classes(&speed),
        speed,
        notes: vec![note, NOT_A_CERTIFICATE.to_string()],
    })
}

fn measured(
    disk: &mut RawDisk,
    writes: bool,
    plan: CapacityPlan,
    args: &Args,
    interrupt: &Interrupt,
) -> Result<(Option<Capacity>, Speed), Failure> {
    let capacity = match writes {
        true => Some(capacity_of(disk, plan, args, interrupt)?),
        false => None,
    };
    let speed = speed_of(disk, writes, &capacity, args, interrupt)?;
    Ok((capacity, speed))
}

fn in_directory(args: &Args, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = disk::directory(&args.target, args.destroy.as_deref())?;
    if args.full {
        return Err(Failure::new(format!(
            "{}: --full applies to whole disks only, and a directory is always checked in full; remove it",
            args.target
        )));
    }
    disk::warn_of_folders_left(&args.target);
    let limit_bytes = args.limit.unwrap_or(u64::MAX);
    let mut space = FreeSpace::of(path, limit_bytes).map_err(|error| on_space(args, &error))?;
    let checked = of_space(&mut space, args, interrupt);
    let removed = space
        .remove()
        .map_err(|left| disk::not_removed(&left.folder, Some(&left.source)));
    let reported = checked.and_then(|checked| report(args, &checked));
    Failure::join([reported, removed])
}

fn of_space<'a>(
    space: &mut FreeSpace,
    args: &'a Args,
    interrupt: &Interrupt,
) -> Result<Checked<'a>, Failure> {
    if space.capacity_bytes() == 0 {
        let free = units::bytes(space.free_bytes() as f64);
        let least = units::bytes(FREE_BYTES_MIN as f64);
        return Err(Failure::new(format!(
            "{}: only {free} are free, and the check needs {least}; remove some files",
            args.target
        )));
    }
    let capacity = Some(capacity_of(space, CapacityPlan::Full, args, interrupt)?);
    let speed = speed_of(space, true, &capacity, args, interrupt)?;
    let note = format!(
        "{} of free space were tested with new files, which are removed; whether the card keeps data beyond them is unknown.",
        units::bytes(space.capacity_bytes() as f64)
    );
    Ok(Checked {
        target: &args.target,
        disk: None,
        capacity,
        classes: classes(&speed),
        speed,
        notes: vec![note, NOT_A_CERTIFICATE.to_string()],
    })
}

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
    args: &Args,
    interrupt: &Interrupt,
) -> Result<Capacity, Failure> {
    let mut bar = Progress::over(pass_bytes(plan, medium.capacity_bytes()));
    // A number that no earlier check used, so that its sectors do not count.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let run = now.map_or(1, |now| now.as_nanos() as u64);
    let checked = check_capacity(medium, plan, run, |done_bytes| {
        bar.show(done_bytes);
        go_on(interrupt)
    });
    bar.clear();
    checked.map_err(|stopped| match stopped {
        Stopped::Interrupted => Failure::AlreadyPrinted(interrupt.exit_code().unwrap_or(2)),
        Stopped::Failed(error) => failed(args, &error),
    })
}

fn failed(args: &Args, error: &io::Error) -> Failure {
    match (disk::is_disk(&args.target), is_of_medium(error)) {
        (true, true) => Failure::new(format!(
            "{}: {error}; the disk failed or was removed: connect it again, and do not trust it with data",
            args.target
        )),
        (true, false) => Failure::new(format!(
            "{}: {error}; resolve this, and run the check again",
            args.target
        )),
        (false, _) => on_space(args, error),
    }
}

fn go_on(interrupt: &Interrupt) -> ControlFlow<()> {
    match interrupt.is_raised() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Measures the speed; a card that lies about its capacity has none worth knowing.
fn speed_of(
    medium: &mut impl Medium,
    writes: bool,
    capacity: &Option<Capacity>,
    args: &Args,
    interrupt: &Interrupt,
) -> Result<Speed, Failure> {
    if capacity
        .as_ref()
        .is_some_and(|capacity| !capacity.is_honest())
    {
        return Ok(Speed::default());
    }
    let mut clock = HostClock::default();
    let speed = measure_speed(medium, writes, &mut clock, || go_on(interrupt));
    match interrupt.exit_code() {
        Some(code) => Err(Failure::AlreadyPrinted(code)),
        None => speed.map_err(|error| failed(args, &error)),
    }
}

fn classes(speed: &Speed) -> Vec<ClassSummary> {
    let all = CLASSES.iter().map(|class| ClassSummary {
        name: class.name,
        is_reached: class.is_reached(speed),
    });
    all.collect()
}

fn text(checked: &Checked) -> String {
    let mut out = format!("check · {}\n", checked.target.escape_debug());
    if let Some(capacity) = &checked.capacity {
        capacity_text(&mut out, capacity);
    }
    let _ = writeln!(out, "\n  Speed");
    let speed = &checked.speed;
    let rates = [
        ("sequential writes", speed.write_bytes_per_s),
        ("slowest 4 MiB of them", speed.slowest_write_bytes_per_s),
        ("sequential reads", speed.read_bytes_per_s),
    ];
    for (name, rate) in rates {
        let rate = rate.map_or(String::from("not measured"), units::rate);
        let _ = writeln!(out, "    {name:<24}{rate}");
    }
    let randoms = [
        ("random reads of 4 KiB", speed.random_reads_per_s),
        ("random writes of 4 KiB", speed.random_writes_per_s),
    ];
    for (name, per_s) in randoms {
        let per_s = per_s.map_or(String::from("not measured"), |per_s| {
            format!("{} per second", units::count(per_s.round() as u64))
        });
        let _ = writeln!(out, "    {name:<24}{per_s}");
    }
    for (name, wanted) in [
        ("reaches the figures of", true),
        ("does not reach those of", false),
    ] {
        let of = checked
            .classes
            .iter()
            .filter(|class| class.is_reached == Some(wanted));
        let names: Vec<&str> = of.map(|class| class.name).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "    {name:<24}{}", names.join(", "));
        }
    }
    for note in &checked.notes {
        let _ = writeln!(out, "\n  note: {note}");
    }
    out
}

fn capacity_text(out: &mut String, capacity: &Capacity) {
    let rows = [
        ("claimed", capacity.claimed_bytes),
        ("tested", capacity.tested_bytes),
        ("keeps data up to", capacity.kept_bytes),
    ];
    let _ = writeln!(out, "\n  Capacity");
    for (name, amount) in rows {
        let shown = units::bytes(amount as f64);
        let _ = writeln!(out, "    {name:<24}{shown} ({amount} B)");
    }
    if capacity.is_honest() {
        return;
    }
    let counts = [
        ("wrong blocks", capacity.wrong_blocks),
        ("failed blocks", capacity.failed_blocks),
    ];
    for (name, count) in counts {
        let _ = writeln!(out, "    {name:<24}{}", units::count(count));
    }
    for finding in capacity.findings.iter().take(5) {
        let found = finding.found_offset_bytes;
        let found = found.map_or(String::new(), |at| format!(", holds the data of byte {at}"));
        let _ = writeln!(
            out,
            "    byte {}: {}{found}",
            finding.offset_bytes, finding.fault
        );
    }
}
