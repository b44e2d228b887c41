//! Disks for tests: a FUSE file system with a single file, and loop devices over files.

#![allow(dead_code, reason = "each file of tests uses a part")]

pub mod fake;
pub mod faulty;
pub mod fuse;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A loop device that detaches itself when its last user closes it, even if this process is killed.
pub struct Loop {
    pub device: String,
    _open: File,
}

impl Loop {
    /// Attaches a file; returns `None`, and says so, if this user may not create loop devices.
    pub fn over(file: &Path, options: &[&str]) -> Option<Loop> {
        let mut attach = Command::new("losetup");
        let attached = attach.args(["--find", "--show"]).args(options).arg(file);
        let attached = attached
            .output()
            .ok()
            .filter(|output| output.status.success());
        let Some(attached) = attached else {
            skipped("no loop devices for this user: disks are not tested");
            return None;
        };
        let device = String::from_utf8(attached.stdout).unwrap();
        let device = device.trim().to_string();
        let open = File::open(&device).unwrap();
        let detached = Command::new("losetup").args(["--detach", &device]).status();
        assert!(detached.unwrap().success());
        Some(Loop {
            device,
            _open: open,
        })
    }
}

/// Says that a test did nothing; this reaches the terminal even if the test passes.
pub fn skipped(why: &str) {
    let _ = std::io::stderr().write_all(format!("{why}\n").as_bytes());
}

/// Runs the test of this name in a mount namespace of its own, which ends with it. Returns true in the new namespace.
pub fn in_a_namespace(test: &str) -> bool {
    const INSIDE: &str = "CARDIOGRAPH_IN_A_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut unshare = Command::new("unshare");
    let this = std::env::current_exe().unwrap();
    unshare
        .args(["--mount", "--propagation", "private"])
        .arg(this);
    // Not --exact: in a program of several files, names of tests begin with that of the file.
    unshare
        .args([test, "--include-ignored", "--nocapture"])
        .env(INSIDE, "1");
    match Command::new("unshare").args(["--mount", "true"]).status() {
        Ok(status) if status.success() => assert!(unshare.status().unwrap().success()),
        _ => skipped("no mount namespaces for this user: FUSE is not tested"),
    }
    false
}
