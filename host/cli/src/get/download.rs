//! Downloads: continued after a lost connection, and while the file grows.

use super::answer::{Answer, continues, meaning, modified, strong_tag};
use super::client::{Client, Wanted};
use super::error::RequestError;
use super::partial::{AtEnd, Partial, check_ordinary};
use super::reading::SLOW_BYTES;
use super::url::Url;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::shared;
use cardiograph_trace::Existing;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};
use ureq::Body;
use ureq::http::Response;

/// Number of consecutive attempts without notable progress after which a download fails.
const ATTEMPTS_MAX: u32 = 6;
/// Number of times that a download may start over.
const RESTARTS_MAX: u32 = 5;
/// Pause before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest pause that a busy server can ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Number of bytes that are requested once more when a growing file is followed, to see that it is still the same file.
const OVERLAP_BYTES: u64 = 1024;

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
    Partial(Box<Partial>, Outcome),
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
    /// Stores the entity tag of the bytes that follow, and the time of the last change.
    fn describe(&mut self, tag: Option<&str>, modified: Option<SystemTime>) -> Result<(), Failure>;
    /// Fails if there is no room for this number of further bytes.
    fn check_room(&self, bytes: u64) -> Result<(), Failure>;
    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure>;
    /// Returns the last bytes received, up to [`OVERLAP_BYTES`].
    fn tail(&mut self) -> Result<Vec<u8>, Failure>;
}

/// Result of one attempt.
enum Step {
    /// All bytes have been received.
    Complete,
    /// The attempt failed; another one may succeed.
    Failed(RequestError),
    /// The file is not the one whose first bytes were received.
    Changed,
}

