//! A recording with a server, as a process of its own.

use crate::run::target;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than any attack.
const FOREVER: &str = "2h";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Directory,
    SimulatedCard,
}

pub struct Server {
    pub medium: Medium,
    pub address: SocketAddr,
    child: Child,
}

/// Figures that the attack must not change.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    pub recording: bool,
    pub lost: u64,
    pub windows_exceeded: u64,
    pub descriptors: usize,
    /// Resident memory; `None` where the card's contents are part of it.
    pub memory_kb: Option<u64>,
}

impl Server {
    /// Starts a recording at 860 Hz, with a server on a free port.
    pub fn start(medium: Medium, folder: &Path) -> Result<Server, String> {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = Command::new(target().join("release/cardiograph"));
        match medium {
            Medium::Directory => command
                .args([
                    "record",
                    ".",
                    "--rate",
                    "860",
                    "--for",
                    FOREVER,
                    "--file-size",
                    "1MiB",
                ])
                .args(["--serve", "127.0.0.1:0"]),
            Medium::SimulatedCard => command.args([
                "serve",
                "sim:class10-16g@esp32-26m",
                "--listen",
                "127.0.0.1:0",
                "--write",
            ]),
        };
        command
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|error| format!("cardiograph: {error}"))?;
        let output = child.stdout.take().ok_or("cardiograph has no output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let (_, rest) = line.split_once("http://")?;
            let end = rest.find(|mark: char| !mark.is_ascii_digit() && !".:".contains(mark));
            rest[..end.unwrap_or(rest.len())].parse().ok()
        });
        // A full pipe would stop the recording.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.ok_or_else(|| format!("{medium:?}: printed no address"))?;
        Ok(Server {
            medium,
            address,
            child,
        })
    }

    pub fn status(&self) -> Result<Status, String> {
        let text = get(self.address, "/status").map_err(|error| format!("/status: {error}"))?;
        let json: Value =
            serde_json::from_str(&text).map_err(|error| format!("/status: {error}: {text}"))?;
        let recorder = &json["recorder"];
        let number = |key: &str| {
            let number = recorder[key].as_u64();
            number.ok_or_else(|| format!("/status has no number {key}: {text}"))
        };
        let own = format!("/proc/{}", self.child.id());
        let open =
            std::fs::read_dir(format!("{own}/fd")).map_err(|error| format!("{own}/fd: {error}"))?;
        Ok(Status {
            recording: recorder["recording"] == true,
            lost: number("lost")?,
            windows_exceeded: number("windows_exceeded")?,
            descriptors: open.count(),
            memory_kb: match self.medium {
                Medium::Directory => Some(memory_kb(&own)?),
                Medium::SimulatedCard => None,
            },
        })
    }

    /// Ends the recording as Ctrl-C does.
    pub fn stop(mut self) -> Result<(), String> {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &id]).status();
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match status.code() {
            Some(130) => Ok(()),
            _ => Err(format!(
                "{:?}: the recording ended with {status}",
                self.medium
            )),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory_kb(own: &str) -> Result<u64, String> {
    let path = format!("{own}/status");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path}: no VmRSS"))
}

/// Returns the body of an answer.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text
        .split_once("\r\n\r\n")
        .unwrap_or_default()
        .1
        .to_string())
}
