//! A board in QEMU: its process, its serial port, and requests to its server.

use super::Firmware;
use super::cable::{self, Cable};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for anything that the board does, in s. A loaded computer runs it many times slower than in reality.
const WAIT_S_MAX: u64 = 300;
/// Time after which a connection that has not ended was accepted.
const HOLD: Duration = Duration::from_millis(500);
/// Receive buffer of a client that reads nothing, in bytes.
const RECEIVE_BYTES: usize = 4096;
/// Time for the first event of `/live`, in s.
const LIVE_S: u64 = 3;
/// Attempts of a request.
const ATTEMPTS_MAX: u32 = 100;
/// Bytes that a download requests: as many as a slow computer can download again and again.
const DOWNLOAD_RANGE: &str = "0-299999";
/// Addresses of the settings: see `firmware/sifive_u/src/registers.rs`.
const STALL_MS: &str = "0x82000000";
const STALL_BLOCKS: &str = "0x82000004";
const IS_WRITE_PROTECTED: &str = "0x82000008";
/// Address of the board's clock, in us.
const CLOCK: &str = "0x0200bff8";
/// Name of the network card in QEMU.
const NETWORK_CARD: &str = "net";

/// Firmware, behaviour of the card, and the network.
#[derive(Clone, Copy)]
pub struct Setup {
    pub firmware: Firmware,
    /// Duration of stalls, in ms.
    pub stall_ms: u32,
    /// Blocks between stalls.
    pub stall_blocks: u32,
    pub is_write_protected: bool,
    pub has_network: bool,
}

impl Setup {
    /// A card without stalls, and a network.
    pub const PLAIN: Setup = Setup {
        firmware: Firmware::Network,
        stall_ms: 0,
        stall_blocks: 0,
        is_write_protected: false,
        has_network: true,
    };
}

/// A running board. Dropping it kills QEMU.
pub struct Board {
    qemu: Child,
    port: u16,
    /// Port of QEMU's monitor.
    monitor: u16,
    /// Input of the serial port.
    input: Option<ChildStdin>,
    /// Cable to a program on the computer.
    cable: Arc<Mutex<Option<Cable>>>,
    lines: Receiver<String>,
    /// Lines that the board has printed so far.
    pub printed: Vec<String>,
}

/// Response to a request.
pub struct Response {
    pub status: u16,
    pub bytes: u64,
    pub seconds: f64,
    /// The whole response has arrived.
    pub is_complete: bool,
}

impl Board {
    /// Starts QEMU with a card.
    pub fn start(folder: &Path, card: &Path, setup: Setup) -> Result<Board, String> {
        let (port, monitor) = (free_port()?, free_port()?);
        let mut qemu = Command::new("qemu-system-riscv32");
        qemu.args(["-M", "sifive_u", "-smp", "2", "-m", "128M", "-bios", "none"]);
        qemu.args(["-display", "none", "-serial", "stdio", "-monitor"]);
        qemu.arg(format!("tcp:127.0.0.1:{monitor},server,nowait"));
        // Every instruction takes 32 ns of the board's time. Its processor never sleeps, so that only instructions move
        // the clock: a busy computer cannot delay samples.
        qemu.args(["-icount", "shift=5,sleep=off"]);
        let network = match setup.has_network {
            true => {
                format!("user,id={NETWORK_CARD},model=cadence_gem,hostfwd=tcp:127.0.0.1:{port}-:80")
            }
            false => String::from("none"),
        };
        qemu.args(["-nic", &network]);
        let drive = format!("if=sd,format=raw,file={}", card.display());
        qemu.args(["-drive", &drive]);
        for (address, value) in [
            (STALL_MS, setup.stall_ms),
            (STALL_BLOCKS, setup.stall_blocks),
            (IS_WRITE_PROTECTED, u32::from(setup.is_write_protected)),
        ] {
            let word = format!("loader,addr={address},data={value},data-len=4");
            qemu.args(["-device", &word]);
        }
        qemu.arg("-kernel").arg(setup.firmware.program(folder));
        qemu.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut qemu = qemu
            .spawn()
            .map_err(|error| format!("qemu-system-riscv32: {error}"))?;
        let serial = qemu.stdout.take();
        let (sender, lines) = channel();
        let cable = Arc::new(Mutex::new(None::<Cable>));
        let shared = Arc::clone(&cable);
        thread::spawn(move || {
            let serial = serial
                .into_iter()
                .flat_map(|out| BufReader::new(out).split(b'\n'));
            for line in serial.map_while(Result::ok) {
                let mut cable = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(cable) = cable.as_mut() {
                    cable.send(&line);
                }
                drop(cable);
                let line = String::from_utf8_lossy(&line).trim_end().to_string();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = qemu.stdin.take();
        Ok(Board {
            qemu,
            port,
            monitor,
            input,
            cable,
            lines,
            printed: Vec::new(),
        })
    }

    /// Sends bytes to the serial port.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the board has no input")?;
        let sent = input.write_all(bytes).and_then(|()| input.flush());
        sent.map_err(|error| format!("serial port: {error}"))
    }

    /// Connects a cable to the serial port, and runs something with the path of its terminal. The cable loses a byte after
    /// each `loses_each` bytes from the board; 0 for none.
    pub fn with_cable<T>(
        &mut self,
        loses_each: usize,
        run: impl FnOnce(&str) -> T,
    ) -> Result<T, String> {
        let (cable, terminal) = cable::connect(loses_each)?;
        let input = self.input.as_mut().ok_or("the board has no input")?;
        let plug = |cable| *self.cable.lock().unwrap_or_else(PoisonError::into_inner) = cable;
        plug(Some(cable));
        let is_over = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            scope.spawn(|| terminal.pass_on(input, &is_over));
            let result = run(terminal.path());
            is_over.store(true, Ordering::Relaxed);
            result
        });
        plug(None);
        Ok(result)
    }

