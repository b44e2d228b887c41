//! Downloads: continued after a lost connection, and while the file grows.

use super::client::{Client, RequestError, Wanted, header};
use super::partial::Partial;
use super::url::Url;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::shared;
use cardiograph_trace::Existing;
use std::io::{self, Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;
use ureq::Body;
use ureq::http::Response;

/// Bytes per read.
const PIECE_BYTES: usize = 128 << 10;
/// Number of consecutive attempts without a new byte after which a download fails.
const ATTEMPTS_MAX: u32 = 6;
/// Pause before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// One file to download.
pub struct Download<'a> {
    /// The server.
    pub client: &'a Client<'a>,
    /// Address of the file.
    pub url: &'a Url,
    /// Continues until the recorder finishes the file.
    pub follows: bool,
}

/// A download whose bytes have all been received.
pub enum Received {
    /// The file was already there, with the same length.
    Complete,
    /// The bytes are in a partial file.
    Partial(Partial, Outcome),
}

/// Result of a download to a file.
pub enum Outcome {
    /// The file was already there, with the same length.
    Complete,
    /// The file has been downloaded.
    Fetched {
        /// Length in bytes.
        total: u64,
        /// Bytes that an earlier download had received.
        continued: u64,
    },
}

/// Receives the bytes of a download.
trait Sink {
    /// Returns the bytes received so far and their entity tag.
    fn wanted(&self) -> Wanted;
    /// Starts over, because the file has changed.
    fn restart(&mut self) -> Result<(), Failure>;
    /// Stores the entity tag of the bytes that follow.
    fn set_tag(&mut self, tag: Option<&str>) -> Result<(), Failure>;
    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure>;
}

impl Download<'_> {
    /// Downloads to a file.
    pub fn to_file(&self, output: &Path) -> Result<Outcome, Failure> {
        match self.to_partial(output)? {
            Received::Complete => Ok(Outcome::Complete),
            Received::Partial(partial, outcome) => {
                partial.finish()?;
                Ok(outcome)
            }
        }
    }

    /// Downloads to the partial file of `output`. An existing file is only replaced if the server's file continues it,
    /// as that of a recording in progress does.
    pub fn to_partial(&self, output: &Path) -> Result<Received, Failure> {
        let has_grown = match (output.symlink_metadata(), shared::existing()) {
            // The download replaces the existing file once it is complete.
            (Ok(metadata), Existing::Replace) if metadata.is_file() => false,
            (Ok(metadata), _) => match self.length()? {
                Some(length) if length == metadata.len() => return Ok(Received::Complete),
                Some(length) if length > metadata.len() && metadata.is_file() => true,
                _ => return Err(is_other_file(output)),
            },
            (Err(_), _) => false,
        };
        let partial = Partial::open(output, &self.url.to_string())?;
        let continued = partial.bytes;
        let mut sink = ToFile {
            partial,
            was_restarted: false,
        };
        if let Err(failure) = self.receive(&mut sink) {
            sink.partial.leave();
            return Err(failure);
        }
        if has_grown && !sink.partial.continues_output()? {
            sink.partial.discard();
            return Err(is_other_file(output));
        }
        let total = sink.partial.bytes;
        let continued = if sink.was_restarted { 0 } else { continued };
        let outcome = Outcome::Fetched { total, continued };
        Ok(Received::Partial(sink.partial, outcome))
    }

    /// Downloads to standard output.
    pub fn to_standard_output(&self) -> Result<(), Failure> {
        self.receive(&mut ToStandardOutput(Wanted::default()))
    }

    /// Returns the length of the server's file, if it is known.
    fn length(&self) -> Result<Option<u64>, Failure> {
        let length = self.client.length(self.url);
        length.map_err(|error| self.failure(&error))
    }

    /// Receives the whole file, in as many attempts as necessary.
    fn receive(&self, sink: &mut impl Sink) -> Result<(), Failure> {
        let mut bar = None;
        let mut attempts = 0;
        loop {
            self.client.check_interrupt()?;
            let before = sink.wanted().start;
            let error = match self.attempt(sink, &mut bar)? {
                Ok(()) => break,
                Err(error) => error,
            };
            attempts = match sink.wanted().start > before {
                true => 1,
                false => attempts + 1,
            };
            let pause = match &error {
                RequestError::Refused(..)
                | RequestError::CredentialsNeeded
                | RequestError::CredentialsWrong => return Err(self.failure(&error)),
                // Before the first byte, a wrong address is more likely than a lost connection.
                RequestError::Connection(_) if sink.wanted().start == 0 => {
                    return Err(self.failure(&error));
                }
                RequestError::Connection(_) => PAUSE * (1 << (attempts - 1)),
                RequestError::Busy(pause) => (*pause).min(Duration::from_secs(30)),
            };
            if attempts == ATTEMPTS_MAX {
                return Err(self.failure(&error));
            }
            self.pause(pause)?;
        }
        if let Some(bar) = bar {
            bar.clear();
        }
        Ok(())
    }

    /// Waits; fails after Ctrl-C.
    fn pause(&self, pause: Duration) -> Result<(), Failure> {
        let steps = pause.as_millis().div_ceil(50);
        for _ in 0..steps {
            self.client.check_interrupt()?;
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Requests the missing bytes once. The outer error is final.
    fn attempt(
        &self,
        sink: &mut impl Sink,
        bar: &mut Option<Progress>,
    ) -> Result<Result<(), RequestError>, Failure> {
        let wanted = sink.wanted();
        let mut response = match self.client.get(self.url, &wanted) {
            Ok(response) => response,
            Err(error) => return Ok(Err(error)),
        };
        match response.status().as_u16() {
            206 if range_start(&response) == Some(wanted.start) => (),
            // Nothing is missing, or the file is shorter now.
            416 => match range_total(&response) == Some(wanted.start) {
                true => return self.follow(sink, bar),
                false => {
                    sink.restart()?;
                    return self.attempt(sink, bar);
                }
            },
            200 => {
                if wanted.start > 0 {
                    sink.restart()?;
                }
            }
            status => {
                return Ok(Err(RequestError::Refused(status, String::new())));
            }
        }
        sink.set_tag(header(&response, "ETag"))?;
        let total = length(&response).map(|bytes| bytes + sink.wanted().start);
        if let (Some(total), None) = (total, &bar) {
            *bar = Some(Progress::over(total));
        }
        if let Err(error) = self.copy(&mut response, sink, bar)? {
            return Ok(Err(error));
        }
        match total {
            Some(total) if sink.wanted().start < total => Ok(Err(RequestError::Connection(
                "the connection ended before the end of the file".to_string(),
            ))),
            _ => self.follow(sink, bar),
        }
    }

    /// Receives what the recorder appends until it finishes the file.
    fn follow(
        &self,
        sink: &mut impl Sink,
        bar: &mut Option<Progress>,
    ) -> Result<Result<(), RequestError>, Failure> {
        if !self.follows {
            return Ok(Ok(()));
        }
        let start = sink.wanted().start;
        let url = self.url.with(&format!("follow=1&offset={start}"));
        let mut response = match self.client.get(&url, &Wanted::default()) {
            Ok(response) if response.status().as_u16() == 200 => response,
            Ok(response) => {
                let status = response.status().as_u16();
                return Ok(Err(RequestError::Refused(status, String::new())));
            }
            Err(error) => return Ok(Err(error)),
        };
        self.copy(&mut response, sink, bar)
    }

    fn copy(
        &self,
        response: &mut Response<Body>,
        sink: &mut impl Sink,
        bar: &mut Option<Progress>,
    ) -> Result<Result<(), RequestError>, Failure> {
        let mut reader = response.body_mut().as_reader();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            self.client.check_interrupt()?;
            match reader.read(&mut piece) {
                Ok(0) => return Ok(Ok(())),
                Ok(bytes) => sink.append(&piece[..bytes])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Ok(Err(RequestError::Connection(error.to_string()))),
            }
            if let Some(bar) = bar {
                bar.show(sink.wanted().start);
            }
        }
    }

    fn failure(&self, error: &RequestError) -> Failure {
        Failure::new(format!("{}: {error}", self.url))
    }
}

