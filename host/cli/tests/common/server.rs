//! Servers of the command, and links to them that break.

use super::signals::wait_until;
use super::{Run, command};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A process of the command that serves a directory, ended when this is dropped.
pub struct Serving {
    child: Option<Child>,
    /// Server and port.
    pub address: String,
}

impl Serving {
    /// Runs `cardiograph serve` with a free port.
    pub fn start(directory: &Path, args: &[&str]) -> Serving {
        Serving::target(directory, ".", args)
    }

    /// Runs `cardiograph serve` for a directory, a card or an image.
    pub fn target(directory: &Path, target: &str, args: &[&str]) -> Serving {
        let listen = ["serve", target, "--listen", "127.0.0.1:0"];
        let mut child = command(directory, &[&listen[..], args].concat())
            .spawn()
            .unwrap();
        let line = first_line(child.stdout.as_mut().unwrap());
        Serving::of(child, &line)
    }

    /// Runs `cardiograph record . --serve` with a free port.
    pub fn recording(directory: &Path, args: &[&str]) -> Serving {
        let serve = ["record", ".", "--serve", "127.0.0.1:0"];
        let mut child = command(directory, &[&serve[..], args].concat())
            .spawn()
            .unwrap();
        let line = first_line(child.stderr.as_mut().unwrap());
        Serving::of(child, &line)
    }

    fn of(child: Child, line: &str) -> Serving {
        let (_, address) = line
            .split_once("http://")
            .unwrap_or_else(|| panic!("{line}"));
        let (address, _) = address.split_once('/').unwrap();
        Serving {
            child: Some(child),
            address: address.to_string(),
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Ends the process with a signal.
    pub fn end(mut self, signal: &str) -> Run {
        super::signals::end(self.child.take().unwrap(), signal)
    }

    /// Waits for the end of the process.
    pub fn finish(mut self) -> Run {
        Run::from(self.child.take().unwrap().wait_with_output().unwrap())
    }

    /// Runs curl; returns its standard output.
    pub fn curl(&self, args: &[&str], path: &str) -> Vec<u8> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "60"]);
        command.args(args).arg(self.url(path)).stdin(Stdio::null());
        let output = command
            .output()
            .expect("curl is missing; run `cargo xtask test`, which installs it");
        output.stdout
    }

    /// Returns the JSON at a path.
    pub fn json(&self, path: &str) -> serde_json::Value {
        let text = self.curl(&[], path);
        serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)))
    }

    /// Waits until the recorder reports at least as many samples.
    pub fn wait_for_samples(&self, samples: u64) {
        wait_until(|| {
            let status = self.json("/status");
            status["recorder"]["samples"].as_u64() >= Some(samples)
        });
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads the first line, byte by byte, so that the rest stays in the pipe.
fn first_line(from: &mut impl Read) -> String {
    let mut line = String::new();
    BufReader::with_capacity(1, from)
        .read_line(&mut line)
        .unwrap();
    line
}

/// A link to a server on which each connection breaks after a given number of response bytes.
pub struct BadLink {
    pub address: String,
    breaks: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl BadLink {
    /// Forwards connections to `server`, and cuts each after `bytes` bytes of responses.
    pub fn to(server: &str, bytes: usize) -> BadLink {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = BadLink {
            address: listener.local_addr().unwrap().to_string(),
            breaks: Arc::default(),
            is_over: Arc::default(),
        };
        let (breaks, is_over) = (Arc::clone(&link.breaks), Arc::clone(&link.is_over));
        let server = server.to_string();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (server, breaks) = (server.clone(), Arc::clone(&breaks));
                std::thread::spawn(move || forward(near, &server, bytes, &breaks));
            }
        });
        link
    }

    /// Returns the number of connections that were cut.
    pub fn breaks(&self) -> u64 {
        self.breaks.load(Ordering::Relaxed)
    }
}

impl Drop for BadLink {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

fn forward(near: TcpStream, server: &str, mut left: usize, breaks: &AtomicU64) {
    let mut far = TcpStream::connect(server).unwrap();
    let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut near = near;
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = far.read(&mut piece) {
        let bytes = bytes.min(left);
        if near.write_all(&piece[..bytes]).is_err() {
            break;
        }
        left -= bytes;
        if left == 0 {
            breaks.fetch_add(1, Ordering::Relaxed);
            // Gives the client time to receive the bytes before the connection ends.
            std::thread::sleep(Duration::from_millis(1));
            break;
        }
    }
    let _ = near.shutdown(Shutdown::Both);
    let _ = far.shutdown(Shutdown::Both);
}
