//! `flash-benchmark` and the programs that it runs, losetup and mkfs: interrupted, killed, failing or missing. The tests
//! put programs of their own in front of the real ones.

use crate::common;
use crate::disks;

use common::loop_disk::LoopDisk;
use common::signals::{end, wait_until};
use common::{Run, assert_refused, command, directory, json, run};
use disks::in_a_namespace;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BYTES: u64 = 64 << 20;

/// States the process and its standard input, and then runs for ten minutes.
const SLEEPS: &str =
    "readlink /proc/self/fd/0 > stdin; echo $$ > pid.new; mv pid.new pid; exec sleep 600";

/// Writes a program to the folder `tools`.
fn write_tool(own: &Path, name: &str, script: &str) {
    let tools = own.join("tools");
    fs::create_dir_all(&tools).unwrap();
    let path = tools.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The command, which finds the programs in `tools` first.
fn with_tools(own: &Path, args: &[&str]) -> Command {
    let path = std::env::var("PATH").unwrap();
    let mut command = command(own, args);
    command.env("PATH", format!("{}:{path}", own.join("tools").display()));
    command
}

/// Starts a study that formats the disk with ext2, and waits until mkfs runs. Returns the processes.
fn started(own: &Path, device: &str) -> (Child, String) {
    write_tool(own, "mkfs.ext2", SLEEPS);
    let args = ["flash-benchmark", device, "--destroy", device];
    let mut study = with_tools(own, &[&args[..], &["--experiment", "file-size"]].concat());
    let child = study.spawn().unwrap();
    wait_until(|| own.join("pid").exists());
    let pid = fs::read_to_string(own.join("pid")).unwrap();
    (child, pid.trim().to_string())
}

/// Returns false for processes that have ended, also if nobody has waited for them.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Returns the loop devices on a device or file.
fn loops_on(backing: &str) -> Vec<String> {
    let blocks = fs::read_dir("/sys/block").unwrap().flatten();
    let is_on = |name: &String| {
        let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
        file.is_ok_and(|file| file.trim() == backing)
    };
    let names = blocks.map(|block| block.file_name().into_string().unwrap());
    names
        .filter(is_on)
        .map(|name| format!("/dev/{name}"))
        .collect()
}

#[test]
#[ignore = "needs root and losetup"]
fn a_signal_while_mkfs_runs_ends_it_and_the_run_at_once() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let Some(disk) = LoopDisk::new(BYTES) else {
            return;
        };
        let own = directory();
        let device = disk.device.as_str();
        let (child, mkfs) = started(own.path(), device);
        let ended = end(child, signal);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let words = format!(
            "warning: {device}: interrupted at the step ext2; its marker and file systems were removed: format the disk \
             before use\n"
        );
        assert!(ended.stderr.ends_with(&words), "{}", ended.stderr);
        assert!(!ended.stderr.contains("error:"), "{}", ended.stderr);
        assert!(!runs(&mkfs));
        wait_until(|| loops_on(device).is_empty());
        assert_eq!(disk.first_block(), [0; 4096]);
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn mkfs_is_killed_with_the_command() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let (mut child, mkfs) = started(own.path(), &disk.device);
    assert!(runs(&mkfs));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| !runs(&mkfs));
    wait_until(|| loops_on(&disk.device).is_empty());
}

/// A setpriv that cannot set the signal for the death of the parent, such as busybox's.
#[test]
#[ignore = "needs root and losetup"]
fn an_orphan_of_mkfs_keeps_its_device_and_so_the_name_of_the_device() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    write_tool(own.path(), "setpriv", "echo unknown option >&2; exit 1");
    let (mut child, mkfs) = started(own.path(), device);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(runs(&mkfs));
    let on_disk = fs::read_to_string(own.path().join("stdin")).unwrap();
    assert_eq!(loops_on(device), [on_disk.trim()]);
    let next = run(
        own.path(),
        &["flash-benchmark", "-q", device, "--destroy", device],
    );
    assert_refused(&next, &[device, on_disk.trim(), "first"]);
    assert!(
        Command::new("kill")
            .args(["-KILL", &mkfs])
            .status()
            .unwrap()
            .success()
    );
    wait_until(|| loops_on(device).is_empty());
}

