//! State of recorder, card and server.

use crate::status::{Closed, Fault, Refused, Status as Code};
use crate::text::Json;
use crate::wire::{Length, Wire};
use crate::{Gap, Instrument, Server, Status, Storage, Timer};
use embedded_io_async::{Read, Write};

/// Answer of a server without a recorder.
pub(crate) const NO_RECORDER: Refused = Refused::new(Code::NotFound, "this server has no recorder");

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends the state as JSON.
    pub(crate) async fn status<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<(), Fault> {
        wire.start_json().await?;
        wire.bytes(b"{\"storage\":").await?;
        match self.storage.space() {
            None => wire.bytes(b"null").await?,
            Some(space) => {
                let (total, free) = (space.total_bytes, space.free_bytes);
                wire.text(format_args!("{{\"size\":{total},\"free\":{free}}}"))
                    .await?;
            }
        }
        wire.bytes(b",\n\"recorder\":").await?;
        match self.instrument.status() {
            None => wire.bytes(b"null").await?,
            Some(status) => json_status(wire, &status).await?,
        }
        let read_only = self.config.is_read_only;
        let (streams, streams_max) = (self.event_streams.get(), self.config.event_streams_max);
        wire.text(format_args!(
            ",\n\"server\":{{\"read_only\":{read_only},\"event_streams\":{streams},\
             \"event_streams_max\":{streams_max}}}}}\n"
        ))
        .await?;
        Ok(wire.finish().await?)
    }

    /// Sends gaps as JSON.
    pub(crate) async fn gaps<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        since: u64,
    ) -> Result<(), Fault> {
        if self.instrument.status().is_none() {
            return Err(NO_RECORDER.into());
        }
        wire.start_json().await?;
        wire.bytes(b"[").await?;
        let (mut number, mut separator) = (since, "");
        while let Some(gap) = self.instrument.gap(number)
            && !wire.is_head()
        {
            wire.text(format_args!("{separator}")).await?;
            json_gap(wire, &gap).await?;
            separator = ",\n";
            number = gap.number.max(number).saturating_add(1);
        }
        wire.bytes(b"]\n").await?;
        Ok(wire.finish().await?)
    }

    /// Sends the state as text for Prometheus.
    pub(crate) async fn metrics<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<(), Fault> {
        wire.closes |= wire.is_old();
        wire.start(Code::Ok).await?;
        wire.text(format_args!(
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\nCache-Control: no-store\r\n"
        ))
        .await?;
        wire.body(Length::Unknown).await?;
        let counters = &self.counters;
        for (name, help, value) in [
            ("connections", "Connections.", &counters.connections),
            ("requests", "Requests.", &counters.requests),
            ("refused", "Requests that were refused.", &counters.refused),
            ("sent_bytes", "Bytes sent.", &counters.sent_bytes),
            (
                "received_bytes",
                "Bytes of bodies received.",
                &counters.received_bytes,
            ),
        ] {
            metric(wire, Kind::Counter, ("server", name), help, value.get()).await?;
        }
        let streams = self.event_streams.get().into();
        let help = "Event streams in progress.";
        metric(
            wire,
            Kind::Gauge,
            ("server", "event_streams"),
            help,
            streams,
        )
        .await?;
        if let Some(space) = self.storage.space() {
            let help = "Size of the storage.";
            metric(
                wire,
                Kind::Gauge,
                ("storage", "size_bytes"),
                help,
                space.total_bytes,
            )
            .await?;
            let help = "Free space of the storage.";
            metric(
                wire,
                Kind::Gauge,
                ("storage", "free_bytes"),
                help,
                space.free_bytes,
            )
            .await?;
        }
        if let Some(status) = self.instrument.status() {
            for (kind, name, help, value) in figures(&status) {
                metric(wire, kind, ("recorder", name), help, value).await?;
            }
        }
        Ok(wire.finish().await?)
    }
}

