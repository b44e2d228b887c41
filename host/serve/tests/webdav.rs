//! The server as a network drive, used by clients of others: litmus, which tests conformance, rclone, cadaver and davfs2.

use crate::common;

use common::Server;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};

/// Runs a program in the directory above the served one.
fn run(server: &Server, program: &str, args: &[&str], input: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args(["120", program]).args(args);
    command.current_dir(server.outside());
    command.env("HOME", server.outside());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Runs one of the suites of litmus; returns the names of the tests that failed, and the number of those that passed.
fn litmus(suite: &str) -> (Vec<String>, usize) {
    let server = Server::start();
    let mut command = Command::new("timeout");
    command.args(["120", "litmus"]).arg(server.url("/"));
    command.current_dir(server.outside()).env("TESTS", suite);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = |result: &str| {
        // A line is "12. name.... pass", or, for a failed test, that text twice.
        let lines = text.lines().filter(|line| line.contains(result));
        let names = lines.filter_map(|line| {
            let (number, rest) = line.trim_start().split_once(". ")?;
            number.parse::<u32>().ok()?;
            Some(rest.split('.').next()?.to_string())
        });
        names.collect::<Vec<_>>()
    };
    let failed = names(" FAIL ");
    let passed = text
        .split(" passed, ")
        .next()
        .and_then(|before| before.rsplit(' ').next()?.parse().ok());
    (
        failed,
        passed.unwrap_or_else(|| panic!("no summary in {text}")),
    )
}

#[test]
#[ignore = "needs litmus"]
fn litmus_finds_no_fault_in_files_and_folders() {
    assert_eq!(litmus("basic"), (vec![], 16));
    assert_eq!(litmus("copymove"), (vec![], 13));
    assert_eq!(litmus("http"), (vec![], 4));
}

#[test]
#[ignore = "needs litmus"]
fn litmus_finds_only_what_the_server_does_not_store() {
    // The server stores no properties of clients, which `owner_modify` sets.
    let expected = ["owner_modify"; 3];
    assert_eq!(litmus("locks"), (expected.map(String::from).into(), 38));
    // The tests of stored properties are skipped once the first has failed.
    let (failed, passed) = litmus("props");
    assert_eq!(failed, ["propset", "propmanyns", "propget"]);
    assert_eq!(passed, 11);
}

#[test]
#[ignore = "needs rclone"]
fn rclone_copies_compares_and_removes_folders() {
    let server = Server::start();
    let folder = server.outside().join("local");
    fs::create_dir_all(folder.join("sub folder")).unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|at| (at.wrapping_mul(at) >> 7) as u8)
        .collect();
    fs::write(folder.join("large.bin"), &bytes).unwrap();
    fs::write(
        folder.join("sub folder/ä&b +1.txt"),
        "a name that is encoded",
    )
    .unwrap();
    let remote = format!(":webdav,url='{}',vendor=owncloud:", server.url("/"));
    let at = |path: &str| format!("{remote}{path}");
    let rclone = |args: &[&str]| {
        let output = run(&server, "rclone", args, "");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    rclone(&["copy", "local", &at("up")]);
    rclone(&["check", "--download", "local", &at("up")]);
    assert_eq!(fs::read(server.path("up/large.bin")).unwrap(), bytes);
    rclone(&["moveto", &at("up/large.bin"), &at("up/moved.bin")]);
    rclone(&["copyto", &at("up/moved.bin"), &at("up/sub folder/copy.bin")]);
    rclone(&["moveto", &at("up/sub folder"), &at("up/moved folder")]);
    let listed = rclone(&["lsf", "-R", &remote]);
    let mut names: Vec<&str> = listed.lines().collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "up/",
            "up/moved folder/",
            "up/moved folder/copy.bin",
            "up/moved folder/ä&b +1.txt",
            "up/moved.bin"
        ]
    );
    assert_eq!(
        fs::read(server.path("up/moved folder/copy.bin")).unwrap(),
        bytes
    );
    assert!(rclone(&["about", &remote]).contains("Free:"));
    rclone(&["purge", &at("up")]);
    assert!(server.names().is_empty());
}

