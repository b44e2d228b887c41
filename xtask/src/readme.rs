//! Runs every command of the README, so that the README stays correct.
//!
//! Commands are in fenced blocks marked `sh`, one per line. They run in an empty folder with links to the
//! repository's test data and documents; a folder in it replaces `/media/card`, the reader's card. A command that
//! serves files runs while the other commands of its block do. For `check`, a fake card is mounted there, which the command
//! has to find.

use crate::disks::fake::Fake;
use crate::disks::fuse::Mounted;
use crate::run::{root, target};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Commands that are not run: `cargo xtask test` runs this check itself, and also the firmware tests.
const SKIPPED: [&str; 4] = [
    "cargo xtask test",
    "cargo xtask firmware",
    "cargo xtask rp2040",
    "cargo xtask playground",
];

/// Address of a server whose command names none.
const SERVE_ADDRESS: &str = "127.0.0.1:8080";
/// Longest wait for a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// Capacity that the fake card claims; it keeps half of it.
const FAKE_BYTES: usize = 64 << 20;

/// Exit code of the shell if the fake card cannot be mounted.
const NOT_MOUNTED: i32 = 77;

/// Runs the commands; returns their number.
pub fn commands() -> Result<usize, String> {
    let path = root().join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("README.md: {error}"))?;
    let folder = target().join("readme");
    // Commands refuse to overwrite the files of an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    prepare(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let blocks = blocks_in(&text);
    for block in &blocks {
        let mut servers = Vec::new();
        for command in block.iter().filter(|command| !SKIPPED.contains(command)) {
            match *command {
                command if serves(command) => servers.push(Server::start(command, &folder)?),
                command if command.starts_with("cardiograph check ") => {
                    on_fake_card(command, &folder)?;
                }
                command => run(command, &folder)?,
            }
        }
        servers.into_iter().try_for_each(Server::end)?;
    }
    Ok(blocks.iter().map(Vec::len).sum())
}

fn prepare(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join("card"))?;
    std::os::unix::fs::symlink(root().join("tests"), folder.join("tests"))?;
    std::os::unix::fs::symlink(root().join("docs"), folder.join("docs"))
}

/// Returns the commands of each fenced block.
fn blocks_in(text: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut is_in_block = false;
    for line in text.lines() {
        match line {
            "```sh" => {
                is_in_block = true;
                blocks.push(Vec::new());
            }
            "```" => is_in_block = false,
            line if is_in_block && !line.is_empty() => blocks
                .last_mut()
                .into_iter()
                .for_each(|block| block.push(line)),
            _ => {}
        }
    }
    blocks
}

/// Returns true for a command that serves files until it is ended, or until a recording ends.
fn serves(command: &str) -> bool {
    ["cardiograph serve ", "cardiograph demo"]
        .iter()
        .any(|start| command.starts_with(start))
        || command.contains(" --serve ")
}

/// A running command that serves files.
struct Server<'a> {
    command: &'a str,
    child: Child,
}

impl<'a> Server<'a> {
    /// Runs a command and waits until it accepts connections.
    fn start(command: &'a str, folder: &Path) -> Result<Server<'a>, String> {
        let mut words = command.split(' ');
        let address = words.find(|word| ["--listen", "--serve"].contains(word));
        let address = address.and_then(|_| words.next()).unwrap_or(SERVE_ADDRESS);
        // Signals go to the command itself.
        let child = shell(&format!("exec {command}"), folder).spawn();
        let child = child.map_err(|error| format!("README: {command}: {error}"))?;
        let mut server = Server { command, child };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = server.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || begun.elapsed() > PATIENCE {
                return Err(format!("README: `{command}` does not serve at {address}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Ends a server as Ctrl-C does; waits for the end of a recording.
    fn end(mut self) -> Result<(), String> {
        let is_recording = self.command.contains(" --serve ");
        if !is_recording {
            let id = self.child.id().to_string();
            let _ = Command::new("kill").args(["-INT", &id]).status();
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match status.code() {
            Some(0) => Ok(()),
            Some(130) if !is_recording => Ok(()),
            _ => Err(format!("README: `{}` failed ({status})", self.command)),
        }
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn run(command: &str, folder: &Path) -> Result<(), String> {
    let status = shell(command, folder)
        .status()
        .map_err(|error| format!("README: {command}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("README: `{command}` failed ({status})"))
    }
}

/// Runs a check of `/media/card` with a fake card there, and expects that the check finds it.
fn on_fake_card(command: &str, folder: &Path) -> Result<(), String> {
    let failed = |what: &str| {
        format!("README: `{command}`: {what}; run as root, with loop devices and FUSE")
    };
    let image = folder.join("fake.img");
    let format = format!(
        "truncate -s {FAKE_BYTES} {0} && mkfs.ext4 -q -F -O ^has_journal {0}",
        image.display()
    );
    let formatted = shell(&format, folder).status();
    let is_formatted = formatted.is_ok_and(|status| status.success());
    let content = std::fs::read(&image).ok().filter(|_| is_formatted);
    let content = content.ok_or_else(|| failed("no file system for the fake card"))?;
    let fuse = folder.join("fake");
    std::fs::create_dir_all(&fuse).map_err(|error| failed(&error.to_string()))?;
    let fake = Fake::new(content, FAKE_BYTES / 2);
    let Some(mounted) = Mounted::at(&fuse, fake) else {
        println!("README: `{command}` was not run: no FUSE on this machine for the fake card");
        return Ok(());
    };
    // The mount ends with its namespace, and the loop device with the mount.
    let card = folder.join("card");
    let mut check = Command::new("unshare");
    check.args([
        "--mount",
        "sh",
        "-ec",
        "mount -o loop \"$1\" \"$2\" || exit 77; exec sh -c \"$3\"",
        "sh",
    ]);
    check.args([mounted.disk(), card]);
    let words = shell(command, folder);
    check.args(words.get_args().last());
    check.current_dir(folder);
    check.envs(
        words
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = check.output().map_err(|error| failed(&error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match (output.status.code(), text.lines().next_back()) {
        (Some(2), Some("fake")) => Ok(()),
        (Some(NOT_MOUNTED), _) => {
            println!("README: `{command}` was not run: this machine cannot mount the fake card");
            Ok(())
        }
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(failed(&format!(
                "did not find the fake card ({text}{errors})"
            )))
        }
    }
}

/// Returns a command of the README, to be run in `folder`.
fn shell(command: &str, folder: &Path) -> Command {
    let manifest = root().join("Cargo.toml");
    let here = command
        .replace("/media/card", &folder.join("card").display().to_string())
        .replace(
            "cargo run --release",
            &format!("cargo run --release --manifest-path {}", manifest.display()),
        )
        .replace(
            "--path host/cli",
            &format!(
                "--path {} --root installed",
                root().join("host/cli").display()
            ),
        );
    eprintln!("\nREADME: {command}");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.join("installed/bin").display());
    let mut shell = Command::new("sh");
    shell.args(["-ec", &here]);
    shell.current_dir(folder).env("PATH", path);
    shell.env("CARGO_TARGET_DIR", target());
    shell
}
