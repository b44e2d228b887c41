//! Commands that a board without a network receives over its serial port.
//!
//! ```text
//!   stop                             ends the recording, or the test; for people, hence without a checksum
//!   status                           prints the state of the recording
//!   CG1 T ARGUMENTS *HHHH            starts a test with the arguments of POST /bench
//!   CG1 Q *HHHH                      ends the test
//! ```
//!
//! A line with a wrong checksum, too long, or of another kind is ignored, so that noise on the port starts nothing: the
//! other side repeats a command until the board responds.

use crate::bench::{WriteTest, crc16};
use crate::path::Query;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 128;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// Ends the recording, or the test.
    Stop,
    /// Prints the state of the recording.
    Status,
    /// Ends the test.
    StopTest,
    /// Starts a test, or refuses it for this reason.
    Test(Result<WriteTest, &'static str>),
}

/// A line that is being received.
#[derive(Debug, Default)]
pub struct OrderLine {
    line: heapless::Vec<u8, LINE_BYTES_MAX>,
    is_too_long: bool,
}

impl OrderLine {
    /// Creates an empty line.
    pub const fn new() -> OrderLine {
        OrderLine {
            line: heapless::Vec::new(),
            is_too_long: false,
        }
    }

    /// Adds a byte; returns the command that it completes.
    pub fn add(&mut self, byte: u8) -> Option<Order> {
        if !matches!(byte, b'\n' | b'\r') {
            self.is_too_long |= self.line.push(byte).is_err();
            return None;
        }
        let order = match self.is_too_long {
            true => None,
            false => order_of(&self.line),
        };
        *self = OrderLine::new();
        order
    }
}

/// Returns the command in a line; anything may come before it.
fn order_of(line: &[u8]) -> Option<Order> {
    match line {
        b"stop" => return Some(Order::Stop),
        b"status" => return Some(Order::Status),
        _ => (),
    }
    let at = line.windows(4).position(|bytes| bytes == b"CG1 ")?;
    let (protected, checksum) = line[at..].split_last_chunk::<6>()?;
    let checksum = str::from_utf8(checksum.strip_prefix(b" *")?).ok()?;
    if u16::from_str_radix(checksum, 16) != Ok(crc16(protected)) {
        return None;
    }
    match str::from_utf8(protected.get(4..)?).ok()?.split_once(' ') {
        Some(("T", arguments)) => {
            let test = WriteTest::of(Query(arguments));
            Some(Order::Test(test.map_err(|refused| refused.reason)))
        }
        None if protected == b"CG1 Q" => Some(Order::StopTest),
        _ => None,
    }
}