struct ToFile {
    partial: Partial,
    was_restarted: bool,
}

impl Sink for ToFile {
    fn wanted(&self) -> Wanted {
        Wanted {
            start: self.partial.bytes,
            tag: self.partial.tag.clone(),
        }
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.was_restarted = true;
        self.partial.restart()
    }

    fn set_tag(&mut self, tag: Option<&str>) -> Result<(), Failure> {
        self.partial.set_tag(tag)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.partial.append(bytes)
    }
}

struct ToStandardOutput(Wanted);

impl Sink for ToStandardOutput {
    fn wanted(&self) -> Wanted {
        self.0.clone()
    }

    fn restart(&mut self) -> Result<(), Failure> {
        Err(Failure::new(
            "the file changed during the download; start the download again",
        ))
    }

    fn set_tag(&mut self, tag: Option<&str>) -> Result<(), Failure> {
        self.0.tag = tag.map(str::to_string);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::new(format!("standard output: {error}; redirect it elsewhere")),
        })?;
        self.0.start += bytes.len() as u64;
        Ok(())
    }
}

fn is_other_file(output: &Path) -> Failure {
    Failure::new(format!(
        "{}: exists already, and is not the beginning of the file on the server; name another output with -o, or \
         replace the file with --force",
        output.display()
    ))
}

/// Returns the length of the body.
fn length(response: &Response<Body>) -> Option<u64> {
    header(response, "Content-Length")?.parse().ok()
}

/// Returns the first byte of `Content-Range: bytes 5-9/10`.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let range = header(response, "Content-Range")?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.parse().ok()
}

/// Returns the total length of `Content-Range: bytes */10`.
fn range_total(response: &Response<Body>) -> Option<u64> {
    let range = header(response, "Content-Range")?;
    range.rsplit_once('/')?.1.parse().ok()
}
