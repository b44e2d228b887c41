//! The recorder's promises on the seven cards of study 5, simulated in the present flash model and as fixtures, with a
//! buffer of 64 KiB.
//!
//! `cargo run --release -p cardiograph-compare --example promises [sustained|below|rotate|readers] [MB] [SEEDS] [CARD] \
//! [MIB]`
//!
//! SEEDS is the last seed, or the first and the last: `3` or `2-3`.
//!
//! - `sustained`: one to four binary streams, whose encoded files grow at 95 % of the bound. The bound is the rate that
//!   a plain CMD25 loop sustains on the same card with the same buffer when it writes MB megabytes (default 600). No
//!   sample may be lost.
//! - `below`: one and four streams at 79 % of the bound with a durability window of 1 s, which must never be
//!   exceeded.
//! - `rotate`: text at a quarter of the bound, a new file of up to MIB every second (default 64), for 10 minutes.
//! - `readers`: text at half of the bound, while one reader reads 8 KiB at a time without pause, for 60 s.
//!
//! In all modes except `readers`, each sample is read back by another FAT library.

use cardiograph_compare::{Streaming, plain_stream, stream_on_card, sustained_rate_bytes_per_s};
use cardiograph_record::{BinarySamples, Feed, Lines};
use cardiograph_recorder::{Config, Format, StreamConfig, Window};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile, Seed, Spi};
use cardiograph_sim_device::{Device, Outcome, StreamSetup};
use std::cell::Cell;
use std::ops::{ControlFlow, RangeInclusive};
use std::rc::Rc;

const CARDS: [&str; 14] = [
    "team-8g",
    "sandisk-edge-8g-class4",
    "kingston-8g-class10",
    "toshiba-8g-class4",
    "panasonic-1g",
    "apacer-1g",
    "sandisk-industrial-8g-mlc",
    "team-8g-class10",
    "sandisk-edge-8g",
    "kingston-8g",
    "toshiba-8g",
    "panasonic-1g-slc",
    "apacer-1g-slc",
    "sandisk-industrial-8g",
];
const SPI: Spi = Spi {
    clock_hz: 25_000_000,
    ncr_bytes: 1,
    send_gap_ns: 0,
    receive_gap_ns: 0,
};
const BUFFER_BYTES: u64 = 65_536;
const SAMPLE_BYTES: usize = 100;
/// First block of the plain CMD25 loop: at 16 MiB, past the file system's own blocks.
const START_BLOCK: u32 = 32_768;
/// Payload of a block of a binary file (docs/formats.md).
const PAYLOAD_BYTES: f64 = 472.0;
const CLUSTER_BYTES: u32 = 32_768;
/// Files that the recorder prepares before sampling begins.
const FILES: u64 = 8;
/// Spare space in the files, as a fraction of the space that the encoded samples need.
const SPARE: f64 = 0.1;
const MB: u64 = 1_000_000;
const READ_BLOCKS: usize = 16;

struct Run {
    card: &'static str,
    seed: u32,
    bound: f64,
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text} is not a number"))
        })
    };
    let megabytes = number(1, 600)?;
    let seeds = seeds_of(args.get(2).map_or("3", String::as_str))?;
    let promise = args.first().map_or("sustained", String::as_str);
    println!(
        "| card | seed | bound kB/s | streams | files kB/s | of bound | samples | lost | buffer peak | \
         window exceeded | at risk ms | files |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let is_wanted = |card: &&str| args.get(3).is_none_or(|wanted| wanted == card);
    for card in CARDS.into_iter().filter(is_wanted) {
        for seed in seeds.clone() {
            let run = Run::new(card, seed, megabytes)?;
            let bytes = u64::from(megabytes) * MB;
            match promise {
                "sustained" => (1..=4).try_for_each(|streams| run.binary(streams, 0.95, bytes))?,
                "below" => [1, 4]
                    .into_iter()
                    .try_for_each(|streams| run.binary(streams, 0.79, bytes))?,
                "rotate" => run.rotate(number(4, 64)?)?,
                "readers" => run.readers()?,
                other => return Err(format!("there is no promise {other}")),
            }
        }
    }
    Ok(())
}

fn seeds_of(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => Ok(first..=last),
        _ => Err(format!("{text} is neither a seed nor a range of seeds")),
    }
}

impl Run {
    fn new(card: &'static str, seed: u32, megabytes: u32) -> Result<Run, String> {
        let blocks = (u64::from(megabytes) * MB / BLOCK_BYTES as u64) as u32;
        let mut run = Run {
            card,
            seed,
            bound: 0.0,
        };
        let streamed = plain_stream(
            run.new_card()?,
            SPI.clock_hz,
            START_BLOCK,
            blocks,
            |_, _| {},
        );
        let (times, _) = streamed.map_err(|error| format!("{card}: {error}"))?;
        run.bound = sustained_rate_bytes_per_s(&times, BUFFER_BYTES);
        Ok(run)
    }

    fn new_card(&self) -> Result<Card, String> {
        let profile = Profile::named(self.card).map_err(|error| error.to_string())?;
        Ok(Card::new(&profile, self.seed()))
    }

    fn seed(&self) -> Seed {
        Seed::new(self.seed.into())
    }

