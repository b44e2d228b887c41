//! Bodies of responses, piece by piece.

use super::error::RequestError;
use std::io::Read;
use std::time::{Duration, Instant};
use ureq::http::Response;
use ureq::{Body, BodyReader};

/// Number of bytes that a server must send within the longest wait for the next ones. A server that sends single bytes
/// would otherwise keep the command forever.
pub const SLOW_BYTES: u64 = 1000;
/// Bytes per read.
const PIECE_BYTES: usize = 128 << 10;

/// A response that is read piece by piece.
pub struct Reading<'a> {
    body: BodyReader<'a>,
    piece: Vec<u8>,
    patience: Duration,
    may_be_slow: bool,
    /// Start of the present period, and number of bytes received in it.
    since: Instant,
    bytes: u64,
}

impl<'a> Reading<'a> {
    /// Reads a response; `patience` is the longest wait for the next bytes.
    pub fn new(response: &'a mut Response<Body>, patience: Duration) -> Reading<'a> {
        Reading {
            body: response.body_mut().as_reader(),
            piece: vec![0; PIECE_BYTES],
            patience,
            may_be_slow: false,
            since: Instant::now(),
            bytes: 0,
        }
    }

    /// Accepts any speed: a recording grows as slowly as its samples arrive.
    pub fn at_any_speed(mut self) -> Self {
        self.may_be_slow = true;
        self
    }

    /// Returns the next bytes, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<&[u8]>, RequestError> {
        let read = self.body.read(&mut self.piece);
        let bytes =
            read.map_err(|error| RequestError::from_connection(error.into(), self.patience))?;
        self.bytes += bytes as u64;
        if self.since.elapsed() >= self.patience {
            if bytes > 0 && self.bytes < SLOW_BYTES && !self.may_be_slow {
                return Err(RequestError::Wrong(format!(
                    "the server sent fewer than {SLOW_BYTES} bytes in {}",
                    humantime::format_duration(self.patience)
                )));
            }
            (self.since, self.bytes) = (Instant::now(), 0);
        }
        Ok(Some(&self.piece[..bytes]).filter(|piece| !piece.is_empty()))
    }
}
