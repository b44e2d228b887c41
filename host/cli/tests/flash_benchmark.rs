//! `flash-benchmark`: study 2 on whole disks, which are loop devices, and in directories.

mod common;

use common::loop_disk::LoopDisk;
use common::signals::wait_until;
use common::{assert_refused, command, directory, json, names, run, tree};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

const BYTES: u64 = 64 << 20;
const REGION_BEGIN: usize = 4 << 20;

/// Small enough for a test.
const SMALL: [&str; 4] = ["--limit", "2MB", "--repeat", "3"];

fn rows(figures: &Value) -> Vec<&Value> {
    figures["rows"].as_array().unwrap().iter().collect()
}

fn of<'v>(figures: &'v Value, experiment: &str) -> Vec<&'v Value> {
    let mut rows = rows(figures);
    rows.retain(|row| row["experiment"] == experiment);
    rows
}

/// Compares the statistics of every row with its values.
fn check_statistics(figures: &Value) {
    let mut count = 0;
    for row in rows(figures) {
        let values = row["values"].as_array().unwrap().iter();
        let mut values: Vec<f64> = values.map(|value| value.as_f64().unwrap()).collect();
        assert_eq!(values.is_empty(), row["statistics"].is_null(), "{row}");
        assert_eq!(row["outcome"] == "measured", !values.is_empty(), "{row}");
        if values.is_empty() {
            assert!(row["reason"].is_string(), "{row}");
            continue;
        }
        count += 1;
        values.sort_by(f64::total_cmp);
        assert!(values[0] > 0.0, "{row}");
        let statistics = &row["statistics"];
        assert_eq!(statistics["min"], values[0]);
        assert_eq!(statistics["max"], values[values.len() - 1]);
        if values.len() == 3 {
            assert_eq!(statistics["median"], values[1]);
        }
    }
    assert!(count > 0);
}

/// Asserts that no mount and no loop device uses the disk.
fn assert_unused(device: &str) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mounts.split_whitespace().any(|word| word == device),
        "{mounts}"
    );
    // A killed process closes its files a moment after its parent knows of its end.
    wait_until(|| {
        let list = Command::new("losetup")
            .args(["--noheadings", "--output", "BACK-FILE", "--list"])
            .output();
        let list = String::from_utf8(list.unwrap().stdout).unwrap();
        !list.lines().any(|line| line.trim() == device)
    });
}

#[test]
fn all_experiments_run_on_a_disk_that_is_blank_afterwards() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let whole = ["flash-benchmark", device, "--destroy", device];
    let outputs = ["--markdown", "m.md", "--html", "h.html"];
    let figures = json(own.path(), &[&whole, &SMALL[..], &outputs].concat());
    check_statistics(&figures);
    assert_eq!(figures["disk"]["is_overwritten"], true);

    // The list of file systems agrees with the kernel's.
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    for file_system in figures["file_systems"].as_array().unwrap() {
        let name = file_system["name"].as_str().unwrap();
        let is_known = known.lines().any(|line| line.trim() == name);
        let is_available = file_system["is_available"].as_bool().unwrap();
        assert!(is_known || !is_available, "{file_system}");
        let mut own = of(&figures, "filesystems");
        own.retain(|row| row["set_up"] == name);
        assert_eq!(own.len(), 4, "{name}");
        let outcome = if is_available {
            "measured"
        } else {
            "not-available"
        };
        assert_eq!(own[0]["outcome"], outcome, "{}", own[0]);
    }
    assert_eq!(of(&figures, "fs-block").len(), 16);
    assert_eq!(of(&figures, "chunk-sweep").len(), 5);
    assert_eq!(of(&figures, "chunk-sweep")[2]["published"]["value"], 3.3);
    let scenarios = of(&figures, "sync-scenarios");
    let first = |row: &Value| row["case"].as_str().unwrap()[..1].to_string();
    let order: String = scenarios.iter().map(|row| first(row)).collect();
    assert_eq!(order, "123456789");
    assert_eq!(scenarios[3]["published"]["max"], 1.8);
    for file in ["m.md", "h.html"] {
        let text = fs::read_to_string(own.path().join(file)).unwrap();
        assert!(
            text.contains("sync-scenarios") && text.contains("1.6 to 1.8"),
            "{text}"
        );
    }

    assert_unused(device);
    let content = disk.content();
    assert!(content[..4096].iter().all(|&byte| byte == 0));
    assert!(
        content[REGION_BEGIN..][..1 << 20]
            .iter()
            .all(|&byte| byte == 0)
    );
    let signatures = Command::new("blkid").args(["--probe", device]).output();
    assert_eq!(signatures.unwrap().stdout, b"");
}

