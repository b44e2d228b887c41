//! `bench`, `check` and `flash-benchmark` on disks that fail in many places, or change while they are measured.

use crate::common;
use crate::disk_runs;
use crate::disks;

use common::loop_disk::LoopDisk;
use common::signals::{wait_for_handler, wait_until};
use common::{Run, assert_refused, command, directory, results, run};
use disk_runs::{BYTES, LONG, STUDY, assert_one_error, error_after, signal, with_bad_blocks};
use disks::faulty::Faulty;
use disks::fuse::{Disk, Mounted};
use disks::{Loop, in_a_namespace};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A study on a file system, which reports every error as one of the disk.
const ON_EXT2: [&str; 7] = [
    "flash-benchmark",
    "--experiment",
    "file-size",
    "--for",
    "1s",
    "--limit",
    "30MB",
];

/// Writes 16 MiB in blocks of 4 KiB.
const LARGE: &str = "name = \"w\"\n[[phase]]\ncalls_per_file = 4096\nbytes_per_call = 4096\n";

/// Returns the addresses of a list of blocks.
fn addresses(blocks: &Value) -> Vec<u64> {
    let blocks = blocks.as_array().unwrap().iter();
    blocks
        .map(|block| block["offset_bytes"].as_u64().unwrap())
        .collect()
}

