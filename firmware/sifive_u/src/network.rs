//! The network, and the tasks that serve the card's files.

use crate::CONTROL;
use crate::ethernet::{self, Mac};
use crate::sampling::NEWEST;
use crate::{BoardFault, println};
use cardiograph_logger::{Clock, FORMAT, serve_next};
use cardiograph_recorder::ReadDesk;
use cardiograph_server::{CardRecorder, CardStorage, Config, LiveStream, Server};
use embassy_executor::Spawner;
use embassy_net::{
    Config as NetConfig, Ipv4Address, Ipv4Cidr, Runner, Stack, StackResources, StaticConfigV4,
};
use embassy_time::Instant;
use static_cell::{ConstStaticCell, StaticCell};

/// Address in QEMU's network.
const ADDRESS: Ipv4Address = Ipv4Address::new(10, 0, 2, 15);
const GATEWAY: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);
const PORT: u16 = 80;
/// Connections at the same time.
const CONNECTIONS: usize = 2;
/// One segment of TCP.
const RECEIVE_BYTES: usize = 536;
/// Two segments, so that one is sent while the other one is acknowledged.
const SEND_BYTES: usize = 2 * 536;

/// Memory of a connection.
type Connection = cardiograph_logger::Connection<RECEIVE_BYTES, SEND_BYTES>;

/// Starts network and server.
pub fn start(spawner: Spawner, desk: &'static ReadDesk<'static>, fault: &'static BoardFault) {
    static NETWORK: StaticCell<StackResources<CONNECTIONS>> = StaticCell::new();
    static MEMORY: ConstStaticCell<[Connection; CONNECTIONS]> =
        ConstStaticCell::new([const { Connection::new() }; CONNECTIONS]);
    let config = NetConfig::ipv4_static(StaticConfigV4 {
        address: Ipv4Cidr::new(ADDRESS, 24),
        gateway: Some(GATEWAY),
        dns_servers: Default::default(),
    });
    let resources = NETWORK.init_with(StackResources::new);
    let (stack, runner) = embassy_net::new(ethernet::start(), config, resources, seed());
    let server = server(desk, fault);
    spawner.spawn(run(runner).expect("spawned once"));
    for memory in MEMORY.take() {
        spawner.spawn(serve(stack, server, memory).expect("one for each connection"));
    }
    println!("http://{ADDRESS}");
}

/// Returns a number for ports and keys. It is not secret: the board has no source of noise.
fn seed() -> u64 {
    Instant::now().as_micros()
}

#[embassy_executor::task]
async fn run(mut runner: Runner<'static, Mac>) {
    runner.run().await
}

type BoardServer =
    Server<'static, CardStorage<'static, 'static>, CardRecorder<'static, 'static>, Clock>;

/// Creates the server. QEMU's network is that of one computer, which may use it without a password.
fn server(desk: &'static ReadDesk<'static>, fault: &'static BoardFault) -> &'static BoardServer {
    static STORAGE: StaticCell<CardStorage<'static, 'static>> = StaticCell::new();
    static RECORDER: StaticCell<CardRecorder<'static, 'static>> = StaticCell::new();
    static LIVE: StaticCell<[LiveStream<'static>; 1]> = StaticCell::new();
    static SERVER: StaticCell<BoardServer> = StaticCell::new();
    let config = Config {
        names: &[],
        is_read_only: false,
        basic_auth: None,
        secret: seed(),
        event_streams_max: 1,
    };
    let storage = STORAGE.init(CardStorage::new(desk));
    let live = LIVE.init([LiveStream {
        format: FORMAT,
        newest: NEWEST.handle(),
    }]);
    let recorder = RECORDER.init(CardRecorder::new(desk, &CONTROL, live, fault));
    SERVER.init(Server::new(storage, recorder, &Clock, config))
}

/// Serves connections one after another.
#[embassy_executor::task(pool_size = CONNECTIONS)]
async fn serve(
    stack: Stack<'static>,
    server: &'static BoardServer,
    memory: &'static mut Connection,
) {
    loop {
        serve_next(stack, PORT, server, memory).await;
    }
}
