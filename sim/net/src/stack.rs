//! The TCP/IP stack of a host, shared by its task, its listeners and its sockets.

use crate::Config;
use crate::device::Device;
use cardiograph_sim_world::Handle;
use cardiograph_sim_world::link::Sender;
use smoltcp::iface::{self, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::task::Waker;

/// Hosts reach each other directly, whatever their addresses.
const PREFIX_BITS: u8 = 0;
/// First port for connections to other hosts (RFC 6335).
const FIRST_EPHEMERAL_PORT: u16 = 49_152;
/// Time without an answer after which the stack gives up a connection without an owner.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Stack {
    handle: Handle,
    config: Config,
    doorbell: Doorbell,
    parts: RefCell<Parts>,
}

struct Parts {
    interface: Interface,
    device: Device,
    sockets: SocketSet<'static>,
    /// Sockets without an owner: their connections are ending.
    orphans: Vec<SocketHandle>,
    next_port: u16,
}

impl Stack {
    pub(crate) fn new(handle: &Handle, name: &str, sender: Sender, config: Config) -> Stack {
        let mut random = handle.seed().child("host").stream(name);
        let mut device = Device::new(sender);
        let mut settings = iface::Config::new(HardwareAddress::Ip);
        settings.random_seed = random.next_u64();
        let mut interface = Interface::new(settings, &mut device, instant(handle.now_ns()));
        interface.update_ip_addrs(|addresses| {
            let cidr = IpCidr::new(config.address.into(), PREFIX_BITS);
            // Cannot fail: the list has room for two addresses.
            let _ = addresses.push(cidr);
        });
        let ports = u64::from(u16::MAX - FIRST_EPHEMERAL_PORT) + 1;
        let next_port = FIRST_EPHEMERAL_PORT + random.below(ports) as u16;
        Stack {
            handle: handle.clone(),
            config,
            doorbell: Doorbell::default(),
            parts: RefCell::new(Parts {
                interface,
                device,
                sockets: SocketSet::new(Vec::new()),
                orphans: Vec::new(),
                next_port,
            }),
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.config.address
    }

    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Returns true if no connection is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.borrow().sockets.iter().next().is_none()
    }

    pub(crate) fn receive_packet(&self, packet: Vec<u8>) {
        self.parts.borrow_mut().device.receive_packet(packet);
    }

    /// Processes received packets, and sends pending packets. Returns the time of the next call, in ns;
    /// `None` if nothing is due before a packet arrives.
    pub(crate) fn poll(&self) -> Option<u64> {
        let now_ns = self.handle.now_ns();
        let now = instant(now_ns);
        let parts = &mut *self.parts.borrow_mut();
        parts.device.flush();
        parts
            .interface
            .poll(now, &mut parts.device, &mut parts.sockets);
        parts.remove_orphans();
        let next = parts.interface.poll_at(now, &parts.sockets)?;
        let next_ns = next.total_micros() as u64 * 1000;
        if next_ns > now_ns {
            return Some(next_ns);
        }
        // A packet is due now: it waits for room in the link, or for the next step of smoltcp's clock.
        let full_until_ns = parts.device.full_until_ns();
        Some(full_until_ns.unwrap_or(now_ns + 1000))
    }

    /// Adds a closed socket.
    pub(crate) fn add(&self) -> SocketHandle {
        let buffer = |bytes: usize| SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(
            buffer(self.config.receive_buffer_bytes),
            buffer(self.config.send_buffer_bytes),
        );
        socket.set_nagle_enabled(self.config.collects_small_writes);
        let ack_delay_us = (self.config.ack_delay_ns / 1000).max(1);
        socket.set_ack_delay(Some(Duration::from_micros(ack_delay_us)));
        self.parts.borrow_mut().sockets.add(socket)
    }