#[test]
#[ignore = "needs root and losetup"]
fn a_check_that_meets_many_failing_blocks_goes_on_and_reports_them() {
    const KEPT_BYTES: u64 = 10 << 20;
    let Some(disk) = LoopDisk::new(2 * BYTES) else {
        return;
    };
    disk.cut_off(KEPT_BYTES);
    let own = directory();
    let device = disk.device.as_str();
    let check = run(own.path(), &["check", device, "--json", "-"]);
    assert_eq!(check.code, Some(2), "{}", check.stderr);
    let words = [device, " calls failed, the first one at byte 10485760"];
    assert_one_error(&check.stderr, &words);
    let figures = results(&check.stdout);
    let failed = addresses(&figures["disk"]["failed_blocks"]);
    // The sequential reads, in calls of 512 KiB, come first.
    let sequential: Vec<u64> = (KEPT_BYTES..2 * BYTES)
        .step_by(512 << 10)
        .take(64)
        .collect();
    assert_eq!(failed, sequential);
    assert!(figures["speed"]["failed_calls"].as_u64() > Some(108));
    for rate in ["read_bytes_per_s", "random_reads_per_s"] {
        assert!(figures["speed"][rate].as_f64() > Some(0.0), "{figures}");
    }
    for words in [
        "byte 10485760: Input/output error",
        " more; the JSON has the first 64",
    ] {
        assert!(check.stderr.contains(words), "{words} in {}", check.stderr);
    }
    fs::write(own.path().join("w.toml"), LARGE).unwrap();
    let bench = run(own.path(), &["bench", device, "--workload", "w.toml"]);
    assert_eq!(bench.code, Some(2), "{}", bench.stderr);
    let words = [device, "of the disk: Input/output error", "do not trust"];
    assert_one_error(&bench.stderr, &words);
    let warning = "warning: 64 blocks failed, the first at byte 10485760 of the disk";
    assert!(bench.stdout.contains(warning), "{}", bench.stdout);
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_check_that_ends_early_reports_the_addresses() {
    if !in_a_namespace("a_check_that_ends_early_reports_the_addresses") {
        return;
    }
    let bad: Vec<u64> = (20 << 20..BYTES).step_by(4096).take(100).collect();
    with_bad_blocks(&bad, |own, device| {
        let args = ["check", device, "--destroy", device, "--full"];
        let check = run(own, &[&args[..], &["--json", "-"]].concat());
        assert_eq!(check.code, Some(2), "{}", check.stderr);
        let end = format!(
            "64 blocks in a row failed, the last one at byte {} of the disk",
            bad[63]
        );
        assert_one_error(&check.stderr, &[device, &end, "do not trust it"]);
        let figures = results(&check.stdout);
        assert_eq!(addresses(&figures["capacity"]["findings"]), bad[..64]);
        assert_eq!(figures["capacity"]["failed_blocks"], 64);
        assert_eq!(figures["capacity"]["tested_bytes"], 0);
        assert_eq!(figures["capacity"]["kept_bytes"], 0);
        let notes = figures["notes"].to_string();
        assert!(
            notes.contains("ended early") && !notes.contains("Every block"),
            "{notes}"
        );
        for words in ["byte 20971520: Input/output error", "and 59 more"] {
            assert!(check.stderr.contains(words), "{words} in {}", check.stderr);
        }
        assert!(!check.stderr.contains("keeps data"), "{}", check.stderr);
    });
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_that_becomes_read_only_is_named_with_its_remedy() {
    for args in [
        &["bench", "--workload", "long.toml"][..],
        &["check", "--full"],
        &STUDY,
    ] {
        let Some(disk) = LoopDisk::new(32 * BYTES) else {
            return;
        };
        let error = error_after(&disk, args, LoopDisk::make_read_only);
        let words = [
            &disk.device,
            "the disk became read-only",
            "blockdev --setrw",
        ];
        assert_one_error(&error, &words);
        assert!(!error.contains("do not trust"), "{error}");
    }
}

/// The file system of the file below the disk is full.
#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_disk_without_space_behind_it_is_named_with_its_remedy() {
    if !in_a_namespace("a_disk_without_space_behind_it_is_named_with_its_remedy") {
        return;
    }
    let own = directory();
    let pool = own.path().join("pool");
    fs::create_dir(&pool).unwrap();
    let options = ["-t", "tmpfs", "-o", "size=12m", "tmpfs"];
    let mounted = Command::new("mount").args(options).arg(&pool).status();
    assert!(mounted.unwrap().success());
    fs::write(own.path().join("w.toml"), LARGE).unwrap();
    for args in [
        &["bench", "--workload", "w.toml"][..],
        &["check", "--full"],
        &STUDY,
        &ON_EXT2,
    ] {
        let image = pool.join("image");
        fs::File::create(&image)
            .unwrap()
            .set_len(2 * BYTES)
            .unwrap();
        let Some(disk) = Loop::over(&image, &[]) else {
            return;
        };
        let device = disk.device.as_str();
        let full = run(own.path(), &[args, &[device, "--destroy", device]].concat());
        assert_eq!(full.code, Some(2), "{args:?}: {}", full.stderr);
        let words = [device, "No space left on device", "free some space there"];
        assert_one_error(&full.stderr, &words);
        assert!(!full.stderr.contains("do not trust"), "{}", full.stderr);
        drop(disk);
        fs::remove_file(&image).unwrap();
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_that_shrinks_is_not_called_a_fake() {
    for args in [
        &["bench", "--workload", "long.toml", "--for", "2s"][..],
        &["check", "--full"],
    ] {
        let Some(disk) = LoopDisk::new(8 * BYTES) else {
            return;
        };
        let error = error_after(&disk, args, |disk| disk.resize(4096));
        let change = "the capacity changed during the run, from 268435456 B to 4096 B";
        assert_one_error(&error, &[&disk.device, change, "run the command again"]);
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_that_shrinks_while_it_is_read_is_not_blamed() {
    let Some(disk) = LoopDisk::new(8 * BYTES) else {
        return;
    };
    let own = directory();
    fs::write(own.path().join("long.toml"), LONG).unwrap();
    let device = disk.device.as_str();
    let args = ["bench", device, "--workload", "long.toml", "--for", "2s"];
    let child = command(own.path(), &args).spawn().unwrap();
    wait_for_handler(&child);
    disk.resize(4096);
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    let change = "the capacity changed during the run, from 268435456 B to 4096 B";
    assert_one_error(&run.stderr, &[device, change, "run the command again"]);
    assert!(
        run.stdout.contains("blocks failed, the first at byte"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("do not trust"), "{}", run.stdout);
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_that_grows_ends_the_run_with_both_capacities() {
    for args in [
        &["bench", "--workload", "long.toml", "--for", "1s"][..],
        &["check"],
        &STUDY,
    ] {
        let Some(disk) = LoopDisk::new(2 * BYTES) else {
            return;
        };
        let error = error_after(&disk, args, |disk| disk.resize(3 * BYTES));
        let change = "the capacity changed during the run, from 67108864 B to 100663296 B";
        assert_one_error(&error, &[&disk.device, change, "run the command again"]);
        assert!(!error.contains("exchanged"), "{error}");
        let left = format!("{} could not be cleared at the end: format it", disk.device);
        assert_eq!(
            error.contains(&left),
            args[0] == "flash-benchmark",
            "{error}"
        );
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn the_file_behind_a_disk_cannot_be_an_output() {
    let Some(disk) = LoopDisk::new(2 * BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let link = own.path().join("link");
    fs::hard_link(disk.file(), &link).unwrap();
    let before = disk.content();
    for command in ["bench", "check", "flash-benchmark"] {
        let options: &[&str] = match command {
            "bench" => &["--json", "--html", "--markdown", "--trace", "--csv"],
            "check" => &["--json"],
            _ => &["--json", "--html", "--markdown"],
        };
        for (option, file) in options
            .iter()
            .flat_map(|&option| [(option, disk.file()), (option, &link)])
        {
            let file = file.to_str().unwrap();
            let args = [
                command,
                device,
                "--destroy",
                device,
                option,
                file,
                "--force",
            ];
            let refused = run(own.path(), &args);
            assert_refused(
                &refused,
                &[file, "stores the data of", device, "choose another"],
            );
        }
    }
    assert!(disk.content() == before);
}

/// A disk whose reads take 50 ms and are counted from the last write on.
struct SlowReads {
    disk: Faulty,
    reads: Arc<AtomicU32>,
}

impl Disk for SlowReads {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        self.disk.read(offset_bytes, buffer)
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        self.reads.store(0, Ordering::SeqCst);
        self.disk.write(offset_bytes, data)
    }
}

/// The signal comes while the data are read back.
#[test]
#[ignore = "needs root and /dev/fuse"]
fn an_interrupted_check_reports_what_it_tested() {
    if !in_a_namespace("an_interrupted_check_reports_what_it_tested") {
        return;
    }
    let (folder, own) = (directory(), directory());
    let reads = Arc::new(AtomicU32::new(0));
    let disk = SlowReads {
        disk: Faulty::new(BYTES, &[]),
        reads: reads.clone(),
    };
    let Some(mounted) = Mounted::at(folder.path(), disk) else {
        return;
    };
    let Some(attached) = Loop::over(&mounted.disk(), &[]) else {
        return;
    };
    let device = attached.device.as_str();
    let args = [
        "check",
        device,
        "--destroy",
        device,
        "--full",
        "--json",
        "c.json",
    ];
    let child = command(own.path(), &args).spawn().unwrap();
    // Attaching and opening a disk reads it less often.
    wait_until(|| reads.load(Ordering::SeqCst) >= 16);
    signal(&child, "-INT");
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    let warning = format!("warning: {device}: interrupted; the figures are those before\n");
    assert!(run.stderr.contains(&warning), "{}", run.stderr);
    assert!(
        run.stdout.contains("The check ended early"),
        "{}",
        run.stdout
    );
    let json = fs::read_to_string(own.path().join("c.json")).unwrap();
    let figures: Value = serde_json::from_str(&json).unwrap();
    let tested = figures["results"][0]["capacity"]["tested_bytes"].as_u64();
    assert!((1..BYTES).contains(&tested.unwrap()), "{json}");
}
