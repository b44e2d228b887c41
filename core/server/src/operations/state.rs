//! State of recorder, card and server.

use crate::status::{Closed, Fault, Refused, Status as Code};
use crate::text::{Json, JsonOf, pieces};
use crate::wire::{Length, Wire};
use crate::{Gap, Instrument, Item, ROW_BYTES_MAX, Server, Status, Storage, Timer};
use core::cell::Cell;
use embedded_io_async::{Read, Write};

/// Response of a server without a recorder.
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
                wire.text(format_args!("{{\"size\":{},\"free\":", space.total_bytes))
                    .await?;
                match space.free_bytes {
                    None => wire.bytes(b"null}").await?,
                    Some(free) => wire.text(format_args!("{free}}}")).await?,
                }
            }
        }
        wire.bytes(b",\n\"recorder\":").await?;
        match self.instrument.status() {
            None => wire.bytes(b"null").await?,
            Some(status) => json_status(wire, &status, self.instrument).await?,
        }
        let read_only = self.config.is_read_only;
        let (streams, streams_max) = (self.event_streams.get(), self.config.event_streams_max);
        wire.text(format_args!(
            ",\n\"server\":{{\"read_only\":{read_only},\"event_streams\":{streams},\
             \"event_streams_max\":{streams_max}}},\n\"application\":["
        ))
        .await?;
        self.items(wire).await?;
        wire.bytes(b"]}\n").await?;
        Ok(wire.finish().await?)
    }

    /// Writes the items of the application as JSON.
    async fn items<C: Read + Write>(&self, wire: &mut Wire<'_, C, T>) -> Result<(), Closed> {
        let mut number = 0;
        let mut text = [0; ROW_BYTES_MAX];
        while let Some((item, len)) = self.instrument.item(number, &mut text) {
            let separator = if number == 0 { "" } else { "," };
            match item {
                Item::Action { name, is_chosen } => {
                    let name = Json(name);
                    let chosen = match is_chosen {
                        None => "null",
                        Some(false) => "false",
                        Some(true) => "true",
                    };
                    wire.text(format_args!(
                        "{separator}\n{{\"action\":\"{name}\",\"chosen\":{chosen},\"text\":\""
                    ))
                    .await?;
                }
                Item::Row => wire.text(format_args!("{separator}\n{{\"row\":\"")).await?,
                Item::Sentence => {
                    wire.text(format_args!("{separator}\n{{\"text\":\""))
                        .await?
                }
            }
            // Invalid UTF-8 is a bug of the application; the response remains valid JSON.
            let valid = core::str::from_utf8(&text[..len]).unwrap_or_default();
            for piece in pieces(valid) {
                wire.text(format_args!("{}", Json(piece))).await?;
            }
            wire.bytes(b"\"}").await?;
            number += 1;
        }
        Ok(())
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
        let mut index = 0;
        while let Some(figure) = self.figure(index) {
            metric(wire, &figure).await?;
            index += 1;
        }
        Ok(wire.finish().await?)
    }

    /// Returns one of the metrics. They are not collected first because a list of them would stay in memory while
    /// the client receives them.
    fn figure(&self, index: usize) -> Option<Figure> {
        let counters = &self.counters;
        let counter =
            |name, help, value: &Cell<u64>| Figure::counter("server", name, help, value.get());
        let server = [
            counter("connections", "Connections.", &counters.connections),
            counter("requests", "Requests.", &counters.requests),
            counter("refused", "Requests that were refused.", &counters.refused),
            counter("sent_bytes", "Bytes sent.", &counters.sent_bytes),
            counter(
                "received_bytes",
                "Bytes of bodies received.",
                &counters.received_bytes,
            ),
            Figure::gauge(
                "server",
                "event_streams",
                "Event streams in progress.",
                self.event_streams.get().into(),
            ),
        ];
        let storage = self.storage.space().map(|space| {
            let size = Figure::gauge(
                "storage",
                "size_bytes",
                "Size of the storage.",
                space.total_bytes,
            );
            let free =
                |bytes| Figure::gauge("storage", "free_bytes", "Free space of the storage.", bytes);
            [Some(size), space.free_bytes.map(free)]
        });
        let recorder = self
            .instrument
            .status()
            .map(|status| recorder_figures(&status));
        let mut all = server
            .into_iter()
            .chain(storage.into_iter().flatten().flatten())
            .chain(recorder.into_iter().flatten());
        all.nth(index)
    }
}

