//! Sustained rates of the cards of study 5, compared with the throughput published as guaranteed.
//!
//! `cargo run --release -p cardiograph-reproduce --example sustained [MB] [SEEDS]`
//!
//! A plain loop without the recorder writes a continuous stream of MB megabytes (default 600) to each card
//! over SPI at 25 MHz, with seeds 1 to SEEDS (default 3). The first table shows the rate that the card
//! sustains with a buffer of 64 KiB, which a recorder on the same card should approach. A stall is a block
//! that takes longer than the buffer lasts at the mean throughput.
//!
//! The second table shows the sustained rate of the first part of each stream, and thereby how long a stream must be to
//! include the card's stalls.

use cardiograph_compare::{plain_stream, sustained_rate_bytes_per_s};
use cardiograph_reproduce::{Measure, Study, study};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile, Seed};
use cardiograph_workload::workload;

const CLOCK_HZ: u32 = 25_000_000;
const BUFFER_BYTES: u64 = 65_536;
/// First block of the stream: a multiple of 4 MiB, like a file's data on a card formatted by its manufacturer,
/// and past the file system's own blocks.
const START_BLOCK: u32 = 32_768;
/// Experiments with a published guaranteed throughput.
const WORKLOADS: [&str; 3] = ["blinky-naive", "blinky-stream-512", "blinky-stream-2048"];
/// A card counts as limited by stalls if its sustained rate is below this share of its mean throughput.
const STALLED: f64 = 0.99;

const MB: u64 = 1_000_000;

/// A plain stream that was written to a card.
struct Stream {
    card: String,
    seed: u32,
    /// Start and end of each block, in ns.
    times: Vec<(u64, u64)>,
}

/// Columns of the published throughput, in kB/s.
const PUBLISHED: &str = " naive 512 | stream 512 | stream 2048 |";

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text}: not a number"))
        })
    };
    let (megabytes, seeds) = (number(0, 600)?, number(1, 3)?);
    let blocks = u64::from(megabytes) * MB / BLOCK_BYTES as u64;
    let blocks = u32::try_from(blocks).map_err(|_| "too many MB")?;
    let study = study("blinky")?;
    println!(
        "| card |{PUBLISHED} seed | mean | 64 KiB | worst ms | stalls | first at MB | limit |"
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
    print_prefixes(&streams);
    Ok(())
}

/// Returns the cards of a study, in the order of the study.
fn cards(study: &Study) -> Vec<String> {
    let mut cards: Vec<String> = Vec::new();
    for row in &study.rows {
        let card = &row.query.experiment.card;
        if !cards.contains(card) {
            cards.push(card.clone());
        }
    }
    cards
}

/// Returns the payload of a write over the published worst-case latency, in kB/s.
fn guaranteed(study: &Study, card: &str, name: &str) -> String {
    let published_ms = study.rows.iter().find_map(|row| {
        let experiment = &row.query.experiment;
        let is_it = experiment.card == card && experiment.workload == name;
        (is_it && row.query.measure == Measure::WorstCase).then_some(row.published)?
    });
    let bytes = workload(name).map_or(0, |workload| workload.bytes_per_call_max());
    published_ms.map_or(String::from("-"), |ms| {
        format!("{:.1}", f64::from(bytes) / ms)
    })
}

impl Stream {
    /// Writes a stream to a new card. The data is zeros, which take no memory; a card's latencies do not
    /// depend on the data.
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

fn figures(times: &[(u64, u64)]) -> String {
    let ns = |(start_ns, end_ns): &(u64, u64)| end_ns - start_ns;
    let sum_ns: u64 = times.iter().map(ns).sum();
    let mean = (times.len() * BLOCK_BYTES) as f64 / sum_ns as f64 * 1e9;
    let sustained = sustained_rate_bytes_per_s(times, BUFFER_BYTES);
    let stall_ns = (BUFFER_BYTES as f64 / mean * 1e9) as u64;
    let is_stall = |times: &(u64, u64)| ns(times) > stall_ns;
    let first = times.iter().position(is_stall);
    let limit = match sustained < STALLED * mean {
        true => "stalls",
        false => "throughput",
    };
    format!(
        "{:.1} | {:.1} | {:.1} | {} | {} | {limit}",
        mean / 1e3,
        sustained / 1e3,
        times.iter().map(ns).max().unwrap_or(0) as f64 / 1e6,
        times.iter().filter(|times| is_stall(times)).count(),
        first.map_or(String::from("-"), |at| megabytes(at).to_string()),
    )
}

/// Returns the payload of a number of blocks, in MB.
fn megabytes(blocks: usize) -> u64 {
    blocks as u64 * BLOCK_BYTES as u64 / MB
}

/// Prints the table of the sustained rates of the first 1, 2, 4 ... MB of each stream.
fn print_prefixes(streams: &[Stream]) {
    let all = streams.iter().map(|stream| stream.times.len()).max();
    let blocks = |mb: u64| (mb * MB) as usize / BLOCK_BYTES;
    let prefixes: Vec<u64> = std::iter::successors(Some(1), |mb| Some(2 * mb))
        .take_while(|&mb| Some(blocks(mb)) <= all)
        .collect();
    let heads = prefixes.iter().map(|mb| format!(" {mb} MB |"));
    println!("\n| card | seed |{}", heads.collect::<String>());
    println!("|---|---|{}", "---|".repeat(prefixes.len()));
    for Stream { card, seed, times } in streams {
        let rates = prefixes.iter().map(|&mb| {
            let rate = sustained_rate_bytes_per_s(&times[..blocks(mb)], BUFFER_BYTES);
            format!(" {:.1} |", rate / 1e3)
        });
        println!("| {card} | {seed} |{}", rates.collect::<String>());
    }
}
