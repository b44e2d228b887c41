//! Mounts file systems for a test in a mount namespace that ends with the command.

use super::Run;
use std::path::Path;
use std::process::Command;

/// Mounts the file system, runs the command, and then prints `left:` and the paths that the command left
/// behind.
const SCRIPT: &str = r#"
    directory=$1; options=$2; kind=$3; shift 3
    mount -t "$kind" -o "$options" cardiograph "$directory"
    "$@"; code=$?
    echo "left:"; find "$directory" -mindepth 1
    exit $code"#;

/// Runs the command with a file system mounted on `directory`; the second result lists the paths that the
/// command left there.
pub fn run_mounted(
    kind: &str,
    options: &str,
    directory: &Path,
    args: &[&str],
) -> (Run, Vec<String>) {
    let mut command = Command::new("unshare");
    command
        .args(namespace(directory))
        .args(["sh", "-c", SCRIPT, "sh"]);
    command.arg(directory).args([options, kind]);
    command.arg(env!("CARGO_BIN_EXE_cardiograph")).args(args);
    let mut run = Run::from(command.output().unwrap());
    let (stdout, left) = run.stdout.rsplit_once("left:\n").expect("the script ran");
    let left = left.lines().map(str::to_string).collect();
    run.stdout = stdout.to_string();
    (run, left)
}

/// Returns the options of `unshare` with which this user can create a mount namespace.
pub fn namespace(directory: &Path) -> &'static [&'static str] {
    const AS_ROOT: &[&str] = &["--mount"];
    const AS_ANYBODY: &[&str] = &["--user", "--map-root-user", "--mount"];
    for flags in [AS_ROOT, AS_ANYBODY] {
        let mut attempt = Command::new("unshare");
        attempt.args(flags).args(["mount", "-t", "tmpfs", "tmpfs"]);
        let output = attempt.arg(directory).output();
        if output.is_ok_and(|output| output.status.success()) {
            return flags;
        }
    }
    panic!(
        "this test mounts a file system: run it as root with CAP_SYS_ADMIN, or allow user \
         namespaces (sysctl kernel.unprivileged_userns_clone=1, \
         kernel.apparmor_restrict_unprivileged_userns=0); it needs unshare and mount of util-linux"
    );
}