/// Ctrl-C in a terminal reaches the whole process group of the command.
#[test]
#[ignore = "needs root and losetup"]
fn ctrl_c_while_losetup_runs_leaves_no_loop_device() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let real = Command::new("sh")
        .args(["-c", "command -v losetup"])
        .output();
    let real = Run::from(real.unwrap()).stdout;
    let script = format!(
        "{} \"$@\" || exit 1\n[ \"$1\" = --find ] || exit 0\n> attached; while [ ! -e go ]; do sleep 0.01; done",
        real.trim()
    );
    write_tool(own.path(), "losetup", &script);
    let args = ["flash-benchmark", device, "--destroy", device];
    let args = [&args[..], &["--experiment", "file-size"]].concat();
    let child = with_tools(own.path(), &args)
        .process_group(0)
        .spawn()
        .unwrap();
    wait_until(|| own.path().join("attached").exists());
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.unwrap().success());
    fs::write(own.path().join("go"), "").unwrap();
    let ended = Run::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(!ended.stderr.contains("error:"), "{}", ended.stderr);
    wait_until(|| loops_on(device).is_empty());
}

#[test]
#[ignore = "needs root and losetup"]
fn the_error_of_a_program_is_no_reason_to_distrust_the_disk() {
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let device = disk.device.as_str();
    let full = "losetup: cannot find an unused loop device";
    let of_disk = "Input/output error while writing out and closing file system";
    for (tool, said, is_trusted) in [
        ("mkfs.ext2", "mkfs.ext2: no memory", true),
        ("mkfs.ext2", &format!("mkfs.ext2: {of_disk}"), false),
        ("losetup", full, true),
    ] {
        let own = directory();
        let script = format!("echo '{said}' >&2; exit 1");
        write_tool(own.path(), tool, &script);
        let args = ["flash-benchmark", "-q", device, "--destroy", device];
        let args = [&args[..], &["--experiment", "file-size"]].concat();
        let failed = with_tools(own.path(), &args).output().unwrap();
        let failed = Run::from(failed);
        assert_refused(&failed, &[device, "4 cases failed", &format!("({said})")]);
        let distrusts = failed.stderr.contains("do not trust");
        assert_eq!(distrusts, !is_trusted, "{}", failed.stderr);
        assert_eq!(failed.stderr.matches(tool).count(), 1, "{}", failed.stderr);
        assert_eq!(disk.first_block(), [0; 4096], "the marker is cleared");
        // A program that lists all loop devices may have this one open for a moment.
        wait_until(|| loops_on(device).is_empty());
    }
}

/// Replaces a program by a device in the mount namespace of this test, so that no file of its name is left.
fn hide(program: &str) {
    let script =
        "for f in $(type -ap $0); do mount --bind /dev/null $(readlink -f $f) || exit 1; done";
    let hidden = Command::new("bash").args(["-c", script, program]).status();
    assert!(hidden.unwrap().success());
}