/// Kind of a metric.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// Returns the metrics of a recorder.
fn figures(status: &Status) -> [(Kind, &'static str, &'static str, u64); 14] {
    use Kind::{Counter, Gauge};
    let recording = status.is_recording.into();
    [
        (Gauge, "recording", "1 during a recording.", recording),
        (
            Gauge,
            "ring_bytes",
            "Level of the fullest ring.",
            status.ring_bytes.into(),
        ),
        (
            Gauge,
            "ring_capacity_bytes",
            "Capacity of that ring.",
            status.ring_capacity_bytes.into(),
        ),
        (
            Gauge,
            "ring_bytes_max",
            "Highest level of that ring.",
            status.ring_bytes_max.into(),
        ),
        (Counter, "samples", "Samples taken.", status.samples),
        (Counter, "lost_samples", "Samples lost.", status.lost),
        (Counter, "gaps", "Gaps.", status.gaps),
        (
            Counter,
            "written_bytes",
            "Bytes written to the card.",
            status.written_bytes,
        ),
        (
            Gauge,
            "rate_bytes_per_second",
            "Incoming rate.",
            status.rate_bytes_per_s.into(),
        ),
        (Counter, "writes", "Writes.", status.writes),
        (
            Gauge,
            "write_latency_median_us",
            "Median write latency.",
            status.write_us_median.into(),
        ),
        (
            Gauge,
            "write_latency_p99_us",
            "99th percentile of the write latency.",
            status.write_us_p99.into(),
        ),
        (
            Gauge,
            "write_latency_max_us",
            "Longest write latency.",
            status.write_us_max.into(),
        ),
        (
            Counter,
            "windows_exceeded",
            "Times the durability window was exceeded.",
            status.windows_exceeded,
        ),
    ]
}

async fn metric<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    kind: Kind,
    (part, name): (&str, &str),
    help: &str,
    value: u64,
) -> Result<(), Closed> {
    let (suffix, kind) = match kind {
        Kind::Counter => ("_total", "counter"),
        Kind::Gauge => ("", "gauge"),
    };
    wire.text(format_args!(
        "# HELP cardiograph_{part}_{name}{suffix} {help}\n\
         # TYPE cardiograph_{part}_{name}{suffix} {kind}\n\
         cardiograph_{part}_{name}{suffix} {value}\n"
    ))
    .await
}

/// Writes the state of a recorder as one line of JSON.
pub(crate) async fn json_status<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    status: &Status,
) -> Result<(), Closed> {
    let Status {
        is_recording,
        streams,
        ring_bytes,
        ring_capacity_bytes,
        ring_bytes_max,
        samples,
        lost,
        gaps,
        written_bytes,
        rate_bytes_per_s,
        writes,
        write_us_median,
        write_us_p99,
        write_us_max,
        window_ms,
        windows_exceeded,
        unsaved_ms,
        has_clock,
    } = status;
    wire.text(format_args!(
        "{{\"recording\":{is_recording},\"streams\":{streams},\"ring_bytes\":{ring_bytes},\
         \"ring_capacity_bytes\":{ring_capacity_bytes},\"ring_bytes_max\":{ring_bytes_max},\
         \"samples\":{samples},\"lost\":{lost},\"gaps\":{gaps},\"written_bytes\":{written_bytes},\
         \"rate_bytes_per_s\":{rate_bytes_per_s},"
    ))
    .await?;
    wire.text(format_args!(
        "\"writes\":{writes},\"write_us\":{{\"median\":{write_us_median},\"p99\":{write_us_p99},\
         \"max\":{write_us_max}}},\"window_ms\":{window_ms},\"windows_exceeded\":{windows_exceeded},\
         \"unsaved_ms\":{unsaved_ms},\"clock\":{has_clock}}}"
    ))
    .await
}

/// Writes a gap as one line of JSON.
pub(crate) async fn json_gap<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    gap: &Gap,
) -> Result<(), Closed> {
    let Gap {
        number,
        stream,
        first,
        count,
        at_us,
        last_us,
        cause,
    } = gap;
    wire.text(format_args!(
        "{{\"number\":{number},\"stream\":{stream},\"first\":{first},\"count\":{count},\
         \"at_us\":{at_us},\"last_us\":{last_us},\"cause\":\"{}\"}}",
        Json(cause)
    ))
    .await
}
