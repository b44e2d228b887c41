//! The recorder in this process, as the server sees it.

use cardiograph_record::{Monitor, Monitored};
use cardiograph_server::{
    Command, Gap, Instrument, ROW_BYTES_MAX, RecordingPath, Refusal, Sample, Session, Status,
};
use std::sync::Arc;

/// A recorder in this process.
pub struct LiveRecorder {
    monitor: Arc<Monitor>,
}

impl LiveRecorder {
    /// Creates an instrument for the recording that reports to this monitor.
    pub fn new(monitor: Arc<Monitor>) -> LiveRecorder {
        LiveRecorder { monitor }
    }

    fn begin(&self, session: &Session) -> Result<(), Refusal> {
        Ok(self.monitor.begin_session(session.name, session.settings)?)
    }
}

impl Instrument for LiveRecorder {
    fn status(&self) -> Option<Status> {
        let figures = self.monitor.figures();
        let writes = figures.writes;
        let us = |ns: u64| saturated(ns / 1000);
        Some(Status {
            is_recording: figures.is_recording,
            streams: figures.streams,
            ring_bytes: saturated(figures.ring_bytes),
            ring_capacity_bytes: saturated(figures.ring_capacity_bytes),
            ring_bytes_max: saturated(figures.ring_bytes_max),
            samples: figures.samples,
            lost: figures.lost,
            gaps: figures.gaps,
            written_bytes: writes.bytes,
            rate_bytes_per_s: saturated(figures.rate_bytes_per_s),
            writes: writes.writes,
            write_us_median: us(writes.median_ns),
            write_us_p99: us(writes.p99_ns),
            write_us_max: us(writes.longest_ns),
            window_ms: saturated(figures.window_us / 1000),
            windows_exceeded: figures.windows_exceeded,
            unsaved_ms: saturated(figures.unsaved_us / 1000),
            has_clock: true,
        })
    }

    fn columns(&self, stream: u8, row: &mut [u8; ROW_BYTES_MAX]) -> usize {
        fill(row, self.monitor.columns(stream).as_bytes())
    }

    fn next(&self, stream: u8) -> u64 {
        self.monitor.taken(stream)
    }

    fn sample(&self, stream: u8, number: u64, row: &mut [u8; ROW_BYTES_MAX]) -> Sample {
        match self.monitor.sample(stream, number) {
            Monitored::Row(text) => Sample::Row(fill(row, &text)),
            Monitored::Later => Sample::Later,
            Monitored::InFile { path, first } => {
                match RecordingPath::try_from(format!("/{path}").as_str()) {
                    Ok(path) => Sample::OnCard { path, first },
                    Err(_) => Sample::Lost {
                        next: number + 1,
                        cause: "path-too-long",
                    },
                }
            }
            Monitored::Lost(gap) => Sample::Lost {
                next: gap.first.saturating_add(gap.count),
                cause: gap.cause.word(),
            },
            Monitored::None => Sample::None,
        }
    }

    fn gap(&self, number: u64) -> Option<Gap> {
        let (number, stream, gap) = self.monitor.gap(number)?;
        Some(Gap::of(number, stream, &gap))
    }

    fn control(&self, command: Command) -> Result<(), Refusal> {
        if !self.monitor.figures().is_recording {
            // On a computer, only the command line starts a recording.
            return Err(match command {
                Command::Start(_) => Refusal::Unsupported,
                Command::Stop | Command::Rotate(_) => Refusal::NotRecording,
            });
        }
        match command {
            Command::Start(_) => Err(Refusal::Recording),
            Command::Stop => {
                self.monitor.stop();
                Ok(())
            }
            Command::Rotate(None) => {
                self.monitor.rotate();
                Ok(())
            }
            Command::Rotate(Some(session)) => self.begin(&session),
        }
    }

    fn set_clock(&self, _: u64, _: i16) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Copies as much of the text as fits; returns its length.
fn fill(row: &mut [u8; ROW_BYTES_MAX], text: &[u8]) -> usize {
    let len = text.len().min(row.len());
    row[..len].copy_from_slice(&text[..len]);
    len
}
