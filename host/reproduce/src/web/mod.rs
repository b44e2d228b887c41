//! Study 1's web server on the instrument's ESP32, with and without the task that writes samples.
//!
//! ```text
//!   client ── Wi-Fi ── TCP ── server ──┐
//!   (client.rs)   (sim/net)  (server.rs)├── card, one library call at a time   (shared_card.rs)
//!                            writer ───┘
//! ```
//!
//! Server, writer and network run at the same time, in one world. A library call holds the card for as long
//! as it takes on the card's own clock, and other tasks continue meanwhile. For each piece, the server takes
//! the time to read it from the card, its own processor time and, if it shares core 0 with the network
//! stack, the processor time of the stack.

mod client;
mod server;
mod shared_card;

use crate::experiment::ExperimentError;
use cardiograph_sim_card::{Board, Card, Clock, LibraryName, Seed};
use cardiograph_sim_net::{Config, Host, Listener};
use cardiograph_sim_world::{Handle, Link, World};
use cardiograph_store::FatCard;
use cardiograph_workload::{Observer, Operation, Store, Workload, run};
use serde::Deserialize;
use shared_card::{SharedCard, WorldClock, WriterStore};
use std::cell::{Cell, RefCell};
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
/// Maximum TCP throughput over the ESP32's Wi-Fi (section 1 of the study): 2500 kB/s.
const NETWORK_BYTES_PER_S: u64 = 2_500_000;
/// One-way network delay: half a round trip of 4 ms.
const DELAY_NS: u64 = 2_000_000;
/// Maximum packet length of lwIP on the ESP32: a segment of 1436 B, and 40 B of headers.
const MTU_BYTES: usize = 1476;
/// Receive window and send buffer of lwIP on the ESP32: four segments.
const LWIP_BUFFER_BYTES: usize = 5744;
/// Receive window of the client, a computer; it also delays acknowledgements.
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
    /// Assumes that at the maximum throughput, the network stack uses core 0 completely.
    fn network_byte_ns(self) -> u64 {
        match self {
            Place::MainLoop | Place::Core1 => 0,
            Place::Core0 => 1_000_000_000 / NETWORK_BYTES_PER_S,
        }
    }
}

/// Operations of a run with a server.
pub(crate) struct Served {
    /// One operation per download, from the connection to the last byte.
    pub(crate) downloads: Vec<Operation>,
    /// The card, unmounted.
    pub(crate) card: Card,
}

/// Formats a card, creates the file to download, and runs the workload while a client downloads the file:
/// ten times, or as often as possible until the workload ends. A workload without phases does nothing.
///
/// # Errors
/// If the library is not embedded-sdmmc, or the workload, the card or a download fails.
pub(crate) fn serve(
    card: Card,
    board: &Board,
    server: WebServer,
    workload: &Workload,
    seed: Seed,
    observer: &mut impl Observer,
) -> Result<Served, ExperimentError> {
    let error = |error: &dyn std::fmt::Display| ExperimentError::new(error.to_string());
    if board.library.name != LibraryName::EmbeddedSdmmc {
        return Err(ExperimentError::new(
            "the web server needs a board with the library embedded-sdmmc",
        ));
    }
    let mut store = FatCard::mount(card, board).map_err(|e| error(&e))?;
    create_file(&mut store).map_err(|e| error(&e))?;
    let card_clock = store.clock().0;
    let clock = Clock::default();
    clock.advance_to_ns(card_clock.now_ns());

    let world = World::on_clock(seed, clock);
    let handle = world.handle();
    let (client, device) = hosts(&handle, server.loss_ppm).map_err(|e| error(&e))?;
    let listener = device.listen(PORT, 1).map_err(|e| error(&e))?;
    let card = Rc::new(SharedCard::new(&handle, store, card_clock));
    let stage = Rc::new(Stage::default());
    spawn_server(&handle, &card, board, server, listener, &stage);
    spawn_client(&handle, client, device.endpoint(PORT), &stage);
    drop(device);

    let world = RefCell::new(world);
    if workload.phases.is_empty() {
        stage.downloads_max.set(DOWNLOADS);
    } else {
        stage.downloads_max.set(usize::MAX);
        let mut buffer = vec![0; workload.buffer_bytes()];
        let mut store = WriterStore::new(&card, &world);
        let mut clock = WorldClock::new(&world);
        let done = run(workload, &mut store, &mut clock, observer, &mut buffer);
        stage.downloads_max.set(0);
        done.map_err(|e| error(&e))?;
    }
    let idle = world.borrow_mut().run_until_idle();
    idle.map_err(|e| error(&e))?;
    drop(world);
    if let Some(sentence) = stage.failure.take() {
        return Err(ExperimentError::new(sentence));
    }
    let card = Rc::into_inner(card).map(SharedCard::into_store);
    let store = card.ok_or_else(|| ExperimentError::new("a task still uses the card"))?;
    Ok(Served {
        downloads: stage.downloads.take(),
        card: store.unmount().map_err(|e| error(&e))?,
    })
}

/// Progress of client and server, shared by their tasks.
#[derive(Default)]
struct Stage {
    downloads_max: Cell<usize>,
    downloads: RefCell<Vec<Operation>>,
    client_is_done: Cell<bool>,
    failure: RefCell<Option<String>>,
}

impl Stage {
    /// Stores a failure, unless an earlier one is stored.
    fn fail(&self, sentence: String) {
        self.failure.borrow_mut().get_or_insert(sentence);
    }
}

/// Returns the client's host and the device's.
fn hosts(
    handle: &Handle,
    loss_ppm: u32,
) -> Result<(Host, Host), cardiograph_sim_world::link::InvalidLink> {
    let wifi = Link {
        bandwidth_bps: 8 * NETWORK_BYTES_PER_S,
        delay_ns: DELAY_NS,
        loss_ppm,
        mtu_bytes: MTU_BYTES,
        ..Link::default()
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
        receive_buffer_bytes: LWIP_BUFFER_BYTES,
        send_buffer_bytes: LWIP_BUFFER_BYTES,
        // The ESP32's Arduino core leaves Nagle's algorithm on.
        collects_small_writes: true,
        ..Config::default()
    };
    Ok((
        Host::new(handle, "client's network", near, client),
        Host::new(handle, "device's network", far, device),
    ))
}

fn spawn_server(
    handle: &Handle,
    card: &Rc<SharedCard<FatCard>>,
    board: &Board,
    server: WebServer,
    listener: Listener,
    stage: &Rc<Stage>,
) {
    let server = server::Server {
        handle: handle.clone(),
        card: Rc::clone(card),
        settings: server,
        buffer_bytes: board.library.file_buffer_bytes.max(512).into(),
    };
    let stage = Rc::clone(stage);
    handle.spawn("server", async move {
        if let Err(sentence) = server.run(listener, &stage.client_is_done).await {
            stage.fail(sentence);
        }
    });
}

fn spawn_client(handle: &Handle, client: Host, remote: std::net::SocketAddrV4, stage: &Rc<Stage>) {
    let (clock, stage) = (handle.clone(), Rc::clone(stage));
    handle.spawn("client", async move {
        while stage.downloads.borrow().len() < stage.downloads_max.get() {
            match client::download(&clock, &client, remote).await {
                Ok(download) => stage.downloads.borrow_mut().push(download),
                Err(sentence) => {
                    stage.fail(sentence);
                    break;
                }
            }
        }
        stage.client_is_done.set(true);
    });
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
