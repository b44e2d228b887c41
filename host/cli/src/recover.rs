//! `cardiograph recover`: recordings that were cut off get their true length.

use crate::failure::{Failure, print, print_error};
use crate::outputs::{check_files, is_standard_output, write_text};
use cardiograph_record::{Place, Recovery, recover_path};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Give recordings that were cut off their true length.
#[derive(clap::Args)]
#[command(after_help = "\
A recorder does the same by itself before it records again. A device, or a partition of it, must not be
mounted. Nothing is written where there is nothing to do.

Examples:
  cardiograph recover /dev/sdb --dry-run                    a card in a reader: what would be done
  cardiograph recover card.img                              the image of a card
  cardiograph recover recordings                            a directory that was recorded to")]
pub struct Recover {
    /// A card as a block device, the image of one, or a directory that this computer recorded to
    #[arg(value_name = "DEVICE|IMAGE|DIR")]
    pub target: PathBuf,

    /// Say what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Write what was done as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Summary<'a> {
    target: String,
    kind: &'static str,
    dry_run: bool,
    /// Besides the files, something on the card was finished or undone.
    mended: bool,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    /// 0 if it was removed.
    bytes: u64,
    action: &'static str,
}

/// Recovers, then reports.
pub fn run(args: &Recover) -> Result<(), Failure> {
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
    let json = serde_json::to_string_pretty(&summary(args, &recovery)).map_err(Failure::new)?;
    write_text(path, &(json + "\n"))
}

fn action(bytes: u64) -> &'static str {
    match bytes {
        0 => "removed",
        _ => "shortened",
    }
}

fn summary<'a>(args: &Recover, recovery: &'a Recovery) -> Summary<'a> {
    let files = recovery.files.iter().map(|file| File {
        name: &file.name,
        bytes: file.bytes,
        action: action(file.bytes),
    });
    Summary {
        target: args.target.display().to_string(),
        kind: match recovery.place {
            Place::Card => "card",
            Place::Directory => "directory",
        },
        dry_run: args.dry_run,
        mended: recovery.is_mended,
        files: files.collect(),
    }
}

fn table(args: &Recover, recovery: &Recovery) -> String {
    let mut text = String::new();
    let would = if args.dry_run { "would be " } else { "" };
    for file in &recovery.files {
        let _ = match file.bytes {
            0 => writeln!(
                text,
                "{}  {would}removed: nothing was recorded in it",
                file.name
            ),
            bytes => writeln!(
                text,
                "{}  {would}shortened to {bytes} B: all that is whole",
                file.name
            ),
        };
    }
    if recovery.is_mended {
        let _ = writeln!(
            text,
            "What was under way when power went {would}brought to its end."
        );
    } else if recovery.files.is_empty() {
        let _ = writeln!(text, "Nothing to do: no recording was cut off.");
    }
    text
}
