//! TCP in virtual time: sockets over the [links](cardiograph_sim_world::link) of a world.
//!
//! ```text
//!   Listener ── accept ──> Socket: Read + Write     application, a server for boards for example
//!      │                     │                                    (listener.rs, socket.rs)
//!   Host ── one address, one stack, one task that moves packets   (host.rs, driver.rs)
//!      │
//!   Stack ── smoltcp: retransmission, windows, acknowledgements   (stack.rs)
//!      │
//!   Device ── packets to and from a link                          (device.rs)
//!      │
//!   Link ── bandwidth, delay, loss, copies, reordering            (cardiograph-sim-world)
//! ```
//!
//! ```
//! use cardiograph_sim_net::{Config, connect_hosts};
//! use cardiograph_sim_world::{Link, Seed, World};
//! use embedded_io_async::{Read, Write};
//!
//! let mut world = World::new(Seed::new(1));
//! let handle = world.handle();
//! let (client, server) = connect_hosts(&handle, "wifi", Link::default(), Config::default())?;
//! let mut listener = server.listen(80, 2)?;
//! world.spawn("server", async move {
//!     let mut socket = listener.accept().await;
//!     let mut request = [0; 6];
//!     socket.read_exact(&mut request).await.expect("the client sends six bytes");
//!     socket.write_all(&request).await.expect("the client is still there");
//! });
//! let answer = world.block_on(async {
//!     let mut socket = client.connect(server.endpoint(80)).await?;
//!     socket.write_all(b"status").await?;
//!     let mut answer = [0; 6];
//!     socket.read_exact(&mut answer).await.expect("the server echoes");
//!     Ok::<_, Box<dyn std::error::Error>>(answer)
//! })??;
//! assert_eq!(&answer, b"status");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Scope
//!
//! IPv4 and TCP, without congestion control: the window is the smaller of the sender's and the receiver's
//! buffer, as with lwIP's small windows. The throughput of a link without loss is therefore the lower of its
//! bandwidth and window / round trip. Lost packets are retransmitted after three duplicate acknowledgements, or
//! after a time-out of at least 1 s (RFC 6298). The network stack itself takes no time: a board's processor
//! is modelled by the code that uses the sockets.
//!
//! # Determinism
//!
//! Everything depends on the world alone: a host has no thread, reads no clock but the world's, and draws
//! its initial sequence numbers and ports from the world's seed.

mod device;
mod driver;
mod host;
mod listener;
mod socket;
mod stack;

pub use host::{Config, ConnectError, Host, ListenError, connect_hosts};
pub use listener::Listener;
pub use socket::{Error, ReadHalf, Socket, WriteHalf};
