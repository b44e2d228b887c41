//! `cardiograph bench board:PORT`: receives the trace that a board prints over its serial port, or sends over HTTP.
//!
//! A sketch tests the card when the board starts. Cardiograph's firmware waits for a command, which is repeated until the
//! trace begins, because bytes may be lost.

mod http;
#[cfg_attr(not(unix), path = "board/no_serial.rs")]
mod serial;
mod test;

use crate::bench::Args;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use cardiograph_trace::{
    BoardLine, Loaded, ReadOptions, Trace, board_command, board_line, read_from,
};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use test::{TWO_CORES, Test};

/// Begins the name of a board's serial port.
const PREFIX: &str = "board:";
/// Speed of the port unless the command line states another one, in baud. It is that of the Arduino library's examples.
const BAUD: u32 = 115_200;
/// Time without a line of the trace after which the board counts as silent. A line covers 64 writes, any of which may
/// stall.
const SILENCE: Duration = Duration::from_secs(60);
/// Time until the first command to start a test. Boards that opening the port restarts are past their boot loader then.
const START: Duration = Duration::from_secs(2);
/// Time after which the command is repeated, unless the trace has begun.
const RESTART: Duration = Duration::from_secs(3);
/// Maximum length of a received text, in bytes: about 10 million writes.
const TEXT_BYTES_MAX: usize = 256 << 20;

/// Returns the serial port that a target names, such as `/dev/ttyACM0` in `board:/dev/ttyACM0`.
pub fn port_of(target: &str) -> Option<&str> {
    target.strip_prefix(PREFIX)
}

/// Receives a trace, up to its last line, a signal or the end of the time. Returns it with warnings.
pub fn measure(
    port: &str,
    args: &Args,
    interrupt: &Interrupt,
) -> Result<(Trace, Vec<String>), Failure> {
    refuse_options(args)?;
    let limit = args.stop_after.map(|time| Instant::now() + time);
    let test = Test::of(&args.workload)?;
    if port.starts_with("http://") {
        if args.workload == TWO_CORES {
            return Err(failure(port, NO_CORES_ON_SERVER));
        }
        let mut received = Received::new(test.writes());
        let end = http::receive(port, args, &test, &mut received, limit, interrupt);
        return trace_of(port, args, received, end?, interrupt);
    }
    refuse_on_serial(args)?;
    if port.is_empty() {
        return Err(Failure::new(format!(
            "{PREFIX} names no board; name a serial port, such as {PREFIX}/dev/ttyACM0, or a server, such as \
             {PREFIX}http://192.168.4.1"
        )));
    }
    let file = serial::open(port, args.baud.unwrap_or(BAUD)).map_err(|why| failure(port, &why))?;
    let mut received = Received::new(0);
    received.expected = names_writes(&args.workload).then(|| test.clone());
    let mut starter = Starter::new(file, &test);
    let end = receive(&mut starter, &mut received, limit, interrupt);
    if !matches!(end, Ok(End::Complete)) {
        starter.stop();
    }
    let end = end.map_err(|why| failure(port, &why))?;
    trace_of(port, args, received, end, interrupt)
}

/// Returns true if a workload of the command line names the writes. Otherwise, those of any sketch are welcome.
fn names_writes(workload: &str) -> bool {
    ![TWO_CORES, cardiograph_workload::DEFAULT].contains(&workload)
}

/// Returns the trace in a text, with warnings.
fn trace_of(
    port: &str,
    args: &Args,
    received: Received,
    end: End,
    interrupt: &Interrupt,
) -> Result<(Trace, Vec<String>), Failure> {
    received.progress.clear();
    if received.writes == 0 && end == End::Signal {
        return Err(Failure::AlreadyPrinted(interrupt.exit_code().unwrap_or(1)));
    }
    if args.workload == TWO_CORES && !received.has_cores {
        return Err(failure(port, NO_CORES));
    }
    let loaded = read_from(port, received.text.as_slice(), &ReadOptions::default());
    let Loaded::Trace(mut trace) = loaded.map_err(Failure::new)? else {
        return Err(failure(port, NO_TRACE));
    };
    trace.about.target = args.target.clone();
    if port.starts_with("http://") || names_writes(&args.workload) {
        trace.about.workload = args.workload.clone();
    }
    let warning = match end {
        End::Complete => None,
        End::Signal => Some("interrupted before the end of the board's test"),
        End::Time => Some("stopped before the end of the board's test; allow more time with --for"),
    };
    Ok((trace, warning.into_iter().map(String::from).collect()))
}