#[test]
#[ignore = "needs rclone"]
fn rclone_keeps_the_time_of_a_file() {
    let server = Server::start();
    let path = server.outside().join("old.csv");
    fs::write(&path, "1,2\n").unwrap();
    let touched = run(
        &server,
        "touch",
        &["-d", "2020-02-29 12:00:00 UTC", "old.csv"],
        "",
    );
    assert!(touched.status.success());
    let remote = format!(":webdav,url='{}',vendor=owncloud:", server.url("/"));
    let output = run(&server, "rclone", &["copy", "old.csv", &remote], "");
    assert!(output.status.success(), "{output:?}");
    let time = |path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(time(server.path("old.csv")), time(path));
}

#[test]
#[ignore = "needs cadaver"]
fn cadaver_edits_under_a_lock() {
    let server = Server::start();
    fs::write(server.outside().join("local.csv"), "1,2\n").unwrap();
    let commands = "mkcol n\ncd n\nput local.csv a.csv\nlock a.csv\nput local.csv a.csv\ncopy a.csv b.csv\n\
        move b.csv c.csv\ndelete a.csv\nls\nquit\n";
    let output = run(&server, "cadaver", &[&server.url("/")], commands);
    let text = String::from_utf8(output.stdout).unwrap();
    let succeeded = text.matches("succeeded").count();
    assert_eq!(
        (succeeded, text.matches("failed").count()),
        (8, 0),
        "{text}"
    );
    assert_eq!(fs::read(server.path("n/c.csv")).unwrap(), b"1,2\n");
    assert!(!server.path("n/a.csv").exists() && !server.path("n/b.csv").exists());
}

/// A mounted network drive.
struct Mounted<'a> {
    server: &'a Server,
    is_mounted: bool,
}

impl Mounted<'_> {
    /// Unmounts the drive; davfs2 sends everything before it ends.
    fn unmount(mut self) {
        let output = run(self.server, "umount", &["drive"], "");
        assert!(output.status.success(), "{output:?}");
        self.is_mounted = false;
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if self.is_mounted {
            run(self.server, "umount", &["-i", "-l", "drive"], "");
        }
    }
}

/// Mounts the server with davfs2; returns `None` if this user may not mount.
fn mounted(server: &Server) -> Option<Mounted<'_>> {
    let fuse = fs::File::options().read(true).write(true).open("/dev/fuse");
    let is_root = fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0);
    if fuse.is_err() || !is_root {
        eprintln!("only root can mount, with /dev/fuse: davfs2 is not tested");
        return None;
    }
    fs::create_dir(server.outside().join("drive")).unwrap();
    let settings = server.outside().join("davfs2.conf");
    fs::write(&settings, "ask_auth 0\ndelay_upload 0\n").unwrap();
    let option = format!("conf={}", settings.display());
    let args = ["-t", "davfs", "-o", &option, &server.url("/"), "drive"];
    let output = run(server, "mount", &args, "");
    assert!(output.status.success(), "{output:?}");
    Some(Mounted {
        server,
        is_mounted: true,
    })
}

// Folders are not listed: with davfs2 1.6.1 on Linux 6.18, that fails with "Invalid argument" on other servers as well.
#[test]
#[ignore = "needs root and /dev/fuse"]
fn davfs2_mounts_a_drive_that_programs_change() {
    let server = Server::start();
    fs::create_dir(server.path("sub folder")).unwrap();
    server.write("sub folder/ä&b.csv", "1,2\n");
    let Some(drive) = mounted(&server) else {
        return;
    };
    let at = |name: &str| server.outside().join("drive").join(name);
    assert_eq!(fs::read(at("sub folder/ä&b.csv")).unwrap(), b"1,2\n");
    let bytes: Vec<u8> = (0..300_000_u32)
        .map(|at| (at.wrapping_mul(at) >> 7) as u8)
        .collect();
    fs::create_dir(at("made")).unwrap();
    fs::write(at("made/large.bin"), &bytes).unwrap();
    fs::write(at("short.txt"), "first").unwrap();
    fs::write(at("short.txt"), "second").unwrap();
    fs::rename(at("short.txt"), at("made/renamed.txt")).unwrap();
    fs::rename(at("sub folder/ä&b.csv"), at("sub folder/c.csv")).unwrap();
    fs::write(at("removed.txt"), "nothing").unwrap();
    fs::remove_file(at("removed.txt")).unwrap();
    drive.unmount();
    assert_eq!(server.read("made/large.bin"), bytes);
    assert_eq!(server.read("made/renamed.txt"), b"second");
    assert_eq!(server.read("sub folder/c.csv"), b"1,2\n");
    assert!(!server.path("removed.txt").exists() && !server.path("short.txt").exists());
}
