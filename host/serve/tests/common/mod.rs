//! A server for a test, and its clients: curl, and raw bytes.

#![allow(dead_code, reason = "each file of tests uses a part")]

pub mod fuse;

use cardiograph_record::LiveFiles;
use cardiograph_serve::{DirectoryStorage, Listener, Settings};
use cardiograph_server::{Instrument, NoInstrument};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Longest wait for anything; far beyond what a busy machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server and its directory, inside a temporary directory.
pub struct Server {
    own: TempDir,
    pub address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Response to a raw request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Server {
    pub fn start() -> Server {
        Server::with(Settings::default())
    }

    /// Serves the folder `served` of a new directory.
    pub fn with(settings: Settings) -> Server {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Server::of(parent, settings, None, LiveFiles::default(), NoInstrument)
    }

    /// Serves the folder `served` of a new directory inside `parent`. Uploads leave `keep_free` bytes free.
    pub fn inside(parent: &Path, settings: Settings, keep_free: Option<u64>) -> Server {
        Server::of(
            parent,
            settings,
            keep_free,
            LiveFiles::default(),
            NoInstrument,
        )
    }

    /// Serves the folder `served` of a new directory, to which a recorder writes.
    pub fn beside(
        settings: Settings,
        files: LiveFiles,
        instrument: impl Instrument + Send + 'static,
    ) -> Server {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Server::of(parent, settings, None, files, instrument)
    }

    fn of(
        parent: &Path,
        settings: Settings,
        keep_free: Option<u64>,
        files: LiveFiles,
        instrument: impl Instrument + Send + 'static,
    ) -> Server {
        let own = tempfile::tempdir_in(parent).unwrap();
        let served = own.path().join("served");
        fs::create_dir(&served).unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().unwrap();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        let thread = std::thread::spawn(move || {
            let storage = DirectoryStorage::open(&served, files).unwrap();
            let storage = storage.keeping_free(keep_free);
            let is_stopped = || stop.load(Ordering::Relaxed);
            listener
                .serve(&storage, &instrument, &settings, &is_stopped)
                .unwrap();
        });
        Server {
            own,
            address,
            is_stopped,
            thread: Some(thread),
        }
    }

    /// The directory above the served one.
    pub fn outside(&self) -> &Path {
        self.own.path()
    }

    /// The served directory.
    pub fn directory(&self) -> PathBuf {
        self.own.path().join("served")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names in the served directory, hidden ones included.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names = Vec::from_iter(names);
        names.sort();
        names
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes on a separate connection, and returns everything that comes back.
    pub fn raw(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_all(&mut stream)
    }

    /// Sends a request with the header fields that every client sends, and additional `fields`.
    pub fn request(&self, line: &str, fields: &str, body: &[u8]) -> Response {
        let host = self.address;
        let mut request =
            format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n")
                .into_bytes();
        request.extend_from_slice(body);
        let mut stream = self.connect();
        // A server that refuses may close before it has read everything.
        let _ = stream.write_all(&request);
        let _ = stream.shutdown(Shutdown::Write);
        Response::parse(&read_all(&mut stream))
    }

    pub fn get(&self, path: &str) -> Response {
        self.request(&format!("GET {path}"), "", b"")
    }

    /// Runs curl; returns its standard output. Status 400 and above is a failure.
    pub fn curl(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "60"]);
        command.args(args).stdin(Stdio::null());
        let output = command
            .current_dir(self.outside())
            .output()
            .expect("curl is missing; run `cargo xtask test`, which installs it");
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

impl Response {
    pub fn parse(bytes: &[u8]) -> Response {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response {
            status,
            head,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Reads until the server closes the connection. A reset after the response is not a failure.
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = [0; 1 << 16];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return all,
            Ok(bytes) => all.extend_from_slice(&piece[..bytes]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
            Err(error) => panic!("after {} B: {error}", all.len()),
        }
    }
}

/// Returns pseudo-random bytes, determined by the seed.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut all: Vec<u8> = std::iter::repeat_with(&mut next)
        .take(bytes / 8 + 1)
        .flatten()
        .collect();
    all.truncate(bytes);
    all
}