const NO_TRACE: &str =
    "the board printed no trace; upload one of the examples of arduino/Cardiograph (docs/boards/)";
const OTHER_TEST: &str = "the board runs a test of its own, because its sketch determines what it writes; remove --workload";
const NO_CORES: &str = "no times of a load on two cores were received; upload the example MeasureCores of arduino/Cardiograph to an \
     ESP32 or ESP32-S3, and press its reset button once Cardiograph waits";
const NO_CORES_ON_SERVER: &str = "a board's server runs no load on two cores; upload the example MeasureCores of arduino/Cardiograph to an \
     ESP32 or ESP32-S3, and name its serial port";

fn refuse_options(args: &Args) -> Result<(), Failure> {
    let refused = [
        (args.io.is_some(), "--io applies to directories only"),
        (
            args.seed.is_some(),
            "--seed applies to simulated cards only",
        ),
        (
            args.destroy.is_some(),
            "--destroy applies to whole disks only",
        ),
        (args.rate.is_some(), "--rate does not apply to boards"),
        (args.repeat > 1, "--repeat does not apply to boards"),
        (
            args.trust.precondition,
            "--precondition does not apply to boards",
        ),
        (
            args.trust.warm_up.is_some(),
            "--warm-up does not apply to boards",
        ),
        (
            args.trust.until_stable,
            "--until-stable does not apply to boards",
        ),
    ];
    refuse(&refused)
}

/// Refuses options that only a board's server understands.
fn refuse_on_serial(args: &Args) -> Result<(), Failure> {
    refuse(&[(args.auth.is_some(), "--auth applies to servers only")])
}

fn refuse(refused: &[(bool, &str)]) -> Result<(), Failure> {
    match refused.iter().find(|(is_given, _)| *is_given) {
        Some((_, why)) => Err(Failure::new(format!("{why}; remove it"))),
        None => Ok(()),
    }
}

fn failure(port: &str, why: &str) -> Failure {
    Failure::new(format!("{port}: {why}"))
}

/// Reason why the reception ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The last line of the trace was received.
    Complete,
    Signal,
    Time,
}

/// Text that was received.
pub(super) struct Received {
    text: Vec<u8>,
    /// Beginning of the line that is not complete yet.
    line: usize,
    /// Number of writes of the present run.
    writes: u64,
    /// Number of writes of the whole test; 0 if it is not known.
    writes_total: u64,
    /// The only test that is acceptable, if there is one.
    expected: Option<Test>,
    /// The times of a load on two cores were received.
    has_cores: bool,
    /// A line of the trace was received.
    has_begun: bool,
    /// Another test than the expected one began.
    is_other: bool,
    /// Time of the last line of the trace.
    last: Instant,
    progress: Progress,
}

impl Received {
    fn new(writes_total: u64) -> Received {
        Received {
            text: Vec::new(),
            line: 0,
            writes: 0,
            writes_total,
            expected: None,
            has_cores: false,
            has_begun: false,
            is_other: false,
            last: Instant::now(),
            progress: Progress::over_samples(writes_total),
        }
    }

