//! Static memory.

use cardiograph_recorder::{ReadDesk, Ring};
use core::sync::atomic::AtomicU8;
use embassy_net::StackResources;
use static_cell::{ConstStaticCell, StaticCell};

/// Size of the ring buffer: 0.76 s of samples at 860 Hz.
const RING_BYTES: usize = 64 * 1024;
/// Size of the read buffer, in blocks.
const READ_BLOCKS: usize = 16;
/// Connections at the same time.
pub const CONNECTIONS: usize = 3;
/// Sockets of a network: connections, DHCP, mDNS, DNS and SNTP.
const SOCKETS: usize = CONNECTIONS + 4;
/// One segment of TCP.
const RECEIVE_BYTES: usize = 1460;
/// Two segments, so that one is sent while the other one is acknowledged.
const SEND_BYTES: usize = 2 * 1460;

/// Memory of a connection.
pub type Connection = cardiograph_logger::Connection<RECEIVE_BYTES, SEND_BYTES>;

/// Memory of the networks: that of the router and that of the access point.
pub struct Network {
    pub router: &'static mut StackResources<SOCKETS>,
    pub access_point: &'static mut StackResources<SOCKETS>,
    pub connections: &'static mut [Connection; CONNECTIONS],
}

/// Ring buffer of the samples.
pub type SampleRing = Ring<[AtomicU8; RING_BYTES]>;

/// All static memory.
pub struct Memory {
    pub ring: &'static mut SampleRing,
    pub desk: &'static ReadDesk<'static>,
    pub network: Network,
}

/// Returns the memory; panics at the second call.
pub fn take() -> Memory {
    static RING: ConstStaticCell<SampleRing> = ConstStaticCell::new(Ring::new());
    static BLOCKS: ConstStaticCell<[[u8; 512]; READ_BLOCKS]> =
        ConstStaticCell::new([[0; 512]; READ_BLOCKS]);
    static DESK: StaticCell<ReadDesk<'static>> = StaticCell::new();
    static ROUTER: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    static ACCESS_POINT: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    static CONNECTION_MEMORY: ConstStaticCell<[Connection; CONNECTIONS]> =
        ConstStaticCell::new([const { Connection::new() }; CONNECTIONS]);
    Memory {
        ring: RING.take(),
        desk: DESK.init(ReadDesk::new(BLOCKS.take())),
        network: Network {
            router: ROUTER.init_with(StackResources::new),
            access_point: ACCESS_POINT.init_with(StackResources::new),
            connections: CONNECTION_MEMORY.take(),
        },
    }
}
