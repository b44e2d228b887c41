//! The networks of the router and of the access point, and the tasks that serve them.

use crate::actions::BoardActions;
use crate::memory::{CONNECTIONS, Connection, Network as Memory};
use crate::sampling::NEWEST;
use crate::wifi::{FOLLOWERS, NETWORK, Network, Radio};
use crate::{CONTROL, settings, time, wifi};
use cardiograph_logger::{Clock, FORMAT, serve_next};
use cardiograph_network::{
    ADDRESS, AddressServer, DHCP_CLIENT_PORT, DHCP_SERVER_PORT, MDNS_ADDRESS, MDNS_PORT,
    Passphrase, REPLY_BYTES, Responder, Settings, Target, access_point_name,
};
use cardiograph_recorder::ReadDesk;
use cardiograph_server::{CardRecorder, CardStorage, Config, LiveStream, Server};
use core::fmt::Write;
use core::future::pending;
use embassy_executor::Spawner;
use embassy_futures::select::select;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{Config as NetConfig, DhcpConfig, Ipv4Cidr, Runner, Stack, StaticConfigV4};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::watch::Receiver;
use embassy_time::Instant;
use esp_hal::peripherals::WIFI;
use esp_hal::rng::Rng;
use esp_println::println;
use esp_radio::wifi::{ControllerConfig, Interface, WifiController};
use static_cell::StaticCell;

const PORT: u16 = 80;
/// Memory for a packet of mDNS.
const MDNS_BYTES: usize = 512;
/// Longest request of DHCP that is received.
const DHCP_BYTES: usize = 600;

/// Both networks. One of them has a link at a time.
#[derive(Clone, Copy)]
pub struct Stacks {
    pub router: Stack<'static>,
    pub access_point: Stack<'static>,
}

/// Follows the network in use.
struct Follower {
    stacks: Stacks,
    network: Receiver<'static, CriticalSectionRawMutex, Network, FOLLOWERS>,
}

impl Follower {
    fn new(stacks: Stacks) -> Follower {
        let network = NETWORK.receiver().expect("one receiver for each task");
        Follower { stacks, network }
    }

    /// Waits for a network; returns its stack.
    async fn stack(&mut self) -> Stack<'static> {
        loop {
            match self.network.get().await {
                Network::None => self.network.changed().await,
                Network::Router => return self.stacks.router,
                Network::AccessPoint => return self.stacks.access_point,
            };
        }
    }
}

/// Reads the settings, and starts radio and server.
#[embassy_executor::task]
pub async fn start(
    spawner: Spawner,
    device: WIFI<'static>,
    passphrase: Passphrase,
    desk: &'static ReadDesk<'static>,
    memory: Memory,
    actions: &'static BoardActions,
) {
    static SETTINGS: StaticCell<Settings> = StaticCell::new();
    let settings: &'static Settings = SETTINGS.init(settings::read(desk).await);
    let controller = match WifiController::new(device, ControllerConfig::default()) {
        Ok(controller) => controller,
        Err(error) => {
            println!("no Wi-Fi: {error:?}; recording goes on without it");
            return;
        }
    };
    let (router, access_point) = (Interface::station(), Interface::access_point());
    let radio = Radio {
        controller,
        router: settings.router.clone(),
        access_point_name: access_point_name(&settings.name, access_point.mac_address()),
        passphrase,
    };
    let mut dhcp = DhcpConfig::default();
    dhcp.hostname = settings.name.as_str().try_into().ok();
    let (router, router_runner) =
        embassy_net::new(router, NetConfig::dhcpv4(dhcp), memory.router, seed());
    let own = NetConfig::ipv4_static(StaticConfigV4 {
        address: Ipv4Cidr::new(ADDRESS, 24),
        gateway: None,
        dns_servers: Default::default(),
    });
    let (access_point, access_point_runner) =
        embassy_net::new(access_point, own, memory.access_point, seed());
    let stacks = Stacks {
        router,
        access_point,
    };

    let follow = settings::follow_router(desk, settings.router.clone());
    spawner.spawn(follow.expect("spawned once"));
    let server = server(desk, settings, actions);
    spawner.spawn(run(router_runner).expect("spawned twice"));
    spawner.spawn(run(access_point_runner).expect("spawned twice"));
    spawner.spawn(wifi::run(radio).expect("spawned once"));
    spawner.spawn(lease_addresses(access_point).expect("spawned once"));
    spawner.spawn(answer_names(stacks, &settings.name).expect("spawned once"));
    spawner.spawn(time::keep(stacks, settings).expect("spawned once"));
    for memory in memory.connections {
        spawner.spawn(serve(stacks, server, memory).expect("one for each connection"));
    }
}

fn seed() -> u64 {
    let random = Rng::new();
    u64::from(random.random()) << 32 | u64::from(random.random())
}

#[embassy_executor::task(pool_size = 2)]
async fn run(mut runner: Runner<'static, Interface>) {
    runner.run().await
}

type BoardServer =
    Server<'static, CardStorage<'static, 'static>, CardRecorder<'static, 'static>, Clock>;