/// Without setpriv, mkfs outlives a killed run; without mkfs, there is no such file system.
#[test]
#[ignore = "needs root and /dev/fuse"]
fn missing_programs_are_named_with_their_packages() {
    if !in_a_namespace("missing_programs_are_named_with_their_packages") {
        return;
    }
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let whole = ["flash-benchmark", "-q", device, "--destroy", device];
    let some = [
        "--experiment",
        "file-size",
        "--limit",
        "1MB",
        "--repeat",
        "1",
    ];
    hide("setpriv");
    // The shell that holds the loop device until it is formatted needs no other program.
    hide("cat");
    let figures = json(own.path(), &[&whole[..], &some].concat());
    assert_eq!(figures["rows"][0]["outcome"], "measured");
    let notes = figures["notes"].to_string();
    let note = "no setpriv; install the Debian package util-linux";
    assert!(notes.contains(note), "{notes}");
    hide("mkfs.ext2");
    let failed = run(own.path(), &[&whole[..], &some].concat());
    assert_eq!(failed.code, Some(2), "{}", failed.stderr);
    let reason = "no mkfs.ext2; install the Debian package e2fsprogs";
    assert!(failed.stderr.contains(reason), "{}", failed.stderr);
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn a_missing_losetup_makes_file_systems_unavailable() {
    if !in_a_namespace("a_missing_losetup_makes_file_systems_unavailable") {
        return;
    }
    let Some(disk) = LoopDisk::new(BYTES) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    hide("losetup");
    let whole = ["flash-benchmark", "-q", device, "--destroy", device];
    let files = ["--experiment", "file-size"];
    let refused = run(own.path(), &[&whole[..], &files].concat());
    let reason = "no losetup; install the Debian package mount";
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for words in [device, "nothing was measured", reason] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert!(
        !refused.stderr.contains("do not trust"),
        "{}",
        refused.stderr
    );
    let some = [
        "--experiment",
        "filesystems",
        "--limit",
        "1MB",
        "--repeat",
        "1",
    ];
    let figures = json(own.path(), &[&whole[..], &some].concat());
    for row in figures["rows"].as_array().unwrap() {
        match row["set_up"].as_str().unwrap() {
            "raw" => assert_eq!(
                row["outcome"],
                if row["case"] == "1 MB" {
                    "measured"
                } else {
                    "skipped"
                }
            ),
            "ext2" => assert_eq!(
                (&row["outcome"], &row["reason"]),
                (&"not-available".into(), &reason.into())
            ),
            _ => assert_eq!(row["outcome"], "not-available"),
        }
    }
}

/// A limit of this process, and not of the storage.
#[test]
fn a_limit_of_the_computer_is_no_reason_to_distrust_a_directory() {
    let own = directory();
    fs::create_dir(own.path().join("card")).unwrap();
    let program = env!("CARGO_BIN_EXE_cardiograph");
    let script = format!(
        "trap '' XFSZ; ulimit -f 100; exec {program} flash-benchmark card --experiment file-size --limit 1MB"
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(own.path())
        .stdin(Stdio::null());
    let failed = Run::from(shell.output().unwrap());
    assert_refused(
        &failed,
        &["card", "1 case failed", "File too large", "ulimit -f"],
    );
    assert!(!failed.stderr.contains("do not trust"), "{}", failed.stderr);
    assert_eq!(fs::read_dir(own.path().join("card")).unwrap().count(), 0);
}

/// Blocks that are smaller than those of the disk.
#[test]
#[ignore = "needs root and losetup"]
fn block_sizes_that_mkfs_refuses_are_not_available() {
    let Some(disk) = LoopDisk::with_options(BYTES, &["--sector-size", "4096"]) else {
        return;
    };
    let own = directory();
    let device = disk.device.as_str();
    let args = ["flash-benchmark", device, "--destroy", device];
    let some = [
        "--experiment",
        "fs-block",
        "--experiment",
        "filesystems",
        "--experiment",
        "chunk-sweep",
    ];
    let few = ["--repeat", "1", "--limit", "2MB"];
    let figures = json(own.path(), &[&args[..], &some, &few].concat());
    assert_eq!(figures["disk"]["block_bytes"], 4096);
    let rows = figures["rows"].as_array().unwrap();
    let mut refused = 0;
    for row in rows
        .iter()
        .filter(|row| row["set_up"].as_str().unwrap().starts_with("ext"))
    {
        let is_small = row["set_up"] == "ext2, blocks of 1024 B";
        if is_small {
            refused += 1;
            assert_eq!(row["outcome"], "not-available", "{row}");
            let reason =
                "mkfs.ext2: Invalid argument while setting blocksize; too small for device";
            assert_eq!(row["reason"], reason);
        } else {
            assert!(
                row["outcome"] == "measured" || row["outcome"] == "skipped",
                "{row}"
            );
        }
    }
    assert_eq!(refused, 4);
    assert!(
        rows.iter()
            .any(|row| row["set_up"] == "ext4" && row["outcome"] == "measured")
    );
    let raw = rows.iter().filter(|row| row["experiment"] == "chunk-sweep");
    assert!(raw.clone().count() == 5 && raw.clone().all(|row| row["outcome"] == "measured"));
}
