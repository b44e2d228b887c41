//! Study 1's web server on the instrument's ESP32, with and without the task that writes samples.
//!
//! ```text
//!   client ── Wi-Fi, TCP ── server ──┬── card, one library call at a time
//!   client.rs    sim/net   server.rs │   shared_card.rs
//!                           writer ──┘
//! ```
//!
//! Server, writer and network run at the same time, in one world. A library call holds the card for as long as
//! it takes on the card's own clock, and other tasks continue meanwhile. Sending a piece takes, one after the
//! other, time of the card, processor time of the server and, on core 0, processor time of the network stack.

mod client;
mod server;
mod shared_card;

use crate::experiment::ExperimentError;
use cardiograph_sim_card::{Board, Card, Clock, LibraryName, Network, Seed};
use cardiograph_sim_net::{Config, Host};
use cardiograph_sim_world::link::InvalidLink;
use cardiograph_sim_world::{Handle, Link, World};
use cardiograph_store::FatCard;
use cardiograph_workload::{Observer, Operation, Store, Workload, run};
use serde::Deserialize;
use server::Server;
use shared_card::{SharedCard, WorldClock, WriterStore};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::rc::Rc;

/// Number of downloads of the 1 MB file, as in table 4.2.
const DOWNLOADS: usize = 10;
const FILE_BYTES: u64 = 1_000_000;
/// Name of the file in the root directory; an 8.3 name, for libraries without long names.
const FILE_NAME: &str = "DOWNLOAD.BIN";
const CREATE_BYTES: u64 = 4096;
/// Period of the file's contents in bytes: a prime number, so that nearby sectors differ.
const PATTERN_BYTES: u64 = 251;

const PORT: u16 = 80;
/// A computer's window, and its delayed acknowledgements.
const CLIENT_BUFFER_BYTES: usize = 65_535;
const CLIENT_ACK_DELAY_NS: u64 = 40_000_000;

/// A web server that runs at the same time as the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebServer {
    /// Task and core of the server.
    pub place: Place,
    /// Length of each read of the file, in bytes.
    pub piece_bytes: NonZeroU32,
    /// Packets per million that the network loses.
    pub loss_ppm: u32,
}

/// Task and core of the server. The network stack is on core 0, the writer on core 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The Arduino core's main loop, on core 1.
    MainLoop,
    /// A task of its own on core 1.
    #[serde(rename = "core-1")]
    Core1,
    /// A task of its own on core 0.
    #[serde(rename = "core-0")]
    Core0,
}

impl Place {
    /// Returns the pause between two checks for a client: 1 ms in the library's main loop, 5 ms in the
    /// study's tasks.
    fn turn_ns(self) -> u64 {
        match self {
            Place::MainLoop => 1_000_000,
            Place::Core1 | Place::Core0 => 5_000_000,
        }
    }

    /// Returns the time that the network stack takes from the server for each byte, in ns.
    ///
    /// Assumes that at its maximum throughput, the network stack uses core 0 completely.
    fn network_byte_ns(self, network: &Network) -> u64 {
        match self {
            Place::MainLoop | Place::Core1 => 0,
            Place::Core0 => 1_000_000_000 / u64::from(network.bytes_per_s),
        }
    }
}

/// Results of a run with a server.
pub(crate) struct Served {
    /// One operation per download, from the connection to the last byte.
    pub(crate) downloads: Vec<Operation>,
    /// Time of each of the server's calls that read from the card, in ns.
    pub(crate) reads_ns: Vec<u64>,
    /// Number of times the driver timed out on a busy card.
    pub(crate) driver_timeouts: u64,
    /// The card, unmounted.
    pub(crate) card: Card,
}

/// Formats a card, creates the file to download, and runs the workload while a client downloads the file:
/// ten times, or as often as possible until the workload ends. A workload without phases does nothing.
///
/// # Errors
/// If the board has no network or a library other than embedded-sdmmc, or if the workload, the card or a
/// download fails.
pub(crate) fn serve(
    card: Card,
    board: &Board,
    server: WebServer,
    workload: &Workload,
    seed: Seed,
    observer: &mut impl Observer,
) -> Result<Served, ExperimentError> {
    let network = match (board.library.name, board.network) {
        (LibraryName::EmbeddedSdmmc, Some(network)) => network,
        _ => {
            return Err(ExperimentError::new(
                "the web server needs a board with the library embedded-sdmmc and a network",
            ));
        }
    };
    let mut store = FatCard::mount(card, board).map_err(failed)?;
    create_file(&mut store).map_err(failed)?;
    let card_clock = store.clock().0;
    let clock = Clock::default();
    clock.advance_to_ns(card_clock.now_ns());
    let world = World::on_clock(seed, clock);
    let card = Rc::new(SharedCard::new(&world.handle(), store, card_clock));
    let stage = Rc::new(Stage::default());
    spawn(&world.handle(), &card, board, &network, server, &stage)?;

    let world = RefCell::new(world);
    stage.downloads_max.set(DOWNLOADS);
    if !workload.phases.is_empty() {
        stage.downloads_max.set(usize::MAX);
        let mut buffer = vec![0; workload.buffer_bytes()];
        let mut store = WriterStore::new(&card, &world);
        let mut clock = WorldClock::new(&world);
        let done = run(workload, &mut store, &mut clock, observer, &mut buffer);
        stage.downloads_max.set(0);
        done.map_err(failed)?;
    }
    world.into_inner().run_until_idle().map_err(failed)?;
    if let Some(sentence) = stage.failure.take() {
        return Err(ExperimentError::new(sentence));
    }
    let card = Rc::into_inner(card).map(SharedCard::into_store);
    let store = card.ok_or_else(|| ExperimentError::new("a task still uses the card"))?;
    Ok(Served {
        downloads: stage.downloads.take(),
        reads_ns: stage.reads_ns.take(),
        driver_timeouts: store.timeouts(),
        card: store.unmount().map_err(failed)?,
    })
}

