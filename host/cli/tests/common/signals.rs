//! Runs of the command that are ended by a signal.

use super::Run;
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Timeout of every wait, far longer than a busy machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Time within which a signal must end the command.
const SOON: Duration = Duration::from_secs(5);

/// Waits for a condition.
pub fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the process has a handler for SIGINT; before that, the signal would simply kill it.
pub fn wait_for_handler(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    wait_until(|| {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        // Bit 0 stands for signal 1; SIGINT is signal 2.
        caught & 0b10 != 0
    });
}

/// Sends the signal and waits for the process to end, within [`SOON`].
pub fn end(child: Child, signal: &str) -> Run {
    end_within(child, signal, SOON)
}

/// Sends the signal and waits for the process to end, within the given time.
pub fn end_within(mut child: Child, signal: &str, time: Duration) -> Run {
    let mut kill = Command::new("kill");
    let sent = kill.arg(signal).arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > time {
            child.kill().unwrap();
            panic!("still running {time:?} after the signal");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Run::from(child.wait_with_output().unwrap())
}
