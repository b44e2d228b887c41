//! Cardiograph's server, for comparison with table 4.2: on the same simulated card, bus and network.

use cardiograph_compare::{ServedSetup, serve_while_recording};
use cardiograph_recorder::{Config, Format, StreamConfig, Window};
use cardiograph_sim_card::{Board, Bus, Card, Profile, Seed};
use cardiograph_sim_device::{Lines, StreamSetup};
use cardiograph_sim_net::Config as NetConfig;

/// Length of the recordings, in s.
const RECORDED_S: u64 = 30;
/// Length of the downloaded file, as in table 4.2.
const FILE_BYTES: usize = 1_000_000;
const SAMPLE_BYTES: usize = 100;
const RING_BYTES: usize = 64 << 10;
const READ_BUFFERS: usize = 3;

/// Describes in a sentence the throughput of downloads from Cardiograph's server while the recorder writes.
///
/// # Errors
/// A sentence, if the card or board is unknown, a sample was lost, or a download failed.
pub fn sentence() -> Result<String, String> {
    let mut parts = Vec::new();
    for (board, bus) in [("esp32", "SPI at 4 MHz"), ("esp32-26m", "SPI at 26.6 MHz")] {
        let rates = [8, 860].map(|rate_hz| kb_per_s(board, rate_hz));
        let [slow, fast] = rates;
        parts.push(format!("{:.0} and {:.0} kB/s with {bus}", slow?, fast?));
    }
    Ok(format!(
        "For comparison, downloads from Cardiograph's server while its recorder writes 8 and 860 samples of {SAMPLE_BYTES} B \
         per second to the same card without a loss: {}.",
        parts.join("; ")
    ))
}

fn kb_per_s(board: &str, rate_hz: u32) -> Result<f64, String> {
    let profile = Profile::named("class10-16g").map_err(|error| error.to_string())?;
    let board = Board::named(board).map_err(|error| error.to_string())?;
    let (Bus::Spi(spi), Some(network)) = (&board.bus, board.network) else {
        return Err("the board has no SPI bus or no network".into());
    };
    let seed = Seed::new(1);
    let mut card = Card::new(&profile, seed);
    cardiograph_store::format(&mut card, board.library.cluster_bytes)
        .map_err(|error| error.to_string())?;
    let mut upload = format!(
        "PUT /DOWNLOAD.BIN HTTP/1.1\r\nHost: 10.0.0.2\r\nContent-Length: {FILE_BYTES}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    upload.resize(upload.len() + FILE_BYTES, b'x');
    let served = serve_while_recording(ServedSetup {
        card,
        clock_hz: spi.clock_hz,
        config: Config::default(),
        streams: [StreamSetup {
            config: StreamConfig {
                prefix: *b"REC",
                format: Format::Lines {
                    header: "",
                    line_bytes_max: SAMPLE_BYTES as u16,
                },
                window: Window::default(),
            },
            ring_bytes: RING_BYTES,
            samples: Box::new(Lines {
                rate_hz,
                line_bytes: SAMPLE_BYTES,
                count: RECORDED_S * u64::from(rate_hz),
            }),
        }],
        read_buffers: READ_BUFFERS,
        link: network.link(),
        network: NetConfig {
            receive_buffer_bytes: network.buffer_bytes as usize,
            send_buffer_bytes: network.buffer_bytes as usize,
            ..NetConfig::default()
        },
        requests: vec![upload],
        path: Some("/DOWNLOAD.BIN".into()),
        live: &[],
        watchers: Vec::new(),
        seed,
    })?;
    if let Some(failure) = served.downloaded.failures.first() {
        return Err(failure.clone());
    }
    match served.streams.iter().map(|stream| stream.lost).sum::<u64>() {
        0 => Ok(served.downloaded.bytes_per_s() / 1e3),
        lost => Err(format!("{lost} samples were lost during the downloads")),
    }
}
