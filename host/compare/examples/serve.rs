//! A download during a recording, on a simulated device and network.
//!
//! `cargo run --release -p cardiograph-compare --example serve [SECONDS] [SEED]`
//!
//! class10-16g over SPI at 26.6 MHz; a network of 2.5 MB/s with a round trip of 4 ms and no loss; socket buffers of
//! 16 KiB, a ring of 64 KiB, three read buffers of 8 KiB. 860 Hz x 100 B in one stream, and 344 kB/s in four streams
//! that share a file. A file of 20 MB is downloaded repeatedly.

use cardiograph_compare::{Served, ServedSetup, serve_while_recording};
use cardiograph_recorder::{Column, Config, Format, Kind, Schema, StreamConfig, Window};
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_sim_device::{Lines, Samples, StreamSetup};
use cardiograph_sim_net::Config as NetConfig;
use cardiograph_sim_power_cut::disk::{BlockStream, Image};
use cardiograph_sim_world::Link;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions};
use std::io::Write;

const CLOCK_HZ: u32 = 26_600_000;
const NETWORK_BYTES_PER_S: u64 = 2_500_000;
const FILE_BYTES: usize = 20_000_000;

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u32>());
    let mut number = |default| {
        args.next()
            .unwrap_or(Ok(default))
            .map_err(|error| error.to_string())
    };
    let (seconds, seed) = (number(60)?, number(1)?);
    println!(
        "| streams | rate Hz | s | lost | window exceeded | buffer peak B | kB/s | reads ms/s | first byte ms | erases |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    row("1", 1, &run([lines(1, seconds)], true, seed)?);
    for is_downloading in [false, true] {
        let one = [lines(860, 860 * seconds)];
        row("1", 860, &run(one, is_downloading, seed)?);
        let four = [0; 4].map(|_: u8| binary(860, 860 * seconds));
        row("4", 860, &run(four, is_downloading, seed)?);
    }
    Ok(())
}

/// A sample of 100 B.
const SAMPLE: Schema = Schema::new(
    &[Column {
        name: "value",
        kind: Kind::U32,
    }; 25],
);

fn lines(rate_hz: u32, count: u32) -> StreamSetup<'static> {
    let format = Format::Lines {
        header: "",
        line_bytes_max: 100,
    };
    stream(format, rate_hz, count, 65_536)
}

fn binary(rate_hz: u32, count: u32) -> StreamSetup<'static> {
    stream(Format::Binary(&[SAMPLE]), rate_hz, count, 16_384)
}

fn stream(format: Format, rate_hz: u32, count: u32, ring_bytes: usize) -> StreamSetup<'static> {
    let samples: Box<dyn Samples> = Box::new(Lines {
        rate_hz,
        line_bytes: 100,
        count: count.into(),
    });
    StreamSetup {
        config: StreamConfig {
            prefix: *b"REC",
            format,
            window: Window::default(),
        },
        ring_bytes,
        samples,
    }
}

/// Formats a card and writes the file to it.
fn card(seed: Seed) -> Result<Card, String> {
    let profile = Profile::named("class10-16g").map_err(|error| error.to_string())?;
    let mut card = Card::new(&profile, seed);
    let blocks = 8192..card.blocks();
    let mut image = Image::default();
    let options = FormatVolumeOptions::new()
        .total_sectors((blocks.end - blocks.start) as u32)
        .bytes_per_cluster(32_768);
    let put = |image: &mut Image| -> std::io::Result<()> {
        fatfs::format_volume(BlockStream::new(image, blocks.clone()), options)?;
        let stream = BlockStream::new(image, blocks.clone());
        let file_system = FileSystem::new(stream, FsOptions::new())?;
        let mut file = file_system.root_dir().create_file("DAY.BIN")?;
        file.write_all(&vec![0x5A; FILE_BYTES])?;
        drop(file);
        file_system.unmount()
    };
    put(&mut image).map_err(|error| error.to_string())?;
    let mut table = [0; 512];
    table[450] = 0x0C;
    table[454..458].copy_from_slice(&(blocks.start as u32).to_le_bytes());
    table[458..462].copy_from_slice(&((blocks.end - blocks.start) as u32).to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    image.store(&mut card);
    card.store(0, &[table]);
    Ok(card)
}

fn run<const N: usize>(
    streams: [StreamSetup; N],
    is_downloading: bool,
    seed: u32,
) -> Result<Served<N>, String> {
    let seed = Seed::new(seed.into());
    serve_while_recording(ServedSetup {
        card: card(seed)?,
        clock_hz: CLOCK_HZ,
        config: Config::default(),
        streams,
        read_buffers: 3,
        link: Link {
            bandwidth_bps: NETWORK_BYTES_PER_S * 8,
            delay_ns: 2_000_000,
            ..Link::default()
        },
        network: NetConfig::default(),
        requests: Vec::new(),
        path: is_downloading.then(|| "/DAY.BIN".into()),
        live: &[],
        watchers: Vec::new(),
        seed,
    })
}

fn row<const N: usize>(streams: &str, rate_hz: u32, served: &Served<N>) {
    let all = || served.streams.iter();
    let seconds = served.ns as f64 / 1e9;
    println!(
        "| {streams} | {rate_hz} | {seconds:.0} | {} | {} | {} | {:.0} | {:.0} | {:.0} | {} |",
        all().map(|one| one.lost).sum::<u64>(),
        all().map(|one| one.window_breaches).sum::<u32>(),
        all().map(|one| one.ring_peak_bytes).max().unwrap_or(0),
        served.downloaded.bytes_per_s() / 1e3,
        served.reads.card_us as f64 / 1e3 / seconds,
        served.downloaded.first_byte_ns_max as f64 / 1e6,
        served.card.controller().erases(),
    );
    for failure in &served.downloaded.failures {
        println!("  failed: {failure}");
    }
}