    /// Adds bytes; returns true if they complete the trace.
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.text.extend_from_slice(bytes);
        while let Some(length) = self.text[self.line..]
            .iter()
            .position(|byte| *byte == b'\n')
        {
            let line = board_line(&self.text[self.line..self.line + length]);
            self.line += length + 1;
            match line {
                Some(BoardLine::Begin { bytes, writes }) => {
                    self.writes = 0;
                    self.writes_total = writes.unwrap_or(self.writes_total);
                    let expected = self.expected.as_ref();
                    self.is_other = expected.is_some_and(|test| !test.matches(bytes, writes));
                }
                Some(BoardLine::Writes(count)) => self.writes += count,
                Some(BoardLine::Cores) => self.has_cores = true,
                Some(BoardLine::End) => return true,
                None => continue,
            }
            self.has_begun = true;
            self.last = Instant::now();
        }
        false
    }

    /// Shows the number of writes.
    fn show(&mut self) {
        let (writes, total) = (self.writes, self.writes_total);
        self.progress
            .show_samples(writes, || match (writes, total) {
                (0, _) => "waiting for the board".to_string(),
                (_, 0) => format!("{writes} writes"),
                _ => format!("{writes} of {total} writes"),
            });
    }

    /// Describes why nothing more may come.
    fn silence(&self) -> String {
        let seconds = self.last.elapsed().as_secs();
        match (self.writes, self.text.is_empty()) {
            (0, false) if self.has_begun => {
                format!("the board printed no write for {seconds} s; check its card, and measure again")
            }
            (0, true) => format!(
                "the board printed nothing for {seconds} s; press its reset button once Cardiograph waits"
            ),
            (0, false) => "the board printed text, but no undamaged line of a trace; check --baud and the sketch".to_string(),
            (writes, _) => format!(
                "the board printed no line for {seconds} s after {writes} writes; check card and cable, and measure again"
            ),
        }
    }
}

/// The serial port, and the command that starts the test.
struct Starter {
    port: File,
    command: String,
    /// Time of the next command.
    next: Instant,
    /// A command was sent.
    has_sent: bool,
}

impl Starter {
    fn new(port: File, test: &Test) -> Starter {
        Starter {
            port,
            command: board_command(&format!("T {}", test.arguments())),
            next: Instant::now() + START,
            has_sent: false,
        }
    }

    /// Sends the command if it is due. A port that does not accept it is that of a board that does not listen.
    fn send_due(&mut self) {
        if Instant::now() >= self.next {
            self.next = Instant::now() + RESTART;
            self.has_sent = true;
            // The end of a line first: the board may have received part of one.
            let _ = self
                .port
                .write_all(format!("\n{}", self.command).as_bytes());
        }
    }

    /// Ends the test of a board that was started.
    fn stop(&mut self) {
        if self.has_sent {
            let _ = self.port.write_all(board_command("Q").as_bytes());
        }
    }
}

fn receive(
    starter: &mut Starter,
    received: &mut Received,
    limit: Option<Instant>,
    interrupt: &Interrupt,
) -> Result<End, String> {
    let mut buffer = [0; 4096];
    loop {
        if !received.has_begun {
            starter.send_due();
        }
        let bytes = match starter.port.read(&mut buffer) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) =>
            {
                0
            }
            Err(error) => return Err(format!("{error}; check the cable, and measure again")),
        };
        // After a hang-up, reads return nothing at once.
        if bytes == 0 && serial::is_gone(&starter.port) {
            return Err("the port is gone; check the cable, and measure again".to_string());
        }
        let is_complete = received.add(&buffer[..bytes]);
        if received.is_other {
            return Err(OTHER_TEST.to_string());
        }
        if is_complete {
            return Ok(End::Complete);
        }
        received.show();
        if interrupt.is_raised() {
            return Ok(End::Signal);
        }
        let is_over = limit.is_some_and(|limit| Instant::now() >= limit);
        if is_over && received.writes > 0 {
            return Ok(End::Time);
        }
        if is_over || received.last.elapsed() >= SILENCE {
            return Err(received.silence());
        }
        if received.text.len() > TEXT_BYTES_MAX {
            return Err("the board printed more than 256 MiB; make the test shorter".to_string());
        }
    }
}
