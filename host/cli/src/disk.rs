//! `bench` on a whole disk, such as /dev/sdb: reads it, or overwrites it with --destroy.

use crate::bench::{self, Args, Measured, OnHost, STOP_AFTER};
use crate::conditions;
use crate::failure::{Failure, print_error};
use crate::interrupt::Interrupt;
use crate::outputs::Outputs;
use crate::phases;
use crate::shared;
use crate::target;
use crate::trust::{self, Conditions, Kind};
use crate::watch::{Pace, Watch};
use crate::workload_file::OwnedWorkload;
use cardiograph_disk::{
    FailedBlock, FolderLeft, Identity, Medium, RawDisk, RawStore, System, folders_left,
    read_workload,
};
use cardiograph_report::{DiskFact, DiskFailure, DiskSummary, units};
use cardiograph_store::HostClock;
use cardiograph_trace::{About, quoted_path};
use cardiograph_workload::{Outcome, Workload, run as run_workload};
use std::io;
use std::path::Path;

/// Returns true if the target is a block device, through links as well, or names a device of Windows.
pub fn is_disk(target: &str) -> bool {
    if cfg!(windows) {
        return target.starts_with(r"\\.\");
    }
    let metadata = std::fs::metadata(target);
    metadata.is_ok_and(|metadata| cardiograph_system::is_block_device(&metadata))
}

/// Refuses outputs from now on that would replace a file behind the target, if the target is a disk.
pub fn protect(target: &str) {
    if is_disk(target) {
        shared::protect(target, System::default().files_behind(target));
    }
}

/// Measures the disk.
pub fn run(args: &Args, outputs: &Outputs) -> Result<(), Failure> {
    check_options(args)?;
    let workload = OwnedWorkload::named(&args.workload)?;
    bench::check_rate(args, &workload.borrow())?;
    let kind = match args.destroy {
        Some(_) => Kind::Overwritten,
        None => Kind::ReadOnly,
    };
    bench::check_trust(args, &workload.borrow(), kind)?;
    let interrupt = Interrupt::catch()?;
    let mut disk = Some(open(&args.target, args.destroy.as_deref())?);
    let mut before = Before::default();
    if let Some(held) = disk.take_if(|_| args.trust.precondition) {
        let filled = trust::of_disk(held, &workload.borrow(), &args.target, &interrupt)?;
        (before.bytes, before.failed) = (filled.1, filled.2);
        disk = Some(filled.0);
    }

    let mut reports = Vec::new();
    let mut failed = None;
    for _ in 0..args.repeat {
        let mut measure = |pace| {
            let held = disk
                .take()
                .ok_or_else(|| Failure::new("the disk is not open"))?;
            let workload = workload.borrow();
            let (measured, held) = measure_once(held, &workload, args, pace, &interrupt, &before);
            disk = Some(held);
            Ok(measured.after(before.bytes))
        };
        let threshold_ns = outputs.threshold_ns();
        let (report, failure) = bench::measure_loops(args, threshold_ns, &interrupt, &mut measure)?;
        failed = failure;
        reports.extend(report);
        if failed.is_some() || interrupt.is_raised() || reports.is_empty() {
            break;
        }
    }
    let done = bench::finish(outputs, &reports, failed, &interrupt);
    conditions::check(&args.fail_if, &reports, done)
}

/// Writes before the measurement.
#[derive(Default)]
struct Before {
    bytes: u64,
    failed: Vec<FailedBlock>,
}

fn check_options(args: &Args) -> Result<(), Failure> {
    for (option, is_given) in [
        ("--io", args.io.is_some()),
        ("--seed", args.seed.is_some()),
        ("--baud", args.baud.is_some()),
    ] {
        if is_given {
            return Err(Failure::new(format!(
                "{}: {option} does not apply to whole disks, which are accessed with O_DIRECT; remove it",
                args.target
            )));
        }
    }
    match args.rate.is_some() && args.destroy.is_none() {
        true => Err(Failure::new(format!(
            "{0}: --rate measures writes; add --destroy {0} to overwrite the disk, or name a directory on it",
            args.target
        ))),
        false => Ok(()),
    }
}

/// Opens a disk and shows its identity; with `destroy`, the disk may be overwritten.
pub fn open(target: &str, destroy: Option<&str>) -> Result<RawDisk, Failure> {
    let mut disk = RawDisk::open(&System::default(), target).map_err(Failure::new)?;
    if let Some(marker) = disk.marker() {
        print_error(&format!(
            "warning: {target} was {marker}; its files are lost: format it before use\n"
        ));
    }
    let disk = match destroy {
        None => disk,
        Some(name) => disk.destroy(name).map_err(Failure::new)?,
    };
    if !shared::is_quiet() {
        print_error(&format!("{}.\n", describe(disk.identity())));
    }
    Ok(disk)
}

/// Returns the failure of a run whose disk the kernel no longer knows, or that has another capacity than at the beginning.
pub fn changed(disk: &RawDisk) -> Option<Failure> {
    let device = &disk.identity().device;
    match disk.resized() {
        _ if disk.has_vanished() => Some(Failure::new(format!(
            "{device}: the disk vanished during the run; connect it again"
        ))),
        resized => resized.map(|resized| Failure::new(format!("{device}: {resized}"))),
    }
}

/// Returns the path of a target that is not a disk, and must be a directory.
pub fn directory<'a>(target: &'a str, destroy: Option<&str>) -> Result<&'a Path, Failure> {
    if destroy.is_some() {
        return Err(Failure::new(format!(
            "{target}: not a whole disk, so that --destroy does not apply; remove it, or name a disk such as /dev/sdX"
        )));
    }
    target::check_name(target)?;
    let path = Path::new(target);
    match path.is_dir() {
        true => Ok(path),
        false => Err(Failure::new(format!(
            "{target}: neither a directory nor a disk; name a directory on the card, or a disk such as /dev/sdX"
        ))),
    }
}

