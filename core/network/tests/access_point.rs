//! A client that other people wrote gets an address and uses it: smoltcp's DHCP client, over a simulated Ethernet, and
//! the address server behind a UDP socket, as on a board.

use cardiograph_network::{
    ADDRESS, AddressServer, DHCP_CLIENT_PORT, DHCP_SERVER_PORT, LEASES, REPLY_BYTES,
};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{dhcpv4, udp};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};
use std::collections::VecDeque;

/// One end of the Ethernet.
#[derive(Default)]
struct End {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, f: F) -> R {
        let mut frame = vec![0; bytes];
        let result = f(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for End {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Received(frame), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// A device with one socket.
struct Host {
    end: End,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Host {
    fn new(number: u8, socket: impl smoltcp::socket::AnySocket<'static>) -> Host {
        let mut end = End::default();
        let mac = EthernetAddress([2, 0, 0, 0, 0, number]);
        let mut config = Config::new(mac.into());
        config.random_seed = u64::from(number);
        let interface = Interface::new(config, &mut end, Instant::ZERO);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Host {
            end,
            interface,
            sockets,
            socket,
        }
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.end, &mut self.sockets);
    }

    fn set_address(&mut self, address: Ipv4Cidr) {
        self.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            addresses.push(IpCidr::Ipv4(address)).unwrap();
        });
    }
}

/// The access point, and its clients.
struct Network {
    board: Host,
    server: AddressServer,
    clients: Vec<(Host, Option<dhcpv4::Config<'static>>)>,
    now_ms: i64,
}

impl Network {
    fn new() -> Network {
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 4], vec![0; 2400]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(DHCP_SERVER_PORT).unwrap();
        let mut board = Host::new(0, socket);
        board.set_address(Ipv4Cidr::new(ADDRESS, 24));
        Network {
            board,
            server: AddressServer::new(),
            clients: Vec::new(),
            now_ms: 0,
        }
    }

    fn add_client(&mut self) {
        let number = self.clients.len() as u8 + 1;
        let client = Host::new(number, dhcpv4::Socket::new());
        self.clients.push((client, None));
    }

    fn run(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        while self.now_ms < end_ms {
            let now = Instant::from_millis(self.now_ms);
            self.board.poll(now);
            self.serve();
            self.board.poll(now);
            for (client, config) in &mut self.clients {
                client.poll(now);
                let socket = client.sockets.get_mut::<dhcpv4::Socket>(client.socket);
                match socket.poll() {
                    Some(dhcpv4::Event::Configured(new)) => {
                        let address = new.address;
                        *config = Some(dhcpv4::Config {
                            packet: None,
                            ..new
                        });
                        client.set_address(address);
                    }
                    Some(dhcpv4::Event::Deconfigured) => *config = None,
                    None => (),
                }
            }
            self.exchange();
            self.now_ms += 50;
        }
    }

    /// Every frame reaches every other device, as over the air.
    fn exchange(&mut self) {
        for (client, _) in &mut self.clients {
            self.board.end.received.extend(client.end.sent.drain(..));
        }
        for frame in self.board.end.sent.drain(..) {
            for (client, _) in &mut self.clients {
                client.end.received.push_back(frame.clone());
            }
        }
    }

    fn serve(&mut self) {
        let socket = self.board.sockets.get_mut::<udp::Socket>(self.board.socket);
        let (mut packet, mut reply) = ([0; 600], [0; REPLY_BYTES]);
        while let Ok((bytes, _)) = socket.recv_slice(&mut packet) {
            let now_s = self.now_ms as u64 / 1000;
            if let Some(answer) = self.server.handle(&packet[..bytes], &mut reply, now_s) {
                let to = (answer.to, DHCP_CLIENT_PORT);
                socket.send_slice(&reply[..answer.bytes], to).unwrap();
            }
        }
    }
}

#[test]
fn clients_get_addresses_and_renew_them() {
    let mut network = Network::new();
    for _ in 0..5 {
        network.add_client();
    }
    network.run(20_000);
    let addresses = |network: &Network| -> Vec<Ipv4Cidr> {
        let of = |config: &Option<dhcpv4::Config>| config.as_ref().unwrap().address;
        network
            .clients
            .iter()
            .map(|(_, config)| of(config))
            .collect()
    };
    let first = addresses(&network);
    for (at, address) in first.iter().enumerate() {
        assert_eq!(address.prefix_len(), 24);
        assert!(!first[..at].contains(address), "{first:?}");
        let config = network.clients[at].1.as_ref().unwrap();
        assert_eq!(config.router, Some(ADDRESS));
        assert_eq!(config.dns_servers.as_slice(), [ADDRESS]);
    }
    // Six leases long.
    network.run(3_600_000);
    assert_eq!(addresses(&network), first);
}

#[test]
fn a_full_table_has_room_again_when_leases_end() {
    let mut network = Network::new();
    for _ in 0..=LEASES {
        network.add_client();
        network.run(1000);
    }
    let count = |network: &Network| {
        let served = network
            .clients
            .iter()
            .filter(|(_, config)| config.is_some());
        served.count()
    };
    assert_eq!(count(&network), LEASES);
    // One of them leaves without a word.
    let leaving = network
        .clients
        .iter()
        .position(|(_, config)| config.is_some());
    network.clients.remove(leaving.unwrap());
    network.run(900_000);
    assert_eq!(count(&network), LEASES);
}
