//! `check`: the last line is `genuine`, `fake` or `not tested`, and the exit code agrees with it.

use crate::common::loop_disk::LoopDisk;
use crate::common::{assert_refused, directory, results, run};
use crate::disks::fake::Fake;
use crate::disks::fuse::Mounted;
use crate::disks::{Loop, in_a_namespace};
use std::fs;
use std::path::Path;
use std::process::Command;

const BYTES: u64 = 64 << 20;
/// 4 MiB, which a check leaves free, are less than 1 % of it.
const HONEST_BYTES: u64 = 512 << 20;

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}

fn succeeds(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {errors}");
}

/// Writes an image with an empty file system. Its structures are at the beginning, and nearly all of it is free.
fn format(image: &Path, bytes: u64) {
    fs::File::create(image).unwrap().set_len(bytes).unwrap();
    let image = image.to_str().unwrap();
    // Ext2 keeps no space back.
    let options = "-q -F -t ext2 -m 0 -N 64 -O ^resize_inode";
    let options: Vec<&str> = options.split(' ').chain([image]).collect();
    succeeds("mkfs.ext4", &options);
}

#[test]
fn a_fake_behind_a_mounted_directory_is_found() {
    if !in_a_namespace("a_fake_behind_a_mounted_directory_is_found") {
        return;
    }
    let (own, fuse) = (directory(), tempfile::tempdir().unwrap());
    let image = own.path().join("image");
    format(&image, BYTES);
    let fake = Fake::new(fs::read(&image).unwrap(), BYTES as usize / 2);
    let Some(mounted) = Mounted::at(fuse.path(), fake) else {
        return;
    };
    let Some(disk) = Loop::over(&mounted.disk(), &[]) else {
        return;
    };
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    succeeds("mount", &[&disk.device, card.to_str().unwrap()]);
    let check = run(own.path(), &["check", "card", "-q"]);
    succeeds("umount", &[card.to_str().unwrap()]);
    assert_eq!(check.code, Some(2), "{}", check.stderr);
    assert_eq!(last_line(&check.stdout), "fake");
    assert!(
        check.stderr.contains("does not keep the data"),
        "{}",
        check.stderr
    );
    let expected = format!(
        "device                  {}: 67.1 MB (67108864 B)",
        disk.device
    );
    assert!(check.stdout.contains(&expected), "{}", check.stdout);
    let first: Vec<&str> = check.stdout.lines().skip(1).take(1).collect();
    assert!(first[0].contains("ext2 on /dev/loop"), "{first:?}");
}

#[test]
fn an_honest_directory_is_not_tested_until_nearly_all_of_its_device_is() {
    if !in_a_namespace("an_honest_directory_is_not_tested_until_nearly_all_of_its_device_is") {
        return;
    }
    let own = directory();
    let image = own.path().join("image");
    format(&image, HONEST_BYTES);
    let Some(disk) = Loop::over(&image, &[]) else {
        return;
    };
    let card = own.path().join("card");
    fs::create_dir(&card).unwrap();
    succeeds("mount", &[&disk.device, card.to_str().unwrap()]);
    let part = run(own.path(), &["check", "card", "-q", "--limit", "16MiB"]);
    // Every claim beyond these 16 MiB would be a guess.
    assert_eq!(part.code, Some(6), "{}", part.stderr);
    let last = "not tested: 96.9 % of the capacity; test the rest: cardiograph check card";
    assert_eq!(last_line(&part.stdout), last);
    for never in ["keeps data up to", "V90", "A2"] {
        assert!(!part.stdout.contains(never), "{never} in {}", part.stdout);
    }
    // The command of the message.
    let all = run(own.path(), &["check", "card", "-q", "--json", "all.json"]);
    assert_eq!(all.code, Some(0), "{}{}", all.stdout, all.stderr);
    assert_eq!(last_line(&all.stdout), "genuine");
    let figures = results(&fs::read_to_string(own.path().join("all.json")).unwrap());
    assert_eq!(figures["verdict"], "genuine");
    assert_eq!(figures["place"]["device_bytes"], HONEST_BYTES);
    let ratio = figures["tested_ratio"].as_f64().unwrap();
    let tested = figures["capacity"]["tested_bytes"].as_f64().unwrap();
    assert!(ratio >= 0.99 && (ratio - tested / HONEST_BYTES as f64).abs() < 1e-9);
    // A file of somebody else: only the whole disk can be tested in full.
    fs::write(card.join("mine"), vec![1; 32 << 20]).unwrap();
    let full = run(own.path(), &["check", "card", "-q", "--limit", "1MiB"]);
    succeeds("umount", &[card.to_str().unwrap()]);
    let command = format!("cardiograph check {0} --destroy {0} --full", disk.device);
    assert!(
        last_line(&full.stdout).ends_with(&command),
        "{}",
        full.stdout
    );
}

#[test]
fn a_whole_disk_is_genuine_once_every_block_was_tested() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let full = format!("cardiograph check {device} --destroy {device} --full");
    let read = run(own.path(), &["check", device, "-q"]);
    assert_eq!(read.code, Some(6), "{}", read.stderr);
    let last = last_line(&read.stdout);
    assert!(last.starts_with("not tested: 100 % of the capacity; ") && last.ends_with(&full));
    let quick = run(own.path(), &["check", device, "--destroy", device, "-q"]);
    assert_eq!(quick.code, Some(6), "{}", quick.stderr);
    // 16 MiB, and 4 KiB at 16, 32 and 48 MiB and at the end.
    let last = last_line(&quick.stdout);
    assert!(
        last.starts_with("not tested: 75 % of the capacity; ") && last.ends_with(&full),
        "{last}"
    );
    let words: Vec<&str> = full.split(' ').skip(1).collect();
    let full = run(own.path(), &words);
    assert_eq!(full.code, Some(0), "{}", full.stderr);
    assert_eq!(last_line(&full.stdout), "genuine");
}

/// A mount that failed leaves a directory of the root file system.
#[test]
fn a_directory_without_a_file_system_of_its_own_is_refused() {
    let own = directory();
    for (target, kind) in [
        ("/", "the root file system"),
        ("/dev/shm", "in memory (tmpfs)"),
    ] {
        if !Path::new(target).exists() {
            continue;
        }
        let refused = run(own.path(), &["check", target]);
        let option = "mount the card, or add --allow-root-file-system";
        assert_refused(&refused, &[target, kind, option]);
        assert_eq!(refused.stdout, "");
    }
    let allowed = [
        "check",
        "/dev/shm",
        "--limit",
        "1MiB",
        "--allow-root-file-system",
    ];
    let allowed = run(own.path(), &allowed);
    assert_eq!(allowed.code, Some(6), "{}", allowed.stderr);
    let last = "not tested: an unknown share of the capacity; name the whole disk to test it";
    assert_eq!(last_line(&allowed.stdout), last);
}