fn failed(error: impl fmt::Display) -> ExperimentError {
    ExperimentError::new(error.to_string())
}

/// Progress of client and server.
#[derive(Default)]
struct Stage {
    /// Number of downloads after which the client leaves.
    downloads_max: Cell<usize>,
    downloads: RefCell<Vec<Operation>>,
    /// Time of each of the server's calls that read from the card.
    reads_ns: RefCell<Vec<u64>>,
    /// True once the client has finished its last download.
    is_done: Cell<bool>,
    failure: RefCell<Option<String>>,
}

impl Stage {
    /// Stores a failure, unless an earlier one is stored.
    fn fail(&self, sentence: String) {
        self.failure.borrow_mut().get_or_insert(sentence);
    }
}

/// Returns the client's host and the device's.
fn hosts(handle: &Handle, network: &Network, loss_ppm: u32) -> Result<(Host, Host), InvalidLink> {
    let wifi = Link {
        loss_ppm,
        ..network.link()
    };
    let (near, far) = wifi.connect(handle, "wifi")?;
    let client = Config {
        address: [192, 168, 4, 2].into(),
        receive_buffer_bytes: CLIENT_BUFFER_BYTES,
        send_buffer_bytes: CLIENT_BUFFER_BYTES,
        ack_delay_ns: CLIENT_ACK_DELAY_NS,
        ..Config::default()
    };
    let device = Config {
        address: [192, 168, 4, 1].into(),
        receive_buffer_bytes: network.buffer_bytes as usize,
        send_buffer_bytes: network.buffer_bytes as usize,
        // The Arduino core leaves Nagle's algorithm on.
        collects_small_writes: true,
        ..Config::default()
    };
    Ok((
        Host::new(handle, "client's network", near, client),
        Host::new(handle, "device's network", far, device),
    ))
}

/// Adds the network, the server and the client to a world.
fn spawn(
    handle: &Handle,
    card: &Rc<SharedCard<FatCard>>,
    board: &Board,
    network: &Network,
    settings: WebServer,
    stage: &Rc<Stage>,
) -> Result<(), ExperimentError> {
    let (client, device) = hosts(handle, network, settings.loss_ppm).map_err(failed)?;
    let listener = device.listen(PORT, 1).map_err(failed)?;
    let piece_bytes = u64::from(settings.piece_bytes.get()).min(FILE_BYTES);
    let server = Server {
        handle: handle.clone(),
        card: Rc::clone(card),
        piece_bytes: piece_bytes as usize,
        buffer_bytes: match board.library.file_buffer_bytes {
            0 => u64::MAX,
            bytes => bytes.into(),
        },
        network_byte_ns: settings.place.network_byte_ns(network),
        turn_ns: settings.place.turn_ns(),
    };
    let server_stage = Rc::clone(stage);
    handle.spawn("server", async move {
        let served = server.run(listener, &server_stage).await;
        served.unwrap_or_else(|sentence| server_stage.fail(sentence));
    });
    let (clock, stage) = (handle.clone(), Rc::clone(stage));
    handle.spawn("client", async move {
        let downloaded = download_until_enough(&clock, &client, device.endpoint(PORT), &stage);
        downloaded
            .await
            .unwrap_or_else(|sentence| stage.fail(sentence));
        stage.is_done.set(true);
    });
    Ok(())
}

async fn download_until_enough(
    clock: &Handle,
    client: &Host,
    server: SocketAddrV4,
    stage: &Stage,
) -> Result<(), String> {
    while stage.downloads.borrow().len() < stage.downloads_max.get() {
        let download = client::download(clock, client, server).await?;
        stage.downloads.borrow_mut().push(download);
    }
    Ok(())
}

fn create_file<S: Store>(store: &mut S) -> Result<(), S::Error> {
    let mut file = store.create(FILE_NAME)?;
    let mut at = 0;
    let mut result = Ok(());
    while at < FILE_BYTES && result.is_ok() {
        let end = FILE_BYTES.min(at + CREATE_BYTES);
        let data: Vec<u8> = (at..end).map(byte_at).collect();
        result = store.write(&mut file, at, &data);
        at = end;
    }
    result.and(store.close(file))
}

fn byte_at(offset_bytes: u64) -> u8 {
    (offset_bytes % PATTERN_BYTES) as u8
}