    /// Records binary streams that share their files; `part` is the ratio of their encoded data rate to the bound.
    fn binary(&self, streams: u32, part: f64, bytes: u64) -> Result<(), String> {
        // Overhead per stream: a header of up to two blocks in every 1024 blocks, and half a block at each
        // checkpoint.
        let extra = f64::from(streams) * (2.0 / 1024.0 + 256.0 / self.bound);
        let payload = self.bound * part * (1.0 - extra) * PAYLOAD_BYTES / BLOCK_BYTES as f64;
        let rate_hz = (payload / (SAMPLE_BYTES * streams as usize) as f64) as u32;
        let count = bytes / (SAMPLE_BYTES as u64 * u64::from(streams));
        let samples = BinarySamples::new(rate_hz, SAMPLE_BYTES, count);
        let encoded = bytes as f64 * BLOCK_BYTES as f64 / PAYLOAD_BYTES;
        let config = Config {
            file_bytes: (encoded * (1.0 + SPARE) / FILES as f64) as u32,
            ..Config::default()
        };
        self.record(streams, &samples, config)
    }

    fn rotate(&self, file_mib: u32) -> Result<(), String> {
        let rate_hz = (self.bound / 4.0 / SAMPLE_BYTES as f64) as u32;
        let lines = Lines {
            rate_hz,
            line_bytes: SAMPLE_BYTES,
            count: u64::from(rate_hz) * 600,
        };
        let config = Config {
            rotate_us: Some(1_000_000),
            file_bytes: file_mib << 20,
            ..Config::default()
        };
        self.record(1, &lines, config)
    }

    fn record(&self, streams: u32, feed: &dyn Feed, config: Config) -> Result<(), String> {
        let streaming = Streaming {
            spi: SPI,
            cluster_bytes: CLUSTER_BYTES,
            buffer_bytes: BUFFER_BYTES as usize,
            window: Window::default(),
            config,
        };
        let (card, seed) = (self.new_card()?, self.seed());
        let mut go_on = |_| ControlFlow::Continue(());
        let recorded = match streams {
            1 => stream_on_card::<1>(card, seed, &streaming, feed, &mut go_on),
            2 => stream_on_card::<2>(card, seed, &streaming, feed, &mut go_on),
            3 => stream_on_card::<3>(card, seed, &streaming, feed, &mut go_on),
            _ => stream_on_card::<4>(card, seed, &streaming, feed, &mut go_on),
        };
        let recorded = recorded.map_err(|error| format!("{}: {error}", self.card))?;
        let all = || recorded.streams.iter();
        let files_bytes: u64 = all().map(|one| one.file_bytes).sum();
        let rate = files_bytes as f64 * 1e6 / recorded.duration_us as f64;
        let peak = all()
            .map(|one| one.summary.ring_peak_bytes)
            .max()
            .unwrap_or(0);
        println!(
            "| {} | {} | {:.1} | {streams} | {:.1} | {:.1} % | {} | {} | {:.0} % | {} | {:.0} | {} |",
            self.card,
            self.seed,
            self.bound / 1e3,
            rate / 1e3,
            rate / self.bound * 100.0,
            all().map(|one| one.pushed).sum::<u64>(),
            all().map(|one| one.lost()).sum::<u64>(),
            peak as f64 * f64::from(streams) / BUFFER_BYTES as f64 * 100.0,
            all().map(|one| one.summary.window_breaches).sum::<u32>(),
            all()
                .map(|one| one.summary.at_risk_us_max)
                .max()
                .unwrap_or(0) as f64
                / 1e3,
            all().map(|one| one.files).sum::<u64>(),
        );
        Ok(())
    }

    fn readers(&self) -> Result<(), String> {
        let rate_hz = (self.bound / 2.0 / SAMPLE_BYTES as f64) as u32;
        let lines = cardiograph_sim_device::Lines {
            rate_hz,
            line_bytes: SAMPLE_BYTES,
            count: u64::from(rate_hz) * 60,
        };
        let mut card = self.new_card()?;
        cardiograph_store::format(&mut card, CLUSTER_BYTES).map_err(|error| error.to_string())?;
        let device = Device::new(card, SPI.ncr_bytes as u8, SPI.clock_hz, self.seed());
        let setup = StreamSetup {
            config: StreamConfig {
                prefix: *b"REC",
                format: Format::Lines {
                    header: "",
                    line_bytes_max: SAMPLE_BYTES as u16,
                },
                window: Window::default(),
            },
            ring_bytes: BUFFER_BYTES as usize,
            samples: Box::new(lines),
        };
        let reads = Rc::new(Cell::new(0_u64));
        let counted = reads.clone();
        let logged = device.log(
            [setup],
            |_, _| (),
            |_, desk, world| {
                Some(Box::pin(async move {
                    loop {
                        let start = START_BLOCK + (counted.get() as u32 * 16) % 65_536;
                        match desk.read(start, &mut [[0; BLOCK_BYTES]; READ_BLOCKS]).await {
                            Ok(()) => counted.set(counted.get() + 1),
                            Err(_) => world.sleep_ns(1_000_000).await,
                        }
                    }
                }))
            },
        );
        let Outcome::Done([summary]) = logged.outcome else {
            return Err(format!("{}: {:?}", self.card, logged.outcome));
        };
        let duration_s = (logged.ended_ns - logged.started_ns.unwrap_or(0)) as f64 / 1e9;
        println!(
            "| {} | {} | {:.1} | 1 | {:.1} | {:.1} % | {} | {} | {:.0} % | {} | {:.0} | {} reads, {:.0} kB/s |",
            self.card,
            self.seed,
            self.bound / 1e3,
            summary.bytes as f64 / duration_s / 1e3,
            summary.bytes as f64 / duration_s / self.bound * 100.0,
            logged.pushed[0],
            summary.lost,
            summary.ring_peak_bytes as f64 / BUFFER_BYTES as f64 * 100.0,
            summary.window_breaches,
            summary.at_risk_us_max as f64 / 1e3,
            reads.get(),
            reads.get() as f64 * (READ_BLOCKS * BLOCK_BYTES) as f64 / duration_s / 1e3,
        );
        Ok(())
    }
}
