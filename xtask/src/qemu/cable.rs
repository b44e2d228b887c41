//! A pseudo-terminal as the serial port of a board in QEMU, on a cable that may lose bytes.

use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between attempts to read or write.
const POLL: Duration = Duration::from_millis(2);
/// Time after which bytes are dropped that no program reads.
const READ_MAX: Duration = Duration::from_secs(10);

/// The end of a cable at the board. It is not inherited by programs.
pub struct Cable {
    port: File,
    /// Number of bytes after which one is lost; 0 for none.
    loses_each: usize,
    sent: usize,
}

/// The end of a cable at the computer.
pub struct Terminal {
    path: String,
    port: File,
    /// Keeps the terminal, with its settings, while no program uses it.
    _held: OwnedFd,
}

/// Connects a new cable.
pub fn connect(loses_each: usize) -> Result<(Cable, Terminal), String> {
    let connect = || {
        let port = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&port)?;
        unlockpt(&port)?;
        fcntl_setfl(&port, OFlags::RDWR | OFlags::NONBLOCK)?;
        let path = ptsname(&port, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let held = open(&path, flags, Mode::empty())?;
        let mut modes = tcgetattr(&held)?;
        modes.make_raw();
        tcsetattr(&held, OptionalActions::Now, &modes)?;
        let port = File::from(port);
        let terminal = Terminal {
            path: path.to_string_lossy().into_owned(),
            port: port.try_clone()?,
            _held: held,
        };
        let cable = Cable {
            port,
            loses_each,
            sent: 0,
        };
        Ok((cable, terminal))
    };
    connect().map_err(|error: Error| format!("pseudo-terminal: {error}"))
}

impl Cable {
    /// Passes on a line of the board, except for lost bytes.
    pub fn send(&mut self, line: &[u8]) {
        let mut kept = Vec::with_capacity(line.len() + 1);
        for byte in line.iter().chain(b"\n") {
            self.sent += 1;
            // A multiple of zero is only zero.
            if !self.sent.is_multiple_of(self.loses_each) {
                kept.push(*byte);
            }
        }
        let end = Instant::now() + READ_MAX;
        let mut rest = &kept[..];
        while !rest.is_empty() && Instant::now() < end {
            match self.port.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(POLL),
                Err(_) => return,
            }
        }
    }
}

impl Terminal {
    /// Returns the path of the port.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Passes on what programs send to the board, until it is over.
    pub fn pass_on(&self, input: &mut ChildStdin, is_over: &AtomicBool) {
        let mut buffer = [0; 256];
        while !is_over.load(Ordering::Relaxed) {
            match (&self.port).read(&mut buffer) {
                Ok(count) if count > 0 => {
                    // QEMU may have ended.
                    let _ = input
                        .write_all(&buffer[..count])
                        .and_then(|()| input.flush());
                }
                _ => thread::sleep(POLL),
            }
        }
    }
}