/// A metric.
struct Figure {
    part: &'static str,
    name: &'static str,
    help: &'static str,
    value: u64,
    is_counter: bool,
}

impl Figure {
    fn counter(part: &'static str, name: &'static str, help: &'static str, value: u64) -> Figure {
        Figure {
            part,
            name,
            help,
            value,
            is_counter: true,
        }
    }

    fn gauge(part: &'static str, name: &'static str, help: &'static str, value: u64) -> Figure {
        Figure {
            is_counter: false,
            ..Figure::counter(part, name, help, value)
        }
    }
}

/// Returns the metrics of a recorder.
fn recorder_figures(status: &Status) -> [Figure; 14] {
    let counter = |name, help, value| Figure::counter("recorder", name, help, value);
    let gauge = |name, help, value: u32| Figure::gauge("recorder", name, help, value.into());
    [
        gauge(
            "recording",
            "1 during a recording.",
            status.is_recording.into(),
        ),
        gauge(
            "ring_bytes",
            "Level of the fullest ring.",
            status.ring_bytes,
        ),
        gauge(
            "ring_capacity_bytes",
            "Capacity of that ring.",
            status.ring_capacity_bytes,
        ),
        gauge(
            "ring_bytes_max",
            "Highest level of that ring.",
            status.ring_bytes_max,
        ),
        counter("samples", "Samples taken.", status.samples),
        counter("lost_samples", "Samples lost.", status.lost),
        counter("gaps", "Gaps.", status.gaps),
        counter(
            "written_bytes",
            "Bytes written to the card.",
            status.written_bytes,
        ),
        gauge(
            "rate_bytes_per_second",
            "Incoming rate.",
            status.rate_bytes_per_s,
        ),
        counter("writes", "Writes.", status.writes),
        gauge(
            "write_latency_median_us",
            "Median write latency.",
            status.write_us_median,
        ),
        gauge(
            "write_latency_p99_us",
            "99th percentile of the write latency.",
            p99_us(status),
        ),
        gauge(
            "write_latency_max_us",
            "Longest write latency.",
            status.write_us_max,
        ),
        counter(
            "windows_exceeded",
            "Times the durability window was exceeded.",
            status.windows_exceeded,
        ),
    ]
}

async fn metric<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    figure: &Figure,
) -> Result<(), Closed> {
    let Figure {
        part,
        name,
        help,
        value,
        is_counter,
    } = figure;
    let (suffix, kind) = match is_counter {
        true => ("_total", "counter"),
        false => ("", "gauge"),
    };
    wire.text(format_args!(
        "# HELP cardiograph_{part}_{name}{suffix} {help}\n\
         # TYPE cardiograph_{part}_{name}{suffix} {kind}\n\
         cardiograph_{part}_{name}{suffix} {value}\n"
    ))
    .await
}

/// Returns the 99th percentile of the write latency: a histogram rounds it up, perhaps beyond the exact maximum.
fn p99_us(status: &Status) -> u32 {
    status.write_us_p99.min(status.write_us_max)
}

/// Writes the state of a recorder as one line of JSON.
pub(crate) async fn json_status<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    status: &Status,
    instrument: &impl Instrument,
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
        write_us_p99: _,
        write_us_max,
        window_ms,
        windows_exceeded,
        unsaved_ms,
        has_clock,
    } = status;
    let write_us_p99 = p99_us(status);
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
         \"unsaved_ms\":{unsaved_ms},\"clock\":{has_clock},"
    ))
    .await?;
    let fault = JsonOf(|text: &mut dyn core::fmt::Write| instrument.write_fault(text));
    let notice = JsonOf(|text: &mut dyn core::fmt::Write| instrument.write_notice(text));
    wire.text(format_args!("\"fault\":{fault},\"notice\":{notice}}}"))
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