#[test]
fn a_disk_is_not_written_unless_its_name_is_repeated() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let named = format!("--destroy {device}");
    let refused = run(own.path(), &["flash-benchmark", "-q", device]);
    assert_refused(&refused, &[device, &named, "all files on it are lost"]);
    let other = ["flash-benchmark", "-q", device, "--destroy", "/dev/loop"];
    assert_refused(&run(own.path(), &other), &[device, &named]);
    assert!(disk.content() == vec![0; BYTES as usize]);
    let Some(small) = LoopDisk::new(16 << 20) else {
        return;
    };
    let device = small.device.as_str();
    let args = ["flash-benchmark", "-q", device, "--destroy", device];
    assert_refused(&run(own.path(), &args), &[device, "smaller than 32 MiB"]);
    assert!(small.content() == vec![0; 16 << 20]);
}

#[test]
fn a_killed_run_is_named_by_the_next_one_and_leaves_no_mount() {
    let own = directory();
    for step in ["raw transfers", "ext2", "ext3", "ext4"] {
        let Some(disk) = LoopDisk::new(BYTES) else {
            return;
        };
        let device = disk.device.as_str();
        let whole = ["flash-benchmark", device, "--destroy", device];
        let mut started = command(own.path(), &[&whole, &SMALL[..]].concat());
        let mut child = started
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = format!("\nstep: {step}\n");
        wait_until(|| {
            let begin = disk.first_block();
            let is_there = String::from_utf8_lossy(&begin).contains(&line);
            assert!(is_there || child_runs(&child), "{step} was not reached");
            is_there
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_unused(device);
        let named = format!(
            "warning: {device} was half formatted by an interrupted run of `cardiograph flash-benchmark {device}"
        );
        // The run may have begun its next step before it was killed.
        let begin = String::from_utf8(disk.first_block().to_vec()).unwrap();
        let killed_at = begin.lines().find_map(|line| line.strip_prefix("step: "));
        let killed_at = format!("at the step {}; ", killed_at.unwrap());
        for next in ["bench", "check"] {
            let next = run(own.path(), &[next, device, "-q"]);
            assert_eq!(next.code, Some(0), "{}", next.stderr);
            assert!(next.stderr.contains(&named), "{}", next.stderr);
            assert!(next.stderr.contains(&killed_at), "{}", next.stderr);
        }
        let experiment = ["--experiment", "chunk-sweep", "--repeat", "1"];
        let whole = run(own.path(), &[&whole[..], &experiment].concat());
        assert_eq!(whole.code, Some(0), "{}", whole.stderr);
        assert!(whole.stderr.contains(&named), "{}", whole.stderr);
        let next = run(own.path(), &["bench", device, "-q"]);
        assert_eq!((next.code, next.stderr.as_str()), (Some(0), ""));
    }
}

/// Returns true unless the process has ended.
fn child_runs(child: &std::process::Child) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_directory_is_measured_without_formatting_and_left_as_it_was() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    fs::write(own.path().join("card/mine"), "mine").unwrap();
    let left = own.path().join("card/cardiograph-flash-benchmark-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("00000.bin"), "mine, too").unwrap();
    let before = tree(own.path());
    let figures = json(
        own.path(),
        &[&["flash-benchmark", "card"], &SMALL[..]].concat(),
    );
    check_statistics(&figures);
    assert_eq!(tree(own.path()), before);
    assert!(figures["disk"].is_null());
    let mut scenarios = of(&figures, "sync-scenarios");
    scenarios.retain(|row| row["outcome"] == "measured");
    assert_eq!(scenarios.len(), 3);
    for row in of(&figures, "fs-block") {
        assert_eq!(row["reason"], "needs a whole disk");
    }
    assert_eq!(of(&figures, "file-size")[0]["published"]["set_up"], "ext2");

    for (args, words) in [
        (
            &["sim:class10-16g"][..],
            ["sim:class10-16g", "cardiograph reproduce"],
        ),
        (
            &["no-such-folder"],
            ["no-such-folder", "neither a directory nor a disk"],
        ),
        (
            &["card", "--destroy", "card"],
            ["card", "--destroy does not apply"],
        ),
        (&["/proc"], ["/proc", "choose a directory you may write to"]),
    ] {
        let refused = run(own.path(), &[&["flash-benchmark"], args].concat());
        assert_refused(&refused, &words);
    }
    assert_eq!(names(own.path()), ["card"]);
}
