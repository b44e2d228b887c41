//! Programs of the administrator, such as losetup and mkfs: found, run to their end, or killed.

use cardiograph_system::{in_own_group, kill_group};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Pause between two looks at a program that runs.
const POLL: Duration = Duration::from_millis(10);

/// Executes a program that the kernel kills when this process dies (`PR_SET_PDEATHSIG`, set by setpriv). If this process
/// dies before that is set, the inner shell has another parent, and executes nothing. Without such a setpriv, the
/// program runs to its end.
const WITH_PARENT: &str = r#"
    parent=$1; setpriv=$2; shift 2
    "$setpriv" --pdeathsig KILL true 2>/dev/null || exec "$@"
    exec "$setpriv" --pdeathsig KILL sh -c '[ "$PPID" = "$0" ] && exec "$@"' "$parent" "$@""#;

/// End of a program that has not done its work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// The caller stopped it.
    Interrupted,
    /// It failed; the last line that it printed, or its exit status.
    Failed(String),
}

/// Finds a program of the administrator, also for users whose PATH does not have it.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let always = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(always);
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
}

/// States that a program is missing, with the Debian package that has it.
pub(crate) fn missing(name: &str) -> String {
    let package = match name {
        "losetup" => "mount",
        "setpriv" => "util-linux",
        "sh" => "dash",
        "mkfs.vfat" => "dosfstools",
        "mkfs.exfat" => "exfatprogs",
        "mkfs.f2fs" => "f2fs-tools",
        _ => "e2fsprogs",
    };
    format!("no {name}; install the Debian package {package}")
}

/// Returns what is different without setpriv, which ends the programs with this process; `None` if this computer has it.
pub fn without_setpriv() -> Option<String> {
    tool("setpriv").is_none().then(|| {
        let missing = missing("setpriv");
        format!("If this command is killed, mkfs runs on, because there is {missing}.")
    })
}

/// Runs a program, given as its words, to its end; `go_on` may stop it meanwhile.
///
/// Its standard input is the device that it works on. As long as it runs, the device is therefore open, and its name
/// cannot become that of another device, even if this process is killed. The calling thread must not end before the
/// program does, because the kernel regards this thread as the parent.
pub(crate) fn run(
    words: &[OsString],
    device: &File,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<(), Unfinished> {
    let failed = |error: std::io::Error| Unfinished::Failed(error.to_string());
    let no_shell = |error| Unfinished::Failed(not_started(&error));
    let setpriv = tool("setpriv").unwrap_or(PathBuf::from("setpriv"));
    let mut shell = Command::new("sh");
    shell.args(["-c", WITH_PARENT, "sh"]);
    shell.arg(std::process::id().to_string());
    // Messages are compared with those of the C library.
    shell.arg(setpriv).args(words).env("LC_ALL", "C");
    shell.stdin(device.try_clone().map_err(failed)?);
    shell.stdout(Stdio::null());
    in_own_group(&mut shell);
    // Before the program: without a thread that reads its messages, it must not begin.
    let (mut errors, messages) = std::io::pipe().map_err(failed)?;
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let reader = reader.map_err(failed)?;
    let mut child = shell.stderr(messages).spawn().map_err(no_shell)?;
    // Closes this end of the pipe.
    drop(shell);
    let mut ended = None;
    let status = loop {
        ended = ended.or(child.try_wait().map_err(failed)?);
        // A program that it has started may still have the pipe.
        if let Some(status) = ended.filter(|_| reader.is_finished()) {
            break status;
        }
        if go_on().is_break() {
            let _ = kill_group(&mut child);
            let _ = child.wait();
            return Err(Unfinished::Interrupted);
        }
        std::thread::sleep(POLL);
    };
    let text = reader.join().unwrap_or_default();
    match status.success() {
        true => Ok(()),
        false => Err(Unfinished::Failed(
            last_line(&text).unwrap_or(status.to_string()),
        )),
    }
}

/// Returns the reason why the shell did not start.
pub(crate) fn not_started(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => missing("sh"),
        _ => format!("sh: {error}"),
    }
}

/// Returns the last line that has words, without the name of a program in front.
pub(crate) fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let rest = match line.split_once(": ") {
        Some((name, rest)) if name.starts_with("mkfs.") || name == "losetup" => rest,
        _ => line,
    };
    Some(rest.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(
        script: &str,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), Unfinished> {
        let device = File::open("/dev/null").unwrap();
        run(&["sh", "-c", script].map(OsString::from), &device, go_on)
    }

    #[test]
    fn the_reason_is_the_last_line_without_the_name_of_the_program() {
        let mut go_on = || ControlFlow::Continue(());
        assert_eq!(run_shell("exit 0", &mut go_on), Ok(()));
        let script = "echo first >&2; echo 'mkfs.ext2: a: b' >&2; echo >&2; exit 1";
        let failed = run_shell(script, &mut go_on);
        assert_eq!(failed, Err(Unfinished::Failed(String::from("a: b"))));
        let failed = run_shell("exit 3", &mut go_on);
        let status = String::from("exit status: 3");
        assert_eq!(failed, Err(Unfinished::Failed(status)));
        assert_eq!(last_line("losetup: x: y").as_deref(), Some("x: y"));
        assert_eq!(last_line("a: b\n \n").as_deref(), Some("a: b"));
        assert_eq!(last_line("\n"), None);
    }

    /// More output than a pipe holds.
    #[test]
    fn a_program_may_print_much() {
        let script = "seq 100000 >&2; exit 1";
        let failed = run_shell(script, &mut || ControlFlow::Continue(()));
        assert_eq!(failed, Err(Unfinished::Failed(String::from("100000"))));
    }

    #[test]
    fn a_stopped_program_is_killed_with_everything_that_it_has_started() {
        stop("wait", |_| true);
        // The program itself has ended, and has left one that still has the pipe.
        stop("exit 1", |program| !runs(program));
    }

    fn stop(end: &str, is_ready: impl Fn(&str) -> bool) {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let script = format!(
            "sleep 600 & echo $! $$ > {0}.new; mv {0}.new {0}; {end}",
            pids.display()
        );
        let read = || std::fs::read_to_string(&pids).unwrap_or_default();
        let stopped = run_shell(&script, &mut || match read().split_whitespace().nth(1) {
            Some(program) if is_ready(program) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(stopped, Err(Unfinished::Interrupted));
        let pids = read();
        for pid in pids.split_whitespace() {
            let begun = std::time::Instant::now();
            while runs(pid) {
                assert!(begun.elapsed() < Duration::from_secs(30), "{pid} runs");
                std::thread::sleep(POLL);
            }
        }
    }

    /// Returns false for processes that have ended, also if nobody has waited for them.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }
}
