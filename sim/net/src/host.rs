//! Hosts: endpoints with an address and a network stack.

use crate::stack::Stack;
use crate::{Listener, Socket, driver};
use cardiograph_sim_world::link::{End, InvalidLink};
use cardiograph_sim_world::{Handle, Link};
use smoltcp::socket::tcp::State;
use std::fmt;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;
use std::task::Poll;

/// Parameters of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Address of the host.
    pub address: Ipv4Addr,
    /// Receive buffer of each socket, which is also its window.
    pub receive_buffer_bytes: usize,
    /// Send buffer of each socket.
    pub send_buffer_bytes: usize,
    /// Nagle's algorithm: a short packet waits while data is unacknowledged.
    pub collects_small_writes: bool,
    /// Maximum time for which the acknowledgement of a single packet waits for a second packet, in ns. Values below 1
    /// µs count as 1 µs: in this time the application reads the packet, and the acknowledgement then advertises the
    /// whole window again.
    pub ack_delay_ns: u64,
}

impl Default for Config {
    /// Address 10.0.0.1, buffers of 16 KiB, no Nagle's algorithm, and the shortest acknowledgement delay.
    fn default() -> Config {
        Config {
            address: Ipv4Addr::new(10, 0, 0, 1),
            receive_buffer_bytes: 16_384,
            send_buffer_bytes: 16_384,
            collects_small_writes: false,
            ack_delay_ns: 0,
        }
    }
}

/// A host on one end of a link. Clones are handles to the same host.
///
/// A task of the world moves its packets; the task ends when all handles, listeners and sockets are dropped
/// and the last connection has ended.
#[derive(Clone)]
pub struct Host {
    stack: Rc<Stack>,
}

/// Creates two hosts with a link between them: 10.0.0.1 and 10.0.0.2, otherwise as in `config`. `name` is the name of
/// the link; each link of a world needs its own.
///
/// # Errors
/// [`InvalidLink`] if a parameter of the link is out of range.
pub fn connect_hosts(
    handle: &Handle,
    name: &str,
    link: Link,
    config: Config,
) -> Result<(Host, Host), InvalidLink> {
    let (first, second) = link.connect(handle, name)?;
    let host = |number: u8, end| {
        let config = Config {
            address: Ipv4Addr::new(10, 0, 0, number),
            ..config.clone()
        };
        Host::new(handle, &format!("{name} {number}"), end, config)
    };
    Ok((host(1, first), host(2, second)))
}

impl Host {
    /// Creates a host on an end of a link. Its random numbers depend on the world's seed and on `name`, which
    /// is also the name of its task.
    pub fn new(handle: &Handle, name: &str, end: End, config: Config) -> Host {
        let stack = Rc::new(Stack::new(handle, name, end.sender, config));
        handle.spawn(
            name.to_string(),
            driver::run(Rc::clone(&stack), end.receiver),
        );
        Host { stack }
    }

    /// Returns the host's address with a port.
    pub fn endpoint(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.stack.address(), port)
    }

    /// Listens on a port. `backlog` connections may be waiting to be accepted, at least one; further ones are
    /// refused.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(&self, port: u16, backlog: usize) -> Result<Listener, ListenError> {
        if port == 0 {
            return Err(ListenError::InvalidPort);
        }
        if self.stack.is_listening(port) {
            return Err(ListenError::PortInUse);
        }
        Ok(Listener::new(&self.stack, port, backlog))
    }

    /// Connects to another host. Waits until the other host answers; drop the future to give up.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, remote: SocketAddrV4) -> Result<Socket, ConnectError> {
        let socket = Socket::new(&self.stack, self.stack.add());
        if !self.stack.connect(socket.id(), *remote.ip(), remote.port()) {
            return Err(ConnectError::Unaddressable);
        }
        poll_fn(|context| {
            self.stack.look(socket.id(), |tcp| match tcp.state() {
                State::SynSent | State::SynReceived => {
                    tcp.register_send_waker(context.waker());
                    Poll::Pending
                }
                State::Closed => Poll::Ready(Err(ConnectError::Refused)),
                _ => Poll::Ready(Ok(())),
            })
        })
        .await?;
        Ok(socket)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stack.doorbell().ring();
    }
}

/// Error of [`Host::listen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// The port is 0.
    InvalidPort,
    /// Another listener uses the port.
    PortInUse,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ListenError::InvalidPort => "cannot listen on port 0",
            ListenError::PortInUse => "another listener uses the port",
        })
    }
}

impl std::error::Error for ListenError {}

/// Error of [`Host::connect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The remote address or port is 0, or no local port is free.
    Unaddressable,
    /// The other host refused the connection: nothing listens on the port, or its backlog is full.
    Refused,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectError::Unaddressable => "the address or port is 0, or no local port is free",
            ConnectError::Refused => "the connection was refused",
        })
    }
}

impl std::error::Error for ConnectError {}
