//! `cardiograph recover`: repairs interrupted recordings.

use crate::failure::{Failure, print, print_error};
use crate::json;
use crate::outputs::{check_files, is_standard_output};
use crate::shared::Shared;
use cardiograph_record::{Recovery, RecoveryAction, TargetKind, recover_path};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Repair interrupted recordings.
#[derive(clap::Args)]
#[command(after_help = "\
If the power failed or the program was killed, unfinished files keep their preallocated size. This command trims them to their
actual length, as the recorder does automatically at its next start. Unmount a device and all of its
partitions first. If there is nothing to repair, nothing is written.

Examples:
  cardiograph recover /dev/sdb --dry-run                    preview the repair of a card in a reader
  cardiograph recover card.img                              repair a card image
  cardiograph recover recordings                            repair a directory that was recorded to")]
pub struct Recover {
    /// A card as a block device, a card image, or a directory that was the target of `cardiograph record`
    #[arg(value_name = "DEVICE|IMAGE|DIR")]
    pub target: PathBuf,

    /// Show the repairs without writing anything
    #[arg(long)]
    pub dry_run: bool,

    /// Write the repairs as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Serialize)]
struct Summary<'a> {
    target: String,
    kind: &'static str,
    dry_run: bool,
    /// True if recovery completed or undid an interrupted file system operation on the card, apart from the
    /// repairs in `files`.
    file_system_repaired: bool,
    files: Vec<File<'a>>,
    /// Files whose names are those of unfinished recordings, but whose contents are not; absent if there are
    /// none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_alone: &'a [String],
}

#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    /// Actual length in bytes; 0 if the file was removed.
    bytes: u64,
    action: &'static str,
}

/// Recovers, then reports.
pub fn run(args: &Recover) -> Result<(), Failure> {
    args.shared.apply([&args.target]);
    check_files(&args.json)?;
    let recovery = recover_path(&args.target, args.dry_run).map_err(Failure::new)?;
    let table = table(args, &recovery);
    let Some(path) = &args.json else {
        return print(&table);
    };
    match is_standard_output(path) {
        true => print_error(&table),
        false => print(&table)?,
    }
    json::write(Some(path), "recover", &[summary(args, &recovery)])
}

fn action(action: RecoveryAction) -> &'static str {
    match action {
        RecoveryAction::Trimmed => "trimmed",
        RecoveryAction::Renamed => "renamed",
        RecoveryAction::Removed => "removed",
    }
}

fn summary<'a>(args: &Recover, recovery: &'a Recovery) -> Summary<'a> {
    let files = recovery.files.iter().map(|file| File {
        name: &file.name,
        bytes: file.bytes,
        action: action(file.action),
    });
    Summary {
        target: args.target.display().to_string(),
        kind: match recovery.kind {
            TargetKind::Card => "card",
            TargetKind::Directory => "directory",
        },
        dry_run: args.dry_run,
        file_system_repaired: recovery.is_repaired,
        files: files.collect(),
        left_alone: &recovery.left_alone,
    }
}

fn table(args: &Recover, recovery: &Recovery) -> String {
    let mut text = String::new();
    let (would, was) = match args.dry_run {
        true => ("would be ", "would be"),
        false => ("", "was"),
    };
    for file in &recovery.files {
        let (name, bytes) = (&file.name, file.bytes);
        let _ = match file.action {
            RecoveryAction::Removed => {
                writeln!(text, "{name}  {would}removed: contains no samples")
            }
            RecoveryAction::Renamed => {
                writeln!(
                    text,
                    "{name}  {would}renamed to this final name; already at its actual length, {bytes} B"
                )
            }
            RecoveryAction::Trimmed => {
                writeln!(
                    text,
                    "{name}  {would}trimmed to its actual length, {bytes} B"
                )
            }
        };
    }
    for name in &recovery.left_alone {
        let _ = writeln!(text, "{name}  left alone: not a Cardiograph recording");
    }
    if recovery.is_repaired {
        let _ = writeln!(
            text,
            "An interrupted file system operation on the card {was} completed or undone."
        );
    } else if recovery.files.is_empty() {
        let _ = writeln!(text, "Nothing to do: no interrupted recordings.");
    }
    text
}