    /// Returns the port of the computer that leads to the board's server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the board prints a line that begins with `start`; returns the rest of the line.
    pub fn wait_for(&mut self, start: &str) -> Result<String, String> {
        let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|_| {
                let printed = self.printed.join("\n");
                format!("the board has not printed \"{start}\"; it printed:\n{printed}")
            })?;
            self.printed.push(line.clone());
            if line.starts_with("panicked") {
                return Err(format!("the board {line}"));
            }
            if let Some(rest) = line.strip_prefix(start) {
                return Ok(rest.to_string());
            }
        }
    }

    /// Returns what the board has printed since the start, without waiting.
    pub fn printed_so_far(&mut self) -> &[String] {
        self.printed.extend(self.lines.try_iter());
        &self.printed
    }

    /// Prints what the board prints, until QEMU ends.
    pub fn print_until_end(&mut self) -> Result<(), String> {
        for line in &self.lines {
            println!("{line}");
        }
        self.qemu
            .wait()
            .map(drop)
            .map_err(|error| error.to_string())
    }

    /// Gives QEMU's monitor a command, for example to eject the card or to insert another one; returns what it prints.
    pub fn order(&self, command: &str) -> Result<String, String> {
        let order = || {
            let mut monitor = TcpStream::connect(("127.0.0.1", self.monitor))?;
            monitor.write_all(format!("{command}\n").as_bytes())?;
            monitor.shutdown(Shutdown::Write)?;
            // QEMU closes the connection once it has carried out the command.
            let mut text = Vec::new();
            monitor.read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        order().map_err(|error: std::io::Error| format!("QEMU's monitor: {error}"))
    }

    /// Plugs or unplugs the cable of the network.
    pub fn plug(&self, is_in: bool) -> Result<(), String> {
        let state = if is_in { "on" } else { "off" };
        self.order(&format!("set_link {NETWORK_CARD} {state}"))
            .map(drop)
    }

    /// Returns the time of the board's clock, in us.
    pub fn now_us(&self) -> Result<u64, String> {
        let text = self.order(&format!("xp /1gx {CLOCK}"))?;
        let number = text.lines().find_map(|line| {
            let (_, number) = line.split_once(": 0x")?;
            u64::from_str_radix(number.trim(), 16).ok()
        });
        number.ok_or_else(|| format!("QEMU's monitor printed {text}"))
    }

    /// Requests a path once, and returns true if the response is complete within a time of the computer.
    pub fn answers(&self, path: &str, to: &Path, seconds_max: u64) -> Result<bool, String> {
        let response = self.curl(&[], path, to, seconds_max)?;
        Ok(response.is_complete && response.status == 200)
    }

    /// Begins a request whose response nobody reads; returns the connection after the first byte of the response.
    pub fn begin_request(&self, line: &str) -> Result<TcpStream, String> {
        for _ in 0..ATTEMPTS_MAX {
            let mut client = self.send_request(line)?;
            if client.read_exact(&mut [0]).is_ok() {
                return Ok(client);
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(format!("{line}: no response"))
    }

    /// Sends a request that the board does not answer yet; returns the connection once the board has accepted it.
    pub fn hold_request(&self, line: &str) -> Result<TcpStream, String> {
        for _ in 0..ATTEMPTS_MAX {
            let client = self.send_request(line)?;
            let peeked = client
                .set_read_timeout(Some(HOLD))
                .and_then(|()| client.peek(&mut [0]));
            // Without a free socket, the connection ends at once.
            if peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                return Ok(client);
            }
        }
        Err(format!("{line}: the board does not accept it"))
    }

    /// Sends a request; returns the connection, whose buffer is small.
    fn send_request(&self, line: &str) -> Result<TcpStream, String> {
        let head = format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n");
        let send = || {
            let mut client = TcpStream::connect(("127.0.0.1", self.port))?;
            set_socket_recv_buffer_size(&client, RECEIVE_BYTES)?;
            client.set_read_timeout(Some(Duration::from_secs(WAIT_S_MAX)))?;
            client.write_all(head.as_bytes())?;
            Ok(client)
        };
        send().map_err(|error: std::io::Error| format!("{line}: {error}"))
    }

    /// Returns the state in the first event of `/live`.
    pub fn live(&self, folder: &Path) -> Result<Value, String> {
        let path = folder.join("live.txt");
        for _ in 0..ATTEMPTS_MAX {
            let _ = fs::remove_file(&path);
            self.curl(&[], "/live", &path, LIVE_S)?;
            let text = fs::read_to_string(&path).unwrap_or_default();
            let state = text
                .lines()
                .find_map(|line| line.strip_prefix("data: {"))
                .and_then(|rest| serde_json::from_str(&format!("{{{rest}")).ok());
            if let Some(state) = state {
                return Ok(state);
            }
        }
        Err(String::from("/live: no event"))
    }

    /// Requests a path with curl, which writes the body to a file. Tries again if the board has no free socket.
    pub fn request(&self, method: &str, path: &str, to: &Path) -> Result<Response, String> {
        for _ in 0..ATTEMPTS_MAX {
            let response = self.curl(&["--request", method], path, to, WAIT_S_MAX)?;
            if response.is_complete {
                return Ok(response);
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(format!("{method} {path}: no response"))
    }

    /// Downloads the beginning of a file; gives up after a time.
    pub fn download(&self, path: &str, to: &Path, seconds_max: u64) -> Result<Response, String> {
        loop {
            let response = self.curl(&["--range", DOWNLOAD_RANGE], path, to, seconds_max)?;
            // Otherwise, the board had no free socket.
            if response.status != 0 || response.seconds >= seconds_max as f64 {
                return Ok(response);
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn curl(
        &self,
        options: &[&str],
        path: &str,
        to: &Path,
        seconds_max: u64,
    ) -> Result<Response, String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", &seconds_max.to_string()]);
        curl.args(options).arg("--output").arg(to);
        curl.args(["--write-out", "%{http_code} %{size_download} %{time_total}"]);
        curl.arg(format!("http://127.0.0.1:{}{path}", self.port));
        let output = curl.output().map_err(|error| format!("curl: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split(' ').map(|word| word.trim().parse::<f64>().ok());
        let mut number = || words.next().flatten();
        match (number(), number(), number()) {
            (Some(status), Some(bytes), Some(seconds)) => Ok(Response {
                status: status as u16,
                bytes: bytes as u64,
                seconds,
                is_complete: output.status.success(),
            }),
            _ => Err(format!("curl printed {text}")),
        }
    }

    /// Begins to download a file, whose bytes nobody needs.
    pub fn begin_download(&self, file: &str) -> Result<Child, String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--output", "/dev/null"]);
        curl.arg(format!("http://127.0.0.1:{}/{file}", self.port));
        curl.spawn().map_err(|error| format!("curl: {error}"))
    }

    /// Returns the response to `/status`.
    pub fn status(&self, folder: &Path) -> Result<Value, String> {
        let path = folder.join("status.json");
        let response = self.request("GET", "/status", &path)?;
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|_| format!("/status: {} {text}", response.status))
    }

    /// Returns the number of samples that the board has taken.
    pub fn samples(&self, folder: &Path) -> Result<u32, String> {
        let status = self.status(folder)?;
        let samples = status["recorder"]["samples"].as_u64();
        samples.map_or_else(
            || Err(format!("/status: {status}")),
            |samples| Ok(samples as u32),
        )
    }

    /// Waits until the board has taken this number of samples; returns their number then.
    pub fn wait_for_samples(&self, folder: &Path, samples: u32) -> Result<u32, String> {
        let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
        loop {
            let taken = self.samples(folder)?;
            if taken >= samples {
                return Ok(taken);
            }
            if Instant::now() >= end {
                return Err(format!("the board has taken {taken} samples of {samples}"));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until the oldest sample that is not durable has this age.
    pub fn wait_for_unsaved(&self, folder: &Path, ms: u64) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
        while Instant::now() < end {
            let status = self.status(folder)?;
            if status["recorder"]["unsaved_ms"].as_u64() >= Some(ms) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(format!("no sample has been unsaved for {ms} ms"))
    }

    /// Ends the recording; returns what the board printed about it.
    pub fn stop(&mut self, folder: &Path) -> Result<String, String> {
        let body = folder.join("stop.txt");
        for _ in 0..ATTEMPTS_MAX {
            match self.request("POST", "/record?action=stop", &body)?.status {
                204 => return self.wait_for("stopped: "),
                // The recording ended before, if the response to an earlier attempt was lost, or has not begun yet.
                409 => {
                    let mut lines = self.printed_so_far().iter();
                    if let Some(rest) = lines.find_map(|line| line.strip_prefix("stopped: ")) {
                        return Ok(rest.to_string());
                    }
                }
                status => {
                    return Err(format!(
                        "the board answered {status} to the request to stop"
                    ));
                }
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(String::from("the board has no recording to stop"))
    }

    /// Kills QEMU, as a power cut.
    pub fn kill(mut self) -> Result<(), String> {
        self.end().map_err(|error| format!("QEMU: {error}"))
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.qemu.kill()?;
        self.qemu.wait().map(drop)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.end();
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok(address.port())
}
