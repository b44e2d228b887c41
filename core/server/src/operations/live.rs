//! Server-sent events: the state of the recorder, or every sample.

use super::decode::BATCH_ROWS;
use super::state::{NO_RECORDER, json_gap, json_status};
use crate::limits::{SAMPLES_MS, STATUS_MS};
use crate::path::Path;
use crate::route::Live;
use crate::status::{Closed, Fault, Refused, Status};
use crate::wire::{Length, Wire};
use crate::{Instrument, Sample, Server, Storage, Timer, WriteLatency};
use core::cell::Cell;
use embedded_io_async::{Read, Write};

/// One of the event streams that may be open at the same time.
struct Ticket<'a>(&'a Cell<u8>);

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Result of writing a sample to the buffer.
enum Written {
    Row,
    /// Nothing was written, for this reason.
    Not(Sample),
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends events until the client disconnects.
    pub(crate) async fn live<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        live: &Live,
        path: &mut Path,
    ) -> Result<(), Fault> {
        let Some(crate::Status { gaps, streams, .. }) = self.instrument.status() else {
            return Err(NO_RECORDER.into());
        };
        if live.stream >= streams.max(1) {
            return Err(Refused::new(Status::NotFound, "there is no such stream").into());
        }
        let open = self.event_streams.get();
        if open >= self.config.event_streams_max {
            return Err(Refused::new(
                Status::ServiceUnavailable,
                "too many event streams are open; close one",
            )
            .into());
        }
        self.event_streams.set(open + 1);
        let _ticket = Ticket(&self.event_streams);
        wire.closes = true;
        wire.start(Status::Ok).await?;
        wire.text(format_args!(
            "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        ))
        .await?;
        wire.body(Length::Unknown).await?;
        if wire.is_head() {
            return Ok(wire.finish().await?);
        }
        wire.bytes(b"retry: 1000\n\n").await?;
        match live.has_all {
            true => self.all_samples(wire, live, path).await,
            false => self.states(wire, gaps, streams, live.has_writes).await,
        }
    }

    /// Sends the state, new gaps and the newest samples.
    async fn states<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        mut gaps: u64,
        streams: u8,
        has_writes: bool,
    ) -> Result<(), Fault> {
        let mut next_write = 0;
        loop {
            if let Some(status) = self.instrument.status() {
                wire.bytes(b"event: status\ndata: ").await?;
                json_status(wire, &status, self.instrument).await?;
                wire.bytes(b"\n\n").await?;
            }
            while let Some(gap) = self.instrument.gap(gaps) {
                wire.bytes(b"event: gap\ndata: ").await?;
                json_gap(wire, &gap).await?;
                wire.bytes(b"\n\n").await?;
                gaps = gap.number.max(gaps).saturating_add(1);
            }
            if has_writes {
                self.latencies(wire, &mut next_write).await?;
            }
            for stream in 0..streams {
                self.newest_sample(wire, stream).await?;
            }
            wire.flush().await?;
            wire.pause(STATUS_MS as u32).await?;
        }
    }

    /// Sends latencies up to the newest one, in batches, and counts `next` up.
    async fn latencies<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        next: &mut u64,
    ) -> Result<(), Closed> {
        let mut rows = 0;
        while let Some(WriteLatency { number, at_ms, us }) = self.instrument.latency(*next) {
            if rows == 0 {
                wire.bytes(b"event: writes\n").await?;
            }
            wire.text(format_args!("data: {number},{at_ms},{us}\n"))
                .await?;
            *next = number.saturating_add(1);
            rows = (rows + 1) % BATCH_ROWS;
            if rows == 0 {
                wire.bytes(b"\n").await?;
            }
        }
        match rows {
            0 => Ok(()),
            _ => wire.bytes(b"\n").await,
        }
    }

    async fn newest_sample<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        stream: u8,
    ) -> Result<(), Closed> {
        let Some(number) = self.instrument.next(stream).checked_sub(1) else {
            return Ok(());
        };
        wire.text(format_args!("event: sample\ndata: {stream}\n"))
            .await?;
        let _ = self.row(wire, stream, number).await?;
        wire.bytes(b"\n").await
    }

    /// Sends every sample from a number on; samples that are no longer in memory come from the card.
    async fn all_samples<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        live: &Live,
        path: &mut Path,
    ) -> Result<(), Fault> {
        let stream = live.stream;
        let newest = self.instrument.next(stream);
        // A number from a previous run of the device may be higher than the newest.
        let mut next = live.next.map_or(newest, |next| next.min(newest));
        wire.bytes(b"event: columns\ndata: ").await?;
        wire.fill(|row| self.instrument.columns(stream, row))
            .await?;
        wire.bytes(b"\n\n").await?;
        loop {
            let first = next;
            let reason = loop {
                match self.row(wire, stream, next).await? {
                    Written::Row => next += 1,
                    Written::Not(sample) => break Reason::of(sample, path),
                }
                // A batch of any length is one event; short ones lose less when a connection breaks.
                if next - first == u64::from(BATCH_ROWS) {
                    break Reason::Batch;
                }
            };
            if next > first {
                wire.text(format_args!("id: {}\n\n", next - 1)).await?;
            }
            match reason {
                Reason::Batch => (),
                Reason::Later => self.wait(wire).await?,
                Reason::Lost { next: found, cause } if found > next => {
                    lost(wire, next, found, cause).await?;
                    next = found;
                }
                Reason::Lost { .. } => self.wait(wire).await?,
                Reason::OnCard { first } => {
                    let found = self.replay(wire, path, (stream, first), next).await?;
                    // The sample will be durable soon.
                    if found == next {
                        self.wait(wire).await?;
                    }
                    next = found;
                }
            }
        }
    }

    async fn wait<C: Read + Write>(&self, wire: &mut Wire<'_, C, T>) -> Result<(), Closed> {
        wire.flush().await?;
        wire.pause(SAMPLES_MS).await
    }

    /// Writes a sample as a line of an event: its number, and its values.
    async fn row<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        stream: u8,
        number: u64,
    ) -> Result<Written, Closed> {
        let mut sample = Sample::None;
        let prefix = format_args!("data: {number},");
        let is_written = wire
            .line(prefix, |row| {
                sample = self.instrument.sample(stream, number, row);
                match sample {
                    Sample::Row(bytes) => Some(bytes),
                    _ => None,
                }
            })
            .await?;
        Ok(match is_written {
            true => Written::Row,
            false => Written::Not(sample),
        })
    }
}

/// Reason for the end of an event.
enum Reason {
    /// The event is long enough.
    Batch,
    /// The next sample has not been taken yet.
    Later,
    /// The next sample is in the file whose path was set.
    OnCard { first: u64 },
    /// The samples up to `next` are lost.
    Lost { next: u64, cause: &'static str },
}

impl Reason {
    fn of(sample: Sample, path: &mut Path) -> Reason {
        match sample {
            Sample::OnCard { path: of, first } => {
                path.clear();
                match path.push_str(&of) {
                    Ok(()) => Reason::OnCard { first },
                    Err(_) => Reason::Later,
                }
            }
            Sample::Lost { next, cause } => Reason::Lost { next, cause },
            Sample::Row(_) | Sample::Later | Sample::None => Reason::Later,
        }
    }
}

/// Writes an event about samples that are missing.
pub(crate) async fn lost<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    first: u64,
    next: u64,
    cause: &str,
) -> Result<(), Closed> {
    let (count, last) = (next - first, next - 1);
    wire.text(format_args!(
        "event: gap\ndata: {{\"first\":{first},\"count\":{count},\"cause\":\"{cause}\"}}\nid: {last}\n\n"
    ))
    .await
}