/// Warns of folders that an earlier run left in a directory, with the command that removes them.
pub fn warn_of_folders_left(directory: &str) {
    for FolderLeft { path, run } in folders_left(Path::new(directory)) {
        print_error(&format!(
            "warning: {} is from another run of `cardiograph {run}`, which is running or was killed; if none is \
             running, remove it: {}\n",
            path.display().to_string().escape_debug(),
            removal(&path)
        ));
    }
}

/// Returns the command that removes a folder.
fn removal(folder: &Path) -> String {
    format!("rm -r {}", quoted_path(folder))
}

/// Returns the failure of a run that could not remove its own folder.
pub fn not_removed(folder: &Path, reason: Option<&io::Error>) -> Failure {
    let removal = removal(folder);
    let remedy = match reason {
        Some(error) if is_protected(error) => {
            let parent = folder.parent().unwrap_or(folder);
            format!(
                "the attribute i or a, which lsattr shows, protects it, its files or its directory; clear it as root, and remove \
                 the folder: chattr -ia {} && chattr -R -ia {} && {removal}",
                quoted_path(parent),
                quoted_path(folder)
            )
        }
        _ => format!("remove it: {removal}"),
    };
    let reason = reason.map_or(String::new(), |error| format!(" ({error})"));
    Failure::new(format!(
        "{}: could not be removed{reason}; {remedy}",
        folder.display()
    ))
}

/// Returns true if an attribute of the file system, such as immutable, forbids an operation even to root. Missing
/// permissions are another error.
fn is_protected(error: &io::Error) -> bool {
    // EPERM has this number on every Unix.
    cfg!(unix) && error.raw_os_error() == Some(1)
}

/// Describes a disk in one line.
pub fn describe(identity: &Identity) -> String {
    let mut text = format!(
        "{}: {} ({} B), bus {}",
        identity.device,
        units::bytes(identity.capacity_bytes as f64),
        identity.capacity_bytes,
        identity.bus
    );
    for fact in &identity.facts {
        text.push_str(&format!(", {} {}", fact.name, fact.value));
    }
    text
}