    /// Calls `act` with a socket, then wakes the host's task to send the resulting packets.
    pub(crate) fn with<T>(
        &self,
        socket: SocketHandle,
        act: impl FnOnce(&mut Socket<'static>) -> T,
    ) -> T {
        let result = self.look(socket, act);
        self.doorbell.ring();
        result
    }

    /// Calls `act`, which must not cause packets, with a socket.
    pub(crate) fn look<T>(
        &self,
        socket: SocketHandle,
        act: impl FnOnce(&mut Socket<'static>) -> T,
    ) -> T {
        act(self.parts.borrow_mut().sockets.get_mut(socket))
    }

    /// Begins to connect a closed socket. Returns false if the remote address or port is invalid, or no local port
    /// is free.
    pub(crate) fn connect(&self, socket: SocketHandle, address: Ipv4Addr, port: u16) -> bool {
        let parts = &mut *self.parts.borrow_mut();
        let Some(local_port) = parts.free_port() else {
            return false;
        };
        let context = parts.interface.context();
        let socket = parts.sockets.get_mut::<Socket>(socket);
        let result = socket.connect(context, (address, port), local_port);
        self.doorbell.ring();
        result.is_ok()
    }

    /// Returns true if a socket listens on this port.
    pub(crate) fn is_listening(&self, port: u16) -> bool {
        let parts = self.parts.borrow();
        parts
            .tcp_sockets()
            .any(|socket| socket.is_listening() && socket.listen_endpoint().port == port)
    }

    /// Ends a connection whose owner is gone. Written data still arrives; if received data has not been read,
    /// the connection is reset instead.
    pub(crate) fn release(&self, socket: SocketHandle) {
        self.with(socket, |socket| {
            socket.set_timeout(Some(ORPHAN_TIMEOUT));
            match socket.recv_queue() {
                0 => socket.close(),
                _ => socket.abort(),
            }
        });
        self.parts.borrow_mut().orphans.push(socket);
    }

    /// Ends a connection with a reset.
    pub(crate) fn abort(&self, socket: SocketHandle) {
        self.with(socket, |socket| socket.abort());
        self.parts.borrow_mut().orphans.push(socket);
    }
}

impl Parts {
    fn tcp_sockets(&self) -> impl Iterator<Item = &Socket<'static>> {
        // The only sockets here, but other crates may enable other kinds.
        let sockets = self.sockets.iter();
        sockets.filter_map(|(_, socket)| smoltcp::socket::AnySocket::downcast(socket))
    }

    /// Returns a local port that no connection uses.
    fn free_port(&mut self) -> Option<u16> {
        for _ in FIRST_EPHEMERAL_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            let is_used = |socket: &Socket| {
                socket
                    .local_endpoint()
                    .is_some_and(|local| local.port == port)
            };
            if !self.tcp_sockets().any(is_used) {
                return Some(port);
            }
        }
        None
    }

    /// Removes the orphans whose connections have ended. Received data that nobody will read resets a
    /// connection.
    fn remove_orphans(&mut self) {
        let sockets = &mut self.sockets;
        self.orphans.retain(|&orphan| {
            let socket = sockets.get_mut::<Socket>(orphan);
            if socket.recv_queue() > 0 && socket.state() != State::Closed {
                socket.abort();
            }
            let is_over = socket.state() == State::Closed && socket.remote_endpoint().is_none();
            if is_over {
                sockets.remove(orphan);
            }
            !is_over
        });
    }
}

/// Wakes the host's task after the application has used a socket.
#[derive(Default)]
pub(crate) struct Doorbell {
    is_rung: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Doorbell {
    pub(crate) fn ring(&self) {
        self.is_rung.set(true);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns true if it was rung since the last call; the next ring wakes `waker`.
    pub(crate) fn take(&self, waker: &Waker) -> bool {
        *self.waker.borrow_mut() = Some(waker.clone());
        self.is_rung.take()
    }
}

/// Converts a time of the world to smoltcp's, which counts µs.
fn instant(ns: u64) -> Instant {
    Instant::from_micros((ns / 1000) as i64)
}