/// Creates the server. It only reads: whoever joins the network may use it.
fn server(
    desk: &'static ReadDesk<'static>,
    settings: &Settings,
    actions: &'static BoardActions,
) -> &'static BoardServer {
    static STORAGE: StaticCell<CardStorage<'static, 'static>> = StaticCell::new();
    static RECORDER: StaticCell<CardRecorder<'static, 'static>> = StaticCell::new();
    static LIVE: StaticCell<[LiveStream<'static>; 1]> = StaticCell::new();
    static NAME: StaticCell<heapless::String<40>> = StaticCell::new();
    static NAMES: StaticCell<[&str; 1]> = StaticCell::new();
    static SERVER: StaticCell<BoardServer> = StaticCell::new();
    let name = NAME.init(heapless::String::new());
    // Every name of the settings fits.
    let _ = write!(name, "{}.local", settings.name);
    let config = Config {
        names: NAMES.init([name]),
        is_read_only: true,
        basic_auth: None,
        secret: seed(),
        event_streams_max: 1,
    };
    let storage = STORAGE.init(CardStorage::new(desk));
    let live = LIVE.init([LiveStream {
        format: FORMAT,
        newest: NEWEST.handle(),
    }]);
    let recorder = RECORDER.init(CardRecorder::new(desk, &CONTROL, live, actions));
    SERVER.init(Server::new(storage, recorder, &Clock, config))
}

/// Serves connections one after another.
#[embassy_executor::task(pool_size = CONNECTIONS)]
async fn serve(stacks: Stacks, server: &'static BoardServer, memory: &'static mut Connection) {
    let mut follower = Follower::new(stacks);
    loop {
        let stack = follower.stack().await;
        // A change of the network ends the connection.
        select(connect(stack, server, memory), follower.network.changed()).await;
    }
}

async fn connect(stack: Stack<'static>, server: &BoardServer, memory: &mut Connection) {
    loop {
        serve_next(stack, PORT, server, memory).await;
    }
}

/// Leases addresses to clients of the access point.
#[embassy_executor::task]
async fn lease_addresses(stack: Stack<'static>) {
    let (mut received, mut sent) = ([PacketMetadata::EMPTY; 4], [PacketMetadata::EMPTY; 4]);
    let (mut receive, mut send) = ([0; 2 * DHCP_BYTES], [0; 2 * REPLY_BYTES]);
    let mut socket = UdpSocket::new(stack, &mut received, &mut receive, &mut sent, &mut send);
    if socket.bind(DHCP_SERVER_PORT).is_err() {
        return;
    }
    let mut server = AddressServer::new();
    let (mut packet, mut reply) = ([0; DHCP_BYTES], [0; REPLY_BYTES]);
    loop {
        // A packet that is too long is no request.
        let Ok((bytes, _)) = socket.recv_from(&mut packet).await else {
            continue;
        };
        let now_s = Instant::now().as_secs();
        if let Some(answer) = server.handle(&packet[..bytes], &mut reply, now_s) {
            // A client without an answer repeats its request.
            let _ = socket
                .send_to(&reply[..answer.bytes], (answer.to, DHCP_CLIENT_PORT))
                .await;
        }
    }
}

/// Answers queries for the name of the logger.
#[embassy_executor::task]
async fn answer_names(stacks: Stacks, name: &'static str) {
    let mut follower = Follower::new(stacks);
    loop {
        let stack = follower.stack().await;
        select(answer_names_in(stack, name), follower.network.changed()).await;
    }
}

async fn answer_names_in(stack: Stack<'static>, name: &str) {
    let config = loop {
        stack.wait_config_up().await;
        if let Some(config) = stack.config_v4() {
            break config;
        }
    };
    let responder = Responder::new(name, config.address.address());
    let (mut received, mut sent) = ([PacketMetadata::EMPTY; 4], [PacketMetadata::EMPTY; 4]);
    let (mut receive, mut send) = ([0; 2 * MDNS_BYTES], [0; MDNS_BYTES]);
    let mut socket = UdpSocket::new(stack, &mut received, &mut receive, &mut sent, &mut send);
    if stack.join_multicast_group(MDNS_ADDRESS).is_err() || socket.bind(MDNS_PORT).is_err() {
        println!("no memory for the name of the logger; use its address");
        pending::<()>().await;
    }
    let everybody = (MDNS_ADDRESS, MDNS_PORT);
    let (mut packet, mut answer) = ([0; MDNS_BYTES], [0; MDNS_BYTES]);
    if let Some(bytes) = responder.announce(&mut answer) {
        let _ = socket.send_to(&answer[..bytes], everybody).await;
    }
    loop {
        let Ok((bytes, sender)) = socket.recv_from(&mut packet).await else {
            continue;
        };
        let port = sender.endpoint.port;
        // A querier without an answer repeats its query.
        let _ = match responder.handle(&packet[..bytes], port, &mut answer) {
            Some((bytes, Target::All)) => socket.send_to(&answer[..bytes], everybody).await,
            Some((bytes, Target::Sender)) => {
                socket.send_to(&answer[..bytes], sender.endpoint).await
            }
            None => continue,
        };
    }
}