/// Returns the JSON of a disk.
pub fn summary(identity: &Identity, is_overwritten: bool, failed: &[FailedBlock]) -> DiskSummary {
    let facts = identity.facts.iter().map(|fact| DiskFact {
        name: fact.name.clone(),
        value: fact.value.clone(),
    });
    let failed_blocks = failed.iter().map(|block| DiskFailure {
        offset_bytes: block.offset_bytes,
        error: block.error.clone(),
    });
    DiskSummary {
        device: identity.device.clone(),
        capacity_bytes: identity.capacity_bytes,
        block_bytes: identity.block_bytes,
        bus: identity.bus.clone(),
        is_overwritten,
        facts: facts.collect(),
        failed_blocks: failed_blocks.collect(),
    }
}

fn measure_once(
    disk: RawDisk,
    workload: &Workload,
    args: &Args,
    pace: Option<Pace>,
    interrupt: &Interrupt,
    before: &Before,
) -> (Measured, RawDisk) {
    let is_overwritten = args.destroy.is_some();
    let mut clock = HostClock::default();
    let conditions = Conditions::of(&mut clock);
    let (resolution_ns, overhead_ns) = conditions.clock_ns();
    let about = About {
        target: args.target.clone(),
        workload: workload.name.to_string(),
        phases: phases::of(workload),
        clock_resolution_ns: Some(resolution_ns),
        clock_overhead_ns: Some(overhead_ns),
        notes: vec![
            format!("{}.", describe(disk.identity())),
            bench::host_and_time(),
        ],
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
    let (mut measured, mut failed, disk) = match is_overwritten {
        true => {
            let mut store = RawStore::new(disk, workload);
            let run = |watch: &mut Watch, buffer: &mut [u8]| {
                run_workload(workload, &mut store, &mut clock, watch, buffer)
            };
            let measured = host.run(watch, run);
            (measured, store.failed_blocks(), store.into_disk())
        }
        false => read(disk, host, watch, &mut clock),
    };
    failed.extend(before.failed.iter().cloned());
    failed.sort_by_key(|block| block.offset_bytes);
    measured.disk = Some(summary(disk.identity(), is_overwritten, &failed));
    let changed = changed(&disk);
    if let Some(first) = failed.first() {
        let remedy = match changed {
            // The run ends with the reason.
            Some(_) => "",
            None => "; do not trust the disk with data",
        };
        measured.warnings.push(format!(
            "{} blocks failed, the first at byte {} of the disk ({}){remedy}",
            failed.len(),
            first.offset_bytes,
            first.error
        ));
    }
    measured.failed = changed.or(measured.failed);
    (measured, disk)
}

fn read(
    mut disk: RawDisk,
    host: OnHost,
    watch: Watch,
    clock: &mut HostClock,
) -> (Measured, Vec<FailedBlock>, RawDisk) {
    let mut failed = Vec::new();
    let workload = host.workload;
    let run = |watch: &mut Watch, buffer: &mut [u8]| -> Result<Outcome, String> {
        workload.check().map_err(|invalid| invalid.to_string())?;
        let block_bytes = disk.block_bytes();
        let mut payloads = workload.phases.iter().map(|phase| phase.bytes_per_call);
        if !payloads.all(|bytes| bytes.is_multiple_of(block_bytes)) {
            return Err(format!(
                "the payload is not a multiple of the disk's blocks of {block_bytes} B; choose a workload with whole \
                 blocks"
            ));
        }
        let read = read_workload(&mut disk, workload, clock, watch, buffer);
        match read {
            Ok(blocks) => failed = blocks,
            Err(ended) => {
                let sentence = ended.to_string();
                failed = ended.so_far;
                return Err(sentence);
            }
        }
        Ok(Outcome {
            stopped: false,
            verified_bytes: 0,
        })
    };
    let measured = host.run(watch, run);
    (measured, failed, disk)
}
