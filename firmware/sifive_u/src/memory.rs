//! Static memory. `docs/boards/sifive_u.md` has a table of all of it.

use cardiograph_recorder::{ReadDesk, Ring};
use cardiograph_server::Buffers;
use core::sync::atomic::AtomicU8;
use embassy_net::StackResources;
use static_cell::{ConstStaticCell, StaticCell};

/// Size of the ring buffer: 0.28 s of samples at 860 Hz.
const RING_BYTES: usize = 24 * 1024;
/// Memory for reads and uploads, in blocks, and the number of buffers in it. Uploads need two.
const READ_BLOCKS: usize = 4;
const READ_BUFFERS: usize = 2;
/// Connections at the same time.
pub const CONNECTIONS: usize = 2;
/// One segment of TCP.
const RECEIVE_BYTES: usize = 536;
/// Two segments, so that one is sent while the other one is acknowledged.
const SEND_BYTES: usize = 2 * 536;

/// Memory of a connection.
pub struct Connection {
    pub receive: [u8; RECEIVE_BYTES],
    pub send: [u8; SEND_BYTES],
    pub buffers: Buffers,
}

impl Connection {
    const fn new() -> Connection {
        Connection {
            receive: [0; RECEIVE_BYTES],
            send: [0; SEND_BYTES],
            buffers: Buffers::new(),
        }
    }
}

/// Ring buffer of the samples.
pub type SampleRing = Ring<[AtomicU8; RING_BYTES]>;

/// All static memory.
pub struct Memory {
    pub ring: &'static mut SampleRing,
    pub desk: &'static ReadDesk<'static>,
    pub network: &'static mut StackResources<CONNECTIONS>,
    pub connections: &'static mut [Connection; CONNECTIONS],
}

/// Returns the memory; panics at the second call.
pub fn take() -> Memory {
    static RING: ConstStaticCell<SampleRing> = ConstStaticCell::new(Ring::new());
    static BLOCKS: ConstStaticCell<[[u8; 512]; READ_BLOCKS]> =
        ConstStaticCell::new([[0; 512]; READ_BLOCKS]);
    static DESK: StaticCell<ReadDesk<'static>> = StaticCell::new();
    static NETWORK: StaticCell<StackResources<CONNECTIONS>> = StaticCell::new();
    static MEMORY: ConstStaticCell<[Connection; CONNECTIONS]> =
        ConstStaticCell::new([const { Connection::new() }; CONNECTIONS]);
    Memory {
        ring: RING.take(),
        desk: DESK.init(ReadDesk::with_buffers(BLOCKS.take(), READ_BUFFERS)),
        network: NETWORK.init_with(StackResources::new),
        connections: MEMORY.take(),
    }
}
