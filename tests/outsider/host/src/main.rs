//! Records to a card in memory with the packaged crates, serves the file, and compares it with what another FAT library
//! reads.

mod card;
mod socket;
mod time;

use card::Memory;
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{
    Config, Control, DosTime, FatVolume, Format, Parts, ReadDesk, Recorder, Ring, StreamConfig,
    StreamSummary, Window,
};
use cardiograph_server::{Buffers, CardStorage, NoInstrument, Server, Timer};
use cardiograph_timing::Latencies;
use socket::Socket;
use std::cell::Cell;
use std::future::Future;
use std::io::{Cursor, Read};
use std::pin::pin;
use std::sync::atomic::AtomicU8;
use std::task::{Context, Poll, Waker};
use time::{Delay, advance_us, now_us};

const CARD_BYTES: usize = 64 << 20;
const RING_BYTES: usize = 16 << 10;
const SAMPLES: u64 = 10_000;
const SAMPLE_US: u64 = 1000;
const PATH: &str = "REC00000/REC00001.CSV";
const REQUEST: &[u8] =
    b"GET /REC00000/REC00001.CSV HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Lines of text, each a sample.
const FORMAT: Format = Format::Lines {
    header: "",
    line_bytes_max: 32,
};

static CONTROL: Control = Control::new();

struct Seconds;

impl Timer for Seconds {
    fn now_ms(&self) -> u64 {
        now_us() / 1000
    }

    async fn sleep_ms(&self, _: u32) {
        std::future::pending().await
    }
}

fn main() {
    let memory = formatted();
    let (summary, served) = record_and_serve(&memory);
    assert_eq!((summary.written, summary.lost), (SAMPLES, 0));
    let recorded = read_back(&memory);
    let lines = recorded.split_inclusive("\r\n");
    let samples: Vec<_> = lines.filter(|line| line.starts_with("sample ")).collect();
    let expected: Vec<_> = (0..SAMPLES).map(sample).collect();
    assert!(
        samples == expected,
        "the file does not contain every sample once"
    );
    assert!(served == recorded, "the server sent another file");

    let mut latencies = Latencies::<2048>::default();
    (1..=1000).for_each(|us| latencies.push(us * 1000, BLOCK_BYTES as u64));
    let median_ns = latencies.percentile_ns(500_000).unwrap_or(0);
    assert!(median_ns.abs_diff(500_000) <= 4_000, "{median_ns}");
    println!("ok: {SAMPLES} samples recorded, served and read back");
}

/// Returns an empty FAT card, formatted by another library.
fn formatted() -> Memory {
    let mut image = Cursor::new(vec![0; CARD_BYTES]);
    fatfs::format_volume(&mut image, fatfs::FormatVolumeOptions::new()).unwrap();
    let (blocks, _) = image.get_ref().as_chunks::<BLOCK_BYTES>();
    Memory::new(blocks.to_vec())
}

fn sample(number: u64) -> String {
    format!("sample {number}\r\n")
}

/// Records all samples, then serves the file until the response is complete.
fn record_and_serve(memory: &Memory) -> (StreamSummary, String) {
    let mut ring = Ring::<[AtomicU8; RING_BYTES]>::new();
    let (mut producer, consumer) = ring.split(FORMAT);
    let mut blocks = vec![[0; BLOCK_BYTES]; 32];
    let desk = ReadDesk::with_buffers(&mut blocks, 2);
    let parts = Parts {
        medium: memory.clone(),
        volume: FatVolume::new(|| DosTime::NO_CLOCK, 1),
        clock: now_us,
        delay: Delay,
        events: |_| (),
        control: &CONTROL,
        reads: Some(&desk),
    };
    let config = Config {
        serves_after_end: true,
        ..Config::default()
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: FORMAT,
        window: Window::default(),
    };
    let mut recorder = Recorder::new(parts, config, [(stream, consumer)]);
    let mut next = 0;
    let ran = finish(recorder.run(), || {
        if next < SAMPLES && CONTROL.is_ready() && now_us() >= next * SAMPLE_US {
            producer.push(sample(next).as_bytes(), now_us()).unwrap();
            next += 1;
            if next == SAMPLES {
                producer.close();
            }
        }
    });
    let [summary] = ran.unwrap_or_else(|error| panic!("{error}"));

    let storage = CardStorage::new(&desk);
    let config = cardiograph_server::Config {
        names: &["localhost"],
        is_read_only: true,
        basic_auth: None,
        secret: 1,
        event_streams_max: 1,
    };
    let server = Server::new(&storage, &NoInstrument, &Seconds, config);
    let mut socket = Socket {
        request: REQUEST,
        response: Vec::new(),
    };
    let is_over = Cell::new(false);
    {
        let mut buffers = Buffers::new();
        let mut serving = pin!(server.serve(&mut socket, &mut buffers));
        let served = finish(recorder.serve(|| is_over.get()), || {
            if !is_over.get() {
                is_over.set(poll(serving.as_mut()).is_ready());
            }
        });
        served.unwrap_or_else(|error| panic!("{error}"));
    }
    let response = String::from_utf8(socket.response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    (summary, body.to_string())
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future to its end; calls `meanwhile` and lets time pass between polls.
fn finish<F: Future>(future: F, mut meanwhile: impl FnMut()) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
        meanwhile();
        advance_us(100);
    }
}

/// Reads the recording with another library.
fn read_back(memory: &Memory) -> String {
    let image = memory.blocks.borrow().as_flattened().to_vec();
    let system = fatfs::FileSystem::new(Cursor::new(image), fatfs::FsOptions::new()).unwrap();
    let mut text = String::new();
    let mut file = system.root_dir().open_file(PATH).unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}
