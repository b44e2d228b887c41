//! A data logger with a server on a microcontroller, generic over its drivers.
#![no_std]

use cardiograph_card::{Card, SetClock};
use cardiograph_recorder::{
    Config, Consumer, Control, DosTime, Event, FatVolume, Format, Parts, ReadDesk, Recorder,
    StreamConfig, StreamSummary, Window,
};
use cardiograph_server::{Buffers, CardRecorder, CardStorage, LiveStream, Server, Timer};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;
use embedded_io_async::{Read, Write};

/// Clock of the SPI bus, in Hz.
const BUS_HZ: u32 = 25_000_000;

/// Lines of text, each a sample.
pub const FORMAT: Format = Format::Lines {
    header: "time_us,value",
    line_bytes_max: 64,
};

/// Requests to the recorder.
pub static CONTROL: Control = Control::new();

/// Records the samples of a ring until it is closed. Returns `None` if there is no usable card.
pub async fn record<'a, Bus: SpiBus, Pin: OutputPin, Delay: DelayNs + Clone>(
    (bus, select): (Bus, Pin),
    clock: impl SetClock<Bus>,
    delay: Delay,
    now_us: impl Fn() -> u64,
    consumer: Consumer<'a>,
    desk: &'a ReadDesk<'a>,
) -> Option<StreamSummary> {
    let parts = Parts {
        medium: Card::new(bus, select, delay.clone(), clock, BUS_HZ),
        volume: FatVolume::new(|| DosTime::NO_CLOCK, 1),
        clock: now_us,
        delay,
        events: |_: Event| (),
        control: &CONTROL,
        reads: Some(desk),
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: FORMAT,
        window: Window::default(),
    };
    let mut recorder = Recorder::new(parts, Config::default(), [(stream, consumer)]);
    let [summary] = recorder.run().await.ok()?;
    Some(summary)
}

/// Serves the card to one client after another.
pub async fn serve<T: Timer, C: Read + Write>(
    desk: &ReadDesk<'_>,
    streams: &[LiveStream<'_>],
    timer: &T,
    accept: impl AsyncFn() -> C,
) {
    let storage = CardStorage::new(desk);
    let recorder = CardRecorder::new(desk, &CONTROL, streams, &());
    let config = cardiograph_server::Config {
        names: &["logger.local"],
        is_read_only: true,
        basic_auth: None,
        secret: 1,
        event_streams_max: 1,
    };
    let server = Server::new(&storage, &recorder, timer, config);
    let mut buffers = Buffers::new();
    loop {
        server.serve(&mut accept().await, &mut buffers).await;
    }
}
