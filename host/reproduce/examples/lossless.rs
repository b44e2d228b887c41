//! What the cards of study 5 bear without loss, and what Cardiograph's recorder gets onto them, beside the
//! throughput that was published as guaranteed.
//!
//! `cargo run --release -p cardiograph-reproduce --example lossless [MB] [SEEDS]`
//!
//! An unbroken stream of so many MB (600) is written to each card by a loop that knows no recorder, over SPI
//! at 25 MHz, with each seed from 1 on (3). The rate it carries with 64 KiB of RAM is what a recorder on the
//! same card is to come near to. A stall is a block that takes longer than this RAM lasts at the average
//! rate.
//!
//! The second table is the recorder's: lines of 100 B at 95 % of that rate through as much RAM, to a new card
//! of the same seed, as many bytes. Its files are so long that eight hold the run, as it prepares eight
//! before sampling begins; every line is read back. The third gives the rate for the beginnings of the
//! stream: how long it must be until it has seen the card's stalls.

use cardiograph_compare::{Streaming, plain_stream, stream_on_card, sustained_rate_bytes_per_s};
use cardiograph_record::Lines;
use cardiograph_recorder::{Config, Window};
use cardiograph_reproduce::{Measure, Study, study};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile, Seed, Spi};
use cardiograph_workload::workload;
use std::ops::ControlFlow;

const CLOCK_HZ: u32 = 25_000_000;
const RAM_BYTES: u64 = 65_536;
/// Where the stream begins: at a multiple of 4 MiB, as a file's data on a card formatted by its maker, and
/// past the file system's own.
const START_BLOCK: u32 = 32_768;
/// The experiments whose guaranteed throughput was published.
const WORKLOADS: [&str; 3] = ["blinky-naive", "blinky-stream-512", "blinky-stream-2048"];
/// A stall limits a card whose lossless rate is below this part of its average.
const STALLED: f64 = 0.99;

const MB: u64 = 1_000_000;

/// The recorder is given this part of the lossless rate.
const RECORDED: f64 = 0.95;
const LINE_BYTES: usize = 100;
const CLUSTER_BYTES: u32 = 32_768;
/// Files that the recorder prepares before sampling begins.
const FILES: u64 = 8;
/// Room in files beyond the lines: marks, and more than 5 s at the end, as files are prepared at any cost
/// when there is room for less.
const SPARE: f64 = 0.1;

/// A stream to a card.
struct Stream {
    card: String,
    seed: u32,
    /// Start and end of each block, in ns.
    times: Vec<(u64, u64)>,
}

/// Columns of the published throughputs. All rates are in kB/s.
const PUBLISHED: &str = " naive 512 | stream 512 | stream 2048 |";

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text} is no number"))
        })
    };
    let (megabytes, seeds) = (number(0, 600)?, number(1, 3)?);
    let blocks = u64::from(megabytes) * MB / BLOCK_BYTES as u64;
    let blocks = u32::try_from(blocks).map_err(|_| "too many MB")?;
    let study = study("blinky")?;
    println!(
        "| card |{PUBLISHED} seed | average | 64 KiB | longest ms | stalls | first at MB | limit |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut streams = Vec::new();
    for card in cards(&study) {
        let published = WORKLOADS.map(|workload| guaranteed(&study, &card, workload));
        for seed in 1..=seeds {
            let stream = Stream::to(&card, seed, blocks)?;
            println!(
                "| {card} | {} | {seed} | {} |",
                published.join(" | "),
                figures(&stream.times)
            );
            streams.push(stream);
        }
    }
    recorded(&study, &streams)?;
    beginnings(&streams);
    Ok(())
}

/// What the recorder gets onto each card at 95 % of its lossless rate.
fn recorded(study: &Study, streams: &[Stream]) -> Result<(), String> {
    println!(
        "\n| card |{PUBLISHED} seed | 64 KiB | recorded | lines | lost | RAM at most | window not kept | \
         at risk ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for stream in streams {
        let published = WORKLOADS.map(|workload| guaranteed(study, &stream.card, workload));
        println!(
            "| {} | {} | {} | {} |",
            stream.card,
            published.join(" | "),
            stream.seed,
            stream.recorded()?
        );
    }
    Ok(())
}

/// The cards of a study, in its order.
fn cards(study: &Study) -> Vec<String> {
    let mut cards: Vec<String> = Vec::new();
    for row in &study.rows {
        let card = &row.take.experiment.card;
        if !cards.contains(card) {
            cards.push(card.clone());
        }
    }
    cards
}

/// Payload of a write over the longest one published, in kB/s.
fn guaranteed(study: &Study, card: &str, name: &str) -> String {
    let published_ms = study.rows.iter().find_map(|row| {
        let experiment = &row.take.experiment;
        let is_it = experiment.card == card && experiment.workload == name;
        (is_it && row.take.measure == Measure::Longest).then_some(row.published)?
    });
    let bytes = workload(name).map_or(0, |workload| workload.bytes_per_call_max());
    published_ms.map_or(String::from("-"), |ms| {
        format!("{:.1}", f64::from(bytes) / ms)
    })
}