/// State of a download in several attempts.
#[derive(Default)]
struct Course {
    bar: Option<Progress>,
    restarts: u32,
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
        check_ordinary(output)?;
        let (at_end, has_grown) = match (output.symlink_metadata(), shared::existing()) {
            (Err(_), _) => (AtEnd::Create, false),
            (Ok(_), Existing::Replace) => (AtEnd::Replace, false),
            (Ok(metadata), Existing::Keep) => match self.describe()?.0 {
                Some(length) if length == metadata.len() => return Ok(Received::Complete),
                Some(length) if length > metadata.len() => (AtEnd::Replace, true),
                _ => return Err(is_other_file(output)),
            },
        };
        let partial = Partial::open(output, &self.url.to_string(), at_end)?;
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
        Ok(Received::Partial(Box::new(sink.partial), outcome))
    }

    /// Downloads to standard output.
    pub fn to_standard_output(&self) -> Result<(), Failure> {
        self.receive(&mut ToStandardOutput::default())
    }

    /// Returns length and strong entity tag of the server's file, if they are known.
    fn describe(&self) -> Result<(Option<u64>, Option<String>), Failure> {
        let described = self.client.describe(self.url);
        described.map_err(|error| self.failure(&error))
    }

    /// Receives the whole file, in as many attempts as necessary.
    fn receive(&self, sink: &mut impl Sink) -> Result<(), Failure> {
        let mut course = Course::default();
        let mut attempts = 0;
        loop {
            self.client.check_interrupt()?;
            let before = sink.wanted().start;
            let error = match self.attempt(sink, &mut course)? {
                Step::Complete => break,
                Step::Changed => {
                    self.start_over(sink, &mut course)?;
                    continue;
                }
                Step::Failed(error) => error,
            };
            self.client.check_interrupt()?;
            attempts = match sink.wanted().start >= before.saturating_add(SLOW_BYTES) {
                true => 1,
                false => attempts + 1,
            };
            let pause = match &error {
                // Before the first byte, a wrong address is more likely than a lost connection.
                RequestError::Connection(_) if sink.wanted().start > 0 => {
                    PAUSE * (1 << (attempts - 1))
                }
                RequestError::Busy(pause) => (*pause).min(PAUSE_MAX),
                _ => return Err(self.failure(&error)),
            };
            if attempts == ATTEMPTS_MAX {
                return Err(self.failure(&error));
            }
            self.pause(pause)?;
        }
        if let Some(bar) = course.bar {
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

    /// Discards the bytes received. A server cannot cause this any number of times.
    fn start_over(&self, sink: &mut impl Sink, course: &mut Course) -> Result<(), Failure> {
        course.restarts += 1;
        match course.restarts <= RESTARTS_MAX {
            true => sink.restart(),
            false => Err(Failure::new(format!(
                "{}: started over {RESTARTS_MAX} times, because the file changed or the server did not continue it; \
                 try again later",
                self.url
            ))),
        }
    }

    /// Requests the missing bytes once. An error is final.
    fn attempt(&self, sink: &mut impl Sink, course: &mut Course) -> Result<Step, Failure> {
        let wanted = sink.wanted();
        let mut response = match self.client.get(self.url, &wanted) {
            Ok(response) => response,
            Err(error) => return Ok(Step::Failed(error)),
        };
        let answer = match meaning(&response, &wanted) {
            Ok(answer) => answer,
            Err(wrong) => return Ok(Step::Failed(RequestError::Wrong(wrong))),
        };
        let (bytes, total) = match answer {
            Answer::Changed => return Ok(Step::Changed),
            Answer::Nothing => {
                // The response does not state the entity tag.
                return match self.is_complete(&wanted)? {
                    true => self.follow(sink, course),
                    false => Ok(Step::Changed),
                };
            }
            Answer::Rest { bytes, total } => (Some(bytes), Some(total)),
            Answer::Whole { bytes } => {
                if wanted.start > 0 {
                    self.start_over(sink, course)?;
                }
                (bytes, bytes)
            }
        };
        sink.describe(strong_tag(&response).as_deref(), modified(&response))?;
        if let Some(total) = total {
            sink.check_room(total.saturating_sub(sink.wanted().start))?;
            course.bar.get_or_insert_with(|| Progress::over(total));
        }
        let end = bytes.map(|bytes| sink.wanted().start.saturating_add(bytes));
        if let Err(error) = self.copy(&mut response, end, sink, course)? {
            return Ok(Step::Failed(error));
        }
        match total {
            Some(total) if sink.wanted().start < total => {
                Ok(Step::Failed(RequestError::Connection(
                    "the connection ended before the end of the file".to_string(),
                )))
            }
            _ => self.follow(sink, course),
        }
    }

    /// Returns true if these bytes are the whole file.
    fn is_complete(&self, wanted: &Wanted) -> Result<bool, Failure> {
        let (length, tag) = self.describe()?;
        let is_same = match (&wanted.tag, &tag) {
            (Some(before), Some(now)) => continues(before, now),
            _ => false,
        };
        Ok(is_same && length == Some(wanted.start))
    }

    /// Receives what the recorder appends until it finishes the file.
    fn follow(&self, sink: &mut impl Sink, course: &mut Course) -> Result<Step, Failure> {
        if !self.follows {
            return Ok(Step::Complete);
        }
        let mut expected = sink.tail()?;
        let offset = sink.wanted().start - expected.len() as u64;
        let url = self.url.with(&format!("follow=1&offset={offset}"));
        let mut response = match self.client.get(&url, &Wanted::default()) {
            Ok(response) => response,
            Err(error) => return Ok(Step::Failed(error)),
        };
        // A server that ignores these arguments sends the file again from its start, and states its length.
        match meaning(&response, &Wanted::default()) {
            Ok(Answer::Whole { bytes: None }) => (),
            Ok(_) => {
                return Ok(Step::Failed(RequestError::Wrong(
                    "the server cannot continue while the file grows; omit --follow".to_string(),
                )));
            }
            Err(wrong) => return Ok(Step::Failed(RequestError::Wrong(wrong))),
        }
        let mut reading = self.client.read(&mut response).at_any_speed();
        loop {
            self.client.check_interrupt()?;
            let piece = match reading.next() {
                Ok(Some(piece)) => piece,
                Ok(None) if expected.is_empty() => return Ok(Step::Complete),
                Ok(None) => return Ok(Step::Changed),
                Err(error) => return Ok(Step::Failed(error)),
            };
            let (known, new) = piece.split_at(piece.len().min(expected.len()));
            if !expected.starts_with(known) {
                return Ok(Step::Changed);
            }
            expected.drain(..known.len());
            sink.append(new)?;
            if let Some(bar) = &mut course.bar {
                bar.show(sink.wanted().start);
            }
        }
    }

    /// Receives a body that ends at this offset in the file, if it is known.
    fn copy(
        &self,
        response: &mut Response<Body>,
        end: Option<u64>,
        sink: &mut impl Sink,
        course: &mut Course,
    ) -> Result<Result<(), RequestError>, Failure> {
        let mut reading = self.client.read(response);
        loop {
            self.client.check_interrupt()?;
            match reading.next() {
                Ok(None) => return Ok(Ok(())),
                Ok(Some(piece)) => {
                    let left = end.map(|end| end - sink.wanted().start);
                    if left.is_some_and(|left| piece.len() as u64 > left) {
                        // Nothing that this server sent as the file can be trusted.
                        sink.restart()?;
                        return Ok(Err(RequestError::Wrong(
                            "the server sent more bytes than it announced".to_string(),
                        )));
                    }
                    sink.append(piece)?;
                }
                Err(error) => return Ok(Err(error)),
            }
            if let Some(bar) = &mut course.bar {
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

    fn describe(&mut self, tag: Option<&str>, modified: Option<SystemTime>) -> Result<(), Failure> {
        self.partial.modified = modified;
        self.partial.set_tag(tag)
    }

    fn check_room(&self, bytes: u64) -> Result<(), Failure> {
        self.partial.check_room(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.partial.append(bytes)
    }

    fn tail(&mut self) -> Result<Vec<u8>, Failure> {
        self.partial.tail(OVERLAP_BYTES)
    }
}

#[derive(Default)]
struct ToStandardOutput {
    wanted: Wanted,
    /// The last bytes written.
    tail: Vec<u8>,
}

impl Sink for ToStandardOutput {
    fn wanted(&self) -> Wanted {
        self.wanted.clone()
    }

    fn restart(&mut self) -> Result<(), Failure> {
        Err(Failure::new(
            "the file changed during the download, or the server cannot continue it; start the download again",
        ))
    }

    fn describe(&mut self, tag: Option<&str>, _: Option<SystemTime>) -> Result<(), Failure> {
        self.wanted.tag = tag.map(str::to_string);
        Ok(())
    }

    fn check_room(&self, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::new(format!("standard output: {error}; redirect it elsewhere")),
        })?;
        self.wanted.start += bytes.len() as u64;
        let kept = OVERLAP_BYTES as usize;
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(kept)..]);
        self.tail.drain(..self.tail.len().saturating_sub(kept));
        Ok(())
    }

    fn tail(&mut self) -> Result<Vec<u8>, Failure> {
        Ok(self.tail.clone())
    }
}

fn is_other_file(output: &Path) -> Failure {
    Failure::new(format!(
        "{}: exists already, and is not the beginning of the file on the server; name another output with -o, or \
         replace the file with --force",
        output.display()
    ))
}
