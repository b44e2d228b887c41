//! Records 860 samples per second to a card image for five seconds: `cargo run --example record -- card.img`. The file
//! REC00000/REC00001.CSV is then in the image. On a board, the card is a `cardiograph_card::Card`, the samples come from an
//! interrupt, and an executor runs the recorder; `firmware/rp2040` in the repository shows it with embassy.

use cardiograph_card::{BLOCK_BYTES, Block, BlockDevice, WriteError};
use cardiograph_recorder::{
    Config, Control, DosTime, Event, FatVolume, Format, Parts, Producer, Recorder, Ring,
    StreamConfig, Window,
};
use embedded_hal_async::delay::DelayNs;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU8;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

const IMAGE_BYTES: u64 = 64 << 20;
const RATE_HZ: u64 = 860;
const SAMPLES: u64 = 5 * RATE_HZ;
const FORMAT: Format = Format::Lines {
    header: "time_us,sine",
    line_bytes_max: 32,
};

static CONTROL: Control = Control::new();
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn now_us() -> u64 {
    START.elapsed().as_micros() as u64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("state the path of the new card image")?;
    let image = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    image.set_len(IMAGE_BYTES)?;
    fatfs::format_volume(&image, fatfs::FormatVolumeOptions::new())?;

    // A board has a static ring instead; its producer belongs to the interrupt.
    let mut ring = Ring::<[AtomicU8; 64 << 10]>::new();
    let (producer, consumer) = ring.split(FORMAT);
    let parts = Parts {
        medium: Image {
            file: image,
            next: 0,
        },
        volume: FatVolume::new(|| DosTime::NO_CLOCK, now_us() as u32),
        clock: now_us,
        delay: Sleep,
        events: |event| match event {
            Event::Checkpoint { is_late: false, .. } => (),
            event => println!("{event}"),
        },
        control: &CONTROL,
        reads: None,
    };
    let stream = StreamConfig {
        prefix: *b"REC",
        format: FORMAT,
        window: Window::default(),
    };
    let mut recorder = Recorder::new(parts, Config::default(), [(stream, consumer)]);
    let [summary] = std::thread::scope(|scope| {
        scope.spawn(|| sample(producer));
        block_on(recorder.run()).map_err(|error| error.to_string())
    })?;
    println!("{} samples written, {} lost", summary.written, summary.lost);
    Ok(())
}

/// Takes the samples; the recording ends when the producer is dropped.
fn sample(mut producer: Producer) {
    while !CONTROL.is_ready() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let start_us = now_us();
    for number in 0..SAMPLES {
        let due_us = start_us + number * 1_000_000 / RATE_HZ;
        std::thread::sleep(Duration::from_micros(due_us.saturating_sub(now_us())));
        let sine = (number as f64 / 100.0).sin();
        let mut line = [0; 32];
        let mut room = &mut line[..];
        let left = write!(room, "{due_us},{sine:.3}\r\n").map_or(32, |()| room.len());
        // A sample that does not fit is reported as a gap.
        let _ = producer.push(&line[..32 - left], due_us);
    }
    producer.close();
}

/// A card image.
struct Image {
    file: File,
    /// Next block of the open stream.
    next: u32,
}

impl Image {
    fn put(&self, start: u32, blocks: &[Block]) -> Result<(), WriteError<io::Error>> {
        let at = u64::from(start) * BLOCK_BYTES as u64;
        let written = self.file.write_all_at(blocks.as_flattened(), at);
        written.map_err(|cause| WriteError {
            cause,
            durable_blocks: 0,
        })
    }
}

impl BlockDevice for Image {
    type Error = io::Error;

    async fn acquire(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn blocks(&self) -> u32 {
        (IMAGE_BYTES / BLOCK_BYTES as u64) as u32
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> io::Result<()> {
        let at = u64::from(start) * BLOCK_BYTES as u64;
        self.file.read_exact_at(blocks.as_flattened_mut(), at)
    }

    async fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<io::Error>> {
        self.put(start, blocks)?;
        self.end().await
    }

    async fn begin(&mut self, start: u32, _: u32) -> Result<(), WriteError<io::Error>> {
        self.next = start;
        Ok(())
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<io::Error>> {
        self.put(self.next, &[*block])?;
        self.next += 1;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<io::Error>> {
        self.file.sync_data().map_err(|cause| WriteError {
            cause,
            durable_blocks: 0,
        })
    }
}

/// Delays of the recorder's thread.
struct Sleep;

impl DelayNs for Sleep {
    async fn delay_ns(&mut self, ns: u32) {
        std::thread::sleep(Duration::from_nanos(ns.into()));
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
    }
}