impl Stream {
    /// Zeros, as they take no memory; a card's times do not depend on what is written.
    fn to(card: &str, seed: u32, blocks: u32) -> Result<Stream, String> {
        let profile = Profile::named(card).map_err(|error| error.to_string())?;
        let flash = Card::new(&profile, Seed::new(seed.into()));
        let streamed = plain_stream(flash, CLOCK_HZ, START_BLOCK, blocks, |_, _| {});
        let (times, _) = streamed.map_err(|error| format!("{card}: {error}"))?;
        Ok(Stream {
            card: card.to_string(),
            seed,
            times,
        })
    }
}

impl Stream {
    /// The recorder on a card of the same seed: its rate and what came of it.
    fn recorded(&self) -> Result<String, String> {
        let bytes = (self.times.len() * BLOCK_BYTES) as u64;
        let lossless = sustained_rate_bytes_per_s(&self.times, RAM_BYTES);
        let lines = Lines {
            rate_hz: (lossless * RECORDED / LINE_BYTES as f64) as u32,
            line_bytes: LINE_BYTES,
            count: bytes / LINE_BYTES as u64,
        };
        let streaming = Streaming {
            spi: Spi {
                clock_hz: CLOCK_HZ,
                ncr_bytes: 1,
                send_gap_ns: 0,
                receive_gap_ns: 0,
            },
            cluster_bytes: CLUSTER_BYTES,
            buffer_bytes: RAM_BYTES as usize,
            window: Window::default(),
            config: Config {
                file_bytes: (bytes as f64 * (1.0 + SPARE) / FILES as f64) as u32,
                ..Config::default()
            },
        };
        let profile = Profile::named(&self.card).map_err(|error| error.to_string())?;
        let seed = Seed::new(self.seed.into());
        let card = Card::new(&profile, seed);
        let mut go_on = |_| ControlFlow::Continue(());
        let streamed = stream_on_card::<1>(card, seed, &streaming, &lines, &mut go_on);
        let streamed = streamed.map_err(|error| format!("{}: {error}", self.card))?;
        let stream = &streamed.streams[0];
        Ok(format!(
            "{:.1} | {:.1} | {} | {} | {:.0} % | {} | {:.0}",
            lossless / 1e3,
            f64::from(lines.rate_hz) * LINE_BYTES as f64 / 1e3,
            stream.pushed,
            stream.summary.lost,
            stream.summary.ring_peak_bytes as f64 / RAM_BYTES as f64 * 100.0,
            stream.summary.window_breaches,
            stream.summary.at_risk_us_max as f64 / 1e3,
        ))
    }
}

fn figures(times: &[(u64, u64)]) -> String {
    let ns = |(start_ns, end_ns): &(u64, u64)| end_ns - start_ns;
    let sum_ns: u64 = times.iter().map(ns).sum();
    let average = (times.len() * BLOCK_BYTES) as f64 / sum_ns as f64 * 1e9;
    let lossless = sustained_rate_bytes_per_s(times, RAM_BYTES);
    let stall_ns = (RAM_BYTES as f64 / average * 1e9) as u64;
    let is_stall = |times: &(u64, u64)| ns(times) > stall_ns;
    let first = times.iter().position(is_stall);
    let limit = match lossless < STALLED * average {
        true => "stalls",
        false => "average",
    };
    format!(
        "{:.1} | {:.1} | {:.1} | {} | {} | {limit}",
        average / 1e3,
        lossless / 1e3,
        times.iter().map(ns).max().unwrap_or(0) as f64 / 1e6,
        times.iter().filter(|times| is_stall(times)).count(),
        first.map_or(String::from("-"), |at| megabytes(at).to_string()),
    )
}

/// Payload of so many blocks, in MB.
fn megabytes(blocks: usize) -> u64 {
    blocks as u64 * BLOCK_BYTES as u64 / MB
}

/// The rate of each stream's first MB, of twice as many, and so on.
fn beginnings(streams: &[Stream]) {
    let all = streams.iter().map(|stream| stream.times.len()).max();
    let blocks = |mb: u64| (mb * MB) as usize / BLOCK_BYTES;
    let beginnings: Vec<u64> = std::iter::successors(Some(1), |mb| Some(2 * mb))
        .take_while(|&mb| Some(blocks(mb)) <= all)
        .collect();
    let heads = beginnings.iter().map(|mb| format!(" {mb} MB |"));
    println!("\n| card | seed |{}", heads.collect::<String>());
    println!("|---|---|{}", "---|".repeat(beginnings.len()));
    for Stream { card, seed, times } in streams {
        let rates = beginnings.iter().map(|&mb| {
            let rate = sustained_rate_bytes_per_s(&times[..blocks(mb)], RAM_BYTES);
            format!(" {:.1} |", rate / 1e3)
        });
        println!("| {card} | {seed} |{}", rates.collect::<String>());
    }
}
