//! The file server on a computer, compared with dufs: a large download over loopback, and the memory with many
//! clients.

use super::report::{Series, save, table};
use super::{ROUNDS, cardiograph, scratch};
use crate::packages;
use crate::run::target;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FILE_BYTES: u64 = 1 << 30;
/// Size of the file that each of many clients downloads, and the maximum rate of each download.
const SMALL_BYTES: u64 = 8 << 20;
const SLOW_RATE: &str = "2M";
const CLIENTS: u32 = 100;
/// Maximum memory of the server with this number of clients.
const MEMORY_MOST_BYTES: u64 = 32 << 20;

pub fn run() -> Result<(), String> {
    let dufs = packages::install_dufs()?;
    let folder = scratch(target().join("serve-benchmark"))?;
    let result = measure(&folder, &dufs);
    let _ = std::fs::remove_dir_all(&folder);
    save("serve", &result?)
}

fn measure(folder: &Path, dufs: &Path) -> Result<String, String> {
    write_file(&folder.join("large"), FILE_BYTES)?;
    write_file(&folder.join("small"), SMALL_BYTES)?;
    let own = Server::own(folder)?;
    let other = Server::dufs(folder, dufs)?;
    let servers = [&own, &other];
    let mut series = ["cardiograph serve", "dufs"].map(Series::new);
    for round in 0..=ROUNDS {
        for (server, series) in servers.iter().zip(&mut series) {
            let seconds = server.download_s("large", FILE_BYTES)?;
            // The first round reads the file from the storage device.
            if round > 0 {
                series.values.push(FILE_BYTES as f64 / seconds / 1e6);
            }
        }
    }
    let [ours, theirs] = &series;
    let ratio = ours.over(theirs);
    let before = [own.memory_bytes()?, other.memory_bytes()?];
    own.many_clients()?;
    other.many_clients()?;
    let after = [own.memory_bytes()?, other.memory_bytes()?];
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    Ok(format!(
        "One client, curl, downloads a file of {FILE_BYTES} B over loopback; the file is in the page cache. {ROUNDS} \
         rounds, alternating between the servers. dufs is version {}.\n\n{}\n{}\n\
         Peak memory (resident set) after these rounds, and after {CLIENTS} clients have downloaded {SMALL_BYTES} B \
         each at the same time, at {SLOW_RATE}B/s:\n\n\
         | MB | one client | {CLIENTS} clients | required |\n|---|---:|---:|---:|\n\
         | cardiograph serve | {:.1} | {:.1} | {:.1} |\n| dufs | {:.1} | {:.1} | - |\n",
        packages::DUFS_VERSION,
        table("MB/s", &[ours, theirs]),
        table("ratio, round by round", &[&ratio]),
        megabytes(before[0]),
        megabytes(after[0]),
        megabytes(MEMORY_MOST_BYTES),
        megabytes(before[1]),
        megabytes(after[1]),
    ))
}

/// A running server of a folder; dropping it ends the process.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn own(folder: &Path) -> Result<Server, String> {
        let mut command = Command::new(cardiograph());
        command.arg("serve").arg(folder);
        command.args(["--listen", "127.0.0.1:0"]);
        let mut child = spawn(command.stdout(Stdio::piped()))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line);
            read.map_err(|error| format!("cardiograph serve: {error}"))?;
        }
        let address = line.trim_end().rsplit_once("http://");
        let address = address.and_then(|(_, it)| it.trim_end_matches('/').parse().ok());
        match address {
            Some(address) => Ok(Server { child, address }),
            None => Err(format!("cardiograph serve: no address: {line}")),
        }
    }

    fn dufs(folder: &Path, program: &Path) -> Result<Server, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg(folder).args(["--bind", "127.0.0.1", "--port"]);
        command.arg(address.port().to_string());
        let child = spawn(command.stdout(Stdio::null()))?;
        let server = Server { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err(String::from("dufs: does not accept connections"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Returns the time of a download in s, measured by curl.
    fn download_s(&self, name: &str, bytes: u64) -> Result<f64, String> {
        let url = format!("http://{}/{name}", self.address);
        let written = ["-w", "%{time_total} %{size_download}", "-o", "/dev/null"];
        let text = curl(&[&written[..], &[&url]].concat())?;
        let (seconds, size) = text.split_once(' ').unwrap_or_default();
        if size.parse() != Ok(bytes) {
            return Err(format!("{url}: {size} B instead of {bytes}"));
        }
        seconds
            .parse()
            .map_err(|_| format!("curl: no time: {text}"))
    }

    /// Lets many clients download at the same time, at a limited rate.
    fn many_clients(&self) -> Result<(), String> {
        let url = format!("http://{}/small?client=[1-{CLIENTS}]", self.address);
        let most = CLIENTS.to_string();
        let parallel = [
            "--parallel",
            "--parallel-immediate",
            "--parallel-max",
            &most,
        ];
        let slow = ["--limit-rate", SLOW_RATE, "-o", "/dev/null", &url];
        curl(&[&parallel[..], &slow].concat()).map(drop)
    }

    /// Returns the peak memory of the server.
    fn memory_bytes(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(kib.ok_or_else(|| format!("{path}: no peak memory"))? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|error| format!("{name}: {error}"))
}

fn curl(args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail"]);
    let output = command.args(args).output();
    let output = output.map_err(|error| format!("curl: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Writes a file that does not consist of zeros.
fn write_file(path: &PathBuf, bytes: u64) -> Result<(), String> {
    let piece: Vec<u8> = (0..1 << 20)
        .map(|at: u32| (at.wrapping_mul(at) >> 7) as u8)
        .collect();
    let write = || {
        let mut file = std::fs::File::create(path)?;
        for _ in 0..bytes / piece.len() as u64 {
            file.write_all(&piece)?;
        }
        file.sync_all()
    };
    write().map_err(|error| format!("{}: {error}", path.display()))
}
